//! Multicast: every next hop, each held back on its own after it was asked.

use std::sync::Arc;

use super::api::{Chosen, Context, Decision, Strategy};
use super::parameters::Parameters;
use super::refusal::{common_nack, without_hops};
use super::suppression::Suppression;
use crate::face::FaceId;

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub struct Multicast {
    suppression: Suppression,
}

impl Multicast {
    pub(super) fn build(mut parameters: Parameters) -> Option<Chosen> {
        let suppression = Suppression::take(&mut parameters)?;
        parameters.is_empty().then(|| Arc::new(Self { suppression }) as Chosen)
    }
}

impl Strategy for Multicast {
    fn label(&self) -> (&'static str, u64) {
        ("multicast", 5)
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        self.suppression.parameters()
    }

    fn on_interest(&self, context: &mut Context<'_>, send: &mut Vec<FaceId>) -> Decision {
        if context.hops.is_empty() {
            return without_hops(context);
        }
        let Context { records, hops, now_ns, .. } = context;
        for hop in *hops {
            let is_held_back = records.out_record_mut(hop.face).is_some_and(|record| {
                let age_ns = now_ns.saturating_sub(record.sent_ns);
                self.suppression.holds_back(&mut record.suppression_ns, age_ns)
            });
            if !is_held_back {
                send.push(hop.face);
            }
        }
        if send.is_empty() { Decision::Suppress } else { Decision::Forward }
    }

    fn on_nack(&self, context: &mut Context<'_>, _send: &mut Vec<FaceId>) -> Decision {
        common_nack(context.records, context.now_ns).map_or(Decision::Suppress, Decision::Reject)
    }
}
