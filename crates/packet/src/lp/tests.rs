//! Behaviour of link headers.
use super::*;

#[test]
fn round_trip_with_every_field() {
    let announcement = [6u8, 0];
    let header = LpHeader {
        pit_token: Some(&[1; 32]),
        nack: Some(nack_reason::NO_ROUTE),
        incoming_face_id: Some(300),
        next_hop_face_id: Some(1),
        cache_policy: Some(CACHE_POLICY_NO_CACHE),
        congestion_mark: Some(1),
        non_discovery: true,
        prefix_announcement: Some(&announcement),
        path_trace: Some(&announcement),
        not_fresh: true,
    };
    let link = LinkFields {
        fragment: Some(FragmentFields { sequence: 9, index: 1, count: 3 }),
        tx_sequence: Some(77),
        acks: &[5, 6],
        padding_bytes: 7,
    };
    let mut wire = Vec::new();
    encode_link_header(&header, &link, 4, &mut wire);
    wire.extend_from_slice(&[1, 2, 3, 4]);
    let packet = LpPacket::decode(&wire).unwrap();
    assert_eq!(packet.header, header);
    assert_eq!(packet.acks().collect::<Vec<_>>(), [5, 6]);
    assert_eq!((packet.sequence, packet.frag_index, packet.frag_count), (Some(9), 1, 3));
    assert_eq!(packet.tx_sequence, Some(77));
    assert_eq!(packet.fragment, Some(&[1u8, 2, 3, 4][..]));
    for end in 0..wire.len() {
        assert!(LpPacket::decode(&wire[..end]).is_err());
    }
}

#[test]
fn tokens_of_addresses_are_idle_packets() {
    let mut wire = Vec::new();
    encode_address_token(7, &mut wire);
    assert_eq!(wire.len(), 14);
    let packet = LpPacket::decode(&wire).unwrap();
    assert_eq!((packet.address_token, packet.returned_token), (Some(7), None));
    assert!(packet.is_idle());
    wire.clear();
    encode_returned_token(u64::MAX, &mut wire);
    let packet = LpPacket::decode(&wire).unwrap();
    assert_eq!((packet.address_token, packet.returned_token), (None, Some(u64::MAX)));
    assert!(LpPacket::decode(&[100, 5, 0xFD, 3, 0xA0, 1, 0]).is_err(), "its length is fixed");
}

#[test]
fn nothing_to_say_is_a_bare_packet() {
    let mut out = Vec::new();
    encode_header(&LpHeader::default(), None, 10, &mut out);
    assert!(out.is_empty());
    let bare = [6u8, 1, 0];
    assert_eq!(LpPacket::decode(&bare).unwrap().fragment, Some(&bare[..]));
}

#[test]
fn refused() {
    // No reason, order, repetition, unknown field, fragment index, token length.
    assert_eq!(LpPacket::decode(&[100, 4, 0xFD, 3, 0x20, 0]).unwrap().header.nack, Some(0));
    let refused: [&[u8]; 6] = [
        &[100, 7, 80, 1, 0, 98, 2, 1, 1],
        &[100, 6, 98, 1, 1, 98, 1, 1],
        &[100, 3, 79, 1, 1],
        &[100, 6, 82, 1, 1, 83, 1, 1],
        &[100, 2, 98, 0],
        &[100, 3, 83, 1, 0],
    ];
    for wire in refused {
        assert!(LpPacket::decode(wire).is_err(), "{wire:?}");
    }
    let unknown_ignored = [100u8, 5, 0xFD, 3, 0xB8, 1, 0];
    assert!(LpPacket::decode(&unknown_ignored).unwrap().is_idle());
}
