//! Pins: names whose contents, and those of all below them, are never removed to make room.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use byname_packet::{Name, NameRef};

use crate::error::{CacheError, at};
use crate::names::Names;

/// The pinned names of a cache, in a file with one to a line.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    names: Vec<Name>,
}

impl Pins {
    pub(crate) fn load(path: &Path) -> Result<Self, CacheError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Pins::default()),
            Err(error) => return Err(at(path)(error)),
        };
        let name = |(index, text): (usize, &str)| {
            text.parse().map_err(|_| CacheError::Pins {
                path: path.to_owned(),
                line: index + 1,
                text: text.to_owned(),
            })
        };
        Ok(Pins { names: text.lines().enumerate().map(name).collect::<Result<_, _>>()? })
    }

    pub(crate) fn save(&self, path: &Path) -> Result<(), CacheError> {
        let lines: String = self.names.iter().map(|name| format!("{name}\n")).collect();
        crate::files::replace(path, lines.as_bytes()).map_err(at(path))
    }

    /// False if it was pinned.
    pub(crate) fn add(&mut self, name: &Name) -> bool {
        let is_new = !self.names.contains(name);
        if is_new {
            self.names.push(name.clone());
        }
        is_new
    }

    /// False if it was not pinned.
    pub(crate) fn remove(&mut self, name: &Name) -> bool {
        let before = self.names.len();
        self.names.retain(|pinned| pinned != name);
        self.names.len() < before
    }

    pub(crate) fn into_names(self) -> Vec<Name> {
        self.names
    }

    fn covers(&self, name: NameRef<'_>) -> bool {
        self.names.iter().any(|pinned| pinned.view().is_prefix_of(name))
    }

    /// True if one of an entry's names is pinned.
    pub(crate) fn cover(&self, names: &Names) -> bool {
        names.iter().any(|seen| self.covers(seen.name.view()))
    }
}
