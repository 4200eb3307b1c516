//! Forwarding strategies: which of the possible next hops gets an Interest, and when.
//!
//! A strategy only decides; it never sends. The forwarder hands it the PIT entry and the next hops
//! that are *eligible* (known, up, within scope, not the face the Interest came from, best first),
//! and carries the decision out. So a strategy cannot break a scope or a loop rule, and a test
//! needs no forwarder. It holds its parameters and no state: what it must remember of one Interest
//! lives in the entry's records, what it must remember of a path in `measurements`. One instance
//! may serve several prefixes and several threads.
//!
//! The forwarder calls [`Strategy::on_interest`] and [`Strategy::on_nack`] of every strategy, and
//! of those that say [`Strategy::measures`] also [`Strategy::on_data`] and, at the time they asked
//! for, [`Strategy::on_timeout`].
//!
//! To add one: implement [`Strategy`] in a file of its own below `strategy/` and list it in
//! [`KINDS`]. The README walks through it.

mod asf;
mod best_route;
pub mod measurements;
mod multicast;
mod parameters;
mod random;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use byname_packet::lp::nack_reason;
use byname_packet::{Name, NameRef};

use crate::face::FaceId;
use crate::pit::PitEntry;
use crate::rib::NextHop;
use measurements::Namespace;
use parameters::Parameters;

pub use asf::Asf;
pub use best_route::BestRoute;
pub use multicast::Multicast;
pub use random::Random;

/// What a strategy sees.
#[derive(Debug)]
pub struct Context<'a> {
    /// The pending Interest with its records.
    pub entry: &'a mut PitEntry,
    /// Eligible next hops, lowest cost first.
    pub hops: &'a [NextHop],
    /// The time.
    pub now_ns: u64,
    /// A number that is another one each time.
    pub random: u64,
    /// What is known of the paths to this part of the name space. `None` for a strategy that does
    /// not measure, and when the table of measurements is full.
    pub namespace: Option<&'a mut Namespace>,
    /// When to call [`Strategy::on_timeout`]; not at all unless the strategy sets it.
    pub wake_at_ns: Option<u64>,
}

/// What to do with an Interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Send it to the faces collected.
    Forward,
    /// Send it to the faces collected, and to the last of them with a nonce of its own: a probe
    /// that meets the Interest on its way must not be taken for a loop.
    Probe,
    /// Nothing now: the answer is expected from what was sent before.
    Suppress,
    /// There is no way: answer every face that waits with a Nack of this reason.
    Reject(u64),
}

/// Data that has come for an Interest.
#[derive(Debug)]
pub struct Answer<'a> {
    /// The Interest, about to end.
    pub entry: &'a PitEntry,
    /// Who answered.
    pub face: FaceId,
    /// How long it took since this face was asked last.
    pub rtt_ns: u64,
    /// The time.
    pub now_ns: u64,
    /// What is known of the paths.
    pub namespace: &'a mut Namespace,
}

