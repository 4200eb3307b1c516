//! A reader of one file: the production engines of the client, with a flow of its own.
//!
//! Every octet that is handed out is compared with what was published. A difference is a fault of
//! the code under test, whatever the network did.

use std::collections::VecDeque;

use byname_packet::lp::LpPacket;
use byname_packet::{Data, Name, Packet};
use byname_security::key::KeyId;
use byname_security::trust::{TrustPolicy, Validator};
use byname_transfer::congestion::{Congestion, WINDOW_MAX};
use byname_transfer::discovery::{Discovery, DiscoveryConfig};
use byname_transfer::error::ReadError;
use byname_transfer::fetch::{FetchConfig, NackKind};
use byname_transfer::flow::Flow;
use byname_transfer::reader::{ObjectPlan, Reader, Selection};
use byname_transfer::request::Context;
use byname_transfer::sharing::PROMPT_RESERVE;
use byname_transfer::versions::{NAMES_MAX, VersionMemory};

use crate::disk::content;
use crate::program::{Now, Program};
use crate::programs::interest;
use crate::random::Random;

/// Name to read, key to trust, and content expected.
#[derive(Clone, Debug)]
pub struct DownloadOrder {
    /// Published name of the file.
    pub name: Name,
    /// Prefix and key of its publisher.
    pub anchor: (Name, KeyId),
    /// Seeds of the file's octets, one for each version that may be seen.
    pub seeds: Vec<u64>,
    /// Congestion control.
    pub congestion: Congestion,
    /// When to begin.
    pub start_ns: u64,
}

enum Stage {
    Waiting,
    Discovering(Box<Discovery>),
    Reading(Box<Reader>),
    Done(Result<(), ReadError>),
}

/// See the module.
pub struct Download {
    order: DownloadOrder,
    stage: Stage,
    flow: Flow,
    validator: Validator,
    versions: VersionMemory,
    random: Random,
    out: VecDeque<Vec<u8>>,
    /// Of the seeds, those that explain everything handed out so far.
    candidates: Vec<u64>,
    bytes: u64,
    version: Option<u64>,
    /// The newest version that ever was read or begun.
    newest: u64,
    finished_ns: Option<u64>,
    fault: Option<String>,
}

impl Download {
    /// Will carry out an order.
    pub fn new(order: DownloadOrder, random_seed: u64) -> Self {
        let mut policy = TrustPolicy::default();
        policy.add_anchor(order.anchor.0.clone(), order.anchor.1);
        Download {
            stage: Stage::Waiting,
            flow: Flow::new(order.congestion.controller(WINDOW_MAX), random_seed),
            validator: Validator::new(policy),
            versions: VersionMemory::default(),
            random: Random::new(random_seed),
            out: VecDeque::new(),
            candidates: order.seeds.clone(),
            bytes: 0,
            version: None,
            newest: 0,
            finished_ns: None,
            fault: None,
            order,
        }
    }

    /// Forgets how it ended and what it read, but not which versions it saw, and reads again at a
    /// time. [`World::wake`](crate::World::wake) makes it notice.
    pub fn begin_again(&mut self, start_ns: u64) {
        self.stage = Stage::Waiting;
        self.order.start_ns = start_ns;
        self.candidates.clone_from(&self.order.seeds);
        (self.bytes, self.version, self.finished_ns) = (0, None, None);
    }

    /// When it begins or began.
    pub fn start_ns(&self) -> u64 {
        self.order.start_ns
    }

