//! Looking through a cache: what it holds, in all and entry by entry.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use byname_packet::Name;
use byname_security::tree::{Shape, UNIT_BYTES};

use crate::disk::{Disk, Step};
use crate::entry::Entry;
use crate::layout::{ContentKey, DATA, Layout, MAP, TREE, USED};
use crate::names::Names;
use crate::pins::Pins;
use crate::policy::Standing;

/// What a cache holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes on the disk.
    pub bytes: u64,
    /// Entries.
    pub entries: u64,
}

impl Usage {
    pub(crate) fn plus(self, more: Usage) -> Usage {
        let (bytes, entries) = (self.bytes + more.bytes, self.entries + more.entries);
        Usage { bytes, entries }
    }
}

/// An entry, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryReport {
    /// Its content.
    pub key: ContentKey,
    /// Bytes of the content that are there.
    pub cached_bytes: u64,
    /// Bytes on the disk.
    pub disk_bytes: u64,
    /// All of the content is there.
    pub is_whole: bool,
    /// It is never removed to make room.
    pub is_pinned: bool,
    /// Time of its last use, nanoseconds since the Unix epoch.
    pub used_ns: u64,
    /// Names and versions under which it was seen, newest first.
    pub names: Vec<(Name, u64)>,
}

/// Nanoseconds since the Unix epoch.
pub(crate) fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Standing of an entry; that of one never used if it is missing or damaged.
pub(crate) fn standing(entry: &Path) -> Standing {
    let text = fs::read_to_string(entry.join(USED)).unwrap_or_default();
    Standing::decode(&text).unwrap_or_default()
}

/// Bytes that an entry takes on the disk.
pub(crate) fn disk_bytes(entry: &Path) -> u64 {
    let of = |name| fs::symlink_metadata(entry.join(name)).map_or(0, |stat| stat.blocks() * 512);
    [DATA, MAP, TREE].into_iter().map(of).sum()
}

/// Calls `act` for each entry; what is none is passed over.
pub(crate) fn for_each(
    layout: &Layout,
    disk: &Disk,
    act: &mut dyn FnMut(ContentKey, PathBuf),
) -> io::Result<()> {
    let top = layout.entries();
    disk.announce(Step::List, &top)?;
    layout.check_own()?;
    let groups = match fs::read_dir(&top) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        groups => groups?,
    };
    for group in groups {
        let Ok(entries) = fs::read_dir(group?.path()) else { continue };
        for entry in entries {
            let entry = entry?;
            let key = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if let Some(key) = key {
                act(key, entry.path());
            }
        }
    }
    Ok(())
}

/// What the cache holds, counted.
pub(crate) fn usage(layout: &Layout, disk: &Disk) -> io::Result<Usage> {
    let mut usage = Usage::default();
    for_each(layout, disk, &mut |_, path| {
        usage = usage.plus(Usage { bytes: disk_bytes(&path), entries: 1 });
    })?;
    Ok(usage)
}

/// All about one entry; `None` if it is gone.
pub(crate) fn report(
    key: ContentKey,
    path: &Path,
    pins: &Pins,
    disk: &Disk,
) -> io::Result<Option<EntryReport>> {
    let Some(entry) = Entry::open(path, key, disk)? else { return Ok(None) };
    let (shape, units, names) = (Shape::new(key.size), entry.units()?, Names::load(path));
    let unit_count = shape.unit_count();
    let has_last = unit_count > 0 && units.contains(unit_count - 1);
    let short = if has_last { unit_count * UNIT_BYTES as u64 - key.size } else { 0 };
    Ok(Some(EntryReport {
        key,
        cached_bytes: units.count() * UNIT_BYTES as u64 - short,
        disk_bytes: disk_bytes(path),
        is_whole: units.count() == unit_count,
        is_pinned: pins.cover(&names),
        used_ns: standing(path).used_ns,
        names: names.iter().map(|seen| (seen.name.clone(), seen.version)).collect(),
    }))
}
