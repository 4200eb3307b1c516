//! Commands of the content store.

use byname_packet::mgmt::{ControlParameters, ControlResponse, status_code};

use super::command::{Request, bad};
use super::fields;
use crate::forwarder::Forwarder;
use crate::shard::Change;

/// Packets that one `cs/erase` removes at most, as in NFD.
const ERASE_MAX: usize = 256;

/// CsInfo flags.
const FLAG_ADMIT: u64 = 1;
const FLAG_SERVE: u64 = 2;

impl Forwarder {
    /// Flags of the content store.
    pub(super) fn cs_flags(&self) -> u64 {
        let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
        flag(self.cs.admits(), FLAG_ADMIT) | flag(self.cs.serves(), FLAG_SERVE)
    }

    /// Packets that the content stores of all shards may hold.
    pub(super) fn cs_capacity(&self) -> usize {
        self.cs.entries_max().saturating_mul(self.shard_count())
    }

    pub(super) fn cs_config(
        &mut self,
        request: &Request<'_>,
    ) -> Result<ControlResponse, ControlResponse> {
        let parameters = &request.parameters;
        if let Some(capacity) = parameters.capacity {
            let entries_max = usize::try_from(capacity).unwrap_or(usize::MAX);
            self.cs.set_entries_max(entries_max.div_ceil(self.shard_count()));
        }
        let flags = fields::masked(self.cs_flags(), parameters);
        self.cs.set_admits(flags & FLAG_ADMIT != 0);
        self.cs.set_serves(flags & FLAG_SERVE != 0);
        let (admits, serves) = (self.cs.admits(), self.cs.serves());
        let entries_max = self.cs.entries_max();
        self.tell(|| Change::Store { entries_max, admits, serves });
        Ok(ControlResponse::new(status_code::OK, "OK").with_parameters(&ControlParameters {
            capacity: Some(self.cs_capacity() as u64),
            flags: Some(self.cs_flags()),
            ..ControlParameters::default()
        }))
    }

    pub(super) fn cs_erase(
        &mut self,
        request: &Request<'_>,
    ) -> Result<ControlResponse, ControlResponse> {
        // Not a prefix that is kept: any length will do.
        let prefix = request.parameters.name.clone().unwrap_or_default();
        let wanted = request.parameters.count.unwrap_or(u64::MAX);
        if wanted == 0 {
            return Err(bad("failed in validating parameters: Count must be positive"));
        }
        let max = usize::try_from(wanted).unwrap_or(usize::MAX).min(ERASE_MAX);
        let erased = self.cs.erase(prefix.view(), &self.hasher, max);
        self.tell(|| Change::Erase(prefix.clone(), max));
        // Capacity says that the limit of one call was reached and that there is more.
        let is_cut = erased == ERASE_MAX
            && wanted > ERASE_MAX as u64
            && self.cs.has_below(prefix.view(), &self.hasher);
        Ok(ControlResponse::new(status_code::OK, "OK").with_parameters(&ControlParameters {
            name: Some(prefix),
            count: Some(erased as u64),
            capacity: is_cut.then_some(ERASE_MAX as u64),
            ..ControlParameters::default()
        }))
    }
}
