//! Routes as applications and operators register them, and the next hops that follow from them.
//!
//! A FIB entry exists for each prefix that has routes. Its next hops are the prefix's own routes
//! and those of shorter prefixes that carry [`ROUTE_FLAG_CHILD_INHERIT`], up to and including the
//! first entry that carries [`ROUTE_FLAG_CAPTURE`]; for one face the nearest entry wins, in one
//! entry the lowest cost. So a change below prefix P can only concern entries below P: see
//! [`Rib::subtree`].

use std::collections::{BTreeMap, BTreeSet, HashMap};

use byname_packet::mgmt::{ROUTE_FLAG_CAPTURE, ROUTE_FLAG_CHILD_INHERIT};
use byname_packet::{Name, NameRef};
use thiserror::Error;

use crate::face::FaceId;

/// One way towards a prefix; identified by face and origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Where to send.
    pub face: FaceId,
    /// Who says so (numbers of NFD's RIB management).
    pub origin: u64,
    /// Lower is better.
    pub cost: u64,
    /// [`ROUTE_FLAG_CHILD_INHERIT`], [`ROUTE_FLAG_CAPTURE`].
    pub flags: u64,
    /// When it ends by itself.
    pub expires_ns: Option<u64>,
}

/// A face to send to and what it costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextHop {
    /// Where to send.
    pub face: FaceId,
    /// Lower is better.
    pub cost: u64,
}

/// The RIB holds as many routes as it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the routing table is full ({max} routes)")]
pub struct RibFull {
    /// The limit.
    pub max: usize,
}

/// The routing information base.
#[derive(Debug)]
pub(crate) struct Rib {
    entries: BTreeMap<Name, Vec<Route>>,
    /// One element per route that expires (two origins may share one).
    expiries: BTreeSet<(u64, Name)>,
    route_count: usize,
    /// Routes over each face that has any: faces come and go, mostly without routes.
    by_face: HashMap<FaceId, usize>,
    routes_max: usize,
}

