//! Choice of the entries of a tree that are fetched or written.
//!
//! Patterns mean what they mean to rclone: one that begins with `/` is matched against the whole
//! path relative to the directory asked for, another one against the end of it, from the begin of
//! a component on; `*` does not match `/`, `**` does. One that matches a directory stands for all
//! that is in it. Includes concern files only, so that directories are looked into; excludes
//! concern both and win.

mod list;
mod pattern;

use crate::exit::{Failure, Outcome};
use byname_client::TreeEntry;
use byname_profile::units;
use list::Listed;
use pattern::Patterns;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Flags that choose entries.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct FilterArgs {
    /// Take only files that match, or that are in a directory that matches (repeatable; with -r).
    #[arg(long, value_name = "GLOB", requires = "recursive")]
    include: Vec<String>,
    /// Leave out files and directories that match (repeatable; with -r); wins over --include.
    #[arg(long, value_name = "GLOB", requires = "recursive")]
    exclude: Vec<String>,
    /// Take what FILE names, one relative path a line; `-` is standard input (with -r).
    #[arg(long, value_name = "FILE", requires = "recursive")]
    files_from: Option<PathBuf>,
    /// Leave out files smaller than this (with -r).
    #[arg(long, value_name = "SIZE", requires = "recursive", value_parser = units::size)]
    min_size: Option<u64>,
    /// Leave out files larger than this (with -r).
    #[arg(long, value_name = "SIZE", requires = "recursive", value_parser = units::size)]
    max_size: Option<u64>,
    /// Leave out files that were changed less than this ago: 90s, 36h, 7d (with -r).
    #[arg(long, value_name = "AGE", requires = "recursive", value_parser = units::age)]
    min_age: Option<Duration>,
    /// Leave out files that were changed longer than this ago (with -r).
    #[arg(long, value_name = "AGE", requires = "recursive", value_parser = units::age)]
    max_age: Option<Duration>,
}

/// An entry that is decided about, published or local.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate<'a> {
    pub(crate) path: &'a Path,
    pub(crate) is_directory: bool,
    pub(crate) size: Option<u64>,
    pub(crate) mtime_ns: Option<u64>,
}

impl<'a> From<&TreeEntry<'a>> for Candidate<'a> {
    fn from(entry: &TreeEntry<'a>) -> Self {
        let (path, size, mtime_ns) = (entry.path, entry.size, entry.mtime_ns);
        Self { path, is_directory: entry.is_directory(), size, mtime_ns }
    }
}

/// Decides about entries and remembers what was published.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    include: Patterns,
    exclude: Patterns,
    listed: Option<Listed>,
    sizes: (Option<u64>, Option<u64>),
    /// Bounds of the time of change, in nanoseconds since the Unix epoch.
    times_ns: (Option<u64>, Option<u64>),
    /// Files whose size or time is not announced, and which were therefore not judged by it.
    unjudged_count: u64,
    published: HashSet<PathBuf>,
}

impl Filter {
    pub(crate) fn new(args: &FilterArgs) -> Outcome<Self> {
        let listed = args.files_from.as_deref().map(Listed::read).transpose()?;
        let now = SystemTime::now();
        let before = |age: Duration| {
            let time = now.checked_sub(age)?.duration_since(UNIX_EPOCH).ok()?;
            u64::try_from(time.as_nanos()).ok()
        };
        if args.min_size.zip(args.max_size).is_some_and(|(min, max)| min > max) {
            return Err(Failure::usage("--min-size is above --max-size: nothing is left"));
        }
        Ok(Self {
            include: Patterns::new("--include", &args.include)?,
            exclude: Patterns::new("--exclude", &args.exclude)?,
            listed,
            sizes: (args.min_size, args.max_size),
            times_ns: (args.max_age.and_then(before), args.min_age.and_then(before)),
            unjudged_count: 0,
            published: HashSet::new(),
        })
    }

    /// True if anything may be left out.
    pub(crate) fn is_active(&self) -> bool {
        let bounds = [self.sizes, self.times_ns];
        !self.include.is_empty()
            || !self.exclude.is_empty()
            || self.listed.is_some()
            || bounds.iter().any(|(low, high)| low.is_some() || high.is_some())
    }

    /// True if an entry is fetched or written, or a directory entered.
    pub(crate) fn accepts(&mut self, entry: Candidate<'_>) -> bool {
        self.published.insert(entry.path.to_owned());
        if let Some(listed) = &mut self.listed {
            listed.note(entry.path);
        }
        let is_judged = |(low, high): (Option<u64>, Option<u64>), value: Option<u64>| {
            value.is_some() || (low.is_none() && high.is_none())
        };
        let is_known =
            is_judged(self.sizes, entry.size) && is_judged(self.times_ns, entry.mtime_ns);
        self.unjudged_count += u64::from(!entry.is_directory && !is_known);
        !self.excludes(entry)
    }

    /// True if the flags leave an entry out.
    pub(crate) fn excludes(&mut self, entry: Candidate<'_>) -> bool {
        let Candidate { path, is_directory, size, mtime_ns } = entry;
        if self.exclude.matches(path, is_directory) {
            return true;
        }
        if self.listed.as_ref().is_some_and(|listed| !listed.has(path, is_directory)) {
            return true;
        }
        if is_directory {
            return false;
        }
        if !self.include.is_empty() && !self.include.matches(path, false) {
            return true;
        }
        is_outside(self.sizes, size) || is_outside(self.times_ns, mtime_ns)
    }

