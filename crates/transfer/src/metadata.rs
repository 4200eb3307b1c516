//! Answer to a discovery Interest: the description of a version, or why there is none.
//!
//! Both are the Content of a signed Data packet; [`Answer::decode`] takes whichever it is.
//! Numbers that ndn6 file servers write in a fixed width are written so; any width is read.
//! Unknown elements are ignored if they are not critical, so that other servers' extensions do no
//! harm; a second element of a kind is too.

use byname_packet::{ContentType, Data, DecodeError, Name, NameRef, tlv, types};

use crate::attributes::{Attributes, Checksums, ObjectKind};
use crate::naming::ContentName;
use crate::{delegations, numbers};

const WITHIN: &str = "metadata";

/// State of the BLAKE3 root of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContentRoot {
    /// The server announces none: it is not one of ours.
    Absent,
    /// It is being computed; ask again.
    Pending,
    /// Root of the object's bytes (of a directory: of its listing).
    Known([u8; 32]),
}

/// The description of one version of a file or directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// The versioned name: `<path>/v=V` of a file or link, `<path>/32=ls/v=V` of a directory, or
    /// that of a content elsewhere ([`ContentName`]).
    pub name: Name,
    /// Number of the last segment (files).
    pub last_segment: Option<u64>,
    /// Octets in every segment but the last (files).
    pub segment_size: Option<u64>,
    /// Octets of the file (files).
    pub size: Option<u64>,
    /// `st_mode`, type bits included; of a link that of a regular file.
    pub mode: Option<u16>,
    /// Last change of the inode, nanoseconds since the Unix epoch.
    pub ctime_ns: Option<u64>,
    /// Last change of the content, nanoseconds since the Unix epoch.
    pub mtime_ns: Option<u64>,
    /// BLAKE3 root.
    pub root: ContentRoot,
    /// Octets of the listing (directories).
    pub listing_size: Option<u64>,
    /// Octets in every segment of the listing but the last (directories).
    pub listing_segment_size: Option<u64>,
    /// Elements that few publishers announce; `None` if there are none.
    pub extras: Option<Box<Extras>>,
}

/// Elements of metadata that few publishers announce: see [`Attributes`] and [`delegations`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extras {
    /// Of a symbolic link: the path it leads to, neither checked nor followed.
    pub link_target: Option<Vec<u8>>,
    /// Name of the owner.
    pub owner: Option<String>,
    /// Name of the group.
    pub group: Option<String>,
    /// Checksums of the content.
    pub checksums: Checksums,
    /// Number of the transaction that last changed the path or its attributes.
    pub binding: Option<u64>,
    /// Media type of the content.
    pub media_type: Option<String>,
    /// Where replicas of the content are.
    pub forwarding_hint: Vec<Name>,
}

impl Extras {
    fn new(attributes: &Attributes<'_>, forwarding_hint: Vec<Name>) -> Self {
        Extras {
            link_target: attributes.link_target.map(<[u8]>::to_vec),
            owner: attributes.owner.map(str::to_owned),
            group: attributes.group.map(str::to_owned),
            checksums: attributes.checksums,
            binding: attributes.binding,
            media_type: attributes.media_type.map(str::to_owned),
            forwarding_hint,
        }
    }
}

/// Why there is nothing to fetch under a name now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Absence {
    /// Nothing is published there.
    NotFound,
    /// The file changes; ask again after this time.
    BeingWritten {
        /// Milliseconds.
        retry_ms: u64,
    },
    /// The list of the directory is being made; ask again after this time.
    BeingListed {
        /// Milliseconds.
        retry_ms: u64,
    },
    /// The server's user may not read it.
    NoPermission,
    /// The directory's listing exceeds the server's bound.
    ListingTooLarge,
    /// The name leaves no room for content in a packet.
    NameTooLong,
    /// The server cannot read it, or gave an error code that is not known here.
    Unreadable {
        /// The code as received.
        code: u64,
    },
}

/// The content of a metadata packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A version to fetch.
    Metadata(Metadata),
    /// None.
    Absence(Absence),
}

impl Answer {
    /// Reads the content of the Data that answers a discovery Interest.
    ///
    /// # Errors
    /// [`DecodeError`] for broken TLVs, numbers of impossible width or a version without a name.
    pub fn decode(data: &Data<'_>) -> Result<Self, DecodeError> {
        if data.meta.content_type == ContentType::NACK {
            Absence::decode(data.content).map(Self::Absence)
        } else {
            Metadata::decode(data.content).map(Self::Metadata)
        }
    }
}

impl Metadata {
    /// A description that holds nothing but the versioned name.
    pub fn new(name: Name) -> Self {
        Self {
            name,
            last_segment: None,
            segment_size: None,
            size: None,
            mode: None,
            ctime_ns: None,
            mtime_ns: None,
            root: ContentRoot::Absent,
            listing_size: None,
            listing_segment_size: None,
            extras: None,
        }
    }

