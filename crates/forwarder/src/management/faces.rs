//! Commands that make, change and destroy faces, and the driver's part.
//!
//! Only the driver can open a link, so `faces/create` is answered when the driver reports. Requests
//! that wait for it are bounded in number; what comes above is refused.

use std::collections::{BTreeMap, VecDeque};

use byname_packet::mgmt::{ControlParameters, ControlResponse, status_code};
use byname_packet::{ContentType, Name};

use super::action::{Action, Asker, Turn};
use super::face_fields::{
    FLAG_LOCAL_FIELDS, changed, described, persistency_number, persistency_of, properties,
};
use super::fields;
use super::request::{CommandOutcome, Request};
use super::response::{self, bad};
use super::view::{FaceView, View};
use crate::face::{
    FaceFailure, FaceId, FaceInfo, FaceOptions, FaceRequest, LinkType, Persistency, RequestId,
};

/// Requests the driver has not taken, and as many that it has not reported on.
const REQUESTS_MAX: usize = 4096;

/// Longest FaceUri that is taken.
const URI_BYTES_MAX: usize = 1024;

/// A `faces/create` that is answered later.
#[derive(Debug)]
struct Creation {
    asker: Asker,
    name: Name,
    options: FaceOptions,
    /// The fields of the command.
    asked: u32,
}

/// Requests to the driver, and the commands that wait for its reports.
#[derive(Debug, Default)]
pub(super) struct DriverRequests {
    queue: VecDeque<(RequestId, FaceRequest)>,
    creations: BTreeMap<RequestId, Creation>,
    last: u64,
}

impl DriverRequests {
    /// The next one for the driver.
    pub(super) fn poll(&mut self) -> Option<(RequestId, FaceRequest)> {
        self.queue.pop_front()
    }

    /// Queues a request; `None` when there are too many.
    fn push(&mut self, request: FaceRequest) -> Option<RequestId> {
        if self.queue.len() >= REQUESTS_MAX || self.creations.len() >= REQUESTS_MAX {
            return None;
        }
        self.last += 1;
        let id = RequestId(self.last);
        self.queue.push_back((id, request));
        Some(id)
    }

    /// Answers the client that waits for the driver's report.
    pub(super) fn complete(
        &mut self,
        turn: &mut Turn<'_>,
        id: RequestId,
        outcome: Result<FaceId, FaceFailure>,
    ) {
        let Some(creation) = self.creations.remove(&id) else { return };
        let mut options = creation.options;
        let made = outcome.as_ref().ok().and_then(|id| turn.view.face(*id));
        if let Some(face) = made {
            options.local_fields &= face.info.local;
            turn.actions.push(Action::SetFace {
                face: face.id,
                options: options.clone(),
                persistency: face.info.persistency,
            });
        }
        let made = made.map(|face| FaceView { options: &options, ..face });
        let response = creation_response(turn.view, made, outcome, creation.asked);
        let packet = response::encode(creation.name.view(), ContentType::BLOB, &response);
        if let Some(packet) = packet {
            turn.reply(creation.asker, packet);
        }
    }

    pub(super) fn create(&mut self, request: &Request<'_>) -> CommandOutcome {
        let (wanted, options) = match wanted_face(&request.parameters) {
            Ok(wanted) => wanted,
            Err(response) => return response.into(),
        };
        let Some(id) = self.push(wanted) else {
            let text = "too many faces are being made; try again later";
            return ControlResponse::new(status_code::SERVER_ERROR, text).into();
        };
        let asked = fields::present(&request.parameters);
        let creation =
            Creation { asker: request.asker, name: request.name.to_name(), options, asked };
        self.creations.insert(id, creation);
        CommandOutcome::Later
    }

    pub(super) fn update(
        &mut self,
        turn: &mut Turn<'_>,
        request: &Request<'_>,
    ) -> Result<ControlResponse, ControlResponse> {
        let parameters = &request.parameters;
        let Some(face) = turn.view.face(request.face) else {
            let text = "Specified face does not exist";
            return Err(ControlResponse::new(status_code::NOT_FOUND, text));
        };
        let options = changed(face.options, parameters)?;
        let persistency = match parameters.face_persistency.map(persistency_of) {
            Some(None) => return Err(bad("unknown FacePersistency")),
            Some(Some(wanted)) => wanted,
            None => face.info.persistency,
        };
        check_update(face, persistency, parameters)?;
        if options != *face.options || persistency != face.info.persistency {
            // A queue that is full has sent the driver to look at the face already, or at others
            // that it will look at first: refusing says that nothing has changed.
            if self.push(FaceRequest::Changed { face: face.id }).is_none() {
                let text = "too many changes at once; try again later";
                return Err(ControlResponse::new(status_code::SERVER_ERROR, text));
            }
            let options = options.clone();
            turn.actions.push(Action::SetFace { face: face.id, options, persistency });
        }
        let info = FaceInfo { persistency, ..face.info.clone() };
        let updated = FaceView { info: &info, options: &options, ..face };
        let body = properties(updated, fields::present(parameters));
        Ok(ControlResponse::new(status_code::OK, "OK").with_parameters(&body))
    }

