//! NDNLPv2: the header that a link or a hop adds to a packet, and fragments.
//!
//! ```text
//! LpPacket = 100 LENGTH *Field [Fragment]
//! ```
//! Fields stand in ascending order of TYPE, Fragment last. Bare Interests and Data are legal on
//! every link and are what we send when there is nothing to say.
//! spec: NDNLPv2 (NFD wiki), "Packet Format", "Evolvability".

use crate::error::DecodeError;
use crate::{tlv, types};

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
                if !value.is_empty() {
                    let len = value.len();
                    return Err(DecodeError::BadLength { element: "NonDiscovery", len });
                }
                header.non_discovery = true;
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

impl LpHeader<'_> {
    /// True if a bare packet would do.
    pub fn is_empty(&self) -> bool {
        *self == LpHeader::default()
    }

    /// Octets of the fields, without what encloses them.
    pub fn fields_len(&self) -> usize {
        let nni = |typ: u32, number: Option<u64>| {
            number.map_or(0, |number| tlv::nni_element_len(typ, number))
        };
        let mut len = 0;
        len += self.pit_token.map_or(0, |t| tlv::element_len(types::LP_PIT_TOKEN, t.len()));
        len += self.nack.map_or(0, |reason| tlv::element_len(types::LP_NACK, nack_len(reason)));
        len += nni(types::LP_INCOMING_FACE_ID, self.incoming_face_id);
        len += nni(types::LP_NEXT_HOP_FACE_ID, self.next_hop_face_id);
        if let Some(policy) = self.cache_policy {
            let inner = tlv::nni_element_len(types::LP_CACHE_POLICY_TYPE, policy);
            len += tlv::element_len(types::LP_CACHE_POLICY, inner);
        }
        len += nni(types::LP_CONGESTION_MARK, self.congestion_mark);
        if self.non_discovery {
            len += tlv::element_len(types::LP_NON_DISCOVERY, 0);
        }
        let announcement = self.prefix_announcement;
        len + announcement.map_or(0, |d| tlv::element_len(types::LP_PREFIX_ANNOUNCEMENT, d.len()))
    }

    fn write_fields(&self, out: &mut Vec<u8>) {
        if let Some(token) = self.pit_token {
            tlv::write_element(out, types::LP_PIT_TOKEN, token);
        }
        if let Some(reason) = self.nack {
            tlv::write_tl(out, types::LP_NACK, nack_len(reason));
            if reason != nack_reason::NONE {
                tlv::write_nni(out, types::LP_NACK_REASON, reason);
            }
        }
        if let Some(face) = self.incoming_face_id {
            tlv::write_nni(out, types::LP_INCOMING_FACE_ID, face);
        }
        if let Some(face) = self.next_hop_face_id {
            tlv::write_nni(out, types::LP_NEXT_HOP_FACE_ID, face);
        }
        if let Some(policy) = self.cache_policy {
            let inner = tlv::nni_element_len(types::LP_CACHE_POLICY_TYPE, policy);
            tlv::write_tl(out, types::LP_CACHE_POLICY, inner);
            tlv::write_nni(out, types::LP_CACHE_POLICY_TYPE, policy);
        }
        if let Some(mark) = self.congestion_mark {
            tlv::write_nni(out, types::LP_CONGESTION_MARK, mark);
        }
        if self.non_discovery {
            tlv::write_tl(out, types::LP_NON_DISCOVERY, 0);
        }
        if let Some(data) = self.prefix_announcement {
            tlv::write_element(out, types::LP_PREFIX_ANNOUNCEMENT, data);
        }
    }
}

fn nack_len(reason: u64) -> usize {
    if reason == nack_reason::NONE {
        0
    } else {
        tlv::nni_element_len(types::LP_NACK_REASON, reason)
    }
}

/// Fields that belong to the link rather than to the packet.
#[derive(Debug, Clone, Copy, Default)]
pub struct LinkFields<'a> {
    /// Which fragment this is, when the packet is split.
    pub fragment: Option<FragmentFields>,
    /// Sequence number for reliability.
    pub tx_sequence: Option<u64>,
    /// Sequence numbers acknowledged.
    pub acks: &'a [u64],
    /// Octets to add that say nothing: 0, or from 4 to 256. They make fragments equally long, so
    /// that one call can send many. Everybody ignores them: their TYPE is in the ignorable range.
    pub padding_bytes: usize,
}

/// TYPE of padding: unassigned, and ignorable as NDNLPv2 defines it.
const PADDING: u32 = 956;

