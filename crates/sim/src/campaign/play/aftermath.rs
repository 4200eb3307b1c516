//! Promises that hold when the trouble is over: readers end, files can be read, nothing stays
//! pending.

use super::Stage;
use crate::world::Fault;

impl Stage<'_> {
    pub(super) fn wait_for_readers(&mut self, limit_ns: u64, promise: &str) -> Result<(), Fault> {
        while self.world.now_ns() < limit_ns {
            self.slice(limit_ns)?;
            if (0..self.readers.len()).all(|number| self.reader(number).outcome().is_some()) {
                (0..self.readers.len()).for_each(|number| self.count_outcome(number));
                return Ok(());
            }
        }
        let is_late = |number: &usize| self.reader(*number).outcome().is_none();
        let number = (0..self.readers.len()).find(is_late).unwrap_or_default();
        let what = format!("{promise}: reader {number} has {} octets", self.reader(number).bytes());
        Err(self.fault(number, what))
    }

    pub(super) fn expect_all_read(&self) -> Result<(), Fault> {
        for number in 0..self.readers.len() {
            let reader = self.reader(number);
            let site = &self.plan.sites[self.plan.readers[number].site];
            let size = site.versions.last().map_or(0, |version| version.size);
            let outcome = reader.outcome();
            if outcome != Some(&Ok(())) || reader.bytes() != size {
                let what = format!(
                    "what is published can be read when all is well: reader {number} has {} of \
                     {size} octets, {outcome:?}",
                    reader.bytes()
                );
                return Err(self.fault(number, what));
            }
        }
        Ok(())
    }

    pub(super) fn expect_rest(&self) -> Result<(), Fault> {
        for host in &self.hosts {
            let host = self.world.host(*host);
            let pending = host.forwarder().map_or(0, |forwarder| forwarder.pending_count());
            if pending > 0 {
                let what = format!("no Interest outlives its lifetime: {pending} are pending");
                let (at_ns, host) = (self.world.now_ns(), host.name.clone());
                return Err(Fault { at_ns, host, what });
            }
        }
        Ok(())
    }
}
