//! Room for what is written: an account of what the cache holds, and removing when that is much.
//!
//! The account is a small file to which every process adds what it wrote, now and then; removing
//! counts everything anew. A process that is killed in between leaves the account short by what it
//! had not reported, at most [`REPORT_BYTES`].

use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

use crate::account::account;
use crate::counters::add;
use crate::evict;
use crate::ghosts::Ghosts;
use crate::layout::ContentKey;
use crate::scan::Usage;
use crate::state::Shared;

/// Bytes written before they are reported.
pub(crate) const REPORT_BYTES: u64 = 16 << 20;
/// Pause after a round of removing that made no room.
const RETRY_PAUSE: Duration = Duration::from_secs(5);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// What the cache holds, as far as is known here; `None` before anybody has looked.
    usage: Option<Usage>,
    /// Written here and not reported yet.
    unreported: Usage,
    is_file_system_full: bool,
    /// That it is full, also after removing, was said.
    is_told: bool,
    ghosts: Ghosts,
    removed: Option<Instant>,
    /// When limits of names and users were looked at.
    limited: Option<Instant>,
    /// Users of a service who have all that a user may have, as it was then.
    full_users: HashSet<u32>,
}

impl Room {
    /// True if so many bytes may be written; removes something first where that is due.
    pub(crate) fn make(&mut self, shared: &Shared, bytes: u64) -> io::Result<bool> {
        if self.usage.is_none() {
            crate::files::make_directory(&shared.config.directory)?;
            shared.layout.check_own()?;
            self.ghosts = Ghosts::load(&shared.layout.ghosts());
            self.usage = Some(account(shared, Usage::default())?);
            self.check_file_system(shared)?;
            if shared.config.user_bytes_max.is_some() {
                // Who has too much from before is to be known before more comes.
                self.keep_limits(shared)?;
            }
        }
        if self.unreported.bytes >= REPORT_BYTES {
            self.report(shared)?;
            self.check_file_system(shared)?;
            self.keep_limits(shared)?;
        } else if !self.full_users.is_empty() {
            self.keep_limits(shared)?;
        }
        let is_due = self.is_file_system_full || self.is_above_mark(shared);
        let may_remove = self.removed.is_none_or(|at| at.elapsed() >= RETRY_PAUSE);
        if is_due && may_remove {
            self.remove_some(shared)?;
        }
        let held = self.usage.unwrap_or_default();
        let is_below =
            held.bytes + bytes <= shared.config.bytes_max && held.entries < shared.config.files_max;
        Ok(is_below && !self.is_file_system_full)
    }

    fn is_above_mark(&self, shared: &Shared) -> bool {
        let held = self.usage.unwrap_or_default();
        held.bytes > evict::high(shared.config.bytes_max)
            || held.entries > evict::high(shared.config.files_max)
    }

    fn remove_some(&mut self, shared: &Shared) -> io::Result<()> {
        self.report(shared)?;
        let directory = &shared.config.directory;
        let wanted = if self.is_file_system_full { shared.config.free_bytes_min } else { 0 };
        if let Some(removed) = evict::remove_some(shared, &mut self.ghosts, wanted)? {
            add(&shared.counts.evicted_entries, removed.count);
            self.usage = Some(removed.left);
        }
        self.check_file_system(shared)?;
        let has_room = !self.is_file_system_full && !self.is_above_mark(shared);
        if self.is_file_system_full && !self.is_told {
            let (free, min) = (crate::files::free_bytes(directory)?, shared.config.free_bytes_min);
            tracing::warn!(
                free_mib = free >> 20,
                free_mib_min = min >> 20,
                "the cache's disk has less room than is to stay free (cache.free_mib); nothing \
                 more is kept"
            );
        }
        self.is_told = self.is_file_system_full;
        self.removed = (!has_room).then(Instant::now);
        Ok(())
    }

    /// Removes what names with a limit and users of a service have too much of, at most every few
    /// seconds.
    fn keep_limits(&mut self, shared: &Shared) -> io::Result<()> {
        if self.limited.is_some_and(|at| at.elapsed() < RETRY_PAUSE) {
            return Ok(());
        }
        self.limited = Some(Instant::now());
        // What is counted anew has it.
        self.report(shared)?;
        if let Some(removed) = evict::keep_limits(shared, &mut self.ghosts)? {
            add(&shared.counts.evicted_entries, removed.count);
            self.usage = Some(removed.left);
        }
        if let Some(share) = shared.config.user_share()
            && let Some(kept) = evict::keep_shares(shared, &mut self.ghosts, share)?
        {
            self.full_users = kept.full_users;
            if let Some(removed) = kept.removed {
                add(&shared.counts.evicted_entries, removed.count);
                self.usage = Some(removed.left);
            }
        }
        Ok(())
    }

    /// True if a user of a service has all that a user may have, and nothing of it can be removed
    /// without taking from others what they brought.
    pub(crate) fn is_full_for(&self, uid: u32) -> bool {
        self.full_users.contains(&uid)
    }

    fn check_file_system(&mut self, shared: &Shared) -> io::Result<()> {
        let free = crate::files::free_bytes(&shared.config.directory)?;
        self.is_file_system_full = free < shared.config.free_bytes_min;
        Ok(())
    }

    /// So many new bytes were written.
    pub(crate) fn take(&mut self, bytes: u64) {
        self.unreported.bytes += bytes;
        if let Some(usage) = &mut self.usage {
            usage.bytes += bytes;
        }
    }

    /// An entry was made.
    pub(crate) fn take_entry(&mut self) {
        self.unreported.entries += 1;
        if let Some(usage) = &mut self.usage {
            usage.entries += 1;
        }
    }

    /// True if an entry of this content was removed a short while ago.
    pub(crate) fn is_ghost(&self, key: &ContentKey) -> bool {
        self.ghosts.contains(key.short())
    }

    /// Nothing more is written: reports, and keeps the limits of names.
    pub(crate) fn settle(&mut self, shared: &Shared) -> io::Result<()> {
        self.report(shared)?;
        if self.usage.is_none() {
            return Ok(());
        }
        self.limited = None;
        self.keep_limits(shared)
    }

    /// Adds to the account what was written here, and learns what others wrote.
    pub(crate) fn report(&mut self, shared: &Shared) -> io::Result<()> {
        if self.usage.is_some() {
            let unreported = std::mem::take(&mut self.unreported);
            self.usage = Some(account(shared, unreported)?);
        }
        Ok(())
    }
}
