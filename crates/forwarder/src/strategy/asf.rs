//! Adaptive: the path that has answered fastest, measured on the Interests themselves.
//!
//! Paths are ranked for each part of the name space (the prefix of the route that matched): those
//! that answer, by their smoothed round-trip time; then those never asked, by cost; then those that
//! do not answer. An Interest goes to the first. If it is not answered within the time-out of that
//! path (from its round trips, as TCP computes it), it is sent on to the next path at once, without
//! waiting for the consumer, and the path is charged with a time-out; after some in a row it counts
//! as dead and is no longer asked. So a path that dies costs an Interest about two round trips, and
//! new ones nothing.
//!
//! From time to time an Interest is also sent to another path, so that one that has become better,
//! or is back, is found. Such a probe has a nonce of its own.

use std::sync::Arc;

use super::api::{Answer, Chosen, Context, Decision, Measures, Strategy};
use super::measurements::{Namespace, Path};
use super::parameters::Parameters;
use super::refusal::{common_nack, without_hops};
use super::suppression::{MS_NS, Suppression};
use crate::face::FaceId;
use crate::rib::NextHop;

/// The first probe comes within this time.
const FIRST_PROBE_NS: u64 = 5_000 * MS_NS;

const PROBING_INTERVAL: &str = "probing-interval";
const MAX_TIMEOUTS: &str = "max-timeouts";
const PROBING_INTERVAL_MS: u64 = 60_000;
const MAX_TIMEOUTS_DEFAULT: u64 = 3;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Asf {
    suppression: Suppression,
    probing_interval_ns: u64,
    /// Time-outs in a row after which a path is dead.
    timeouts_max: u64,
}

impl Default for Asf {
    fn default() -> Self {
        Self {
            suppression: Suppression::default(),
            probing_interval_ns: PROBING_INTERVAL_MS * MS_NS,
            timeouts_max: MAX_TIMEOUTS_DEFAULT,
        }
    }
}

/// Quality of a path; less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Answers { srtt_ns: u64 },
    Unknown { cost: u64 },
    Dead { cost: u64 },
}

impl Asf {
    pub(super) fn build(mut parameters: Parameters) -> Option<Chosen> {
        let suppression = Suppression::take(&mut parameters)?;
        let interval_ms = parameters.take(PROBING_INTERVAL).unwrap_or(PROBING_INTERVAL_MS);
        let timeouts_max = parameters.take(MAX_TIMEOUTS).unwrap_or(MAX_TIMEOUTS_DEFAULT);
        let probing_interval_ns = interval_ms.checked_mul(MS_NS)?;
        let is_sound = interval_ms > 0 && timeouts_max > 0 && parameters.is_empty();
        is_sound
            .then(|| Arc::new(Self { suppression, probing_interval_ns, timeouts_max }) as Chosen)
    }

    fn rank(&self, namespace: Option<&Namespace>, hop: &NextHop) -> (Rank, FaceId) {
        let path = namespace.and_then(|namespace| namespace.path(hop.face));
        let rank = match path {
            Some(path) if u64::from(path.timeouts) >= self.timeouts_max => {
                Rank::Dead { cost: hop.cost }
            }
            Some(Path { srtt_ns: Some(srtt_ns), .. }) => Rank::Answers { srtt_ns: *srtt_ns },
            _ => Rank::Unknown { cost: hop.cost },
        };
        (rank, hop.face)
    }

    /// The best hop for which `may` holds.
    fn best(&self, context: &Context<'_>, may: impl Fn(FaceId) -> bool) -> Option<FaceId> {
        let namespace = context.namespace.as_deref();
        let hops = context.hops.iter().filter(|hop| may(hop.face));
        hops.map(|hop| self.rank(namespace, hop)).min().map(|(_, face)| face)
    }

    /// Sends to `face` and asks to be called when its answer is overdue.
    fn ask(&self, context: &mut Context<'_>, face: FaceId, send: &mut Vec<FaceId>) {
        send.push(face);
        if let Some(namespace) = context.namespace.as_deref_mut() {
            let path = namespace.path_mut(face, context.now_ns);
            context.wake_at_ns = Some(context.now_ns.saturating_add(path.timeout_ns()));
        }
    }

