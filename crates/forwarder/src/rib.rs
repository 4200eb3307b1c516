//! Routes as applications and operators register them, and the next hops that follow from them.
//!
//! A FIB entry exists for each prefix that has routes. Its next hops are the prefix's own routes
//! and those of shorter prefixes that carry [`ROUTE_FLAG_CHILD_INHERIT`], up to and including the
//! first entry that carries [`ROUTE_FLAG_CAPTURE`]; for one face the nearest entry wins, in one
//! entry the lowest cost. So a change of prefix P can only concern entries at and below P.
//!
//! Next hops that `fib/add-nexthop` puts into the FIB directly are kept here too, as routes of the
//! origin [`FIB_ORIGIN`]: they neither inherit nor are inherited, and for their face they win.
//!
//! Large tables are indexed: a face that goes and a route that expires are found without a scan. A
//! prefix is stored once and shared by the indices. Changes reach the FIB in slices: see
//! `forwarder::routes` and [`Backlog`].

mod backlog;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use byname_packet::mgmt::{ROUTE_FLAG_CAPTURE, ROUTE_FLAG_CHILD_INHERIT};
use byname_packet::{Name, NameRef};
use smallvec::SmallVec;
use thiserror::Error;

use crate::face::FaceId;

pub(crate) use backlog::{Backlog, Subtree};

/// Origin of next hops that were put into the FIB directly. No client can register it.
pub(crate) const FIB_ORIGIN: u64 = u64::MAX;

/// One path towards a prefix; identified by face and origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Face to send to.
    pub face: FaceId,
    /// Origin of the route (numbers of NFD's RIB management).
    pub origin: u64,
    /// Lower is better.
    pub cost: u64,
    /// [`ROUTE_FLAG_CHILD_INHERIT`], [`ROUTE_FLAG_CAPTURE`].
    pub flags: u64,
    /// Time at which it ends by itself.
    pub expires_ns: Option<u64>,
}

/// A face to send to and what it costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextHop {
    /// Face to send to.
    pub face: FaceId,
    /// Lower is better.
    pub cost: u64,
}

/// The next hops of a FIB entry; most have one or two, which are kept in place.
pub(crate) type NextHops = SmallVec<[NextHop; 2]>;

/// The RIB holds as many routes as it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the routing table is full ({max} routes)")]
pub struct RibFull {
    /// The limit.
    pub max: usize,
}

/// A prefix as the octets of its components, whose order is the canonical order of names.
type Key = Arc<[u8]>;

/// Nearly every prefix has one route.
type Routes = SmallVec<[Route; 1]>;

/// The routing information base.
#[derive(Debug)]
pub(crate) struct Rib {
    entries: BTreeMap<Key, Routes>,
    /// One element per route that expires: when, and which.
    expiries: BTreeSet<(u64, FaceId, u64, Key)>,
    by_face: BTreeSet<(FaceId, Key)>,
    route_count: usize,
    routes_max: usize,
}

