//! Requests as the protocol writes them: names, commands, parameters.

use byname_packet::mgmt::{ControlParameters, ControlResponse, status_code};
use byname_packet::{Component, Interest, Name, NameRef};

use super::action::Asker;
use super::fields::{Command, Takes};
use super::response::{PREFIX_LEN, bad, unknown};
use crate::face::FaceId;

/// Longest prefix that can be registered, as in NFD.
pub(super) const PREFIX_COMPONENTS_MAX: usize = 32;

/// Components that a v0.2 signature adds: timestamp, nonce, information, value.
const V02_SIGNATURE_LEN: usize = 4;

/// An Interest for management and who sent it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) asker: Asker,
    pub(super) interest: &'a Interest<'a>,
}

/// A command with its parameters.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) asker: Asker,
    /// The face that FaceId names; the asker's own if it names none.
    pub(super) face: FaceId,
    /// Name of the Interest, which an answer repeats.
    pub(super) name: NameRef<'a>,
    pub(super) parameters: ControlParameters,
    /// True if the asker may do anything; set once that is known.
    pub(super) has_full_authority: bool,
    /// Until when the sender may do it, in seconds since 1970.
    pub(super) until_s: u64,
}

impl Request<'_> {
    /// The prefix that the command is about, if it is not too long.
    pub(super) fn prefix(&self) -> Result<&Name, ControlResponse> {
        let Some(prefix) = &self.parameters.name else {
            return Err(bad("failed in validating parameters: Name is missing"));
        };
        check_length(prefix.view())?;
        Ok(prefix)
    }
}

/// Outcome of a command.
#[derive(Debug)]
pub(super) enum CommandOutcome {
    /// The answer.
    Now(ControlResponse),
    /// The answer comes when something else has happened.
    Later,
}

impl From<ControlResponse> for CommandOutcome {
    fn from(response: ControlResponse) -> Self {
        Self::Now(response)
    }
}

impl From<Result<ControlResponse, ControlResponse>> for CommandOutcome {
    fn from(result: Result<ControlResponse, ControlResponse>) -> Self {
        Self::Now(result.unwrap_or_else(|refusal| refusal))
    }
}

pub(super) fn check_length(prefix: NameRef<'_>) -> Result<(), ControlResponse> {
    if prefix.count() <= PREFIX_COMPONENTS_MAX {
        return Ok(());
    }
    let text = format!("the prefix has more than {PREFIX_COMPONENTS_MAX} components");
    Err(ControlResponse::new(status_code::PREFIX_TOO_LONG, text))
}

/// `rib`, `register` of `/localhost/nfd/rib/register/…`; other types of components match nothing.
pub(super) fn module_and_verb(name: NameRef<'_>) -> (&[u8], &[u8]) {
    let generic = |index| {
        name.get(index).filter(|c| *c == Component::generic(c.value)).map_or(&b""[..], |c| c.value)
    };
    (generic(PREFIX_LEN), generic(PREFIX_LEN + 1))
}

/// `rib/announce` is the one command without ControlParameters.
pub(super) fn is_announcement(module: &[u8], verb: &[u8]) -> bool {
    module == b"rib" && verb == b"announce"
}

pub(super) fn is_signed(interest: &Interest<'_>) -> bool {
    let v02_len = PREFIX_LEN + 3 + V02_SIGNATURE_LEN;
    interest.signature_info.is_some() || interest.name.count() >= v02_len
}

/// Reads a command and its parameters, whichever they are.
pub(super) fn read_request<'a>(
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
    let (asker, has_full_authority, until_s) = (call.asker, false, u64::MAX);
    let request = Request { asker, face, name, parameters, has_full_authority, until_s };
    Ok((command, takes, request))
}
