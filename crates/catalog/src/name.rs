//! Names of directory entries, places in the tree, names of people and spaces: checked once, when
//! they come in.

use std::fmt;

use crate::id::InodeId;
use crate::refusal::Refusal;

/// Longest name of an entry, in octets.
pub const NAME_BYTES_MAX: usize = 255;
/// Most names in one place.
pub const PATH_NAMES_MAX: usize = 256;
/// Longest name of a user, group, space, server or label, in octets.
pub const LABEL_BYTES_MAX: usize = 64;

/// The name of a directory entry: 1 to 255 octets without `/` and zero, neither `.` nor `..`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryName(Vec<u8>);

impl EntryName {
    /// Checks a name.
    pub fn new(octets: impl Into<Vec<u8>>) -> Result<Self, Refusal> {
        let octets = octets.into();
        if octets.len() > NAME_BYTES_MAX {
            return Err(Refusal::NameTooLong);
        }
        let is_special = octets.is_empty() || octets == b"." || octets == b"..";
        if is_special || octets.iter().any(|octet| matches!(octet, 0 | b'/')) {
            return Err(Refusal::BadName);
        }
        Ok(Self(octets))
    }

    /// The octets.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for EntryName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

/// An inode, by names walked from another one. Symbolic links on the way are not followed; that
/// is for the client to do, who knows what an absolute target means to its users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Start of the walk.
    pub base: InodeId,
    /// Names from there; none means the start itself.
    pub names: Vec<EntryName>,
}

impl Place {
    /// An inode itself.
    pub fn inode(id: InodeId) -> Self {
        Self { base: id, names: Vec::new() }
    }

    /// An entry of a directory.
    pub fn entry(directory: InodeId, name: EntryName) -> Self {
        Self { base: directory, names: vec![name] }
    }

    /// A path from the root; repeated slashes count as one.
    pub fn path(path: impl AsRef<[u8]>) -> Result<Self, Refusal> {
        let parts = path.as_ref().split(|octet| *octet == b'/').filter(|part| !part.is_empty());
        let names = parts.map(EntryName::new).collect::<Result<Vec<_>, _>>()?;
        if names.len() > PATH_NAMES_MAX {
            return Err(Refusal::NameTooLong);
        }
        Ok(Self { base: InodeId::ROOT, names })
    }
}

/// Checks the name of a user, group, space, server or label.
pub(crate) fn check_label(name: &str) -> Result<(), Refusal> {
    let is_plain = |c: char| !c.is_control() && !c.is_whitespace() && c != '/';
    if name.is_empty() || name.len() > LABEL_BYTES_MAX || !name.chars().all(is_plain) {
        return Err(Refusal::BadLabel);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_entries() {
        assert!(EntryName::new("a").is_ok());
        assert!(EntryName::new("...").is_ok());
        assert!(EntryName::new(vec![0xff; NAME_BYTES_MAX]).is_ok());
        assert_eq!(EntryName::new(vec![b'a'; NAME_BYTES_MAX + 1]), Err(Refusal::NameTooLong));
        for bad in ["", ".", "..", "a/b", "a\0"] {
            assert_eq!(EntryName::new(bad), Err(Refusal::BadName), "{bad:?}");
        }
    }

    #[test]
    fn paths_are_bounded_and_never_go_up() {
        let place = Place::path("//a/b/").unwrap();
        assert_eq!(place.names.len(), 2);
        assert_eq!(Place::path("a/../b"), Err(Refusal::BadName));
        assert_eq!(Place::path("a/".repeat(PATH_NAMES_MAX + 1)), Err(Refusal::NameTooLong));
    }

    #[test]
    fn labels_are_short_and_plain() {
        assert_eq!(check_label("anna"), Ok(()));
        for bad in ["", "a b", "a/b", "a\n", &"x".repeat(LABEL_BYTES_MAX + 1)] {
            assert_eq!(check_label(bad), Err(Refusal::BadLabel), "{bad:?}");
        }
    }
}
