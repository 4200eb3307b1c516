//! What clients were told, as they write it down.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use byname_packet::lp::LpPacket;

use super::history::{Kind, Operation, Outcome};

/// What all clients were told so far, and the numbers of contents by their roots.
#[derive(Default)]
pub struct Record {
    /// Calls and returns; what was refused is taken back.
    pub operations: Vec<Option<Operation>>,
    /// Number of the content with this root.
    pub contents: BTreeMap<[u8; 32], u64>,
    /// Writes that were acknowledged, refused, and neither.
    pub puts: [u64; 3],
    /// Files read to the end, and readings that failed.
    pub reads: [u64; 2],
    /// When heads said last what is in a packet; a packet that is sent again is true again.
    pub said: BTreeMap<Vec<u8>, u64>,
}

/// A record that several programs write into.
pub type SharedRecord = Rc<RefCell<Record>>;

impl Record {
    /// Notes a call.
    pub(super) fn begin(&mut self, kind: Kind, from_ns: u64) -> usize {
        let (outcome, until_ns) = (Outcome::Unknown, u64::MAX);
        self.operations.push(Some(Operation { kind, outcome, from_ns, until_ns }));
        self.operations.len() - 1
    }

    /// Notes what a head says now, in frames.
    pub(super) fn note_said<'a>(&mut self, frames: impl Iterator<Item = &'a Vec<u8>>, now_ns: u64) {
        let packets = frames.filter_map(|frame| LpPacket::decode(frame).ok()?.fragment);
        self.said.extend(packets.map(|packet| (packet.to_vec(), now_ns)));
    }

    pub(super) fn end(&mut self, number: usize, outcome: Outcome, now_ns: u64) {
        if let Some(Some(operation)) = self.operations.get_mut(number) {
            (operation.outcome, operation.until_ns) = (outcome, now_ns);
        }
    }
}
