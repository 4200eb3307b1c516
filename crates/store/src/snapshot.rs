//! Reading a directory whole: sorted, complete, without what is not published.
//!
//! Names lie one after the other in one buffer while they are collected, so that half a million
//! entries cost their octets and little more. A directory whose time moved meanwhile is read
//! again, because an entry renamed during the reading may have been passed by.

pub(crate) mod manifest;

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use byname_security::tree::Tree;
use byname_transfer::listing::{Entry, write_entry};
use byname_transfer::naming::is_safe_entry;
use byname_transfer::server::{FileStat, FileState, ListFailure, Listing};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::beneath::{Found, FoundDirectory, Lineage, Root, WalkError, file_stat, stat_open};

/// Readings of a directory that keeps changing; the last one counts.
const ATTEMPTS_MAX: usize = 3;

/// A directory being read, and what decides about its entries.
struct Reading<'a> {
    root: &'a Root,
    /// Relative path of the directory.
    path: &'a [u8],
    lineage: &'a Lineage,
    /// Whether the entries' states are wanted, and not only their kinds.
    wants_stat: bool,
}

/// An entry that is published.
struct Seen {
    is_directory: bool,
    /// Unknown of what this process may not reach.
    stat: Option<FileStat>,
}

/// Names of a directory, in one buffer.
struct Names {
    octets: Vec<u8>,
    entries: Vec<(usize, u16, bool)>,
    payload_bytes: usize,
    bytes_max: usize,
}

/// Reads the directory at `path`.
///
/// # Errors
/// [`ListFailure`], `TooLarge` if the payload would exceed `bytes_max`.
pub fn read(root: &Root, path: &[u8], bytes_max: usize) -> Result<Listing, ListFailure> {
    let (stat, names) = read_settled(root, path, |found| {
        let (octets, entries) = (Vec::new(), Vec::new());
        let mut names = Names { octets, entries, payload_bytes: 0, bytes_max };
        let reading = Reading { root, path, lineage: &found.lineage, wants_stat: false };
        reading.visit(found, &mut |name, seen, _| names.push(name, seen.is_directory))?;
        Ok(names)
    })?;
    Ok(listing(stat, names.into_payload()))
}

/// A payload with its tree.
fn listing(stat: FileStat, payload: Vec<u8>) -> Listing {
    let tree = Tree::of(&payload);
    Listing { stat, payload, root: *tree.root.as_bytes(), levels: tree.levels }
}

/// Reads a directory once more if it changed meanwhile, a bounded number of times.
fn read_settled<T>(
    root: &Root,
    path: &[u8],
    mut read_once: impl FnMut(&FoundDirectory) -> Result<T, ListFailure>,
) -> Result<(FileStat, T), ListFailure> {
    let mut attempt = 1;
    loop {
        let found = match root.find(path).map_err(failure)? {
            Found::Directory(found) => found,
            Found::File { .. } => return Err(ListFailure::NotFound),
        };
        let read = read_once(&found)?;
        let after = stat_open(&found.fd).map_err(|error| failure(error.into()))?;
        if after == found.stat || attempt == ATTEMPTS_MAX {
            return Ok((found.stat, read));
        }
        attempt += 1;
    }
}

fn failure(error: WalkError) -> ListFailure {
    match error {
        WalkError::NotFound => ListFailure::NotFound,
        WalkError::NoPermission => ListFailure::NoPermission,
        WalkError::Failed(_) => ListFailure::Failed,
    }
}

/// Takes an entry: its name, what it is, and the directory it stands in.
type Visit<'a> = dyn FnMut(&[u8], Seen, BorrowedFd<'_>) -> Result<(), ListFailure> + 'a;

impl Reading<'_> {
    /// Hands every published entry to `visit`, in the order of the directory.
    fn visit(&self, found: &FoundDirectory, visit: &mut Visit<'_>) -> Result<(), ListFailure> {
        let failed = |error: Errno| failure(error.into());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let readable = rustix::fs::openat(&found.fd, ".", flags, Mode::empty()).map_err(failed)?;
        let directory = Dir::read_from(&readable).map_err(failed)?;
        for entry in directory {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_bytes();
            if let Some(seen) = self.consider(&readable, name, entry.file_type())? {
                visit(name, seen, readable.as_fd())?;
            }
        }
        Ok(())
    }

    fn consider(
        &self,
        directory: impl AsFd,
        name: &[u8],
        file_type: FileType,
    ) -> Result<Option<Seen>, ListFailure> {
        let exposure = self.root.exposure();
        if !is_safe_entry(name) || !exposure.shows_name(name) {
            return Ok(None);
        }
        // With everything published the kernel's word for a regular file is enough.
        if file_type == FileType::RegularFile && exposure.private && !self.wants_stat {
            return Ok(Some(Seen { is_directory: false, stat: None }));
        }
        self.look_at(directory, name)
    }

    /// What a published entry is; `None` if it is not published.
    fn look_at(&self, directory: impl AsFd, name: &[u8]) -> Result<Option<Seen>, ListFailure> {
        let path = Path::new(OsStr::from_bytes(name));
        let stat = match rustix::fs::statat(directory, path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            // Removed since; or a directory that may be listed but not entered.
            Err(Errno::NOENT | Errno::ACCESS) => return Ok(None),
            Err(error) => return Err(failure(error.into())),
        };
        let seen = file_stat(&stat);
        let is_shown = self.root.exposure().shows_mode(seen.mode);
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if is_shown => {
                Some(Seen { is_directory: false, stat: Some(seen) })
            }
            FileType::Directory if is_shown && !self.is_hidden(&seen.state) => {
                Some(Seen { is_directory: true, stat: Some(seen) })
            }
            FileType::Symlink => self.follow(name),
            _ => None,
        })
    }

    /// As [`Root::find`] would find out: the state directory, or one that lies above (a mount).
    fn is_hidden(&self, identity: &FileState) -> bool {
        self.root.is_state(identity) || self.lineage.contains(identity)
    }

    /// A link is listed as what it leads to, if that is published.
    fn follow(&self, name: &[u8]) -> Option<Seen> {
        let mut path = self.path.to_vec();
        path.push(b'/');
        path.extend_from_slice(name);
        match self.root.find(&path) {
            Ok(Found::File { stat, .. }) => Some(Seen { is_directory: false, stat: Some(stat) }),
            Err(WalkError::NoPermission) => Some(Seen { is_directory: false, stat: None }),
            Ok(Found::Directory(found)) => {
                Some(Seen { is_directory: true, stat: Some(found.stat) })
            }
            Err(_) => None,
        }
    }
}

impl Names {
    fn push(&mut self, name: &[u8], is_directory: bool) -> Result<(), ListFailure> {
        self.payload_bytes += name.len() + usize::from(is_directory) + 1;
        if self.payload_bytes > self.bytes_max {
            return Err(ListFailure::TooLarge);
        }
        self.entries.push((self.octets.len(), name.len() as u16, is_directory));
        self.octets.extend_from_slice(name);
        Ok(())
    }

    fn into_payload(mut self) -> Vec<u8> {
        let octets = &self.octets;
        let name = |(at, len, _): &(usize, u16, bool)| &octets[*at..*at + usize::from(*len)];
        self.entries.sort_unstable_by(|left, right| name(left).cmp(name(right)));
        let mut payload = Vec::with_capacity(self.payload_bytes);
        for entry in &self.entries {
            write_entry(&mut payload, Entry { name: name(entry), is_directory: entry.2 });
        }
        payload
    }
}
