//! The packet path: the tables that packets pass, and one file for each kind of event.
//!
//! `interest`, `data` and `nack` handle what arrives, `timer` what expires; `choice` asks the
//! strategy, `sending` carries its decision out, `end` ends what is not answered. The pipeline
//! knows neither routes nor management nor other shards: [`Forwarder`](crate::Forwarder) fills its
//! FIB, and Interests that management answers are given back ([`Handled::IsForManagement`]).

mod choice;
mod data;
mod end;
mod interest;
mod nack;
mod sending;
mod timer;

use byname_packet::lp::LpHeader;
use byname_packet::{Data, Interest, Name, NameRef, types};

use crate::config::Config;
use crate::content_store::ContentStore;
use crate::counters::{Counters, DropReason};
use crate::dead_nonce::DeadNonceList;
use crate::face::{FaceId, LinkType};
use crate::face_table::FaceTable;
use crate::hash::{NameHasher, Prefixes};
use crate::pit::{Pit, PitIndex, Shed};
use crate::prefix_table::PrefixTable;
use crate::rib::{NextHop, NextHops};
use crate::rng::Rng;
use crate::shard::SHARD_TOKEN_BYTES;
use crate::strategy::measurements::Measurements;
use crate::strategy::{self, Chosen};
use crate::trace::Tracer;
use crate::tx::Tx;

/// The first octet of packets: their TYPE is written in one.
const INTEREST: u8 = types::INTEREST as u8;
const DATA: u8 = types::DATA as u8;

/// See the module.
pub(crate) struct Pipeline {
    pub(crate) faces: FaceTable,
    pub(crate) fib: PrefixTable<NextHops>,
    pub(crate) strategies: PrefixTable<Chosen>,
    pub(crate) measurements: Measurements,
    pub(crate) pit: Pit,
    pub(crate) cs: ContentStore,
    pub(crate) counters: Counters,
    pub(crate) dead_nonces: DeadNonceList,
    pub(crate) hasher: NameHasher,
    /// Regions in which this forwarder stands; see `hint`.
    pub(crate) regions: Vec<Name>,
    pub(crate) tracer: Tracer,
    /// On Interests that are sent, where there are several shards.
    shard_token: Option<[u8; SHARD_TOKEN_BYTES]>,
    rng: Rng,
    scratch: Scratch,
    /// Entries that wait for an answer from a face that is gone.
    forsaken: Vec<PitIndex>,
}

/// Buffers that are filled anew for each packet.
#[derive(Debug, Default)]
struct Scratch {
    prefixes: Prefixes,
    wire: Vec<u8>,
    /// An Interest without its forwarding hint.
    unhinted: Vec<u8>,
    hops: Vec<NextHop>,
    send: Vec<FaceId>,
    satisfied: Vec<PitIndex>,
}

/// Face and time at which a packet arrived, and with which header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival<'a> {
    pub(crate) face: FaceId,
    pub(crate) header: &'a LpHeader<'a>,
    pub(crate) now_ns: u64,
}

/// Outcome of a packet that was not dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handled {
    /// Nothing is left to do.
    Completely,
    /// An Interest that has passed all checks, and that management answers.
    IsForManagement,
}

impl Pipeline {
    pub(crate) fn new(config: &Config) -> Self {
        let hasher = NameHasher::new([config.seed[0], config.seed[1]]);
        let mut strategies = PrefixTable::new();
        strategies.insert(&hasher, NameRef::default(), strategy::default_strategy());
        Self {
            faces: FaceTable::default(),
            fib: PrefixTable::new(),
            strategies,
            measurements: Measurements::new(),
            pit: Pit::new(config.pit_entries_max, config.pit_bytes_max),
            cs: ContentStore::new(config.cs_entries_max, config.cs_bytes_max, config.cs_policy),
            counters: Counters::default(),
            dead_nonces: DeadNonceList::new(config.dead_nonces_max),
            hasher,
            regions: config.regions.clone(),
            tracer: Tracer::new(config.trace, &config.node_name),
            shard_token: config.shard.map(|place| place.token(config.seed)),
            rng: Rng::new(config.seed[2]),
            scratch: Scratch::default(),
            forsaken: Vec::new(),
        }
    }

    /// Handles one packet. The reason is counted by the caller, which may have one of its own.
    #[inline]
    pub(crate) fn handle_packet(
        &mut self,
        arrival: &Arrival<'_>,
        packet: &[u8],
        tx: &mut dyn Tx,
    ) -> Result<Handled, DropReason> {
        let face = self.faces.get_mut(arrival.face).ok_or(DropReason::UnknownFace)?;
        face.counters.in_bytes += packet.len() as u64;
        // Decoded where it is used: what a packet says is not small, and moving it is not free.
        match (packet.first(), arrival.header.nack) {
            (Some(&INTEREST), nack) => {
                let interest = Interest::decode(packet).map_err(|_| DropReason::Malformed)?;
                if let Some(reason) = nack {
                    face.counters.in_nacks += 1;
                    self.counters.in_nacks += 1;
                    self.on_nack(arrival, &interest, reason, tx)?;
                    return Ok(Handled::Completely);
                }
                face.counters.in_interests += 1;
                self.counters.in_interests += 1;
                self.on_interest(arrival, &interest, tx)
            }
            (Some(&DATA), None) => {
                let data = Data::decode(packet).map_err(|_| DropReason::Malformed)?;
                face.counters.in_data += 1;
                self.counters.in_data += 1;
                self.on_data(arrival, &data, tx)?;
                Ok(Handled::Completely)
            }
            (Some(&DATA), Some(_)) => Err(DropReason::ForbiddenHeader),
            _ => Err(DropReason::Malformed),
        }
    }

    pub(crate) fn count_drop(&mut self, face: FaceId, reason: DropReason) {
        self.counters.count_drop(reason);
        if let Some(face) = self.faces.get_mut(face) {
            face.drops.count(reason);
        }
    }

    /// Removes a face with what only it waits for; false if there was none.
    pub(crate) fn remove_face(&mut self, face: FaceId) -> bool {
        self.lose_upstream(face);
        if !self.faces.remove(face) {
            return false;
        }
        while let Some(shed) = self.pit.pop_orphan(face) {
            if let Shed::Ends(index) = shed {
                self.counters.unsatisfied_interests += 1;
                self.pit.remove(index, |_| ());
            }
        }
        true
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

    fn is_local(&self, face: FaceId) -> bool {
        self.faces.get(face).is_some_and(|face| face.info.local)
    }

    fn has_local_fields(&self, face: FaceId) -> bool {
        self.faces.get(face).is_some_and(|face| face.options.local_fields)
    }

    fn link_type(&self, face: FaceId) -> LinkType {
        self.faces.get(face).map_or(LinkType::PointToPoint, |face| face.info.link_type)
    }
}
