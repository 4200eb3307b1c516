//! Copies of the tree with some of its files changed, built in the same folder as the tree.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Larger files are nothing that is built from.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Text of the workspace's manifest that says its version, and the same with a suffix: cargo tells
/// packages of a workspace apart by name and version, not by where the workspace lies.
pub(crate) fn version_with(root: &Path, suffix: &str) -> Result<(String, String)> {
    let manifest: toml::Table = fs::read_to_string(root.join("Cargo.toml"))?.parse()?;
    let number = manifest["workspace"]["package"]["version"].as_str().context("a version")?;
    let line = |end: &str| format!("[workspace.package]\nversion = \"{number}{end}\"");
    Ok((line(""), line(suffix)))
}

/// Folder in which the tree at `root` and its copies are built: libraries from elsewhere are the
/// same for all.
pub(crate) fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), |it| root.join(it))
}

/// Makes `tree` a copy of what git tracks, or would, with the text of `changed` files; what is the
/// same is not written again, so that it is not built again.
pub(crate) fn make(root: &Path, tree: &Path, changed: &BTreeMap<String, String>) -> Result<()> {
    for path in crate::sources::paths(root)? {
        let (from, to) = (root.join(&path), tree.join(&path));
        let Ok(status) = from.symlink_metadata() else {
            let _ = fs::remove_file(to);
            continue;
        };
        if !status.is_file() || status.len() > FILE_BYTES_MAX {
            continue;
        }
        let bytes = match changed.get(&path) {
            Some(text) => text.clone().into_bytes(),
            None => fs::read(&from).with_context(|| format!("cannot read {path}"))?,
        };
        if fs::read(&to).is_ok_and(|there| there == bytes) {
            continue;
        }
        fs::create_dir_all(to.parent().unwrap_or(tree))?;
        fs::write(&to, bytes).with_context(|| format!("cannot write {}", to.display()))?;
    }
    Ok(())
}
