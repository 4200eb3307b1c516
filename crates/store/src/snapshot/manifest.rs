//! Making a directory's manifest: the states of all entries, their versions, the roots of small
//! files.
//!
//! Everything is done for all entries at once, because one at a time is what makes a directory of
//! many small files slow: the records are looked up in one transaction, and new versions and roots
//! become durable in one other, before the manifest that mentions them is announced.
//!
//! Invariants: an entry has a version only if it is on disk for exactly the state described; roots
//! are of that state too. What is not known is left out, and readers ask for it file by file.

use std::sync::Arc;
use std::time::{Duration, Instant};

use byname_io::Clock;
use byname_packet::Name;
use byname_security::tree::Hash;
use byname_transfer::attributes::{Attributes, Checksums};
use byname_transfer::manifest::{self, Entry, Version};
use byname_transfer::media_type;
use byname_transfer::naming;
use byname_transfer::server::{
    FileStat, ListFailure, Listing, Quiet, Recalled, Record, RecordKey, Subject, next_version,
};

use super::{listing, read_settled};
use crate::backend::{Backend, BackendFile, Directory, DirectoryEntry, Found, ListingKind};
use crate::state::{RootRecord, StateDir};
use crate::stored_roots;

/// Files up to this size are hashed for a manifest; what is larger has a root if it has one.
const HASHED_BYTES_MAX: u64 = 128 << 10;
/// Bounds of hashing for one manifest; the next one goes on.
const HASH_BYTES_BUDGET: u64 = 1 << 30;
const HASH_TIME_BUDGET: Duration = Duration::from_secs(2);
/// Mode of a link: a regular file that nobody executes or writes, for readers that know no links.
const LINK_MODE: u16 = 0o100_444;
/// A number of changes that no directory ever has.
const NEVER_CURRENT: u64 = 0;
/// Octets of an entry besides its name, checksums, media type and target, at most.
const ENTRY_BYTES_MAX: usize = 4 + 4 + 6 + 12 + 12 + 12 + 6 + 36;

/// Makes records and roots durable; says for each record whether it counts.
pub(crate) type Commit<'a> = dyn Fn(Vec<(RecordKey, Record)>, Vec<RootRecord>) -> Vec<bool> + 'a;

/// A manifest that is wanted.
#[derive(Debug)]
pub(crate) struct ManifestOrder {
    pub(crate) backend: Arc<dyn Backend>,
    /// Relative path of the directory.
    pub(crate) path: Vec<u8>,
    /// Its published name.
    pub(crate) name: Name,
    pub(crate) bytes_max: usize,
    pub(crate) quiet: Quiet,
    /// Room that packets keep for a signature.
    pub(crate) signature_bytes: usize,
    /// True if roots that are stored with files count.
    pub(crate) attributes: bool,
}

/// One entry on its way into the manifest.
struct Row {
    name: Box<[u8]>,
    is_directory: bool,
    stat: Option<FileStat>,
    version: Option<u64>,
    root: Option<[u8; 32]>,
    checksums: Checksums,
    link_target: Option<Box<[u8]>>,
}

/// Octets and time left for hashing.
struct Budget {
    bytes: u64,
    until: Instant,
}

/// Makes the manifest of a directory.
///
/// # Errors
/// [`ListFailure`], `TooLarge` if the payload would exceed the order's bound.
pub(crate) fn read(
    order: &ManifestOrder,
    state: &StateDir,
    commit: &Commit<'_>,
) -> Result<Listing, ListFailure> {
    let (path, kind) = (&order.path, ListingKind::Manifest);
    if let Some(versioned) = order.backend.versioned_listing(path, kind, order.bytes_max) {
        return versioned;
    }
    // Before anything is looked at: what changes from now on is too young for a version.
    let unix_ns = Clock::new().unix_ns();
    let (mut directory, mut rows) =
        read_settled(&*order.backend, &order.path, |directory| collect(order, directory))?;
    rows.sort_unstable_by(|left, right| left.name.cmp(&right.name));
    describe(order, state, commit, &mut rows, unix_ns);
    directory.changes = changes_that_show(directory.changes, &rows);
    let payload = encode(order, &rows);
    if payload.len() > order.bytes_max {
        return Err(ListFailure::TooLarge);
    }
    Ok(listing(directory, payload))
}

