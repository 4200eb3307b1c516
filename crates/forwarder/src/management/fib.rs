//! Commands that set next hops in the FIB directly. They do not show among the routes, are not
//! inherited, and hold whatever the routes say of their face.

use byname_packet::mgmt::{ControlParameters, ControlResponse, status_code};

use super::action::{Action, Turn};
use super::request::Request;
use crate::rib::{FIB_ORIGIN, Route};

pub(super) fn add_nexthop(
    turn: &mut Turn<'_>,
    request: &Request<'_>,
) -> Result<ControlResponse, ControlResponse> {
    let prefix = request.prefix()?;
    let face = request.face;
    if turn.view.face(face).is_none() {
        return Err(ControlResponse::new(status_code::FACE_NOT_FOUND, "Face not found"));
    }
    let cost = request.parameters.cost.unwrap_or(0);
    let route = Route { face, origin: FIB_ORIGIN, cost, flags: 0, expires_ns: None };
    turn.view
        .rib()
        .check_room(prefix.view(), &route)
        .map_err(|full| ControlResponse::new(status_code::SERVER_ERROR, full.to_string()))?;
    turn.actions.push(Action::AddRoute { prefix: prefix.clone(), route });
    Ok(ControlResponse::new(status_code::OK, "Success").with_parameters(&ControlParameters {
        name: Some(prefix.clone()),
        face_id: Some(face.0),
        cost: Some(cost),
        ..ControlParameters::default()
    }))
}

pub(super) fn remove_nexthop(
    turn: &mut Turn<'_>,
    request: &Request<'_>,
) -> Result<ControlResponse, ControlResponse> {
    let prefix = request.prefix()?;
    // Success also when there was none, as in NFD.
    turn.remove_route(prefix.view(), request.face, FIB_ORIGIN);
    Ok(ControlResponse::new(status_code::OK, "Success").with_parameters(&ControlParameters {
        name: Some(prefix.clone()),
        face_id: Some(request.face.0),
        ..ControlParameters::default()
    }))
}
