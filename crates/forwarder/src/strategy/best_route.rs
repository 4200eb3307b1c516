//! Best route: the cheapest next hop; after a retransmission or a Nack the next one not yet tried.

use byname_packet::lp::nack_reason;

use super::{Context, Decision, Strategy, common_nack, is_suppressed};
use crate::face::FaceId;
use crate::pit::PitEntry;
use crate::rib::NextHop;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct BestRoute;

impl Strategy for BestRoute {
    fn label(&self) -> (&'static str, u64) {
        ("best-route", 5)
    }

    fn on_interest(&self, context: Context<'_>, send: &mut Vec<FaceId>) -> Decision {
        let Context { entry, hops, now_ns } = context;
        let Some(best) = hops.first() else {
            let waiting = entry.has_pending_out_record(now_ns);
            return if waiting {
                Decision::Suppress
            } else {
                Decision::Reject(nack_reason::NO_ROUTE)
            };
        };
        if !entry.has_pending_out_record(now_ns) {
            entry.suppression_ns = 0;
            send.push(best.face);
            return Decision::Forward;
        }
        let age_ns = now_ns.saturating_sub(entry.last_sent_ns().unwrap_or(0));
        if is_suppressed(&mut entry.suppression_ns, age_ns) {
            return Decision::Suppress;
        }
        let next = first_unused(entry, hops, now_ns).or_else(|| least_recent(entry, hops));
        send.extend(next);
        Decision::Forward
    }

    fn on_nack(&self, context: Context<'_>, send: &mut Vec<FaceId>) -> Decision {
        let Context { entry, hops, now_ns } = context;
        if entry.has_pending_out_record(now_ns) {
            return Decision::Suppress;
        }
        if let Some(next) = hops.iter().find(|hop| entry.out_record(hop.face).is_none()) {
            send.push(next.face);
            return Decision::Forward;
        }
        common_nack(entry).map_or(Decision::Suppress, Decision::Reject)
    }
}

/// The cheapest hop from which no answer is awaited.
fn first_unused(entry: &PitEntry, hops: &[NextHop], now_ns: u64) -> Option<FaceId> {
    let is_unused = |face: FaceId| match entry.out_record(face) {
        Some(record) => record.expires_ns <= now_ns,
        None => true,
    };
    hops.iter().map(|hop| hop.face).find(|face| is_unused(*face))
}

/// The hop that was asked longest ago.
fn least_recent(entry: &PitEntry, hops: &[NextHop]) -> Option<FaceId> {
    let sent = |face: FaceId| entry.out_record(face).map_or(0, |record| record.sent_ns);
    hops.iter().map(|hop| hop.face).min_by_key(|face| sent(*face))
}
