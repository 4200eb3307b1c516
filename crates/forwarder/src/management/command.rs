//! Control commands: `/localhost/nfd/<module>/<verb>/<ControlParameters>` and a signature.
//!
//! The signature comes in two forms: v0.3 (in the Interest, with a digest as the last component)
//! and v0.2 (four more components). The parameters are the fifth component in both. Response bodies
//! hold exactly the fields that the protocol names: ndn-cxx refuses more or fewer. Order of checks:
//! authority, signature, parameters, fields, what the command itself demands.

use byname_packet::mgmt::{ControlParameters, ControlResponse, status_code};
use byname_packet::{Interest, NameRef};

use super::authority::Authority;
use super::fields::{Command, Takes};
use super::{Asker, PREFIX_LEN, module_and_verb};
use crate::face::FaceId;
use crate::forwarder::Forwarder;
use crate::scope;

/// Longest prefix that can be registered, as in NFD.
pub(super) const PREFIX_COMPONENTS_MAX: usize = 32;

/// Components that a v0.2 signature adds: timestamp, nonce, information, value.
const V02_SIGNATURE_LEN: usize = 4;

/// Modules of the protocol, for the answer to unknown commands.
const MODULES: [&[u8]; 6] = [b"rib", b"faces", b"fib", b"cs", b"strategy-choice", b"status"];

/// What comes of a command.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The answer.
    Now(ControlResponse),
    /// The answer comes when something else has happened.
    Later,
}

impl From<ControlResponse> for Outcome {
    fn from(response: ControlResponse) -> Self {
        Self::Now(response)
    }
}

/// A command Interest and who sent it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) asker: Asker,
    pub(super) interest: &'a Interest<'a>,
    pub(super) now_ns: u64,
}

/// A command that may be carried out.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) asker: Asker,
    /// The face that FaceId names; the asker's own if it names none.
    pub(super) face: FaceId,
    /// Name of the Interest, which an answer repeats.
    pub(super) name: NameRef<'a>,
    pub(super) parameters: ControlParameters,
    /// Whether the asker may do anything.
    pub(super) has_full_authority: bool,
    pub(super) now_ns: u64,
}

impl Request<'_> {
    /// The prefix that the command is about, if it is not too long.
    pub(super) fn prefix(&self) -> Result<&byname_packet::Name, ControlResponse> {
        let Some(prefix) = &self.parameters.name else {
            return Err(bad("failed in validating parameters: Name is missing"));
        };
        check_length(prefix.view())?;
        Ok(prefix)
    }
}

pub(super) fn check_length(prefix: NameRef<'_>) -> Result<(), ControlResponse> {
    if prefix.count() <= PREFIX_COMPONENTS_MAX {
        return Ok(());
    }
    let text = format!("the prefix has more than {PREFIX_COMPONENTS_MAX} components");
    Err(ControlResponse::new(status_code::PREFIX_TOO_LONG, text))
}

pub(super) fn bad(text: impl Into<String>) -> ControlResponse {
    ControlResponse::new(status_code::BAD_REQUEST, text)
}

pub(super) fn forbidden(text: impl Into<String>) -> ControlResponse {
    ControlResponse::new(status_code::UNAUTHORIZED, text)
}

/// Whether the protocol has such a command.
pub(super) fn is_command(module: &[u8], verb: &[u8]) -> bool {
    is_announcement(module, verb) || Command::find(module, verb).is_some()
}

/// `rib/announce` is the one command without ControlParameters.
pub(super) fn is_announcement(module: &[u8], verb: &[u8]) -> bool {
    module == b"rib" && verb == b"announce"
}

/// The answer to what is neither a command nor a dataset.
pub(super) fn unknown(module: &[u8]) -> ControlResponse {
    if MODULES.contains(&module) {
        ControlResponse::new(status_code::NOT_IMPLEMENTED, "unknown command or dataset")
    } else {
        ControlResponse::new(status_code::NOT_FOUND, "unknown management module")
    }
}

impl Forwarder {
    /// Carries a command out, whoever sent it.
    pub(super) fn on_command(&mut self, call: &Call<'_>) -> Outcome {
        let name = call.interest.name;
        let (module, verb) = module_and_verb(name);
        if scope::is_localhop(name) && module != b"rib" {
            return ControlResponse::new(status_code::NOT_FOUND, "no such command here").into();
        }
        let authority = self.authority(call.asker.face);
        if authority == Authority::Nothing {
            return self.on_remote_command(call);
        }
        if !is_signed(call.interest) {
            return forbidden("the command is not signed").into();
        }
        if is_announcement(module, verb) {
            return self.on_announcement(call).into();
        }
        let (command, takes, request) = match self.read_request(call) {
            Ok(read) => read,
            Err(response) => return response.into(),
        };
        if authority == Authority::OwnRoutes {
            let is_route = matches!(command, Command::RibRegister | Command::RibUnregister);
            if !is_route {
                let text = "only faces of this user, root or the authorized group (Unix, memif) \
                            may command this";
                return forbidden(text).into();
            }
            if request.face != call.asker.face {
                return forbidden("this face may only register routes to itself").into();
            }
        }
        if let Some(complaint) = takes.complaint(&request.parameters) {
            return bad(complaint).into();
        }
        self.carry_out_command(command, request)
    }

    pub(super) fn authority(&self, face: FaceId) -> Authority {
        let (own_uid, gid) = (self.config.own_uid, self.config.authorized_gid);
        self.faces
            .get(face)
            .map_or(Authority::Nothing, |face| Authority::of(&face.info, own_uid, gid))
    }

    /// Reads a command and its parameters, whichever they are.
    pub(super) fn read_request<'a>(
        &self,
        call: &Call<'a>,
    ) -> Result<(Command, Takes, Request<'a>), ControlResponse> {
        let name = call.interest.name;
        let (module, verb) = module_and_verb(name);
        let (command, takes) = Command::find(module, verb).ok_or_else(|| unknown(module))?;
        let component = name.get(PREFIX_LEN + 2).ok_or_else(|| bad("malformed command"))?;
        let parameters = ControlParameters::decode(component.value)
            .map_err(|error| bad(format!("malformed ControlParameters: {error}")))?;
        let face = match parameters.face_id {
            None | Some(0) => call.asker.face,
            Some(id) => FaceId(id),
        };
        let has_full_authority = self.authority(call.asker.face) == Authority::Full;
        let (asker, now_ns) = (call.asker, call.now_ns);
        let request = Request { asker, face, name, parameters, has_full_authority, now_ns };
        Ok((command, takes, request))
    }

    pub(super) fn carry_out_command(&mut self, command: Command, request: Request<'_>) -> Outcome {
        let response = match command {
            Command::RibRegister => self.rib_register(&request),
            Command::RibUnregister => self.rib_unregister(&request),
            Command::FaceCreate => return self.face_create(&request),
            Command::FaceUpdate => self.face_update(&request),
            Command::FaceDestroy => self.face_destroy(&request),
            Command::FibAdd => self.fib_add(&request),
            Command::FibRemove => self.fib_remove(&request),
            Command::CsConfig => self.cs_config(&request),
            Command::CsErase => self.cs_erase(&request),
            Command::StrategySet => self.strategy_set(&request),
            Command::StrategyUnset => self.strategy_unset(&request),
        };
        response.unwrap_or_else(|refusal| refusal).into()
    }
}

pub(super) fn is_signed(interest: &Interest<'_>) -> bool {
    let v02_len = PREFIX_LEN + 3 + V02_SIGNATURE_LEN;
    interest.signature_info.is_some() || interest.name.count() >= v02_len
}
