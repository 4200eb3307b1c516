//! The look at a disk when it is opened: which replicas it has, and what does not fit together.
//!
//! A record without content is what a crash leaves before anybody was told: it is removed, as is
//! all that was being written. Content without a sound record, and content that is not as long as
//! its record says, are put into quarantine: nothing that may be somebody's data is deleted.
//!
//! On a file system that is read-only all of that stays where it is, and is not served.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use byname_catalog::id::{ContentId, LeaseEpoch};

use crate::error::DiskError;
use crate::layout::{Layout, file_name, parse_file_name};
use crate::record::{RECORD_BYTES_MAX, Record};

/// No epoch takes more.
const EPOCH_BYTES_MAX: u64 = 64;

/// What a disk has.
#[derive(Debug, Default)]
pub struct Scan {
    /// Replicas, with size, root, checksums and what else their records say.
    pub replicas: BTreeMap<ContentId, Record>,
    /// Contents that are gone for good.
    pub dropped: BTreeSet<ContentId>,
    /// The highest epoch seen.
    pub epoch: LeaseEpoch,
    /// What was put into quarantine now, or would be if the disk could be written to.
    pub quarantined: Vec<Quarantined>,
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
}

pub(crate) fn scan(layout: &Layout, is_read_only: bool) -> Result<Scan, DiskError> {
    let mut scan = Scan { epoch: read_epoch(layout)?, is_read_only, ..Scan::default() };
    for path in layout.list(&layout.incoming())? {
        remove(layout, &path, &scan)?;
    }
    for path in layout.list(&layout.dropped())? {
        scan.dropped.extend(content_of(&path));
    }
    for shard in layout.list(&layout.objects())? {
        for path in layout.list(&shard)? {
            take_object(layout, &path, &mut scan)?;
        }
    }
    for shard in layout.list(&layout.records())? {
        for path in layout.list(&shard)? {
            let is_known = content_of(&path).is_some_and(|it| scan.replicas.contains_key(&it));
            if !is_known {
                remove(layout, &path, &scan)?;
            }
        }
    }
    Ok(scan)
}

fn take_object(layout: &Layout, path: &Path, scan: &mut Scan) -> Result<(), DiskError> {
    let len = layout.files.facts(path).map_err(DiskError::at(path))?.len;
    let content = content_of(path).filter(|content| layout.object(*content) == path);
    let Some(content) = content else {
        return quarantine(layout, path, "its name is that of no content here", scan);
    };
    if scan.dropped.contains(&content) {
        // That it is gone was recorded; the removal did not come to its end.
        if scan.is_read_only {
            scan.dropped.remove(&content);
            scan.unremoved.insert(content);
        }
        return remove(layout, path, scan);
    }
    match read_record(layout, &layout.record(content))? {
        Some(record) if record.size == len => {
            scan.replicas.insert(content, record);
            Ok(())
        }
        Some(_) => quarantine(layout, path, "it is not as long as its record says", scan),
        None => quarantine(layout, path, "it has no sound record", scan),
    }
}

impl Scan {
    /// Contents that are there and must not be served.
    pub fn hidden(&self) -> impl Iterator<Item = &ContentId> {
        self.unfit.iter().chain(&self.unremoved)
    }
}

fn remove(layout: &Layout, path: &Path, scan: &Scan) -> Result<(), DiskError> {
    match scan.is_read_only {
        true => Ok(()),
        false => layout.files.remove(path).map_err(DiskError::at(path)),
    }
}

/// Moves content, and its record if there is one, to where people look.
fn quarantine(
    layout: &Layout,
    path: &Path,
    why: &'static str,
    scan: &mut Scan,
) -> Result<(), DiskError> {
    if scan.is_read_only {
        scan.unfit.extend(content_of(path));
        scan.quarantined.push(Quarantined { path: path.to_owned(), why });
        return Ok(());
    }
    let name = path.file_name().unwrap_or_default();
    let target = layout.quarantine().join(name);
    layout.files.rename(path, &target).map_err(DiskError::at(path))?;
    if let Some(content) = content_of(path) {
        let record = layout.record(content);
        let kept = layout.quarantine().join(format!("{}.record", file_name(content)));
        match layout.files.rename(&record, &kept) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(DiskError::Io { path: record, source: error });
            }
            _ => {}
        }
    }
    let directory = layout.quarantine();
    layout.files.sync_directory(&directory).map_err(DiskError::at(&directory))?;
    scan.quarantined.push(Quarantined { path: target, why });
    Ok(())
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

fn content_of(path: &Path) -> Option<ContentId> {
    parse_file_name(path.file_name()?.to_str()?)
}
