//! The proved listing of a directory: a snapshot of one version.

use byname_packet::Name;
use byname_transfer::discovery::Discovered;
use byname_transfer::error::{ProtocolProblem, ReadError};
use byname_transfer::listing::{Entry, entries};
use byname_transfer::naming::is_safe_entry;

use crate::error::ClientError;

/// Largest listing that is read: a million names of 60 bytes.
pub const LISTING_BYTES_MAX: u64 = 64 << 20;

/// All entries of one version of a directory.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The directory.
    pub name: Name,
    /// Its proved description.
    pub discovered: Discovered,
    payload: Vec<u8>,
    entry_count: usize,
}

impl Listing {
    pub(crate) fn new(
        name: Name,
        discovered: Discovered,
        payload: Vec<u8>,
    ) -> Result<Self, ClientError> {
        let Ok(entry_count) =
            entries(&payload).try_fold(0, |count, entry| entry.map(|_| count + 1))
        else {
            let problem = ProtocolProblem::Listing;
            return Err(ReadError::Protocol { name, problem }.into());
        };
        Ok(Listing { name, discovered, payload, entry_count })
    }

    /// Number of entries, unsafe ones included.
    pub fn entry_count(&self) -> usize {
        self.entry_count
    }

    /// All entries as the publisher wrote them. A name may be hostile: look at
    /// [`is_safe_entry`] before making a path of it.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        entries(&self.payload).filter_map(Result::ok)
    }

    /// The entries whose names can be names of files.
    pub fn safe_entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.entries().filter(|entry| is_safe_entry(entry.name))
    }

    /// The entry that begins at this byte of the listing, and where the next one begins.
    pub(crate) fn entry_at(&self, at: usize) -> Option<(Entry<'_>, usize)> {
        let rest = self.payload.get(at..)?;
        let length = rest.iter().position(|octet| *octet == 0)? + 1;
        let entry = entries(&rest[..length]).next()?.ok()?;
        Some((entry, at + length))
    }
}
