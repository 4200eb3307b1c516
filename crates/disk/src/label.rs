//! The label: which disk of which site a directory is.
//!
//! It names its own inode. A directory that was copied has a label that was made for another file,
//! so the copy is refused: two disks with one number would both be believed. A file system that is
//! moved to another machine keeps its inodes.

use std::io::ErrorKind;

use byname_catalog::id::DiskId;
use byname_packet::Name;

use crate::error::DiskError;
use crate::layout::Layout;

const FIRST_LINE: &str = "byname disk 1";
/// No label is longer.
const BYTES_MAX: u64 = 4096;

/// What a label says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Name of the site.
    pub site: Name,
    /// The place that the disk is in, part of its name.
    pub place: String,
    /// Its number.
    pub disk: DiskId,
    /// How often it was begun anew.
    pub generation: u64,
}

impl Label {
    /// Puts the label in place of the one that is there, durably.
    pub(crate) fn write(&self, layout: &Layout) -> Result<(), DiskError> {
        let path = layout.root.join("label.new");
        let files = &layout.files;
        let mut file = files.create(&path).map_err(DiskError::at(&path))?;
        let inode = file.facts().map_err(DiskError::at(&path))?.inode;
        let text = format!(
            "{FIRST_LINE}\nsite {}\nplace {}\ndisk {}\ngeneration {}\ninode {inode}\n",
            self.site, self.place, self.disk.0, self.generation
        );
        file.write(text.as_bytes()).map_err(DiskError::at(&path))?;
        file.sync().map_err(DiskError::at(&path))?;
        files.rename(&path, &layout.label()).map_err(DiskError::at(&path))?;
        files.sync_directory(&layout.root).map_err(DiskError::at(&layout.root))
    }

    /// Reads the label of a directory.
    pub(crate) fn read(layout: &Layout) -> Result<Self, DiskError> {
        let path = layout.label();
        let facts = layout.files.facts(&path).map_err(|source| match source.kind() {
            ErrorKind::NotFound => DiskError::NoLabel { path: layout.root.clone() },
            _ => DiskError::Io { path: path.clone(), source },
        })?;
        let malformed = |what| DiskError::BadLabel { path: path.clone(), what };
        if facts.len > BYTES_MAX {
            return Err(malformed("it is too long"));
        }
        let octets = layout.files.read(&path, BYTES_MAX).map_err(DiskError::at(&path))?;
        let text = String::from_utf8(octets).map_err(|_| malformed("it is no text"))?;
        let mut lines = text.lines();
        if lines.next() != Some(FIRST_LINE) {
            return Err(malformed("the first line is not that of this version"));
        }
        let mut value = |key: &str| {
            let line = lines.next()?.strip_prefix(key)?.strip_prefix(' ')?;
            Some(line.to_owned())
        };
        let site = value("site").and_then(|text| text.parse().ok());
        let place = value("place");
        let disk = value("disk").and_then(|text| text.parse().ok()).map(DiskId);
        let generation = value("generation").and_then(|text| text.parse().ok());
        let inode = value("inode").and_then(|text| text.parse::<u64>().ok());
        let label = Self {
            site: site.ok_or(malformed("no site"))?,
            place: place.ok_or(malformed("no place"))?,
            disk: disk.ok_or(malformed("no number of a disk"))?,
            generation: generation.ok_or(malformed("no generation"))?,
        };
        if inode.ok_or(malformed("no inode"))? != facts.inode {
            let (path, disk) = (layout.root.clone(), label.disk.0);
            return Err(DiskError::Cloned { path, disk });
        }
        Ok(label)
    }
}
