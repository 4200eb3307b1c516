//! NDNLPv2: the header that a link or a hop adds to a packet, and fragments.
//!
//! ```text
//! LpPacket = 100 LENGTH *Field [Fragment]
//! ```
//! Fields stand in ascending order of TYPE, Fragment last. Bare Interests and Data are legal on
//! every link and are what we send when there is nothing to say.
//! spec: NDNLPv2 (NFD wiki), "Packet Format", "Evolvability".

mod encode;
pub mod trace;

use crate::error::DecodeError;
use crate::{tlv, types};

pub use encode::{
    LinkFields, PADDING_BYTES_MAX, PADDING_BYTES_MIN, encode_address_token, encode_header,
    encode_link_header, encode_returned_token,
};

const WITHIN: &str = "LpPacket";

/// Reasons of a network Nack.
pub mod nack_reason {
    /// Not given.
    pub const NONE: u64 = 0;
    /// The link is congested.
    pub const CONGESTION: u64 = 50;
    /// The nonce was seen before.
    pub const DUPLICATE: u64 = 100;
    /// There is no route.
    pub const NO_ROUTE: u64 = 150;
}

/// CachePolicyType: do not cache.
pub const CACHE_POLICY_NO_CACHE: u64 = 1;

/// The fields that travel with a network-layer packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LpHeader<'a> {
    /// Opaque token, 1 to 32 octets, to be echoed on the answer.
    pub pit_token: Option<&'a [u8]>,
    /// Reason, when the packet is a Nack of the Interest it carries.
    pub nack: Option<u64>,
    /// Face on which it arrived (local faces only).
    pub incoming_face_id: Option<u64>,
    /// Face on which it shall leave (local faces only).
    pub next_hop_face_id: Option<u64>,
    /// Cache policy of a Data.
    pub cache_policy: Option<u64>,
    /// Congestion mark; 0 is the same as none.
    pub congestion_mark: Option<u64>,
    /// The Interest is not for discovery.
    pub non_discovery: bool,
    /// A prefix announcement: a whole Data packet.
    pub prefix_announcement: Option<&'a [u8]>,
    /// On an Interest the wish for a path trace, on Data the trace; see [`trace`].
    pub path_trace: Option<&'a [u8]>,
    /// The Data is no answer for whoever wants to know what the publisher says now: a cache or a
    /// mirror had it for longer than it is fresh.
    pub not_fresh: bool,
}

/// Where a fragment belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FragmentFields {
    /// Sequence number on this link.
    pub sequence: u64,
    /// Index of the fragment in its packet.
    pub index: u64,
    /// Count of the packet's fragments. If 1, only the sequence number is written.
    pub count: u64,
}

/// A decoded LpPacket, or a bare packet seen as one.
#[derive(Debug, Clone, Default)]
pub struct LpPacket<'a> {
    /// The network-layer packet, or part of it.
    pub fragment: Option<&'a [u8]>,
    /// Sequence number on this link.
    pub sequence: Option<u64>,
    /// Index of the fragment.
    pub frag_index: u64,
    /// Count of fragments; 1 when absent.
    pub frag_count: u64,
    /// Sequence number for reliability.
    pub tx_sequence: Option<u64>,
    /// Token that the peer wants back, to know that this address receives.
    pub address_token: Option<u64>,
    /// Token of ours that the peer has received.
    pub returned_token: Option<u64>,
    /// Fields of the network-layer packet.
    pub header: LpHeader<'a>,
    fields: &'a [u8],
}

impl<'a> LpPacket<'a> {
    /// Decodes the one LpPacket, Interest or Data that fills `wire`.
    ///
    /// The fragment is not looked into, except that its length is checked for bare packets.
    ///
    /// # Errors
    /// [`DecodeError`] of the first rule broken.
    pub fn decode(wire: &'a [u8]) -> Result<Self, DecodeError> {
        let mut packet = Self { frag_count: 1, ..Self::default() };
        match tlv::Reader::new(wire).peek_type()? {
            Some(types::LP_PACKET) => {}
            Some(typ @ (types::INTEREST | types::DATA)) => {
                tlv::read_only(wire, typ, "packet")?;
                packet.fragment = Some(wire);
                return Ok(packet);
            }
            Some(typ) => return Err(DecodeError::Unexpected { typ, within: "packet" }),
            None => return Err(DecodeError::Truncated { within: "packet" }),
        }
        let outer = tlv::read_only(wire, types::LP_PACKET, WITHIN)?;
        packet.fields = outer.value;
        let mut reader = tlv::Reader::new(outer.value);
        let mut last = 0;
        while let Some(element) = reader.read()? {
            let order = if element.typ == types::LP_FRAGMENT { u32::MAX } else { element.typ };
            let may_repeat = element.typ == types::LP_ACK;
            if order < last || order == last && !may_repeat {
                return Err(DecodeError::OutOfOrder { typ: element.typ, within: WITHIN });
            }
            last = order;
            packet.take(element)?;
        }
        packet.check()?;
        Ok(packet)
    }

