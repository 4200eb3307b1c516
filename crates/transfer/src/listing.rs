//! A directory's listing: for every entry its name, `/` if it is a directory, then a NUL octet.
//!
//! Ours are sorted by the octets of the names; other servers' need not be. Reading gives every
//! entry as it stands: whether a name makes a safe local path is the reader's decision
//! ([`crate::naming::is_safe_entry`]), because one bad name must not hide the others.

use thiserror::Error;

/// One entry of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry<'a> {
    /// The name without the mark of a directory.
    pub name: &'a [u8],
    /// True if it is a directory.
    pub is_directory: bool,
}

/// A listing that breaks off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ListingError {
    /// The last entry lacks its NUL octet.
    #[error("the listing ends inside an entry, at offset {offset}")]
    Truncated {
        /// Where that entry starts.
        offset: usize,
    },
}

/// Appends one entry.
pub fn write_entry(out: &mut Vec<u8>, entry: Entry<'_>) {
    out.extend_from_slice(entry.name);
    if entry.is_directory {
        out.push(b'/');
    }
    out.push(0);
}

/// The entries of a listing's payload, in the order in which they stand.
pub fn entries(payload: &[u8]) -> Entries<'_> {
    Entries { payload, at: 0 }
}

/// Iterator over the entries of a payload; ends after the first error.
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    payload: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, ListingError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.payload[self.at..];
        if rest.is_empty() {
            return None;
        }
        let Some(len) = rest.iter().position(|octet| *octet == 0) else {
            let offset = self.at;
            self.at = self.payload.len();
            return Some(Err(ListingError::Truncated { offset }));
        };
        self.at += len + 1;
        let entry = match rest[..len].strip_suffix(b"/") {
            Some(name) => Entry { name, is_directory: true },
            None => Entry { name: &rest[..len], is_directory: false },
        };
        Some(Ok(entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_back_as_written() {
        let written = [
            Entry { name: b"a b", is_directory: true },
            Entry { name: "\u{e9}".as_bytes(), is_directory: false },
        ];
        let mut payload = Vec::new();
        written.iter().for_each(|entry| write_entry(&mut payload, *entry));
        assert_eq!(payload, b"a b/\0\xC3\xA9\0");
        assert_eq!(entries(&payload).collect::<Result<Vec<_>, _>>().unwrap(), written);
        assert_eq!(entries(b"").count(), 0);
    }

    #[test]
    fn a_broken_end_is_an_error_after_the_good_entries() {
        let read: Vec<_> = entries(b"a\0b").collect();
        assert_eq!(read.len(), 2);
        assert_eq!(read[1], Err(ListingError::Truncated { offset: 2 }));
    }
}
