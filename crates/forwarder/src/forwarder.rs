//! The forwarder: one state machine that takes packets from faces and sends others in return.
//!
//! Methods come in three kinds. *Faces and routes*: [`Forwarder::add_face`],
//! [`Forwarder::remove_face`], [`Forwarder::set_face_up`], [`Forwarder::add_route`]. *Handle*:
//! [`Forwarder::handle_packet`] for each packet, [`Forwarder::handle_timeout`] when the time of
//! [`Forwarder::poll_timeout`] has come; both answer through [`Tx`] before they return and keep
//! nothing of the packet but copies in bounded tables.
//! *Look*: [`Forwarder::counters`] and the management datasets.
//!
//! The pipelines are in one file per kind of event: `interest`, `data`, `nack`, `timer`.

mod configure;
mod data;
pub(crate) mod interest;
mod nack;
mod occupancy;
mod sharding;
mod timer;

use std::sync::Arc;

use byname_packet::lp::LpHeader;
use byname_packet::mgmt::{CommandVerifier, face_event};
use byname_packet::{Data, Interest, Name, NameRef, types};

use crate::content_store::{ContentStore, CsPolicy};
use crate::counters::{Counters, DropReason, Drops};
use crate::dead_nonce::DeadNonceList;
use crate::face::{Face, FaceCounters, FaceId, FaceInfo, LinkType};
use crate::face_table::FaceTable;
use crate::hash::{NameHasher, Prefixes};
use crate::management::Management;
use crate::pit::{Pit, PitIndex, Shed};
use crate::prefix_table::PrefixTable;
use crate::rib::{Backlog, NextHop, NextHops, Rib};
use crate::rng::Rng;
use crate::shard::{Change, Figures, SHARD_TOKEN_BYTES, ShardPlace};
use crate::strategy::measurements::Measurements;
use crate::strategy::{self, Chosen};

pub use occupancy::Occupancy;

/// Bounds and identity of a forwarder.
#[derive(Debug, Clone)]
pub struct Config {
    /// Randomness for hash keys and missing nonces; must differ from run to run.
    pub seed: [u64; 3],
    /// The user who may command everything over a Unix socket (root may too).
    pub own_uid: u32,
    /// A group whose users may command everything, too.
    pub authorized_gid: Option<u32>,
    /// Verifies commands of other machines; without one they are refused.
    pub command_verifier: Option<Arc<dyn CommandVerifier>>,
    /// Which of several forwarders that share the faces this one is; `None` if it is alone.
    pub shard: Option<ShardPlace>,
    /// Packets in the content store.
    pub cs_entries_max: usize,
    /// Octets in the content store, tables included.
    pub cs_bytes_max: usize,
    /// Which packet leaves a full content store.
    pub cs_policy: CsPolicy,
    /// Pending Interests.
    pub pit_entries_max: usize,
    /// Octets of pending Interests.
    pub pit_bytes_max: usize,
    /// Routes.
    pub routes_max: usize,
    /// Nonces remembered after their Interest is done.
    pub dead_nonces_max: usize,
    /// Regions in which this forwarder stands: a forwarding hint below one is fulfilled.
    pub regions: Vec<Name>,
    /// Time of day, in nanoseconds since the Unix epoch, at `start_now_ns`.
    pub start_unix_ns: u64,
    /// Monotonic time at the start.
    pub start_now_ns: u64,
    /// Name and version of the program, for `status/general`.
    pub version: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: [0; 3],
            own_uid: 0,
            authorized_gid: None,
            command_verifier: None,
            shard: None,
            cs_entries_max: 65_536,
            cs_bytes_max: 256 << 20,
            cs_policy: CsPolicy::default(),
            pit_entries_max: 131_072,
            pit_bytes_max: 64 << 20,
            routes_max: 65_536,
            dead_nonces_max: 262_144,
            regions: Vec::new(),
            start_unix_ns: 0,
            start_now_ns: 0,
            version: String::from("byname"),
        }
    }
}

