//! Comparison of what stands at the target with the published version.

use std::fs::File;

use byname_security::tree::{Hash, TreeBuilder};
use byname_transfer::discovery::Discovered;
use byname_transfer::reader::ObjectPlan;
use rustix::fs::FileType;

use crate::download::context::{FileContext, attributes, listed_attributes};
use crate::download::local_dir::LocalDir;
use crate::download::part_file::{Target, os_name, set_attributes};
use crate::download::progress::{Event, FileOutcome, FileReport};
use crate::error::ClientError;
use crate::lookup::listing::ListedEntry;

/// Bytes hashed before others have their turn.
const SLICE_BYTES: usize = 1 << 20;

/// Findings at the target.
pub(crate) enum AtTarget {
    /// Nothing that counts.
    Nothing,
    /// Something that shall not be replaced.
    Kept,
    /// A file of the right size: it may be the version itself.
    Candidate(Box<Comparison>),
}

/// Looks at the target, without reading it.
pub(crate) fn look_at(
    target: &Target,
    context: &FileContext<'_>,
    plan: &ObjectPlan,
) -> Result<AtTarget, ClientError> {
    let Some(stat) = target.stat()? else { return Ok(AtTarget::Nothing) };
    if context.options.no_clobber {
        return Ok(AtTarget::Kept);
    }
    let (Some(root), Some(size)) = (plan.root(), plan.size) else { return Ok(AtTarget::Nothing) };
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if !is_file || u64::try_from(stat.st_size) != Ok(size) {
        return Ok(AtTarget::Nothing);
    }
    // A target that cannot be read may still be replaced.
    Ok(match target.open() {
        Ok(file) => AtTarget::Candidate(Box::new(Comparison::new(file, size, root))),
        Err(_) => AtTarget::Nothing,
    })
}

/// Comparison of a file with a version, a slice at a time: a file of gigabytes holds up nobody.
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
        context: &FileContext<'_>,
        discovered: &Discovered,
    ) -> Result<FileOutcome, ClientError> {
        let set = set_attributes(&self.file, attributes(discovered));
        set.map_err(|error| target.error(error))?;
        context.keep(&self.file, discovered);
        Ok(FileOutcome::Identical)
    }
}

/// Report of a file that need not be fetched, because of what stands in its place; decided
/// without asking anybody.
pub(crate) fn report_at(
    context: &FileContext<'_>,
    local: &LocalDir,
    listed: &ListedEntry<'_>,
) -> Option<FileReport> {
    let details = listed.details.filter(|_| !local.is_new)?;
    let version = details.version?;
    let (root, size) = (version.root?, details.size?);
    let target = local.file(os_name(details.name));
    let stat = target.stat().ok().flatten()?;
    let outcome = if context.options.no_clobber {
        FileOutcome::Kept
    } else {
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let mtime_ns = u64::try_from(stat.st_mtime).ok().and_then(|seconds| {
            seconds.checked_mul(1_000_000_000)?.checked_add(stat.st_mtime_nsec)
        });
        if !is_file || u64::try_from(stat.st_size) != Ok(size) || mtime_ns != details.mtime_ns {
            return None;
        }
        if context.options.checksum {
            // Larger ones are compared by a job of their own.
            let is_small = size <= SLICE_BYTES as u64;
            let file = is_small.then(|| target.open().ok()).flatten()?;
            let mut comparison = Comparison::new(file, size, Hash(root));
            let is_same = std::iter::from_fn(|| Some(comparison.step(&target))).flatten().next()?;
            is_same.then_some(())?;
        }
        if stat.st_mode & 0o777 != u32::from(details.mode) & 0o777 {
            set_attributes(&target.open().ok()?, listed_attributes(listed)).ok()?;
        }
        FileOutcome::Identical
    };
    let report = FileReport {
        outcome,
        version: version.number,
        size,
        fetched_bytes: 0,
        reused_bytes: 0,
        sources: Vec::new(),
    };
    context.report(Event::FileDone { path: &target.shown, report: &report });
    Some(report)
}
