//! Attributes that metadata and manifest entries share: link target, owner, group, checksums,
//! binding, media type.
//!
//! They are non-critical, so readers that do not know them pass over them. Those that do refuse
//! what breaks a rule instead of guessing. Views borrow; nothing is allocated.

mod checksums;

pub use checksums::{Algorithm, Checksums};

use byname_packet::{DecodeError, tlv};

use crate::numbers::{BINDING, CHECKSUMS, GROUP, LINK_TARGET, MEDIA_TYPE, OWNER};

/// Octets of a link target, as in a path of Linux.
pub const LINK_TARGET_BYTES_MAX: usize = 4095;
/// Octets of the name of an owner or a group.
pub const PRINCIPAL_BYTES_MAX: usize = 255;
/// Octets of a media type.
pub const MEDIA_TYPE_BYTES_MAX: usize = 255;

/// Kinds of objects that a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link. Its Mode is that of a regular file, for readers that know no links.
    Link,
}

/// The attributes, those that are there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// Of a symbolic link: the path it leads to, neither checked nor followed.
    pub link_target: Option<&'a [u8]>,
    /// Name of the owner.
    pub owner: Option<&'a str>,
    /// Name of the group.
    pub group: Option<&'a str>,
    /// Checksums of the content, for software that knows no BLAKE3.
    pub checksums: Checksums,
    /// Number of the transaction that last changed the path or its attributes; never 0.
    pub binding: Option<u64>,
    /// Media type of the content, as its publisher calls it.
    pub media_type: Option<&'a str>,
}

impl<'a> Attributes<'a> {
    /// Appends the elements in the order of their TYPEs.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let octets = [
            (LINK_TARGET, self.link_target),
            (OWNER, self.owner.map(str::as_bytes)),
            (GROUP, self.group.map(str::as_bytes)),
        ];
        for (typ, value) in octets {
            if let Some(value) = value {
                tlv::write_element(out, typ, value);
            }
        }
        self.checksums.encode(out);
        if let Some(binding) = self.binding {
            tlv::write_nni(out, BINDING, binding);
        }
        if let Some(media_type) = self.media_type {
            tlv::write_element(out, MEDIA_TYPE, media_type.as_bytes());
        }
    }

    /// Takes the element if it is one of these; the first of a kind counts. True if it is.
    ///
    /// # Errors
    /// `BadLength` and `BadValue` for values that break a rule of the element.
    pub fn take(&mut self, element: tlv::Element<'a>) -> Result<bool, DecodeError> {
        let value = element.value;
        match element.typ {
            LINK_TARGET => self.link_target = self.link_target.or(Some(link_target(value)?)),
            OWNER => self.owner = self.owner.or(Some(principal(value, "Owner")?)),
            GROUP => self.group = self.group.or(Some(principal(value, "Group")?)),
            CHECKSUMS => {
                let found = Checksums::decode(value)?;
                if self.checksums == Checksums::default() {
                    self.checksums = found;
                }
            }
            BINDING => self.binding = self.binding.or(Some(binding(value)?)),
            MEDIA_TYPE => self.media_type = self.media_type.or(Some(media_type(value)?)),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn link_target(value: &[u8]) -> Result<&[u8], DecodeError> {
    const ELEMENT: &str = "LinkTarget";
    match value.len() {
        1..=LINK_TARGET_BYTES_MAX if value.contains(&0) => {
            Err(DecodeError::BadValue { element: ELEMENT })
        }
        1..=LINK_TARGET_BYTES_MAX => Ok(value),
        len => Err(DecodeError::BadLength { element: ELEMENT, len }),
    }
}

/// The name of an owner or group: UTF-8 without control characters.
fn principal<'a>(value: &'a [u8], element: &'static str) -> Result<&'a str, DecodeError> {
    if value.is_empty() || value.len() > PRINCIPAL_BYTES_MAX {
        return Err(DecodeError::BadLength { element, len: value.len() });
    }
    let name = std::str::from_utf8(value).ok();
    let name = name.filter(|name| !name.chars().any(char::is_control));
    name.ok_or(DecodeError::BadValue { element })
}

fn binding(value: &[u8]) -> Result<u64, DecodeError> {
    match tlv::read_nni(value, "Binding")? {
        0 => Err(DecodeError::BadValue { element: "Binding" }),
        binding => Ok(binding),
    }
}

/// A type and a subtype, perhaps with parameters: printable ASCII with a `/` inside.
fn media_type(value: &[u8]) -> Result<&str, DecodeError> {
    const ELEMENT: &str = "MediaType";
    if value.is_empty() || value.len() > MEDIA_TYPE_BYTES_MAX {
        return Err(DecodeError::BadLength { element: ELEMENT, len: value.len() });
    }
    let text = std::str::from_utf8(value).ok();
    let is_printable = |text: &&str| text.chars().all(|it| it.is_ascii_graphic() || it == ' ');
    let has_both = |text: &&str| {
        text.split_once('/').is_some_and(|(kind, rest)| !kind.is_empty() && !rest.is_empty())
    };
    let text = text.filter(is_printable).filter(has_both);
    text.ok_or(DecodeError::BadValue { element: ELEMENT })
}

#[cfg(test)]
mod tests;
