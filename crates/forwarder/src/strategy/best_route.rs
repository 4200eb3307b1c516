//! Best route: the cheapest next hop; after a retransmission or a Nack the next one not yet tried.
//!
//! A retransmission that was refused there goes on, in the end to who was asked first: its Data may
//! have been lost, and consumers that hear nothing double their time-out before they
//! ask again. With three paths that lead nowhere, one attempt in four would reach the publisher.

use std::sync::Arc;

use super::api::{Chosen, Context, Decision, Strategy};
use super::parameters::Parameters;
use super::refusal::{common_nack, without_hops};
use super::suppression::Suppression;
use crate::face::FaceId;
use crate::records::Records;
use crate::rib::NextHop;

/// Nobody repeats an Interest earlier because its answer is late: consumers wait for a round trip
/// and 200 ms more. What was sent longer ago is likely to be lost.
const OVERDUE_NS: u64 = 200_000_000;

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
        let Context { records, hops, now_ns, .. } = context;
        if !records.is_awaited(*now_ns) {
            records.suppression_ns = 0;
            send.push(best.face);
            return Decision::Forward;
        }
        let age_ns = now_ns.saturating_sub(records.last_sent_ns().unwrap_or(0));
        if self.suppression.holds_back(&mut records.suppression_ns, age_ns) {
            return Decision::Suppress;
        }
        let next = first_unused(records, hops, *now_ns).or_else(|| least_recent(records, hops));
        send.extend(next);
        Decision::Forward
    }

    fn on_nack(&self, context: &mut Context<'_>, send: &mut Vec<FaceId>) -> Decision {
        let Context { records, hops, now_ns, .. } = context;
        if records.is_awaited(*now_ns) {
            let next = after_refusal(records, hops, *now_ns);
            send.extend(next);
            return next.map_or(Decision::Suppress, |_| Decision::Forward);
        }
        if let Some(next) = hops.iter().find(|hop| records.out_record(hop.face).is_none()) {
            send.push(next.face);
            return Decision::Forward;
        }
        common_nack(records).map_or(Decision::Suppress, Decision::Reject)
    }
}

/// The cheapest hop from which no answer is awaited.
fn first_unused(records: &Records, hops: &[NextHop], now_ns: u64) -> Option<FaceId> {
    let is_unused = |face: FaceId| match records.out_record(face) {
        Some(record) => record.expires_ns <= now_ns,
        None => true,
    };
    hops.iter().map(|hop| hop.face).find(|face| is_unused(*face))
}

/// Place where a refused retransmission goes, if every answer that may still come is overdue: to a
/// hop that was not asked, or else to the one that was asked longest ago and has not refused.
fn after_refusal(records: &Records, hops: &[NextHop], now_ns: u64) -> Option<FaceId> {
    let mut awaited =
        records.outgoing.iter().filter(|it| it.nacked.is_none() && it.expires_ns > now_ns);
    if awaited.any(|record| now_ns.saturating_sub(record.sent_ns) < OVERDUE_NS) {
        return None;
    }
    let faces = || hops.iter().map(|hop| hop.face);
    let unused = faces().find(|face| records.out_record(*face).is_none());
    let silent = faces().filter_map(|face| records.out_record(face));
    let silent = silent.filter(|record| record.nacked.is_none());
    unused.or_else(|| silent.min_by_key(|record| record.sent_ns).map(|record| record.face))
}

/// The hop that was asked longest ago.
fn least_recent(records: &Records, hops: &[NextHop]) -> Option<FaceId> {
    let sent = |face: FaceId| records.out_record(face).map_or(0, |record| record.sent_ns);
    hops.iter().map(|hop| hop.face).min_by_key(|face| sent(*face))
}
