//! Room for what is written: an account of what the cache holds, and removing when that is much.
//!
//! The account is a small file to which every process adds what it wrote, now and then; removing
//! counts everything anew. A process that is killed in between leaves the account short by what it
//! had not reported, at most [`REPORT_BYTES`].

use std::fs::OpenOptions;
use std::io::{self, Read, Seek, Write};
use std::time::{Duration, Instant};

use crate::counters::add;
use crate::evict;
use crate::ghosts::Ghosts;
use crate::layout::ContentKey;
use crate::map::Locked;
use crate::scan::{self, Usage};
use crate::state::Shared;

/// Bytes written before they are reported.
pub(crate) const REPORT_BYTES: u64 = 16 << 20;
/// Age at which an account is made anew.
const ACCOUNT_AGE_MAX_NS: u64 = 3_600_000_000_000;
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
    ghosts: Ghosts,
    removed: Option<Instant>,
}

impl Room {
    /// True if so many bytes may be written; removes something first where that is due.
    pub(crate) fn make(&mut self, shared: &Shared, bytes: u64) -> io::Result<bool> {
        if self.usage.is_none() {
            crate::place::make_directory(&shared.config.directory)?;
            self.ghosts = Ghosts::load(&shared.layout.ghosts());
            self.usage = Some(account(shared, Usage::default())?);
            self.check_file_system(shared)?;
        }
        if self.unreported.bytes >= REPORT_BYTES {
            self.report(shared)?;
            self.check_file_system(shared)?;
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
        let wanted = if self.is_file_system_full { shared.config.free_bytes_min } else { 0 };
        if let Some(removed) = evict::remove_some(shared, &mut self.ghosts, wanted)? {
            add(&shared.counts.evicted_entries, removed.count);
            self.usage = Some(removed.left);
        }
        self.check_file_system(shared)?;
        let has_room = !self.is_file_system_full && !self.is_above_mark(shared);
        self.removed = (!has_room).then(Instant::now);
        Ok(())
    }

    fn check_file_system(&mut self, shared: &Shared) -> io::Result<()> {
        let stat = rustix::fs::statvfs(&shared.config.directory)?;
        let free = stat.f_bavail.saturating_mul(stat.f_frsize);
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

    /// Adds to the account what was written here, and learns what others wrote.
    pub(crate) fn report(&mut self, shared: &Shared) -> io::Result<()> {
        if self.usage.is_some() {
            let unreported = std::mem::take(&mut self.unreported);
            self.usage = Some(account(shared, unreported)?);
        }
        Ok(())
    }
}

/// Adds to the account; returns what it says then.
fn account(shared: &Shared, more: Usage) -> io::Result<Usage> {
    with_account(shared, |known| {
        let is_young =
            |known: &Account| scan::now_ns().saturating_sub(known.counted_ns) < ACCOUNT_AGE_MAX_NS;
        match known.filter(is_young) {
            Some(known) => Ok(Account { usage: known.usage.plus(more), ..known }),
            None => Account::counted(scan::usage(&shared.layout, &shared.config.disk)?),
        }
    })
}

/// Replaces the account by what was counted.
pub(crate) fn set_account(shared: &Shared, usage: Usage) -> io::Result<()> {
    with_account(shared, |_| Account::counted(usage)).map(drop)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Account {
    usage: Usage,
    counted_ns: u64,
}

impl Account {
    fn counted(usage: Usage) -> io::Result<Self> {
        Ok(Account { usage, counted_ns: scan::now_ns() })
    }

    fn encode(&self) -> String {
        let Account { usage: Usage { bytes, entries }, counted_ns } = self;
        format!("{bytes} {entries} {counted_ns}\n")
    }

    fn decode(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace().map(|word| word.parse().ok());
        let mut next = || words.next().flatten();
        let usage = Usage { bytes: next()?, entries: next()? };
        Some(Account { usage, counted_ns: next()? })
    }
}

/// Changes the account while no other process does. A damaged one is none.
fn with_account(
    shared: &Shared,
    change: impl FnOnce(Option<Account>) -> io::Result<Account>,
) -> io::Result<Usage> {
    let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).clone();
    let mut file = options.open(shared.layout.account())?;
    let held = file.try_clone()?;
    let _locked = Locked::new(&held)?;
    let mut octets = Vec::new();
    file.read_to_end(&mut octets)?;
    let known = std::str::from_utf8(&octets).ok().and_then(Account::decode);
    let account = change(known)?;
    if known != Some(account) {
        file.rewind()?;
        file.set_len(0)?;
        file.write_all(account.encode().as_bytes())?;
    }
    Ok(account.usage)
}
