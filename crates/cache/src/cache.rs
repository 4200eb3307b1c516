//! The cache: its handle, and what people and programs ask of it besides reading.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use byname_packet::{Name, NameRef};
use byname_security::tree::Hash;

use crate::config::CacheConfig;
use crate::content::Content;
use crate::counters::Counters;
use crate::error::{CacheError, at};
use crate::ghosts::Ghosts;
use crate::health::Direction;
use crate::layout::ContentKey;
use crate::limits::{LIMITS_MAX, Limit, Limits};
use crate::names::Names;
use crate::pins::Pins;
use crate::scan::{self, EntryReport, Usage};
use crate::scrub::{self, ScrubReport};
use crate::state::Shared;
use crate::version::DirectoryPacket;
use crate::writes::Work;
use crate::{account, evict, writer};

/// Time that the last handle waits for what is still to be written.
const END_PATIENCE: Duration = Duration::from_secs(3);

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
}

/// A cache. Clones are the same; the last one waits a moment for what is still to be written.
#[derive(Clone, Debug)]
pub struct Cache {
    inner: Arc<Inner>,
}

impl Cache {
    /// A cache as configured. Nothing happens on the disk before something is read or written, so
    /// this does not fail: to readers a cache that cannot be used is one that has nothing.
    pub fn new(config: CacheConfig) -> Self {
        Cache { inner: Arc::new(Inner { shared: Arc::new(Shared::new(config)) }) }
    }

    /// A content of it, there or not.
    pub fn content(&self, root: Hash, size: u64) -> Content {
        let shared = Arc::clone(&self.inner.shared);
        let state = shared.content(ContentKey { root, size });
        Content { shared, state, owner: None }
    }

    /// Keeps the publisher's packet of a directory with the copies of its files.
    pub fn keep_directory(&self, name: Name, packet: DirectoryPacket) {
        let shared = &self.inner.shared;
        if shared.health.is_usable(Direction::Write, &shared.counts) {
            writer::push(shared, Work::Directory { name, packet });
        }
    }

    /// Counts since this cache was opened, in this process.
    pub fn counters(&self) -> Counters {
        self.inner.shared.counts.snapshot()
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.inner.shared.config.directory
    }

    /// Its configuration.
    pub fn config(&self) -> &CacheConfig {
        &self.inner.shared.config
    }

    /// Waits until everything queued is written, at most for so long. True if it is.
    pub fn flush(&self, patience: Duration) -> bool {
        self.inner.shared.writes.drain(patience)
    }

    /// Waits until half of the queue is free, at most for so long: for readers who want what they
    /// read to be kept rather than to be read fast.
    pub fn wait_for_room(&self, patience: Duration) {
        let shared = &self.inner.shared;
        if shared.health.is_usable(Direction::Write, &shared.counts) {
            shared.writes.wait_for_room(patience);
        }
    }

    /// What it holds, counted.
    ///
    /// # Errors
    /// [`CacheError::Disk`].
    pub fn usage(&self) -> Result<Usage, CacheError> {
        let shared = &self.inner.shared;
        scan::usage(&shared.layout, &shared.config.disk).map_err(at(self.directory()))
    }

    /// The reason why the machine's service does not answer; nothing if it does, or if this is a
    /// cache of one's own.
    pub fn service_failure(&self) -> Option<io::Error> {
        self.inner.shared.service.as_ref()?.probe().err()
    }

    /// Room on its file system for users other than root, if the system says. Where nothing was
    /// kept yet, of the file system that its directory will be made in.
    pub fn free_bytes(&self) -> Option<u64> {
        let made = self.directory().ancestors().find(|directory| directory.exists())?;
        crate::files::free_bytes(made).ok()
    }

    /// Its entries; those that a name below `below` was seen for, or all.
    ///
    /// # Errors
    /// [`CacheError::Disk`], and [`CacheError::Pins`].
    pub fn entries(&self, below: Option<NameRef<'_>>) -> Result<Vec<EntryReport>, CacheError> {
        let shared = &self.inner.shared;
        let pins = Pins::load(&shared.layout.pins())?;
        let mut reports = Vec::new();
        for (key, path) in self.paths(below)? {
            // One that cannot be read is shown by `scrub`, and holds up no list.
            let report = scan::report(key, &path, &pins, &shared.config.disk);
            reports.extend(report.ok().flatten());
        }
        Ok(reports)
    }

    /// The entries that a name below `below` was seen for.
    fn paths(&self, below: Option<NameRef<'_>>) -> Result<Vec<(ContentKey, PathBuf)>, CacheError> {
        let shared = &self.inner.shared;
        let mut paths = Vec::new();
        scan::for_each(&shared.layout, &shared.config.disk, &mut |key, path| {
            let is_below = below.is_none_or(|below| {
                Names::load(&path).iter().any(|seen| below.is_prefix_of(seen.name.view()))
            });
            if is_below {
                paths.push((key, path));
            }
        })
        .map_err(at(&shared.layout.entries()))?;
        Ok(paths)
    }