/// The first octet of packets: their TYPE is written in one.
const INTEREST: u8 = types::INTEREST as u8;
const DATA: u8 = types::DATA as u8;

/// Where the forwarder's packets go.
pub trait Tx {
    /// Sends a network-layer packet with a header over a face. What cannot be sent is dropped.
    fn send(&mut self, face: FaceId, header: &LpHeader<'_>, packet: &[u8]);
}

/// See the module.
pub struct Forwarder {
    pub(crate) config: Config,
    pub(crate) faces: FaceTable,
    pub(crate) rib: Rib,
    pub(crate) backlog: Backlog,
    pub(crate) fib: PrefixTable<NextHops>,
    pub(crate) strategies: PrefixTable<Chosen>,
    measurements: Measurements,
    pub(crate) pit: Pit,
    pub(crate) cs: ContentStore,
    pub(crate) counters: Counters,
    pub(crate) management: Management,
    /// What the other shards have to know, if this one leads any.
    pub(crate) changes: Option<Vec<Change>>,
    /// What the other shards have to show.
    others: Vec<Figures>,
    /// On Interests that are sent, where there are several shards.
    shard_token: Option<[u8; SHARD_TOKEN_BYTES]>,
    dead_nonces: DeadNonceList,
    pub(crate) hasher: NameHasher,
    pub(crate) rng: Rng,
    scratch: Scratch,
}

/// Buffers that are filled anew for each packet.
#[derive(Debug, Default)]
struct Scratch {
    prefixes: Prefixes,
    wire: Vec<u8>,
    hops: Vec<NextHop>,
    send: Vec<FaceId>,
    satisfied: Vec<PitIndex>,
}

/// Where and when a packet arrived, and with which header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival<'a> {
    pub(crate) face: FaceId,
    pub(crate) header: &'a LpHeader<'a>,
    pub(crate) now_ns: u64,
}

impl Forwarder {
    /// A forwarder without faces and routes.
    pub fn new(config: Config) -> Self {
        let hasher = NameHasher::new([config.seed[0], config.seed[1]]);
        let mut strategies = PrefixTable::new();
        strategies.insert(&hasher, NameRef::default(), strategy::default_strategy());
        Self {
            faces: FaceTable::default(),
            rib: Rib::new(config.routes_max),
            backlog: Backlog::default(),
            fib: PrefixTable::new(),
            strategies,
            measurements: Measurements::new(),
            pit: Pit::new(config.pit_entries_max, config.pit_bytes_max),
            cs: ContentStore::new(config.cs_entries_max, config.cs_bytes_max, config.cs_policy),
            counters: Counters::default(),
            management: Management::default(),
            changes: None,
            others: Vec::new(),
            shard_token: config.shard.map(|place| place.token(config.seed)),
            dead_nonces: DeadNonceList::new(config.dead_nonces_max),
            hasher,
            rng: Rng::new(config.seed[2]),
            scratch: Scratch::default(),
            config,
        }
    }

    /// Adds a face, up from the start.
    pub fn add_face(&mut self, info: FaceInfo) -> FaceId {
        let face = self.faces.add(Face::new(info));
        self.note_face_event(face_event::CREATED, face);
        self.tell_face(face);
        face
    }

    /// Removes a face with its routes and with what only it waits for.
    pub fn remove_face(&mut self, face: FaceId) {
        self.note_face_event(face_event::DESTROYED, face);
        if !self.faces.remove(face) {
            return;
        }
        while let Some(shed) = self.pit.pop_orphan(face) {
            if let Shed::Ends(index) = shed {
                self.counters.unsatisfied_interests += 1;
                self.pit.remove(index, |_| ());
            }
        }
        self.remove_routes_of(face);
        self.tell(|| Change::FaceGone(face));
    }

    /// Says that a face has lost its link (its routes stay, but are not used) or has it back.
    pub fn set_face_up(&mut self, face: FaceId, up: bool) {
        let Some(known) = self.faces.get_mut(face) else { return };
        if std::mem::replace(&mut known.up, up) != up {
            self.note_face_event(if up { face_event::UP } else { face_event::DOWN }, face);
            self.tell_face(face);
        }
    }

