//! Promises that hold once a site has come to rest: what is booked is exact, every replica is on
//! its disk, and nothing else is.

use std::collections::{BTreeMap, BTreeSet};

use byname_catalog::engine::{Engine, EngineError, Span, Table};
use byname_catalog::id::{ContentId, DiskId, InodeId, Version};
use byname_catalog::{Caller, Failure, Place, Reader, check};
use byname_security::tree::Tree;

use super::Site;
use super::writer::path;

/// Paths that clients use.
pub const PATHS: u8 = 4;
/// Rows of a table that are read.
const ROWS_MAX: usize = 1 << 16;

/// Replicas by disk, as the catalog has them.
fn replicas(engine: &dyn Engine) -> Result<BTreeMap<DiskId, BTreeSet<ContentId>>, EngineError> {
    let rows = engine.snapshot()?.range(Table::Replica, Span::ALL, ROWS_MAX)?;
    let mut replicas: BTreeMap<DiskId, BTreeSet<ContentId>> = BTreeMap::new();
    for (key, _) in rows {
        let number = |at: usize| {
            let octets = key.get(at..at + 8).and_then(|octets| octets.try_into().ok());
            octets.map_or(0, u64::from_be_bytes)
        };
        let content = ContentId { inode: InodeId(number(8)), version: Version(number(16)) };
        replicas.entry(DiskId(number(0))).or_default().insert(content);
    }
    Ok(replicas)
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
pub fn booked(site: &Site) -> Result<(), String> {
    let rows = site.engine.snapshot().map_err(|error| error.to_string())?;
    match check(&*rows).map_err(|error| error.to_string())?.first() {
        Some(found) => Err(format!("what is booked is exact: {:?} {}", found.table, found.what)),
        None => Ok(()),
    }
}

/// Compares disks with the catalog: nothing that has a receipt is lost.
///
/// # Errors
/// The first replica that is not there, or not what it should be.
pub fn stored(site: &Site) -> Result<(), String> {
    let replicas = replicas(&site.engine).map_err(|error| error.to_string())?;
    for number in 0..site.disks.len() {
        let disk = site.disk(number);
        let id = disk.name().id;
        for content in replicas.get(&id).into_iter().flatten() {
            let what = format!("{:x}-{:x} on disk {}", content.inode.0, content.version.0, id.0);
            let Some(octets) = disk.octets(*content) else {
                return Err(format!("nothing acknowledged is lost: {what} is missing"));
            };
            let root = root(&site.engine, *content).map_err(|error| error.to_string())?;
            if *Tree::of(&octets).root.as_bytes() != root {
                return Err(format!("nothing acknowledged is lost: {what} has other octets"));
            }
        }
    }
    Ok(())
}

/// Counts the replicas of every file.
///
/// # Errors
/// The first file that has fewer than a commit needs.
pub fn replicated(site: &Site) -> Result<(), String> {
    let reader = Reader::new(&site.engine, &Caller::Head).map_err(|error| error.to_string())?;
    for number in 0..PATHS {
        let place = Place::path(path(number)).map_err(|error| error.to_string())?;
        let Ok(entry) = reader.entry(&place) else { continue };
        let count = entry.inode.content().map_or(0, |content| content.replicas.len());
        if count < usize::from(site.receipt_count) {
            let (name, needed) = (path(number), site.receipt_count);
            return Err(format!(
                "a file has as many replicas as were promised: {name} has {count} of {needed}"
            ));
        }
    }
    Ok(())
}

/// Compares disks with the catalog: what is no replica is not there.
///
/// # Errors
/// The first content that nobody wants any more.
pub fn cleaned(site: &Site) -> Result<(), String> {
    let replicas = replicas(&site.engine).map_err(|error| error.to_string())?;
    for number in 0..site.disks.len() {
        let disk = site.disk(number);
        let id = disk.name().id;
        let wanted = replicas.get(&id).cloned().unwrap_or_default();
        let name =
            |content: &ContentId| format!("{:016x}-{:016x}", content.inode.0, content.version.0);
        let wanted: BTreeSet<String> = wanted.iter().map(name).collect();
        if let Some(left) = disk.replicas().keys().find(|name| !wanted.contains(*name)) {
            return Err(format!("no replica leaks: {left} is left on disk {}", id.0));
        }
    }
    Ok(())
}
