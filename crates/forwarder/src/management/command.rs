//! Control commands: `/localhost/nfd/<module>/<verb>/<ControlParameters>` and a signature.
//!
//! The signature comes in two forms: v0.3 (in the Interest, with a digest as the last component)
//! and v0.2 (four more components). The parameters are the fifth component in both. Response bodies
//! hold exactly the fields that the protocol names: ndn-cxx refuses more or fewer.

use byname_packet::Interest;
use byname_packet::mgmt::{
    ControlParameters, ControlResponse, ROUTE_FLAG_CAPTURE, ROUTE_FLAG_CHILD_INHERIT, route_origin,
    status_code,
};

use super::authority::Authority;
use super::{PREFIX_LEN, module_and_verb};
use crate::face::FaceId;
use crate::forwarder::{Arrival, Forwarder};
use crate::rib::Route;

/// Every command of the protocol; those not carried out here are answered with 501.
const COMMANDS: [(&[u8], &[&[u8]]); 5] = [
    (b"rib", &[b"register", b"unregister", b"announce"]),
    (b"faces", &[b"create", b"update", b"destroy"]),
    (b"fib", &[b"add-nexthop", b"remove-nexthop"]),
    (b"cs", &[b"config", b"erase"]),
    (b"strategy-choice", &[b"set", b"unset"]),
];

/// Longest prefix that can be registered, as in NFD.
const PREFIX_COMPONENTS_MAX: usize = 32;

/// Components that a v0.2 signature adds: timestamp, nonce, information, value.
const V02_SIGNATURE_LEN: usize = 4;

/// What somebody without authority is told.
const FORBIDDEN: &str = "this face may not command the forwarder; connect over its Unix socket as \
     its user, or have its operator allow registrations for the prefix and your key";

/// Whether the protocol has such a command.
pub(super) fn is_command(module: &[u8], verb: &[u8]) -> bool {
    COMMANDS.iter().any(|(name, verbs)| *name == module && verbs.contains(&verb))
}

/// The answer to what is neither a command nor a dataset.
pub(super) fn unknown(module: &[u8]) -> ControlResponse {
    if COMMANDS.iter().any(|(name, _)| *name == module) {
        ControlResponse::new(status_code::NOT_IMPLEMENTED, "unknown command or dataset")
    } else {
        ControlResponse::new(status_code::NOT_FOUND, "unknown management module")
    }
}

fn bad(text: &str) -> ControlResponse {
    ControlResponse::new(status_code::BAD_REQUEST, text)
}

impl Forwarder {
    pub(super) fn on_command(
        &mut self,
        arrival: &Arrival<'_>,
        interest: &Interest<'_>,
    ) -> ControlResponse {
        let authority = self
            .faces
            .get(arrival.face)
            .map_or(Authority::Nothing, |face| Authority::of(&face.info, self.config.own_uid));
        let (module, verb) = module_and_verb(interest.name);
        if authority == Authority::Nothing {
            return ControlResponse::new(status_code::UNAUTHORIZED, FORBIDDEN);
        }
        if module != b"rib" || verb == b"announce" {
            return ControlResponse::new(status_code::NOT_IMPLEMENTED, "not implemented");
        }
        if !is_signed(interest) {
            let text = "the command is not signed";
            return ControlResponse::new(status_code::UNAUTHORIZED, text);
        }
        let parameters = interest.name.get(PREFIX_LEN + 2);
        let decoded = parameters.map(|c| ControlParameters::decode(c.value));
        let Some(Ok(parameters)) = decoded else {
            return bad("malformed ControlParameters");
        };
        let target = match parameters.face_id {
            None | Some(0) => arrival.face,
            Some(id) => FaceId(id),
        };
        if authority == Authority::OwnRoutes && target != arrival.face {
            let text = "this face may only register routes to itself";
            return ControlResponse::new(status_code::UNAUTHORIZED, text);
        }
        if verb == b"register" {
            self.register(target, parameters, arrival.now_ns)
        } else {
            self.unregister(target, parameters)
        }
    }

    fn register(
        &mut self,
        face: FaceId,
        request: ControlParameters,
        now_ns: u64,
    ) -> ControlResponse {
        let allowed = ControlParameters {
            name: request.name.clone(),
            face_id: request.face_id,
            origin: request.origin,
            cost: request.cost,
            flags: request.flags,
            expiration_period_ms: request.expiration_period_ms,
            ..ControlParameters::default()
        };
        let Some(prefix) = request.name.clone().filter(|_| request == allowed) else {
            return bad("rib/register takes Name and no fields of other commands");
        };
        if prefix.view().count() > PREFIX_COMPONENTS_MAX {
            let text = "the prefix has more than 32 components";
            return ControlResponse::new(status_code::PREFIX_TOO_LONG, text);
        }
        let flags = request.flags.unwrap_or(ROUTE_FLAG_CHILD_INHERIT);
        if flags & !(ROUTE_FLAG_CHILD_INHERIT | ROUTE_FLAG_CAPTURE) != 0 {
            return bad("unknown route flags");
        }
        if self.faces.get(face).is_none() {
            return ControlResponse::new(status_code::FACE_NOT_FOUND, "no such face");
        }
        // The longest period means for ever, as clients send it.
        let expiry_ms = request.expiration_period_ms.filter(|period| *period != u64::MAX);
        let expires_ns = expiry_ms.map(|ms| now_ns.saturating_add(ms.saturating_mul(1_000_000)));
        let origin = request.origin.unwrap_or(route_origin::APP);
        let cost = request.cost.unwrap_or(0);
        let route = Route { face, origin, cost, flags, expires_ns };
        if let Err(full) = self.add_route(&prefix, route) {
            return ControlResponse::new(status_code::SERVER_ERROR, full.to_string());
        }
        ControlResponse::new(status_code::OK, "Success").with_parameters(&ControlParameters {
            name: Some(prefix),
            face_id: Some(face.0),
            origin: Some(origin),
            cost: Some(cost),
            flags: Some(flags),
            expiration_period_ms: expiry_ms,
            ..ControlParameters::default()
        })
    }

    fn unregister(&mut self, face: FaceId, request: ControlParameters) -> ControlResponse {
        let allowed = ControlParameters {
            name: request.name.clone(),
            face_id: request.face_id,
            origin: request.origin,
            ..ControlParameters::default()
        };
        let Some(prefix) = request.name.clone().filter(|_| request == allowed) else {
            return bad("rib/unregister takes Name, FaceId and Origin");
        };
        let origin = request.origin.unwrap_or(route_origin::APP);
        // Success also when there was none: what was asked for holds.
        self.remove_route(&prefix, face, origin);
        ControlResponse::new(status_code::OK, "Success").with_parameters(&ControlParameters {
            name: Some(prefix),
            face_id: Some(face.0),
            origin: Some(origin),
            ..ControlParameters::default()
        })
    }
}

fn is_signed(interest: &Interest<'_>) -> bool {
    let v02_len = PREFIX_LEN + 3 + V02_SIGNATURE_LEN;
    interest.signature_info.is_some() || interest.name.count() >= v02_len
}
