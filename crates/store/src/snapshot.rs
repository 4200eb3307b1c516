//! Reading a directory whole: sorted, complete, without what is not published.
//!
//! Names lie one after the other in one buffer while they are collected, so that half a million
//! entries cost their octets and little more. A directory whose time moved meanwhile is read
//! again, because an entry renamed during the reading may have been passed by.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use byname_security::tree::Tree;
use byname_transfer::listing::{Entry, write_entry};
use byname_transfer::naming::is_safe_entry;
use byname_transfer::server::{Identity, ListFailure, Listing};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::beneath::{Found, FoundDirectory, Lineage, Root, WalkError, file_stat, stat_open};

/// Readings of a directory that keeps changing; the last one counts.
const ATTEMPTS_MAX: usize = 3;

/// Names of a directory, in one buffer.
struct Names<'a> {
    root: &'a Root,
    /// Relative path of the directory.
    path: &'a [u8],
    lineage: &'a Lineage,
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
    let mut attempt = 1;
    loop {
        let found = match root.find(path).map_err(failure)? {
            Found::Directory(found) => found,
            Found::File { .. } => return Err(ListFailure::NotFound),
        };
        let payload = read_once(root, path, &found, bytes_max)?;
        let after = stat_open(&found.fd).map_err(|error| failure(error.into()))?;
        if after != found.stat && attempt < ATTEMPTS_MAX {
            attempt += 1;
            continue;
        }
        let tree = Tree::of(&payload);
        return Ok(Listing {
            stat: found.stat,
            payload,
            root: *tree.root.as_bytes(),
            levels: tree.levels,
        });
    }
}

fn failure(error: WalkError) -> ListFailure {
    match error {
        WalkError::NotFound => ListFailure::NotFound,
        WalkError::NoPermission => ListFailure::NoPermission,
        WalkError::Failed(_) => ListFailure::Failed,
    }
}

fn read_once(
    root: &Root,
    path: &[u8],
    found: &FoundDirectory,
    bytes_max: usize,
) -> Result<Vec<u8>, ListFailure> {
    let failed = |error: Errno| failure(error.into());
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let readable = rustix::fs::openat(&found.fd, ".", flags, Mode::empty()).map_err(failed)?;
    let directory = Dir::read_from(&readable).map_err(failed)?;
    let (octets, entries) = (Vec::new(), Vec::new());
    let lineage = &found.lineage;
    let mut names = Names { root, path, lineage, octets, entries, payload_bytes: 0, bytes_max };
    for entry in directory {
        let entry = entry.map_err(failed)?;
        names.consider(&readable, entry.file_name().to_bytes(), entry.file_type())?;
    }
    Ok(names.into_payload())
}

impl Names<'_> {
    fn consider(
        &mut self,
        directory: impl AsFd,
        name: &[u8],
        file_type: FileType,
    ) -> Result<(), ListFailure> {
        let exposure = self.root.exposure();
        if !is_safe_entry(name) || !exposure.shows_name(name) {
            return Ok(());
        }
        // With everything published the kernel's word for a regular file is enough.
        let is_directory = if file_type == FileType::RegularFile && exposure.private {
            Some(false)
        } else {
            self.look_at(directory, name)?
        };
        let Some(is_directory) = is_directory else { return Ok(()) };
        self.payload_bytes += name.len() + usize::from(is_directory) + 1;
        if self.payload_bytes > self.bytes_max {
            return Err(ListFailure::TooLarge);
        }
        self.entries.push((self.octets.len(), name.len() as u16, is_directory));
        self.octets.extend_from_slice(name);
        Ok(())
    }

    /// Whether a published entry is a directory; `None` if it is not published.
    fn look_at(&self, directory: impl AsFd, name: &[u8]) -> Result<Option<bool>, ListFailure> {
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
            FileType::RegularFile if is_shown => Some(false),
            FileType::Directory if is_shown && !self.is_hidden(&seen.identity) => Some(true),
            FileType::Symlink => self.follow(name),
            _ => None,
        })
    }

    /// As [`Root::find`] would find out: the state directory, or one that lies above (a mount).
    fn is_hidden(&self, identity: &Identity) -> bool {
        self.root.is_state(identity) || self.lineage.contains(identity)
    }

    /// A link is listed as what it leads to, if that is published.
    fn follow(&self, name: &[u8]) -> Option<bool> {
        let mut path = self.path.to_vec();
        path.push(b'/');
        path.extend_from_slice(name);
        match self.root.find(&path) {
            Ok(Found::File { .. }) | Err(WalkError::NoPermission) => Some(false),
            Ok(Found::Directory(_)) => Some(true),
            Err(_) => None,
        }
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
