//! A program that carries out a list of requests: the production engines of the client, all of
//! one consumer over one flow, as in a client with one connection.

use std::collections::{BTreeSet, VecDeque};

use byname_packet::lp::LpPacket;
use byname_packet::{Data, Interest, Name, Packet};
use byname_security::key::KeyId;
use byname_security::trust::{TrustPolicy, Validator};
use byname_transfer::congestion::{Congestion, WINDOW_MAX};
use byname_transfer::discovery::{Discovery, DiscoveryConfig};
use byname_transfer::error::ReadError;
use byname_transfer::fetch::{Class, FetchConfig, NackKind};
use byname_transfer::flow::Flow;
use byname_transfer::reader::{ObjectPlan, Reader, Selection};
use byname_transfer::request::Context;
use byname_transfer::versions::VersionMemory;

use super::{Part, Record, Request};
use crate::disk::content;
use crate::program::{Now, Program};
use crate::programs::interest;
use crate::random::Random;

/// Tree nodes that are kept of a file read in pieces.
const NODES_MAX: usize = 64;

enum Stage {
    Discovering(Box<Discovery>),
    Reading(Box<Reader>),
}

/// A request in flight.
struct Active {
    /// Its place in the list.
    place: usize,
    stage: Stage,
    /// Of a file read in pieces: units that have not come yet.
    awaited: BTreeSet<u64>,
    /// The next of its vectors.
    vector: usize,
}

/// State shared by the engines of a consumer.
struct Shared {
    flow: Flow,
    validator: Validator,
    versions: VersionMemory,
}

impl Shared {
    fn context(&mut self, now: Now) -> Context<'_> {
        let Shared { flow, validator, versions } = self;
        Context { now_ns: now.now_ns, unix_ns: now.unix_ns, flow, validator, versions }
    }
}

/// See the module.
pub struct Consumer {
    requests: Vec<Request>,
    records: Vec<Record>,
    /// The first request that has not begun.
    next: usize,
    parallel_max: usize,
    active: Vec<Active>,
    /// Whose turn it is to ask.
    turn: usize,
    shared: Shared,
    random: Random,
    out: VecDeque<Vec<u8>>,
    sent_count: u64,
    scratch: Vec<u8>,
    fault: Option<String>,
}

impl Consumer {
    /// Will carry out the requests, at most `parallel_max` at once, and believe the anchor.
    pub fn new(
        mut requests: Vec<Request>,
        parallel_max: usize,
        anchor: (Name, KeyId),
        random_seed: u64,
    ) -> Self {
        requests.sort_by_key(|request| request.start_ns);
        let mut policy = TrustPolicy::default();
        policy.add_anchor(anchor.0, anchor.1);
        let shared = Shared {
            flow: Flow::new(Congestion::default().controller(WINDOW_MAX), random_seed),
            validator: Validator::new(policy),
            versions: VersionMemory::default(),
        };
        Consumer {
            records: vec![Record::default(); requests.len()],
            requests,
            next: 0,
            parallel_max: parallel_max.max(1),
            active: Vec::new(),
            turn: 0,
            shared,
            random: Random::new(random_seed),
            out: VecDeque::new(),
            sent_count: 0,
            scratch: Vec::new(),
            fault: None,
        }
    }

    /// Outcomes of the requests, in the order of their start.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The requests, in the same order.
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// True if all requests have ended.
    pub fn is_finished(&self) -> bool {
        self.next == self.requests.len() && self.active.is_empty()
    }

    /// Octets handed out so far.
    pub fn bytes(&self) -> u64 {
        self.records.iter().map(|record| record.bytes).sum()
    }

    /// Interests sent, repetitions included.
    pub fn sent_count(&self) -> u64 {
        self.sent_count
    }

