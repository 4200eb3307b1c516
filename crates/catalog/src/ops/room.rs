//! Room on disks that are full: what was replaced or removed, and stays for its readers only, ends
//! before its time.
//!
//! It counts for nobody's quota, so without this whoever may write a little could fill all disks by
//! writing it again and again. Only as much ends as is needed, the oldest first; what is held
//! stays, and where all of it would not be enough, nothing ends.

use std::collections::BTreeMap;

use crate::codec::{Malformed, key_parts};
use crate::engine::{EngineError, Rows, Span, Table};
use crate::execution::Execution;
use crate::id::DiskId;
use crate::record::{Content, Expiry, Inode, KeptVersion, Policy, inode_key};
use crate::refusal::Failure;

/// Rows of due work that are looked at. Those of what is kept are among the first due.
const ROWS_MAX: usize = 1024;

impl Execution<'_> {
    /// Ends contents that nobody needs until content of a size has room on as many disks as a
    /// policy wants; false if it has not.
    pub(super) fn make_room(&mut self, policy: &Policy, size: u64) -> Result<bool, Failure> {
        let takers = self.takers(policy)?;
        let mut free: BTreeMap<DiskId, u64> =
            takers.into_iter().map(|taker| (taker.id, taker.free_bytes)).collect();
        let mut ending = Vec::new();
        for (row, _) in self.view.range(Table::Expiry, Span::ALL, ROWS_MAX)? {
            let malformed =
                |Malformed| EngineError::Corrupt { table: Table::Expiry, what: "a malformed key" };
            let parts = key_parts(&row).map_err(malformed)?;
            let (_, what) = Expiry::from_parts(parts).map_err(malformed)?;
            let Some(content) = self.unneeded(what)? else { continue };
            let mut is_of_use = false;
            for disk in &content.replicas {
                if let Some(free) = free.get_mut(disk) {
                    // What has room already needs no more.
                    is_of_use |= *free < size;
                    *free = free.saturating_add(content.size);
                }
            }
            if !is_of_use {
                continue;
            }
            ending.push((row, what));
            let with_room = free.values().filter(|free| **free >= size).count();
            if with_room >= usize::from(policy.replica_count) {
                for (row, what) in ending {
                    self.view.delete(Table::Expiry, row);
                    self.end(what)?;
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The content that is only kept for readers, none of whom holds it.
    fn unneeded(&self, what: Expiry) -> Result<Option<Content>, Failure> {
        match what {
            Expiry::Kept(content) => {
                let key = content.key();
                let is_needed = self.view.has_any(Table::Hold, &key)?
                    || self.view.has(Table::OldVersion, &key)?;
                let kept: Option<KeptVersion> = self.view.record(&key)?;
                Ok(kept.filter(|_| !is_needed).map(|kept| kept.content))
            }
            Expiry::Nameless(id) => {
                let key = inode_key(id);
                let is_needed = self.view.has_any(Table::Hold, &key)?
                    || self.view.has_any(Table::Attempt, &key)?;
                let inode: Option<Inode> = self.view.record(&key)?;
                Ok(inode.filter(|_| !is_needed).and_then(|inode| inode.content().cloned()))
            }
            Expiry::Attempt(_) | Expiry::Session(_) => Ok(None),
        }
    }
}
