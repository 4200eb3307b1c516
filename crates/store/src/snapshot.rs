//! Reading a directory whole: sorted, complete, without what is not published.
//!
//! Names lie one after the other in one buffer while they are collected, so that half a million
//! entries cost their octets and little more. A directory whose time moved meanwhile is read
//! again, because an entry renamed during the reading may have been passed by.

pub(crate) mod manifest;

use byname_security::tree::Tree;
use byname_transfer::listing::{Entry, write_entry};
use byname_transfer::server::{FileStat, ListFailure, Listing};

use crate::backend::{Backend, Directory, Found, ListingKind, LocateError};

/// Readings of a directory that keeps changing; the last one counts.
const ATTEMPTS_MAX: usize = 3;

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
pub fn read(backend: &dyn Backend, path: &[u8], bytes_max: usize) -> Result<Listing, ListFailure> {
    if let Some(versioned) = backend.versioned_listing(path, ListingKind::Names, bytes_max) {
        return versioned;
    }
    let (state, names) = read_settled(backend, path, |directory| {
        let (octets, entries) = (Vec::new(), Vec::new());
        let mut names = Names { octets, entries, payload_bytes: 0, bytes_max };
        directory.list(false, &mut |entry| names.push(entry.name, entry.is_directory))?;
        Ok(names)
    })?;
    Ok(listing(state, names.into_payload()))
}

/// State of a directory before it was read.
#[derive(Clone, Copy)]
struct ReadState {
    stat: FileStat,
    /// See [`Directory::changes`].
    changes: Option<u64>,
}

/// A payload with its tree.
fn listing(read: ReadState, payload: Vec<u8>) -> Listing {
    let tree = Tree::of(&payload);
    let (root, levels) = (*tree.root.as_bytes(), tree.levels);
    Listing { stat: read.stat, changes: read.changes, payload, root, levels, versioned: None }
}

/// Reads a directory once more if it changed meanwhile, a bounded number of times.
fn read_settled<T>(
    backend: &dyn Backend,
    path: &[u8],
    mut read_once: impl FnMut(&dyn Directory) -> Result<T, ListFailure>,
) -> Result<(ReadState, T), ListFailure> {
    let mut attempt = 1;
    loop {
        let directory = match backend.locate(path).map_err(|error| failure(&error))? {
            Found::Directory(directory) => directory,
            Found::File(_) | Found::Described(_) => return Err(ListFailure::NotFound),
        };
        let read = read_once(&*directory)?;
        if directory.is_unchanged() || attempt == ATTEMPTS_MAX {
            let (stat, changes) = (directory.stat(), directory.changes());
            return Ok((ReadState { stat, changes }, read));
        }
        attempt += 1;
    }
}

fn failure(error: &LocateError) -> ListFailure {
    match error {
        LocateError::NotFound => ListFailure::NotFound,
        LocateError::NoPermission => ListFailure::NoPermission,
        LocateError::Failed(_) => ListFailure::Failed,
        LocateError::Unavailable(_) => ListFailure::Unavailable,
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
