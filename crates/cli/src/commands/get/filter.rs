//! Which entries of a tree are fetched.
//!
//! A glob with a `/` is matched against the path relative to the directory asked for, another one
//! against the last component. Includes concern files only, so that directories are looked into;
//! excludes concern both.

use crate::exit::{Failure, Outcome};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Flags that choose entries.
#[derive(Debug, clap::Args)]
pub(crate) struct FilterArgs {
    /// Fetch only files that match (repeatable; with -r).
    #[arg(long, value_name = "GLOB", requires = "recursive")]
    include: Vec<String>,
    /// Leave out files and directories that match (repeatable; with -r).
    #[arg(long, value_name = "GLOB", requires = "recursive")]
    exclude: Vec<String>,
    /// Fetch the files named in FILE, one relative path a line (with -r).
    #[arg(long, value_name = "FILE", requires = "recursive")]
    files_from: Option<PathBuf>,
}

#[derive(Debug, Clone)]
struct Globs {
    paths: GlobSet,
    names: GlobSet,
}

impl Globs {
    fn new(patterns: &[String]) -> Outcome<Self> {
        let mut paths = GlobSetBuilder::new();
        let mut names = GlobSetBuilder::new();
        for pattern in patterns {
            let glob = GlobBuilder::new(pattern.trim_start_matches('/'))
                .literal_separator(true)
                .build()
                .map_err(Failure::usage)?;
            if pattern.contains('/') { &mut paths } else { &mut names }.add(glob);
        }
        let paths = paths.build().map_err(Failure::usage)?;
        Ok(Self { paths, names: names.build().map_err(Failure::usage)? })
    }

    fn matches(&self, path: &Path) -> bool {
        let last = path.file_name().unwrap_or(OsStr::new(""));
        self.paths.is_match(path) || self.names.is_match(last)
    }

    fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.names.is_empty()
    }
}

/// Decides about entries and remembers what was published.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    include: Globs,
    exclude: Globs,
    /// Files named in a list, and the directories above them.
    listed: Option<(HashSet<PathBuf>, HashSet<PathBuf>)>,
    published: HashSet<PathBuf>,
}

impl Filter {
    pub(crate) fn new(args: &FilterArgs) -> Outcome<Self> {
        let listed = match &args.files_from {
            None => None,
            Some(file) => Some(read_list(file)?),
        };
        Ok(Self {
            include: Globs::new(&args.include)?,
            exclude: Globs::new(&args.exclude)?,
            listed,
            published: HashSet::new(),
        })
    }

    /// True if an entry is fetched, or a directory entered.
    pub(crate) fn accepts(&mut self, path: &Path, is_directory: bool) -> bool {
        self.published.insert(path.to_owned());
        !self.excludes(path, is_directory)
    }

    /// True if the flags leave an entry out.
    pub(crate) fn excludes(&self, path: &Path, is_directory: bool) -> bool {
        if self.exclude.matches(path) {
            return true;
        }
        if let Some((files, directories)) = &self.listed {
            let named =
                if is_directory { directories.contains(path) } else { files.contains(path) };
            if !named {
                return true;
            }
        }
        !is_directory && !self.include.is_empty() && !self.include.matches(path)
    }

    /// True if the publisher has an entry.
    pub(crate) fn was_published(&self, path: &Path) -> bool {
        self.published.contains(path)
    }

    /// Files that were asked for by name and are not published.
    pub(crate) fn missing(&self) -> Vec<PathBuf> {
        let Some((files, _)) = &self.listed else { return Vec::new() };
        let mut missing: Vec<PathBuf> =
            files.iter().filter(|path| !self.published.contains(*path)).cloned().collect();
        missing.sort();
        missing
    }
}

fn read_list(file: &Path) -> Outcome<(HashSet<PathBuf>, HashSet<PathBuf>)> {
    let text = std::fs::read_to_string(file).map_err(|error| Failure::disk(file, error))?;
    let mut files = HashSet::new();
    let mut directories = HashSet::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let path = PathBuf::from(line.trim_start_matches("./"));
        let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
        directories.extend(above.map(Path::to_owned));
        files.insert(path);
    }
    Ok((files, directories))
}

#[cfg(test)]
mod tests {
    use super::{Filter, FilterArgs};
    use std::path::Path;

    fn filter(include: &[&str], exclude: &[&str]) -> Filter {
        let own = |globs: &[&str]| globs.iter().map(|glob| (*glob).to_owned()).collect();
        let args = FilterArgs { include: own(include), exclude: own(exclude), files_from: None };
        Filter::new(&args).unwrap()
    }

    #[test]
    fn globs() {
        let mut all = filter(&[], &[]);
        assert!(all.accepts(Path::new("a/b"), false));
        let mut some = filter(&["*.root", "logs/*"], &["tmp", "x/*.root"]);
        for (path, is_directory, accepted) in [
            ("a.root", false, true),
            ("sub/a.root", false, true),
            ("a.txt", false, false),
            ("sub", true, true),
            ("logs/a", false, true),
            ("sub/logs/a", false, false),
            ("tmp", true, false),
            ("sub/tmp", false, false),
            ("x/a.root", false, false),
        ] {
            assert_eq!(some.accepts(Path::new(path), is_directory), accepted, "{path}");
        }
        let bad = FilterArgs { include: vec!["[".into()], exclude: vec![], files_from: None };
        assert!(Filter::new(&bad).is_err());
    }
}
