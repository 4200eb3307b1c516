//! Tells the routing daemon which prefixes clients want announced.
//!
//! A prefix with a route of origin 65 (client) is registered with whoever serves `/localhost/nlsr`
//! (NLSR, ndn-dv) by a signed command, `/localhost/nlsr/rib/register/<ControlParameters>`, and
//! unregistered when its last such route is gone. While nobody local serves that prefix nothing is
//! sent; when somebody appears, everything is said again, and once an hour after. What is not
//! answered, or refused, is said again with doubling delays. At most [`FLYING_MAX`] commands are on
//! their way at a time, so a daemon that comes to a forwarder with many routes is not flooded.

use std::collections::{BTreeMap, BTreeSet};

use byname_packet::mgmt::{ControlParameters, ControlResponse, route_origin, status_code};
use byname_packet::{Data, DigestSigner, Interest, InterestBuilder, Name, NameRef, SignatureExtra};

use super::internal::{PATIENCE_NS, Purpose};
use crate::forwarder::{Forwarder, Tx};
use crate::rib::Route;
use crate::scope;

/// Where the daemon listens.
const DAEMON: &str = "/localhost/nlsr";

/// Commands on their way.
const FLYING_MAX: usize = 32;

/// Delays between attempts.
const RETRY_NS_MIN: u64 = 1_000_000_000;
const RETRY_NS_MAX: u64 = 300_000_000_000;

/// What was registered is registered again after this time, as in NFD.
const REFRESH_NS: u64 = 3_600_000_000_000;

/// Attempts to unregister; then the daemon is left to itself.
const WITHDRAWALS_MAX: u32 = 8;

/// What the daemon was told of a prefix, or is to be told.
#[derive(Debug, Default)]
struct State {
    /// It has a route for clients.
    is_wanted: bool,
    /// Failed attempts in a row.
    failures: u32,
    /// When the next command is due; `None` while one is on its way or nothing is to be said.
    due_ns: Option<u64>,
    /// The daemon has, or may have, been told to register it.
    is_told: bool,
}

/// A command on its way.
#[derive(Debug)]
struct Flight {
    prefix: Name,
    registers: bool,
    until_ns: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Readvertise {
    prefixes: BTreeMap<Name, State>,
    due: BTreeSet<(u64, Name)>,
    flying: BTreeMap<Name, Flight>,
    is_available: bool,
    /// Routes that may lead to the daemon have changed.
    is_stale: bool,
    last_time_ms: u64,
}

impl Readvertise {
    fn schedule(&mut self, prefix: &Name, at_ns: u64) {
        let Some(state) = self.prefixes.get_mut(prefix) else { return };
        if let Some(due_ns) = state.due_ns.take() {
            self.due.remove(&(due_ns, prefix.clone()));
        }
        if self.is_available {
            state.due_ns = Some(at_ns);
            self.due.insert((at_ns, prefix.clone()));
        }
    }

    fn forget(&mut self, prefix: &Name) {
        if let Some(state) = self.prefixes.remove(prefix)
            && let Some(due_ns) = state.due_ns
        {
            self.due.remove(&(due_ns, prefix.clone()));
        }
    }

    /// A prefix has, or has no more, routes for clients.
    fn want(&mut self, prefix: &Name, is_wanted: bool) {
        match self.prefixes.get_mut(prefix) {
            Some(state) if state.is_wanted == is_wanted => return,
            Some(state) if is_wanted || state.is_told => {
                state.is_wanted = is_wanted;
                state.failures = 0;
            }
            Some(_) => return self.forget(prefix),
            None if is_wanted => {
                self.prefixes.insert(prefix.clone(), State { is_wanted, ..State::default() });
            }
            None => return,
        }
        // If a command is on its way, its end tells whether another one is due.
        if self.flying.values().all(|flight| flight.prefix != *prefix) {
            self.schedule(prefix, 0);
        }
    }

    pub(super) fn due_ns(&self) -> Option<u64> {
        if self.is_stale {
            return Some(0);
        }
        let lost = self.flying.values().map(|flight| flight.until_ns).min();
        let due = self.due.first().map(|(at, _)| *at);
        let due = due.filter(|_| self.flying.len() < FLYING_MAX);
        lost.into_iter().chain(due).min()
    }
}

fn is_for_daemon(prefix: NameRef<'_>) -> bool {
    let daemon: Name = DAEMON.parse().expect("a constant name");
    prefix.is_prefix_of(daemon.view())
}

fn is_readvertised(prefix: NameRef<'_>, route: &Route) -> bool {
    let is_scoped = scope::is_localhost(prefix) || scope::is_localhop(prefix);
    route.origin == route_origin::CLIENT && !is_scoped
}

impl Forwarder {
    pub(crate) fn on_route_added(&mut self, prefix: NameRef<'_>, route: &Route) {
        self.management.readvertise.is_stale |= is_for_daemon(prefix);
        if is_readvertised(prefix, route) {
            self.management.readvertise.want(&prefix.to_name(), true);
        }
    }

    pub(crate) fn on_route_removed(&mut self, prefix: NameRef<'_>, route: &Route) {
        self.management.readvertise.is_stale |= is_for_daemon(prefix);
        let has_other = || self.rib.routes(prefix).iter().any(|r| is_readvertised(prefix, r));
        if is_readvertised(prefix, route) && !has_other() {
            self.management.readvertise.want(&prefix.to_name(), false);
        }
    }