fn collect(order: &ManifestOrder, directory: &dyn Directory) -> Result<Vec<Row>, ListFailure> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    directory.list(true, &mut |entry| {
        let DirectoryEntry { name, is_directory, stat, link_target } = entry;
        // Without what may be missing this is a lower bound.
        bytes += name.len() + 16 + link_target.map_or(0, <[u8]>::len);
        if bytes > order.bytes_max {
            return Err(ListFailure::TooLarge);
        }
        let mut row = Row::new(name, is_directory, stat);
        row.link_target = link_target.map(Box::from);
        rows.push(row);
        Ok(())
    })?;
    Ok(rows)
}

/// Gives files their versions and small ones their roots, and makes both durable.
fn describe(
    order: &ManifestOrder,
    state: &StateDir,
    commit: &Commit<'_>,
    rows: &mut [Row],
    unix_ns: u64,
) {
    let mut places = Vec::new();
    let mut asked = Vec::new();
    for (place, row) in rows.iter().enumerate() {
        if let (true, Some(stat)) = (row.is_file(), row.stat) {
            let name = order.name.with_generic(&row.name).view().value().to_vec();
            places.push(place);
            asked.push((RecordKey { name, listing: false }, stat.state));
        }
    }
    let known = state.recall_all(&asked);
    let mut new = Vec::new();
    for ((place, (key, _)), recalled) in places.iter().zip(asked).zip(&known) {
        let row = &mut rows[*place];
        row.root = recalled.root;
        row.checksums = recalled.checksums;
        let record = row.stat.and_then(|stat| decide(&stat, recalled, order.quiet, unix_ns));
        row.version = record.map(|record| record.version);
        if let Some(record) = record.filter(|record| Some(*record) != recalled.record) {
            new.push((*place, key, record));
        }
    }
    let roots = hash_small_files(order, state, rows);
    if new.is_empty() && roots.is_empty() {
        return;
    }
    let places: Vec<usize> = new.iter().map(|(place, ..)| *place).collect();
    let kept = commit(new.into_iter().map(|(_, key, record)| (key, record)).collect(), roots);
    for (at, place) in places.into_iter().enumerate() {
        if !kept.get(at).is_some_and(|kept| *kept) {
            rows[place].version = None;
        }
    }
}

/// The number of changes that the manifest stands for. One with files that are too young for a
/// version is made again when asked for, and one without some roots as if nobody watched: both come
/// without a change of the directory.
fn changes_that_show(changes: Option<u64>, rows: &[Row]) -> Option<u64> {
    let mut files = rows.iter().filter(|row| row.is_file());
    if files.clone().any(|file| file.version.is_none()) {
        return changes.map(|_| NEVER_CURRENT);
    }
    changes.filter(|_| files.all(|file| file.root.is_some()))
}

/// The version of a file in this state; `None` while it is too young for one.
fn decide(stat: &FileStat, recalled: &Recalled, quiet: Quiet, unix_ns: u64) -> Option<Record> {
    let subject = Subject::File(stat.state.fingerprint);
    if let Some(record) = recalled.record.filter(|record| record.subject == subject) {
        return Some(record);
    }
    let is_settled = quiet.unsettled_ns(stat, unix_ns, 0) == 0;
    is_settled.then(|| Record { subject, version: next_version(stat.mtime_ns, recalled) })
}

