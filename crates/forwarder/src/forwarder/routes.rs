//! Changes of routes, and how they reach the FIB.
//!
//! A change of one prefix concerns the FIB entries below it, which may be all of a million; a face
//! that goes may take as many routes with it. So each call does up to [`SLICE`] entries at once and
//! leaves the rest to the next calls of `handle_timeout`, which are due immediately. Until then the
//! entries that wait are as before; next hops over a face that is gone are not eligible anyway.

use byname_packet::{Name, NameRef};

use super::Forwarder;
use crate::face::FaceId;
use crate::pipeline::Pipeline;
use crate::rib::{NextHop, NextHops, RibFull, Route, Subtree};
use crate::shard::Change;

/// FIB entries or routes handled in one call.
const SLICE: usize = 1024;

impl Forwarder {
    /// Adds a route, or replaces the one with the same prefix, face and origin.
    ///
    /// # Errors
    /// [`RibFull`] when there are [`Config::routes_max`](crate::Config::routes_max) routes.
    pub fn add_route(&mut self, prefix: &Name, route: Route) -> Result<(), RibFull> {
        self.rib.insert(prefix.view(), route)?;
        self.update_fib(prefix);
        self.management.on_route_added(prefix.view(), &route);
        Ok(())
    }

    /// Removes a route; false if there was none.
    pub fn remove_route(&mut self, prefix: &Name, face: FaceId, origin: u64) -> bool {
        let removed = self.rib.remove(prefix.view(), face, origin);
        if let Some(route) = &removed {
            self.update_fib(prefix);
            self.note_route_removed(prefix.view(), route);
        }
        removed.is_some()
    }

    /// Removes the routes of a face that is gone, at once or, if they are many, soon.
    pub(super) fn remove_routes_of(&mut self, face: FaceId) {
        self.backlog.faces.push_back(face);
        self.remove_routes_of_gone(SLICE);
    }

    fn remove_routes_of_gone(&mut self, mut budget: usize) {
        while let Some(face) = self.backlog.faces.front().copied() {
            if budget == 0 {
                return;
            }
            match self.rib.pop_face(face) {
                Some((prefix, removed)) => {
                    self.update_fib(&prefix);
                    for route in &removed {
                        self.note_route_removed(prefix.view(), route);
                    }
                    budget -= 1;
                }
                None => {
                    self.backlog.faces.pop_front();
                }
            }
        }
    }

    /// Time at which [`Forwarder::maintain_routes`] has something to do.
    pub(super) fn routes_due_ns(&self) -> Option<u64> {
        if self.backlog.is_empty() { self.rib.next_expiry_ns() } else { Some(0) }
    }

    /// Ends what has expired, and goes on with what is left to do.
    pub(super) fn maintain_routes(&mut self, now_ns: u64) {
        for _ in 0..SLICE {
            let Some((prefix, route)) = self.rib.pop_expired(now_ns) else { break };
            self.update_fib(&prefix);
            self.note_route_removed(prefix.view(), &route);
        }
        self.remove_routes_of_gone(SLICE);
        if let Some(subtree) = self.backlog.subtrees.pop_front() {
            self.update_subtree(subtree.prefix, subtree.next.view());
        }
    }

    fn note_route_removed(&mut self, prefix: NameRef<'_>, route: &Route) {
        self.management.on_route_removed(prefix, route, self.rib.routes(prefix));
    }

    /// Computes the FIB anew at and below `prefix`, whose routes have changed.
    fn update_fib(&mut self, prefix: &Name) {
        if self.rib.routes(prefix.view()).is_empty() {
            let Pipeline { fib, hasher, .. } = &mut self.pipeline;
            fib.remove(hasher, prefix.view());
            self.record(|| Change::Hops(prefix.clone(), Vec::new()));
        }
        self.update_subtree(prefix.clone(), prefix.view());
    }

    fn update_subtree(&mut self, prefix: Name, from: NameRef<'_>) {
        let mut below = self.rib.subtree(prefix.view(), from);
        for name in below.by_ref().take(SLICE) {
            if let Some(hops) = self.rib.next_hops(name) {
                if let Some(changes) = &mut self.changes {
                    changes.push(Change::Hops(name.to_name(), hops.clone()));
                }
                self.pipeline.fib.insert(&self.pipeline.hasher, name, NextHops::from_slice(&hops));
            }
        }
        let next = below.next().map(|next| next.to_name());
        drop(below);
        if let Some(next) = next {
            self.backlog.push(Subtree { prefix, next });
        }
    }

    /// Returns whether a face has routes.
    pub fn has_routes(&self, face: FaceId) -> bool {
        self.rib.count_of_face(face, 1) > 0
    }

    /// The next hops of exactly `prefix`.
    pub fn next_hops(&self, prefix: &Name) -> Option<&[NextHop]> {
        self.pipeline.fib.get(&self.pipeline.hasher, prefix.view()).map(NextHops::as_slice)
    }
}
