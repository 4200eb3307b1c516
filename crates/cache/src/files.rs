//! Directories of one user, and small files replaced whole.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Permission of the group, or of everybody, to write.
const OTHERS_WRITE: u32 = 0o022;
/// In such a directory nobody removes or renames what is another's.
const STICKY: u32 = 0o1000;

/// Makes a directory and those above it, for this user alone.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Refuses a directory that others may change: by links in it they would say which files of this
/// user are written to, and what is removed. One that is missing is nobody's.
pub(crate) fn check_own(path: &Path) -> io::Result<()> {
    let status = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        status => status?,
    };
    let own = rustix::process::geteuid().as_raw();
    if status.uid() == own && status.mode() & OTHERS_WRITE == 0 {
        return Ok(());
    }
    let (uid, mode) = (status.uid(), status.mode() & 0o7777);
    let reason = format!(
        "{} is not this user's alone (owner {uid}, mode {mode:o}): others could lead writes \
         elsewhere; a cache belongs to user {own}, without write permission for others",
        path.display()
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
}

/// Refuses a directory in which others may replace what this user has made: a socket there is not
/// for sure this user's, and what is done to it by its name may be done to something else.
pub(crate) fn check_keeps(path: &Path) -> io::Result<()> {
    let status = fs::metadata(path)?;
    let (uid, mode) = (status.uid(), status.mode() & 0o7777);
    let is_kept = mode & OTHERS_WRITE == 0 || mode & STICKY != 0;
    if is_kept && (uid == 0 || uid == rustix::process::geteuid().as_raw()) {
        return Ok(());
    }
    let reason = format!(
        "others may replace what is in {} (owner {uid}, mode {mode:o}); it has to belong to this \
         user or root, without write permission for others",
        path.display()
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
}

/// A path beside `path` that no other process or thread uses.
pub(crate) fn beside(path: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    path.with_extension(format!("new-{}-{count}", std::process::id()))
}

/// Replaces a small file; whoever reads it sees the old or the new one.
pub(crate) fn replace(path: &Path, octets: &[u8]) -> io::Result<()> {
    let temporary = beside(path);
    let written = fs::write(&temporary, octets).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Room on the file system of this directory for users other than root.
pub(crate) fn free_bytes(directory: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(directory)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}