    /// The attributes that manifest entries have, too.
    pub fn attributes(&self) -> Attributes<'_> {
        let Some(extras) = &self.extras else { return Attributes::default() };
        Attributes {
            link_target: extras.link_target.as_deref(),
            owner: extras.owner.as_deref(),
            group: extras.group.as_deref(),
            checksums: extras.checksums,
            binding: extras.binding,
            media_type: extras.media_type.as_deref(),
        }
    }

    /// The delegations towards replicas of the content.
    pub fn forwarding_hint(&self) -> &[Name] {
        self.extras.as_ref().map_or(&[], |extras| &extras.forwarding_hint)
    }

    /// The content's name, if it does not lie under the path's own.
    pub fn content_name(&self) -> Option<ContentName<'_>> {
        self.version().and_then(|_| ContentName::parse(self.name.view().without_last(1)))
    }

    /// The kind of object.
    pub fn kind(&self) -> ObjectKind {
        match () {
            () if self.attributes().link_target.is_some() => ObjectKind::Link,
            () if self.is_directory() => ObjectKind::Directory,
            () => ObjectKind::File,
        }
    }

    /// The version, which must be the last component of the name.
    pub fn version(&self) -> Option<u64> {
        self.name.view().last()?.version()
    }

    /// True if this describes a directory: by its mode, or by its name when no mode is given.
    pub fn is_directory(&self) -> bool {
        const TYPE_MASK: u16 = 0o170_000;
        const DIRECTORY: u16 = 0o040_000;
        if let Some(mode) = self.mode.filter(|mode| mode & TYPE_MASK != 0) {
            return mode & TYPE_MASK == DIRECTORY;
        }
        let before_version = self.name.view().without_last(1).last();
        before_version.is_some_and(|component| component.is_keyword(numbers::LISTING_KEYWORD))
    }

    /// Appends the content.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.name.view().encode(out);
        if let Some(last) = self.last_segment {
            let component = byname_packet::NumberComponent::segment(last);
            let component = component.as_component();
            tlv::write_tl(out, types::FINAL_BLOCK_ID, component.wire_len());
            component.encode(out);
        }
        if let Some(bytes) = self.segment_size {
            // Sizes are at most 8192 here; a larger one does not fit in 2 octets.
            let bytes = u16::try_from(bytes).unwrap_or(u16::MAX);
            tlv::write_element(out, numbers::SEGMENT_SIZE, &bytes.to_be_bytes());
        }
        write_u64(out, numbers::SIZE, self.size);
        if let Some(mode) = self.mode {
            tlv::write_element(out, numbers::MODE, &mode.to_be_bytes());
        }
        write_u64(out, numbers::CTIME, self.ctime_ns);
        write_u64(out, numbers::MTIME, self.mtime_ns);
        match &self.root {
            ContentRoot::Absent => {}
            ContentRoot::Pending => tlv::write_element(out, numbers::ROOT_PENDING, &[]),
            ContentRoot::Known(root) => tlv::write_element(out, numbers::CONTENT_ROOT, root),
        }
        if let Some(bytes) = self.listing_size {
            tlv::write_nni(out, numbers::LISTING_SIZE, bytes);
        }
        if let Some(bytes) = self.listing_segment_size {
            tlv::write_nni(out, numbers::LISTING_SEGMENT_SIZE, bytes);
        }
        self.attributes().encode(out);
        delegations::encode(self.forwarding_hint(), out);
    }

    /// Reads the content of a metadata packet.
    ///
    /// # Errors
    /// [`DecodeError`] for broken TLVs, values that break a rule of their element, unknown critical
    /// elements, a missing name, a content name without a binding, or a link that is a directory
    /// or not as long as its target.
    pub fn decode(content: &[u8]) -> Result<Self, DecodeError> {
        let mut found = Metadata::new(Name::new());
        let (mut attributes, mut forwarding_hint) = (Attributes::default(), Vec::new());
        let mut name = None;
        let mut reader = tlv::Reader::new(content);
        while let Some(element) = reader.read()? {
            match element.typ {
                types::NAME if name.is_none() => {
                    name = Some(NameRef::from_value(element.value)?.to_name());
                }
                types::FINAL_BLOCK_ID => {
                    let last = byname_packet::Component::decode(element.value)?;
                    found.last_segment = found.last_segment.or(last.segment());
                }
                numbers::FORWARDING_HINT => {
                    let delegations = delegations::decode(element.value)?;
                    if forwarding_hint.is_empty() {
                        forwarding_hint = delegations;
                    }
                }
                _ if attributes.take(element)? => {}
                _ => found.take(element)?,
            }
        }
        found.name = name.ok_or(DecodeError::Missing { element: "Name", within: WITHIN })?;
        if attributes != Attributes::default() || !forwarding_hint.is_empty() {
            found.extras = Some(Box::new(Extras::new(&attributes, forwarding_hint)));
        }
        found.check()
    }

    /// Refuses elements that contradict each other.
    fn check(self) -> Result<Self, DecodeError> {
        let Attributes { link_target, binding, .. } = self.attributes();
        if self.content_name().is_some() && binding.is_none() {
            return Err(DecodeError::Missing { element: "Binding", within: WITHIN });
        }
        if let Some(target) = link_target {
            let has_other_size = self.size.is_some_and(|size| size != target.len() as u64);
            if self.is_directory() || has_other_size {
                return Err(DecodeError::BadValue { element: "LinkTarget" });
            }
        }
        Ok(self)
    }

    fn take(&mut self, element: tlv::Element<'_>) -> Result<(), DecodeError> {
        let slot = match element.typ {
            numbers::SEGMENT_SIZE => &mut self.segment_size,
            numbers::SIZE => &mut self.size,
            numbers::CTIME => &mut self.ctime_ns,
            numbers::MTIME => &mut self.mtime_ns,
            numbers::LISTING_SIZE => &mut self.listing_size,
            numbers::LISTING_SEGMENT_SIZE => &mut self.listing_segment_size,
            numbers::MODE => {
                let mode = tlv::read_nni(element.value, "Mode")?;
                self.mode = self.mode.or(u16::try_from(mode).ok());
                return Ok(());
            }
            numbers::CONTENT_ROOT | numbers::ROOT_PENDING => return self.take_root(element),
            // A second Name.
            types::NAME => return Ok(()),
            typ if types::is_critical(typ) => {
                return Err(DecodeError::UnknownCritical { typ, within: WITHIN });
            }
            _ => return Ok(()),
        };
        let number = tlv::read_nni(element.value, "metadata number")?;
        *slot = slot.or(Some(number));
        Ok(())
    }

    fn take_root(&mut self, element: tlv::Element<'_>) -> Result<(), DecodeError> {
        if self.root != ContentRoot::Absent {
            return Ok(());
        }
        if element.typ == numbers::ROOT_PENDING {
            self.root = ContentRoot::Pending;
            return Ok(());
        }
        let len = element.value.len();
        let root = element.value.try_into();
        self.root = ContentRoot::Known(
            root.map_err(|_| DecodeError::BadLength { element: "ContentRoot", len })?,
        );
        Ok(())
    }
}

