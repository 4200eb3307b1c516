//! Nacks: those that arrive, and those we send.

use byname_packet::Interest;
use byname_packet::lp::LpHeader;

use super::data::bury;
use super::interest::{Lookup, Sending};
use super::{Arrival, Forwarder, Tx};
use crate::counters::{Counters, DropReason};
use crate::face::{FaceId, LinkType};
use crate::face_table::FaceTable;
use crate::hash::Prefixes;
use crate::pit::{PitIndex, Selectors};

impl Forwarder {
    pub(super) fn on_nack(
        &mut self,
        arrival: &Arrival<'_>,
        interest: &Interest<'_>,
        reason: u64,
        tx: &mut dyn Tx,
    ) -> Result<(), DropReason> {
        let mut prefixes = std::mem::take(&mut self.scratch.prefixes);
        self.hasher.prefixes(interest.name, &mut prefixes);
        let selectors = Selectors::of(interest, &self.hasher);
        let index = self.pit.find(prefixes.whole(), interest.name, selectors);
        let result = index
            .ok_or(DropReason::UnexpectedNack)
            .and_then(|index| self.note_nack(index, arrival, interest, reason).map(|()| index))
            .and_then(|index| self.try_next(index, arrival, (interest, &prefixes), tx));
        self.scratch.prefixes = prefixes;
        result
    }

    fn note_nack(
        &mut self,
        index: PitIndex,
        arrival: &Arrival<'_>,
        interest: &Interest<'_>,
        reason: u64,
    ) -> Result<(), DropReason> {
        // On a link with several peers another one may still have the Data.
        if self.link_type(arrival.face) != LinkType::PointToPoint {
            return Err(DropReason::UnexpectedNack);
        }
        let entry = self.pit.get_mut(index).ok_or(DropReason::UnexpectedNack)?;
        let record = entry.out_record_mut(arrival.face).ok_or(DropReason::UnexpectedNack)?;
        if interest.nonce != Some(record.nonce) {
            return Err(DropReason::UnexpectedNack);
        }
        record.nacked = Some(reason);
        Ok(())
    }

    fn try_next(
        &mut self,
        index: PitIndex,
        arrival: &Arrival<'_>,
        (interest, prefixes): (&Interest<'_>, &Prefixes),
        tx: &mut dyn Tx,
    ) -> Result<(), DropReason> {
        let Some(entry) = self.pit.get(index) else { return Ok(()) };
        let Some(latest) = entry.in_records.last() else { return Ok(()) };
        let nonce = latest.nonce;
        let waiting: Vec<FaceId> = entry.in_records.iter().map(|record| record.face).collect();
        let mut wire = std::mem::take(&mut self.scratch.wire);
        entry.encode_with_nonce(nonce, &mut wire);
        let lookup = Lookup {
            name: interest.name,
            prefixes,
            hint: interest.forwarding_hint,
            hop_limit: interest.hop_limit,
            waiting: &waiting,
        };
        let decision = self.decide(index, &lookup, arrival.now_ns, |strategy, context, send| {
            strategy.on_nack(context, send)
        });
        // The Nack's own header says nothing about the Interest that is sent on.
        let plain = LpHeader::default();
        let arrival = Arrival { header: &plain, ..*arrival };
        let sending = Sending { nonce, wire: &wire, arrival: &arrival };
        // Waiting for other faces or passing the Nack on are proper outcomes here.
        let _ = self.carry_out(index, decision, &sending, tx);
        self.scratch.wire = wire;
        Ok(())
    }

    /// Ends an entry: every face that waits gets a Nack.
    pub(super) fn reject(&mut self, index: PitIndex, reason: u64, now_ns: u64, tx: &mut dyn Tx) {
        let (faces, counters) = (&mut self.faces, &mut self.counters);
        let (dead_nonces, hasher) = (&mut self.dead_nonces, &self.hasher);
        counters.unsatisfied_interests += 1;
        self.pit.remove(index, |entry| {
            let mut wire = Vec::with_capacity(entry.wire().len());
            for record in entry.in_records.iter().filter(|record| record.expires_ns > now_ns) {
                entry.encode_with_nonce(record.nonce, &mut wire);
                let header = LpHeader {
                    pit_token: record.token.get(),
                    nack: Some(reason),
                    ..LpHeader::default()
                };
                send_nack((faces, counters), record.face, (&header, &wire), tx);
            }
            bury(entry, dead_nonces, hasher, now_ns);
        });
    }
}

/// Sends a Nack, where Nacks are used: not on links with several peers.
pub(super) fn send_nack(
    (faces, counters): (&mut FaceTable, &mut Counters),
    face: FaceId,
    (header, interest): (&LpHeader<'_>, &[u8]),
    tx: &mut dyn Tx,
) {
    let Some(to) = faces.get_mut(face) else { return };
    if to.info.link_type != LinkType::PointToPoint {
        return;
    }
    to.counters.out_nacks += 1;
    to.counters.out_bytes += interest.len() as u64;
    counters.out_nacks += 1;
    tx.send(face, header, interest);
}
