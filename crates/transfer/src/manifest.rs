//! A directory's manifest: for every entry what a reader would otherwise have to ask for.
//!
//! The payload is a header with the number of entries, then the entries, sorted by the octets of
//! their names. It is an object like a listing: verified whole by one signature, so that nobody
//! between publisher and reader can hide an entry or alter it. An entry that carries version and
//! root lets its file be fetched without a discovery of its own.
//!
//! Invariant: [`check`] has checked every entry before any is used; names make safe paths, are
//! in order and unique, and no two elements of an entry contradict each other.

mod entry;

pub use entry::{Content, Entry, Version};

use byname_packet::{DecodeError, tlv, types};
use thiserror::Error;

use crate::naming::is_safe_entry;
use crate::numbers::{
    BINDING, CHECKSUMS, CONTENT_NAME, CONTENT_ROOT, ENTRY_COUNT, ENTRY_VERSION, GROUP, LINK_TARGET,
    MANIFEST_ENTRY, MANIFEST_HEADER, MEDIA_TYPE, MODE, MTIME, OWNER, SEGMENT_SIZE, SIZE,
};

/// An entry has at least a name of one octet and a mode.
const ENTRY_BYTES_MIN: u64 = 4 + 3 + 6;

/// Why a payload is no manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ManifestError {
    /// Broken TLVs, or an element that does not belong where it stands.
    #[error(transparent)]
    Malformed(#[from] DecodeError),
    /// A name that cannot be that of a directory entry.
    #[error("entry {index} has a name that makes no path")]
    BadName {
        /// Which entry, from 0.
        index: u64,
    },
    /// A name that does not come after the one before it.
    #[error("entry {index} is repeated or out of order")]
    OutOfOrder {
        /// Which entry, from 0.
        index: u64,
    },
    /// Another number of entries than the header says.
    #[error("{found} entries where {announced} were announced")]
    Count {
        /// In the header.
        announced: u64,
        /// In the payload, as far as it was read.
        found: u64,
    },
}

/// Appends the header of a manifest with `count` entries.
pub fn write_header(out: &mut Vec<u8>, count: u64) {
    let mut value = Vec::new();
    tlv::write_nni(&mut value, ENTRY_COUNT, count);
    tlv::write_element(out, MANIFEST_HEADER, &value);
}

/// Checks a whole payload and says how many entries it has and at which octet they begin.
///
/// # Errors
/// [`ManifestError`] of the first thing that is wrong.
pub fn check(payload: &[u8]) -> Result<(u64, usize), ManifestError> {
    let mut reader = tlv::Reader::new(payload);
    let missing = DecodeError::Missing { element: "header", within: "manifest" };
    let header = reader.read()?.filter(|first| first.typ == MANIFEST_HEADER).ok_or(missing)?;
    let announced = entry_count(header.value)?;
    let start = reader.position();
    // Refused before anything is done for entries that cannot be there.
    if announced > (payload.len() - start) as u64 / ENTRY_BYTES_MIN {
        return Err(ManifestError::Count { announced, found: 0 });
    }
    let (mut index, mut last): (u64, &[u8]) = (0, &[]);
    while let Some(element) = reader.read()? {
        let Some(entry) = decode_entry(element)? else { continue };
        if !is_safe_entry(entry.name) {
            return Err(ManifestError::BadName { index });
        }
        if entry.name <= last {
            return Err(ManifestError::OutOfOrder { index });
        }
        last = entry.name;
        index += 1;
    }
    match index == announced {
        true => Ok((announced, start)),
        false => Err(ManifestError::Count { announced, found: index }),
    }
}

fn entry_count(header: &[u8]) -> Result<u64, DecodeError> {
    let mut count = None;
    let mut reader = tlv::Reader::new(header);
    while let Some(element) = reader.read()? {
        match element.typ {
            ENTRY_COUNT if count.is_none() => {
                count = Some(tlv::read_nni(element.value, "EntryCount")?);
            }
            typ => pass(typ, "manifest header")?,
        }
    }
    count.ok_or(DecodeError::Missing { element: "EntryCount", within: "manifest header" })
}

/// The entry that begins at this octet of a payload that was checked, or at the next, and where
/// what follows it begins. `None` at the end.
pub fn entry_at(payload: &[u8], mut at: usize) -> Option<(Entry<'_>, usize)> {
    loop {
        let mut reader = tlv::Reader::new(payload.get(at..)?);
        let element = reader.read().ok()??;
        at += reader.position();
        if let Ok(Some(entry)) = decode_entry(element) {
            return Some((entry, at));
        }
    }
}

/// Passes over what is not known and may be ignored; what is known does not belong here.
fn pass(typ: u32, within: &'static str) -> Result<(), DecodeError> {
    let is_known = matches!(
        typ,
        MODE | MTIME
            | SIZE
            | ENTRY_VERSION
            | SEGMENT_SIZE
            | CONTENT_ROOT
            | LINK_TARGET
            | OWNER
            | GROUP
            | CHECKSUMS
            | BINDING
            | MEDIA_TYPE
            | CONTENT_NAME
            | MANIFEST_ENTRY
            | MANIFEST_HEADER
            | ENTRY_COUNT
    );
    match typ {
        _ if is_known => Err(DecodeError::OutOfOrder { typ, within }),
        _ if types::is_critical(typ) => Err(DecodeError::UnknownCritical { typ, within }),
        _ => Ok(()),
    }
}

/// An entry; `None` for another element that may be ignored.
fn decode_entry(element: tlv::Element<'_>) -> Result<Option<Entry<'_>>, DecodeError> {
    match element.typ {
        MANIFEST_ENTRY => Entry::decode(element.value).map(Some),
        typ => pass(typ, "manifest").map(|()| None),
    }
}

#[cfg(test)]
mod tests;
