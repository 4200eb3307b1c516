//! A catalogue with its publisher, consumers with their requests, and an account of what crossed
//! which link.

use std::cell::Cell;

use byname_packet::Name;
use byname_security::key::KeyId;

use super::{Account, Catalogue, Consumer, Record, Request, routing};
use crate::line::{Faults, LineConfig};
use crate::program::Now;
use crate::programs::{DiskTimes, Publisher};
use crate::queue::{Discipline, QueueConfig};
use crate::topology::Topology;
use crate::world::{Fault, HostId, LinkConfig, ProgramId, SECOND, START_UNIX_NS, World};

/// When the files of a catalogue were written.
const WRITTEN_UNIX_NS: u64 = START_UNIX_NS - 3600 * SECOND;
/// Of the publisher's key, and of its mirrors'.
const KEY_SEED: u8 = 1;

/// See the module.
pub struct Scene {
    /// Hosts, links and the clock.
    pub world: World,
    /// Which hosts and links.
    pub topology: Topology,
    /// Names that are published.
    pub catalogue: Catalogue,
    home: HostId,
    anchor: (Name, KeyId),
    holders: Vec<HostId>,
    consumers: Vec<ProgramId>,
}

impl Scene {
    /// A publisher of the catalogue on the host in place `home`, with routes from everywhere.
    pub fn new(mut world: World, topology: Topology, catalogue: Catalogue, home: usize) -> Self {
        let home = topology.hosts[home];
        let disk = catalogue.disk(WRITTEN_UNIX_NS);
        let publisher = Publisher::new(&catalogue.prefix, KEY_SEED, disk, DiskTimes::default());
        let anchor = (catalogue.prefix.clone(), publisher.key_id());
        let publisher = world.add_program(home, publisher);
        let (holders, consumers) = (Vec::new(), Vec::new());
        let mut scene = Scene { world, topology, catalogue, home, anchor, holders, consumers };
        scene.lead_to(home, publisher);
        scene
    }

    fn lead_to(&mut self, host: HostId, program: ProgramId) {
        let prefix = &self.catalogue.prefix;
        self.world.route_to(program, prefix);
        self.holders.push(host);
        routing::route(&mut self.world, &self.topology, prefix, &self.holders);
    }

    /// Adds a mirror of the whole catalogue on the host in this place: it has the packets that the
    /// publisher signs now, answers from now on, and routes lead to whoever is nearer.
    pub fn add_mirror(&mut self, place: usize) -> ProgramId {
        let now_ns = self.world.now_ns();
        let now = Now { now_ns, unix_ns: START_UNIX_NS + now_ns };
        let paths: Vec<&str> = self.catalogue.files.iter().map(|file| &*file.path).collect();
        let (disk, times) = (self.catalogue.disk(WRITTEN_UNIX_NS), DiskTimes::default());
        // A twin is asked, since asking takes time.
        let mut twin = Publisher::new(&self.catalogue.prefix, KEY_SEED, disk, times);
        let mirror = twin.mirror(&paths, times, now);
        let host = self.topology.hosts[place];
        let program = self.world.add_program(host, mirror);
        self.lead_to(host, program);
        program
    }

    /// Takes back all routes that lead to the host in this place: what a routing protocol does some
    /// time after a holder has died.
    pub fn lose_holder(&mut self, place: usize) {
        let (gone, prefix) = (self.topology.hosts[place], &self.catalogue.prefix);
        self.holders.retain(|host| *host != gone);
        for host in &self.topology.hosts {
            self.world.unroute(*host, prefix);
        }
        routing::route(&mut self.world, &self.topology, prefix, &self.holders);
    }

    /// Lets a consumer on the host in this place carry out requests; returns its number.
    pub fn add_consumer(
        &mut self,
        place: usize,
        requests: Vec<Request>,
        parallel_max: usize,
    ) -> usize {
        let seed = self.world.seed() << 16 | self.consumers.len() as u64;
        let consumer = Consumer::new(requests, parallel_max, self.anchor.clone(), seed);
        let program = self.world.add_program(self.topology.hosts[place], consumer);
        self.consumers.push(program);
        self.consumers.len() - 1
    }

    /// A consumer, by its number.
    pub fn consumer(&self, number: usize) -> &Consumer {
        self.world.program(self.consumers[number]).expect("consumers are never removed")
    }

    /// All consumers, in the order of their adding.
    pub fn consumers(&self) -> impl Iterator<Item = &Consumer> {
        (0..self.consumers.len()).map(|number| self.consumer(number))
    }

    /// Requests of all consumers, with their outcomes.
    pub fn records(&self) -> impl Iterator<Item = (&Request, &Record)> {
        self.consumers().flat_map(|one| one.requests().iter().zip(one.records()))
    }

    /// Lets time pass until all requests have ended, or until `limit_ns`.
    ///
    /// # Errors
    /// [`Fault`]: the first promise that was broken.
    pub fn run(&mut self, limit_ns: u64) -> Result<(), Fault> {
        let consumers = self.consumers.clone();
        // Looked at after every event: those that have finished are not looked at again.
        let finished = Cell::new(0);
        let is_over = |world: &World| {
            while let Some(program) = consumers.get(finished.get()) {
                if !world.program::<Consumer>(*program).is_some_and(Consumer::is_finished) {
                    return false;
                }
                finished.set(finished.get() + 1);
            }
            true
        };
        self.world.run(limit_ns, &is_over)
    }

    /// Requests that have not been fulfilled.
    pub fn unfulfilled_count(&self) -> usize {
        self.records().filter(|(_, record)| !record.is_complete()).count()
    }

    /// When the last request ended, counted from the start of the first.
    pub fn took_ns(&self) -> u64 {
        let first = self.records().filter_map(|(_, record)| record.begun_ns).min();
        let last = self.records().filter_map(|(_, record)| record.ended_ns).max();
        last.unwrap_or(0).saturating_sub(first.unwrap_or(0))
    }

    /// Traffic that crossed the links so far.
    pub fn account(&self) -> Account {
        Account::of(&self.world, &self.topology)
    }

    /// Octets that left the publisher's host so far.
    pub fn origin_bytes(&self) -> u64 {
        self.account().sent_bytes(self.home)
    }

    /// Octets handed out to all consumers so far.
    pub fn served_bytes(&self) -> u64 {
        self.consumers().map(Consumer::bytes).sum()
    }
}

/// A link without faults and with room for some milliseconds of its rate.
pub fn plain_link(mbit_per_s: u64, delay_ns: u64, mtu_bytes: Option<usize>) -> LinkConfig {
    let queue = QueueConfig {
        bits_per_s: mbit_per_s * 1_000_000,
        buffer_bytes: 1 << 20,
        discipline: Discipline::DropTail,
    };
    let line = LineConfig { queue, delay_ns, jitter_ns: 0, faults: Faults::default() };
    LinkConfig { line, mtu_bytes }
}
