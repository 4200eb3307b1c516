//! Readvertisement: the routing daemon learns which prefixes clients want announced.
//!
//! A prefix with a route of origin 65 (client) is registered with whoever serves `/localhost/nlsr`
//! (NLSR, ndn-dv) by a signed command, `/localhost/nlsr/rib/register/<ControlParameters>`, and
//! unregistered when its last such route is gone. While nobody local serves that prefix nothing is
//! sent; when somebody appears, everything is announced again, and once an hour after. A command
//! that is not answered, or refused, is repeated with doubling delays and jitter. At most
//! [`IN_FLIGHT_MAX`] commands are in flight, so a daemon that comes to a forwarder with many routes
//! is not flooded.

use std::collections::{BTreeMap, BTreeSet};

use byname_packet::mgmt::{ControlParameters, ControlResponse, route_origin, status_code};
use byname_packet::{Data, DigestSigner, Interest, InterestBuilder, Name, NameRef, SignatureExtra};
use byname_retry::BackOff;

use super::action::Turn;
use super::awaited::{Awaited, PATIENCE_NS, Purpose};
use super::view::View;
use crate::rib::Route;
use crate::rng::Rng;
use crate::scope;

/// Prefix of the daemon.
const DAEMON: &str = "/localhost/nlsr";

/// Commands in flight.
const IN_FLIGHT_MAX: usize = 32;

/// Delays between attempts.
const PAUSES: BackOff = BackOff { min_ns: 1_000_000_000, max_ns: 300_000_000_000 };

/// A registration is repeated after this time, as in NFD.
const REFRESH_NS: u64 = 3_600_000_000_000;

/// Attempts to unregister; then the daemon is left to itself.
const WITHDRAWALS_MAX: u32 = 8;

/// Announcement of one prefix to the daemon.
#[derive(Debug, Default)]
struct Announcement {
    /// It has a route for clients.
    is_wanted: bool,
    /// Failed attempts in a row.
    failures: u32,
    /// Time at which the next command is due; `None` while one is in flight or none is needed.
    due_ns: Option<u64>,
    /// The daemon has registered it, or may have.
    is_announced: bool,
}