    /// True if the publisher has an entry.
    pub(crate) fn was_published(&self, path: &Path) -> bool {
        self.published.contains(path)
    }

    /// Paths that were asked for by name and are not published.
    pub(crate) fn missing(&self) -> Vec<PathBuf> {
        self.listed.as_ref().map(Listed::missing).unwrap_or_default()
    }

    /// What a user should know of the flags once everything was looked at: a line each.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let unmatched = self.include.unmatched().chain(self.exclude.unmatched());
        let mut remarks: Vec<String> =
            unmatched.map(|pattern| format!("{pattern} matched nothing")).collect();
        if self.unjudged_count > 0 {
            let count = self.unjudged_count;
            remarks.push(format!("{count} files were not judged by size or age: not announced"));
        }
        remarks
    }
}

fn is_outside((low, high): (Option<u64>, Option<u64>), value: Option<u64>) -> bool {
    let is_below = value.zip(low).is_some_and(|(value, low)| value < low);
    is_below || value.zip(high).is_some_and(|(value, high)| value > high)
}

#[cfg(test)]
mod tests {
    use super::{Candidate, Filter, FilterArgs};
    use std::path::Path;

    fn filter(include: &[&str], exclude: &[&str]) -> Filter {
        let own = |globs: &[&str]| globs.iter().map(|glob| (*glob).to_owned()).collect();
        let (include, exclude) = (own(include), own(exclude));
        Filter::new(&FilterArgs { include, exclude, ..FilterArgs::default() }).unwrap()
    }

    fn entry(path: &str, is_directory: bool) -> Candidate<'_> {
        Candidate { path: Path::new(path), is_directory, size: None, mtime_ns: None }
    }

    #[test]
    fn patterns_mean_what_they_mean_to_rclone() {
        assert!(filter(&[], &[]).accepts(entry("a/b", false)));
        for (pattern, path, is_matched) in [
            ("*.root", "a.root", true),
            ("*.root", "sub/a.root", true),
            ("*.root", "a.txt", false),
            ("/*.root", "a.root", true),
            ("/*.root", "sub/a.root", false),
            ("logs/*", "logs/a", true),
            ("logs/*", "sub/logs/a", true),
            ("logs/*", "mylogs/a", false),
            ("/logs/*", "sub/logs/a", false),
            ("sub", "sub/deep/a", true),
            ("sub/", "sub/deep/a", true),
            ("sub/", "sub", false),
            ("/sub/**", "sub/deep/a", true),
            ("/a/**/z", "a/z", true),
            ("/a/**/z", "a/b/c/z", true),
            ("*.{h,cc}", "x/y.cc", true),
            ("[ab]?", "a1", true),
            ("*", "sub/deep/a", true),
        ] {
            let is_included = filter(&[pattern], &[]).accepts(entry(path, false));
            assert_eq!(is_included, is_matched, "--include {pattern}: {path}");
            let is_excluded = !filter(&[], &[pattern]).accepts(entry(path, false));
            assert_eq!(is_excluded, is_matched, "--exclude {pattern}: {path}");
        }
        let mut both = filter(&["*.txt"], &["b*", "tmp/"]);
        assert!(both.accepts(entry("a.txt", false)));
        assert!(!both.accepts(entry("b.txt", false)), "excludes win");
        assert!(both.accepts(entry("sub", true)), "directories are looked into");
        assert!(!both.accepts(entry("sub/tmp", true)), "but not one that is excluded");
        assert!(both.excludes(entry("tmp/a.txt", false)), "nor is what is in it touched");
    }

    #[test]
    fn patterns_that_mean_nothing_are_refused() {
        for pattern in ["[", "", "/", "a**b", "{{a.*}}"] {
            let include = vec![pattern.to_owned()];
            let made = Filter::new(&FilterArgs { include, ..FilterArgs::default() });
            assert!(made.is_err(), "{pattern}");
        }
    }

    #[test]
    fn a_pattern_that_matches_nothing_is_said() {
        let mut some = filter(&["a", "nosuch*"], &["/b"]);
        some.accepts(entry("x/a", false));
        some.accepts(entry("c", false));
        let remarks = some.remarks();
        assert_eq!(
            remarks,
            ["--include 'nosuch*' matched nothing", "--exclude '/b' matched nothing"]
        );
    }

    #[test]
    fn bounds_of_size_and_age() {
        let args = FilterArgs { min_size: Some(10), max_size: Some(20), ..FilterArgs::default() };
        let mut bounded = Filter::new(&args).unwrap();
        for (size, is_accepted) in [(9, false), (10, true), (20, true), (21, false)] {
            let entry = Candidate { size: Some(size), ..entry("a", false) };
            assert_eq!(bounded.accepts(entry), is_accepted, "{size}");
        }
        assert!(bounded.accepts(entry("a", false)), "of unknown size");
        assert_eq!(bounded.remarks().len(), 1);
        let hour = std::time::Duration::from_secs(3600);
        let mut young =
            Filter::new(&FilterArgs { max_age: Some(hour), ..FilterArgs::default() }).unwrap();
        let old = Candidate { mtime_ns: Some(1), ..entry("a", false) };
        let new = Candidate { mtime_ns: Some(u64::MAX), ..entry("a", false) };
        assert!(!young.accepts(old) && young.accepts(new));
    }
}
