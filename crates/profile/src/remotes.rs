//! Bookmarks: short names for links, `lab:run7/x` for what lies below one.
//!
//! One line each, `NAME LINK`, sorted by name, in a file beside the configuration that a person may
//! edit. It is replaced whole, under a lock, after it was read again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use byname_packet::Name;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use thiserror::Error;

use crate::link::{Link, LinkError};

/// Longest name of a bookmark.
pub const REMOTE_BYTES_MAX: usize = 64;
/// Most bookmarks.
pub const REMOTES_MAX: usize = 4096;
/// Longest file that is read.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Beginnings of texts that mean something else.
const TAKEN: [&str; 2] = ["byname", "ndn"];

/// Bookmarks that cannot be read or changed.
#[derive(Debug, Error)]
pub enum RemoteError {
    /// The system refused.
    #[error("{}: {source}", path.display())]
    Disk {
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A line of the file says something else, or the file is too long.
    #[error("{}:{line}: not a name and a link", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
    },
    /// The text cannot be a bookmark's name.
    #[error(
        "{name:?} cannot be the name of a bookmark: letters, digits, `.`, `_` and `-`, at most \
         {REMOTE_BYTES_MAX}, beginning with a letter or digit, and neither byname nor ndn"
    )]
    BadName {
        /// The text.
        name: String,
    },
    /// There is no such bookmark.
    #[error("there is no bookmark {name:?} (`byname remote list`)")]
    Unknown {
        /// Its name.
        name: String,
    },
    /// There is one already, with another link.
    #[error("there is a bookmark {name:?} already")]
    Exists {
        /// Its name.
        name: String,
    },
    /// There are too many.
    #[error("there are {REMOTES_MAX} bookmarks already")]
    TooMany,
}

impl RemoteError {
    /// The errno for programs that know only numbers.
    pub fn errno(&self) -> i32 {
        match self {
            RemoteError::Disk { source, .. } => crate::errno::of_io(source),
            RemoteError::Line { .. } => Errno::UCLEAN.raw_os_error(),
            RemoteError::BadName { .. } => Errno::INVAL.raw_os_error(),
            RemoteError::Unknown { .. } => Errno::NOENT.raw_os_error(),
            RemoteError::Exists { .. } => Errno::EXIST.raw_os_error(),
            RemoteError::TooMany => Errno::NOSPC.raw_os_error(),
        }
    }
}

/// The file of bookmarks of one user.
#[derive(Debug, Clone)]
pub struct Remotes {
    path: PathBuf,
}

impl Remotes {
    /// The bookmarks in this file, which need not exist.
    pub fn new(path: &Path) -> Self {
        Remotes { path: path.to_owned() }
    }

    /// All of them.
    ///
    /// # Errors
    /// [`RemoteError::Disk`], [`RemoteError::Line`].
    pub fn list(&self) -> Result<BTreeMap<String, Link>, RemoteError> {
        let mut text = String::new();
        match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(self.disk(error)),
            Ok(file) => {
                let read = file.take(FILE_BYTES_MAX).read_to_string(&mut text);
                read.map_err(|error| self.disk(error))?;
            }
        }
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let mut remotes = BTreeMap::new();
        for (index, line) in lines {
            let entry = line.trim().split_once(' ').and_then(|(name, link)| {
                is_name(name).then(|| link.trim().parse().ok().map(|link| (name, link)))?
            });
            let bad = || RemoteError::Line { path: self.path.clone(), line: index + 1 };
            let (name, link) = entry.ok_or_else(bad)?;
            remotes.insert(name.to_owned(), link);
        }
        Ok(remotes)
    }

    /// Keeps a link under a name.
    ///
    /// # Errors
    /// [`RemoteError::Exists`] if the name stands for another link, and all others.
    pub fn add(&self, name: &str, link: &Link) -> Result<(), RemoteError> {
        if !is_name(name) {
            return Err(RemoteError::BadName { name: name.to_owned() });
        }
        self.change(|remotes| {
            if remotes.get(name).is_some_and(|known| known != link) {
                return Err(RemoteError::Exists { name: name.to_owned() });
            }
            if remotes.len() >= REMOTES_MAX {
                return Err(RemoteError::TooMany);
            }
            remotes.insert(name.to_owned(), link.clone());
            Ok(())
        })
    }

    /// Gives a bookmark another name.
    ///
    /// # Errors
    /// [`RemoteError::Unknown`], [`RemoteError::Exists`], and all others.
    pub fn rename(&self, old: &str, new: &str) -> Result<(), RemoteError> {
        if !is_name(new) {
            return Err(RemoteError::BadName { name: new.to_owned() });
        }
        self.change(|remotes| {
            if remotes.contains_key(new) {
                return Err(RemoteError::Exists { name: new.to_owned() });
            }
            let unknown = || RemoteError::Unknown { name: old.to_owned() };
            let link = remotes.remove(old).ok_or_else(unknown)?;
            remotes.insert(new.to_owned(), link);
            Ok(())
        })
    }

    /// Forgets a bookmark.
    ///
    /// # Errors
    /// [`RemoteError::Unknown`], [`RemoteError::Disk`], [`RemoteError::Line`].
    pub fn remove(&self, name: &str) -> Result<(), RemoteError> {
        self.change(|remotes| match remotes.remove(name) {
            Some(_) => Ok(()),
            None => Err(RemoteError::Unknown { name: name.to_owned() }),
        })
    }

    /// The link that `NAME:PATH` stands for.
    ///
    /// # Errors
    /// [`RemoteError::Unknown`], and [`LinkError`] for a path that is none.
    pub(crate) fn resolve(
        &self,
        name: &str,
        path: &str,
    ) -> Result<Result<Link, LinkError>, RemoteError> {
        let unknown = || RemoteError::Unknown { name: name.to_owned() };
        let mut link = self.list()?.remove(name).ok_or_else(unknown)?;
        let below = Name::from_path(&format!("/{path}"));
        Ok(below.map_err(LinkError::PlainName).map(|below| {
            link.name.extend(below.view());
            link
        }))
    }

    fn change(
        &self,
        act: impl FnOnce(&mut BTreeMap<String, Link>) -> Result<(), RemoteError>,
    ) -> Result<(), RemoteError> {
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(directory).map_err(|error| self.disk(error))?;
        let lock = File::open(directory).map_err(|error| self.disk(error))?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|error| self.disk(error.into()))?;
        let mut remotes = self.list()?;
        act(&mut remotes)?;
        let mut text = String::new();
        for (name, link) in &remotes {
            let _ = writeln!(text, "{name} {link}");
        }
        let new = self.path.with_extension("new");
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).open(&new);
        file.and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&new, &self.path)
        })
        .map_err(|error| self.disk(error))
    }

    fn disk(&self, source: std::io::Error) -> RemoteError {
        RemoteError::Disk { path: self.path.clone(), source }
    }
}

