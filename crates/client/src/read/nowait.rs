//! Reads of an open file on its caller's thread: what the site cache has in the kernel's memory.
//!
//! A read through the engine changes threads four times where the cache's disk is asked. That takes
//! longer than reading a unit from memory and hashing it, so who asks for little at a time, as
//! mounts do, tries this first. Nothing here waits, for a disk or for the engine, and nothing is
//! fetched: where something is missing the engine is asked as ever.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use byname_cache::Content;
use byname_security::tree::{Hash, SpanCheck, UNIT_BYTES, Verifier};

use crate::read::counters::{Counters, add};

/// Nodes that one read may need: those of two paths to the top of the largest tree.
const NODES_PER_READ_MAX: usize = 16;
/// Nodes that a file keeps however many are open.
const NODES_MIN: usize = 2;

/// Memory that all files of a session have for nodes: so many, divided by those that are open.
#[derive(Debug)]
pub(crate) struct NodeBudget(pub(crate) usize);

/// See the module.
#[derive(Debug)]
pub(crate) struct NowaitReads {
    content: Content,
    verifier: Mutex<Verifier>,
    budget: Arc<NodeBudget>,
    counters: Arc<Counters>,
}

impl NowaitReads {
    pub(crate) fn new(
        content: Content,
        root: Hash,
        budget: Arc<NodeBudget>,
        counters: Arc<Counters>,
    ) -> Self {
        let verifier = Mutex::new(Verifier::new(root, content.key().size, NODES_MIN));
        NowaitReads { content, verifier, budget, counters }
    }

    /// The place in `scratch` of the verified bytes from `offset` on, fewer than `length` only at
    /// the end of the file. `None` if they are not at hand.
    pub(crate) fn read(
        &self,
        scratch: &mut Vec<u8>,
        offset: u64,
        length: usize,
    ) -> Option<Range<usize>> {
        let (size, unit_bytes) = (self.content.key().size, UNIT_BYTES as u64);
        let end = offset.saturating_add(length as u64).min(size);
        if offset >= end {
            return Some(0..0);
        }
        let units = offset / unit_bytes..end.div_ceil(unit_bytes);
        let first = units.start * unit_bytes;
        let last = (units.end * unit_bytes).min(size);
        scratch.resize(usize::try_from(last - first).ok()?, 0);
        if !self.content.read_nowait(units.clone(), scratch) || !self.is_verified(&units, scratch) {
            return None;
        }
        let taken = end - offset;
        add(&self.counters.asked_bytes, taken);
        add(&self.counters.site_cache_bytes, last - first);
        let start = (offset - first) as usize;
        Some(start..start + taken as usize)
    }

    fn is_verified(&self, units: &Range<u64>, bytes: &[u8]) -> bool {
        let mut verifier = self.verifier.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..=NODES_PER_READ_MAX {
            match verifier.check_span(units.start, bytes) {
                SpanCheck::Verified => return true,
                SpanCheck::Bad { unit_index } => {
                    self.content.note_rotten(unit_index);
                    return false;
                }
                SpanCheck::Need(node) => {
                    let Some(found) = self.content.read_node_nowait(node) else { return false };
                    verifier.keep_nodes(self.nodes_max());
                    if verifier.add_node(node, &found).is_err() {
                        return false;
                    }
                }
            }
        }
        false
    }

    fn nodes_max(&self) -> usize {
        (self.budget.0 / Arc::strong_count(&self.budget).max(1)).max(NODES_MIN)
    }
}
