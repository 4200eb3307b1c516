//! The tree behind a mount: answers to the kernel's questions, from memory where that is fresh and
//! from the session otherwise.
//!
//! One rule of freshness: what was known to be current less than the bound ago counts, everything
//! older is asked for again. A directory that is known is asked whether its version is still
//! current, once for all who want to know, so a thousand names in it cost one question. Versions
//! are never asked for again: an inode of a file is one.

mod opening;

use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use byname_cache::{Cache, Content, Counters};
use byname_client::ClientError;
use byname_packet::Name;
use byname_security::tree::Hash;
use byname_transfer::error::{ErrorClass, ReadError};
use byname_transfer::naming::is_safe_entry;
use rustix::io::Errno;

use crate::attributes::{Attributes, Kind};
use crate::complaints::Complaints;
use crate::files::Files;
use crate::flight::Answer;
use crate::inodes::{Inode, Inodes, ROOT};
use crate::interrupts::Interrupts;
use crate::landing::Landing;
use crate::owners::Owners;
use crate::passing::Passing;
use crate::rooms::Rooms;
use crate::snapshot::{Snapshot, SnapshotEntry};
use crate::snapshots::{SNAPSHOT_BYTES_MAX, Snapshots, Step};
use crate::sources::Sources;

/// Longest name of a directory entry, as in most file systems.
const NAME_BYTES_MAX: usize = 255;
/// Longest time for which the kernel may keep anything that could change.
const KEEP_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Entries of a directory beyond which changed ones are not looked for, to tell the kernel.
const COMPARED_MAX: usize = 10_000;

/// Entries that the kernel is told to let go of for each one that it looked up.
const TRIMMED_PER_LOOKUP: usize = 4;

/// A directory entry that may be different by now: the directory's inode and the entry's name.
pub(crate) type Change = (u64, Vec<u8>);

/// What a name stands for.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) inode: u64,
    pub(crate) attributes: Arc<Attributes>,
    /// Time at which it was current.
    pub(crate) seen_ns: u64,
}

/// The tree.
pub(crate) struct Tree {
    sources: Sources,
    inodes: Mutex<Inodes>,
    snapshots: Mutex<Snapshots>,
    files: Mutex<Files>,
    pub(crate) owners: Owners,
    complaints: Complaints,
    freshness_ns: u64,
    changes: SyncSender<Change>,
    begun: Instant,
    pub(crate) passing: Passing,
    pub(crate) interrupts: Interrupts,
    inodes_held_max: usize,
}

/// Rules of a mount.
pub(crate) struct Rules {
    /// Age up to which the step from a name to its version counts; `None` for any.
    pub(crate) freshness: Option<Duration>,
    /// Which files the kernel reads by itself.
    pub(crate) passing: Passing,
    /// Which calls end early.
    pub(crate) interrupts: Interrupts,
    /// Inodes beyond which the kernel is told to let go of some.
    pub(crate) inodes_held_max: usize,
}

