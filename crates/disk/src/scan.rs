//! The look at a disk when it is opened: which replicas it has, and what does not fit together.
//!
//! A record without content is what a crash leaves before anybody was told: it is removed, as is
//! all that was being written. Content without a sound record, and content that is not as long as
//! its record says, are put into quarantine: nothing that may be somebody's data is deleted. What
//! can go goes first, so that there is room for that.
//!
//! On a file system that is read-only, or too full for it, all of that stays where it is, and is
//! not served.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use byname_catalog::id::{ContentId, LeaseEpoch};

use crate::error::{DiskError, StoreFailure};
use crate::layout::{Layout, file_name, parse_file_name};
use crate::record::{RECORD_BYTES_MAX, Record};

/// No epoch takes more.
const EPOCH_BYTES_MAX: u64 = 64;
/// Files that were removed which are named; the rest is counted.
const REMOVED_NAMED_MAX: usize = 100;

/// What a disk has.
#[derive(Debug, Default)]
pub struct Scan {
    /// Replicas, with size, root, checksums and what else their records say.
    pub replicas: BTreeMap<ContentId, Record>,
    /// Contents that are gone for good.
    pub dropped: BTreeSet<ContentId>,
    /// The highest epoch seen.
    pub epoch: LeaseEpoch,
    /// What was put into quarantine now, or would be if that could be done.
    pub quarantined: Vec<Quarantined>,
    /// What was of no use to anybody, and was removed now.
    pub removed: Removed,
    /// Nothing on the disk can be changed.
    pub is_read_only: bool,
    /// Contents that could not be put into quarantine.
    pub unfit: BTreeSet<ContentId>,
    /// Contents of which it is recorded that they are gone, and that could not be removed.
    pub unremoved: BTreeSet<ContentId>,
}

/// A file that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// Path of the file now.
    pub path: PathBuf,
    /// The fault.
    pub why: &'static str,
    /// False if it is still where it was.
    pub is_moved: bool,
}

/// Files that a start removes: nobody was told that what they are part of is there.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Removed {
    /// The first of them, each with the reason.
    pub named: Vec<(PathBuf, &'static str)>,
    /// Number of those that are not named.
    pub more: usize,
}

impl Removed {
    fn note(&mut self, path: PathBuf, why: &'static str) {
        match self.named.len() < REMOVED_NAMED_MAX {
            true => self.named.push((path, why)),
            false => self.more += 1,
        }
    }
}

/// A file that is to be put into quarantine.
pub(crate) struct Unsound {
    path: PathBuf,
    /// The content whose place it has.
    content: Option<ContentId>,
}

impl Unsound {
    /// What has the place of a content.
    pub(crate) fn of(layout: &Layout, content: ContentId) -> Self {
        Self { path: layout.object(content), content: Some(content) }
    }
}

pub(crate) fn scan(layout: &Layout, is_read_only: bool) -> Result<Scan, DiskError> {
    let mut scan = Scan { epoch: read_epoch(layout)?, is_read_only, ..Scan::default() };
    for path in layout.list(&layout.incoming())? {
        if remove(layout, &path, &scan)? {
            scan.removed.note(path, "it was being written");
        }
    }
    for path in layout.list(&layout.dropped())? {
        scan.dropped.extend(content_of(&path));
    }
    let mut unsound = Vec::new();
    for shard in layout.list(&layout.objects())? {
        let Some(paths) = list_shard(layout, &shard)? else {
            unsound.push((Unsound { path: shard, content: None }, "it is no directory"));
            continue;
        };
        for path in paths {
            if let Some(why) = take_object(layout, &path, &mut scan)? {
                let content = content_at(layout, &path);
                unsound.push((Unsound { path, content }, why));
            }
        }
    }
    let unfit: BTreeSet<ContentId> = unsound.iter().filter_map(|(it, _)| it.content).collect();
    for shard in layout.list(&layout.records())? {
        let Some(paths) = list_shard(layout, &shard)? else {
            unsound.push((Unsound { path: shard, content: None }, "it is no directory"));
            continue;
        };
        for path in paths {
            let is_needed = content_of(&path)
                .is_some_and(|it| scan.replicas.contains_key(&it) || unfit.contains(&it));
            if !is_needed && remove(layout, &path, &scan)? {
                scan.removed.note(path, "it is a record without content");
            }
        }
    }
    for (file, why) in unsound {
        let moved = match is_read_only {
            true => None,
            false => quarantine(layout, &file)?,
        };
        if moved.is_none() {
            scan.unfit.extend(file.content);
        }
        let is_moved = moved.is_some();
        scan.quarantined.push(Quarantined { path: moved.unwrap_or(file.path), why, is_moved });
    }
    Ok(scan)
}

