//! Directories of one user, and small files replaced whole.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes a directory and those above it, for this user alone.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
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
