//! A reader of a site's files: the production engines of every client. What it finds goes into the
//! history, and every octet has to be of the content that was described.

use std::collections::VecDeque;

use byname_packet::lp::LpPacket;
use byname_packet::{Data, Interest, Name, NameRef, Packet};
use byname_security::tree::Tree;
use byname_security::trust::{TrustPolicy, Validator};
use byname_transfer::congestion::{Congestion, WINDOW_MAX};
use byname_transfer::discovery::{Discovered, Discovery, DiscoveryConfig};
use byname_transfer::error::ReadError;
use byname_transfer::fetch::NackKind;
use byname_transfer::flow::Flow;
use byname_transfer::metadata::ContentRoot;
use byname_transfer::numbers::METADATA_KEYWORD;
use byname_transfer::reader::ObjectPlan;
use byname_transfer::request::Context;
use byname_transfer::versions::VersionMemory;

use super::fetching::Fetching;
use super::history::{Kind, Outcome};
use super::record::SharedRecord;
use super::writer::path;
use crate::program::{Now, Program};
use crate::programs::interest;
use crate::random::Random;
use crate::world::{MS, SECOND};

/// Stores between a head and a reader: of the head's host, of the hub, of the reader's host.
const STORES: u64 = 3;
/// Time since a head said it for which a description may be taken for a fresh one: 1 s for each
/// store (docs/semantics.md, "How old an answer can be"), and what it takes to come.
const STALE_NS: u64 = STORES * SECOND + 500 * MS;

enum Stage {
    Pausing(u64),
    Discovering(Box<Discovery>),
    Reading { fetching: Box<Fetching>, root: [u8; 32], octets: Vec<u8> },
}

/// See the module.
pub struct SiteReader {
    prefix: Name,
    stage: Stage,
    /// Paths to read, each after a pause.
    steps: VecDeque<(u8, u64)>,
    current: (u8, u64),
    /// When a head said last what came about the current path.
    said_ns: u64,
    /// Whatever cannot be read now is a broken promise.
    is_calm: bool,
    flow: Flow,
    validator: Validator,
    versions: VersionMemory,
    record: SharedRecord,
    random: Random,
    out: VecDeque<Vec<u8>>,
    fault: Option<String>,
}

impl SiteReader {
    pub(super) fn new(
        prefix: &Name,
        trust: TrustPolicy,
        (record, steps): (SharedRecord, VecDeque<(u8, u64)>),
        seed: u64,
    ) -> Self {
        Self {
            prefix: prefix.clone(),
            stage: Stage::Pausing(0),
            steps,
            current: (0, 0),
            said_ns: 0,
            is_calm: false,
            flow: Flow::new(Congestion::default().controller(WINDOW_MAX), seed),
            validator: Validator::new(trust),
            versions: VersionMemory::default(),
            record,
            random: Random::new(seed),
            out: VecDeque::new(),
            fault: None,
        }
    }

    /// True if nothing is left to read.
    pub fn is_done(&self) -> bool {
        self.steps.is_empty() && matches!(self.stage, Stage::Pausing(_))
    }

    /// The network is well again: everything has to be readable.
    pub fn read_in_calm(&mut self, paths: impl Iterator<Item = u8>) {
        self.is_calm = true;
        self.steps.extend(paths.map(|path| (path, 2 * SECOND)));
    }

    fn step(&mut self, now: Now) {
        if let Stage::Pausing(at_ns) = self.stage
            && at_ns <= now.now_ns
            && let Some((number, _)) = self.steps.pop_front()
        {
            self.current = (number, now.now_ns);
            let path = path(number);
            let entries = path.split('/').map(str::as_bytes);
            let name = entries.fold(self.prefix.clone(), |name, entry| name.with_generic(entry));
            let discovery = Discovery::new(name, DiscoveryConfig::default(), now.now_ns);
            self.stage = Stage::Discovering(Box::new(discovery));
        }
        let Self { stage, flow, .. } = self;
        if let Stage::Discovering(discovery) = stage
            && let Some(outcome) = discovery.poll_outcome()
        {
            discovery.abandon(flow);
            self.described(outcome, now);
        }
        if let Stage::Reading { fetching, octets, .. } = &mut self.stage {
            while let Some(more) = fetching.poll_octets() {
                octets.extend(more);
            }
            if let Some(outcome) = fetching.outcome() {
                self.read(outcome, now);
            }
        }
        self.send(now);
    }

