//! Faces in the protocol's numbers, and options as a command changes them.

use byname_link::congestion::{CONGESTION_INTERVAL_NS, CONGESTION_THRESHOLD_BYTES};
use byname_packet::mgmt::{
    ControlParameters, ControlResponse, FACE_FLAG_LOCAL_FIELDS, status_code,
};

use super::fields;
use super::view::FaceView;
use crate::face::{FaceInfo, FaceOptions, LinkType, Persistency};

/// Bits of Flags.
pub(super) const FLAG_LOCAL_FIELDS: u64 = FACE_FLAG_LOCAL_FIELDS;
const FLAG_RELIABILITY: u64 = 2;
const FLAG_CONGESTION_MARKING: u64 = 4;

/// No frame of a face is larger than the largest packet, whatever its link could take.
const MTU_BYTES_MAX: u64 = byname_packet::MAX_PACKET_BYTES as u64;

/// From here on an MTU means that of the link: `nfdc` writes `auto` as 2^64 − 1.
const MTU_AUTO_MIN: u64 = 1 << 62;

/// Smallest frame that can be asked for: less leaves no room for a fragment.
const MTU_BYTES_MIN: u64 = 64;

/// FaceStatus of local and of other faces.
const SCOPE_NON_LOCAL: u64 = 0;
const SCOPE_LOCAL: u64 = 1;

/// `options` with what `parameters` say.
pub(super) fn changed(
    options: &FaceOptions,
    parameters: &ControlParameters,
) -> Result<FaceOptions, ControlResponse> {
    if parameters.mtu.is_some_and(|mtu| mtu < MTU_BYTES_MIN) {
        let text = format!("the MTU cannot be below {MTU_BYTES_MIN} octets");
        return Err(ControlResponse::new(status_code::NOT_SUPPORTED, text));
    }
    let flags = fields::masked(flags(options), parameters);
    let interval_ns = parameters.base_congestion_marking_interval_ns;
    let threshold_bytes = parameters.default_congestion_threshold_bytes;
    Ok(FaceOptions {
        local_fields: flags & FLAG_LOCAL_FIELDS != 0,
        reliability: flags & FLAG_RELIABILITY != 0,
        congestion_marking: flags & FLAG_CONGESTION_MARKING != 0,
        base_congestion_marking_interval_ns: interval_ns
            .or(options.base_congestion_marking_interval_ns),
        default_congestion_threshold_bytes: threshold_bytes
            .or(options.default_congestion_threshold_bytes),
        mtu_bytes: parameters.mtu.or(options.mtu_bytes).filter(|mtu| *mtu < MTU_AUTO_MIN),
    })
}

/// Number of a persistency in the protocol.
pub(super) fn persistency_number(persistency: Persistency) -> u64 {
    match persistency {
        Persistency::Persistent => 0,
        Persistency::OnDemand => 1,
        Persistency::Permanent => 2,
    }
}

pub(super) fn persistency_of(number: u64) -> Option<Persistency> {
    let all = [Persistency::Persistent, Persistency::OnDemand, Persistency::Permanent];
    all.into_iter().find(|persistency| persistency_number(*persistency) == number)
}

/// Number of a link type in the protocol.
pub(super) fn link_type_number(link_type: LinkType) -> u64 {
    match link_type {
        LinkType::PointToPoint => 0,
        LinkType::MultiAccess => 1,
        LinkType::AdHoc => 2,
    }
}

/// Number of a face's scope in the protocol.
pub(super) fn scope_number(info: &FaceInfo) -> u64 {
    if info.local { SCOPE_LOCAL } else { SCOPE_NON_LOCAL }
}

/// Largest frame of a face; on a stream that of the largest packet.
pub(super) fn mtu(face: FaceView<'_>) -> u64 {
    let of_link = face.info.mtu_bytes.map(|bytes| bytes as u64);
    face.options.mtu_bytes.or(of_link).map_or(MTU_BYTES_MAX, |mtu| mtu.min(MTU_BYTES_MAX))
}

/// The first interval between marks, and the octets of a long queue.
pub(super) fn marking(options: &FaceOptions) -> (u64, u64) {
    let interval_ns = options.base_congestion_marking_interval_ns;
    let threshold_bytes = options.default_congestion_threshold_bytes;
    (
        interval_ns.unwrap_or(CONGESTION_INTERVAL_NS),
        threshold_bytes.unwrap_or(CONGESTION_THRESHOLD_BYTES as u64),
    )
}

/// The options as Flags.
pub(super) fn flags(options: &FaceOptions) -> u64 {
    let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
    flag(options.local_fields, FLAG_LOCAL_FIELDS)
        | flag(options.reliability, FLAG_RELIABILITY)
        | flag(options.congestion_marking, FLAG_CONGESTION_MARKING)
}

/// The body of the answer to `faces/update`. What need not be there is there if it was asked for:
/// python-ndn cannot read it where ndn-cxx writes it, and sets none of it.
pub(super) fn properties(face: FaceView<'_>, asked: u32) -> ControlParameters {
    let options = face.options;
    let if_asked = |field: u32, number: Option<u64>| number.filter(|_| asked & field != 0);
    let interval_ns = options.base_congestion_marking_interval_ns;
    let threshold_bytes = options.default_congestion_threshold_bytes;
    ControlParameters {
        face_id: Some(face.id.0),
        flags: Some(flags(options)),
        face_persistency: Some(persistency_number(face.info.persistency)),
        base_congestion_marking_interval_ns: if_asked(fields::MARKING_INTERVAL, interval_ns),
        default_congestion_threshold_bytes: if_asked(fields::THRESHOLD, threshold_bytes),
        mtu: if_asked(fields::MTU, Some(mtu(face))),
        ..ControlParameters::default()
    }
}

/// The body of the answer to `faces/create`.
pub(super) fn described(face: FaceView<'_>, asked: u32) -> ControlParameters {
    ControlParameters {
        uri: Some(face.info.remote_uri.clone()),
        local_uri: Some(face.info.local_uri.clone()),
        ..properties(face, asked)
    }
}
