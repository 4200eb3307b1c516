//! Comparison of what stands at the target with the published version.

use std::fs::File;

use byname_security::tree::{Hash, TreeBuilder};
use byname_transfer::discovery::Discovered;
use byname_transfer::reader::ObjectPlan;
use rustix::fs::{FileType, Stat};

use crate::download::context::{DownloadOptions, attributes, listed_attributes};
use crate::download::copies::Copies;
use crate::download::part_file::{Attributes, Target, set_attributes};
use crate::download::progress::{FileOutcome, FileReport};
use crate::download::reading::Prepared;
use crate::error::ClientError;
use crate::lookup::listing::ListedEntry;

/// Bytes hashed before others have their turn.
const SLICE_BYTES: usize = 1 << 20;

/// Findings at the target.
pub(crate) enum AtTarget {
    /// Something that shall not be replaced.
    Kept,
    /// A file of the right size: it may be the version itself.
    Candidate(Box<Comparison>),
    /// Nothing that counts: the part file is open.
    Nothing(Prepared),
}

/// Looks at the target, without reading it, and opens the part file if that is needed.
pub(crate) fn look_at(
    target: &Target,
    options: DownloadOptions,
    plan: &ObjectPlan,
) -> Result<AtTarget, ClientError> {
    match candidate_at(target, options, plan)? {
        Some(found) => Ok(found),
        None => Prepared::open(target, plan).map(AtTarget::Nothing),
    }
}

fn candidate_at(
    target: &Target,
    options: DownloadOptions,
    plan: &ObjectPlan,
) -> Result<Option<AtTarget>, ClientError> {
    let Some(stat) = target.stat()? else { return Ok(None) };
    if options.no_clobber {
        return Ok(Some(AtTarget::Kept));
    }
    let (Some(root), Some(size)) = (plan.root(), plan.size) else { return Ok(None) };
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if !is_file || u64::try_from(stat.st_size) != Ok(size) {
        return Ok(None);
    }
    // A target that cannot be read may still be replaced.
    let comparison = target.open().ok().map(|file| Comparison::new(file, size, root));
    Ok(comparison.map(|comparison| AtTarget::Candidate(Box::new(comparison))))
}

/// Comparison of a file with a version, a slice at a time: its caller can stop it.
pub(crate) struct Comparison {
    file: File,
    root: Hash,
    builder: Option<TreeBuilder>,
    buffer: Vec<u8>,
    offset: u64,
}

impl Comparison {
    fn new(file: File, size: u64, root: Hash) -> Self {
        let builder = Some(TreeBuilder::new(size));
        Comparison { file, root, builder, buffer: vec![0; SLICE_BYTES], offset: 0 }
    }

    /// Hashes the next slice. Says whether it is the same when that is certain.
    pub(crate) fn step(&mut self, target: &Target) -> Option<bool> {
        let read = target.disk.read_at(&self.file, &target.shown, &mut self.buffer, self.offset);
        match (read, &mut self.builder) {
            (Ok(0), builder) => {
                let tree = builder.take().and_then(|builder| builder.finish().ok());
                Some(tree.is_some_and(|tree| tree.root == self.root))
            }
            (Ok(count), Some(builder)) => {
                self.offset += count as u64;
                builder.push(&self.buffer[..count]).is_err().then_some(false)
            }
            (Err(error), _) if error.kind() == std::io::ErrorKind::Interrupted => None,
            _ => Some(false),
        }
    }

    /// The file is the version: gives it what else the publisher says of it.
    pub(crate) fn take_over(
        &self,
        target: &Target,
        copies: Option<&Copies>,
        discovered: &Discovered,
    ) -> Result<(), ClientError> {
        let set = set_attributes(&self.file, attributes(discovered));
        set.map_err(|error| target.error(error))?;
        if let Some(copies) = copies {
            copies.keep_file(&self.file, discovered);
        }
        Ok(())
    }
}

/// What a manifest says of a file that may stand in its place already.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) version: u64,
    pub(crate) root: [u8; 32],
    pub(crate) size: u64,
    pub(crate) attributes: Attributes,
}

impl Expected {
    /// `None` if it says too little.
    pub(crate) fn new(listed: &ListedEntry<'_>) -> Option<Self> {
        let details = listed.details?;
        let version = details.version?;
        let (root, size) = (version.root?, details.size?);
        let attributes = listed_attributes(listed);
        Some(Expected { version: version.number, root, size, attributes })
    }

    /// Outcome of a file that need not be fetched, because of what stands in its place, which has
    /// this status; decided without asking anybody.
    pub(crate) fn outcome_at(
        &self,
        target: &Target,
        stat: &Stat,
        options: DownloadOptions,
    ) -> Option<FileOutcome> {
        if options.no_clobber {
            return Some(FileOutcome::Kept);
        }
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let mtime_ns = u64::try_from(stat.st_mtime).ok().and_then(|seconds| {
            seconds.checked_mul(1_000_000_000)?.checked_add(stat.st_mtime_nsec)
        });
        let is_size = u64::try_from(stat.st_size) == Ok(self.size);
        if !is_file || !is_size {
            return None;
        }
        let has_time = mtime_ns == self.attributes.mtime_ns;
        // One of another time may have the same bytes: reading it costs less than fetching it.
        if options.checksum || !has_time {
            // Larger ones are compared by a job of their own.
            let is_small = self.size <= SLICE_BYTES as u64;
            let file = is_small.then(|| target.open().ok()).flatten()?;
            let mut comparison = Comparison::new(file, self.size, Hash(self.root));
            let is_same = std::iter::from_fn(|| Some(comparison.step(target))).flatten().next()?;
            is_same.then_some(())?;
        }
        let mode = u32::from(self.attributes.mode.unwrap_or(0));
        if stat.st_mode & 0o777 != mode & 0o777 || !has_time {
            set_attributes(&target.open().ok()?, self.attributes).ok()?;
        }
        Some(FileOutcome::Identical)
    }

    /// Report of a file that is left as it is.
    pub(crate) fn untouched(&self, outcome: FileOutcome) -> FileReport {
        untouched(outcome, self.version, self.size)
    }
}

/// Report of a file that is left as it is.
pub(crate) fn untouched(outcome: FileOutcome, version: u64, size: u64) -> FileReport {
    let (fetched_bytes, reused_bytes, sources) = (0, 0, Vec::new());
    FileReport { outcome, version, size, fetched_bytes, reused_bytes, sources }
}
