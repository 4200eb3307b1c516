//! What happens because time passes: pending Interests and routes expire.

use super::{Forwarder, Tx};

impl Forwarder {
    /// When [`Forwarder::handle_timeout`] has something to do next, on the clock of `now_ns`.
    pub fn poll_timeout(&self) -> Option<u64> {
        let tables = [self.pit.next_due_ns(), self.measurements.next_expiry_ns()];
        let others = [self.routes_due_ns(), self.management_due_ns()];
        tables.into_iter().chain(others).flatten().min()
    }

    /// Removes what has expired and asks strategies about what is overdue.
    pub fn handle_timeout(&mut self, now_ns: u64, tx: &mut dyn Tx) {
        while let Some(index) = self.pit.pop_expired(now_ns) {
            self.give_up(index, now_ns);
        }
        while let Some(index) = self.pit.pop_woken(now_ns) {
            self.reconsider(index, now_ns, tx, |strategy, context, send| {
                strategy.on_timeout(context, send)
            });
        }
        self.measurements.expire(now_ns);
        self.maintain_routes(now_ns);
        self.maintain_management(now_ns, tx);
    }
}
