//! Nacks: those that arrive, and those we send.

use byname_packet::Interest;
use byname_packet::lp::LpHeader;
use smallvec::SmallVec;

use super::data::bury;
use super::interest::{Lookup, Sending};
use super::{Arrival, Forwarder, Tx};
use crate::counters::{Counters, DropReason};
use crate::face::{FaceId, LinkType};
use crate::face_table::FaceTable;
use crate::pit::{PitIndex, Selectors};
use crate::strategy::{Context, Decision, Strategy};

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
            .and_then(|index| self.note_nack(index, arrival, interest, reason).map(|()| index));
        self.scratch.prefixes = prefixes;
        self.reconsider(result?, arrival.now_ns, tx, |strategy, context, send| {
            strategy.on_nack(context, send)
        });
        Ok(())
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

    /// Asks the strategy of a pending Interest anew, and carries out what it says.
    pub(super) fn reconsider(
        &mut self,
        index: PitIndex,
        now_ns: u64,
        tx: &mut dyn Tx,
        ask: impl FnOnce(&dyn Strategy, &mut Context<'_>, &mut Vec<FaceId>) -> Decision,
    ) {
        let Some(entry) = self.pit.get(index) else { return };
        // An entry may live a moment longer than those who wait.
        let still = || entry.in_records.iter().filter(|record| record.expires_ns > now_ns);
        let Some(latest) = still().next_back() else { return };
        let (face, nonce) = (latest.face, latest.nonce);
        let waiting: SmallVec<[FaceId; 4]> = still().map(|record| record.face).collect();
        let mut wire = std::mem::take(&mut self.scratch.wire);
        entry.encode_with_nonce(nonce, &mut wire);
        if let Ok(interest) = Interest::decode(&wire) {
            let mut prefixes = std::mem::take(&mut self.scratch.prefixes);
            self.hasher.prefixes(interest.name, &mut prefixes);
            let lookup = Lookup {
                name: interest.name,
                prefixes: &prefixes,
                hint: interest.forwarding_hint,
                hop_limit: interest.hop_limit,
                waiting: &waiting,
            };
            let decision = self.decide(index, &lookup, now_ns, ask);
            // Only the consumers' own packets carry marks and the like.
            let arrival = Arrival { face, header: &LpHeader::default(), now_ns };
            let sending = Sending { nonce, wire: &wire, arrival: &arrival };
            // Waiting for other faces or passing a Nack on are proper outcomes here.
            let _ = self.carry_out(index, decision, &sending, tx);
            self.scratch.prefixes = prefixes;
        }
        self.scratch.wire = wire;
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
    // What the forwarder itself asks for is awaited for a bounded time anyway.
    if to.info.link_type != LinkType::PointToPoint || to.inbox.is_some() {
        return;
    }
    to.counters.out_nacks += 1;
    to.counters.out_bytes += interest.len() as u64;
    counters.out_nacks += 1;
    tx.send(face, header, interest);
}