/// An algorithm that chooses next hops.
pub trait Strategy: std::fmt::Debug + Send + Sync {
    /// The name and version of the algorithm, e.g. `best-route` and 5.
    fn label(&self) -> (&'static str, u64);

    /// Its parameters that are not as they are by default, as in the instance name.
    fn parameters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Whether it needs measurements, answers and timeouts.
    fn measures(&self) -> bool {
        false
    }

    /// A face asks, for the first time or again. Faces to send to go into `send`.
    fn on_interest(&self, context: &mut Context<'_>, send: &mut Vec<FaceId>) -> Decision;

    /// A face that was asked has answered with a Nack, already noted in its out-record.
    fn on_nack(&self, context: &mut Context<'_>, send: &mut Vec<FaceId>) -> Decision;

    /// Data has come.
    fn on_data(&self, _answer: Answer<'_>) {}

    /// The time that [`Context::wake_at_ns`] named has come and there is no answer.
    fn on_timeout(&self, _context: &mut Context<'_>, _send: &mut Vec<FaceId>) -> Decision {
        Decision::Suppress
    }
}

/// A strategy that was chosen for a prefix.
pub type Chosen = Arc<dyn Strategy>;

/// Makes an instance from what its name says; `None` for parameters that it does not know.
type Build = fn(Parameters) -> Option<Chosen>;

/// Every algorithm with its version; the first is the default.
const KINDS: [(&str, u64, Build); 4] = [
    ("best-route", 5, BestRoute::build),
    ("multicast", 5, Multicast::build),
    ("asf", 5, Asf::build),
    ("random", 1, Random::build),
];

/// Where strategy instance names begin.
const PREFIX: &str = "/localhost/nfd/strategy";

/// The strategy of prefixes for which none was chosen.
pub fn default_strategy() -> Chosen {
    Arc::new(BestRoute::default())
}

/// The full instance name with its version and parameters.
pub fn instance_name(strategy: &dyn Strategy) -> Name {
    let (label, version) = strategy.label();
    let prefix: Name = PREFIX.parse().expect("a constant name");
    let name = prefix.with_generic(label.as_bytes()).with_version(version);
    strategy
        .parameters()
        .into_iter()
        .fold(name, |name, (key, value)| name.with_generic(format!("{key}~{value}").as_bytes()))
}

/// The strategy that `name` means: an algorithm, its version (or none), and parameters like
/// `retx-suppression-initial~10`. `None` for one that there is not.
pub fn by_name(name: NameRef<'_>) -> Option<Chosen> {
    let prefix: Name = PREFIX.parse().expect("a constant name");
    let start = prefix.view().count();
    if !prefix.view().is_prefix_of(name) {
        return None;
    }
    let label = name.get(start)?;
    let (_, version, build) =
        KINDS.into_iter().find(|(known, _, _)| known.as_bytes() == label.value)?;
    let rest = match name.get(start + 1).and_then(|component| component.version()) {
        None => name.suffix(start + 1),
        // As in NFD: an older version means the next one there is.
        Some(wanted) if wanted <= version => name.suffix(start + 2),
        Some(_) => return None,
    };
    build(Parameters::parse(rest)?)
}

/// Exponential suppression of retransmissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suppression {
    /// They are held back for this long after the first sending,
    initial_ns: u64,
    /// then this many times as long after each further one,
    multiplier: u64,
    /// up to this.
    max_ns: u64,
}

impl Default for Suppression {
    fn default() -> Self {
        Self { initial_ns: 10_000_000, multiplier: 2, max_ns: 250_000_000 }
    }
}

const MS_NS: u64 = 1_000_000;
const INITIAL: &str = "retx-suppression-initial";
const MULTIPLIER: &str = "retx-suppression-multiplier";
const MAX: &str = "retx-suppression-max";

impl Suppression {
    /// Takes the parameters with the names that NFD uses, in milliseconds.
    fn take(parameters: &mut Parameters) -> Option<Self> {
        let default = Self::default();
        let mut ms = |key, default_ns: u64| {
            parameters.take(key).unwrap_or(default_ns / MS_NS).checked_mul(MS_NS)
        };
        let taken = Self {
            initial_ns: ms(INITIAL, default.initial_ns)?,
            max_ns: ms(MAX, default.max_ns)?,
            multiplier: parameters.take(MULTIPLIER).unwrap_or(default.multiplier),
        };
        let is_sound =
            taken.initial_ns > 0 && taken.multiplier > 0 && taken.initial_ns <= taken.max_ns;
        is_sound.then_some(taken)
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let default = Self::default();
        let all = [
            (INITIAL, self.initial_ns / MS_NS, default.initial_ns / MS_NS),
            (MAX, self.max_ns / MS_NS, default.max_ns / MS_NS),
            (MULTIPLIER, self.multiplier, default.multiplier),
        ];
        let changed = all.into_iter().filter(|(_, value, default)| value != default);
        changed.map(|(key, value, _)| (key, value)).collect()
    }

    /// Whether a retransmission that comes `age_ns` after the last sending is held back.
    /// `interval_ns` is the state, 0 at first.
    fn holds_back(&self, interval_ns: &mut u64, age_ns: u64) -> bool {
        let interval = (*interval_ns).max(self.initial_ns);
        if age_ns < interval {
            *interval_ns = interval;
            return true;
        }
        *interval_ns = interval.saturating_mul(self.multiplier).min(self.max_ns);
        false
    }
}

/// The reason to pass on when every face asked has answered with a Nack: the mildest of them,
/// because it is the one that leaves most hope. `None` while an answer is still possible.
fn common_nack(entry: &PitEntry) -> Option<u64> {
    let severity = |reason: u64| match reason {
        nack_reason::NONE => u64::MAX,
        other => other,
    };
    let mut mildest = None;
    for record in &entry.out_records {
        let reason = record.nacked?;
        if mildest.is_none_or(|known| severity(reason) < severity(known)) {
            mildest = Some(reason);
        }
    }
    mildest
}

/// What to do when nobody may be asked: wait for whom was asked before, or give up.
fn without_hops(context: &Context<'_>) -> Decision {
    if context.entry.has_pending_out_record(context.now_ns) {
        Decision::Suppress
    } else {
        Decision::Reject(nack_reason::NO_ROUTE)
    }
}
