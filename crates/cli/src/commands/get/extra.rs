//! Local entries that are not published, which `--delete` removes.

use crate::commands::filter::{Candidate, Filter};
use crate::exit::{Failure, Outcome};
use crate::walk;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Something that is local only.
#[derive(Debug)]
pub(super) struct Extra {
    /// Relative to the target.
    pub(super) path: PathBuf,
    pub(super) is_directory: bool,
}

/// Outcome of `--delete`.
#[derive(Debug, Default)]
pub(super) struct Deleted {
    pub(super) entries: Vec<Extra>,
    /// What could not be removed, and why.
    pub(super) failures: Vec<String>,
}

/// Everything below `target` that the publisher has not, what is in a directory before it. What the
/// filter leaves out stays, and so do the directories that it is in.
pub(super) fn find(target: &Path, filter: &mut Filter) -> Outcome<Vec<Extra>> {
    let found = match walk::local(target) {
        Ok(found) => found,
        // Nothing was fetched yet.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Failure::disk(target, error)),
    };
    let mut extra = Vec::new();
    let mut staying: Vec<PathBuf> = Vec::new();
    for (path, kind) in found.into_iter().rev() {
        let is_directory = kind.is_dir();
        if filter.was_published(&path) {
            continue;
        }
        let found = std::fs::symlink_metadata(target.join(&path)).ok();
        let modified = found.as_ref().and_then(|found| found.modified().ok());
        let since = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let entry = Candidate {
            path: &path,
            is_directory,
            size: found.map(|found| found.len()),
            mtime_ns: since.and_then(|since| u64::try_from(since.as_nanos()).ok()),
        };
        let holds_some = staying.last().is_some_and(|kept| kept.starts_with(&path));
        if holds_some || filter.excludes(entry) {
            staying.push(path);
        } else {
            extra.push(Extra { path, is_directory });
        }
    }
    Ok(extra)
}

/// Removes what [`find`] finds; goes on after failures.
pub(super) fn delete(target: &Path, filter: &mut Filter) -> Outcome<Deleted> {
    let mut deleted = Deleted::default();
    for extra in find(target, filter)? {
        let full = target.join(&extra.path);
        let removed = match extra.is_directory {
            true => std::fs::remove_dir(&full),
            false => std::fs::remove_file(&full),
        };
        match removed {
            Ok(()) => deleted.entries.push(extra),
            // A part file is in it, or something that came meanwhile.
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
            Err(error) => {
                let full = full.display();
                deleted.failures.push(format!("{full}: cannot be removed: {error}"));
            }
        }
    }
    Ok(deleted)
}
