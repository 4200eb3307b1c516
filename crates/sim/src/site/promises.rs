//! Promises that hold once a site has come to rest: what is booked is exact, every replica is on
//! its disk, and nothing else is.

use std::collections::{BTreeMap, BTreeSet};

use byname_catalog::engine::{Engine, EngineError, Span, Table};
use byname_catalog::id::{ContentId, DiskId, InodeId, TransactionNumber, Version};
use byname_catalog::{Caller, Failure, Inconsistency, PAGE_ROWS_MAX, Place, Reader, check};
use byname_security::tree::Tree;

use super::Site;
use super::history::TREE_PATHS;
use super::writer::path;

/// Paths in the top directory.
pub const PATHS: u8 = TREE_PATHS;
/// All paths: the others are in a directory that is removed as a whole.
pub const ALL_PATHS: u8 = PATHS + 2;
/// Rows of a table that are read.
const ROWS_MAX: usize = 1 << 16;

/// A promise that was broken.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The catalog contradicts itself.
    #[error("what is booked is exact: {:?} {}", .0.table, .0.what)]
    Booked(Inconsistency),
    /// A replica is not there, or not whole.
    #[error("nothing acknowledged is lost: {content:?} on disk {} {what}", disk.0)]
    Lost {
        /// The content.
        content: ContentId,
        /// The disk that has signed for it.
        disk: DiskId,
        /// The fault.
        what: &'static str,
    },
    /// A commit was accepted too early.
    #[error("a file has as many replicas as were promised: {path} has {count} of {needed}")]
    TooFew {
        /// The file.
        path: String,
        /// Replicas.
        count: usize,
        /// Receipts that its policy demands.
        needed: u8,
    },
    /// Something was not cleaned.
    #[error("no replica leaks: {content} is left on disk {}", disk.0)]
    Leaked {
        /// Name of the file on the disk.
        content: String,
        /// The disk.
        disk: DiskId,
    },
    /// A removed tree was not taken apart.
    #[error("what was removed is collected: {count} directories are left")]
    Uncollected {
        /// Directories.
        count: usize,
    },
    /// Somebody wrote what another had for writing alone.
    #[error("a file is written by who has it for writing alone: {by} wrote {file:?} of {of}")]
    NotLeased {
        /// Who wrote.
        by: String,
        /// The file.
        file: InodeId,
        /// Whose lease it was.
        of: String,
    },
    /// The catalog cannot be read.
    #[error(transparent)]
    Catalog(#[from] Failure),
    /// Nor its engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Replicas by disk, as the catalog has them.
fn replicas(engine: &dyn Engine) -> Result<BTreeMap<DiskId, BTreeSet<ContentId>>, EngineError> {
    let rows = engine.snapshot()?.range(Table::Replica, Span::ALL, ROWS_MAX)?;
    let mut replicas: BTreeMap<DiskId, BTreeSet<ContentId>> = BTreeMap::new();
    for (key, _) in rows {
        replicas.entry(DiskId(number(&key, 0))).or_default().insert(content(&key, 8));
    }
    Ok(replicas)
}

/// Contents that are being written.
pub(super) fn attempts(engine: &dyn Engine) -> Result<BTreeSet<ContentId>, EngineError> {
    let rows = engine.snapshot()?.range(Table::Attempt, Span::ALL, ROWS_MAX)?;
    Ok(rows.iter().map(|(key, _)| content(key, 0)).collect())
}

/// A number in a key.
fn number(key: &[u8], at: usize) -> u64 {
    let octets = key.get(at..at + 8).and_then(|octets| octets.try_into().ok());
    octets.map_or(0, u64::from_be_bytes)
}

fn content(key: &[u8], at: usize) -> ContentId {
    ContentId { inode: InodeId(number(key, at)), version: Version(number(key, at + 8)) }
}

/// Root of a content, as the catalog has it.
fn root(engine: &dyn Engine, content: ContentId) -> Result<[u8; 32], Failure> {
    let reader = Reader::new(engine, &Caller::Head)?;
    Ok(reader.content(content)?.root)
}

/// Counts everything in the catalog anew.
///
/// # Errors
/// The first contradiction.
pub fn booked(site: &Site) -> Result<(), Broken> {
    let rows = site.engine.snapshot()?;
    let found = check(&*rows)?.into_iter().next();
    found.map_or(Ok(()), |found| Err(Broken::Booked(found)))
}

/// Compares disks with the catalog: nothing that has a receipt is lost.
///
/// # Errors
/// The first replica that is not there, or not what it should be.
pub fn stored(site: &Site) -> Result<(), Broken> {
    let replicas = replicas(&site.engine)?;
    for number in 0..site.disks.len() {
        let disk = site.disk(number);
        let id = disk.name().id;
        for content in replicas.get(&id).into_iter().flatten().copied() {
            let lost = |what| Broken::Lost { content, disk: id, what };
            let octets = disk.octets(content).ok_or_else(|| lost("is missing"))?;
            if *Tree::of(&octets).root.as_bytes() != root(&site.engine, content)? {
                return Err(lost("has other octets"));
            }
        }
    }
    Ok(())
}

/// Counts the replicas of every file.
///
/// # Errors
/// The first file that has fewer than a commit needs.
pub fn replicated(site: &Site) -> Result<(), Broken> {
    let reader = Reader::new(&site.engine, &Caller::Head)?;
    for number in 0..ALL_PATHS {
        let place = Place::path(path(number)).map_err(Failure::from)?;
        let Ok(entry) = reader.entry(&place) else { continue };
        let count = entry.inode.content().map_or(0, |content| content.replicas.len());
        if count < usize::from(site.receipt_count) {
            let (path, needed) = (path(number), site.receipt_count);
            return Err(Broken::TooFew { path, count, needed });
        }
    }
    Ok(())
}

/// Reads the change log: whoever has a file for writing alone is the only one whose commits count.
///
/// # Errors
/// The first commit of somebody else.
pub fn leased(site: &Site) -> Result<(), Broken> {
    let reader = Reader::new(&site.engine, &Caller::Head)?;
    let mut leases: BTreeMap<Vec<u8>, String> = BTreeMap::new();
    let mut after = TransactionNumber(0);
    loop {
        let page = reader.log_after(after, PAGE_ROWS_MAX)?;
        for record in &page {
            for (table, key, value) in record.writes.iter() {
                match (table, value.is_some(), leases.get(key)) {
                    (Table::WriteLease, true, _) => {
                        leases.insert(key.to_vec(), record.user.clone());
                    }
                    (Table::WriteLease, false, _) => drop(leases.remove(key)),
                    (Table::Inode, _, Some(of))
                        if record.command == "commit" && *of != record.user =>
                    {
                        let (by, of, file) =
                            (record.user.clone(), of.clone(), InodeId(number(key, 0)));
                        return Err(Broken::NotLeased { by, file, of });
                    }
                    _ => {}
                }
            }
        }
        match page.last() {
            Some(last) => after = last.number,
            None => return Ok(()),
        }
    }
}

/// Looks for directories that were removed.
///
/// # Errors
/// Their count.
pub fn collected(site: &Site) -> Result<(), Broken> {
    let count = site.engine.snapshot()?.range(Table::Detached, Span::ALL, ROWS_MAX)?.len();
    if count == 0 { Ok(()) } else { Err(Broken::Uncollected { count }) }
}

/// Compares disks with the catalog: what is no replica is not there.
///
/// # Errors
/// The first content that nobody wants any more.
pub fn cleaned(site: &Site) -> Result<(), Broken> {
    let replicas = replicas(&site.engine)?;
    for number in 0..site.disks.len() {
        let disk = site.disk(number);
        let id = disk.name().id;
        let mut wanted = replicas.get(&id).cloned().unwrap_or_default();
        wanted.extend(&site.unknown);
        let name =
            |content: &ContentId| format!("{:016x}-{:016x}", content.inode.0, content.version.0);
        let wanted: BTreeSet<String> = wanted.iter().map(name).collect();
        if let Some(left) = disk.replicas().into_keys().find(|name| !wanted.contains(name)) {
            return Err(Broken::Leaked { content: left, disk: id });
        }
    }
    Ok(())
}