    /// The outcome, if it has ended.
    pub fn outcome(&self) -> Option<&Result<(), ReadError>> {
        match &self.stage {
            Stage::Done(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// When it ended.
    pub fn finished_ns(&self) -> Option<u64> {
        self.finished_ns
    }

    /// Octets handed out.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The version that was read.
    pub fn version(&self) -> Option<u64> {
        self.version
    }

    /// Window of the flow, in segments.
    pub fn window(&self) -> usize {
        self.flow.window()
    }

    fn step(&mut self, now: Now) {
        if matches!(self.stage, Stage::Waiting) && now.now_ns >= self.order.start_ns {
            self.discover(now);
        }
        if let Stage::Discovering(discovery) = &mut self.stage
            && let Some(outcome) = discovery.poll_outcome()
        {
            discovery.abandon(&mut self.flow);
            match outcome {
                Ok(found) => {
                    if found.version < self.newest {
                        let (older, newest) = (found.version, self.newest);
                        self.fault = Some(format!("version {older} after version {newest}"));
                    }
                    self.newest = self.newest.max(found.version);
                    self.version = Some(found.version);
                    match ObjectPlan::new(&found.metadata, false) {
                        Ok(plan) => {
                            let config = FetchConfig::default();
                            let reader = Reader::new(plan, Selection::All, config);
                            self.stage = Stage::Reading(Box::new(reader));
                        }
                        Err(error) => self.end(Err(error), now),
                    }
                }
                Err(error) => self.end(Err(error), now),
            }
        }
        if let Stage::Reading(reader) = &mut self.stage {
            let outcome = match reader.failure() {
                Some(failure) => Err(failure.clone()),
                None if reader.is_finished() => Ok(()),
                None => return self.send(now),
            };
            reader.abandon(&mut self.flow);
            self.end(outcome, now);
        }
        self.send(now);
    }

    fn discover(&mut self, now: Now) {
        let config = DiscoveryConfig { takes_pending: true, ..DiscoveryConfig::default() };
        let discovery = Discovery::new(self.order.name.clone(), config, now.now_ns);
        self.stage = Stage::Discovering(Box::new(discovery));
    }

    fn end(&mut self, outcome: Result<(), ReadError>, now: Now) {
        if self.flow.in_flight() != 0 {
            let left = self.flow.in_flight();
            self.fault = Some(format!("{left} requests are in flight after the end"));
        }
        self.finished_ns = Some(now.now_ns);
        self.stage = Stage::Done(outcome);
    }

    fn send(&mut self, now: Now) {
        let Download { stage, flow, validator, versions, out, random, .. } = self;
        let mut context =
            Context { now_ns: now.now_ns, unix_ns: now.unix_ns, flow, validator, versions };
        loop {
            let request = match stage {
                Stage::Discovering(discovery) => discovery.poll_request(&mut context),
                Stage::Reading(reader) => reader.poll_request(&mut context),
                Stage::Waiting | Stage::Done(_) => None,
            };
            let Some(request) = request else { return };
            out.push_back(interest(&request, random));
        }
    }

    fn take_data(&mut self, data: &Data<'_>, is_marked: bool, now: Now) {
        let Download { stage, flow, validator, versions, candidates, bytes, fault, .. } = self;
        let mut context =
            Context { now_ns: now.now_ns, unix_ns: now.unix_ns, flow, validator, versions };
        match stage {
            Stage::Discovering(discovery) => {
                discovery.handle_data(data, &mut context);
            }
            Stage::Reading(reader) => {
                reader.handle_data(data, is_marked, &mut context, &mut |offset, octets| {
                    *bytes += octets.len() as u64;
                    candidates.retain(|seed| {
                        let mut expected = vec![0; octets.len()];
                        content(*seed, offset, &mut expected);
                        expected == octets
                    });
                    if candidates.is_empty() {
                        let text = format!("octets from {offset} on are of no published version");
                        fault.get_or_insert(text);
                    }
                });
            }
            Stage::Waiting | Stage::Done(_) => {}
        }
    }
}

impl Program for Download {
    fn handle_frame(&mut self, frame: &[u8], now: Now) {
        let Ok(link) = LpPacket::decode(frame) else { return };
        let Some(packet) = link.fragment else { return };
        match (Packet::decode(packet), link.header.nack) {
            (Ok(Packet::Data(data)), None) => {
                self.take_data(&data, link.header.congestion_mark.is_some(), now);
            }
            (Ok(Packet::Interest(interest)), Some(reason)) => {
                let Download { stage, flow, validator, versions, .. } = self;
                let (now_ns, unix_ns) = (now.now_ns, now.unix_ns);
                let mut context = Context { now_ns, unix_ns, flow, validator, versions };
                let (name, kind) = (interest.name, NackKind::of(&interest, reason));
                match stage {
                    Stage::Discovering(it) => it.handle_nack(name, kind, &mut context),
                    Stage::Reading(reader) => reader.handle_nack(name, kind, &mut context),
                    Stage::Waiting | Stage::Done(_) => {}
                }
            }
            _ => {}
        }
        self.step(now);
    }

    fn handle_timeout(&mut self, now: Now) {
        let Download { stage, flow, validator, versions, .. } = self;
        let (now_ns, unix_ns) = (now.now_ns, now.unix_ns);
        let mut context = Context { now_ns, unix_ns, flow, validator, versions };
        match stage {
            Stage::Discovering(discovery) => discovery.handle_timeout(&mut context),
            Stage::Reading(reader) => reader.handle_timeout(&mut context),
            Stage::Waiting | Stage::Done(_) => {}
        }
        self.step(now);
    }

    fn poll_frame(&mut self, _now: Now) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    fn poll_timeout(&mut self) -> Option<u64> {
        let own = match &mut self.stage {
            Stage::Waiting => return Some(self.order.start_ns),
            Stage::Discovering(discovery) => discovery.poll_deadline(&self.flow),
            Stage::Reading(reader) => reader.poll_deadline(&self.flow),
            Stage::Done(_) => return None,
        };
        own.into_iter().chain(self.flow.poll_deadline()).min()
    }

    fn fault(&self) -> Option<String> {
        let in_flight = self.flow.in_flight();
        let reading = match &self.stage {
            Stage::Reading(reader) => reader.overfull(),
            _ => None,
        };
        let own = [
            ("requests in flight", in_flight, WINDOW_MAX + PROMPT_RESERVE),
            ("names with versions", self.versions.name_count(), NAMES_MAX),
        ];
        let full = reading.or_else(|| own.into_iter().find(|(_, held, max)| held > max));
        let told = full.map(|(what, held, max)| {
            format!("tables are bounded: {held} {what} at a reader, allowed are {max}")
        });
        self.fault.clone().or(told)
    }
}
