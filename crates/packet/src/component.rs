//! Name components: borrowed views, and numbers in the naming conventions.
//!
//! spec: NDN Packet Format §2, "NDN naming conventions" rev 3.

use crate::error::DecodeError;
use crate::{tlv, types};

/// One component of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Component<'a> {
    /// TYPE, 1 to 65535.
    pub typ: u16,
    /// Value.
    pub value: &'a [u8],
}

impl<'a> Component<'a> {
    /// A generic component.
    pub fn generic(value: &'a [u8]) -> Self {
        Self { typ: types::GENERIC, value }
    }

    /// A keyword component.
    pub fn keyword(value: &'a [u8]) -> Self {
        Self { typ: types::KEYWORD, value }
    }

    /// True if this is the keyword `word`.
    pub fn is_keyword(&self, word: &[u8]) -> bool {
        self.typ == types::KEYWORD && self.value == word
    }

    /// The number of a component of TYPE `typ`; `None` for another TYPE or a malformed number.
    pub fn number(&self, typ: u16) -> Option<u64> {
        if self.typ != typ {
            return None;
        }
        let number = tlv::read_nni(self.value, "component").ok()?;
        (tlv::nni_len(number) == self.value.len()).then_some(number)
    }

    /// The segment number.
    pub fn segment(&self) -> Option<u64> {
        self.number(types::SEGMENT)
    }

    /// The version.
    pub fn version(&self) -> Option<u64> {
        self.number(types::VERSION)
    }

    /// The byte offset.
    pub fn byte_offset(&self) -> Option<u64> {
        self.number(types::BYTE_OFFSET)
    }

    /// The timestamp in microseconds since the Unix epoch.
    pub fn timestamp(&self) -> Option<u64> {
        self.number(types::TIMESTAMP)
    }

    /// The sequence number.
    pub fn sequence(&self) -> Option<u64> {
        self.number(types::SEQUENCE_NUM)
    }

    /// Octets of the whole element.
    pub fn wire_len(&self) -> usize {
        tlv::element_len(u32::from(self.typ), self.value.len())
    }

    /// Appends the whole element.
    pub fn encode(&self, out: &mut Vec<u8>) {
        tlv::write_element(out, u32::from(self.typ), self.value);
    }

    /// Reads the one component that fills `wire`.
    ///
    /// # Errors
    /// [`DecodeError`] when `wire` is not exactly one component.
    pub fn decode(wire: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = tlv::Reader::new(wire);
        let element = reader.read()?.ok_or(DecodeError::Truncated { within: "component" })?;
        if !reader.is_empty() {
            let len = reader.rest().len();
            return Err(DecodeError::Trailing { len, within: "component" });
        }
        Self::from_element(element)
    }

    pub(crate) fn from_element(element: tlv::Element<'a>) -> Result<Self, DecodeError> {
        let typ = u16::try_from(element.typ).map_err(|_| DecodeError::InvalidType {
            typ: u64::from(element.typ),
            within: "Name",
        })?;
        let is_digest =
            matches!(typ, types::IMPLICIT_SHA256_DIGEST | types::PARAMETERS_SHA256_DIGEST);
        if is_digest && element.value.len() != 32 {
            let len = element.value.len();
            return Err(DecodeError::BadLength { element: "digest component", len });
        }
        Ok(Self { typ, value: element.value })
    }
}

/// A component that holds a number, kept on the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberComponent {
    typ: u16,
    octets: [u8; 8],
    len: u8,
}

impl NumberComponent {
    /// A component of TYPE `typ` that holds `number`.
    pub fn new(typ: u16, number: u64) -> Self {
        let len = tlv::nni_len(number);
        let mut octets = [0; 8];
        octets[..len].copy_from_slice(&number.to_be_bytes()[8 - len..]);
        Self { typ, octets, len: len as u8 }
    }

    /// A segment number.
    pub fn segment(number: u64) -> Self {
        Self::new(types::SEGMENT, number)
    }

    /// A version.
    pub fn version(number: u64) -> Self {
        Self::new(types::VERSION, number)
    }

    /// The component.
    pub fn as_component(&self) -> Component<'_> {
        Component { typ: self.typ, value: &self.octets[..usize::from(self.len)] }
    }
}