    /// The pinned names.
    ///
    /// # Errors
    /// [`CacheError::Disk`], and [`CacheError::Pins`].
    pub fn pins(&self) -> Result<Vec<Name>, CacheError> {
        Ok(Pins::load(&self.inner.shared.layout.pins())?.into_names())
    }

    /// Never removes what was seen under `name` or below it, now and later, to make room. False if
    /// it was pinned already.
    ///
    /// # Errors
    /// [`CacheError::Disk`], and [`CacheError::Pins`].
    pub fn pin(&self, name: &Name) -> Result<bool, CacheError> {
        self.change_pins(|pins| pins.add(name))
    }

    /// Ends a pin. False if there was none of just this name.
    ///
    /// # Errors
    /// [`CacheError::Disk`], and [`CacheError::Pins`].
    pub fn unpin(&self, name: &Name) -> Result<bool, CacheError> {
        self.change_pins(|pins| pins.remove(name))
    }

    fn change_pins(&self, change: impl FnOnce(&mut Pins) -> bool) -> Result<bool, CacheError> {
        let layout = &self.inner.shared.layout;
        crate::files::make_directory(&layout.root).map_err(at(&layout.root))?;
        layout.check_own().map_err(at(&layout.root))?;
        let mut pins = Pins::load(&layout.pins())?;
        let has_changed = change(&mut pins);
        if has_changed {
            pins.save(&layout.pins())?;
        }
        Ok(has_changed)
    }

    /// The limits of names.
    ///
    /// # Errors
    /// [`CacheError::Disk`], and [`CacheError::Limits`].
    pub fn limits(&self) -> Result<Vec<Limit>, CacheError> {
        Ok(Limits::load(&self.inner.shared.layout.limits())?.list)
    }

    /// What was seen under `name` or below it takes at most so many bytes from now on; `None` ends
    /// the limit. What is too much already is removed, but for what is pinned.
    ///
    /// # Errors
    /// [`CacheError::Disk`], [`CacheError::Limits`], and [`CacheError::TooManyLimits`].
    pub fn limit(&self, name: &Name, bytes_max: Option<u64>) -> Result<(), CacheError> {
        let shared = &self.inner.shared;
        let layout = &shared.layout;
        crate::files::make_directory(&layout.root).map_err(at(&layout.root))?;
        layout.check_own().map_err(at(&layout.root))?;
        let mut limits = Limits::load(&layout.limits())?;
        let is_known = limits.list.iter().any(|limit| limit.name == *name);
        if limits.set(name, bytes_max) {
            limits.save(&layout.limits())?;
        } else if bytes_max.is_some() && !is_known {
            return Err(CacheError::TooManyLimits { max: LIMITS_MAX });
        }
        let mut ghosts = Ghosts::load(&layout.ghosts());
        evict::keep_limits(shared, &mut ghosts).map_err(at(&layout.root))?;
        Ok(())
    }

    /// Removes what was seen under `below` or a name below it, pinned or not; or everything.
    /// Returns the count of entries.
    ///
    /// # Errors
    /// [`CacheError::Disk`].
    pub fn remove(&self, below: Option<NameRef<'_>>) -> Result<u64, CacheError> {
        let shared = &self.inner.shared;
        let paths = self.paths(below)?;
        let count = paths.len() as u64;
        for (_, path) in &paths {
            evict::remove(shared, path).map_err(at(path))?;
        }
        if count > 0 {
            let left = self.usage()?;
            account::set_account(shared, left).map_err(at(self.directory()))?;
        }
        Ok(count)
    }

    /// Checks what was seen under `below` or a name below it, or everything, against its roots.
    /// What is rotten counts as missing from then on.
    ///
    /// # Errors
    /// [`CacheError::Disk`] if the entries cannot be listed.
    pub fn scrub(
        &self,
        below: Option<NameRef<'_>>,
        on_entry: &mut dyn FnMut(ContentKey, &io::Result<ScrubReport>),
    ) -> Result<ScrubReport, CacheError> {
        let mut sum = ScrubReport::default();
        for (key, path) in self.paths(below)? {
            let report = match scrub::entry(&self.inner.shared, key, &path) {
                Ok(None) => continue,
                Ok(Some(report)) => Ok(report),
                Err(error) => Err(error),
            };
            on_entry(key, &report);
            match report {
                Ok(report) => sum.add(report),
                Err(_) => sum.unreadable_entries += 1,
            }
        }
        Ok(sum)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let shared = &self.shared;
        shared.reads.end();
        shared.checks.end();
        shared.writes.end();
        if shared.health.is_usable(Direction::Write, &shared.counts) {
            shared.writes.wait_for_end(END_PATIENCE);
        }
    }
}
