//! The verified content of a directory: a snapshot of one version.
//!
//! It comes from the directory's manifest, which describes every entry, or from the plain listing
//! of a publisher that has no manifests, which has names only.
//!
//! Invariant: an entry whose version is older than one seen is given as one of which only name and
//! kind are known. So whoever wants its file asks for the file's own description, and no reader of
//! a listing can forget the rule of [`byname_transfer::versions`].

use std::collections::BTreeMap;

use byname_packet::Name;
use byname_security::key::KeyId;
use byname_security::trust::Trusted;
use byname_transfer::discovery::Discovered;
use byname_transfer::error::{ProtocolProblem, ReadError};
use byname_transfer::listing::{Entry, entries};
use byname_transfer::manifest;
use byname_transfer::naming::is_safe_entry;
use byname_transfer::versions::{Lesson, Older, VersionMemory};

use crate::error::ClientError;

/// Largest listing that is read: a million names of 60 bytes, or a manifest of 600 000 entries.
pub const LISTING_BYTES_MAX: u64 = 64 << 20;

/// Where the entries begin, and how they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Plain,
    Manifest { start: usize },
}

/// Digest of the key for whose word something counts.
pub(crate) fn key_of(trust: &Trusted) -> Option<KeyId> {
    match trust {
        Trusted::Anchored { key, .. } | Trusted::FirstUse { key, .. } => Some(*key),
        Trusted::Insecure => None,
    }
}

/// All entries of one version of a directory.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The directory.
    pub name: Name,
    /// The verified description of its listing or manifest.
    pub discovered: Discovered,
    payload: Vec<u8>,
    entry_count: usize,
    form: Form,
    /// Entries that are older than a version seen, by name.
    old: BTreeMap<Box<[u8]>, Older>,
}

/// An entry with everything that is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedEntry<'a> {
    /// Its name, and whether it is a directory.
    pub entry: Entry<'a>,
    /// The manifest's entry; nothing in a plain listing. Name and mode alone if the rest is not
    /// announced, or older than what was seen.
    pub details: Option<manifest::Entry<'a>>,
}

impl Listing {
    /// A plain listing.
    pub(crate) fn plain(
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
        let (form, old) = (Form::Plain, BTreeMap::new());
        Ok(Listing { name, discovered, payload, entry_count, form, old })
    }

    /// A manifest, of which each entry was judged by the versions seen. If it counts for the entry
    /// `about` alone, that is the only one that is judged and remembered.
    pub(crate) fn manifest(
        name: Name,
        discovered: Discovered,
        payload: Vec<u8>,
        about: Option<&Name>,
        versions: &mut VersionMemory,
    ) -> Result<Self, ClientError> {
        let (count, start) = match manifest::check(&payload) {
            Ok(checked) => checked,
            Err(source) => {
                let key = key_of(&discovered.trust);
                return Err(ReadError::Manifest { name, key, source }.into());
            }
        };
        let entry_count = usize::try_from(count).unwrap_or(usize::MAX);
        let (form, old) = (Form::Manifest { start }, BTreeMap::new());
        let mut listing = Listing { name, discovered, payload, entry_count, form, old };
        listing.old = listing.judge(about, versions);
        Ok(listing)
    }

    /// The entries that are older than what was seen; the others are remembered.
    fn judge(
        &self,
        about: Option<&Name>,
        versions: &mut VersionMemory,
    ) -> BTreeMap<Box<[u8]>, Older> {
        let lesson = match &self.discovered.trust {
            Trusted::Insecure => Lesson::Nothing,
            Trusted::Anchored { .. } | Trusted::FirstUse { .. } => Lesson::Numbers,
        };
        let mut entries = self.listed().filter_map(|listed| listed.details);
        let Some(about) = about else {
            return versions.admit_manifest(self.name.view(), entries, lesson);
        };
        let last = about.view().last().map(|last| last.value);
        let about = entries.find(|details| Some(details.name) == last);
        let judged = about.map(|it| (it, versions.admit_entry(self.name.view(), &it, lesson)));
        let older = judged.and_then(|(it, judged)| Some((it.name.into(), judged.err()?)));
        older.into_iter().collect()
    }

    /// The numbers by which an entry is older than what was seen, if it is.
    pub(crate) fn older(&self, entry: &[u8]) -> Option<Older> {
        self.old.get(entry).copied()
    }

    /// Number of entries, unsafe ones included.
    pub fn entry_count(&self) -> usize {
        self.entry_count
    }

    /// The entries as they were signed.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// True if entries are described, and not only named.
    pub fn is_manifest(&self) -> bool {
        self.form != Form::Plain
    }

    /// All entries as the publisher wrote them. A name may be hostile: look at
    /// [`is_safe_entry`] before making a path of it.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.listed().map(|listed| listed.entry)
    }

    /// All entries with what is known of them.
    pub fn listed(&self) -> impl Iterator<Item = ListedEntry<'_>> {
        let mut at = self.start();
        std::iter::from_fn(move || {
            let (listed, next) = self.entry_at(at)?;
            at = next;
            Some(listed)
        })
    }

    /// The entries whose names can be names of files.
    pub fn safe_entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.entries().filter(|entry| is_safe_entry(entry.name))
    }

    /// Where the first entry begins in the payload.
    pub fn start(&self) -> usize {
        match self.form {
            Form::Plain => 0,
            Form::Manifest { start } => start,
        }
    }

    /// The entry that begins at this byte of the payload, and where the next one begins.
    pub fn entry_at(&self, at: usize) -> Option<(ListedEntry<'_>, usize)> {
        if self.is_manifest() {
            let (mut details, next) = manifest::entry_at(&self.payload, at)?;
            if self.old.contains_key(details.name) {
                details = manifest::Entry::new(details.name, details.mode);
            }
            let entry = Entry { name: details.name, is_directory: details.is_directory() };
            return Some((ListedEntry { entry, details: Some(details) }, next));
        }
        let rest = self.payload.get(at..)?;
        let length = rest.iter().position(|octet| *octet == 0)? + 1;
        let entry = entries(&rest[..length]).next()?.ok()?;
        Some((ListedEntry { entry, details: None }, at + length))
    }
}
