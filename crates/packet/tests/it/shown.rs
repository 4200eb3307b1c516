//! Decoded packets as the JSON in which the golden packets state what a decoder shows.

use byname_packet::lp::LpPacket;
use byname_packet::mgmt::{ControlParameters, FaceStatus, GeneralStatus, Route};
use byname_packet::signature::descriptions;
use byname_packet::{Component, Data, Interest, KeyLocator, NameRef, SignatureInfo};
use serde_json::{Value, json};

pub(crate) fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let digit = |octet: u8| char::from(octet).to_digit(16).expect("hexadecimal") as u8;
    assert_eq!(text.len() % 2, 0, "{text}");
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

pub(crate) fn component(component: Component<'_>) -> Value {
    let number = [50, 52, 54, 56, 58].into_iter().find_map(|typ| component.number(typ));
    json!({
        "type": component.typ,
        "value": hex(component.value),
        "number": number,
        "uri": component.to_string(),
    })
}

pub(crate) fn name(name: NameRef<'_>) -> Value {
    let components: Vec<Value> =
        name.components().map(|part| json!([part.typ, hex(part.value)])).collect();
    json!({ "uri": name.to_string(), "user": name.to_user(), "components": components })
}

pub(crate) fn signature_info(info: SignatureInfo<'_>) -> Value {
    let text = |octets: &[u8]| String::from_utf8(octets.to_vec()).unwrap();
    let described = |value| {
        let pairs = descriptions(value).map(|(key, words)| json!([text(key), text(words)]));
        pairs.collect::<Vec<_>>()
    };
    json!({
        "signature_type": info.signature_type,
        "key_locator": info.key_locator.map(|locator| match locator {
            KeyLocator::Name(name) => json!({ "name": name.to_string() }),
            KeyLocator::Digest(digest) => json!({ "digest": hex(digest) }),
        }),
        "nonce": info.nonce.map(hex),
        "time_ms": info.time_ms,
        "seq_num": info.seq_num,
        "validity": info.validity.map(|validity| json!({
            "not_before_s": validity.not_before_s,
            "not_after_s": validity.not_after_s,
        })),
        "additional_description": info.additional_description.map(described),
    })
}

pub(crate) fn interest(interest: &Interest<'_>) -> Value {
    let hint = interest
        .forwarding_hint
        .map(|hint| hint.names().map(|name| name.to_string()).collect::<Vec<_>>());
    json!({
        "name": interest.name.to_string(),
        "can_be_prefix": interest.can_be_prefix,
        "must_be_fresh": interest.must_be_fresh,
        "forwarding_hint": hint,
        "nonce": interest.nonce.map(|nonce| hex(&nonce)),
        "lifetime_ms": interest.lifetime_ms,
        "hop_limit": interest.hop_limit,
        "application_parameters": interest.application_parameters.map(hex),
        "signature_info": interest.signature_info.map(signature_info),
        "signature_value": interest.signature_value.map(hex),
        "signed_portion": interest.signed_portion().map(|parts| hex(&parts.concat())),
    })
}

pub(crate) fn data(data: &Data<'_>) -> Value {
    json!({
        "name": data.name.to_string(),
        "content_type": data.meta.content_type,
        "freshness_ms": data.meta.freshness_ms,
        "final_block_id": data.meta.final_block_id.map(|last| last.to_string()),
        "content": hex(data.content),
        "signature_info": signature_info(data.signature_info),
        "signature_value": hex(data.signature_value),
        "signed_portion": hex(data.signed_portion()),
        "implicit_digest": hex(&data.implicit_digest()),
    })
}

pub(crate) fn lp_packet(packet: &LpPacket<'_>) -> Value {
    let header = &packet.header;
    json!({
        "fragment": packet.fragment.map(hex),
        "sequence": packet.sequence,
        "frag_index": packet.frag_index,
        "frag_count": packet.frag_count,
        "pit_token": header.pit_token.map(hex),
        "nack": header.nack,
        "incoming_face_id": header.incoming_face_id,
        "next_hop_face_id": header.next_hop_face_id,
        "cache_policy": header.cache_policy,
        "congestion_mark": header.congestion_mark,
        "acks": packet.acks().collect::<Vec<_>>(),
        "tx_sequence": packet.tx_sequence,
        "non_discovery": header.non_discovery,
        "prefix_announcement": header.prefix_announcement.map(hex),
        "address_token": packet.address_token,
        "returned_token": packet.returned_token,
        "path_trace": header.path_trace.map(hex),
        "not_fresh": header.not_fresh,
    })
}

pub(crate) fn control_parameters(p: &ControlParameters) -> Value {
    json!({
        "name": p.name.as_ref().map(ToString::to_string),
        "face_id": p.face_id,
        "uri": p.uri,
        "local_uri": p.local_uri,
        "origin": p.origin,
        "cost": p.cost,
        "capacity": p.capacity,
        "count": p.count,
        "flags": p.flags,
        "mask": p.mask,
        "strategy": p.strategy.as_ref().map(ToString::to_string),
        "expiration_period_ms": p.expiration_period_ms,
        "face_persistency": p.face_persistency,
        "base_congestion_marking_interval_ns": p.base_congestion_marking_interval_ns,
        "default_congestion_threshold_bytes": p.default_congestion_threshold_bytes,
        "mtu": p.mtu,
    })
}

pub(crate) fn general_status(status: &GeneralStatus) -> Value {
    json!({
        "version": status.version,
        "start_timestamp_ms": status.start_timestamp_ms,
        "current_timestamp_ms": status.current_timestamp_ms,
        "name_tree_entry_count": status.name_tree_entry_count,
        "fib_entry_count": status.fib_entry_count,
        "pit_entry_count": status.pit_entry_count,
        "measurements_entry_count": status.measurements_entry_count,
        "cs_entry_count": status.cs_entry_count,
        "in_interest_count": status.in_interest_count,
        "in_data_count": status.in_data_count,
        "in_nack_count": status.in_nack_count,
        "out_interest_count": status.out_interest_count,
        "out_data_count": status.out_data_count,
        "out_nack_count": status.out_nack_count,
        "satisfied_interest_count": status.satisfied_interest_count,
        "unsatisfied_interest_count": status.unsatisfied_interest_count,
    })
}

pub(crate) fn face_status(face: &FaceStatus) -> Value {
    json!({
        "face_id": face.face_id,
        "uri": face.uri,
        "local_uri": face.local_uri,
        "expiration_period_ms": face.expiration_period_ms,
        "scope": face.scope,
        "persistency": face.persistency,
        "link_type": face.link_type,
        "mtu": face.mtu,
        "in_interest_count": face.in_interest_count,
        "in_data_count": face.in_data_count,
        "in_nack_count": face.in_nack_count,
        "out_interest_count": face.out_interest_count,
        "out_data_count": face.out_data_count,
        "out_nack_count": face.out_nack_count,
        "in_bytes": face.in_bytes,
        "out_bytes": face.out_bytes,
        "flags": face.flags,
    })
}

pub(crate) fn route(route: &Route) -> Value {
    json!({
        "face_id": route.face_id,
        "origin": route.origin,
        "cost": route.cost,
        "flags": route.flags,
        "expiration_period_ms": route.expiration_period_ms,
    })
}
