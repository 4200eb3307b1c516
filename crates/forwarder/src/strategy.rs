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
//! `kinds`. The README walks through it.

mod access;
mod api;
mod asf;
mod best_route;
mod kinds;
mod liveness;
pub mod measurements;
mod multicast;
mod parameters;
mod random;
mod refusal;
mod suppression;
#[cfg(test)]
mod tests;

pub use access::Access;
pub use api::{Answer, Chosen, Context, Decision, Measures, Strategy};
pub use asf::Asf;
pub use best_route::BestRoute;
pub use kinds::{by_name, default_strategy, instance_name, labels};
pub use multicast::Multicast;
pub use random::Random;