impl Tree {
    pub(crate) fn new(
        sources: Sources,
        inodes: Inodes,
        owners: Owners,
        rules: Rules,
        changes: SyncSender<Change>,
    ) -> Self {
        let Rules { freshness, passing, interrupts, inodes_held_max } = rules;
        let bound = |bound: Duration| u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX);
        Tree {
            sources,
            inodes: Mutex::new(inodes),
            snapshots: Mutex::new(Snapshots::new(SNAPSHOT_BYTES_MAX)),
            files: Mutex::default(),
            owners,
            complaints: Complaints::default(),
            freshness_ns: freshness.map_or(u64::MAX, bound),
            changes,
            begun: Instant::now(),
            passing,
            interrupts,
            inodes_held_max,
        }
    }

    pub(crate) fn inodes(&self) -> MutexGuard<'_, Inodes> {
        self.inodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn snapshots(&self) -> MutexGuard<'_, Snapshots> {
        self.snapshots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nanoseconds since the mount began.
    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// What was current at this time or later is fresh.
    fn since_ns(&self) -> u64 {
        self.now_ns().saturating_sub(self.freshness_ns)
    }

    /// Time for which the kernel may keep what was current at `seen_ns`.
    pub(crate) fn keep(&self, seen_ns: u64) -> Duration {
        let age_ns = self.now_ns().saturating_sub(seen_ns);
        Duration::from_nanos(self.freshness_ns.saturating_sub(age_ns)).min(KEEP_MAX)
    }

    /// Keeps the versions seen so far, so that a later mount is not given older ones.
    pub(crate) fn keep_versions(&self) {
        for source in self.sources.trees() {
            if let Err(error) = source.session.keep_versions() {
                tracing::warn!(%error, "versions seen will not be remembered");
            }
        }
    }

    /// True if there is a site cache and a version may be in it.
    pub(crate) fn is_cacheable(&self, attributes: &Attributes) -> bool {
        let is_verified = attributes.publisher.key.is_some() && attributes.kind == Kind::File;
        is_verified && self.sources.cache().is_some()
    }

    /// The content of a cacheable version in the site cache; `None` before its publisher has
    /// announced the root, when nothing of it is kept.
    pub(crate) fn cached(&self, attributes: &Attributes) -> Option<Content> {
        let (cache, root) = self.sources.cache().zip(attributes.root)?;
        Some(cache.content(Hash(root), attributes.size))
    }

    /// Sums of what all trees read through the site cache; `None` without one.
    pub(crate) fn cache_counters(&self) -> Option<Counters> {
        let caches = self.sources.trees().iter().filter_map(|tree| tree.session.cache());
        caches.map(Cache::counters).reduce(Counters::plus)
    }

    /// The errno of a call that failed.
    pub(crate) fn errno(&self, name: &Name, error: &ClientError) -> i32 {
        self.complaints.errno(name, error, self.now_ns())
    }

    /// Who knows of the room in the tree that an inode is of, if anybody does.
    pub(crate) fn rooms(&self, number: u64) -> Option<Arc<Rooms>> {
        self.sources.rooms(&self.inode(number).ok()?.name)
    }

    /// An inode that the kernel holds.
    pub(crate) fn inode(&self, number: u64) -> Result<Inode, i32> {
        self.inodes().get(number).cloned().ok_or(Errno::STALE.raw_os_error())
    }

    fn directory(&self, number: u64) -> Result<Inode, i32> {
        let inode = self.inode(number)?;
        match inode.attributes.kind {
            Kind::Directory => Ok(inode),
            Kind::File | Kind::Link => Err(Errno::NOTDIR.raw_os_error()),
        }
    }

    /// True if a directory is the one at the top of several trees.
    fn is_top(&self, number: u64) -> bool {
        number == ROOT && self.sources.top().is_some()
    }

    /// The published name of an entry.
    pub(crate) fn name_of(&self, number: u64, directory: &Inode, entry: &[u8]) -> Name {
        match self.sources.at(entry).filter(|_| self.is_top(number)) {
            Some(tree) => tree.clone(),
            None => directory.name.with_generic(entry),
        }
    }

    /// The entry of a directory, to which the kernel holds one more reference from now on. `None`
    /// if there is none of that name.
    pub(crate) async fn lookup(&self, parent: u64, name: &[u8]) -> Result<Option<Found>, i32> {
        if name.len() > NAME_BYTES_MAX {
            return Err(Errno::NAMETOOLONG.raw_os_error());
        }
        let directory = self.directory(parent)?;
        if !is_safe_entry(name) {
            return Ok(None);
        }
        if self.is_top(parent) {
            return match self.sources.at(name) {
                Some(tree) => self.lookup_single(parent, tree.clone()).await,
                None => Ok(None),
            };
        }
        let full = directory.name.with_generic(name);
        match self.snapshot(parent).await {
            Ok((snapshot, seen_ns)) => match snapshot.find(name) {
                None if self.freshness_ns > 0 => return Ok(None),
                Some(SnapshotEntry { attributes: Some(attributes), .. })
                    if self.freshness_ns > 0 || attributes.kind != Kind::File =>
                {
                    return self.refer(&full, parent, attributes, seen_ns).map(Some);
                }
                // Not described, or perhaps a second older than what its publisher says by now.
                _ => {}
            },
            Err(errno) if is_outage(errno) => return Err(errno),
            // A directory that cannot be listed may have names all the same.
            Err(_) => {}
        }
        self.lookup_single(parent, full).await
    }

    async fn lookup_single(&self, parent: u64, name: Name) -> Result<Option<Found>, i32> {
        let now_ns = self.now_ns();
        match self.sources.session(&name).stat_unhashed_later(&name).await {
            Ok(stat) => self.refer(&name, parent, Attributes::of_stat(&stat), now_ns).map(Some),
            Err(ClientError::Read(ReadError::NotFound { .. })) => Ok(None),
            Err(error) => Err(self.errno(&name, &error)),
        }
    }

    fn refer(
        &self,
        name: &Name,
        parent: u64,
        attributes: Attributes,
        seen_ns: u64,
    ) -> Result<Found, i32> {
        let attributes = Arc::new(attributes);
        let inode = self.inodes().refer(name, parent, &attributes, seen_ns);
        let inode = inode.ok_or(Errno::IO.raw_os_error())?;
        self.trim(TRIMMED_PER_LOOKUP);
        Ok(Found { inode, attributes, seen_ns })
    }

    /// Tells the kernel to let go of some entries, if it holds too many. What is open stays.
    pub(crate) fn trim(&self, count: usize) {
        let surplus = self.inodes().surplus(self.inodes_held_max, count);
        for (directory, name) in surplus {
            self.tell_change(directory, &name);
        }
    }

    /// The kernel drops references.
    pub(crate) fn forget(&self, number: u64, count: u64) {
        let mut inodes = self.inodes();
        inodes.forget(number, count);
        let is_gone = inodes.get(number).is_none();
        drop(inodes);
        if is_gone {
            self.snapshots().forget(number);
        }
    }

    /// Attributes of an inode. Those of a version never change; those of the root are what is
    /// known, without waiting, so that nothing hangs on the mount point itself.
    pub(crate) async fn attributes(&self, number: u64) -> Result<Found, i32> {
        let inode = self.inode(number)?;
        let Inode { attributes, seen_ns, .. } = inode;
        if attributes.is_undescribed() {
            return Err(Errno::STALE.raw_os_error());
        }
        let is_current = seen_ns >= self.since_ns();
        if attributes.kind != Kind::Directory || is_current || number == ROOT {
            return Ok(Found { inode: number, attributes, seen_ns });
        }
        self.renewed(number).await
    }

    /// True if the attributes of the root should be asked for.
    pub(crate) fn is_root_old(&self) -> bool {
        let is_old = |root: &Inode| root.seen_ns < self.since_ns();
        !self.is_top(ROOT) && self.inodes().get(ROOT).is_some_and(is_old)
    }

    /// Attributes of a published directory as they are now.
    pub(crate) async fn renewed(&self, number: u64) -> Result<Found, i32> {
        let Inode { name, parent, .. } = self.inode(number)?;
        let since_ns = self.since_ns();
        if let Some(found) = self.told_by_parent(number, parent, &name, since_ns) {
            return Ok(found);
        }
        let now_ns = self.now_ns();
        let attributes = match self.sources.session(&name).stat_unhashed_later(&name).await {
            Ok(stat) if stat.is_directory() => Arc::new(Attributes::of_stat(&stat)),
            Ok(_) | Err(ClientError::Read(ReadError::NotFound { .. })) => {
                return Err(Errno::STALE.raw_os_error());
            }
            Err(error) => return Err(self.errno(&name, &error)),
        };
        self.inodes().renew(number, Arc::clone(&attributes), now_ns);
        Ok(Found { inode: number, attributes, seen_ns: now_ns })
    }

    /// Attributes of a directory by a fresh snapshot of its parent.
    fn told_by_parent(
        &self,
        number: u64,
        parent: u64,
        name: &Name,
        since_ns: u64,
    ) -> Option<Found> {
        if number == ROOT {
            return None;
        }
        let (snapshot, seen_ns) = self.snapshots().peek(parent, since_ns)?;
        let entry = snapshot.find(name.view().last()?.value)?;
        let attributes = entry.attributes.filter(|it| it.kind == Kind::Directory)?;
        let attributes = Arc::new(attributes);
        self.inodes().renew(number, Arc::clone(&attributes), seen_ns);
        Some(Found { inode: number, attributes, seen_ns })
    }

    /// The content of a directory, as fresh as is wanted.
    pub(crate) async fn snapshot(&self, number: u64) -> Answer {
        let name = self.directory(number)?.name;
        let now_ns = self.now_ns();
        if let Some(top) = self.sources.top().filter(|_| number == ROOT) {
            return Ok((Arc::clone(top), now_ns));
        }
        let (landing, old) = loop {
            let step = self.snapshots().want(number, self.since_ns(), now_ns);
            match step {
                Step::Use(snapshot, seen_ns) => return Ok((snapshot, seen_ns)),
                Step::Join(flight) => {
                    // Without an answer whoever asked was interrupted.
                    if let Some(answer) = flight.landed().await {
                        return answer;
                    }
                }
                Step::Ask(flight, old) => {
                    break (Landing::new(&self.snapshots, number, flight), old);
                }
            }
        };
        let answer = match self.ask(&name, old.as_ref()).await {
            Ok(snapshot) => Ok((snapshot, now_ns)),
            Err(error) => Err(self.errno(&name, &error)),
        };
        let new = answer.as_ref().ok().map(|(snapshot, _)| Arc::clone(snapshot));
        if let (Some(old), Some(new)) = (&old, &new) {
            self.tell_changes(number, old, new);
        }
        self.snapshots().settle(number, landing.flight(), new, now_ns);
        landing.flight().land(Some(answer.clone()));
        answer
    }

    /// Time at which a snapshot of a directory was current, as far as is known.
    pub(crate) fn seen_ns(&self, directory: u64, snapshot: &Arc<Snapshot>) -> u64 {
        match self.snapshots().peek(directory, 0) {
            Some((current, seen_ns)) if Arc::ptr_eq(&current, snapshot) => seen_ns,
            _ => 0,
        }
    }

    /// The current content of a directory: what is here if its version is current.
    async fn ask(
        &self,
        name: &Name,
        old: Option<&Arc<Snapshot>>,
    ) -> Result<Arc<Snapshot>, ClientError> {
        let session = self.sources.session(name);
        if let Some((old, described_by)) = old.and_then(|old| Some((old, old.described_by()?))) {
            match session.lookup_later(&described_by).await {
                Ok(found) if Some(found.version) == old.version() => return Ok(Arc::clone(old)),
                // Asking for the content would take as long again to say the same.
                Err(error) if error.class() == ErrorClass::Retryable => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
        let listing = session.list_resolved_later(name).await?;
        Ok(Arc::new(Snapshot::new(listing)))
    }

    /// Tells the kernel which of the entries that it may keep are different now.
    fn tell_changes(&self, directory: u64, old: &Arc<Snapshot>, new: &Arc<Snapshot>) {
        if Arc::ptr_eq(old, new) || old.count() > COMPARED_MAX {
            return;
        }
        for entry in (0..old.count()).filter_map(|index| old.entry(index)) {
            let now = new.find(entry.name);
            let is_same = now.is_some_and(|now| {
                now.kind == entry.kind
                    && (now.kind == Kind::Directory || now.attributes == entry.attributes)
            });
            if !is_same {
                self.tell_change(directory, entry.name);
            }
        }
    }

    /// Not waited for: what cannot be said now ends by itself when its time is over.
    fn tell_change(&self, directory: u64, name: &[u8]) {
        let _ = self.changes.try_send((directory, name.to_vec()));
    }
}

/// Errors that a second question would only repeat.
fn is_outage(errno: i32) -> bool {
    matches!(
        Errno::from_raw_os_error(errno),
        Errno::TIMEDOUT | Errno::CONNRESET | Errno::CONNREFUSED | Errno::HOSTUNREACH | Errno::IO
    )
}
