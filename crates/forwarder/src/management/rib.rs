//! Commands that change routes: `rib/register`, `rib/unregister`, `rib/announce`.

use byname_packet::mgmt::{
    ControlParameters, ControlResponse, PrefixAnnouncement, ROUTE_FLAG_CAPTURE,
    ROUTE_FLAG_CHILD_INHERIT, route_origin, status_code,
};
use byname_packet::{Data, Name};

use super::action::{Action, Turn};
use super::request::{Call, Request, check_length};
use super::response::{bad, forbidden};
use crate::face::FaceId;
use crate::rib::{FIB_ORIGIN, Route};

/// Cost of announced routes: worse than what is registered with a cost, as in NFD.
const ANNOUNCED_COST: u64 = 2048;

/// Prefixes that a face without full authority may have routes for.
const PREFIXES_OF_FACE_MAX: usize = 4096;

pub(super) fn register(
    turn: &mut Turn<'_>,
    request: &Request<'_>,
) -> Result<ControlResponse, ControlResponse> {
    let prefix = request.prefix()?;
    let parameters = &request.parameters;
    let flags = parameters.flags.unwrap_or(ROUTE_FLAG_CHILD_INHERIT);
    if flags & !(ROUTE_FLAG_CHILD_INHERIT | ROUTE_FLAG_CAPTURE) != 0 {
        return Err(bad("failed in validating parameters: unknown route flags"));
    }
    let route = Route {
        face: request.face,
        origin: origin(parameters)?,
        cost: parameters.cost.unwrap_or(0),
        flags,
        expires_ns: None,
    };
    // A period that means for ever is repeated too: the body holds what was asked for.
    let period_ms = allowed_ms(turn, parameters.expiration_period_ms, request.until_s);
    let route = Route { expires_ns: period_ms.and_then(|ms| after_ms(turn.now_ns, ms)), ..route };
    add(turn, prefix, route, request.has_full_authority)?;
    Ok(registered(prefix, &route, period_ms))
}

pub(super) fn unregister(
    turn: &mut Turn<'_>,
    request: &Request<'_>,
) -> Result<ControlResponse, ControlResponse> {
    let prefix = request.prefix()?;
    let origin = origin(&request.parameters)?;
    // Success also when there was none: what was asked for holds.
    turn.remove_route(prefix.view(), request.face, origin);
    Ok(ControlResponse::new(status_code::OK, "Success").with_parameters(&ControlParameters {
        name: Some(prefix.clone()),
        face_id: Some(request.face.0),
        origin: Some(origin),
        ..ControlParameters::default()
    }))
}

/// The period for which a route stays that was asked for so long (`None`: for ever), by who may do
/// that until then: no route outlives the right to it.
fn allowed_ms(turn: &Turn<'_>, asked_ms: Option<u64>, until_s: u64) -> Option<u64> {
    let until_ms = until_s.saturating_mul(1000);
    let left_ms = (until_ms < u64::MAX).then(|| until_ms.saturating_sub(turn.unix_ms()));
    asked_ms.into_iter().chain(left_ms).min()
}

/// Makes a route of an announcement.
pub(super) fn announce(
    turn: &mut Turn<'_>,
    face: FaceId,
    packet: &Data<'_>,
    (has_full_authority, until_s): (bool, u64),
) -> Result<ControlResponse, ControlResponse> {
    let found = PrefixAnnouncement::from_data(packet)
        .map_err(|error| bad(format!("malformed prefix announcement: {error}")))?;
    check_length(found.prefix.view())?;
    let mut period_ms = found.expiration_period_ms;
    if let Some(validity) = found.validity {
        let unix_ms = turn.unix_ms();
        let end_ms = validity.not_after_s.saturating_mul(1000);
        if unix_ms < validity.not_before_s.saturating_mul(1000) || unix_ms > end_ms {
            return Err(forbidden("the prefix announcement is not valid at this time"));
        }
        period_ms = period_ms.min(end_ms - unix_ms);
    }
    let period_ms = allowed_ms(turn, Some(period_ms), until_s).unwrap_or(period_ms);
    let route = Route {
        face,
        origin: route_origin::PREFIX_ANNOUNCEMENT,
        cost: ANNOUNCED_COST,
        flags: ROUTE_FLAG_CHILD_INHERIT,
        expires_ns: after_ms(turn.now_ns, period_ms),
    };
    add(turn, &found.prefix, route, has_full_authority)?;
    Ok(registered(&found.prefix, &route, Some(period_ms)))
}

fn add(
    turn: &mut Turn<'_>,
    prefix: &Name,
    route: Route,
    has_full_authority: bool,
) -> Result<(), ControlResponse> {
    if turn.view.face(route.face).is_none() {
        return Err(ControlResponse::new(status_code::FACE_NOT_FOUND, "Face not found"));
    }
    let full = |text: String| ControlResponse::new(status_code::SERVER_ERROR, text);
    let (rib, max) = (turn.view.rib(), PREFIXES_OF_FACE_MAX);
    if !has_full_authority && rib.count_of_face(route.face, max) >= max {
        let is_known = rib.routes(prefix.view()).iter().any(|r| r.face == route.face);
        if !is_known {
            return Err(full(format!("this face may register {max} prefixes at most")));
        }
    }
    rib.check_room(prefix.view(), &route).map_err(|error| full(error.to_string()))?;
    turn.actions.push(Action::AddRoute { prefix: prefix.clone(), route });
    Ok(())
}

/// The announcement that a command carries.
pub(super) fn announced<'a>(call: &Call<'a>) -> Result<Data<'a>, ControlResponse> {
    let parameters = call.interest.application_parameters.unwrap_or_default();
    Data::decode(parameters).map_err(|error| bad(format!("malformed prefix announcement: {error}")))
}

fn origin(parameters: &ControlParameters) -> Result<u64, ControlResponse> {
    let origin = parameters.origin.unwrap_or(route_origin::APP);
    if origin == FIB_ORIGIN {
        return Err(bad("failed in validating parameters: unknown origin"));
    }
    Ok(origin)
}

/// Time at which a period ends; `None` for one that no clock sees the end of, which is how clients
/// write "for ever": ndn-cxx with 2^64 − 1, NLSR with 2^63 − 1.
fn after_ms(now_ns: u64, ms: u64) -> Option<u64> {
    now_ns.checked_add(ms.checked_mul(1_000_000)?)
}

fn registered(prefix: &Name, route: &Route, period_ms: Option<u64>) -> ControlResponse {
    ControlResponse::new(status_code::OK, "Success").with_parameters(&ControlParameters {
        name: Some(prefix.clone()),
        face_id: Some(route.face.0),
        origin: Some(route.origin),
        cost: Some(route.cost),
        flags: Some(route.flags),
        expiration_period_ms: period_ms,
        ..ControlParameters::default()
    })
}
