//! The forwarder: one state machine that takes packets from faces and sends others in return.
//!
//! Methods come in three kinds. *Faces and routes*: [`Forwarder::add_face`],
//! [`Forwarder::remove_face`], [`Forwarder::set_face_up`], [`Forwarder::add_route`]. *Handle*:
//! [`Forwarder::handle_packet`] for each packet, [`Forwarder::handle_timeout`] when the time of
//! [`Forwarder::poll_timeout`] has come; both answer through [`Tx`] before they return and keep
//! nothing of the packet but copies in bounded tables.
//! *Look*: [`Forwarder::counters`] and the management datasets.
//!
//! It joins four rooms that do not know each other: the packet path (`pipeline`), the routes
//! (`rib`, brought to the FIB by `routes`), management (called by `manage`, which carries out what
//! it returns), and the other shards (`sharding`).

mod configure;
mod manage;
mod occupancy;
mod routes;
mod sharding;
mod view;

use byname_packet::Name;
use byname_packet::lp::LpHeader;
use byname_packet::mgmt::face_event;

use crate::config::Config;
use crate::counters::{Counters, DropReason, Drops};
use crate::face::{FaceCounters, FaceId, FaceInfo, FaceOptions};
use crate::face_table::Face;
use crate::management::{Action, Management};
use crate::pipeline::{Arrival, Handled, Pipeline};
use crate::rib::{Backlog, Rib};
use crate::shard::{Change, Figures};
use crate::strategy::Chosen;
use crate::tx::Tx;

pub use occupancy::Occupancy;

/// See the module.
pub struct Forwarder {
    config: Config,
    pipeline: Pipeline,
    rib: Rib,
    backlog: Backlog,
    management: Management,
    /// Buffer for what management wants done.
    actions: Vec<Action>,
    /// The face over which the forwarder itself asks, once it has.
    own_face: Option<FaceId>,
    /// Changes for the other shards, if this one leads any.
    changes: Option<Vec<Change>>,
    /// Figures of the other shards.
    others: Vec<Figures>,
}

impl Forwarder {
    /// A forwarder without faces and routes.
    pub fn new(config: Config) -> Self {
        Self {
            pipeline: Pipeline::new(&config),
            rib: Rib::new(config.routes_max),
            backlog: Backlog::default(),
            management: Management::new(&config),
            actions: Vec::new(),
            own_face: None,
            changes: None,
            others: Vec::new(),
            config,
        }
    }

    /// Adds a face, up from the start.
    pub fn add_face(&mut self, info: FaceInfo) -> FaceId {
        let face = self.pipeline.faces.add(Face::new(info));
        self.note_face_event(face_event::CREATED, face);
        self.record_face(face);
        face
    }

    /// Removes a face with its routes and with what only it waits for.
    pub fn remove_face(&mut self, face: FaceId) {
        self.note_face_event(face_event::DESTROYED, face);
        if self.pipeline.remove_face(face) {
            self.remove_routes_of(face);
            self.record(|| Change::FaceGone(face));
        }
    }

    /// Reports that a face has lost its link (its routes stay, but are not used) or has it back.
    pub fn set_face_up(&mut self, face: FaceId, up: bool) {
        let Some(known) = self.pipeline.faces.get_mut(face) else { return };
        if std::mem::replace(&mut known.up, up) != up {
            if !up {
                self.pipeline.lose_upstream(face);
            }
            self.note_face_event(if up { face_event::UP } else { face_event::DOWN }, face);
            self.record_face(face);
        }
    }

    /// Reports what is now known of a face, for example its local address after a reconnection.
    pub fn update_face(&mut self, id: FaceId, info: FaceInfo) {
        if let Some(face) = self.pipeline.faces.get_mut(id) {
            face.info = info;
        }
        self.record_face(id);
    }

    /// Chooses the strategy for a prefix: the longest prefix chosen for counts.
    pub fn set_strategy(&mut self, prefix: &Name, strategy: Chosen) {
        let Pipeline { strategies, hasher, .. } = &mut self.pipeline;
        strategies.insert(hasher, prefix.view(), Chosen::clone(&strategy));
        self.record(|| Change::Strategy(prefix.clone(), Some(strategy)));
    }

    /// Handles one packet from a face. The reason is returned when it leads to nothing.
    pub fn handle_packet(
        &mut self,
        face: FaceId,
        header: &LpHeader<'_>,
        packet: &[u8],
        now_ns: u64,
        tx: &mut dyn Tx,
    ) -> Option<DropReason> {
        let arrival = Arrival { face, header, now_ns };
        let result = match self.pipeline.handle_packet(&arrival, packet, tx) {
            Ok(Handled::Completely) => return None,
            Ok(Handled::IsForManagement) => self.manage_interest(&arrival, packet, tx),
            Err(reason) => Err(reason),
        };
        let reason = result.err()?;
        self.pipeline.count_drop(face, reason);
        Some(reason)
    }

    /// Time at which [`Forwarder::handle_timeout`] has something to do next, on the clock of
    /// `now_ns`.
    pub fn poll_timeout(&self) -> Option<u64> {
        [self.pipeline.poll_timeout(), self.routes_due_ns(), self.management_due_ns()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Removes what has expired, asks strategies about what is overdue, and goes on with changes of
    /// routes and with management.
    pub fn handle_timeout(&mut self, now_ns: u64, tx: &mut dyn Tx) {
        self.pipeline.handle_timeout(now_ns, tx);
        self.maintain_routes(now_ns);
        self.maintain_management(now_ns, tx);
    }

    /// Totals.
    pub fn counters(&self) -> &Counters {
        &self.pipeline.counters
    }

    /// Counts of one face.
    pub fn face_counters(&self, face: FaceId) -> Option<FaceCounters> {
        self.pipeline.faces.get(face).map(|face| face.counters)
    }

    /// Packets from one face that led to nothing.
    pub fn face_drops(&self, face: FaceId) -> Option<Drops> {
        self.pipeline.faces.get(face).map(|face| face.drops)
    }

    /// Options set on a face.
    pub fn face_options(&self, face: FaceId) -> Option<&FaceOptions> {
        self.pipeline.faces.get(face).map(|face| &face.options)
    }

    /// Facts about a face as the driver, or a command since, has reported them.
    pub fn face_info(&self, face: FaceId) -> Option<&FaceInfo> {
        self.pipeline.faces.get(face).map(|face| &face.info)
    }

    /// Interests that are pending.
    pub fn pending_count(&self) -> usize {
        self.pipeline.pit.len()
    }
}

impl std::fmt::Debug for Forwarder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Forwarder")
            .field("counters", &self.pipeline.counters)
            .field("pending", &self.pipeline.pit.len())
            .field("cached", &self.pipeline.cs.len())
            .field("fib", &self.pipeline.fib.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
