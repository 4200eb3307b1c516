//! Random: each Interest goes to one next hop, drawn with a weight of 1 / (1 + cost), so that load
//! spreads over paths as the costs say. A retransmission and a Nack draw again among
//! those not yet tried.

use std::sync::Arc;

use super::api::{Chosen, Context, Decision, Strategy};
use super::parameters::Parameters;
use super::refusal::{common_nack, without_hops};
use super::suppression::Suppression;
use crate::face::FaceId;
use crate::rib::NextHop;

/// The weight of cost 0. Costs beyond this weigh as little as it.
const WEIGHT_MAX: u64 = 1 << 24;

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub struct Random {
    suppression: Suppression,
}

impl Random {
    pub(super) fn build(mut parameters: Parameters) -> Option<Chosen> {
        let suppression = Suppression::take(&mut parameters)?;
        parameters.is_empty().then(|| Arc::new(Self { suppression }) as Chosen)
    }
}

impl Strategy for Random {
    fn label(&self) -> (&'static str, u64) {
        ("random", 1)
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        self.suppression.parameters()
    }

    fn on_interest(&self, context: &mut Context<'_>, send: &mut Vec<FaceId>) -> Decision {
        if context.hops.is_empty() {
            return without_hops(context);
        }
        let records = &mut *context.records;
        if records.is_awaited(context.now_ns) {
            let age_ns = context.now_ns.saturating_sub(records.last_sent_ns().unwrap_or(0));
            if self.suppression.holds_back(&mut records.suppression_ns, age_ns) {
                return Decision::Suppress;
            }
        } else {
            records.suppression_ns = 0;
        }
        let untried = |hop: &&NextHop| records.is_unused(hop.face, context.now_ns);
        let next = draw(context.hops.iter().filter(untried), context.random)
            .or_else(|| draw(context.hops.iter(), context.random));
        send.extend(next);
        Decision::Forward
    }

    fn on_nack(&self, context: &mut Context<'_>, send: &mut Vec<FaceId>) -> Decision {
        let Context { records, hops, now_ns, random, .. } = context;
        if records.is_awaited(*now_ns) {
            return Decision::Suppress;
        }
        let untried = |hop: &&NextHop| records.is_unused(hop.face, *now_ns);
        if let Some(next) = draw(hops.iter().filter(untried), *random) {
            send.push(next);
            return Decision::Forward;
        }
        common_nack(records, *now_ns).map_or(Decision::Suppress, Decision::Reject)
    }
}

fn weight(hop: &NextHop) -> u64 {
    WEIGHT_MAX / hop.cost.saturating_add(1).min(WEIGHT_MAX)
}

/// One of `hops`, by weight.
fn draw<'a>(hops: impl Iterator<Item = &'a NextHop> + Clone, random: u64) -> Option<FaceId> {
    let total: u64 = hops.clone().map(weight).sum();
    let mut left = random.checked_rem(total)?;
    for hop in hops {
        match left.checked_sub(weight(hop)) {
            Some(rest) => left = rest,
            None => return Some(hop.face),
        }
    }
    None
}
