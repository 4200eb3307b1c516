//! Faces as clients see them: commands that make, change and destroy them, and the driver's part.
//!
//! Only the driver can open a link, so `faces/create` is answered when the driver reports. Requests
//! that wait for it are bounded in number; what comes above is refused.

use std::collections::{BTreeMap, VecDeque};

use byname_packet::Name;
use byname_packet::lp::LpHeader;
use byname_packet::mgmt::{ControlParameters, ControlResponse, status_code};

use crate::face::{
    Face, FaceFailure, FaceId, FaceInfo, FaceOptions, FaceRequest, Persistency, RequestId,
};
use crate::forwarder::{Forwarder, Tx};
use crate::pit::PitToken;

/// Requests the driver has not taken, and as many that it has not reported on.
const REQUESTS_MAX: usize = 4096;

/// Bits of Flags.
const FLAG_LOCAL_FIELDS: u64 = 1;
const FLAG_RELIABILITY: u64 = 2;
const FLAG_CONGESTION_MARKING: u64 = 4;

/// A command that is answered later.
#[derive(Debug)]
struct Waiting {
    face: FaceId,
    token: PitToken,
    name: Name,
    options: FaceOptions,
}

/// What goes to and comes from the driver.
#[derive(Debug, Default)]
pub(super) struct Requests {
    queue: VecDeque<(RequestId, FaceRequest)>,
    waiting: BTreeMap<RequestId, Waiting>,
    last: u64,
}

impl Requests {
    /// Queues a request; `None` when there are too many.
    fn push(&mut self, request: FaceRequest) -> Option<RequestId> {
        if self.queue.len() >= REQUESTS_MAX || self.waiting.len() >= REQUESTS_MAX {
            return None;
        }
        self.last += 1;
        let id = RequestId(self.last);
        self.queue.push_back((id, request));
        Some(id)
    }
}

impl Forwarder {
    /// The next thing that management wants of the driver.
    pub fn poll_request(&mut self) -> Option<(RequestId, FaceRequest)> {
        self.management.requests.queue.pop_front()
    }

    /// Takes the driver's report on a request and answers the client that waits for it. Unknown
    /// requests, and those that need no report, are ignored.
    pub fn complete_request(
        &mut self,
        id: RequestId,
        outcome: Result<FaceId, FaceFailure>,
        _now_ns: u64,
        tx: &mut dyn Tx,
    ) {
        let Some(waiting) = self.management.requests.waiting.remove(&id) else { return };
        if let Ok(face) = outcome
            && let Some(face) = self.faces.get_mut(face)
        {
            face.options = waiting.options;
        }
        let response = self.creation_response(outcome);
        if let Some(packet) = super::encode_response(waiting.name.view(), &response) {
            let header = LpHeader { pit_token: waiting.token.get(), ..LpHeader::default() };
            self.send_data(waiting.face, &header, &packet, tx);
        }
    }

    fn creation_response(&self, outcome: Result<FaceId, FaceFailure>) -> ControlResponse {
        let with_body = |code, text: &str, id: FaceId| match self.faces.get(id) {
            Some(face) => {
                ControlResponse::new(code, text).with_parameters(&described(id, face))
            }
            None => ControlResponse::new(status_code::SERVER_ERROR, "the face is gone again"),
        };
        match outcome {
            Ok(id) => with_body(status_code::OK, "OK", id),
            Err(FaceFailure::Exists(id)) => {
                with_body(status_code::CONFLICT, "Face with remote URI already exists", id)
            }
            Err(FaceFailure::NotCanonical(text)) => {
                ControlResponse::new(status_code::BAD_REQUEST, text)
            }
            Err(FaceFailure::Unsupported(text)) => {
                ControlResponse::new(status_code::NOT_SUPPORTED, text)
            }
            Err(FaceFailure::Failed(text)) => {
                ControlResponse::new(status_code::GATEWAY_TIMEOUT, text)
            }
        }
    }

    /// What is set on a face.
    pub fn face_options(&self, face: FaceId) -> Option<&FaceOptions> {
        self.faces.get(face).map(|face| &face.options)
    }

    /// What the driver, or a command since, has said of a face.
    pub fn face_info(&self, face: FaceId) -> Option<&FaceInfo> {
        self.faces.get(face).map(|face| &face.info)
    }

    /// Sets the FaceUris on which the driver accepts peers, for `faces/channels`.
    pub fn set_channels(&mut self, local_uris: Vec<String>) {
        self.management.channels = local_uris;
    }
}

/// Number of a persistency in the protocol.
pub(super) fn persistency_number(persistency: Persistency) -> u64 {
    match persistency {
        Persistency::Persistent => 0,
        Persistency::OnDemand => 1,
        Persistency::Permanent => 2,
    }
}

/// The options as Flags.
pub(super) fn flags(options: &FaceOptions) -> u64 {
    u64::from(options.local_fields) * FLAG_LOCAL_FIELDS
        | u64::from(options.reliability) * FLAG_RELIABILITY
        | u64::from(options.congestion_marking) * FLAG_CONGESTION_MARKING
}

/// The body of the answer to `faces/create`.
fn described(id: FaceId, face: &Face) -> ControlParameters {
    ControlParameters {
        face_id: Some(id.0),
        uri: Some(face.info.remote_uri.clone()),
        local_uri: Some(face.info.local_uri.clone()),
        flags: Some(flags(&face.options)),
        face_persistency: Some(persistency_number(face.info.persistency)),
        base_congestion_marking_interval_ns: face.options.base_congestion_marking_interval_ns,
        default_congestion_threshold_bytes: face.options.default_congestion_threshold_bytes,
        mtu: face.options.mtu_bytes.or(face.info.mtu_bytes.map(|bytes| bytes as u64)),
        ..ControlParameters::default()
    }
}
