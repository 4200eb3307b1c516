//! Room on disks that are full: what was replaced or removed, and stays for its readers only, ends
//! before its time.
//!
//! It counts for nobody's quota, so without this whoever may write a little could fill all disks by
//! writing it again and again, or by holding what others replace. Only as much ends as is needed,
//! the oldest first, and what is held only after all that is not; where all of it would not be
//! enough, nothing ends.

use std::collections::BTreeMap;

use crate::codec::{Malformed, key_parts};
use crate::engine::{EngineError, Rows, Span, Table};
use crate::execution::Execution;
use crate::id::DiskId;
use crate::record::{Content, Expiry, Inode, KeptVersion, Policy, inode_key};
use crate::refusal::Failure;

/// Rows of due work that are looked at. Those of what is kept are among the first due.
const ROWS_MAX: usize = 1024;

/// A row of due work, and what it is about.
type Due = (Vec<u8>, Expiry);

/// Content that is kept for its readers only.
struct Unneeded {
    content: Content,
    is_held: bool,
}

/// Room that there would be, and what has to end for it.
struct Making {
    free: BTreeMap<DiskId, u64>,
    size: u64,
    count: usize,
    ending: Vec<Due>,
}

impl Making {
    /// Ends something, if that is of use; true if there is room on enough disks then.
    fn end(&mut self, due: Due, content: &Content) -> bool {
        let mut is_of_use = false;
        for disk in &content.replicas {
            if let Some(free) = self.free.get_mut(disk) {
                // What has room already needs no more.
                is_of_use |= *free < self.size;
                *free = free.saturating_add(content.size);
            }
        }
        if !is_of_use {
            return false;
        }
        self.ending.push(due);
        self.free.values().filter(|free| **free >= self.size).count() >= self.count
    }
}

impl Execution<'_> {
    /// Ends contents that nobody needs until content of a size has room on as many disks as a
    /// policy wants; false if it has not.
    pub(super) fn make_room(&mut self, policy: &Policy, size: u64) -> Result<bool, Failure> {
        let takers = self.takers(policy)?;
        let free = takers.iter().map(|taker| (taker.id, taker.free_bytes)).collect();
        let count = usize::from(policy.replica_count);
        // What would not fit on empty disks is not looked for.
        let large = takers.iter().filter(|taker| taker.disk.capacity_bytes >= size).count();
        if large < count {
            return Ok(false);
        }
        let mut making = Making { free, size, count, ending: Vec::new() };
        let mut held = Vec::new();
        for (row, _) in self.view.range(Table::Expiry, Span::ALL, ROWS_MAX)? {
            let malformed =
                |Malformed| EngineError::Corrupt { table: Table::Expiry, what: "a malformed key" };
            let parts = key_parts(&row).map_err(malformed)?;
            let (_, what) = Expiry::from_parts(parts).map_err(malformed)?;
            let Some(Unneeded { content, is_held }) = self.unneeded(what)? else { continue };
            if is_held {
                held.push(((row, what), content));
            } else if making.end((row, what), &content) {
                return self.end_all(making.ending);
            }
        }
        for (due, content) in held {
            if making.end(due, &content) {
                return self.end_all(making.ending);
            }
        }
        Ok(false)
    }

    fn end_all(&mut self, ending: Vec<Due>) -> Result<bool, Failure> {
        for (row, what) in ending {
            self.view.delete(Table::Expiry, row);
            self.end_held(what)?;
        }
        Ok(true)
    }

    /// The content that is only kept for readers.
    fn unneeded(&self, what: Expiry) -> Result<Option<Unneeded>, Failure> {
        let (key, content) = match what {
            Expiry::Kept(content) => {
                let key = content.key();
                if self.view.has(Table::OldVersion, &key)? {
                    return Ok(None);
                }
                let kept: Option<KeptVersion> = self.view.record(&key)?;
                (key, kept.map(|kept| kept.content))
            }
            Expiry::Nameless(id) => {
                let key = inode_key(id);
                if self.view.has_any(Table::Attempt, &key)? {
                    return Ok(None);
                }
                let inode: Option<Inode> = self.view.record(&key)?;
                (key, inode.and_then(|inode| inode.content().cloned()))
            }
            Expiry::Attempt(_) | Expiry::Session(_) => return Ok(None),
        };
        let Some(content) = content else { return Ok(None) };
        let is_held = self.view.has_any(Table::Hold, &key)?;
        Ok(Some(Unneeded { content, is_held }))
    }
}
