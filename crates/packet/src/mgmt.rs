//! Elements of NFD's management protocol: control commands and status datasets.
//!
//! spec: NFD management wiki pages "ControlCommand", "FaceMgmt", "FibMgmt", "RibMgmt", "CsMgmt",
//! "StrategyChoice", "ForwarderStatus". Decoders look elements up by TYPE and ignore unknown
//! non-critical ones; encoders write the order that ndn-cxx writes.

mod announcement;
mod control;
mod dataset;
mod face;
mod verifier;

pub use announcement::PrefixAnnouncement;
pub use control::{ControlParameters, ControlResponse, status_code};
pub use dataset::{
    CsInfo, FaceStatus, FibEntry, GeneralStatus, NextHop, RibEntry, Route, StrategyChoice,
};
pub use face::{ChannelStatus, FaceEventNotification, FaceQueryFilter, face_event};
pub use verifier::{CommandVerifier, Verdict};

use crate::error::DecodeError;
use crate::name::{Name, NameRef};
use crate::tlv;

/// TLV-TYPE numbers of management; some mean different things in different datasets.
pub mod types {
    #![allow(missing_docs)]
    pub const CONTROL_PARAMETERS: u32 = 104;
    pub const CONTROL_RESPONSE: u32 = 101;
    pub const STATUS_CODE: u32 = 102;
    pub const STATUS_TEXT: u32 = 103;
    pub const FACE_ID: u32 = 105;
    pub const COST: u32 = 106;
    pub const STRATEGY: u32 = 107;
    pub const FLAGS: u32 = 108;
    pub const EXPIRATION_PERIOD: u32 = 109;
    pub const ORIGIN: u32 = 111;
    pub const MASK: u32 = 112;
    pub const URI: u32 = 114;
    pub const LOCAL_URI: u32 = 129;
    pub const CAPACITY: u32 = 131;
    pub const COUNT: u32 = 132;
    pub const FACE_PERSISTENCY: u32 = 133;
    pub const BASE_CONGESTION_MARKING_INTERVAL: u32 = 135;
    pub const DEFAULT_CONGESTION_THRESHOLD: u32 = 136;
    pub const MTU: u32 = 137;
    /// FaceStatus, FibEntry, RibEntry, CsInfo and StrategyChoice share the number.
    pub const DATASET_ENTRY: u32 = 128;
    /// NextHopRecord, Route and NHits share the number.
    pub const NEXT_HOP_RECORD: u32 = 129;
    pub const NFD_VERSION: u32 = 128;
    pub const START_TIMESTAMP: u32 = 129;
    pub const CURRENT_TIMESTAMP: u32 = 130;
    pub const N_NAME_TREE_ENTRIES: u32 = 131;
    pub const N_FIB_ENTRIES: u32 = 132;
    pub const N_PIT_ENTRIES: u32 = 133;
    pub const N_MEASUREMENTS_ENTRIES: u32 = 134;
    pub const N_CS_ENTRIES: u32 = 135;
    pub const N_IN_INTERESTS: u32 = 144;
    pub const N_IN_DATA: u32 = 145;
    pub const N_OUT_INTERESTS: u32 = 146;
    pub const N_OUT_DATA: u32 = 147;
    pub const N_IN_BYTES: u32 = 148;
    pub const N_OUT_BYTES: u32 = 149;
    pub const N_IN_NACKS: u32 = 151;
    pub const N_OUT_NACKS: u32 = 152;
    pub const N_SATISFIED_INTERESTS: u32 = 153;
    pub const N_UNSATISFIED_INTERESTS: u32 = 154;
    pub const FACE_SCOPE: u32 = 132;
    pub const LINK_TYPE: u32 = 134;
    pub const CHANNEL_STATUS: u32 = 130;
    pub const URI_SCHEME: u32 = 131;
    pub const FACE_QUERY_FILTER: u32 = 150;
    pub const FACE_EVENT_NOTIFICATION: u32 = 192;
    pub const FACE_EVENT_KIND: u32 = 193;
    pub const N_HITS: u32 = 129;
    pub const N_MISSES: u32 = 130;
    /// Empty element: the face has lost its link. Ours, ignorable.
    pub const FACE_DOWN: u32 = 944;
}

/// Origins of routes.
pub mod route_origin {
    /// Registered by an application.
    pub const APP: u64 = 0;
    /// Registered by a client that wants it announced.
    pub const CLIENT: u64 = 65;
    /// Announced by its producer with a signed packet.
    pub const PREFIX_ANNOUNCEMENT: u64 = 129;
    /// Configured.
    pub const STATIC: u64 = 255;
}

/// Face flag: local fields (`IncomingFaceId`, `NextHopFaceId`) are used on the face.
pub const FACE_FLAG_LOCAL_FIELDS: u64 = 1;

/// Route flag: the route is inherited by longer prefixes.
pub const ROUTE_FLAG_CHILD_INHERIT: u64 = 1;
/// Route flag: longer prefixes do not inherit from shorter ones.
pub const ROUTE_FLAG_CAPTURE: u64 = 2;

/// Reads fields by TYPE in any order, each at most once except `repeatable`. `take` says whether it
/// knows the element.
fn for_each_field<'a>(
    value: &'a [u8],
    within: &'static str,
    repeatable: Option<u32>,
    mut take: impl FnMut(tlv::Element<'a>) -> Result<bool, DecodeError>,
) -> Result<(), DecodeError> {
    let mut reader = tlv::Reader::new(value);
    // One bit per TYPE: every TYPE of management is below 256.
    let mut seen = [0u64; 4];
    while let Some(element) = reader.read()? {
        let typ = element.typ;
        if take(element)? {
            let Some(word) = seen.get_mut(typ as usize / 64) else { continue };
            let bit = 1 << (typ % 64);
            if *word & bit != 0 && repeatable != Some(typ) {
                return Err(DecodeError::OutOfOrder { typ, within });
            }
            *word |= bit;
        } else if crate::types::is_critical(typ) {
            return Err(DecodeError::UnknownCritical { typ, within });
        }
    }
    Ok(())
}

fn read_name(value: &[u8]) -> Result<Name, DecodeError> {
    Ok(NameRef::from_value(value)?.to_name())
}

/// Reads the one Name element that fills `value`.
fn read_nested_name(value: &[u8], within: &'static str) -> Result<Name, DecodeError> {
    read_name(tlv::read_only(value, crate::types::NAME, within)?.value)
}

/// Appends an element that holds one Name element.
fn write_nested_name(out: &mut Vec<u8>, typ: u32, name: &Name) {
    tlv::write_tl(out, typ, name.view().wire_len());
    name.view().encode(out);
}

fn read_text(value: &[u8], element: &'static str) -> Result<String, DecodeError> {
    let text = std::str::from_utf8(value).map_err(|_| DecodeError::BadValue { element })?;
    Ok(text.to_owned())
}

fn write_opt_nni(out: &mut Vec<u8>, typ: u32, number: Option<u64>) {
    if let Some(number) = number {
        tlv::write_nni(out, typ, number);
    }
}

fn write_opt_text(out: &mut Vec<u8>, typ: u32, text: Option<&String>) {
    if let Some(text) = text {
        tlv::write_element(out, typ, text.as_bytes());
    }
}

#[cfg(test)]
mod tests;