/// A command in flight.
#[derive(Debug)]
struct Flight {
    prefix: Name,
    registers: bool,
    until_ns: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Readvertise {
    prefixes: BTreeMap<Name, Announcement>,
    due: BTreeSet<(u64, Name)>,
    in_flight: BTreeMap<Name, Flight>,
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
            Some(state) if is_wanted || state.is_announced => {
                state.is_wanted = is_wanted;
                state.failures = 0;
            }
            Some(_) => return self.forget(prefix),
            None if is_wanted => {
                self.prefixes
                    .insert(prefix.clone(), Announcement { is_wanted, ..Announcement::default() });
            }
            None => return,
        }
        // If a command is in flight, its end tells whether another one is due.
        if self.in_flight.values().all(|flight| flight.prefix != *prefix) {
            self.schedule(prefix, 0);
        }
    }

    pub(super) fn due_ns(&self) -> Option<u64> {
        if self.is_stale {
            return Some(0);
        }
        let lost = self.in_flight.values().map(|flight| flight.until_ns).min();
        let due = self.due.first().map(|(at, _)| *at);
        let due = due.filter(|_| self.in_flight.len() < IN_FLIGHT_MAX);
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

impl Readvertise {
    pub(super) fn on_route_added(&mut self, prefix: NameRef<'_>, route: &Route) {
        self.is_stale |= is_for_daemon(prefix);
        if is_readvertised(prefix, route) {
            self.want(&prefix.to_name(), true);
        }
    }

    /// A route is gone; `left` are the routes that its prefix still has.
    pub(super) fn on_route_removed(&mut self, prefix: NameRef<'_>, route: &Route, left: &[Route]) {
        self.is_stale |= is_for_daemon(prefix);
        let has_other = || left.iter().any(|other| is_readvertised(prefix, other));
        if is_readvertised(prefix, route) && !has_other() {
            self.want(&prefix.to_name(), false);
        }
    }

    pub(super) fn handle_timeout(
        &mut self,
        turn: &mut Turn<'_>,
        awaited: &mut Awaited,
        rng: &mut Rng,
    ) {
        if std::mem::take(&mut self.is_stale) {
            self.look_for_daemon(turn.view);
        }
        let flights = self.in_flight.iter();
        let lost: Vec<Name> = flights
            .filter(|(_, flight)| flight.until_ns <= turn.now_ns)
            .map(|(name, _)| name.clone())
            .collect();
        for name in lost {
            awaited.remove(&name);
            self.on_outcome(&name, false, turn.now_ns, rng);
        }
        while self.in_flight.len() < IN_FLIGHT_MAX {
            let is_due = self.due.first().is_some_and(|(at, _)| *at <= turn.now_ns);
            if !is_due {
                break;
            }
            let Some((_, prefix)) = self.due.pop_first() else { break };
            if let Some(announcement) = self.prefixes.get_mut(&prefix) {
                announcement.due_ns = None;
            }
            self.send(turn, prefix, awaited, rng);
        }
    }

    /// Returns whether a local face serves the daemon's prefix.
    fn look_for_daemon(&mut self, view: &dyn View) {
        let daemon: Name = DAEMON.parse().expect("a constant name");
        let is_local = |route: &Route| view.face(route.face).is_some_and(|face| face.info.local);
        let is_available = (0..=daemon.view().count())
            .any(|count| view.rib().routes(daemon.view().prefix(count)).iter().any(is_local));
        let was_available = std::mem::replace(&mut self.is_available, is_available);
        if is_available == was_available {
            return;
        }
        // A daemon that is gone has forgotten everything; one that is new knows nothing.
        self.due.clear();
        self.in_flight.clear();
        let known = std::mem::take(&mut self.prefixes);
        for (prefix, _) in known.into_iter().filter(|(_, known)| known.is_wanted) {
            self.want(&prefix, true);
        }
    }

    fn send(&mut self, turn: &mut Turn<'_>, prefix: Name, awaited: &mut Awaited, rng: &mut Rng) {
        let Some(announcement) = self.prefixes.get_mut(&prefix) else { return };
        let registers = announcement.is_wanted;
        announcement.is_announced |= registers;
        let verb: &[u8] = if registers { b"register" } else { b"unregister" };
        let mut parameters = Vec::new();
        let named = ControlParameters { name: Some(prefix.clone()), ..Default::default() };
        named.encode(&mut parameters);
        let daemon: Name = DAEMON.parse().expect("a constant name");
        let command = daemon.with_generic(b"rib").with_generic(verb).with_generic(&parameters);
        // Strictly increasing, as receivers want it.
        self.last_time_ms = turn.unix_ms().max(self.last_time_ms + 1);
        let nonce = rng.next_u64().to_be_bytes();
        let extra =
            SignatureExtra { nonce: Some(&nonce), time_ms: Some(self.last_time_ms), seq_num: None };
        let mut wire = Vec::new();
        let encoded = InterestBuilder::new(command.view())
            .nonce(rng.nonce())
            .lifetime_ms(PATIENCE_NS / 1_000_000)
            .encode_signed(&DigestSigner, extra, &mut wire);
        let Ok(interest) = Interest::decode(&wire) else { return };
        let until_ns = turn.now_ns.saturating_add(PATIENCE_NS);
        if encoded.is_err() {
            return;
        }
        let name = interest.name.to_name();
        self.in_flight.insert(name.clone(), Flight { prefix, registers, until_ns });
        awaited.add(name, Purpose::Readvertise, turn.now_ns);
        turn.express(wire, None);
    }

    pub(super) fn handle_answer(
        &mut self,
        name: &Name,
        data: &Data<'_>,
        now_ns: u64,
        rng: &mut Rng,
    ) {
        let response = ControlResponse::decode(data.content);
        let is_done = response.is_ok_and(|r| r.status_code == status_code::OK);
        self.on_outcome(name, is_done, now_ns, rng);
    }

    fn on_outcome(&mut self, name: &Name, is_done: bool, now_ns: u64, rng: &mut Rng) {
        let Some(flight) = self.in_flight.remove(name) else { return };
        let Some(announcement) = self.prefixes.get_mut(&flight.prefix) else { return };
        let is_wanted = announcement.is_wanted;
        let delay_ns = if is_wanted != flight.registers {
            // It has changed while the command was in flight.
            announcement.failures = 0;
            0
        } else if is_done {
            announcement.failures = 0;
            REFRESH_NS
        } else {
            announcement.failures = announcement.failures.saturating_add(1);
            PAUSES.pause_ns(announcement.failures, rng.next_u64())
        };
        let is_over = !is_wanted && !flight.registers;
        if is_over && (is_done || announcement.failures >= WITHDRAWALS_MAX) {
            return self.forget(&flight.prefix);
        }
        self.schedule(&flight.prefix, now_ns.saturating_add(delay_ns));
    }
}
