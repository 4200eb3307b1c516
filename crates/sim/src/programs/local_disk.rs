//! The disk of a client: a real directory, in which steps can fail or fall short, and what was not
//! made durable can be lost.
//!
//! It also watches. Whenever a file gets its name, its octets are compared with what was published:
//! at every moment a target is absent, old and whole, or new and whole. Where the client promises
//! that finished files survive a power cut, content must be durable before it gets a name.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use byname_client::disk::{DiskHook, DiskStep, part_path};
use rustix::io::Errno;

use crate::disk::content;
use crate::random::Random;

/// Losses of a disk at once.
const PAGE_BYTES: u64 = 4096;

/// Probabilities of failure, by kind of step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DiskFaults {
    /// Reading ends before the end.
    pub short_read: f64,
    /// Less is written than asked.
    pub short_write: f64,
    /// Reading fails.
    pub read_error: f64,
    /// Writing fails.
    pub write_error: f64,
    /// A file cannot be opened, given a length, or made durable.
    pub other_error: f64,
    /// A file cannot be renamed.
    pub name_error: f64,
    /// The disk is full when so many more octets were written.
    pub octets_free: Option<u64>,
}

/// Events of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounters {
    /// Steps that went wrong on purpose.
    pub faults: u64,
    /// Files that got their names.
    pub named: u64,
    /// Octets written.
    pub written: u64,
    /// Octets lost by power cuts.
    pub lost: u64,
}

/// A published version: what octets are made from, and how many.
pub type Content = (u64, u64);

struct Inner {
    random: Random,
    faults: DiskFaults,
    counters: DiskCounters,
    /// Contents allowed at each target.
    versions: BTreeMap<PathBuf, Vec<Content>>,
    /// Written since it was made durable, by target.
    unsynced: BTreeMap<PathBuf, Vec<(u64, u64)>>,
    must_sync: bool,
    broken: Option<String>,
}

/// See the module.
pub struct LocalDisk(Mutex<Inner>);

