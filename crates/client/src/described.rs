//! What a manifest says of a file, used without asking the publisher again.

use byname_security::trust::Trusted;
use byname_transfer::discovery::Discovered;
use byname_transfer::metadata::{ContentRoot, Metadata};
use byname_transfer::naming::last_segment;
use rustix::fs::FileType;

use crate::file_job::{FileContext, hash_file};
use crate::listing::{Described, Listing};
use crate::local_dir::LocalDir;
use crate::part_file::{Attributes, is_part_name, os_name, set_attributes};
use crate::progress::{Event, FileOutcome, FileReport};
use crate::small_files::{Item, ItemState};

/// The version of a file that its directory's manifest describes; `None` if that does not suffice
/// to fetch it.
///
/// There is no packet that says it of the file alone: the manifest's is what proves it.
pub(crate) fn known(listing: &Listing, described: &Described<'_>) -> Option<Discovered> {
    let details = described.details?;
    let version = details.version?;
    let (root, size) = (version.root?, details.size?);
    let name = listing.name.with_generic(details.name).with_version(version.number);
    let metadata = Metadata {
        last_segment: Some(last_segment(size, version.segment_bytes)),
        segment_size: Some(version.segment_bytes),
        size: Some(size),
        mode: Some(details.mode),
        mtime_ns: details.mtime_ns,
        root: ContentRoot::Known(root),
        ..Metadata::new(name)
    };
    let Discovered { trust, is_fresh, age_ns, .. } = &listing.discovered;
    Some(Discovered {
        metadata,
        version: version.number,
        trust: trust.clone(),
        packet: Vec::new(),
        certificates: Vec::new(),
        is_fresh: *is_fresh,
        age_ns: *age_ns,
    })
    .filter(|known| known.trust != Trusted::Insecure || known.metadata.size.is_some())
}

fn attributes(described: &Described<'_>) -> Attributes {
    let details = described.details;
    Attributes {
        mode: details.map(|details| details.mode),
        mtime_ns: details.and_then(|details| details.mtime_ns),
    }
}

impl Item {
    /// A file that is small.
    pub(crate) fn new(described: &Described<'_>) -> Option<Self> {
        let details = described.details?;
        let version = details.version?;
        Some(Item {
            name: details.name.into(),
            version: version.number,
            size: details.size?,
            root: version.root?,
            attributes: attributes(described),
            state: ItemState::Open { refusals: 0 },
        })
    }
}

impl FileContext<'_> {
    /// Whether a file is fetched with others of its kind: it has one segment, and its version and
    /// root are known.
    pub(crate) fn is_small(&self, described: &Described<'_>) -> bool {
        let is_plain = !self.options.sync && !is_part_name(described.entry.name);
        is_plain
            && described.details.is_some_and(|details| {
                let size = details.size.unwrap_or(u64::MAX);
                details
                    .version
                    .is_some_and(|version| version.root.is_some() && size <= version.segment_bytes)
            })
    }

    /// What need not be done for a file, because of what stands in its place; decided without
    /// asking anybody.
    pub(crate) fn look(&self, local: &LocalDir, described: &Described<'_>) -> Option<FileReport> {
        let details = described.details.filter(|_| !local.is_new)?;
        let version = details.version?;
        let (root, size) = (version.root?, details.size?);
        let target = local.file(os_name(details.name));
        let stat = target.stat().ok().flatten()?;
        let outcome = if self.options.no_clobber {
            FileOutcome::Kept
        } else {
            let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            let mtime_ns = u64::try_from(stat.st_mtime).ok().and_then(|seconds| {
                seconds.checked_mul(1_000_000_000)?.checked_add(stat.st_mtime_nsec)
            });
            if !is_file || u64::try_from(stat.st_size) != Ok(size) || mtime_ns != details.mtime_ns {
                return None;
            }
            if self.options.checksum {
                let file = target.open().ok()?;
                let found = hash_file(&target, &file, size, &self.config.stop)?;
                (*found.as_bytes() == root).then_some(())?;
            }
            if stat.st_mode & 0o777 != u32::from(details.mode) & 0o777 {
                set_attributes(&target.open().ok()?, attributes(described)).ok()?;
            }
            FileOutcome::Identical
        };
        let report = FileReport {
            outcome,
            version: version.number,
            size,
            fetched_bytes: 0,
            reused_bytes: 0,
        };
        self.tell(Event::FileDone { path: &target.shown, report: &report });
        Some(report)
    }
}