    fn take(&mut self, element: tlv::Element<'a>) -> Result<(), DecodeError> {
        let value = element.value;
        let header = &mut self.header;
        match element.typ {
            // An empty Fragment makes the packet idle, as no Fragment does.
            types::LP_FRAGMENT => self.fragment = (!value.is_empty()).then_some(value),
            types::LP_SEQUENCE => self.sequence = Some(fixed_u64(value, "Sequence")?),
            types::LP_FRAG_INDEX => self.frag_index = tlv::read_nni(value, "FragIndex")?,
            types::LP_FRAG_COUNT => self.frag_count = tlv::read_nni(value, "FragCount")?,
            types::LP_PIT_TOKEN => {
                if value.is_empty() || value.len() > 32 {
                    let len = value.len();
                    return Err(DecodeError::BadLength { element: "PitToken", len });
                }
                header.pit_token = Some(value);
            }
            types::LP_NACK => header.nack = Some(decode_nack(value)?),
            types::LP_INCOMING_FACE_ID => {
                header.incoming_face_id = Some(tlv::read_nni(value, "IncomingFaceId")?);
            }
            types::LP_NEXT_HOP_FACE_ID => {
                header.next_hop_face_id = Some(tlv::read_nni(value, "NextHopFaceId")?);
            }
            types::LP_CACHE_POLICY => header.cache_policy = Some(decode_cache_policy(value)?),
            types::LP_CONGESTION_MARK => {
                header.congestion_mark = Some(tlv::read_nni(value, "CongestionMark")?);
            }
            types::LP_ACK => {
                fixed_u64(value, "Ack")?;
            }
            types::LP_TX_SEQUENCE => self.tx_sequence = Some(fixed_u64(value, "TxSequence")?),
            types::LP_NON_DISCOVERY => {
                header.non_discovery = empty(value, "NonDiscovery")?;
            }
            types::LP_PREFIX_ANNOUNCEMENT => {
                tlv::read_only(value, types::DATA, "PrefixAnnouncement")?;
                header.prefix_announcement = Some(value);
            }
            types::LP_ADDRESS_TOKEN => {
                self.address_token = Some(fixed_u64(value, "AddressToken")?);
            }
            types::LP_RETURNED_TOKEN => {
                self.returned_token = Some(fixed_u64(value, "ReturnedToken")?);
            }
            types::LP_PATH_TRACE => header.path_trace = Some(value),
            types::LP_NOT_FRESH => header.not_fresh = empty(value, "NotFresh")?,
            typ if is_ignorable(typ) => {}
            typ => return Err(DecodeError::UnknownCritical { typ, within: WITHIN }),
        }
        Ok(())
    }

    fn check(&self) -> Result<(), DecodeError> {
        if self.frag_count == 0 {
            return Err(DecodeError::BadValue { element: "FragCount" });
        }
        if self.frag_index >= self.frag_count {
            return Err(DecodeError::BadValue { element: "FragIndex" });
        }
        if self.frag_count > 1 && self.sequence.is_none() {
            return Err(DecodeError::Missing { element: "Sequence", within: WITHIN });
        }
        Ok(())
    }

    /// True if the packet carries nothing for the network layer.
    pub fn is_idle(&self) -> bool {
        self.fragment.is_none()
    }

    /// The sequence numbers acknowledged.
    pub fn acks(&self) -> impl Iterator<Item = u64> {
        let mut reader = tlv::Reader::new(self.fields);
        std::iter::from_fn(move || {
            loop {
                let element = reader.read().ok()??;
                if element.typ == types::LP_ACK {
                    return fixed_u64(element.value, "Ack").ok();
                }
            }
        })
    }
}

fn is_ignorable(typ: u32) -> bool {
    (800..=959).contains(&typ) && typ & 0b11 == 0
}

/// A field that says all by being there.
fn empty(value: &[u8], element: &'static str) -> Result<bool, DecodeError> {
    match value.len() {
        0 => Ok(true),
        len => Err(DecodeError::BadLength { element, len }),
    }
}

fn fixed_u64(value: &[u8], element: &'static str) -> Result<u64, DecodeError> {
    let octets = value.try_into();
    octets.map(u64::from_be_bytes).map_err(|_| DecodeError::BadLength { element, len: value.len() })
}

/// The one known number inside `value`; `None` when it is absent.
fn decode_only_nni(
    value: &[u8],
    known: u32,
    element: &'static str,
    within: &'static str,
) -> Result<Option<u64>, DecodeError> {
    let mut reader = tlv::Reader::new(value);
    let mut number = None;
    while let Some(found) = reader.read()? {
        match found.typ {
            typ if typ == known && number.is_some() => {
                return Err(DecodeError::OutOfOrder { typ, within });
            }
            typ if typ == known => number = Some(tlv::read_nni(found.value, element)?),
            typ if is_ignorable(typ) => {}
            typ => return Err(DecodeError::UnknownCritical { typ, within }),
        }
    }
    Ok(number)
}

fn decode_nack(value: &[u8]) -> Result<u64, DecodeError> {
    let reason = decode_only_nni(value, types::LP_NACK_REASON, "NackReason", "Nack")?;
    Ok(reason.unwrap_or(nack_reason::NONE))
}

fn decode_cache_policy(value: &[u8]) -> Result<u64, DecodeError> {
    const ELEMENT: &str = "CachePolicyType";
    let policy = decode_only_nni(value, types::LP_CACHE_POLICY_TYPE, ELEMENT, "CachePolicy")?;
    policy.ok_or(DecodeError::Missing { element: ELEMENT, within: "CachePolicy" })
}

#[cfg(test)]
mod tests;
