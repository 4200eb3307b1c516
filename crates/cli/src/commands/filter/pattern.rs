//! Patterns of one flag, and which of them have matched anything.

use crate::exit::{Failure, Outcome};
use globset::{GlobBuilder, GlobMatcher};
use std::path::Path;

/// Patterns of `--include` or of `--exclude`.
#[derive(Debug, Clone)]
pub(super) struct Patterns {
    flag: &'static str,
    all: Vec<Pattern>,
}

#[derive(Debug, Clone)]
struct Pattern {
    text: String,
    matcher: GlobMatcher,
    /// It ended with `/`.
    is_of_directories: bool,
    has_matched: bool,
}

impl Patterns {
    pub(super) fn new(flag: &'static str, texts: &[String]) -> Outcome<Self> {
        let all = texts.iter().map(|text| Pattern::new(flag, text)).collect::<Outcome<_>>()?;
        Ok(Self { flag, all })
    }

    /// True if a pattern matches the path or a directory that it is in. Every pattern is tried, so
    /// that one which never matches can be named.
    pub(super) fn matches(&mut self, path: &Path, is_directory: bool) -> bool {
        let mut is_match = false;
        for pattern in &mut self.all {
            let matches = path.ancestors().any(|part| {
                let is_of_kind = is_directory || !pattern.is_of_directories || part != path;
                is_of_kind && !part.as_os_str().is_empty() && pattern.matcher.is_match(part)
            });
            pattern.has_matched |= matches;
            is_match |= matches;
        }
        is_match
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The patterns that have matched nothing, with their flag.
    pub(super) fn unmatched(&self) -> impl Iterator<Item = String> {
        let unmatched = self.all.iter().filter(|pattern| !pattern.has_matched);
        unmatched.map(|pattern| format!("{} '{}'", self.flag, pattern.text))
    }
}

impl Pattern {
    fn new(flag: &str, text: &str) -> Outcome<Self> {
        let wrong = |why: &str| Failure::usage(format!("{flag} '{text}': {why}"));
        if text.contains("{{") {
            return Err(wrong("regular expressions in {{ }} are not understood"));
        }
        let body = text.strip_suffix('/').unwrap_or(text);
        let anchored = body.strip_prefix('/');
        let body = anchored.unwrap_or(body);
        if body.is_empty() {
            return Err(wrong("matches nothing"));
        }
        if body.split('/').any(|part| part.contains("**") && part != "**") {
            return Err(wrong("** stands for whole directories, as in 'a/**/b'"));
        }
        let glob = if anchored.is_some() { body.to_owned() } else { format!("**/{body}") };
        let glob = GlobBuilder::new(&glob).literal_separator(true).build();
        let matcher = glob.map_err(|error| wrong(&error.kind().to_string()))?.compile_matcher();
        let is_of_directories = text.ends_with('/');
        Ok(Self { text: text.to_owned(), matcher, is_of_directories, has_matched: false })
    }
}