    /// Begins what is due, ends what has come, asks for what is missing.
    fn step(&mut self, now: Now) {
        let mut place = 0;
        while place < self.active.len() {
            if let Some(outcome) = self.advance(place, now) {
                self.end(place, outcome, now);
            } else {
                place += 1;
            }
        }
        while self.active.len() < self.parallel_max
            && self.requests.get(self.next).is_some_and(|next| next.start_ns <= now.now_ns)
        {
            self.begin(now);
        }
        self.send(now);
    }

    fn begin(&mut self, now: Now) {
        let name = self.requests[self.next].file.name.clone();
        let config = DiscoveryConfig { takes_pending: true, ..DiscoveryConfig::default() };
        let discovery = Box::new(Discovery::new(name, config, now.now_ns));
        let (place, awaited) = (self.next, BTreeSet::new());
        self.records[place].begun_ns = Some(now.now_ns);
        self.active.push(Active {
            place,
            stage: Stage::Discovering(discovery),
            awaited,
            vector: 0,
        });
        self.next += 1;
    }

    /// Takes a request as far as it goes without the network; its outcome if that is the end.
    fn advance(&mut self, place: usize, now: Now) -> Option<Result<(), ReadError>> {
        let active = &mut self.active[place];
        let request = &self.requests[active.place];
        if let Stage::Discovering(discovery) = &mut active.stage {
            let outcome = discovery.poll_outcome()?;
            discovery.abandon(&mut self.shared.flow);
            let plan = outcome.and_then(|found| ObjectPlan::new(&found.metadata, false));
            match plan {
                Ok(plan) => active.stage = Stage::Reading(Box::new(reader(plan, &request.part))),
                Err(error) => return Some(Err(error)),
            }
        }
        let Stage::Reading(reader) = &mut active.stage else { return None };
        if let Some(failure) = reader.failure() {
            return Some(Err(failure.clone()));
        }
        let Part::Vectors(vectors) = &request.part else {
            return reader.is_finished().then_some(Ok(()));
        };
        while active.awaited.is_empty() {
            let Some(vector) = vectors.get(active.vector) else { return Some(Ok(())) };
            active.vector += 1;
            let Some(unit_bytes) = reader.granule_bytes() else { continue };
            for range in vector.iter().filter(|range| range.start < range.end) {
                active.awaited.extend(range.start / unit_bytes..range.end.div_ceil(unit_bytes));
            }
            active.awaited.iter().for_each(|unit| reader.want(*unit, now.now_ns));
        }
        None
    }

    fn end(&mut self, place: usize, outcome: Result<(), ReadError>, now: Now) {
        let mut active = self.active.remove(place);
        match &mut active.stage {
            Stage::Discovering(discovery) => discovery.abandon(&mut self.shared.flow),
            Stage::Reading(reader) => reader.abandon(&mut self.shared.flow),
        }
        let record = &mut self.records[active.place];
        record.ended_ns = Some(now.now_ns);
        record.error = outcome.err();
        let left = self.shared.flow.in_flight();
        if self.active.is_empty() && left != 0 {
            self.fault = Some(format!("{left} requests are in flight after the last transfer"));
        }
    }

    /// Everybody in turn asks for everything the flow has room for: it divides the room itself.
    fn send(&mut self, now: Now) {
        let count = self.active.len();
        self.turn = (self.turn + 1) % count.max(1);
        for step in 0..count {
            let active = &mut self.active[(self.turn + step) % count];
            loop {
                let mut context = self.shared.context(now);
                let request = match &mut active.stage {
                    Stage::Discovering(discovery) => discovery.poll_request(&mut context),
                    Stage::Reading(reader) => reader.poll_request(&mut context),
                };
                let Some(request) = request else { break };
                self.sent_count += 1;
                self.out.push_back(interest(&request, &mut self.random));
            }
        }
    }