impl LocalDisk {
    /// A disk on which `versions` may come to stand at each target. With `must_sync` only what is
    /// durable may get a name.
    pub fn new(versions: BTreeMap<PathBuf, Vec<Content>>, must_sync: bool, seed: u64) -> Self {
        LocalDisk(Mutex::new(Inner {
            random: Random::new(seed),
            faults: DiskFaults::default(),
            counters: DiskCounters::default(),
            versions,
            unsynced: BTreeMap::new(),
            must_sync,
            broken: None,
        }))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Faults from now on.
    pub fn set_faults(&self, faults: DiskFaults) {
        self.inner().faults = faults;
    }

    /// The history so far.
    pub fn counters(&self) -> DiskCounters {
        self.inner().counters
    }

    /// The promise that was broken, if one was.
    pub fn fault(&self) -> Option<String> {
        self.inner().broken.clone()
    }

    /// One more version may stand at a target from now on.
    pub fn publish(&self, target: &Path, version: Content) {
        self.inner().versions.entry(target.to_owned()).or_default().push(version);
    }

    /// The power fails: of each page written and not made durable nobody knows what is there.
    pub fn cut_power(&self) {
        let mut inner = self.inner();
        for (target, ranges) in std::mem::take(&mut inner.unsynced) {
            let Ok(file) = File::options().write(true).open(part_path(&target)) else { continue };
            for page in pages(&ranges) {
                if inner.random.chance(0.5)
                    && file.write_at(&[0; PAGE_BYTES as usize], page).is_ok()
                {
                    inner.counters.lost += PAGE_BYTES;
                }
            }
        }
    }

    /// Looks at all targets now: what stands there, if anything, must be whole.
    pub fn check_targets(&self) {
        let mut inner = self.inner();
        for target in inner.versions.keys().cloned().collect::<Vec<_>>() {
            match File::open(&target) {
                Ok(file) => inner.check_whole(&target, &file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => inner.break_promise(&target, &format!("cannot be read: {error}")),
            }
        }
    }

    /// True if this version stands at a target.
    pub fn is_there(&self, target: &Path, version: Content) -> bool {
        File::open(target).is_ok_and(|file| is_whole(&file, version))
    }
}

/// The pages that lie in ranges as a whole.
fn pages(ranges: &[(u64, u64)]) -> Vec<u64> {
    let whole = |(offset, len): &(u64, u64)| {
        let first = offset.next_multiple_of(PAGE_BYTES);
        (first..(offset + len).saturating_sub(PAGE_BYTES - 1)).step_by(PAGE_BYTES as usize)
    };
    ranges.iter().flat_map(whole).collect()
}

fn is_whole(file: &File, (seed, size): Content) -> bool {
    if file.metadata().map(|metadata| metadata.len()).ok() != Some(size) {
        return false;
    }
    let (mut found, mut expected) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut offset = 0;
    while offset < size {
        let len = (size - offset).min(found.len() as u64) as usize;
        content(seed, offset, &mut expected[..len]);
        if file.read_exact_at(&mut found[..len], offset).is_err() || found[..len] != expected[..len]
        {
            return false;
        }
        offset += len as u64;
    }
    true
}

impl Inner {
    fn break_promise(&mut self, target: &Path, what: &str) {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        self.broken.get_or_insert_with(|| format!("{name} {what}"));
    }

    fn check_whole(&mut self, target: &Path, file: &File) {
        let Some(versions) = self.versions.get(target) else {
            return self.break_promise(target, "was never ordered");
        };
        if !versions.iter().any(|version| is_whole(file, *version)) {
            self.break_promise(target, "is no published version");
        }
    }

    fn check_name(&mut self, target: &Path, file: &File) {
        // The file may be open for writing only.
        match File::open(format!("/proc/self/fd/{}", file.as_raw_fd())) {
            Ok(file) => self.check_whole(target, &file),
            Err(error) => self.break_promise(target, &format!("cannot be looked at: {error}")),
        }
        if self.must_sync && self.unsynced.contains_key(target) {
            self.break_promise(target, "gets its name before its content is durable");
        }
    }

    fn fail(&mut self, probability: f64) -> io::Result<()> {
        if !self.random.chance(probability) {
            return Ok(());
        }
        self.counters.faults += 1;
        Err(Errno::IO.into())
    }

    /// Less than asked, now and then.
    fn shorten(&mut self, probability: f64, len: usize) -> usize {
        if len < 2 || !self.random.chance(probability) {
            return len;
        }
        self.counters.faults += 1;
        1 + self.random.below(len as u64 - 1) as usize
    }

    fn write(&mut self, target: &Path, offset: u64, len: usize) -> io::Result<usize> {
        self.fail(self.faults.write_error)?;
        let mut allowed = self.shorten(self.faults.short_write, len);
        if let Some(free) = &mut self.faults.octets_free {
            allowed = allowed.min(usize::try_from(*free).unwrap_or(usize::MAX));
            *free -= allowed as u64;
            if allowed == 0 {
                self.counters.faults += 1;
                return Err(Errno::NOSPC.into());
            }
        }
        self.counters.written += allowed as u64;
        self.unsynced.entry(target.to_owned()).or_default().push((offset, allowed as u64));
        Ok(allowed)
    }
}

impl DiskHook for LocalDisk {
    fn before(&self, step: DiskStep<'_>) -> io::Result<usize> {
        let mut inner = self.inner();
        let faults = inner.faults;
        match step {
            DiskStep::Open { .. } | DiskStep::Resize { .. } => inner.fail(faults.other_error)?,
            DiskStep::Read { len, .. } => {
                inner.fail(faults.read_error)?;
                return Ok(inner.shorten(faults.short_read, len));
            }
            DiskStep::Write { target, offset, len } => return inner.write(target, offset, len),
            DiskStep::Sync { target } => {
                inner.fail(faults.other_error)?;
                inner.unsynced.remove(target);
            }
            DiskStep::SyncAll { .. } => {
                inner.fail(faults.other_error)?;
                inner.unsynced.clear();
            }
            DiskStep::Name { target, file } => {
                inner.fail(faults.name_error)?;
                inner.check_name(target, file);
                inner.counters.named += 1;
                inner.unsynced.remove(target);
            }
        }
        Ok(usize::MAX)
    }
}

#[cfg(test)]
mod tests;
