//! Control commands: `/localhost/nfd/<module>/<verb>/<ControlParameters>` and a signature.
//!
//! The signature comes in two forms: v0.3 (in the Interest, with a digest as the last component)
//! and v0.2 (four more components). The parameters are the fifth component in both. Response bodies
//! hold exactly the fields that the protocol names: ndn-cxx refuses more or fewer. Order of checks:
//! authority, signature, parameters, fields, what the command itself demands.

use byname_packet::mgmt::{ControlResponse, status_code};

use super::action::Turn;
use super::authority::Authority;
use super::faces::DriverRequests;
use super::fields::{Command, Takes};
use super::remote::Remote;
use super::request::{
    Call, CommandOutcome, Request, is_announcement, is_signed, module_and_verb, read_request,
};
use super::response::{bad, forbidden};
use super::settings::Settings;
use super::{cs, fib, rib, strategy};
use crate::scope;

/// Returns whether the protocol has such a command.
pub(super) fn is_command(module: &[u8], verb: &[u8]) -> bool {
    is_announcement(module, verb) || Command::find(module, verb).is_some()
}

/// The parts of management that commands concern.
pub(super) struct Commands<'a> {
    pub(super) settings: &'a Settings,
    pub(super) requests: &'a mut DriverRequests,
    pub(super) remote: &'a mut Remote,
}

impl Commands<'_> {
    /// Carries a command out, whoever sent it.
    pub(super) fn handle(&mut self, turn: &mut Turn<'_>, call: &Call<'_>) -> CommandOutcome {
        let name = call.interest.name;
        let (module, verb) = module_and_verb(name);
        if scope::is_localhop(name) && module != b"rib" {
            return ControlResponse::new(status_code::NOT_FOUND, "no such command here").into();
        }
        let authority = self.settings.authority(turn.view.face(call.asker.face));
        if authority == Authority::Nothing {
            return self.remote.handle_command(turn, self.settings, call);
        }
        if !is_signed(call.interest) {
            return forbidden("the command is not signed").into();
        }
        let is_full = authority == Authority::Full;
        if is_announcement(module, verb) {
            return rib::announced(call)
                .and_then(|packet| {
                    rib::announce(turn, call.asker.face, &packet, (is_full, u64::MAX))
                })
                .into();
        }
        let (command, takes, request) = match read_request(call) {
            Ok(read) => read,
            Err(response) => return response.into(),
        };
        if let Err(refusal) = check(authority, (command, takes), &request) {
            return refusal.into();
        }
        self.carry_out(turn, command, Request { has_full_authority: is_full, ..request })
    }

    fn carry_out(
        &mut self,
        turn: &mut Turn<'_>,
        command: Command,
        request: Request<'_>,
    ) -> CommandOutcome {
        let response = match command {
            Command::RibRegister => rib::register(turn, &request),
            Command::RibUnregister => rib::unregister(turn, &request),
            Command::FaceCreate => return self.requests.create(&request),
            Command::FaceUpdate => self.requests.update(turn, &request),
            Command::FaceDestroy => self.requests.destroy(turn.view, &request),
            Command::FibAdd => fib::add_nexthop(turn, &request),
            Command::FibRemove => fib::remove_nexthop(turn, &request),
            Command::CsConfig => cs::config(turn, &request),
            Command::CsErase => return cs::erase(turn, &request),
            Command::StrategySet => strategy::set(turn, &request),
            Command::StrategyUnset => strategy::unset(turn, &request),
        };
        response.into()
    }
}

/// Refuses a command that this asker may not give, or that has other fields than it takes.
fn check(
    authority: Authority,
    (command, takes): (Command, Takes),
    request: &Request<'_>,
) -> Result<(), ControlResponse> {
    if authority == Authority::OwnRoutes {
        let is_route = matches!(command, Command::RibRegister | Command::RibUnregister);
        if !is_route {
            let text = "only faces of this user, root or the authorized group (Unix, memif) \
                        may command this";
            return Err(forbidden(text));
        }
        if request.face != request.asker.face {
            return Err(forbidden("this face may only register routes to itself"));
        }
    }
    takes.complaint(&request.parameters).map_or(Ok(()), |complaint| Err(bad(complaint)))
}
