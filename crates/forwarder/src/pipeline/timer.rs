//! Time that passes: pending Interests expire, strategies are woken, measurements are forgotten.
//!
//! What was asked of a face that goes is not waited for: its strategy is asked again at once, as
//! after a Nack. So whoever commands a server that was killed hears of it, or is answered by the
//! next one, without a time-out.

use byname_packet::lp::nack_reason;

use super::Pipeline;
use crate::face::FaceId;
use crate::face_table::Face;
use crate::strategy::Decision;
use crate::tx::Tx;

impl Pipeline {
    /// Time at which [`Pipeline::handle_timeout`] has something to do next.
    pub(crate) fn poll_timeout(&self) -> Option<u64> {
        let forsaken = (!self.forsaken.is_empty()).then_some(0);
        let tables = [self.pit.next_due_ns(), self.measurements.next_expiry_ns(), forsaken];
        tables.into_iter().flatten().min()
    }

    /// Removes what has expired and asks strategies about what is overdue.
    pub(crate) fn handle_timeout(&mut self, now_ns: u64, tx: &mut dyn Tx) {
        while let Some(index) = self.pit.pop_expired(now_ns) {
            self.give_up(index, now_ns);
        }
        self.reconsider_forsaken(now_ns, tx);
        while let Some(index) = self.pit.pop_woken(now_ns) {
            self.reconsider(index, now_ns, tx, |strategy, context, send| {
                strategy.on_timeout(context, send)
            });
        }
        self.measurements.expire(now_ns);
    }

    /// A face is gone, or has lost its link: nobody there answers what it was asked any more.
    pub(crate) fn lose_upstream(&mut self, face: FaceId) {
        // Of most faces nothing was ever asked, and looking through the table takes a while.
        let was_asked = |face: &Face| face.counters.out_interests > 0;
        if self.faces.get(face).is_some_and(was_asked) {
            self.forsaken.extend(self.pit.asked_of(face));
        }
    }

    fn reconsider_forsaken(&mut self, now_ns: u64, tx: &mut dyn Tx) {
        // The place of one that has ended meanwhile may have been taken: by one that is awaited,
        // for which nothing is done then.
        for index in std::mem::take(&mut self.forsaken) {
            self.reconsider(index, now_ns, tx, |strategy, context, send| {
                if context.records.is_awaited(now_ns) {
                    return Decision::Suppress;
                }
                match strategy.on_nack(context, send) {
                    Decision::Suppress if context.hops.is_empty() => {
                        Decision::Reject(nack_reason::NO_ROUTE)
                    }
                    decision => decision,
                }
            });
        }
    }
}
