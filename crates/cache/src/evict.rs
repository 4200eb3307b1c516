//! Removing entries: to make room, or because somebody says so.
//!
//! There are three reasons for making room: the bounds of the cache, the limit of a name, and the
//! share of a user of a service.
//!
//! One process at a time removes. An entry leaves its place by a rename and is deleted afterwards,
//! so nobody finds half of one; whoever has it open notices that it is gone.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::disk::Step;
use crate::ghosts::Ghosts;
use crate::layout::{ContentKey, DATA, TREE, USED};
use crate::limits::Limits;
use crate::names::Names;
use crate::pins::Pins;
use crate::policy::{Policy, S3Fifo};
use crate::scan::{self, Usage};
use crate::shares::Shares;
use crate::state::Shared;
use crate::{account, files, place};

/// Removing begins above this much of a bound.
pub(crate) fn high(max: u64) -> u64 {
    max / 10 * 9
}

/// Removing ends below this much of a bound.
fn low(max: u64) -> u64 {
    max / 10 * 8
}

/// Outcome of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Removed {
    pub(crate) count: u64,
    pub(crate) left: Usage,
}

/// Outcome of a look at what the users of a service hold.
#[derive(Debug)]
pub(crate) struct KeptShares {
    /// `None` if nothing was.
    pub(crate) removed: Option<Removed>,
    /// Who still holds more than a share: others have brought most of what is left.
    pub(crate) full_users: HashSet<u32>,
}

/// Entries that may be removed, in the order of the policy.
struct Round<'a> {
    shared: &'a Shared,
    ghosts: &'a mut Ghosts,
    entries: Vec<(ContentKey, PathBuf, u64)>,
    policy: S3Fifo,
    left: Usage,
    count: u64,
}

impl<'a> Round<'a> {
    fn new(shared: &'a Shared, ghosts: &'a mut Ghosts) -> Self {
        let (entries, policy, left) = Default::default();
        Round { shared, ghosts, entries, policy, left, count: 0 }
    }

    /// Counts an entry; a pinned one stays.
    fn add(&mut self, key: ContentKey, path: &Path, is_pinned: bool) {
        let bytes = scan::disk_bytes(path);
        self.left = self.left.plus(Usage { bytes, entries: 1 });
        if !is_pinned {
            self.offer(key, path, bytes);
        }
    }

    /// An entry may be removed, which frees so many bytes of those that are counted.
    fn offer(&mut self, key: ContentKey, path: &Path, bytes: u64) {
        self.policy.restore(self.entries.len(), bytes, scan::standing(path));
        self.entries.push((key, path.to_owned(), bytes));
    }

    /// Removes as long as what is left is too much; `freed` hears of each entry's bytes.
    fn remove_while(
        &mut self,
        mut is_too_much: impl FnMut(Usage) -> bool,
        mut freed: impl FnMut(u64),
    ) -> io::Result<()> {
        let now_ns = scan::now_ns();
        while is_too_much(self.left)
            && let Some(victim) = self.policy.victim(now_ns)
        {
            let (key, path, bytes) = &self.entries[victim];
            remove(self.shared, path)?;
            self.ghosts.insert(key.short());
            let Usage { bytes: held, entries } = self.left;
            self.left = Usage { bytes: held - bytes, entries: entries - 1 };
            self.count += 1;
            freed(*bytes);
        }
        for (entry, standing) in self.policy.changed() {
            // It may have been removed by hand meanwhile.
            let _ = files::replace(&self.entries[entry].1.join(USED), standing.encode().as_bytes());
        }
        Ok(())
    }
}

/// Removes what the policy names until the cache is below its low marks and so many bytes are free
/// on the file system. `None` if another process is about it.
pub(crate) fn remove_some(
    shared: &Shared,
    ghosts: &mut Ghosts,
    free_wanted: u64,
) -> io::Result<Option<Removed>> {
    shared.layout.check_own()?;
    let Some(_lock) = take_lock(shared)? else { return Ok(None) };
    empty_trash(shared);
    // Pins that cannot be read hold everything: what a person wanted to keep is not removed.
    let pins = Pins::load(&shared.layout.pins()).map_err(io::Error::other)?;
    let mut round = Round::new(shared, ghosts);
    scan::for_each(&shared.layout, &shared.config.disk, &mut |key, path| {
        round.add(key, &path, pins.cover(&Names::load(&path)));
    })?;
    let free_missing = Cell::new(missing_bytes(shared, free_wanted)?);
    round.remove_while(
        |left| {
            left.bytes > low(shared.config.bytes_max)
                || left.entries > low(shared.config.files_max)
                || free_missing.get() > 0
        },
        |bytes| free_missing.set(free_missing.get().saturating_sub(bytes)),
    )?;
    let Round { count, left, .. } = round;
    ghosts.save(&shared.layout.ghosts())?;
    account::set_account(shared, left)?;
    Ok(Some(Removed { count, left }))
}

