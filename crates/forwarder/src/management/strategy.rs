//! Commands that choose strategies for prefixes.

use byname_packet::mgmt::{ControlParameters, ControlResponse, status_code};

use super::command::{Request, bad};
use crate::forwarder::Forwarder;
use crate::strategy;

/// Prefixes for which a strategy can be chosen.
const CHOICES_MAX: usize = 65_536;

impl Forwarder {
    pub(super) fn strategy_set(
        &mut self,
        request: &Request<'_>,
    ) -> Result<ControlResponse, ControlResponse> {
        let prefix = request.prefix()?;
        let wanted = request.parameters.strategy.clone().unwrap_or_default();
        let Some(chosen) = strategy::by_name(wanted.view()) else {
            let text = format!("Unknown strategy {wanted}");
            return Err(ControlResponse::new(status_code::NOT_FOUND, text));
        };
        let is_new = self.strategies.get(&self.hasher, prefix.view()).is_none();
        if is_new && self.strategies.len() >= CHOICES_MAX {
            let text = format!("there are strategies for {CHOICES_MAX} prefixes already");
            return Err(ControlResponse::new(status_code::SERVER_ERROR, text));
        }
        let instance = strategy::instance_name(&*chosen);
        self.set_strategy(prefix, chosen);
        Ok(ControlResponse::new(status_code::OK, "OK").with_parameters(&ControlParameters {
            name: Some(prefix.clone()),
            strategy: Some(instance),
            ..ControlParameters::default()
        }))
    }

    pub(super) fn strategy_unset(
        &mut self,
        request: &Request<'_>,
    ) -> Result<ControlResponse, ControlResponse> {
        let prefix = request.prefix()?;
        if prefix.view().is_empty() {
            return Err(bad("failed in validating parameters: / always has a strategy"));
        }
        self.unset_strategy(prefix);
        Ok(ControlResponse::new(status_code::OK, "OK").with_parameters(&ControlParameters {
            name: Some(prefix.clone()),
            ..ControlParameters::default()
        }))
    }
}
