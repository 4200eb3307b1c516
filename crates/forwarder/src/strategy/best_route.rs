//! Best route: the cheapest next hop; after a retransmission or a Nack the next one not yet tried.
//!
//! A retransmission that was refused there goes on, in the end to who was asked first: its Data may
//! have been lost, and consumers that hear nothing double their time-out before they
//! ask again. With three paths that lead nowhere, one attempt in four would reach the publisher.
//!
//! A next hop that has died without a word is suspended, see `liveness`: the next cheapest is used
//! in its place until it answers a probe. Nothing is measured where there is no choice.

use std::sync::Arc;

use byname_packet::lp::nack_reason;

use super::api::{Answer, Chosen, Context, Decision, Measures, Strategy};
use super::measurements::Namespace;
use super::parameters::Parameters;
use super::refusal::{common_nack, without_hops};
use super::suppression::Suppression;
use crate::face::FaceId;
use crate::records::OutRecord;
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

    fn measures(&self) -> Measures {
        Measures::PerChoice
    }

    fn on_interest(&self, context: &mut Context<'_>, send: &mut Vec<FaceId>) -> Decision {
        let Some(best) = preferred(context).next() else { return without_hops(context) };
        let now_ns = context.now_ns;
        if !context.records.is_awaited(now_ns) {
            context.records.suppression_ns = 0;
            send.push(best);
            let probed = due_probe(context, best);
            send.extend(probed);
            return probed.map_or(Decision::Forward, |_| Decision::Probe);
        }
        let age_ns = now_ns.saturating_sub(context.records.last_sent_ns().unwrap_or(0));
        if self.suppression.holds_back(&mut context.records.suppression_ns, age_ns) {
            return Decision::Suppress;
        }
        let next = first_unused(context).or_else(|| least_recent(context));
        send.extend(next);
        Decision::Forward
    }

    fn on_nack(&self, context: &mut Context<'_>, send: &mut Vec<FaceId>) -> Decision {
        if context.records.is_awaited(context.now_ns) {
            let next = after_refusal(context);
            send.extend(next);
            return next.map_or(Decision::Suppress, |_| Decision::Forward);
        }
        if let Some(next) = first_unused(context) {
            send.push(next);
            return Decision::Forward;
        }
        common_nack(context.records, context.now_ns).map_or(Decision::Suppress, Decision::Reject)
    }

    fn on_data(&self, answer: Answer<'_>) {
        let Answer { records, face, now_ns, namespace, .. } = answer;
        for record in records.outgoing.iter().filter(|record| record.face != face) {
            let path = namespace.path_mut(record.face, now_ns);
            let timeout_ns = path.timeout_ns();
            if is_missed(record, timeout_ns, now_ns) {
                path.liveness.on_miss(record.sent_ns, timeout_ns, now_ns);
            }
        }
        namespace.path_mut(face, now_ns).on_answer(answer.rtt_ns);
    }
}

/// Returns whether a next hop, asked for what another one has answered, has not answered in time or
/// knows no route to it. Other Nacks come from hops that are alive.
fn is_missed(record: &OutRecord, timeout_ns: u64, now_ns: u64) -> bool {
    match record.nacked {
        Some(reason) => reason == nack_reason::NO_ROUTE,
        None => now_ns.saturating_sub(record.sent_ns) >= timeout_ns,
    }
}

/// All next hops, cheapest first; those suspended last.
fn preferred(context: &Context<'_>) -> impl Iterator<Item = FaceId> {
    let namespace = context.namespace.as_deref();
    let is_suspended = move |hop: &&NextHop| is_suspended(namespace, hop.face);
    let usable = context.hops.iter().filter(move |hop| !is_suspended(hop));
    let suspended = context.hops.iter().filter(is_suspended);
    usable.chain(suspended).map(|hop| hop.face)
}

fn is_suspended(namespace: Option<&Namespace>, face: FaceId) -> bool {
    namespace.is_some_and(|namespace| namespace.is_suspended(face))
}

/// A suspended next hop that would be used in place of `best`, if it is time to ask it again.
fn due_probe(context: &mut Context<'_>, best: FaceId) -> Option<FaceId> {
    let now_ns = context.now_ns;
    let namespace = context.namespace.as_deref_mut()?;
    let mut cheaper = context.hops.iter().map(|hop| hop.face).take_while(|face| *face != best);
    cheaper.find(|face| {
        // Asking for a path would make one: only what was measured can be suspended.
        namespace.is_suspended(*face)
            && namespace.path_mut(*face, now_ns).liveness.take_probe(now_ns)
    })
}

/// The cheapest hop from which no answer is awaited.
fn first_unused(context: &Context<'_>) -> Option<FaceId> {
    preferred(context).find(|face| context.records.is_unused(*face, context.now_ns))
}

/// Place where a refused retransmission goes, if every answer that may still come is overdue: to a
/// hop that was not asked, or else to the one that was asked longest ago and has not refused.
fn after_refusal(context: &Context<'_>) -> Option<FaceId> {
    let (records, now_ns) = (&*context.records, context.now_ns);
    let mut awaited =
        records.outgoing.iter().filter(|it| it.nacked.is_none() && it.expires_ns > now_ns);
    if awaited.any(|record| now_ns.saturating_sub(record.sent_ns) < OVERDUE_NS) {
        return None;
    }
    let unused = preferred(context).find(|face| records.out_record(*face).is_none());
    let silent = context.hops.iter().filter_map(|hop| records.out_record(hop.face));
    let silent = silent.filter(|record| record.nacked.is_none());
    unused.or_else(|| silent.min_by_key(|record| record.sent_ns).map(|record| record.face))
}

/// The hop that was asked longest ago.
fn least_recent(context: &Context<'_>) -> Option<FaceId> {
    let sent = |face: FaceId| context.records.out_record(face).map_or(0, |it| it.sent_ns);
    context.hops.iter().map(|hop| hop.face).min_by_key(|face| sent(*face))
}
