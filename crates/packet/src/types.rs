//! Assigned TLV-TYPE numbers.
//!
//! Sources: NDN Packet Format v0.3 "TLV-TYPE number assignments", "Name component types", NDNLPv2
//! and the NFD management pages. The file-server extensions live in the `transfer` crate.

/// Interest packet.
pub const INTEREST: u32 = 5;
/// Data packet.
pub const DATA: u32 = 6;
/// Name.
pub const NAME: u32 = 7;
/// NDNLPv2 packet.
pub const LP_PACKET: u32 = 100;

/// Component: implicit SHA-256 digest of a Data packet (32 octets).
pub const IMPLICIT_SHA256_DIGEST: u16 = 1;
/// Component: SHA-256 digest of an Interest's parameters (32 octets).
pub const PARAMETERS_SHA256_DIGEST: u16 = 2;
/// Component without special meaning.
pub const GENERIC: u16 = 8;
/// Component: keyword.
pub const KEYWORD: u16 = 32;
/// Component: segment number.
pub const SEGMENT: u16 = 50;
/// Component: byte offset.
pub const BYTE_OFFSET: u16 = 52;
/// Component: version number.
pub const VERSION: u16 = 54;
/// Component: timestamp in microseconds since the Unix epoch.
pub const TIMESTAMP: u16 = 56;
/// Component: sequence number.
pub const SEQUENCE_NUM: u16 = 58;

/// Interest: the name may be a proper prefix of the Data's.
pub const CAN_BE_PREFIX: u32 = 33;
/// Interest: stale Data from a content store is not wanted.
pub const MUST_BE_FRESH: u32 = 18;
/// Interest: delegations towards which it may be forwarded.
pub const FORWARDING_HINT: u32 = 30;
/// Legacy delegation inside a forwarding hint.
pub const DELEGATION: u32 = 31;
/// Interest: 4 random octets that reveal loops.
pub const NONCE: u32 = 10;
/// Interest: lifetime in milliseconds.
pub const INTEREST_LIFETIME: u32 = 12;
/// Interest: hops it may still take.
pub const HOP_LIMIT: u32 = 34;
/// Interest: application parameters.
pub const APPLICATION_PARAMETERS: u32 = 36;
/// Interest: signature information.
pub const INTEREST_SIGNATURE_INFO: u32 = 44;
/// Interest: signature value.
pub const INTEREST_SIGNATURE_VALUE: u32 = 46;

/// Data: meta information.
pub const META_INFO: u32 = 20;
/// Data: content.
pub const CONTENT: u32 = 21;
/// Data: signature information.
pub const SIGNATURE_INFO: u32 = 22;
/// Data: signature value.
pub const SIGNATURE_VALUE: u32 = 23;
/// MetaInfo: content type.
pub const CONTENT_TYPE: u32 = 24;
/// MetaInfo: freshness period in milliseconds.
pub const FRESHNESS_PERIOD: u32 = 25;
/// MetaInfo: the last component of the last packet of a sequence.
pub const FINAL_BLOCK_ID: u32 = 26;

/// SignatureInfo: signature type.
pub const SIGNATURE_TYPE: u32 = 27;
/// SignatureInfo: where the key is.
pub const KEY_LOCATOR: u32 = 28;
/// KeyLocator: digest of the key.
pub const KEY_DIGEST: u32 = 29;
/// SignatureInfo: random octets (signed Interests).
pub const SIGNATURE_NONCE: u32 = 38;
/// SignatureInfo: milliseconds since the Unix epoch.
pub const SIGNATURE_TIME: u32 = 40;
/// SignatureInfo: sequence number.
pub const SIGNATURE_SEQ_NUM: u32 = 42;
/// SignatureInfo: validity period of a certificate.
pub const VALIDITY_PERIOD: u32 = 253;
/// ValidityPeriod: first moment.
pub const NOT_BEFORE: u32 = 254;
/// ValidityPeriod: last moment.
pub const NOT_AFTER: u32 = 255;
/// SignatureInfo: descriptions of a certificate.
pub const ADDITIONAL_DESCRIPTION: u32 = 258;
/// One description.
pub const DESCRIPTION_ENTRY: u32 = 512;
/// Key of a description.
pub const DESCRIPTION_KEY: u32 = 513;
/// Value of a description.
pub const DESCRIPTION_VALUE: u32 = 514;

/// Interest: no answer of a cache will do. Ours, ignorable.
pub const PAST_CACHES: u32 = 0xF570;

/// LpPacket: the network-layer packet or a fragment of it.
pub const LP_FRAGMENT: u32 = 80;
/// LpPacket: sequence number (8 octets).
pub const LP_SEQUENCE: u32 = 81;
/// LpPacket: index of a fragment.
pub const LP_FRAG_INDEX: u32 = 82;
/// LpPacket: count of fragments.
pub const LP_FRAG_COUNT: u32 = 83;
/// LpPacket: opaque token to be returned with the answer (1 to 32 octets).
pub const LP_PIT_TOKEN: u32 = 98;
/// LpPacket: the fragment is an Interest that could not be satisfied.
pub const LP_NACK: u32 = 800;
/// Nack: why.
pub const LP_NACK_REASON: u32 = 801;
/// LpPacket: face on which the packet arrived.
pub const LP_INCOMING_FACE_ID: u32 = 812;
/// LpPacket: face on which the packet shall leave.
pub const LP_NEXT_HOP_FACE_ID: u32 = 816;
/// LpPacket: cache policy.
pub const LP_CACHE_POLICY: u32 = 820;
/// CachePolicy: its type (1 = do not cache).
pub const LP_CACHE_POLICY_TYPE: u32 = 821;
/// LpPacket: congestion mark.
pub const LP_CONGESTION_MARK: u32 = 832;
/// LpPacket: acknowledgement of a TxSequence (8 octets).
pub const LP_ACK: u32 = 836;
/// LpPacket: sequence number for reliability (8 octets).
pub const LP_TX_SEQUENCE: u32 = 840;
/// LpPacket: the Interest is not for discovery.
pub const LP_NON_DISCOVERY: u32 = 844;
/// LpPacket: prefix announcement (a Data packet).
pub const LP_PREFIX_ANNOUNCEMENT: u32 = 848;
/// AddressToken: to be returned from the address it was sent to. Ours, ignorable.
pub const LP_ADDRESS_TOKEN: u32 = 928;
/// ReturnedToken: an AddressToken on its way back. Ours, ignorable.
pub const LP_RETURNED_TOKEN: u32 = 932;
/// PathTrace: the hops that an answer took, or on an Interest the wish to learn them. Ours,
/// ignorable.
pub const LP_PATH_TRACE: u32 = 936;
/// LpPacket: whoever sends this Data had it for longer than it is fresh. Ours, ignorable.
pub const LP_NOT_FRESH: u32 = 940;
/// PathTrace: one hop.
pub const TRACE_HOP: u32 = 129;
/// Hop: name of the machine.
pub const TRACE_NODE: u32 = 131;
/// Hop: what it had the answer from.
pub const TRACE_ORIGIN: u32 = 133;
/// Hop: FaceUri of the neighbour that answered.
pub const TRACE_PEER: u32 = 135;
/// Hop: microseconds until the answer came.
pub const TRACE_WAITED: u32 = 137;

/// True if an unknown element of this TYPE refuses the packet (spec: NDN Packet Format §1.3).
pub fn is_critical(typ: u32) -> bool {
    typ <= 31 || typ & 1 == 1
}