    fn take_data(&mut self, data: &Data<'_>, is_marked: bool, now: Now) {
        let Consumer { active, requests, records, shared, scratch, fault, .. } = self;
        let mut context = shared.context(now);
        // All of them: two may wait for the same certificate.
        for one in active {
            let Active { place, stage, awaited, .. } = one;
            match stage {
                Stage::Discovering(discovery) => _ = discovery.handle_data(data, &mut context),
                Stage::Reading(reader) => {
                    let (record, seed) = (&mut records[*place], requests[*place].file.seed);
                    let unit_bytes = reader.granule_bytes();
                    reader.handle_data(data, is_marked, &mut context, &mut |offset, octets| {
                        record.first_ns.get_or_insert(now.now_ns);
                        record.bytes += octets.len() as u64;
                        if let Some(bytes) = unit_bytes.filter(|_| !awaited.is_empty()) {
                            let end = (offset + octets.len() as u64).div_ceil(bytes);
                            (offset / bytes..end).for_each(|unit| _ = awaited.remove(&unit));
                        }
                        scratch.resize(octets.len(), 0);
                        content(seed, offset, scratch);
                        if scratch != octets {
                            let name = &requests[*place].file.name;
                            let text = format!("octets of {name} from {offset} on are wrong");
                            fault.get_or_insert(text);
                        }
                    });
                }
            }
        }
    }

    fn take_nack(&mut self, interest: &Interest<'_>, reason: u64, now: Now) {
        let Consumer { active, shared, .. } = self;
        let mut context = shared.context(now);
        let (name, kind) = (interest.name, NackKind::of(interest, reason));
        for one in active {
            match &mut one.stage {
                Stage::Discovering(discovery) => discovery.handle_nack(name, kind, &mut context),
                Stage::Reading(reader) => reader.handle_nack(name, kind, &mut context),
            }
        }
    }
}

/// The reader of a part: of pieces, nothing is asked for before they are named.
fn reader(plan: ObjectPlan, part: &Part) -> Reader {
    match part {
        Part::Whole => Reader::new(plan, Selection::All, FetchConfig::default()),
        Part::Vectors(_) => {
            let config = FetchConfig { class: Class::Prompt, ..FetchConfig::default() };
            let mut reader = Reader::new(plan, Selection::Bytes(0..0), config);
            reader.keep_nodes(NODES_MAX);
            reader
        }
    }
}

impl Program for Consumer {
    fn handle_frame(&mut self, frame: &[u8], now: Now) {
        let Ok(link) = LpPacket::decode(frame) else { return };
        let Some(packet) = link.fragment else { return };
        match (Packet::decode(packet), link.header.nack) {
            (Ok(Packet::Data(data)), None) => {
                self.take_data(&data, link.header.congestion_mark.is_some(), now);
            }
            (Ok(Packet::Interest(interest)), Some(reason)) => {
                self.take_nack(&interest, reason, now);
            }
            _ => {}
        }
        self.step(now);
    }

    fn handle_timeout(&mut self, now: Now) {
        let mut context = self.shared.context(now);
        for one in &mut self.active {
            match &mut one.stage {
                Stage::Discovering(discovery) => discovery.handle_timeout(&mut context),
                Stage::Reading(reader) => reader.handle_timeout(&mut context),
            }
        }
        self.step(now);
    }

    fn poll_frame(&mut self, _now: Now) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    fn poll_timeout(&mut self) -> Option<u64> {
        let may_begin = self.active.len() < self.parallel_max;
        let start_ns = self.requests.get(self.next).map(|next| next.start_ns);
        let flow = &self.shared.flow;
        let engines = self.active.iter_mut().filter_map(|one| match &mut one.stage {
            Stage::Discovering(discovery) => discovery.poll_deadline(flow),
            Stage::Reading(reader) => reader.poll_deadline(flow),
        });
        let waiting = engines.min();
        let held = flow.poll_deadline().filter(|_| !self.active.is_empty());
        [start_ns.filter(|_| may_begin), waiting, held].into_iter().flatten().min()
    }

    fn fault(&self) -> Option<String> {
        self.fault.clone()
    }
}
