//! Whether what stands at the target is the published version already.

use std::fs::File;

use byname_security::tree::{Hash, TreeBuilder};
use byname_transfer::discovery::Discovered;
use byname_transfer::reader::ObjectPlan;
use rustix::fs::FileType;

use crate::config::Stop;
use crate::download::context::{FileContext, attributes, listed_attributes};
use crate::download::local_dir::LocalDir;
use crate::download::part_file::{Target, os_name, set_attributes};
use crate::download::progress::{Event, FileOutcome, FileReport};
use crate::error::ClientError;
use crate::lookup::listing::Described;

/// What there is to say of the target if nothing has to be read.
pub(crate) fn outcome_at(
    target: &Target,
    context: &FileContext<'_>,
    discovered: &Discovered,
    plan: &ObjectPlan,
) -> Result<Option<FileOutcome>, ClientError> {
    let Some(stat) = target.stat()? else { return Ok(None) };
    if context.options.no_clobber {
        return Ok(Some(FileOutcome::Kept));
    }
    let (Some(root), Some(size)) = (plan.root(), plan.size) else { return Ok(None) };
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if !is_file || u64::try_from(stat.st_size) != Ok(size) {
        return Ok(None);
    }
    // A target that cannot be read may still be replaced.
    let Ok(file) = target.open() else { return Ok(None) };
    if hash_file(target, &file, size, &context.config.stop) != Some(root) {
        return Ok(None);
    }
    set_attributes(&file, attributes(discovered)).map_err(|error| target.error(error))?;
    context.keep(&file, discovered);
    Ok(Some(FileOutcome::Identical))
}

/// What need not be done for a file, because of what stands in its place; decided without
/// asking anybody.
pub(crate) fn report_at(
    context: &FileContext<'_>,
    local: &LocalDir,
    described: &Described<'_>,
) -> Option<FileReport> {
    let details = described.details.filter(|_| !local.is_new)?;
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
            let file = target.open().ok()?;
            let found = hash_file(&target, &file, size, &context.config.stop)?;
            (*found.as_bytes() == root).then_some(())?;
        }
        if stat.st_mode & 0o777 != u32::from(details.mode) & 0o777 {
            set_attributes(&target.open().ok()?, listed_attributes(described)).ok()?;
        }
        FileOutcome::Identical
    };
    let report =
        FileReport { outcome, version: version.number, size, fetched_bytes: 0, reused_bytes: 0 };
    context.report(Event::FileDone { path: &target.shown, report: &report });
    Some(report)
}

/// The root of the file at `target`, `None` if it has another size, cannot be read, or there is no
/// time for it.
fn hash_file(target: &Target, file: &File, size: u64, stop: &Stop) -> Option<Hash> {
    let mut builder = TreeBuilder::new(size);
    let mut buffer = vec![0; 1 << 20];
    let mut offset = 0;
    while !stop.is_requested() {
        match target.disk.read_at(file, &target.shown, &mut buffer, offset) {
            Ok(0) => return builder.finish().ok().map(|tree| tree.root),
            Ok(count) => {
                builder.push(&buffer[..count]).ok()?;
                offset += count as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    None
}
