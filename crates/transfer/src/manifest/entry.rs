//! One entry of a manifest: its elements in their order, and what may stand together.

use byname_packet::{DecodeError, NameRef, tlv, types};

use super::pass;
use crate::attributes::{Attributes, ObjectKind};
use crate::naming::ContentName;
use crate::numbers::{
    BINDING, CHECKSUMS, CONTENT_NAME, CONTENT_ROOT, ENTRY_VERSION, GROUP, LINK_TARGET,
    MANIFEST_ENTRY, MEDIA_TYPE, MODE, MTIME, OWNER, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN,
    SEGMENT_SIZE, SIZE,
};

const TYPE_MASK: u16 = 0o170_000;
pub(super) const DIRECTORY: u16 = 0o040_000;
pub(super) const REGULAR: u16 = 0o100_000;
const WITHIN: &str = "manifest entry";

/// One entry of a directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// `st_mode`: a regular file or a directory. Only the type where nothing else is known. A link
    /// has that of a regular file.
    pub mode: u16,
    /// Last change of the content, nanoseconds since the Unix epoch.
    pub mtime_ns: Option<u64>,
    /// Of a file: its octets.
    pub size: Option<u64>,
    /// Of a file whose content lies under its own name: the version this describes, if it has one.
    pub version: Option<Version>,
    /// Of a file whose content lies elsewhere: where, and the version this describes.
    pub content: Option<Content<'a>>,
    /// Link target, owner, group, checksums, binding.
    pub attributes: Attributes<'a>,
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

/// A version that does not lie under the entry's own name. It may be used only if
/// [`ContentName::is_within`] holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content<'a> {
    /// Name of the content, without version.
    pub name: ContentName<'a>,
    /// The version.
    pub version: Version,
}

impl<'a> Entry<'a> {
    /// An entry of which only name and mode are known.
    pub fn new(name: &'a [u8], mode: u16) -> Self {
        Entry { name, mode, ..Entry::default() }
    }

    /// True if it is a directory.
    pub fn is_directory(&self) -> bool {
        self.mode & TYPE_MASK == DIRECTORY
    }

    /// The kind of object.
    pub fn kind(&self) -> ObjectKind {
        match () {
            () if self.attributes.link_target.is_some() => ObjectKind::Link,
            () if self.is_directory() => ObjectKind::Directory,
            () => ObjectKind::File,
        }
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
        if let Some(version) = self.version.or(self.content.map(|content| content.version)) {
            tlv::write_nni(&mut value, ENTRY_VERSION, version.number);
            if version.segment_bytes != SEGMENT_BYTES_MAX as u64 {
                tlv::write_nni(&mut value, SEGMENT_SIZE, version.segment_bytes);
            }
            if let Some(root) = version.root {
                tlv::write_element(&mut value, CONTENT_ROOT, &root);
            }
        }
        self.attributes.encode(&mut value);
        if let Some(content) = self.content {
            tlv::write_element(&mut value, CONTENT_NAME, content.name.to_name().view().value());
        }
        tlv::write_element(out, MANIFEST_ENTRY, &value);
    }

    /// Reads the value of an entry.
    pub(super) fn decode(value: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = tlv::Reader::new(value);
        let first = reader.read()?.filter(|first| first.typ == u32::from(types::GENERIC));
        let name = first.ok_or(DecodeError::Missing { element: "name", within: WITHIN })?.value;
        let mut fields = Fields { reader, next: None };
        fields.advance()?;
        let mode =
            fields.take(MODE)?.ok_or(DecodeError::Missing { element: "Mode", within: WITHIN })?;
        let mode = <[u8; 2]>::try_from(mode.value)
            .map(u16::from_be_bytes)
            .map_err(|_| DecodeError::BadLength { element: "Mode", len: mode.value.len() })?;
        let mtime_ns = fields.number(MTIME)?;
        let size = fields.number(SIZE)?;
        let version = match fields.number(ENTRY_VERSION)? {
            Some(number) => Some(decode_version(number, &mut fields)?),
            None => None,
        };
        let mut attributes = Attributes::default();
        for typ in [LINK_TARGET, OWNER, GROUP, CHECKSUMS, BINDING, MEDIA_TYPE] {
            if let Some(element) = fields.take(typ)? {
                attributes.take(element)?;
            }
        }
        let content_name = fields.take(CONTENT_NAME)?.map(|element| content_name(element.value));
        fields.finish()?;
        let mut entry = Entry { mtime_ns, size, version, attributes, ..Entry::new(name, mode) };
        if let Some(name) = content_name.transpose()? {
            let version = entry.version.take();
            entry.content = version.map(|version| Content { name, version });
            if entry.content.is_none() || attributes.binding.is_none() {
                return Err(DecodeError::BadValue { element: "ContentName" });
            }
        }
        entry.check()
    }

    /// Refuses elements that contradict each other.
    fn check(self) -> Result<Self, DecodeError> {
        let has_version = self.version.is_some() || self.content.is_some();
        let is_consistent = match (self.mode & TYPE_MASK, self.kind()) {
            (REGULAR, ObjectKind::File) => !has_version || self.size.is_some(),
            // Its target is here, and nothing has to be fetched.
            (REGULAR, ObjectKind::Link) | (DIRECTORY, ObjectKind::Directory) => {
                self.size.is_none() && !has_version
            }
            _ => false,
        };
        match is_consistent {
            true => Ok(self),
            false => Err(DecodeError::BadValue { element: WITHIN }),
        }
    }
}

fn content_name(value: &[u8]) -> Result<ContentName<'_>, DecodeError> {
    let name = NameRef::from_value(value)?;
    ContentName::parse(name).ok_or(DecodeError::BadValue { element: "ContentName" })
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
    fn take(&mut self, typ: u32) -> Result<Option<tlv::Element<'a>>, DecodeError> {
        while let Some(next) = self.next {
            if next.typ == typ {
                self.advance()?;
                return Ok(Some(next));
            }
            if pass(next.typ, WITHIN).is_err() {
                return Ok(None);
            }
            self.advance()?;
        }
        Ok(None)
    }

    fn number(&mut self, typ: u32) -> Result<Option<u64>, DecodeError> {
        let element = self.take(typ)?;
        element
            .map(|element| tlv::read_nni(element.value, "number of a manifest entry"))
            .transpose()
    }

    fn finish(mut self) -> Result<(), DecodeError> {
        while let Some(next) = self.next {
            pass(next.typ, WITHIN)?;
            self.advance()?;
        }
        Ok(())
    }
}

fn decode_version(number: u64, fields: &mut Fields<'_>) -> Result<Version, DecodeError> {
    let segment_bytes = fields.number(SEGMENT_SIZE)?.unwrap_or(SEGMENT_BYTES_MAX as u64);
    if !(SEGMENT_BYTES_MIN as u64..=SEGMENT_BYTES_MAX as u64).contains(&segment_bytes) {
        return Err(DecodeError::BadValue { element: "SegmentSize" });
    }
    let root = fields.take(CONTENT_ROOT)?.map(|root| {
        <[u8; 32]>::try_from(root.value)
            .map_err(|_| DecodeError::BadLength { element: "ContentRoot", len: root.value.len() })
    });
    Ok(Version { number, segment_bytes, root: root.transpose()? })
}