    pub(super) fn maintain_readvertise(&mut self, now_ns: u64, tx: &mut dyn Tx) {
        if std::mem::take(&mut self.management.readvertise.is_stale) {
            self.look_for_daemon();
        }
        let readvertise = &mut self.management.readvertise;
        let lost: Vec<Name> = readvertise
            .flying
            .iter()
            .filter(|(_, flight)| flight.until_ns <= now_ns)
            .map(|(name, _)| name.clone())
            .collect();
        for name in lost {
            self.forget_awaited(&name);
            self.on_readvertise_outcome(&name, false, now_ns);
        }
        while self.management.readvertise.flying.len() < FLYING_MAX {
            let readvertise = &mut self.management.readvertise;
            let is_due = readvertise.due.first().is_some_and(|(at, _)| *at <= now_ns);
            if !is_due {
                break;
            }
            let Some((_, prefix)) = readvertise.due.pop_first() else { break };
            if let Some(state) = readvertise.prefixes.get_mut(&prefix) {
                state.due_ns = None;
            }
            self.send_readvertisement(prefix, now_ns, tx);
        }
    }

    /// Whether a local face serves the daemon's prefix.
    fn look_for_daemon(&mut self) {
        let daemon: Name = DAEMON.parse().expect("a constant name");
        let is_available = (0..=daemon.view().count()).any(|count| {
            let routes = self.rib.routes(daemon.view().prefix(count));
            routes.iter().any(|route| self.is_local(route.face))
        });
        let readvertise = &mut self.management.readvertise;
        let was_available = std::mem::replace(&mut readvertise.is_available, is_available);
        if is_available == was_available {
            return;
        }
        // A daemon that is gone has forgotten everything; one that is new knows nothing.
        readvertise.due.clear();
        readvertise.flying.clear();
        let known = std::mem::take(&mut readvertise.prefixes);
        for (prefix, _) in known.into_iter().filter(|(_, state)| state.is_wanted) {
            readvertise.want(&prefix, true);
        }
    }

    fn send_readvertisement(&mut self, prefix: Name, now_ns: u64, tx: &mut dyn Tx) {
        let Some(state) = self.management.readvertise.prefixes.get_mut(&prefix) else { return };
        let registers = state.is_wanted;
        state.is_told |= registers;
        let verb: &[u8] = if registers { b"register" } else { b"unregister" };
        let mut parameters = Vec::new();
        let named = ControlParameters { name: Some(prefix.clone()), ..Default::default() };
        named.encode(&mut parameters);
        let daemon: Name = DAEMON.parse().expect("a constant name");
        let command = daemon.with_generic(b"rib").with_generic(verb).with_generic(&parameters);
        let now_ms = self.unix_ns(now_ns) / 1_000_000;
        let nonce = self.rng.next_u64().to_be_bytes();
        let interest_nonce = self.rng.nonce();
        let readvertise = &mut self.management.readvertise;
        // Strictly increasing, as receivers want it.
        readvertise.last_time_ms = now_ms.max(readvertise.last_time_ms + 1);
        let extra = SignatureExtra {
            nonce: Some(&nonce),
            time_ms: Some(readvertise.last_time_ms),
            seq_num: None,
        };
        let mut wire = Vec::new();
        let encoded = InterestBuilder::new(command.view())
            .nonce(interest_nonce)
            .lifetime_ms(PATIENCE_NS / 1_000_000)
            .encode_signed(&DigestSigner, extra, &mut wire);
        let Ok(interest) = Interest::decode(&wire) else { return };
        let until_ns = now_ns.saturating_add(PATIENCE_NS);
        if encoded.is_err() {
            return;
        }
        let name = interest.name.to_name();
        let flight = Flight { prefix, registers, until_ns };
        readvertise.flying.insert(name.clone(), flight);
        self.express((name, Purpose::Readvertise), &wire, None, (now_ns, tx));
    }

    pub(super) fn on_readvertise_answer(&mut self, name: &Name, data: &Data<'_>, now_ns: u64) {
        let response = ControlResponse::decode(data.content);
        let is_done = response.is_ok_and(|r| r.status_code == status_code::OK);
        self.on_readvertise_outcome(name, is_done, now_ns);
    }

    fn on_readvertise_outcome(&mut self, name: &Name, is_done: bool, now_ns: u64) {
        let Some(flight) = self.management.readvertise.flying.remove(name) else { return };
        let readvertise = &mut self.management.readvertise;
        let Some(state) = readvertise.prefixes.get_mut(&flight.prefix) else { return };
        let is_wanted = state.is_wanted;
        let delay_ns = if is_wanted != flight.registers {
            // It has changed while the command was on its way.
            state.failures = 0;
            0
        } else if is_done {
            state.failures = 0;
            REFRESH_NS
        } else {
            state.failures += 1;
            let doubled = RETRY_NS_MIN << (state.failures - 1).min(16);
            doubled.min(RETRY_NS_MAX)
        };
        let is_over = !is_wanted && !flight.registers;
        if is_over && (is_done || state.failures >= WITHDRAWALS_MAX) {
            return readvertise.forget(&flight.prefix);
        }
        readvertise.schedule(&flight.prefix, now_ns.saturating_add(delay_ns));
    }
}