    pub(super) fn destroy(
        &mut self,
        view: &dyn View,
        request: &Request<'_>,
    ) -> Result<ControlResponse, ControlResponse> {
        let Some(id) = request.parameters.face_id.filter(|id| *id != 0) else {
            return Err(bad("failed in validating parameters: FaceId must be valid"));
        };
        let face = FaceId(id);
        let is_asked = view.face(face).is_none()
            || self.queue.iter().any(|(_, request)| {
                matches!(request, FaceRequest::Destroy { face: known } if *known == face)
            });
        if !is_asked && self.push(FaceRequest::Destroy { face }).is_none() {
            let text = "too many changes at once; try again later";
            return Err(ControlResponse::new(status_code::SERVER_ERROR, text));
        }
        let body = ControlParameters { face_id: Some(id), ..ControlParameters::default() };
        Ok(ControlResponse::new(status_code::OK, "OK").with_parameters(&body))
    }
}

/// The face that `faces/create` asks for, and the options it starts with.
fn wanted_face(
    parameters: &ControlParameters,
) -> Result<(FaceRequest, FaceOptions), ControlResponse> {
    let uri = parameters.uri.clone().unwrap_or_default();
    if !is_uri(&uri) || !parameters.local_uri.as_deref().is_none_or(is_uri) {
        return Err(bad("malformed FaceUri"));
    }
    let persistency = match parameters.face_persistency.map(persistency_of) {
        None | Some(Some(Persistency::Persistent)) => Persistency::Persistent,
        Some(Some(Persistency::Permanent)) => Persistency::Permanent,
        Some(Some(Persistency::OnDemand)) => {
            let text = "on-demand faces are made by their peers only";
            return Err(ControlResponse::new(status_code::NOT_SUPPORTED, text));
        }
        Some(None) => return Err(bad("unknown FacePersistency")),
    };
    let options = changed(&FaceOptions::default(), parameters)?;
    let local_uri = parameters.local_uri.clone();
    let wanted = FaceRequest::Create { uri, local_uri, persistency, options: options.clone() };
    Ok((wanted, options))
}

/// Refuses properties that the face cannot have; the answer holds just those.
fn check_update(
    face: FaceView<'_>,
    persistency: Persistency,
    parameters: &ControlParameters,
) -> Result<(), ControlResponse> {
    let mut invalid = ControlParameters::default();
    let asks_local_fields = fields::masked(0, parameters) & FLAG_LOCAL_FIELDS != 0;
    if asks_local_fields && !face.info.local {
        (invalid.flags, invalid.mask) = (Some(FLAG_LOCAL_FIELDS), Some(FLAG_LOCAL_FIELDS));
    }
    if persistency != face.info.persistency && !can_change_persistency(face.info) {
        invalid.face_persistency = Some(persistency_number(persistency));
    }
    if invalid == ControlParameters::default() {
        return Ok(());
    }
    let response = ControlResponse::new(status_code::CONFLICT, "Invalid properties specified");
    Err(response.with_parameters(&invalid))
}

fn creation_response(
    view: &dyn View,
    made: Option<FaceView<'_>>,
    outcome: Result<FaceId, FaceFailure>,
    asked: u32,
) -> ControlResponse {
    let with_body = |code, text: &str, face: Option<FaceView<'_>>| match face {
        Some(face) => ControlResponse::new(code, text).with_parameters(&described(face, asked)),
        None => ControlResponse::new(status_code::SERVER_ERROR, "the face is gone again"),
    };
    match outcome {
        Ok(_) => with_body(status_code::OK, "OK", made),
        Err(FaceFailure::Exists(id)) => {
            with_body(status_code::CONFLICT, "Face with remote URI already exists", view.face(id))
        }
        Err(FaceFailure::NotCanonical(text)) => {
            ControlResponse::new(status_code::BAD_REQUEST, text)
        }
        Err(FaceFailure::Unsupported(text)) => {
            ControlResponse::new(status_code::NOT_SUPPORTED, text)
        }
        Err(FaceFailure::Failed(text)) => ControlResponse::new(status_code::GATEWAY_TIMEOUT, text),
    }
}

/// Returns whether a text can be a FaceUri: the driver knows which ones it can use.
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
