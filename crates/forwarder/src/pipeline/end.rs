//! The end of an Interest that is not answered: given up or refused.

use byname_packet::lp::LpHeader;

use super::Pipeline;
use crate::counters::Counters;
use crate::dead_nonce::DeadNonceList;
use crate::face::{FaceId, LinkType};
use crate::face_table::FaceTable;
use crate::hash::NameHasher;
use crate::pit::{PitEntry, PitIndex};
use crate::tx::Tx;

impl Pipeline {
    /// Ends an entry that nobody has answered. Its nonces are remembered.
    pub(super) fn give_up(&mut self, index: PitIndex, now_ns: u64) {
        let (dead_nonces, hasher) = (&mut self.dead_nonces, &self.hasher);
        self.counters.unsatisfied_interests += 1;
        self.pit.remove(index, |entry| bury(entry, dead_nonces, hasher, now_ns));
    }

    /// Ends an entry: every face that waits gets a Nack.
    pub(super) fn reject(&mut self, index: PitIndex, reason: u64, now_ns: u64, tx: &mut dyn Tx) {
        let (faces, counters) = (&mut self.faces, &mut self.counters);
        let (dead_nonces, hasher) = (&mut self.dead_nonces, &self.hasher);
        counters.unsatisfied_interests += 1;
        self.pit.remove(index, |entry| {
            let mut wire = Vec::with_capacity(entry.wire().len());
            for record in entry.records.incoming.iter().filter(|record| record.expires_ns > now_ns)
            {
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

/// Remembers the nonces under which an entry was sent.
pub(super) fn bury(
    entry: &PitEntry,
    dead_nonces: &mut DeadNonceList,
    hasher: &NameHasher,
    now_ns: u64,
) {
    for record in &entry.records.outgoing {
        dead_nonces.insert(hasher, (entry.hash, record.nonce), now_ns);
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
