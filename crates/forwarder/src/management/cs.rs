//! Commands of the content store.

use byname_packet::ContentType;
use byname_packet::mgmt::{ControlParameters, ControlResponse, status_code};

use super::action::{Action, Erasure, Turn};
use super::fields;
use super::request::{CommandOutcome, Request};
use super::response::{self, bad};
use super::view::StoreView;

/// Packets that one `cs/erase` removes at most, as in NFD.
const ERASE_MAX: usize = 256;

/// CsInfo flags.
const FLAG_ADMIT: u64 = 1;
const FLAG_SERVE: u64 = 2;

/// Flags of the content store.
pub(super) fn flags(store: &StoreView) -> u64 {
    let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
    flag(store.admits, FLAG_ADMIT) | flag(store.serves, FLAG_SERVE)
}

pub(super) fn config(
    turn: &mut Turn<'_>,
    request: &Request<'_>,
) -> Result<ControlResponse, ControlResponse> {
    let parameters = &request.parameters;
    let mut store = turn.view.store();
    let capacity = parameters.capacity.map(|wanted| usize::try_from(wanted).unwrap_or(usize::MAX));
    if let Some(wanted) = capacity {
        store.capacity = turn.view.capacity_for(wanted);
    }
    let flags = fields::masked(flags(&store), parameters);
    let (admits, serves) = (flags & FLAG_ADMIT != 0, flags & FLAG_SERVE != 0);
    turn.actions.push(Action::ConfigureStore { capacity, admits, serves });
    Ok(ControlResponse::new(status_code::OK, "OK").with_parameters(&ControlParameters {
        capacity: Some(store.capacity as u64),
        flags: Some(flags & (FLAG_ADMIT | FLAG_SERVE)),
        ..ControlParameters::default()
    }))
}

/// Removes packets. The command is answered when they are gone.
pub(super) fn erase(turn: &mut Turn<'_>, request: &Request<'_>) -> CommandOutcome {
    let wanted = request.parameters.count.unwrap_or(u64::MAX);
    if wanted == 0 {
        return bad("failed in validating parameters: Count must be positive").into();
    }
    turn.actions.push(Action::Erase(Erasure {
        // Not a prefix that is kept: any length will do.
        prefix: request.parameters.name.clone().unwrap_or_default(),
        packets_max: usize::try_from(wanted).unwrap_or(usize::MAX).min(ERASE_MAX),
        asker: request.asker,
        name: request.name.to_name(),
        wanted,
    }));
    CommandOutcome::Later
}

/// Answers a command that has removed `count` packets and left more of them, or not.
pub(super) fn erased(turn: &mut Turn<'_>, erasure: Erasure, count: usize, has_more: bool) {
    let Erasure { prefix, asker, name, wanted, .. } = erasure;
    // Capacity says that the limit of one call was reached and that there is more.
    let is_cut = count == ERASE_MAX && wanted > ERASE_MAX as u64 && has_more;
    let parameters = ControlParameters {
        name: Some(prefix),
        count: Some(count as u64),
        capacity: is_cut.then_some(ERASE_MAX as u64),
        ..ControlParameters::default()
    };
    let response = ControlResponse::new(status_code::OK, "OK").with_parameters(&parameters);
    if let Some(packet) = response::encode(name.view(), ContentType::BLOB, &response) {
        turn.reply(asker, packet);
    }
}
