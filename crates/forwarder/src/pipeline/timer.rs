//! Time that passes: pending Interests expire, strategies are woken, measurements are forgotten.

use super::Pipeline;
use crate::tx::Tx;

impl Pipeline {
    /// Time at which [`Pipeline::handle_timeout`] has something to do next.
    pub(crate) fn poll_timeout(&self) -> Option<u64> {
        let tables = [self.pit.next_due_ns(), self.measurements.next_expiry_ns()];
        tables.into_iter().flatten().min()
    }

    /// Removes what has expired and asks strategies about what is overdue.
    pub(crate) fn handle_timeout(&mut self, now_ns: u64, tx: &mut dyn Tx) {
        while let Some(index) = self.pit.pop_expired(now_ns) {
            self.give_up(index, now_ns);
        }
        while let Some(index) = self.pit.pop_woken(now_ns) {
            self.reconsider(index, now_ns, tx, |strategy, context, send| {
                strategy.on_timeout(context, send)
            });
        }
        self.measurements.expire(now_ns);
    }
}
