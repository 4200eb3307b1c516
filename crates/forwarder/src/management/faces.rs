//! Faces as clients see them: commands that make, change and destroy them, and the driver's part.
//!
//! Only the driver can open a link, so `faces/create` is answered when the driver reports. Requests
//! that wait for it are bounded in number; what comes above is refused.

use std::collections::{BTreeMap, VecDeque};

use byname_packet::mgmt::{ControlParameters, ControlResponse, status_code};
use byname_packet::{ContentType, Name};

use super::command::{Outcome, Request, bad};
use super::{Asker, encode_response, fields};
use crate::face::{
    Face, FaceFailure, FaceId, FaceInfo, FaceOptions, FaceRequest, LinkType, Persistency, RequestId,
};
use crate::forwarder::{Forwarder, Tx};

/// Requests the driver has not taken, and as many that it has not reported on.
const REQUESTS_MAX: usize = 4096;

/// Bits of Flags.
const FLAG_LOCAL_FIELDS: u64 = 1;
const FLAG_RELIABILITY: u64 = 2;
const FLAG_CONGESTION_MARKING: u64 = 4;

/// Smallest frame that can be asked for: less leaves no room for a fragment.
const MTU_BYTES_MIN: u64 = 64;

/// Longest FaceUri that is taken.
const URI_BYTES_MAX: usize = 1024;

/// FaceStatus of local and of other faces.
const SCOPE_NON_LOCAL: u64 = 0;
const SCOPE_LOCAL: u64 = 1;