impl Absence {
    /// Appends the content of the packet whose ContentType is Nack.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let code = match *self {
            Self::NotFound => return,
            Self::BeingWritten { retry_ms } => {
                return tlv::write_nni(out, numbers::BEING_WRITTEN, retry_ms);
            }
            Self::BeingListed { retry_ms } => {
                // Who does not know the first element waits all the same.
                tlv::write_element(out, numbers::BEING_LISTED, &[]);
                return tlv::write_nni(out, numbers::BEING_WRITTEN, retry_ms);
            }
            Self::NoPermission => numbers::ERROR_NO_PERMISSION,
            Self::ListingTooLarge => numbers::ERROR_LISTING_TOO_LARGE,
            Self::NameTooLong => numbers::ERROR_NAME_TOO_LONG,
            Self::Unreadable { code } => code,
        };
        tlv::write_nni(out, numbers::ERROR_CODE, code);
    }

    /// Reads the content of a packet whose ContentType is Nack. What is not known means not found.
    ///
    /// # Errors
    /// [`DecodeError`] for broken TLVs and numbers of impossible width.
    pub fn decode(content: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = tlv::Reader::new(content);
        let mut is_listed = false;
        while let Some(element) = reader.read()? {
            match element.typ {
                numbers::BEING_LISTED => is_listed = true,
                numbers::BEING_WRITTEN => {
                    let retry_ms = tlv::read_nni(element.value, "BeingWritten")?;
                    return Ok(match is_listed {
                        true => Self::BeingListed { retry_ms },
                        false => Self::BeingWritten { retry_ms },
                    });
                }
                numbers::ERROR_CODE => {
                    return Ok(match tlv::read_nni(element.value, "ErrorCode")? {
                        numbers::ERROR_NO_PERMISSION => Self::NoPermission,
                        numbers::ERROR_LISTING_TOO_LARGE => Self::ListingTooLarge,
                        numbers::ERROR_NAME_TOO_LONG => Self::NameTooLong,
                        code => Self::Unreadable { code },
                    });
                }
                _ => {}
            }
        }
        Ok(Self::NotFound)
    }
}

fn write_u64(out: &mut Vec<u8>, typ: u32, number: Option<u64>) {
    if let Some(number) = number {
        tlv::write_element(out, typ, &number.to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