/// TYPE and LENGTH of padding: what it takes at least.
pub const PADDING_BYTES_MIN: usize = 4;

/// The most padding that LENGTH can say in one octet.
pub const PADDING_BYTES_MAX: usize = PADDING_BYTES_MIN + 252;

/// Appends everything that stands before `fragment_len` octets of fragment.
///
/// Appends nothing at all when there is nothing to say: the fragment then is a bare packet.
pub fn encode_header(
    header: &LpHeader<'_>,
    fragment: Option<FragmentFields>,
    fragment_len: usize,
    out: &mut Vec<u8>,
) {
    encode_link_header(
        header,
        &LinkFields { fragment, ..LinkFields::default() },
        fragment_len,
        out,
    );
}

/// As [`encode_header`], with the fields of reliability. Without a fragment (`fragment_len` 0) the
/// packet is an IDLE packet that carries only acknowledgements.
pub fn encode_link_header(
    header: &LpHeader<'_>,
    link: &LinkFields<'_>,
    fragment_len: usize,
    out: &mut Vec<u8>,
) {
    const FIXED_U64_LEN: usize = 8;
    let link_is_empty =
        link.fragment.is_none() && link.tx_sequence.is_none() && link.acks.is_empty();
    let padding_value_len = link.padding_bytes.checked_sub(PADDING_BYTES_MIN);
    if header.is_empty() && link_is_empty {
        return;
    }
    let mut len = header.fields_len();
    if let Some(fields) = link.fragment {
        len += tlv::element_len(types::LP_SEQUENCE, FIXED_U64_LEN);
        if fields.count > 1 {
            len += tlv::nni_element_len(types::LP_FRAG_INDEX, fields.index)
                + tlv::nni_element_len(types::LP_FRAG_COUNT, fields.count);
        }
    }
    len += link.acks.len() * tlv::element_len(types::LP_ACK, FIXED_U64_LEN);
    if link.tx_sequence.is_some() {
        len += tlv::element_len(types::LP_TX_SEQUENCE, FIXED_U64_LEN);
    }
    len += padding_value_len.map_or(0, |len| tlv::element_len(PADDING, len));
    if fragment_len > 0 {
        len += tlv::element_len(types::LP_FRAGMENT, fragment_len);
    }
    tlv::write_tl(out, types::LP_PACKET, len);
    if let Some(fields) = link.fragment {
        tlv::write_element(out, types::LP_SEQUENCE, &fields.sequence.to_be_bytes());
        if fields.count > 1 {
            tlv::write_nni(out, types::LP_FRAG_INDEX, fields.index);
            tlv::write_nni(out, types::LP_FRAG_COUNT, fields.count);
        }
    }
    write_with_reliability(header, link, out);
    if let Some(len) = padding_value_len {
        tlv::write_tl(out, PADDING, len);
        out.resize(out.len() + len, 0);
    }
    if fragment_len > 0 {
        tlv::write_tl(out, types::LP_FRAGMENT, fragment_len);
    }
}

/// Appends an IDLE packet that asks for `token` to be returned.
pub fn encode_address_token(token: u64, out: &mut Vec<u8>) {
    encode_token(types::LP_ADDRESS_TOKEN, token, out);
}

/// Appends an IDLE packet that returns `token`.
pub fn encode_returned_token(token: u64, out: &mut Vec<u8>) {
    encode_token(types::LP_RETURNED_TOKEN, token, out);
}

fn encode_token(typ: u32, token: u64, out: &mut Vec<u8>) {
    let token = token.to_be_bytes();
    tlv::write_tl(out, types::LP_PACKET, tlv::element_len(typ, token.len()));
    tlv::write_element(out, typ, &token);
}

/// Ack and TxSequence (836, 840) stand between CongestionMark (832) and NonDiscovery (844).
fn write_with_reliability(header: &LpHeader<'_>, link: &LinkFields<'_>, out: &mut Vec<u8>) {
    let before = LpHeader { non_discovery: false, prefix_announcement: None, ..*header };
    before.write_fields(out);
    for ack in link.acks {
        tlv::write_element(out, types::LP_ACK, &ack.to_be_bytes());
    }
    if let Some(sequence) = link.tx_sequence {
        tlv::write_element(out, types::LP_TX_SEQUENCE, &sequence.to_be_bytes());
    }
    let after = LpHeader {
        non_discovery: header.non_discovery,
        prefix_announcement: header.prefix_announcement,
        ..LpHeader::default()
    };
    after.write_fields(out);
}

#[cfg(test)]
mod tests;
