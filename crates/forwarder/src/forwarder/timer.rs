//! What happens because time passes: pending Interests and routes expire.

use super::{Forwarder, Tx};

impl Forwarder {
    /// When [`Forwarder::handle_timeout`] has something to do next, on the clock of `now_ns`.
    pub fn poll_timeout(&self) -> Option<u64> {
        let pit = self.pit.next_expiry_ns();
        [pit, self.routes_due_ns(), self.management_due_ns()].into_iter().flatten().min()
    }

    /// Removes what has expired. Nothing is sent today; strategies that probe will.
    pub fn handle_timeout(&mut self, now_ns: u64, tx: &mut dyn Tx) {
        while let Some(index) = self.pit.pop_expired(now_ns) {
            self.give_up(index, now_ns);
        }
        self.maintain_routes(now_ns);
        self.maintain_management(now_ns, tx);
    }
}
