//! The directory of a cache.
//!
//! | path | what |
//! |---|---|
//! | `entries/RR/ROOT-SIZE/` | an entry; RR are the first two digits of the root |
//! | `…/data` | the content, sparse |
//! | `…/map` | which units are there |
//! | `…/tree` | nodes of the hash tree, level 1 first, sparse |
//! | `…/names` | names and versions under which the content was seen |
//! | `…/packet` | the publisher's signed packet of one of them |
//! | `…/whole` | the state of the data in which all of it was verified |
//! | `…/used` | its standing with the eviction policy |
//! | `…/shares` | of a service: users, and the bytes that each has brought |
//! | `tree/NAME…` | whole files under their names: a copy that `serve --mirror` serves |
//! | `pins`, `limits` | names that stay; names that may have so many bytes |
//! | `ghosts` | entries removed a short while ago |
//! | `account` | bytes and entries held, as far as they were reported |
//! | `lock`, `trash/` | held while entries are removed; what is being removed |

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use byname_security::tree::Hash;

use crate::files;

pub(crate) const DATA: &str = "data";
pub(crate) const MAP: &str = "map";
pub(crate) const TREE: &str = "tree";
pub(crate) const NAMES: &str = "names";
pub(crate) const PACKET: &str = "packet";
pub(crate) const USED: &str = "used";
pub(crate) const WHOLE: &str = "whole";
pub(crate) const SHARES: &str = "shares";

/// Identity of an entry: equal ones have the same bytes at every offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContentKey {
    /// BLAKE3 root of the content.
    pub root: Hash,
    /// Octets of the content.
    pub size: u64,
}

impl ContentKey {
    /// Number for the list of ghosts; equal keys have equal ones.
    pub(crate) fn short(&self) -> u64 {
        let mut first = [0; 8];
        first.copy_from_slice(&self.root.as_bytes()[..8]);
        u64::from_be_bytes(first) ^ self.size
    }
}

impl fmt::Display for ContentKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for octet in self.root.as_bytes() {
            write!(out, "{octet:02x}")?;
        }
        write!(out, "-{}", self.size)
    }
}

/// A text that is no key of an entry.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the name of an entry of a cache")]
pub struct NotAKey;

impl FromStr for ContentKey {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let (root, size) = text.split_once('-').ok_or(NotAKey)?;
        if root.len() != 64 || !root.is_ascii() {
            return Err(NotAKey);
        }
        let mut octets = [0; 32];
        for (octet, digits) in octets.iter_mut().zip(root.as_bytes().chunks_exact(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| NotAKey)?;
            *octet = u8::from_str_radix(digits, 16).map_err(|_| NotAKey)?;
        }
        let key = ContentKey { root: Hash(octets), size: size.parse().map_err(|_| NotAKey)? };
        // One spelling only, so that one content has one directory.
        if key.to_string() == text { Ok(key) } else { Err(NotAKey) }
    }
}

/// Paths below a cache's directory.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) root: PathBuf,
}

impl Layout {
    pub(crate) fn new(root: &Path) -> Self {
        Layout { root: root.to_owned() }
    }

    /// Refuses a cache that other users may change.
    pub(crate) fn check_own(&self) -> io::Result<()> {
        files::check_own(&self.root)
    }

    pub(crate) fn entries(&self) -> PathBuf {
        self.root.join("entries")
    }

    pub(crate) fn entry(&self, key: &ContentKey) -> PathBuf {
        let text = key.to_string();
        self.entries().join(&text[..2]).join(text)
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.root.join("tree")
    }

    pub(crate) fn pins(&self) -> PathBuf {
        self.root.join("pins")
    }

    pub(crate) fn limits(&self) -> PathBuf {
        self.root.join("limits")
    }

    pub(crate) fn ghosts(&self) -> PathBuf {
        self.root.join("ghosts")
    }

    pub(crate) fn account(&self) -> PathBuf {
        self.root.join("account")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    pub(crate) fn trash(&self) -> PathBuf {
        self.root.join("trash")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_written_in_one_way_only() {
        let key = ContentKey { root: Hash([0xab; 32]), size: 9000 };
        let text = key.to_string();
        assert_eq!(text.parse(), Ok(key));
        for wrong in [
            text.to_uppercase(),
            text.replace("-9000", "-09000"),
            text.replace("-9000", ""),
            text[2..].to_owned(),
            format!("é{}", &text[2..]),
        ] {
            assert_eq!(wrong.parse::<ContentKey>(), Err(NotAKey), "{wrong}");
        }
    }
}
