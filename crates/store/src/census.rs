//! Count of what a directory publishes and of what it hides, and why.
//!
//! What is published is what the backend lists; whatever else stands in the directory is hidden,
//! and the first rule that hides it counts. A hidden directory counts once, without what is in it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use std::collections::HashSet;

use crate::backend::posix::{Exposure, Posix};
use crate::backend::{Backend, Directory, Found};

/// Entries after which counting ends.
const ENTRIES_MAX: u64 = 1_000_000;

/// Counts of a published directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Census {
    /// Published files.
    pub files: u64,
    /// Their octets.
    pub bytes: u64,
    /// Hidden because the name starts with a dot; [`Exposure::hidden`] publishes them.
    pub dotted: u64,
    /// Hidden because only the owner can read them; [`Exposure::private`] publishes them.
    pub private: u64,
    /// Links that leave the directory or lead back, sockets, devices, the server's state.
    pub others: u64,
    /// Directories that could not be read.
    pub unreadable: u64,
    /// There is more: a million entries were counted.
    pub is_cut: bool,
}

impl Census {
    fn entries(&self) -> u64 {
        self.files + self.dotted + self.private + self.others + self.unreadable
    }
}

/// Counts what `directory` publishes; `state` is the server's state directory.
///
/// # Errors
/// The system's error if the directory cannot be found.
pub fn census(directory: &Path, exposure: Exposure, state: &Path) -> std::io::Result<Census> {
    let identity = std::fs::metadata(state).map_or((0, 0), |found| (found.dev(), found.ino()));
    let backend = Posix::new(directory, exposure, identity)?;
    let mut counted = Census::default();
    let mut waiting: Vec<Vec<u8>> = vec![Vec::new()];
    while let Some(path) = waiting.pop() {
        if counted.entries() >= ENTRIES_MAX {
            counted.is_cut = true;
            break;
        }
        match backend.locate(&path) {
            Ok(Found::Directory(found)) => {
                let here = directory.join(OsStr::from_bytes(&path));
                waiting.extend(count(&*found, (&path, &here), exposure, &mut counted));
            }
            Ok(Found::File(_) | Found::Described(_)) => {}
            Err(_) => counted.unreadable += 1,
        }
    }
    Ok(counted)
}

/// Counts one directory; returns the paths of those in it.
fn count(
    found: &dyn Directory,
    (path, here): (&[u8], &Path),
    exposure: Exposure,
    counted: &mut Census,
) -> Vec<Vec<u8>> {
    let (mut published, mut directories) = (HashSet::new(), Vec::new());
    let listed = found.list(true, &mut |entry| {
        published.insert(entry.name.to_vec());
        if entry.is_directory {
            let mut below = path.to_vec();
            if !below.is_empty() {
                below.push(b'/');
            }
            below.extend_from_slice(entry.name);
            directories.push(below);
        } else {
            counted.files += 1;
            counted.bytes += entry.stat.map_or(0, |stat| stat.state.size);
        }
        Ok(())
    });
    let (Ok(()), Ok(all)) = (listed, std::fs::read_dir(here)) else {
        counted.unreadable += 1;
        return directories;
    };
    for entry in all.flatten() {
        let name = entry.file_name();
        if published.contains(name.as_bytes()) {
            continue;
        }
        let mode = entry.metadata().map(|found| found.mode());
        let is_private = |mode: u32| {
            let is_link = mode & 0o170_000 == 0o120_000;
            !is_link && !exposure.shows_mode((mode & 0o177_777) as u16)
        };
        if !exposure.shows_name(name.as_bytes()) {
            counted.dotted += 1;
        } else if mode.is_ok_and(is_private) {
            counted.private += 1;
        } else {
            counted.others += 1;
        }
    }
    directories
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_hidden_is_counted_by_the_rule_that_hides_it() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("d");
        std::fs::create_dir_all(dir.join("sub")).unwrap();
        std::fs::create_dir_all(dir.join(".git/objects")).unwrap();
        for (name, mode) in [("a", 0o644), ("sub/b", 0o640), ("sub/own", 0o600), (".rc", 0o644)] {
            std::fs::write(dir.join(name), b"12345").unwrap();
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(dir.join(name), mode).unwrap();
        }
        std::os::unix::fs::symlink("/etc/passwd", dir.join("out")).unwrap();
        let counted = |exposure| census(&dir, exposure, home.path()).unwrap();
        let expected =
            Census { files: 2, bytes: 10, dotted: 2, private: 1, others: 1, ..Census::default() };
        assert_eq!(counted(Exposure::default()), expected);
        let all = counted(Exposure { hidden: true, private: true });
        assert_eq!(all, Census { files: 4, bytes: 20, others: 1, ..Census::default() });
    }
}