/// The bookmark and the path of `NAME:PATH`, if a text has that form.
pub(crate) fn split(text: &str) -> Option<(&str, &str)> {
    let (name, path) = text.split_once(':')?;
    is_name(name).then_some((name, path))
}

fn is_name(text: &str) -> bool {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.len() <= REMOTE_BYTES_MAX
        && text.chars().all(is_fit)
        && !TAKEN.contains(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(text: &str) -> Link {
        text.parse().unwrap()
    }

    #[test]
    fn bookmarks_are_kept_renamed_and_removed() {
        let home = tempfile::tempdir().unwrap();
        let remotes = Remotes::new(&home.path().join("new/remotes"));
        let lab = link("byname:/lab,via=tcp://h:1,via=udp://[::1]:2");
        remotes.add("lab", &lab).unwrap();
        remotes.add("lab", &lab).unwrap();
        let other = link("byname:/other");
        assert!(matches!(remotes.add("lab", &other), Err(RemoteError::Exists { .. })));
        remotes.add("a.b-c_9", &other).unwrap();
        assert!(matches!(remotes.rename("lab", "a.b-c_9"), Err(RemoteError::Exists { .. })));
        remotes.rename("lab", "new").unwrap();
        assert_eq!(
            remotes.list().unwrap().into_iter().collect::<Vec<_>>(),
            [("a.b-c_9".to_owned(), other), ("new".to_owned(), lab)]
        );
        remotes.remove("new").unwrap();
        assert!(matches!(remotes.remove("new"), Err(RemoteError::Unknown { .. })));
    }

    #[test]
    fn names_that_mean_something_else_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let remotes = Remotes::new(&home.path().join("remotes"));
        let long = "a".repeat(REMOTE_BYTES_MAX + 1);
        for name in ["byname", "ndn", "", "/a", "-a", "a b", "a:b", "a/b", "\u{e4}", &long] {
            let outcome = remotes.add(name, &link("byname:/x"));
            assert!(matches!(outcome, Err(RemoteError::BadName { .. })), "{name}");
        }
    }

    #[test]
    fn a_path_below_a_bookmark_is_what_ls_prints() {
        let home = tempfile::tempdir().unwrap();
        let remotes = Remotes::new(&home.path().join("remotes"));
        remotes.add("lab", &link("byname:/lab,via=tcp://h:1")).unwrap();
        let (name, path) = split("lab:run7/a?b#c%25d:e").unwrap();
        let found = remotes.resolve(name, path).unwrap().unwrap();
        assert_eq!(found.name, Name::from_path("/lab/run7/a?b#c%25d:e").unwrap());
        assert_eq!(found.via, ["tcp://h:1"]);
        assert_eq!(remotes.resolve("lab", "").unwrap().unwrap().name.to_string(), "/lab");
        assert!(matches!(remotes.resolve("lab", "%zz"), Ok(Err(LinkError::PlainName(_)))));
        assert!(split("/lab:x").is_none() && split("ndn:/x").is_none());
    }

    #[test]
    fn a_line_that_says_something_else_is_named() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("remotes");
        std::fs::write(&path, "# mine\nlab byname:/lab\nnonsense\n").unwrap();
        let error = Remotes::new(&path).list().unwrap_err();
        assert!(matches!(error, RemoteError::Line { line: 3, .. }), "{error}");
    }
}
