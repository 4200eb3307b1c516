//! Promises that hold after every step, wherever it happened.

use super::World;
use crate::host::Host;
use crate::program::Program;

/// Tables are looked at after so many steps.
const TABLES_EVERY: u64 = 64;

impl World {
    /// From now on it is watched at every host who asked for what. To be called before anything
    /// happens, once all hosts are there. It costs about half as much as everything else.
    pub fn keep_ledgers(&mut self) {
        self.hosts.iter_mut().for_each(Host::keep_ledger);
    }

    /// Promises that hold after every step.
    pub(super) fn check(&mut self, host: usize) {
        let one = &mut self.hosts[host];
        let program_fault = one.programs().find_map(Program::fault);
        let mut fault = program_fault.or_else(|| one.forwarder_fault(self.now_ns));
        // Walking along all tables is dear; what overflows will still be there.
        self.steps += 1;
        if self.steps.is_multiple_of(TABLES_EVERY) {
            fault = fault.or_else(|| one.tables_fault());
        }
        if let Some(what) = fault {
            self.break_promise(host, what);
        }
    }
}