impl Rib {
    pub(crate) fn new(routes_max: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            expiries: BTreeSet::new(),
            by_face: BTreeSet::new(),
            route_count: 0,
            routes_max,
        }
    }

    /// Returns whether [`Rib::insert`] would take the route.
    pub(crate) fn check_room(&self, prefix: NameRef<'_>, route: &Route) -> Result<(), RibFull> {
        let is_same = |r: &Route| r.face == route.face && r.origin == route.origin;
        if self.route_count < self.routes_max || self.routes(prefix).iter().any(is_same) {
            return Ok(());
        }
        Err(RibFull { max: self.routes_max })
    }

    /// Adds a route or replaces the one with the same face and origin.
    pub(crate) fn insert(&mut self, prefix: NameRef<'_>, route: Route) -> Result<(), RibFull> {
        self.check_room(prefix, &route)?;
        let known = self.entries.get_key_value(prefix.value());
        let key = known.map_or_else(|| Key::from(prefix.value()), |(key, _)| Key::clone(key));
        let is_same = |r: &Route| r.face == route.face && r.origin == route.origin;
        let replaced = known.and_then(|(_, routes)| routes.iter().find(|r| is_same(r)).copied());
        if let Some(expires_ns) = replaced.and_then(|old| old.expires_ns) {
            let expiry = (expires_ns, route.face, route.origin, Key::clone(&key));
            self.expiries.remove(&expiry);
        }
        if let Some(expires_ns) = route.expires_ns {
            self.expiries.insert((expires_ns, route.face, route.origin, Key::clone(&key)));
        }
        let routes = self.entries.entry(Key::clone(&key)).or_default();
        match routes.iter_mut().find(|r| is_same(r)) {
            Some(known) => *known = route,
            None => {
                routes.push(route);
                self.route_count += 1;
                self.by_face.insert((route.face, key));
            }
        }
        Ok(())
    }

    /// Removes a route.
    pub(crate) fn remove(
        &mut self,
        prefix: NameRef<'_>,
        face: FaceId,
        origin: u64,
    ) -> Option<Route> {
        let (key, _) = self.entries.get_key_value(prefix.value())?;
        let key = Key::clone(key);
        self.remove_if(&key, |route| route.face == face && route.origin == origin).pop()
    }

    /// Removes the routes over `face` of one prefix that has any, with that prefix.
    pub(crate) fn pop_face(&mut self, face: FaceId) -> Option<(Name, Routes)> {
        let from = (face, Key::from(&[][..]));
        let (found, key) = self.by_face.range(from..).next()?;
        if *found != face {
            return None;
        }
        let key = Key::clone(key);
        let removed = self.remove_if(&key, |route| route.face == face);
        Some((view(&key).to_name(), removed))
    }

    /// Removes one route that has expired, with its prefix.
    pub(crate) fn pop_expired(&mut self, now_ns: u64) -> Option<(Name, Route)> {
        if self.next_expiry_ns()? > now_ns {
            return None;
        }
        let (_, face, origin, key) = self.expiries.pop_first()?;
        let removed = self.remove_if(&key, |r| r.face == face && r.origin == origin).pop()?;
        Some((view(&key).to_name(), removed))
    }

    fn remove_if(&mut self, key: &Key, ends: impl Fn(&Route) -> bool) -> Routes {
        let Some(routes) = self.entries.get_mut(key) else { return Routes::new() };
        let removed: Routes = routes.iter().filter(|route| ends(route)).copied().collect();
        routes.retain(|route| !ends(route));
        for route in &removed {
            if let Some(expires_ns) = route.expires_ns {
                let expiry = (expires_ns, route.face, route.origin, Key::clone(key));
                self.expiries.remove(&expiry);
            }
            if routes.iter().all(|left| left.face != route.face) {
                self.by_face.remove(&(route.face, Key::clone(key)));
            }
        }
        if routes.is_empty() {
            self.entries.remove(key);
        }
        self.route_count -= removed.len();
        removed
    }

    /// Time at which [`Rib::pop_expired`] has something to give next.
    pub(crate) fn next_expiry_ns(&self) -> Option<u64> {
        self.expiries.first().map(|(at, ..)| *at)
    }

    /// Number of prefixes that have routes.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The routes of exactly `prefix`.
    pub(crate) fn routes(&self, prefix: NameRef<'_>) -> &[Route] {
        self.entries.get(prefix.value()).map_or(&[], |routes| routes.as_slice())
    }

    /// Number of prefixes that have routes over `face`, counted up to `max`.
    pub(crate) fn count_of_face(&self, face: FaceId, max: usize) -> usize {
        let from = (face, Key::from(&[][..]));
        self.by_face.range(from..).take_while(|(found, _)| *found == face).take(max).count()
    }

    /// The prefixes at and below `prefix` that have routes, in canonical order from `from` on.
    pub(crate) fn subtree<'a>(
        &'a self,
        prefix: NameRef<'a>,
        from: NameRef<'_>,
    ) -> impl Iterator<Item = NameRef<'a>> {
        self.entries
            .range::<[u8], _>((Bound::Included(from.value()), Bound::Unbounded))
            .map(|(key, _)| view(key))
            .take_while(move |name| prefix.is_prefix_of(*name))
    }

    /// The next hops of a FIB entry for `prefix`, best first; `None` when it has no routes itself.
    pub(crate) fn next_hops(&self, prefix: NameRef<'_>) -> Option<Vec<NextHop>> {
        let own = self.entries.get(prefix.value())?;
        let mut hops = Vec::new();
        let (direct, registered): (Routes, Routes) =
            own.iter().copied().partition(|route| route.origin == FIB_ORIGIN);
        add_level(&mut hops, direct.iter());
        add_level(&mut hops, registered.iter());
        if !registered.is_empty() && !captures(&registered) {
            self.inherit(prefix, &mut hops);
        }
        hops.sort_unstable_by_key(|hop| (hop.cost, hop.face));
        Some(hops)
    }

    fn inherit(&self, prefix: NameRef<'_>, hops: &mut Vec<NextHop>) {
        let mut end = prefix.value().len();
        let mut ends: SmallVec<[usize; 32]> = SmallVec::new();
        ends.push(0);
        for component in prefix.components() {
            let start = ends.last().copied().unwrap_or_default();
            ends.push(start + component.wire_len());
        }
        while let Some(shorter) = ends.pop() {
            if shorter >= end {
                continue;
            }
            end = shorter;
            let Some(routes) = self.entries.get(&prefix.value()[..end]) else { continue };
            let inherits = |r: &&Route| r.flags & ROUTE_FLAG_CHILD_INHERIT != 0;
            add_level(hops, routes.iter().filter(inherits));
            if captures(routes) {
                return;
            }
        }
    }

    /// Entries in canonical order, from behind `after` on.
    pub(crate) fn iter_after(
        &self,
        after: Option<NameRef<'_>>,
    ) -> impl Iterator<Item = (NameRef<'_>, &[Route])> {
        let from = after.map_or(Bound::Unbounded, |name| Bound::Excluded(name.value()));
        let range = self.entries.range::<[u8], _>((from, Bound::Unbounded));
        range.map(|(key, routes)| (view(key), routes.as_slice()))
    }
}

fn view(key: &Key) -> NameRef<'_> {
    NameRef::from_value(key).expect("keys are the values of names")
}

fn captures(routes: &[Route]) -> bool {
    routes.iter().any(|route| route.flags & ROUTE_FLAG_CAPTURE != 0)
}

/// Adds the routes of one entry for faces that no nearer entry has.
fn add_level<'a>(hops: &mut Vec<NextHop>, routes: impl Iterator<Item = &'a Route>) {
    let nearer = hops.len();
    for route in routes {
        let hop = NextHop { face: route.face, cost: route.cost };
        match hops.iter().position(|known| known.face == hop.face) {
            Some(index) if index < nearer => {}
            Some(index) => hops[index].cost = hops[index].cost.min(hop.cost),
            None => hops.push(hop),
        }
    }
}
