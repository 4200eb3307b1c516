//! A directory's manifest: for every entry what a reader would otherwise have to ask for.
//!
//! The payload is a header with the number of entries, then the entries, sorted by the octets of
//! their names. It is an object like a listing: verified whole by one signature, so that nobody
//! between publisher and reader can hide an entry or alter it. An entry that carries version and
//! root lets its file be fetched without a discovery of its own.
//!
//! Invariant: [`check`] has checked every entry before any is used; names make safe paths, are
//! in order and unique, and no two elements of an entry contradict each other.

use byname_packet::{DecodeError, tlv, types};
use thiserror::Error;

use crate::naming::is_safe_entry;
use crate::numbers::{
    CONTENT_ROOT, ENTRY_COUNT, ENTRY_VERSION, MANIFEST_ENTRY, MANIFEST_HEADER, MODE, MTIME,
    SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN, SEGMENT_SIZE, SIZE,
};

const TYPE_MASK: u16 = 0o170_000;
const DIRECTORY: u16 = 0o040_000;
const REGULAR: u16 = 0o100_000;
/// An entry has at least a name of one octet and a mode.
const ENTRY_BYTES_MIN: u64 = 4 + 3 + 6;

/// One entry of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// `st_mode`: a regular file or a directory. Only the type where nothing else is known.
    pub mode: u16,
    /// Last change of the content, nanoseconds since the Unix epoch.
    pub mtime_ns: Option<u64>,
    /// Of a file: its octets.
    pub size: Option<u64>,
    /// Of a file: which version of it this describes, if it has one.
    pub version: Option<Version>,
}

/// A version of a file that can be fetched without asking about it first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// Its number.
    pub number: u64,
    /// Octets in every segment but the last.
    pub segment_bytes: u64,
    /// BLAKE3 root of the file, if the publisher knew it.
    pub root: Option<[u8; 32]>,
}

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

impl Entry<'_> {
    /// True if it is a directory.
    pub fn is_directory(&self) -> bool {
        self.mode & TYPE_MASK == DIRECTORY
    }

    /// Appends the entry.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut value = Vec::with_capacity(self.name.len() + 96);
        tlv::write_element(&mut value, types::GENERIC.into(), self.name);
        tlv::write_element(&mut value, MODE, &self.mode.to_be_bytes());
        if let Some(mtime_ns) = self.mtime_ns {
            tlv::write_nni(&mut value, MTIME, mtime_ns);
        }
        if let Some(size) = self.size {
            tlv::write_nni(&mut value, SIZE, size);
        }
        if let Some(version) = self.version {
            tlv::write_nni(&mut value, ENTRY_VERSION, version.number);
            if version.segment_bytes != SEGMENT_BYTES_MAX as u64 {
                tlv::write_nni(&mut value, SEGMENT_SIZE, version.segment_bytes);
            }
            if let Some(root) = version.root {
                tlv::write_element(&mut value, CONTENT_ROOT, &root);
            }
        }
        tlv::write_element(out, MANIFEST_ENTRY, &value);
    }
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
        let Some(entry) = decode(element)? else { continue };
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
        if let Ok(Some(entry)) = decode(element) {
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
            | MANIFEST_ENTRY
            | MANIFEST_HEADER
            | ENTRY_COUNT
    );
    match typ {
        _ if is_known => Err(DecodeError::OutOfOrder { typ, within }),
        _ if typ <= 31 || !typ.is_multiple_of(2) => {
            Err(DecodeError::UnknownCritical { typ, within })
        }
        _ => Ok(()),
    }
}

/// Reads elements in their order.
struct Fields<'a> {
    reader: tlv::Reader<'a>,
    next: Option<tlv::Element<'a>>,
}

impl<'a> Fields<'a> {
    fn advance(&mut self) -> Result<(), DecodeError> {
        self.next = self.reader.read()?;
        Ok(())
    }

    /// The element if it comes next, after what may be ignored.
    fn take(&mut self, typ: u32) -> Result<Option<&'a [u8]>, DecodeError> {
        while let Some(next) = self.next {
            if next.typ == typ {
                self.advance()?;
                return Ok(Some(next.value));
            }
            if pass(next.typ, "manifest entry").is_err() {
                return Ok(None);
            }
            self.advance()?;
        }
        Ok(None)
    }

    fn number(&mut self, typ: u32) -> Result<Option<u64>, DecodeError> {
        self.take(typ)?.map(|value| tlv::read_nni(value, "number of a manifest entry")).transpose()
    }

    fn finish(mut self) -> Result<(), DecodeError> {
        while let Some(next) = self.next {
            pass(next.typ, "manifest entry")?;
            self.advance()?;
        }
        Ok(())
    }
}

/// An entry; `None` for another element that may be ignored.
fn decode(element: tlv::Element<'_>) -> Result<Option<Entry<'_>>, DecodeError> {
    const WITHIN: &str = "manifest entry";
    if element.typ != MANIFEST_ENTRY {
        return pass(element.typ, "manifest").map(|()| None);
    }
    let mut reader = tlv::Reader::new(element.value);
    let first = reader.read()?.filter(|first| first.typ == u32::from(types::GENERIC));
    let name = first.ok_or(DecodeError::Missing { element: "name", within: WITHIN })?.value;
    let mut fields = Fields { reader, next: None };
    fields.advance()?;
    let mode =
        fields.take(MODE)?.ok_or(DecodeError::Missing { element: "Mode", within: WITHIN })?;
    let mode = <[u8; 2]>::try_from(mode)
        .map(u16::from_be_bytes)
        .map_err(|_| DecodeError::BadLength { element: "Mode", len: mode.len() })?;
    let mtime_ns = fields.number(MTIME)?;
    let size = fields.number(SIZE)?;
    let number = fields.number(ENTRY_VERSION)?;
    let version = match number {
        Some(number) => Some(decode_version(number, &mut fields)?),
        None => None,
    };
    fields.finish()?;
    let is_consistent = match mode & TYPE_MASK {
        REGULAR => version.is_none() || size.is_some(),
        DIRECTORY => size.is_none() && version.is_none(),
        _ => false,
    };
    if !is_consistent {
        return Err(DecodeError::BadValue { element: WITHIN });
    }
    Ok(Some(Entry { name, mode, mtime_ns, size, version }))
}

fn decode_version(number: u64, fields: &mut Fields<'_>) -> Result<Version, DecodeError> {
    let segment_bytes = fields.number(SEGMENT_SIZE)?.unwrap_or(SEGMENT_BYTES_MAX as u64);
    if !(SEGMENT_BYTES_MIN as u64..=SEGMENT_BYTES_MAX as u64).contains(&segment_bytes) {
        return Err(DecodeError::BadValue { element: "SegmentSize" });
    }
    let root = fields.take(CONTENT_ROOT)?.map(|root| {
        <[u8; 32]>::try_from(root)
            .map_err(|_| DecodeError::BadLength { element: "ContentRoot", len: root.len() })
    });
    Ok(Version { number, segment_bytes, root: root.transpose()? })
}

#[cfg(test)]
mod tests;
