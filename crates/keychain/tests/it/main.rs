//! The crate's integration tests, as one binary.

// Clippy exempts only the test functions themselves, not their helpers.
#![allow(clippy::unwrap_used)]

mod keychain;
mod trust_store;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use byname_packet::Name;

/// 2026-11-21 00:00 UTC.
pub(crate) const NOW_S: u64 = 1_795_219_200;
pub(crate) const NOW_NS: u64 = NOW_S * 1_000_000_000;

pub(crate) fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

pub(crate) fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// All paths below a directory.
pub(crate) fn walk(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            paths.extend(walk(&path));
        }
        paths.push(path);
    }
    paths.sort();
    paths
}
