//! Data packets: decoding, and encoding with the signature filled in where it belongs.
//!
//! ```text
//! Data = 6 LENGTH Name [MetaInfo] [Content] SignatureInfo SignatureValue
//! MetaInfo = 20 LENGTH [ContentType] [FreshnessPeriod] [FinalBlockId]
//! ```
//! spec: NDN Packet Format §4.

mod builder;

use crate::component::Component;
use crate::digest::sha256;
use crate::error::DecodeError;
use crate::name::NameRef;
use crate::signature::SignatureInfo;
use crate::{tlv, types};

pub use builder::{DataBuilder, DataPlan};

const WITHIN: &str = "Data";

/// Assigned content types.
pub struct ContentType;

impl ContentType {
    /// Payload; the default.
    pub const BLOB: u64 = 0;
    /// Delegations.
    pub const LINK: u64 = 1;
    /// A public key: the packet is a certificate.
    pub const KEY: u64 = 2;
    /// The producer says that there is no such thing.
    pub const NACK: u64 = 3;
    /// A manifest.
    pub const MANIFEST: u64 = 4;
    /// A prefix announcement.
    pub const PREFIX_ANNOUNCEMENT: u64 = 5;
}

/// Decoded MetaInfo; absent elements have their default values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MetaInfo<'a> {
    /// See [`ContentType`].
    pub content_type: u64,
    /// Time for which the packet counts as fresh in caches, in milliseconds.
    pub freshness_ms: u64,
    /// The last component of the last packet of this sequence.
    pub final_block_id: Option<Component<'a>>,
}

/// A decoded Data.
#[derive(Debug, Clone)]
pub struct Data<'a> {
    /// Its name.
    pub name: NameRef<'a>,
    /// Meta information.
    pub meta: MetaInfo<'a>,
    /// Payload; empty when the element is absent.
    pub content: &'a [u8],
    /// Signature information.
    pub signature_info: SignatureInfo<'a>,
    /// Signature.
    pub signature_value: &'a [u8],
    wire: &'a [u8],
    signed: (usize, usize),
}

const ORDER: [u32; 5] =
    [types::NAME, types::META_INFO, types::CONTENT, types::SIGNATURE_INFO, types::SIGNATURE_VALUE];

impl<'a> Data<'a> {
    /// Decodes the one Data that fills `wire`.
    ///
    /// # Errors
    /// [`DecodeError`] of the first rule broken.
    pub fn decode(wire: &'a [u8]) -> Result<Self, DecodeError> {
        let outer = tlv::read_only(wire, types::DATA, WITHIN)?;
        let value_at = wire.len() - outer.value.len();
        let mut reader = tlv::OrderedReader::new(outer.value, &ORDER, WITHIN);
        let name = reader.read_first("Name")?;
        let (mut meta, mut content, mut info, mut signature) = (None, None, None, None);
        let mut signed_end = value_at;
        while let Some(element) = reader.read()? {
            match element.typ {
                types::META_INFO => meta = Some(element.value),
                types::CONTENT => content = Some(element.value),
                types::SIGNATURE_INFO => info = Some(element.value),
                _ => {
                    signature = Some(element.value);
                    signed_end = value_at + reader.position() - element.wire.len();
                }
            }
        }
        let missing = |element| DecodeError::Missing { element, within: WITHIN };
        let info = info.ok_or(missing("SignatureInfo"))?;
        Ok(Self {
            name: NameRef::from_value(name.value)?,
            meta: meta.map_or(Ok(MetaInfo::default()), MetaInfo::from_value)?,
            content: content.unwrap_or_default(),
            signature_info: SignatureInfo::from_value(info)?,
            signature_value: signature.ok_or(missing("SignatureValue"))?,
            wire,
            signed: (value_at, signed_end),
        })
    }

    /// The packet as received.
    pub fn wire(&self) -> &'a [u8] {
        self.wire
    }

    /// The signed portion: everything from Name up to SignatureValue, unknown elements that
    /// stand between included.
    pub fn signed_portion(&self) -> &'a [u8] {
        &self.wire[self.signed.0..self.signed.1]
    }

    /// SHA-256 of the whole packet.
    pub fn implicit_digest(&self) -> [u8; 32] {
        sha256(&[self.wire])
    }
}

impl<'a> MetaInfo<'a> {
    fn from_value(value: &'a [u8]) -> Result<Self, DecodeError> {
        const ORDER: [u32; 3] =
            [types::CONTENT_TYPE, types::FRESHNESS_PERIOD, types::FINAL_BLOCK_ID];
        let mut meta = Self::default();
        let mut reader = tlv::OrderedReader::new(value, &ORDER, "MetaInfo");
        while let Some(element) = reader.read()? {
            meta.take(element)?;
        }
        Ok(meta)
    }

    fn take(&mut self, element: tlv::Element<'a>) -> Result<(), DecodeError> {
        match element.typ {
            types::CONTENT_TYPE => {
                self.content_type = tlv::read_nni(element.value, "ContentType")?;
            }
            types::FRESHNESS_PERIOD => {
                self.freshness_ms = tlv::read_nni(element.value, "FreshnessPeriod")?;
            }
            _ => self.final_block_id = Some(Component::decode(element.value)?),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
