//! Limits: the most bytes that contents seen under a name, or below it, may take together.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use byname_packet::Name;

use crate::error::{CacheError, at};
use crate::names::Names;

/// Names that may have a limit: each costs a look at all entries when something is removed.
pub(crate) const LIMITS_MAX: usize = 64;

/// The most bytes of what was seen under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The name; what lies below it counts.
    pub name: Name,
    /// Bytes on the disk.
    pub bytes_max: u64,
}

impl Limit {
    /// True if one of an entry's names is the limited one, or lies below it.
    pub(crate) fn covers(&self, names: &Names) -> bool {
        names.iter().any(|seen| self.name.view().is_prefix_of(seen.name.view()))
    }
}

/// The limits of a cache, in a file with one to a line: bytes, and the name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) list: Vec<Limit>,
}

impl Limits {
    pub(crate) fn load(path: &Path) -> Result<Self, CacheError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Limits::default()),
            Err(error) => return Err(at(path)(error)),
        };
        let limit = |(index, text): (usize, &str)| {
            decode(text).ok_or_else(|| CacheError::Limits {
                path: path.to_owned(),
                line: index + 1,
                text: text.to_owned(),
            })
        };
        Ok(Limits { list: text.lines().enumerate().map(limit).collect::<Result<_, _>>()? })
    }

    pub(crate) fn save(&self, path: &Path) -> Result<(), CacheError> {
        let line = |limit: &Limit| format!("{} {}\n", limit.bytes_max, limit.name);
        let lines: String = self.list.iter().map(line).collect();
        crate::files::replace(path, lines.as_bytes()).map_err(at(path))
    }

    /// Sets the limit of a name in place of the one that it had, or ends it. False if that changes
    /// nothing, or there are too many.
    pub(crate) fn set(&mut self, name: &Name, bytes_max: Option<u64>) -> bool {
        let known = self.list.iter().position(|limit| limit.name == *name);
        match (known, bytes_max) {
            (Some(at), Some(bytes_max)) => {
                std::mem::replace(&mut self.list[at].bytes_max, bytes_max) != bytes_max
            }
            (Some(at), None) => {
                self.list.remove(at);
                true
            }
            (None, Some(bytes_max)) if self.list.len() < LIMITS_MAX => {
                self.list.push(Limit { name: name.clone(), bytes_max });
                true
            }
            (None, _) => false,
        }
    }
}

fn decode(line: &str) -> Option<Limit> {
    let (bytes_max, name) = line.split_once(' ')?;
    Some(Limit { name: name.parse().ok()?, bytes_max: bytes_max.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_come_back_and_what_is_none_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("limits");
        let mut limits = Limits::load(&path).expect("none");
        let (a, b): (Name, Name) = ("/a b".parse().expect("a name"), "/b".parse().expect("a name"));
        assert!(limits.set(&a, Some(7)) && limits.set(&b, Some(9)) && limits.set(&a, Some(8)));
        assert!(!limits.set(&a, Some(8)));
        limits.save(&path).expect("saved");
        assert_eq!(Limits::load(&path).expect("loaded"), limits);
        assert!(limits.set(&b, None) && !limits.set(&b, None));
        assert_eq!(limits.list, [Limit { name: a, bytes_max: 8 }]);
        fs::write(&path, "8 /a\nmuch /b\n").expect("written");
        let error = Limits::load(&path).expect_err("no number").to_string();
        assert!(error.contains(":2: not a limit: \"much /b\""), "{error}");
    }

    #[test]
    fn there_are_so_many_limits_and_no_more() {
        let mut limits = Limits::default();
        let set = |limits: &mut Limits, at: usize| {
            limits.set(&format!("/n/{at}").parse().expect("a name"), Some(1))
        };
        assert!((0..LIMITS_MAX).all(|at| set(&mut limits, at)));
        assert!(!set(&mut limits, LIMITS_MAX));
    }
}
