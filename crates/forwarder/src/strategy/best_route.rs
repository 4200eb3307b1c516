//! Best route: the cheapest next hop; after a retransmission or a Nack the next one not yet tried.

use std::sync::Arc;

use super::parameters::Parameters;
use super::{Chosen, Context, Decision, Strategy, Suppression, common_nack, without_hops};
use crate::face::FaceId;
use crate::pit::PitEntry;
use crate::rib::NextHop;

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub struct BestRoute {
    suppression: Suppression,
}

impl BestRoute {
    pub(super) fn build(mut parameters: Parameters) -> Option<Chosen> {
        let suppression = Suppression::take(&mut parameters)?;
        parameters.is_empty().then(|| Arc::new(Self { suppression }) as Chosen)
    }
}

impl Strategy for BestRoute {
    fn label(&self) -> (&'static str, u64) {
        ("best-route", 5)
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        self.suppression.parameters()
    }

    fn on_interest(&self, context: &mut Context<'_>, send: &mut Vec<FaceId>) -> Decision {
        let Some(best) = context.hops.first() else { return without_hops(context) };
        let Context { entry, hops, now_ns, .. } = context;
        if !entry.has_pending_out_record(*now_ns) {
            entry.suppression_ns = 0;
            send.push(best.face);
            return Decision::Forward;
        }
        let age_ns = now_ns.saturating_sub(entry.last_sent_ns().unwrap_or(0));
        if self.suppression.holds_back(&mut entry.suppression_ns, age_ns) {
            return Decision::Suppress;
        }
        let next = first_unused(entry, hops, *now_ns).or_else(|| least_recent(entry, hops));
        send.extend(next);
        Decision::Forward
    }

    fn on_nack(&self, context: &mut Context<'_>, send: &mut Vec<FaceId>) -> Decision {
        let Context { entry, hops, now_ns, .. } = context;
        if entry.has_pending_out_record(*now_ns) {
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
