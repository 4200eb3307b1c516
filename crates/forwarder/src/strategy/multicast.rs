//! Multicast: every next hop, each held back on its own after it was asked.

use byname_packet::lp::nack_reason;

use super::{Context, Decision, Strategy, common_nack, is_suppressed};
use crate::face::FaceId;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Multicast;

impl Strategy for Multicast {
    fn label(&self) -> (&'static str, u64) {
        ("multicast", 5)
    }

    fn on_interest(&self, context: Context<'_>, send: &mut Vec<FaceId>) -> Decision {
        let Context { entry, hops, now_ns } = context;
        for hop in hops {
            let is_held_back = entry.out_record_mut(hop.face).is_some_and(|record| {
                let age_ns = now_ns.saturating_sub(record.sent_ns);
                is_suppressed(&mut record.suppression_ns, age_ns)
            });
            if !is_held_back {
                send.push(hop.face);
            }
        }
        match (send.is_empty(), entry.has_pending_out_record(now_ns)) {
            (false, _) => Decision::Forward,
            (true, true) => Decision::Suppress,
            (true, false) if hops.is_empty() => Decision::Reject(nack_reason::NO_ROUTE),
            (true, false) => Decision::Suppress,
        }
    }

    fn on_nack(&self, context: Context<'_>, _send: &mut Vec<FaceId>) -> Decision {
        common_nack(context.entry).map_or(Decision::Suppress, Decision::Reject)
    }
}
