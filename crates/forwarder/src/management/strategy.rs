//! Commands that choose strategies for prefixes.

use byname_packet::mgmt::{ControlParameters, ControlResponse, status_code};

use super::action::{Action, Turn};
use super::request::Request;
use super::response::bad;
use crate::strategy;

/// Prefixes for which a strategy can be chosen.
const CHOICES_MAX: usize = 65_536;

pub(super) fn set(
    turn: &mut Turn<'_>,
    request: &Request<'_>,
) -> Result<ControlResponse, ControlResponse> {
    let prefix = request.prefix()?;
    let wanted = request.parameters.strategy.clone().unwrap_or_default();
    let Some(chosen) = strategy::by_name(wanted.view()) else {
        let text = format!("Unknown strategy {wanted}");
        return Err(ControlResponse::new(status_code::NOT_FOUND, text));
    };
    let is_new = !turn.view.has_strategy(prefix.view());
    if is_new && turn.view.strategy_count() >= CHOICES_MAX {
        let text = format!("there are strategies for {CHOICES_MAX} prefixes already");
        return Err(ControlResponse::new(status_code::SERVER_ERROR, text));
    }
    let instance = strategy::instance_name(&*chosen);
    turn.actions.push(Action::SetStrategy { prefix: prefix.clone(), strategy: chosen });
    Ok(ControlResponse::new(status_code::OK, "OK").with_parameters(&ControlParameters {
        name: Some(prefix.clone()),
        strategy: Some(instance),
        ..ControlParameters::default()
    }))
}

pub(super) fn unset(
    turn: &mut Turn<'_>,
    request: &Request<'_>,
) -> Result<ControlResponse, ControlResponse> {
    let prefix = request.prefix()?;
    if prefix.view().is_empty() {
        return Err(bad("failed in validating parameters: / always has a strategy"));
    }
    turn.actions.push(Action::UnsetStrategy { prefix: prefix.clone() });
    Ok(ControlResponse::new(status_code::OK, "OK").with_parameters(&ControlParameters {
        name: Some(prefix.clone()),
        ..ControlParameters::default()
    }))
}
