//! Paths that `--files-from` names.

use crate::exit::{Failure, Outcome};
use std::collections::HashSet;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// Longest list that is read.
const LIST_BYTES_MAX: u64 = 1 << 30;

/// Files and directories to fetch, and the directories above them.
#[derive(Debug, Default, Clone)]
pub(super) struct Listed {
    wanted: HashSet<PathBuf>,
    above: HashSet<PathBuf>,
    published: HashSet<PathBuf>,
}

impl Listed {
    /// Reads a file, or standard input for `-`.
    pub(super) fn read(file: &Path) -> Outcome<Self> {
        let failed = |error| Failure::disk(file, error);
        let source: Box<dyn Read> = match file == Path::new("-") {
            true => Box::new(std::io::stdin()),
            false => Box::new(std::fs::File::open(file).map_err(failed)?),
        };
        let mut text = String::new();
        let read = source.take(LIST_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
        if read as u64 > LIST_BYTES_MAX {
            return Err(Failure::usage("--files-from: the list is larger than 1 GiB"));
        }
        Self::parse(&text)
    }

    /// One path a line; empty lines and those that begin with `#` or `;` say nothing.
    fn parse(text: &str) -> Outcome<Self> {
        let mut listed = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            let mut path = PathBuf::new();
            for component in Path::new(line).components() {
                match component {
                    Component::Normal(name) => path.push(name),
                    Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
                    Component::ParentDir => {
                        let place = index + 1;
                        let message = format!("--files-from, line {place}: {line:?} has a `..`");
                        return Err(Failure::usage(message));
                    }
                }
            }
            let above = path.ancestors().skip(1).filter(|part| !part.as_os_str().is_empty());
            listed.above.extend(above.map(Path::to_owned));
            listed.wanted.insert(path);
        }
        Ok(listed)
    }

    /// True if a path, or a directory that it is in, is named, or if it is above one that is.
    pub(super) fn has(&self, path: &Path, is_directory: bool) -> bool {
        path.ancestors().any(|part| self.wanted.contains(part))
            || (is_directory && self.above.contains(path))
    }

    /// The publisher has this path.
    pub(super) fn note(&mut self, path: &Path) {
        if self.wanted.contains(path) {
            self.published.insert(path.to_owned());
        }
    }

    /// Paths that are named and not published.
    pub(super) fn missing(&self) -> Vec<PathBuf> {
        let is_whole = |path: &&PathBuf| path.as_os_str().is_empty();
        let missing = self.wanted.difference(&self.published).filter(|path| !is_whole(path));
        let mut missing: Vec<PathBuf> = missing.cloned().collect();
        missing.sort();
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::Listed;
    use std::path::{Path, PathBuf};

    #[test]
    fn a_directory_stands_for_what_is_in_it() {
        let mut listed = Listed::parse("# a list\n\n./a/b.txt\n/sub/\n; no\n").unwrap();
        for (path, is_directory, has) in [
            ("a", true, true),
            ("a/b.txt", false, true),
            ("a/c.txt", false, false),
            ("sub", true, true),
            ("sub/deep/x", false, true),
            ("no", false, false),
        ] {
            assert_eq!(listed.has(Path::new(path), is_directory), has, "{path}");
        }
        listed.note(Path::new("sub"));
        assert_eq!(listed.missing(), [PathBuf::from("a/b.txt")]);
        assert!(Listed::parse("../x").is_err());
        assert!(Listed::parse(".").unwrap().has(Path::new("x"), false), "everything");
    }
}