/// Removes what the policy names of what has a limit of its own, down to nine tenths of it. `None`
/// if nothing was removed, or another process is about it.
pub(crate) fn keep_limits(shared: &Shared, ghosts: &mut Ghosts) -> io::Result<Option<Removed>> {
    shared.layout.check_own()?;
    let limits = Limits::load(&shared.layout.limits()).map_err(io::Error::other)?;
    if limits.list.is_empty() {
        return Ok(None);
    }
    let Some(_lock) = take_lock(shared)? else { return Ok(None) };
    let pins = Pins::load(&shared.layout.pins()).map_err(io::Error::other)?;
    let mut count = 0;
    for limit in &limits.list {
        let mut round = Round::new(shared, ghosts);
        scan::for_each(&shared.layout, &shared.config.disk, &mut |key, path| {
            let names = Names::load(&path);
            if limit.covers(&names) {
                round.add(key, &path, pins.cover(&names));
            }
        })?;
        if round.left.bytes > limit.bytes_max {
            round.remove_while(|left| left.bytes > high(limit.bytes_max), |_| {})?;
            count += round.count;
        }
    }
    if count == 0 {
        return Ok(None);
    }
    ghosts.save(&shared.layout.ghosts())?;
    let left = scan::usage(&shared.layout, &shared.config.disk)?;
    account::set_account(shared, left)?;
    Ok(Some(Removed { count, left }))
}

/// What the users of a service hold: bytes that each has brought, and entries of which each has
/// brought most.
fn held_by_users(shared: &Shared) -> io::Result<HashMap<u32, Usage>> {
    let mut held = HashMap::<u32, Usage>::new();
    scan::for_each(&shared.layout, &shared.config.disk, &mut |_, path| {
        let shares = Shares::load(&path);
        for (uid, bytes) in shares.parts(scan::disk_bytes(&path)) {
            let entries = u64::from(shares.first() == Some(uid));
            let sum = held.entry(uid).or_default();
            *sum = sum.plus(Usage { bytes, entries });
        }
    })?;
    Ok(held)
}

/// Removes of each user of a service who holds more than `share`, down to nine tenths of it, but
/// only entries of which that user has brought most. `None` if another process is about it.
pub(crate) fn keep_shares(
    shared: &Shared,
    ghosts: &mut Ghosts,
    share: Usage,
) -> io::Result<Option<KeptShares>> {
    shared.layout.check_own()?;
    let low = Usage { bytes: share.bytes / 10 * 9, entries: share.entries - share.entries / 10 };
    let is_too_much = |held: &Usage| held.bytes > share.bytes || held.entries > share.entries;
    let mut held = held_by_users(shared)?;
    held.retain(|_, held| is_too_much(held));
    let Some(_lock) = take_lock(shared)? else { return Ok(None) };
    let pins = Pins::load(&shared.layout.pins()).map_err(io::Error::other)?;
    let (mut count, mut full_users) = (0, HashSet::new());
    for (uid, held) in held {
        let mut round = Round::new(shared, ghosts);
        round.left = held;
        scan::for_each(&shared.layout, &shared.config.disk, &mut |key, path| {
            let shares = Shares::load(&path);
            if shares.first() == Some(uid) && !pins.cover(&Names::load(&path)) {
                round.offer(key, &path, shares.part_of(uid, scan::disk_bytes(&path)));
            }
        })?;
        round.remove_while(|left| left.bytes > low.bytes || left.entries > low.entries, |_| {})?;
        count += round.count;
        if is_too_much(&round.left) {
            full_users.insert(uid);
        }
    }
    if count == 0 {
        return Ok(Some(KeptShares { removed: None, full_users }));
    }
    ghosts.save(&shared.layout.ghosts())?;
    let left = scan::usage(&shared.layout, &shared.config.disk)?;
    account::set_account(shared, left)?;
    Ok(Some(KeptShares { removed: Some(Removed { count, left }), full_users }))
}

/// Bytes that have to be freed until so many are free, and a tenth more.
fn missing_bytes(shared: &Shared, free_wanted: u64) -> io::Result<u64> {
    let free = files::free_bytes(&shared.config.directory)?;
    Ok((free_wanted + free_wanted / 10).saturating_sub(free))
}

/// Held while entries are removed.
fn take_lock(shared: &Shared) -> io::Result<Option<File>> {
    let options = OpenOptions::new().write(true).create(true).truncate(false).clone();
    let file = options.open(shared.layout.lock())?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Removes one entry with its names in the tree.
pub(crate) fn remove(shared: &Shared, path: &Path) -> io::Result<()> {
    shared.config.disk.announce(Step::List, path)?;
    shared.layout.check_own()?;
    place::withdraw(&shared.layout, path, &Names::load(path));
    files::make_directory(&shared.layout.trash())?;
    let gone = files::beside(&shared.layout.trash().join("entry"));
    match fs::rename(path, &gone) {
        Ok(()) => {
            if shared.config.user_bytes_max.is_some() {
                empty(&gone)?;
            }
            fs::remove_dir_all(&gone)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Gives the disk back what an entry had. Who was lent its files may keep them open.
fn empty(gone: &Path) -> io::Result<()> {
    for name in [DATA, TREE] {
        match OpenOptions::new().write(true).open(gone.join(name)) {
            Ok(file) => file.set_len(0)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// What a process that was killed had begun to remove.
fn empty_trash(shared: &Shared) {
    for entry in fs::read_dir(shared.layout.trash()).into_iter().flatten().flatten() {
        let _ = fs::remove_dir_all(entry.path());
    }
}
