//! The files the checks read: what git tracks, plus what it would track if it were added.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::command::output_of;

/// Larger files are data, not something a person wrote.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// A text file of the tree.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// Path below the workspace root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn is_rust(&self) -> bool {
        self.extension() == "rs"
    }

    /// A file that a person programs in, as opposed to data, documents and settings.
    pub(crate) fn is_code(&self) -> bool {
        matches!(self.extension(), "rs" | "sh" | "py" | "ts" | "tsx" | "js" | "mjs" | "go")
            || self.path.ends_with("Makefile")
            || self.text.starts_with("#!")
    }

    fn extension(&self) -> &str {
        Path::new(&self.path).extension().and_then(|e| e.to_str()).unwrap_or_default()
    }

    /// A document that people read.
    pub(crate) fn is_markdown(&self) -> bool {
        self.extension() == "md"
    }

    pub(crate) fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// The folder above this crate, wherever the checkout lives.
pub(crate) fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies inside the workspace").to_path_buf()
}

/// Every text file of the tree at `root`, in order of path.
pub(crate) fn read(root: &Path) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for path in paths(root)? {
        let file = root.join(&path);
        // Deleted but still in the index; a link is looked at where it points to.
        let Ok(status) = file.symlink_metadata() else { continue };
        if !status.is_file() || status.len() > FILE_BYTES_MAX {
            continue;
        }
        let bytes = std::fs::read(&file).with_context(|| format!("cannot read {path}"))?;
        if let Ok(text) = String::from_utf8(bytes)
            && !text.contains('\0')
        {
            sources.push(Source { path, text });
        }
    }
    Ok(sources)
}

/// The line (1-based) of the first line of `text` that satisfies `wanted`, or 1.
pub(crate) fn line_where(text: &str, wanted: impl Fn(&str) -> bool) -> usize {
    text.lines().position(wanted).map_or(1, |index| index + 1)
}

/// Paths of all files of the tree, in order.
pub(crate) fn paths(root: &Path) -> Result<Vec<String>> {
    let mut paths = if root.join(".git").exists() {
        let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let listing = output_of(root, "git", &arguments)?;
        let listing = String::from_utf8_lossy(&listing).into_owned();
        listing.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect()
    } else {
        let mut found = Vec::new();
        walk(root, "", &mut found)?;
        found
    };
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// For an unpacked source archive, which has no git: everything but build products.
fn walk(root: &Path, below: &str, found: &mut Vec<String>) -> Result<()> {
    for entry in std::fs::read_dir(root.join(below))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if matches!(name.as_str(), "target" | "node_modules" | "__pycache__" | ".cache") {
            continue;
        }
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        if entry.file_type()?.is_dir() {
            walk(root, &path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(root: &Path) -> Vec<String> {
        read(root).unwrap().into_iter().map(|source| source.path).collect()
    }

    #[test]
    fn an_unpacked_archive_is_read_without_its_build_products() {
        let root = tempfile::tempdir().unwrap();
        for (path, bytes) in [
            ("src/a.rs", b"//! A.\n".as_slice()),
            ("target/debug/b.rs", b"//! B.\n"),
            ("vectors/c.bin", b"\x06\x00\xff"),
        ] {
            let file = root.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, bytes).unwrap();
        }
        assert_eq!(names(root.path()), ["src/a.rs"]);
    }

    #[test]
    fn files_not_yet_added_count_and_ignored_ones_do_not() {
        let root = tempfile::tempdir().unwrap();
        output_of(root.path(), "git", &["init", "-q"]).unwrap();
        std::fs::write(root.path().join(".gitignore"), "*.log\n").unwrap();
        std::fs::write(root.path().join("new.rs"), "//! New.\n").unwrap();
        std::fs::write(root.path().join("noise.log"), "noise\n").unwrap();
        assert_eq!(names(root.path()), [".gitignore", "new.rs"]);
    }
}