fn hash_small_files(order: &ManifestOrder, state: &StateDir, rows: &mut [Row]) -> Vec<RootRecord> {
    let mut roots = Vec::new();
    let mut budget = Budget { bytes: HASH_BYTES_BUDGET, until: Instant::now() + HASH_TIME_BUDGET };
    let Ok(Found::Directory(directory)) = order.backend.locate(&order.path) else { return roots };
    let mut buffer = Vec::new();
    for row in rows {
        let Some(stat) = row.stat.filter(|_| row.version.is_some() && row.root.is_none()) else {
            continue;
        };
        let is_small = stat.state.size <= HASHED_BYTES_MAX;
        if !is_small && !order.attributes {
            continue;
        }
        let file = directory.open(&row.name).filter(|file| file.stat().state == stat.state);
        let Some(file) = file else { continue };
        if order.attributes {
            row.root = stored_roots::root_with_tree(&*file, state);
        }
        if row.root.is_none() && is_small && budget.take(stat.state.size) {
            row.root = hash(&*file, &mut buffer);
        }
        if let Some(root) = row.root {
            let record = RootRecord { fingerprint: stat.state.fingerprint, root };
            state.remember(record);
            roots.push(record);
        }
    }
    roots
}

/// The root of an open file, if it stays in its state.
fn hash(file: &dyn BackendFile, buffer: &mut Vec<u8>) -> Option<[u8; 32]> {
    buffer.resize(usize::try_from(file.stat().state.size).ok()?, 0);
    file.read_exact_at(buffer, 0).ok()?;
    file.is_unchanged().then(|| Hash::of(buffer).0)
}

impl Budget {
    fn take(&mut self, bytes: u64) -> bool {
        let is_enough = self.bytes >= bytes && Instant::now() < self.until;
        if is_enough {
            self.bytes -= bytes;
        }
        is_enough
    }
}

fn encode(order: &ManifestOrder, rows: &[Row]) -> Vec<u8> {
    let names: usize = rows.iter().map(|row| row.name.len()).sum();
    let mut payload = Vec::with_capacity(16 + names + rows.len() * ENTRY_BYTES_MAX);
    manifest::write_header(&mut payload, rows.len() as u64);
    for row in rows {
        row.entry(order).encode(&mut payload);
    }
    payload.shrink_to_fit();
    payload
}

impl Row {
    fn new(name: &[u8], is_directory: bool, stat: Option<FileStat>) -> Self {
        let (version, root, link_target) = (None, None, None);
        let (name, checksums) = (name.into(), Checksums::default());
        Row { name, is_directory, stat, version, root, checksums, link_target }
    }

    fn is_file(&self) -> bool {
        !self.is_directory && self.link_target.is_none()
    }

    fn entry(&self, order: &ManifestOrder) -> Entry<'_> {
        if let Some(target) = &self.link_target {
            let attributes = Attributes { link_target: Some(target), ..Attributes::default() };
            let mtime_ns = self.stat.map(|stat| stat.mtime_ns);
            return Entry { mtime_ns, attributes, ..Entry::new(&self.name, LINK_MODE) };
        }
        const KINDS: [u16; 2] = [0o100_000, 0o040_000];
        let kind = KINDS[usize::from(self.is_directory)];
        let size = self.stat.map(|stat| stat.state.size).filter(|_| !self.is_directory);
        let mode = self.stat.map_or(kind, |stat| stat.mode);
        Entry {
            mtime_ns: self.stat.map(|stat| stat.mtime_ns),
            size,
            version: self.version.and_then(|number| self.version(order, number)),
            attributes: Attributes {
                checksums: self.checksums,
                media_type: media_type::of_name(&self.name).filter(|_| !self.is_directory),
                ..Attributes::default()
            },
            ..Entry::new(&self.name, mode)
        }
    }

    /// `None` if the name leaves no room for content in a packet.
    fn version(&self, order: &ManifestOrder, number: u64) -> Option<Version> {
        let name = order.name.with_generic(&self.name).with_version(number);
        let segment_bytes =
            naming::segment_size_for(name.view().value().len() + order.signature_bytes)? as u64;
        Some(Version { number, segment_bytes, root: self.root })
    }
}
