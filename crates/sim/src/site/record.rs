//! What clients were told, as they write it down.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

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

    pub(super) fn end(&mut self, number: usize, outcome: Outcome, now_ns: u64) {
        if let Some(Some(operation)) = self.operations.get_mut(number) {
            (operation.outcome, operation.until_ns) = (outcome, now_ns);
        }
    }
}
