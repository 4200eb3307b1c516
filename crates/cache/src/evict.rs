//! Removing entries: to make room, or because somebody says so.
//!
//! One process at a time removes. An entry leaves its place by a rename and is deleted afterwards,
//! so nobody finds half of one; whoever has it open notices that it is gone.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::disk::Step;
use crate::ghosts::Ghosts;
use crate::layout::{ContentKey, USED};
use crate::names::Names;
use crate::pins::Pins;
use crate::policy::{Policy, S3Fifo};
use crate::scan::{self, Usage};
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
    let mut entries: Vec<(ContentKey, PathBuf, u64)> = Vec::new();
    let mut policy = S3Fifo::default();
    let mut left = Usage::default();
    scan::for_each(&shared.layout, &shared.config.disk, &mut |key, path| {
        let bytes = scan::disk_bytes(&path);
        left = left.plus(Usage { bytes, entries: 1 });
        if !pins.cover(&Names::load(&path)) {
            policy.restore(entries.len(), bytes, scan::standing(&path));
            entries.push((key, path, bytes));
        }
    })?;
    let now_ns = scan::now_ns();
    let mut free_missing = missing_bytes(shared, free_wanted)?;
    let mut count = 0;
    let is_above = |left: Usage, free_missing: u64| {
        left.bytes > low(shared.config.bytes_max)
            || left.entries > low(shared.config.files_max)
            || free_missing > 0
    };
    while is_above(left, free_missing)
        && let Some(victim) = policy.victim(now_ns)
    {
        let (key, path, bytes) = &entries[victim];
        remove(shared, path)?;
        ghosts.insert(key.short());
        left = Usage { bytes: left.bytes - bytes, entries: left.entries - 1 };
        free_missing = free_missing.saturating_sub(*bytes);
        count += 1;
    }
    for (entry, standing) in policy.changed() {
        // It may have been removed by hand meanwhile.
        let _ = files::replace(&entries[entry].1.join(USED), standing.encode().as_bytes());
    }
    ghosts.save(&shared.layout.ghosts())?;
    account::set_account(shared, left)?;
    Ok(Some(Removed { count, left }))
}

/// Bytes that have to be freed until so many are free, and a tenth more.
fn missing_bytes(shared: &Shared, free_wanted: u64) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(&shared.config.directory)?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
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
        Ok(()) => fs::remove_dir_all(&gone),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// What a process that was killed had begun to remove.
fn empty_trash(shared: &Shared) {
    for entry in fs::read_dir(shared.layout.trash()).into_iter().flatten().flatten() {
        let _ = fs::remove_dir_all(entry.path());
    }
}
