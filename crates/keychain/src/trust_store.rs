//! Whose keys count: one text file that people can read and edit.
//!
//! ```text
//! # comment
//! anchor SHA256:… /lab
//! revoked SHA256:…
//! ```
//! `anchor` trusts a key for the names under a prefix, in URI form; `revoked` never accepts a key.
//! A line that is none of these is an error that names file and line: trust is not guessed.
//! Changes keep comments and order.

use std::path::{Path, PathBuf};

use byname_packet::{Name, NameRef, UriError};
use byname_security::key::{KeyId, ParseKeyIdError};
use byname_security::trust::{Anchor, TrustPolicy};
use thiserror::Error;

use crate::files::{self, DirLock, FileError, OTHERS_WRITE};

const FILE: &str = "anchors";

/// Longest trust file; about ten thousand lines.
const FILE_BYTES_MAX: u64 = 1 << 20;

const HEADER: &str = "\
# Keys that byname trusts: \"anchor KEY NAME\" for the names under NAME, \"revoked KEY\" for none.
";

/// A trust store that cannot be read or changed.
#[derive(Debug, Error)]
pub enum TrustStoreError {
    /// The file or its directory cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is no text.
    #[error("{} is not text", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// A line says nothing known.
    #[error("{}:{line}: {problem}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// The fault.
        problem: LineProblem,
    },
}

