//! Sending of Interests: a decision of the strategy is carried out and recorded.

use byname_packet::lp::LpHeader;

use super::{Arrival, Pipeline};
use crate::counters::DropReason;
use crate::face::FaceId;
use crate::pit::PitIndex;
use crate::records::OutRecord;
use crate::strategy::Decision;
use crate::tx::Tx;

/// An Interest to be sent.
pub(super) struct Sending<'a> {
    pub(super) nonce: [u8; 4],
    pub(super) wire: &'a [u8],
    pub(super) arrival: &'a Arrival<'a>,
}

impl Pipeline {
    pub(super) fn carry_out(
        &mut self,
        index: PitIndex,
        decision: Decision,
        sending: &Sending<'_>,
        tx: &mut dyn Tx,
    ) -> Result<(), DropReason> {
        match decision {
            Decision::Forward => {
                let faces = std::mem::take(&mut self.scratch.send);
                for face in &faces {
                    self.send_interest(index, *face, sending, tx);
                }
                self.scratch.send = faces;
                Ok(())
            }
            Decision::Probe => {
                let mut faces = std::mem::take(&mut self.scratch.send);
                let probed = faces.pop();
                for face in &faces {
                    self.send_interest(index, *face, sending, tx);
                }
                self.scratch.send = faces;
                if let Some(face) = probed {
                    self.send_probe(index, face, sending, tx);
                }
                Ok(())
            }
            Decision::Suppress => Err(DropReason::Suppressed),
            Decision::Reject(reason) => {
                self.reject(index, reason, sending.arrival.now_ns, tx);
                Err(DropReason::NoRoute)
            }
        }
    }

    /// Sends an Interest with a nonce of its own.
    fn send_probe(
        &mut self,
        index: PitIndex,
        face: FaceId,
        sending: &Sending<'_>,
        tx: &mut dyn Tx,
    ) {
        let nonce = self.rng.nonce();
        let mut wire = Vec::new();
        if let Some(entry) = self.pit.get(index) {
            entry.encode_with_nonce(nonce, &mut wire);
        }
        let probe = Sending { nonce, wire: &wire, arrival: sending.arrival };
        self.send_interest(index, face, &probe, tx);
    }

    fn send_interest(
        &mut self,
        index: PitIndex,
        face: FaceId,
        sending: &Sending<'_>,
        tx: &mut dyn Tx,
    ) {
        let now_ns = sending.arrival.now_ns;
        let Some(entry) = self.pit.get_mut(index) else { return };
        let expires_ns = entry.expires_ns;
        let is_traced = entry.records.is_traced();
        let mut replaced = None;
        match entry.records.out_record_mut(face) {
            Some(record) => {
                replaced = Some(record.nonce).filter(|nonce| *nonce != sending.nonce);
                record.nonce = sending.nonce;
                record.sent_ns = now_ns;
                record.expires_ns = expires_ns;
                record.nacked = None;
            }
            None => entry.records.outgoing.push(OutRecord {
                face,
                nonce: sending.nonce,
                sent_ns: now_ns,
                expires_ns,
                nacked: None,
                suppression_ns: 0,
            }),
        }
        if let Some(nonce) = replaced {
            let hash = entry.hash;
            self.dead_nonces.insert(&self.hasher, (hash, nonce), now_ns);
        }
        let Some(to) = self.faces.get_mut(face) else { return };
        to.counters.out_interests += 1;
        to.counters.out_bytes += sending.wire.len() as u64;
        self.counters.out_interests += 1;
        let header = LpHeader {
            pit_token: self.shard_token.as_ref().map(|token| &token[..]),
            congestion_mark: sending.arrival.header.congestion_mark,
            non_discovery: sending.arrival.header.non_discovery,
            incoming_face_id: to.options.local_fields.then_some(sending.arrival.face.0),
            path_trace: is_traced.then_some(&[]),
            ..LpHeader::default()
        };
        tx.send_interest((face, sending.arrival.face), &header, sending.wire);
    }
}
