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
        let (dead_nonces, hasher) = (&mut self.dead_nonces, &self.hasher);
        self.counters.unsatisfied_interests += 1;
        let (faces, counters) = (&mut self.faces, &mut self.counters);
        let mut nacks = NackSender { faces, counters, tx };
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
                nacks.send(record.face, &header, &wire);
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

/// Sends Nacks, where they are used: not on links with several peers.
pub(super) struct NackSender<'a> {
    pub(super) faces: &'a mut FaceTable,
    pub(super) counters: &'a mut Counters,
    pub(super) tx: &'a mut dyn Tx,
}

impl NackSender<'_> {
    pub(super) fn send(&mut self, face: FaceId, header: &LpHeader<'_>, interest: &[u8]) {
        let Some(to) = self.faces.get_mut(face) else { return };
        // What the forwarder itself asks for is awaited for a bounded time anyway.
        if to.info.link_type != LinkType::PointToPoint || to.inbox.is_some() {
            return;
        }
        to.counters.out_nacks += 1;
        to.counters.out_bytes += interest.len() as u64;
        self.counters.out_nacks += 1;
        self.tx.send(face, header, interest);
    }
}