    /// Notes what a path was said to be.
    fn described(&mut self, outcome: Result<Discovered, ReadError>, now: Now) {
        let (path, from_ns) = self.current;
        let found = match &outcome {
            Ok(found) => match found.metadata.root {
                ContentRoot::Known(root) => Some(root),
                _ => return self.fail("a file has a root", now),
            },
            Err(ReadError::NotFound { .. }) => None,
            Err(error) => return self.fail(&error.to_string(), now),
        };
        let content = found.map(|root| self.record.borrow().contents.get(&root).copied());
        let content = match content {
            Some(None) => {
                self.fault = Some("a file has a content that nobody wrote".to_owned());
                return;
            }
            Some(known) => known,
            None => None,
        };
        if outcome.as_ref().map_or(true, |found| found.is_fresh) {
            if self.said_ns.saturating_add(STALE_NS) < from_ns {
                let age_ms = (from_ns - self.said_ns) / MS;
                let what = format!("a description taken for a fresh one is {age_ms} ms old");
                self.fault = Some(what);
            }
            let record = &mut *self.record.borrow_mut();
            let number = record.begin(Kind::Read { path, content }, self.said_ns);
            if let Some(Some(operation)) = record.operations.get_mut(number) {
                (operation.outcome, operation.until_ns) = (Outcome::Done, now.now_ns);
            }
        }
        match (outcome, found) {
            (Ok(found), Some(root)) => match ObjectPlan::new(&found.metadata, false) {
                Ok(plan) => {
                    let fetching = Box::new(Fetching::new(plan, self.random.draw()));
                    self.stage = Stage::Reading { fetching, root, octets: Vec::new() };
                }
                Err(error) => self.fail(&error.to_string(), now),
            },
            _ => self.pause(now),
        }
    }

    fn read(&mut self, outcome: Result<(), ReadError>, now: Now) {
        let Stage::Reading { root, octets, .. } = &self.stage else { return };
        match outcome {
            Ok(()) if Tree::of(octets).root.as_bytes() != root => {
                self.fault = Some("a file has other octets than were described".to_owned());
            }
            Ok(()) => {
                self.record.borrow_mut().reads[0] += 1;
                self.pause(now);
            }
            Err(error) => self.fail(&error.to_string(), now),
        }
    }

    fn fail(&mut self, why: &str, now: Now) {
        self.record.borrow_mut().reads[1] += 1;
        if self.is_calm {
            let name = path(self.current.0);
            self.fault = Some(format!("every file of the site can be read: {name}: {why}"));
        }
        self.pause(now);
    }

    fn pause(&mut self, now: Now) {
        let pause_ns = self.steps.front().map_or(0, |(_, pause_ns)| *pause_ns);
        self.stage = Stage::Pausing(now.now_ns + pause_ns);
    }

    fn send(&mut self, now: Now) {
        let Self { stage, flow, validator, versions, out, random, .. } = self;
        match stage {
            Stage::Pausing(_) => {}
            Stage::Discovering(discovery) => {
                let (now_ns, unix_ns) = (now.now_ns, now.unix_ns);
                let mut context = Context { now_ns, unix_ns, flow, validator, versions };
                while let Some(request) = discovery.poll_request(&mut context) {
                    out.push_back(interest(&request, random));
                }
            }
            Stage::Reading { fetching, .. } => {
                while let Some(wire) = fetching.poll_interest(random, now) {
                    out.push_back(wire);
                }
            }
        }
    }
}

/// True for the name of a description, and not of a certificate that leads to its key.
fn is_description(name: NameRef<'_>) -> bool {
    name.components().any(|component| component.is_keyword(METADATA_KEYWORD))
}

impl Program for SiteReader {
    fn handle_frame(&mut self, frame: &[u8], now: Now) {
        let Ok(link) = LpPacket::decode(frame) else { return };
        let Self { stage, flow, validator, versions, .. } = self;
        let (now_ns, unix_ns) = (now.now_ns, now.unix_ns);
        let mut context = Context { now_ns, unix_ns, flow, validator, versions };
        match (stage, link.fragment.map(Packet::decode), link.header.nack) {
            (Stage::Reading { fetching, .. }, ..) => fetching.handle_frame(&link, now),
            (Stage::Discovering(it), Some(Ok(Packet::Data(data))), None) => {
                let data: Data<'_> = data;
                let said_ns = self.record.borrow().said.get(data.wire()).copied();
                if it.handle_data(&data, &mut context) && is_description(data.name) {
                    self.said_ns = said_ns.unwrap_or(0);
                }
            }
            (Stage::Discovering(it), Some(Ok(Packet::Interest(asked))), Some(reason)) => {
                let Interest { name, .. } = asked;
                it.handle_nack(name, NackKind::from_reason(reason), &mut context);
            }
            _ => {}
        }
        self.step(now);
    }

    fn handle_timeout(&mut self, now: Now) {
        let Self { stage, flow, validator, versions, .. } = self;
        let (now_ns, unix_ns) = (now.now_ns, now.unix_ns);
        let mut context = Context { now_ns, unix_ns, flow, validator, versions };
        match stage {
            Stage::Discovering(discovery) => discovery.handle_timeout(&mut context),
            Stage::Reading { fetching, .. } => fetching.handle_timeout(now),
            Stage::Pausing(_) => {}
        }
        self.step(now);
    }

    fn poll_frame(&mut self, _now: Now) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    fn poll_timeout(&mut self) -> Option<u64> {
        match &mut self.stage {
            Stage::Pausing(at_ns) => (!self.steps.is_empty()).then_some(*at_ns),
            Stage::Discovering(discovery) => {
                let own = discovery.poll_deadline(&self.flow);
                own.into_iter().chain(self.flow.poll_deadline()).min()
            }
            Stage::Reading { fetching, .. } => fetching.poll_timeout(),
        }
    }

    fn fault(&self) -> Option<String> {
        let fetching = match &self.stage {
            Stage::Reading { fetching, .. } => fetching.fault(),
            _ => None,
        };
        self.fault.clone().or(fetching)
    }
}