/// Fault of a line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LineProblem {
    /// The line has another form.
    #[error("expected \"anchor SHA256:… /name\" or \"revoked SHA256:…\", found {text:?}")]
    Form {
        /// The line, shortened if long.
        text: String,
    },
    /// The key id is wrong.
    #[error("{0}")]
    Key(#[from] ParseKeyIdError),
    /// The name is wrong.
    #[error("{0}")]
    Name(#[from] UriError),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    /// Empty or a comment.
    Other,
    Anchor(Anchor),
    Revoked(KeyId),
}

#[derive(Debug, Clone)]
struct Line {
    text: String,
    entry: Entry,
}

/// The trust file of a user or machine.
#[derive(Debug)]
pub struct TrustStore {
    dir: PathBuf,
    lines: Vec<Line>,
}

impl TrustStore {
    /// Reads the trust file in `dir`; without one nothing is trusted.
    ///
    /// # Errors
    /// [`TrustStoreError`] if it cannot be read, has a line that says nothing known, or could be
    /// changed by other users.
    pub fn open(dir: &Path) -> Result<Self, TrustStoreError> {
        files::ensure_dir(dir, OTHERS_WRITE)?;
        Ok(Self { dir: dir.to_owned(), lines: read_lines(&dir.join(FILE))? })
    }

    /// The trust file.
    pub fn path(&self) -> PathBuf {
        self.dir.join(FILE)
    }

    /// Trusted keys in the order of the file.
    pub fn anchors(&self) -> impl Iterator<Item = &Anchor> {
        self.lines.iter().filter_map(|line| match &line.entry {
            Entry::Anchor(anchor) => Some(anchor),
            _ => None,
        })
    }

    /// Revoked keys in the order of the file.
    pub fn revoked(&self) -> impl Iterator<Item = KeyId> {
        self.lines.iter().filter_map(|line| match line.entry {
            Entry::Revoked(key) => Some(key),
            _ => None,
        })
    }

    /// The policy of the file: one that refuses unknown keys.
    pub fn policy(&self) -> TrustPolicy {
        policy_of(&self.lines)
    }

    /// Trusts `key` for the names under `prefix`; `false` if that was so already.
    ///
    /// # Errors
    /// [`TrustStoreError`]; the file is then unchanged.
    pub fn add_anchor(&mut self, prefix: Name, key: KeyId) -> Result<bool, TrustStoreError> {
        self.add(Entry::Anchor(Anchor { prefix, key }))
    }

    /// Never accepts `key` again; `false` if that was so already. Anchors of the key stay in the
    /// file and have no effect.
    ///
    /// # Errors
    /// [`TrustStoreError`]; the file is then unchanged.
    pub fn revoke(&mut self, key: KeyId) -> Result<bool, TrustStoreError> {
        self.add(Entry::Revoked(key))
    }

    /// Takes back a revocation; `false` if there was none.
    ///
    /// # Errors
    /// [`TrustStoreError`]; the file is then unchanged.
    pub fn unrevoke(&mut self, key: KeyId) -> Result<bool, TrustStoreError> {
        let mut was_revoked = false;
        self.change(|lines| {
            lines.retain(|line| {
                let is_it = line.entry == Entry::Revoked(key);
                was_revoked |= is_it;
                !is_it
            });
        })?;
        Ok(was_revoked)
    }

    /// Removes the anchors with exactly this prefix: of one key, or all. Returns those removed.
    ///
    /// # Errors
    /// [`TrustStoreError`]; the file is then unchanged.
    pub fn remove_anchors(
        &mut self,
        prefix: NameRef<'_>,
        key: Option<KeyId>,
    ) -> Result<Vec<Anchor>, TrustStoreError> {
        let mut removed = Vec::new();
        self.change(|lines| {
            lines.retain(|line| match &line.entry {
                Entry::Anchor(anchor)
                    if anchor.prefix.view() == prefix && key.is_none_or(|k| k == anchor.key) =>
                {
                    removed.push(anchor.clone());
                    false
                }
                _ => true,
            });
        })?;
        Ok(removed)
    }

    fn add(&mut self, entry: Entry) -> Result<bool, TrustStoreError> {
        let mut added = false;
        self.change(|lines| {
            if lines.iter().any(|line| line.entry == entry) {
                return;
            }
            if lines.is_empty() {
                let text = HEADER.trim_end().to_owned();
                lines.push(Line { text, entry: Entry::Other });
            }
            lines.push(Line { text: format_entry(&entry), entry });
            added = true;
        })?;
        Ok(added)
    }

    /// Reads the file again under the lock, applies a change and replaces it.
    fn change(&mut self, edit: impl FnOnce(&mut Vec<Line>)) -> Result<(), TrustStoreError> {
        let _lock = DirLock::take(&self.dir)?;
        let mut lines = read_lines(&self.path())?;
        let count = lines.len();
        edit(&mut lines);
        if lines.len() != count {
            let text: String = lines.iter().flat_map(|line| [line.text.as_str(), "\n"]).collect();
            if text.len() as u64 > FILE_BYTES_MAX {
                let (path, max) = (self.path(), FILE_BYTES_MAX);
                return Err(FileError::TooLong { path, max }.into());
            }
            files::replace(&self.dir, FILE, text.as_bytes())?;
        }
        self.lines = lines;
        Ok(())
    }
}

/// Reads the text of a trust file as a policy that refuses unknown keys.
///
/// # Errors
/// The number, from 1, of the first line that says nothing known, and what is wrong with it.
pub fn parse_trust(text: &str) -> Result<TrustPolicy, (usize, LineProblem)> {
    parse_lines(text).map(|lines| policy_of(&lines))
}

fn policy_of(lines: &[Line]) -> TrustPolicy {
    let mut policy = TrustPolicy::default();
    for line in lines {
        match &line.entry {
            Entry::Other => {}
            Entry::Anchor(anchor) => {
                policy.anchors.insert(anchor.clone());
            }
            Entry::Revoked(key) => {
                policy.revoked.insert(*key);
            }
        }
    }
    policy
}

fn read_lines(path: &Path) -> Result<Vec<Line>, TrustStoreError> {
    let Some(bytes) = files::read(path, FILE_BYTES_MAX, OTHERS_WRITE)? else {
        return Ok(Vec::new());
    };
    let text =
        String::from_utf8(bytes).map_err(|_| TrustStoreError::NotText { path: path.to_owned() })?;
    parse_lines(&text).map_err(|(line, problem)| {
        let path = path.to_owned();
        TrustStoreError::Line { path, line, problem }
    })
}

fn parse_lines(text: &str) -> Result<Vec<Line>, (usize, LineProblem)> {
    let numbered = text.lines().zip(1..);
    numbered
        .map(|(line, number)| {
            let entry = parse_line(line).map_err(|problem| (number, problem))?;
            Ok(Line { text: line.to_owned(), entry })
        })
        .collect()
}

fn parse_line(line: &str) -> Result<Entry, LineProblem> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        [] => Ok(Entry::Other),
        [first, ..] if first.starts_with('#') => Ok(Entry::Other),
        ["anchor", key, prefix] => {
            Ok(Entry::Anchor(Anchor { key: key.parse()?, prefix: prefix.parse()? }))
        }
        ["revoked", key] => Ok(Entry::Revoked(key.parse()?)),
        _ => Err(LineProblem::Form { text: line.chars().take(80).collect() }),
    }
}

fn format_entry(entry: &Entry) -> String {
    match entry {
        Entry::Other => String::new(),
        Entry::Anchor(Anchor { prefix, key }) => format!("anchor {key} {prefix}"),
        Entry::Revoked(key) => format!("revoked {key}"),
    }
}