/// What is in a directory of contents or records; `None` if somebody put a file in its place.
fn list_shard(layout: &Layout, path: &Path) -> Result<Option<Vec<PathBuf>>, DiskError> {
    match layout.list(path) {
        Err(error) if error.is_no_directory() => Ok(None),
        listed => listed.map(Some),
    }
}

/// Counts a file among the contents, or says why it is none.
fn take_object(
    layout: &Layout,
    path: &Path,
    scan: &mut Scan,
) -> Result<Option<&'static str>, DiskError> {
    let len = layout.files.facts(path).map_err(DiskError::at(path))?.len;
    let Some(content) = content_at(layout, path) else {
        return Ok(Some("its name is that of no content here"));
    };
    if scan.dropped.contains(&content) {
        // That it is gone was recorded; the removal did not come to its end.
        if !remove(layout, path, scan)? {
            scan.dropped.remove(&content);
            scan.unremoved.insert(content);
        }
        return Ok(None);
    }
    Ok(match read_record(layout, &layout.record(content))? {
        Some(record) if record.size == len => {
            scan.replicas.insert(content, record);
            None
        }
        Some(_) => Some("it is not as long as its record says"),
        None => Some("it has no sound record"),
    })
}

impl Scan {
    /// Contents that are there and must not be served.
    pub(crate) fn hidden(&self) -> impl Iterator<Item = &ContentId> {
        self.unfit.iter().chain(&self.unremoved)
    }
}

/// Removes a file; false if that cannot be done now.
fn remove(layout: &Layout, path: &Path, scan: &Scan) -> Result<bool, DiskError> {
    match scan.is_read_only {
        true => Ok(false),
        false => if_there_is_room(layout.files.remove(path), path),
    }
}

/// Moves content, and its record if there is one, to where people look; `None` if there is no room
/// for it there. The record goes first: it would be removed if it were alone.
pub(crate) fn quarantine(layout: &Layout, file: &Unsound) -> Result<Option<PathBuf>, DiskError> {
    let directory = layout.quarantine();
    let path = &file.path;
    if let Some(content) = file.content {
        let record = layout.record(content);
        let kept = directory.join(format!("{}.record", file_name(content)));
        let moved = match layout.files.rename(&record, &kept) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            moved => moved,
        };
        if !if_there_is_room(moved, &record)? {
            return Ok(None);
        }
    }
    let target = directory.join(path.file_name().unwrap_or_default());
    if !if_there_is_room(layout.files.rename(path, &target), path)? {
        return Ok(None);
    }
    layout.files.sync_directory(&directory).map_err(DiskError::at(&directory))?;
    Ok(Some(target))
}

/// False if something failed for want of room.
fn if_there_is_room(outcome: std::io::Result<()>, path: &Path) -> Result<bool, DiskError> {
    match outcome {
        Err(error) if StoreFailure::of(&error) == StoreFailure::Full => Ok(false),
        outcome => outcome.map(|()| true).map_err(DiskError::at(path)),
    }
}

fn read_record(layout: &Layout, path: &Path) -> Result<Option<Record>, DiskError> {
    match layout.files.read(path, RECORD_BYTES_MAX) {
        Ok(octets) => Ok(Record::decode(&octets)),
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::FileTooLarge => Ok(None),
            _ => Err(DiskError::Io { path: path.to_owned(), source: error }),
        },
    }
}

fn read_epoch(layout: &Layout) -> Result<LeaseEpoch, DiskError> {
    let path = layout.epoch();
    match layout.files.read(&path, EPOCH_BYTES_MAX) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(LeaseEpoch(0)),
        Err(source) => Err(DiskError::Io { path, source }),
        Ok(octets) => {
            let text = std::str::from_utf8(&octets).ok();
            let epoch = text.and_then(|text| text.strip_suffix('\n')?.parse().ok());
            epoch.map(LeaseEpoch).ok_or(DiskError::BadEpoch { path })
        }
    }
}

/// The content whose place a path is.
fn content_at(layout: &Layout, path: &Path) -> Option<ContentId> {
    content_of(path).filter(|content| layout.object(*content) == path)
}

fn content_of(path: &Path) -> Option<ContentId> {
    parse_file_name(path.file_name()?.to_str()?)
}
