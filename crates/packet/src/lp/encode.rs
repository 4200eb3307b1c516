//! Encoding of what stands before a packet or fragment.

use super::{FragmentFields, LpHeader, nack_reason};
use crate::{tlv, types};

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
        let octets = |typ: u32, value: Option<&[u8]>| {
            value.map_or(0, |value| tlv::element_len(typ, value.len()))
        };
        len += octets(types::LP_PREFIX_ANNOUNCEMENT, self.prefix_announcement);
        len += octets(types::LP_PATH_TRACE, self.path_trace);
        len + if self.not_fresh { tlv::element_len(types::LP_NOT_FRESH, 0) } else { 0 }
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
        if let Some(trace) = self.path_trace {
            tlv::write_element(out, types::LP_PATH_TRACE, trace);
        }
        if self.not_fresh {
            tlv::write_tl(out, types::LP_NOT_FRESH, 0);
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
    let before = LpHeader {
        non_discovery: false,
        prefix_announcement: None,
        path_trace: None,
        not_fresh: false,
        ..*header
    };
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
        path_trace: header.path_trace,
        not_fresh: header.not_fresh,
        ..LpHeader::default()
    };
    after.write_fields(out);
}