    /// The path to probe, if it is time: one never asked, else any other.
    fn probe(&self, context: &mut Context<'_>, best: FaceId) -> Option<FaceId> {
        let (now_ns, random) = (context.now_ns, context.random);
        let namespace = context.namespace.as_deref_mut()?;
        let first_ns = now_ns + random % FIRST_PROBE_NS;
        if now_ns < *namespace.probe_due_ns.get_or_insert(first_ns) {
            return None;
        }
        namespace.probe_due_ns = Some(now_ns.saturating_add(self.probing_interval_ns));
        let namespace = &*namespace;
        let others = || context.hops.iter().map(|hop| hop.face).filter(|face| *face != best);
        let unknown = others().find(|face| namespace.path(*face).is_none());
        unknown.or_else(|| others().nth(random as usize % others().count().max(1)))
    }
}

impl Strategy for Asf {
    fn label(&self) -> (&'static str, u64) {
        ("asf", 5)
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let mut parameters = self.suppression.parameters();
        let interval_ms = self.probing_interval_ns / MS_NS;
        if interval_ms != PROBING_INTERVAL_MS {
            parameters.push((PROBING_INTERVAL, interval_ms));
        }
        if self.timeouts_max != MAX_TIMEOUTS_DEFAULT {
            parameters.push((MAX_TIMEOUTS, self.timeouts_max));
        }
        parameters
    }

    fn measures(&self) -> Measures {
        Measures::PerRoute
    }

    fn on_interest(&self, context: &mut Context<'_>, send: &mut Vec<FaceId>) -> Decision {
        if context.hops.is_empty() {
            return without_hops(context);
        }
        let now_ns = context.now_ns;
        if context.records.is_awaited(now_ns) {
            let age_ns = now_ns.saturating_sub(context.records.last_sent_ns().unwrap_or(0));
            if self.suppression.holds_back(&mut context.records.suppression_ns, age_ns) {
                return Decision::Suppress;
            }
            let best = untried(self, context).or_else(|| self.best(context, |_| true));
            let Some(best) = best else { return Decision::Suppress };
            self.ask(context, best, send);
            return Decision::Forward;
        }
        context.records.suppression_ns = 0;
        let Some(best) = self.best(context, |_| true) else { return Decision::Suppress };
        self.ask(context, best, send);
        match self.probe(context, best) {
            Some(other) => {
                send.push(other);
                Decision::Probe
            }
            None => Decision::Forward,
        }
    }

    fn on_nack(&self, context: &mut Context<'_>, send: &mut Vec<FaceId>) -> Decision {
        let nacked: Vec<FaceId> = context
            .records
            .outgoing
            .iter()
            .filter(|record| record.nacked.is_some())
            .map(|record| record.face)
            .collect();
        if let Some(namespace) = context.namespace.as_deref_mut() {
            for face in nacked {
                namespace.path_mut(face, context.now_ns).on_timeout();
            }
        }
        if context.records.is_awaited(context.now_ns) {
            return Decision::Suppress;
        }
        match untried(self, context) {
            Some(next) => {
                self.ask(context, next, send);
                Decision::Forward
            }
            None => common_nack(context.records, context.now_ns)
                .map_or(Decision::Suppress, Decision::Reject),
        }
    }

    fn on_data(&self, answer: Answer<'_>) {
        answer.namespace.path_mut(answer.face, answer.now_ns).on_answer(answer.rtt_ns);
    }

    fn on_timeout(&self, context: &mut Context<'_>, send: &mut Vec<FaceId>) -> Decision {
        let now_ns = context.now_ns;
        if let Some(namespace) = context.namespace.as_deref_mut() {
            for record in &context.records.outgoing {
                let path = namespace.path_mut(record.face, now_ns);
                let is_overdue = now_ns.saturating_sub(record.sent_ns) >= path.timeout_ns();
                if is_overdue && record.nacked.is_none() {
                    path.on_timeout();
                }
            }
        }
        match untried(self, context) {
            Some(next) => {
                self.ask(context, next, send);
                Decision::Forward
            }
            None => Decision::Suppress,
        }
    }
}

/// The best hop that this Interest was not sent to yet, or too long ago.
fn untried(asf: &Asf, context: &Context<'_>) -> Option<FaceId> {
    asf.best(context, |face| context.records.is_unused(face, context.now_ns))
}