    /// Says what is now known of a face, for example its local address after a reconnection.
    pub fn update_face(&mut self, id: FaceId, info: FaceInfo) {
        if let Some(face) = self.faces.get_mut(id) {
            face.info = info;
        }
        self.tell_face(id);
    }

    /// Chooses the strategy for a prefix: the longest prefix chosen for counts.
    pub fn set_strategy(&mut self, prefix: &Name, strategy: Chosen) {
        self.strategies.insert(&self.hasher, prefix.view(), Chosen::clone(&strategy));
        self.tell(|| Change::Strategy(prefix.clone(), Some(strategy)));
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
        let reason = self.dispatch(&arrival, packet, tx).err();
        if let Some(reason) = reason {
            self.count_drop(face, reason);
        }
        reason
    }

    fn count_drop(&mut self, face: FaceId, reason: DropReason) {
        self.counters.count_drop(reason);
        if let Some(face) = self.faces.get_mut(face) {
            face.drops.count(reason);
        }
    }

    fn dispatch(
        &mut self,
        arrival: &Arrival<'_>,
        packet: &[u8],
        tx: &mut dyn Tx,
    ) -> Result<(), DropReason> {
        let face = self.faces.get_mut(arrival.face).ok_or(DropReason::UnknownFace)?;
        face.counters.in_bytes += packet.len() as u64;
        // Decoded where it is used: what a packet says is not small, and moving it is not free.
        match (packet.first(), arrival.header.nack) {
            (Some(&INTEREST), nack) => {
                let interest = Interest::decode(packet).map_err(|_| DropReason::Malformed)?;
                if let Some(reason) = nack {
                    face.counters.in_nacks += 1;
                    self.counters.in_nacks += 1;
                    return self.on_nack(arrival, &interest, reason, tx);
                }
                face.counters.in_interests += 1;
                self.counters.in_interests += 1;
                self.on_interest(arrival, &interest, tx)
            }
            (Some(&DATA), None) => {
                let data = Data::decode(packet).map_err(|_| DropReason::Malformed)?;
                face.counters.in_data += 1;
                self.counters.in_data += 1;
                self.on_data(arrival, &data, tx)
            }
            (Some(&DATA), Some(_)) => Err(DropReason::ForbiddenHeader),
            _ => Err(DropReason::Malformed),
        }
    }

    /// Totals.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What passed one face.
    pub fn face_counters(&self, face: FaceId) -> Option<FaceCounters> {
        self.faces.get(face).map(|face| face.counters)
    }

    /// Packets from one face that led to nothing.
    pub fn face_drops(&self, face: FaceId) -> Option<Drops> {
        self.faces.get(face).map(|face| face.drops)
    }

    /// Interests that are pending.
    pub fn pending_count(&self) -> usize {
        self.pit.len()
    }

    pub(crate) fn is_local(&self, face: FaceId) -> bool {
        self.faces.get(face).is_some_and(|face| face.info.local)
    }

    fn has_local_fields(&self, face: FaceId) -> bool {
        self.faces.get(face).is_some_and(|face| face.options.local_fields)
    }

    fn link_type(&self, face: FaceId) -> LinkType {
        self.faces.get(face).map_or(LinkType::PointToPoint, |face| face.info.link_type)
    }

    pub(crate) fn send_data(
        &mut self,
        face: FaceId,
        header: &LpHeader<'_>,
        packet: &[u8],
        tx: &mut dyn Tx,
    ) {
        let Some(to) = self.faces.get_mut(face) else { return };
        self.counters.out_data += 1;
        to.send_data(face, header, packet, tx);
    }
}

impl std::fmt::Debug for Forwarder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Forwarder")
            .field("counters", &self.counters)
            .field("pending", &self.pit.len())
            .field("cached", &self.cs.len())
            .field("fib", &self.fib.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