impl Rib {
    pub(crate) fn new(routes_max: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            expiries: BTreeSet::new(),
            route_count: 0,
            by_face: HashMap::new(),
            routes_max,
        }
    }

    /// Adds a route or replaces the one with the same face and origin.
    pub(crate) fn insert(&mut self, prefix: &Name, route: Route) -> Result<(), RibFull> {
        let known = self.entries.get_mut(prefix).and_then(|routes| {
            routes.iter_mut().find(|r| r.face == route.face && r.origin == route.origin)
        });
        match known {
            Some(known) => *known = route,
            None if self.route_count >= self.routes_max => {
                return Err(RibFull { max: self.routes_max });
            }
            None => {
                self.entries.entry(prefix.clone()).or_default().push(route);
                self.route_count += 1;
                *self.by_face.entry(route.face).or_default() += 1;
            }
        }
        if let Some(expires_ns) = route.expires_ns {
            self.expiries.insert((expires_ns, prefix.clone()));
        }
        Ok(())
    }

    /// Removes a route; false if there was none.
    pub(crate) fn remove(&mut self, prefix: &Name, face: FaceId, origin: u64) -> bool {
        self.retain(prefix, |route| route.face != face || route.origin != origin)
    }

    /// Removes every route over `face`; the prefixes concerned.
    pub(crate) fn remove_face(&mut self, face: FaceId) -> Vec<Name> {
        if !self.by_face.contains_key(&face) {
            return Vec::new();
        }
        let uses = |routes: &Vec<Route>| routes.iter().any(|route| route.face == face);
        let concerned: Vec<Name> = self
            .entries
            .iter()
            .filter(|(_, routes)| uses(routes))
            .map(|(prefix, _)| prefix.clone())
            .collect();
        for prefix in &concerned {
            self.retain(prefix, |route| route.face != face);
        }
        concerned
    }

    /// Removes what has expired; the prefixes concerned.
    pub(crate) fn expire(&mut self, now_ns: u64) -> Vec<Name> {
        let mut concerned = Vec::new();
        while self.expiries.first().is_some_and(|(at, _)| *at <= now_ns) {
            let Some((_, prefix)) = self.expiries.pop_first() else { break };
            // A renewed route has a later expiry of its own and stays.
            if self.retain(&prefix, |route| route.expires_ns.is_none_or(|at| at > now_ns)) {
                concerned.push(prefix);
            }
        }
        concerned
    }

    /// When [`Rib::expire`] has something to do next.
    pub(crate) fn next_expiry_ns(&self) -> Option<u64> {
        self.expiries.first().map(|(at, _)| *at)
    }

    fn retain(&mut self, prefix: &Name, keep: impl Fn(&Route) -> bool) -> bool {
        let Some(routes) = self.entries.get_mut(prefix) else { return false };
        let before = routes.len();
        for route in routes.iter().filter(|route| !keep(route)) {
            if let Some(count) = self.by_face.get_mut(&route.face) {
                *count -= 1;
                if *count == 0 {
                    self.by_face.remove(&route.face);
                }
            }
        }
        routes.retain(|route| keep(route));
        let removed = before - routes.len();
        if routes.is_empty() {
            self.entries.remove(prefix);
        }
        self.route_count -= removed;
        removed > 0
    }

    /// The prefixes at and below `prefix` that have routes.
    pub(crate) fn subtree(&self, prefix: NameRef<'_>) -> Vec<Name> {
        self.entries
            .range(prefix.to_name()..)
            .map(|(name, _)| name)
            .take_while(|name| prefix.is_prefix_of(name.view()))
            .cloned()
            .collect()
    }

    /// The next hops of a FIB entry for `prefix`, best first; `None` when it has no routes itself.
    pub(crate) fn next_hops(&self, prefix: &Name) -> Option<Vec<NextHop>> {
        let own = self.entries.get(prefix)?;
        let mut hops = Vec::new();
        add_level(&mut hops, own.iter());
        let mut ancestor = prefix.clone();
        let mut captured = captures(own);
        while !captured && ancestor.pop() {
            let Some(routes) = self.entries.get(&ancestor) else { continue };
            add_level(&mut hops, routes.iter().filter(|r| r.flags & ROUTE_FLAG_CHILD_INHERIT != 0));
            captured = captures(routes);
        }
        hops.sort_by_key(|hop| (hop.cost, hop.face));
        Some(hops)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Name, &[Route])> {
        self.entries.iter().map(|(prefix, routes)| (prefix, routes.as_slice()))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn route(face: u64, cost: u64, flags: u64) -> Route {
        Route { face: FaceId(face), origin: 0, cost, flags, expires_ns: None }
    }

    fn hops(rib: &Rib, prefix: &str) -> Option<Vec<(u64, u64)>> {
        let hops = rib.next_hops(&prefix.parse().unwrap())?;
        Some(hops.iter().map(|hop| (hop.face.0, hop.cost)).collect())
    }

    #[test]
    fn routes_are_inherited_until_captured() {
        let mut rib = Rib::new(100);
        let mut add = |prefix: &str, route| rib.insert(&prefix.parse().unwrap(), route).unwrap();
        add("/", route(1, 50, ROUTE_FLAG_CHILD_INHERIT));
        add("/a", route(2, 10, ROUTE_FLAG_CHILD_INHERIT));
        add("/a", route(3, 5, 0));
        add("/a/b", route(1, 70, 0));
        add("/a/c", route(4, 1, ROUTE_FLAG_CAPTURE));
        add("/a/c/d", route(5, 9, 0));
        assert_eq!(hops(&rib, "/a"), Some(vec![(3, 5), (2, 10), (1, 50)]));
        assert_eq!(hops(&rib, "/a/b"), Some(vec![(2, 10), (1, 70)]), "the nearest entry wins");
        assert_eq!(hops(&rib, "/a/c"), Some(vec![(4, 1)]));
        assert_eq!(hops(&rib, "/a/c/d"), Some(vec![(5, 9)]), "capture holds below");
        assert_eq!(hops(&rib, "/b"), None);
        let below: Vec<String> =
            rib.subtree("/a".parse::<Name>().unwrap().view()).iter().map(Name::to_string).collect();
        assert_eq!(below, ["/a", "/a/b", "/a/c", "/a/c/d"]);
    }

    #[test]
    fn a_renewed_route_outlives_its_first_expiry() {
        let mut rib = Rib::new(100);
        let name: Name = "/a".parse().unwrap();
        rib.insert(&name, Route { expires_ns: Some(10), ..route(1, 0, 0) }).unwrap();
        rib.insert(&name, Route { expires_ns: Some(20), ..route(1, 0, 0) }).unwrap();
        assert!(rib.expire(10).is_empty());
        assert_eq!(rib.next_expiry_ns(), Some(20));
        assert_eq!(rib.expire(20), [name]);
        assert_eq!(rib.next_expiry_ns(), None);
        assert_eq!(hops(&rib, "/a"), None);
    }

    #[test]
    fn a_full_table_refuses_new_routes_but_renews_old_ones() {
        let mut rib = Rib::new(1);
        let (a, b): (Name, Name) = ("/a".parse().unwrap(), "/b".parse().unwrap());
        rib.insert(&a, route(1, 0, 0)).unwrap();
        assert_eq!(rib.insert(&b, route(1, 0, 0)), Err(RibFull { max: 1 }));
        rib.insert(&a, route(1, 7, 0)).unwrap();
        assert_eq!(rib.remove_face(FaceId(1)), [a]);
        rib.insert(&b, route(1, 0, 0)).unwrap();
        rib.insert(&b, route(1, 2, 0)).unwrap();
        assert_eq!(rib.remove_face(FaceId(2)), []);
        assert!(rib.remove(&b, FaceId(1), 0));
        assert_eq!(rib.remove_face(FaceId(1)), []);
        assert!(rib.by_face.is_empty());
    }
}
