//! NDN packet format v0.3 and NDNLPv2, with the management elements of NFD.
//!
//! Decoding borrows from the caller's bytes and never allocates by a length it has read; encoding
//! appends to the caller's buffer. Sources: NDN Packet Format Specification v0.3
//! (docs.named-data.net), the NDNLPv2 and NFD management pages of the NFD project's wiki.
//!
//! Invariants: every TYPE and LENGTH is read and written in its shortest form; element order and
//! the evolvability rule (unknown critical elements refuse the packet, others are ignored) are
//! checked at each level; a decoded view always points into the buffer it came from.

pub mod component;
pub mod data;
mod digest;
pub mod error;
pub mod interest;
pub mod lp;
pub mod mgmt;
pub mod name;
pub mod signature;
pub mod tlv;
pub mod types;

pub use component::{Component, NumberComponent};
pub use data::{ContentType, Data, DataBuilder, DataPlan, MetaInfo};
pub use digest::sha256;
pub use error::{DecodeError, UriError};
pub use interest::{ForwardingHint, Interest, InterestBuilder, SignatureExtra};
pub use name::{Name, NameRef};
pub use signature::{
    DigestSigner, KeyLocator, NullSigner, SignError, SignatureInfo, Signer, ValidityPeriod,
    signature_type,
};

/// The largest network-layer packet that NDN software accepts in practice, in octets.
pub const MAX_PACKET_BYTES: usize = 8800;

/// A network-layer packet, told apart by its outer TYPE.
#[derive(Debug, Clone)]
pub enum Packet<'a> {
    /// A request for one Data packet.
    Interest(Interest<'a>),
    /// A named, signed answer.
    Data(Data<'a>),
}

impl<'a> Packet<'a> {
    /// Decodes `wire`, which must hold exactly one Interest or Data.
    ///
    /// # Errors
    /// [`DecodeError`] of whatever is wrong, or `Unexpected` for any other TYPE.
    pub fn decode(wire: &'a [u8]) -> Result<Self, DecodeError> {
        match tlv::Reader::new(wire).peek_type()? {
            Some(types::INTEREST) => Ok(Self::Interest(Interest::decode(wire)?)),
            Some(types::DATA) => Ok(Self::Data(Data::decode(wire)?)),
            Some(typ) => Err(DecodeError::Unexpected { typ, within: "packet" }),
            None => Err(DecodeError::Truncated { within: "packet" }),
        }
    }
}

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