/// A `faces/create` that is answered later.
#[derive(Debug)]
struct Waiting {
    asker: Asker,
    name: Name,
    options: FaceOptions,
    /// The fields of the command.
    asked: u32,
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
            let local_fields = waiting.options.local_fields && face.info.local;
            face.options = FaceOptions { local_fields, ..waiting.options };
        }
        if let Ok(face) = outcome {
            self.tell_face(face);
        }
        let response = self.creation_response(outcome, waiting.asked);
        let packet = encode_response(waiting.name.view(), ContentType::BLOB, &response);
        if let Some(packet) = packet {
            self.reply(waiting.asker, &packet, tx);
        }
    }

    fn creation_response(
        &self,
        outcome: Result<FaceId, FaceFailure>,
        asked: u32,
    ) -> ControlResponse {
        let with_body = |code, text: &str, id: FaceId| match self.faces.get(id) {
            Some(face) => {
                ControlResponse::new(code, text).with_parameters(&described(id, face, asked))
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

    pub(super) fn face_create(&mut self, request: &Request<'_>) -> Outcome {
        let parameters = &request.parameters;
        let uri = parameters.uri.clone().unwrap_or_default();
        if !is_uri(&uri) || !parameters.local_uri.as_deref().is_none_or(is_uri) {
            return bad("malformed FaceUri").into();
        }
        let persistency = match parameters.face_persistency.map(persistency_of) {
            None | Some(Some(Persistency::Persistent)) => Persistency::Persistent,
            Some(Some(Persistency::Permanent)) => Persistency::Permanent,
            Some(Some(Persistency::OnDemand)) => {
                let text = "on-demand faces are made by their peers only";
                return ControlResponse::new(status_code::NOT_SUPPORTED, text).into();
            }
            Some(None) => return bad("unknown FacePersistency").into(),
        };
        let options = match changed(&FaceOptions::default(), parameters) {
            Ok(options) => options,
            Err(response) => return response.into(),
        };
        let local_uri = parameters.local_uri.clone();
        let wanted = FaceRequest::Create { uri, local_uri, persistency, options: options.clone() };
        let Some(id) = self.management.requests.push(wanted) else {
            let text = "too many faces are being made; try again later";
            return ControlResponse::new(status_code::SERVER_ERROR, text).into();
        };
        let asked = fields::present(parameters);
        let waiting =
            Waiting { asker: request.asker, name: request.name.to_name(), options, asked };
        self.management.requests.waiting.insert(id, waiting);
        Outcome::Later
    }

    pub(super) fn face_update(
        &mut self,
        request: &Request<'_>,
    ) -> Result<ControlResponse, ControlResponse> {
        let parameters = &request.parameters;
        let (id, known) = (request.face, self.faces.get(request.face));
        let Some(face) = known.filter(|face| face.inbox.is_none()) else {
            let text = "Specified face does not exist";
            return Err(ControlResponse::new(status_code::NOT_FOUND, text));
        };
        let options = changed(&face.options, parameters)?;
        let persistency = match parameters.face_persistency.map(persistency_of) {
            Some(None) => return Err(bad("unknown FacePersistency")),
            Some(Some(wanted)) => wanted,
            None => face.info.persistency,
        };
        // The answer to what cannot be holds just that.
        let mut invalid = ControlParameters::default();
        let asks_local_fields = fields::masked(0, parameters) & FLAG_LOCAL_FIELDS != 0;
        if asks_local_fields && !face.info.local {
            (invalid.flags, invalid.mask) = (Some(FLAG_LOCAL_FIELDS), Some(FLAG_LOCAL_FIELDS));
        }
        if persistency != face.info.persistency && !can_change_persistency(&face.info) {
            invalid.face_persistency = Some(persistency_number(persistency));
        }
        if invalid != ControlParameters::default() {
            let response =
                ControlResponse::new(status_code::CONFLICT, "Invalid properties specified");
            return Err(response.with_parameters(&invalid));
        }
        let has_changed = options != face.options || persistency != face.info.persistency;
        if has_changed {
            // A queue that is full has told the driver to look at the face already, or at others
            // that it will look at first: refusing says that nothing has changed.
            if self.management.requests.push(FaceRequest::Changed { face: id }).is_none() {
                let text = "too many changes at once; try again later";
                return Err(ControlResponse::new(status_code::SERVER_ERROR, text));
            }
            if let Some(face) = self.faces.get_mut(id) {
                face.options = options;
                face.info.persistency = persistency;
            }
            self.tell_face(id);
        }
        let body = self.faces.get(id).map(|face| properties(id, face, fields::present(parameters)));
        let body = body.unwrap_or_default();
        Ok(ControlResponse::new(status_code::OK, "OK").with_parameters(&body))
    }

    pub(super) fn face_destroy(
        &mut self,
        request: &Request<'_>,
    ) -> Result<ControlResponse, ControlResponse> {
        let Some(id) = request.parameters.face_id.filter(|id| *id != 0) else {
            return Err(bad("failed in validating parameters: FaceId must be valid"));
        };
        let face = FaceId(id);
        let exists = self.faces.get(face).is_some_and(|face| face.inbox.is_none());
        let is_asked = !exists
            || self.management.requests.queue.iter().any(|(_, request)| {
                matches!(request, FaceRequest::Destroy { face: known } if *known == face)
            });
        if !is_asked && self.management.requests.push(FaceRequest::Destroy { face }).is_none() {
            let text = "too many changes at once; try again later";
            return Err(ControlResponse::new(status_code::SERVER_ERROR, text));
        }
        let body = ControlParameters { face_id: Some(id), ..ControlParameters::default() };
        Ok(ControlResponse::new(status_code::OK, "OK").with_parameters(&body))
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

/// Whether a text can be a FaceUri: the driver knows which ones it can use.
fn is_uri(text: &str) -> bool {
    let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
    text.len() <= URI_BYTES_MAX
        && !scheme.is_empty()
        && scheme.bytes().all(|octet| octet.is_ascii_alphanumeric())
        && !text.contains(char::is_control)
}

/// Links that the driver can keep, repair or let go as it likes: not those of which only the peer
/// knows how they came about.
fn can_change_persistency(info: &FaceInfo) -> bool {
    info.link_type == LinkType::PointToPoint
        && ["udp", "tcp"].iter().any(|scheme| info.remote_uri.starts_with(scheme))
}

/// `options` with what `parameters` say.
fn changed(
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
        mtu_bytes: parameters.mtu.or(options.mtu_bytes),
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

fn persistency_of(number: u64) -> Option<Persistency> {
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

/// Largest frame of a face, if there is such a thing.
pub(super) fn mtu(face: &Face) -> Option<u64> {
    face.options.mtu_bytes.or(face.info.mtu_bytes.map(|bytes| bytes as u64))
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
fn properties(id: FaceId, face: &Face, asked: u32) -> ControlParameters {
    let options = &face.options;
    let if_asked = |field: u32, number: Option<u64>| number.filter(|_| asked & field != 0);
    let interval_ns = options.base_congestion_marking_interval_ns;
    let threshold_bytes = options.default_congestion_threshold_bytes;
    ControlParameters {
        face_id: Some(id.0),
        flags: Some(flags(options)),
        face_persistency: Some(persistency_number(face.info.persistency)),
        base_congestion_marking_interval_ns: if_asked(fields::MARKING_INTERVAL, interval_ns),
        default_congestion_threshold_bytes: if_asked(fields::THRESHOLD, threshold_bytes),
        mtu: if_asked(fields::MTU, options.mtu_bytes),
        ..ControlParameters::default()
    }
}

/// The body of the answer to `faces/create`.
fn described(id: FaceId, face: &Face, asked: u32) -> ControlParameters {
    ControlParameters {
        uri: Some(face.info.remote_uri.clone()),
        local_uri: Some(face.info.local_uri.clone()),
        ..properties(id, face, asked)
    }
}
