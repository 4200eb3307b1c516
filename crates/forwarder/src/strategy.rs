//! Forwarding strategies: which of the possible next hops gets an Interest, and when.
//!
//! A strategy only decides; it never sends. The forwarder hands it the PIT entry and the next hops
//! that are *eligible* (known, up, within scope, not the face the Interest came from, best first),
//! and carries the decision out. So a strategy cannot break a scope or a loop rule, holds no state
//! of its own (what it remembers lives in the entry), and a test needs no forwarder.
//!
//! To add one: implement [`Strategy`] in a file of its own below `strategy/` and list it in
//! [`ALL`].

mod best_route;
mod multicast;
#[cfg(test)]
mod tests;

use byname_packet::lp::nack_reason;
use byname_packet::{Name, NameRef};

use crate::face::FaceId;
use crate::pit::PitEntry;
use crate::rib::NextHop;

pub use best_route::BestRoute;
pub use multicast::Multicast;

/// What a strategy sees.
#[derive(Debug)]
pub struct Context<'a> {
    /// The pending Interest with its records.
    pub entry: &'a mut PitEntry,
    /// Eligible next hops, lowest cost first.
    pub hops: &'a [NextHop],
    /// The time.
    pub now_ns: u64,
}

/// What to do with an Interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Send it to the faces collected.
    Forward,
    /// Nothing now: the answer is expected from what was sent before.
    Suppress,
    /// There is no way: answer every face that waits with a Nack of this reason.
    Reject(u64),
}

/// An algorithm that chooses next hops.
pub trait Strategy: Sync {
    /// The last components of its instance name, e.g. `best-route` and 5.
    fn label(&self) -> (&'static str, u64);

    /// A face asks, for the first time or again. Faces to send to go into `send`.
    fn on_interest(&self, context: Context<'_>, send: &mut Vec<FaceId>) -> Decision;

    /// A face that was asked has answered with a Nack, already noted in its out-record.
    fn on_nack(&self, context: Context<'_>, send: &mut Vec<FaceId>) -> Decision;
}

/// Every strategy; the first is the default.
pub static ALL: [&dyn Strategy; 2] = [&BestRoute, &Multicast];

/// Where strategy instance names begin.
const PREFIX: &str = "/localhost/nfd/strategy";

/// The full instance name with its version.
pub fn instance_name(strategy: &dyn Strategy) -> Name {
    let (label, version) = strategy.label();
    let prefix: Name = PREFIX.parse().expect("a constant name");
    prefix.with_generic(label.as_bytes()).with_version(version)
}

/// The strategy that `name` means, with or without version.
pub fn by_name(name: NameRef<'_>) -> Option<&'static dyn Strategy> {
    ALL.into_iter().find(|strategy| {
        let full = instance_name(*strategy);
        name == full.view() || name == full.view().without_last(1)
    })
}

/// Retransmissions are held back for this long after the first sending,
const SUPPRESSION_INITIAL_NS: u64 = 10_000_000;
/// then twice as long after each further one, up to this.
const SUPPRESSION_MAX_NS: u64 = 250_000_000;

/// Exponential suppression: whether a retransmission that comes `age_ns` after the last sending is
/// held back. `interval_ns` is the state, 0 at first.
fn is_suppressed(interval_ns: &mut u64, age_ns: u64) -> bool {
    let interval = (*interval_ns).max(SUPPRESSION_INITIAL_NS);
    if age_ns < interval {
        *interval_ns = interval;
        return true;
    }
    *interval_ns = (interval * 2).min(SUPPRESSION_MAX_NS);
    false
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
