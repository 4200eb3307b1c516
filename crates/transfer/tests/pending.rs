//! Reading a file whose root the publisher still computes: nodes that are signed one by one, the
//! moment when the root is there, and whoever would like to be taken for the publisher meanwhile.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic like tests")]

#[allow(dead_code, unreachable_pub)]
#[path = "support/publisher.rs"]
mod publisher;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use byname_packet::{Data, Interest, InterestBuilder, Name, NameRef};
use byname_security::key::HmacSigner;
use byname_security::trust::{TrustPolicy, Validator};
use byname_transfer::congestion::{Congestion, WINDOW_MAX};
use byname_transfer::discovery::{Discovered, Discovery, DiscoveryConfig};
use byname_transfer::error::{ErrorClass, ReadError};
use byname_transfer::fetch::{FetchConfig, NackKind};
use byname_transfer::flow::Flow;
use byname_transfer::metadata::{ContentRoot, Metadata};
use byname_transfer::naming::{self, Part};
use byname_transfer::reader::{ObjectPlan, Proof, Reader, Selection};
use byname_transfer::request::{Context, Request};
use byname_transfer::server::{
    FileState, Fingerprint, Handle, Octets, SegmentSigner, SignSegment, sign_segment,
};
use byname_transfer::versions::VersionMemory;
use proptest::prelude::*;

use publisher::{Publisher, Reply, UNIX_NS, flip_content_bit, sample};

const MS: u64 = 1_000_000;
/// Three nodes and a bit of the fourth; two levels.
const SIZE: usize = 6_400_000;

type Answers<'a> = dyn FnMut(&Interest<'_>) -> Reply + 'a;

/// A network that takes a millisecond and forgets nothing.
struct World {
    now_ns: u64,
    flow: Flow,
    validator: Validator,
    versions: VersionMemory,
    in_flight: VecDeque<(u64, Name, Reply)>,
    /// Number of requests by name.
    asked: HashMap<Name, u32>,
}

impl World {
    fn trusting(publisher: &Publisher) -> Self {
        let mut policy = TrustPolicy::default();
        policy.add_anchor(publisher.prefix.clone(), publisher.key_id());
        World {
            now_ns: MS,
            flow: Flow::default(),
            validator: Validator::new(policy),
            versions: VersionMemory::default(),
            in_flight: VecDeque::new(),
            asked: HashMap::new(),
        }
    }

    fn context(&mut self) -> Context<'_> {
        Context {
            now_ns: self.now_ns,
            unix_ns: UNIX_NS,
            flow: &mut self.flow,
            validator: &mut self.validator,
            versions: &mut self.versions,
        }
    }

    fn send(&mut self, request: Request, answers: &mut Answers<'_>) {
        let mut wire = Vec::new();
        InterestBuilder::new(request.name.view())
            .can_be_prefix(request.can_be_prefix)
            .must_be_fresh(request.must_be_fresh)
            .encode(&mut wire);
        let reply = answers(&Interest::decode(&wire).unwrap());
        *self.asked.entry(request.name.clone()).or_default() += 1;
        self.in_flight.push_back((self.now_ns + MS, request.name, reply));
    }

    /// Goes to the next arrival or deadline; what arrived, if anything did.
    fn next(&mut self, deadline_ns: Option<u64>) -> Option<(Name, Reply)> {
        let arrival_ns = self.in_flight.front().map(|(at, ..)| *at);
        let next_ns = [arrival_ns, deadline_ns].into_iter().flatten().min();
        self.now_ns = self.now_ns.max(next_ns.expect("something is waited for"));
        let is_there = arrival_ns.is_some_and(|at| at <= self.now_ns);
        let (_, name, reply) = is_there.then(|| self.in_flight.pop_front()).flatten()?;
        Some((name, reply))
    }

    fn discover(&mut self, name: &Name, answers: &mut Answers<'_>) -> Discovered {
        let config = DiscoveryConfig { takes_pending: true, ..DiscoveryConfig::default() };
        let mut discovery = Discovery::new(name.clone(), config, self.now_ns);
        loop {
            if let Some(outcome) = discovery.poll_outcome() {
                return outcome.unwrap();
            }
            while let Some(request) = discovery.poll_request(&mut self.context()) {
                self.send(request, answers);
            }
            let deadline_ns = discovery.poll_deadline(&self.flow);
            match self.next(deadline_ns) {
                Some((_, Reply::Data(wire))) => {
                    discovery.handle_data(&Data::decode(&wire).unwrap(), &mut self.context());
                }
                Some((name, Reply::Nack(reason))) => {
                    let kind = NackKind::from_reason(reason);
                    discovery.handle_nack(name.view(), kind, &mut self.context());
                }
                _ => discovery.handle_timeout(&mut self.context()),
            }
        }
    }

    /// Reads until it ends, or for `turns` at most.
    fn read(&mut self, reader: &mut Reader, answers: &mut Answers<'_>, turns: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..turns {
            if reader.failure().is_some() || reader.is_finished() {
                break;
            }
            while let Some(request) = reader.poll_request(&mut self.context()) {
                self.send(request, answers);
            }
            let deadline_ns = reader.poll_deadline(&self.flow);
            match self.next(deadline_ns) {
                Some((_, Reply::Data(wire))) => {
                    let data = Data::decode(&wire).unwrap();
                    reader.handle_data(&data, false, &mut self.context(), &mut |offset, piece| {
                        let end = offset as usize + piece.len();
                        bytes.resize(bytes.len().max(end), 0);
                        bytes[offset as usize..end].copy_from_slice(piece);
                    });
                }
                Some((name, Reply::Nack(reason))) => {
                    let kind = NackKind::from_reason(reason);
                    reader.handle_nack(name.view(), kind, &mut self.context());
                }
                _ => reader.handle_timeout(&mut self.context()),
            }
        }
        reader.abandon(&mut self.flow);
        bytes
    }

    fn asked_for(&self, part: Part, versioned: NameRef<'_>) -> u32 {
        let parent = naming::part_name(versioned, part);
        let all =
            self.asked.iter().filter(|(name, _)| name.view().without_last(1) == parent.view());
        all.map(|(_, count)| count).sum()
    }
}

/// A publisher before and after it has computed the root of one file.
fn before_and_after() -> (Publisher, Publisher, Name) {
    before_and_after_with(&sample(SIZE))
}

fn before_and_after_with(content: &[u8]) -> (Publisher, Publisher, Name) {
    let [mut before, mut after] = [(); 2].map(|()| Publisher::new("/lab", 1));
    let name = before.publish("f", 1000, content);
    after.publish("f", 1000, content);
    before.object_mut(&name).root = ContentRoot::Pending;
    (before, after, name)
}

fn begin(world: &mut World, name: &Name, answers: &mut Answers<'_>) -> Reader {
    begin_with(world, name, Selection::All, answers)
}

fn begin_with(
    world: &mut World,
    name: &Name,
    selection: Selection,
    answers: &mut Answers<'_>,
) -> Reader {
    let discovered = world.discover(name, answers);
    let plan = ObjectPlan::new(&discovered.metadata, false).unwrap();
    assert!(matches!(plan.proof, Proof::Pending { .. }));
    Reader::new(plan, selection, FetchConfig::default())
}

#[test]
fn a_file_is_read_whole_while_its_root_is_not_known() {
    let (before, _, name) = before_and_after();
    let mut world = World::trusting(&before);
    let mut answers = |interest: &Interest<'_>| before.answer(interest);
    let mut reader = begin(&mut world, &name, &mut answers);
    let versioned = reader.plan().name.clone();
    let bytes = world.read(&mut reader, &mut answers, 100_000);
    assert!(bytes == sample(SIZE) && reader.is_root_pending());
    assert_eq!(world.asked_for(Part::Tree(1), versioned.view()), 4);
    assert_eq!(world.asked_for(Part::Tree(2), versioned.view()), 0, "nobody knows them yet");
    assert_eq!(world.asked_for(Part::Content, versioned.view()), (SIZE as u32).div_ceil(8192));
}

#[test]
fn a_range_of_a_pending_file_takes_one_node() {
    let (before, _, name) = before_and_after();
    let mut world = World::trusting(&before);
    let mut answers = |interest: &Interest<'_>| before.answer(interest);
    let range = Selection::Bytes(3_000_000..3_000_001);
    let mut reader = begin_with(&mut world, &name, range, &mut answers);
    let versioned = reader.plan().name.clone();
    let bytes = world.read(&mut reader, &mut answers, 1000);
    assert_eq!(bytes[3_000_000], sample(SIZE)[3_000_000]);
    assert_eq!(world.asked_for(Part::Tree(1), versioned.view()), 1);
    assert_eq!(world.asked_for(Part::Content, versioned.view()), 1);
}

#[test]
fn when_the_root_is_there_the_reader_goes_on_with_what_it_has() {
    for nodes_signed in 0..4 {
        let (before, after, name) = before_and_after();
        let mut world = World::trusting(&before);
        let mut nodes = 0;
        let mut answers = |interest: &Interest<'_>| {
            let parsed = naming::parse(interest.name);
            let is_node = parsed.is_some_and(|parsed| {
                matches!(parsed.request, naming::Request::Segment { part: Part::Tree(_), .. })
            });
            let is_after = nodes >= nodes_signed && (is_node || nodes > nodes_signed);
            nodes += u32::from(is_node);
            if is_after { after.answer(interest) } else { before.answer(interest) }
        };
        let mut reader = begin(&mut world, &name, &mut answers);
        let versioned = reader.plan().name.clone();
        let bytes = world.read(&mut reader, &mut answers, 100_000);
        assert!(reader.failure().is_none(), "{nodes_signed}: {:?}", reader.failure());
        assert!(bytes == sample(SIZE), "{nodes_signed}");
        let settled = reader.settled().expect("it has found the root");
        assert!(matches!(settled.metadata.root, ContentRoot::Known(_)));
        assert_eq!(world.asked_for(Part::Content, versioned.view()), (SIZE as u32).div_ceil(8192));
    }
}

#[test]
fn any_number_of_nodes_may_come_unsigned_before_the_root_is_told() {
    // A fast reader prefetches more nodes than it keeps when signing ends.
    let content = vec![0; 330 << 20];
    let (before, after, name) = before_and_after_with(&content);
    let mut world = World::trusting(&before);
    world.flow = Flow::new(Congestion::Fixed(WINDOW_MAX).controller(WINDOW_MAX), 0);
    let (mut nodes, mut descriptions) = (0, 0);
    let mut answers = |interest: &Interest<'_>| match naming::parse(interest.name) {
        Some(parsed) if matches!(parsed.request, naming::Request::Segment { .. }) => {
            nodes += u32::from(interest.name.to_string().contains("32=tree-1"));
            if nodes < 80 { before.answer(interest) } else { after.answer(interest) }
        }
        _ => {
            descriptions += 1;
            if descriptions < 6 { before.answer(interest) } else { after.answer(interest) }
        }
    };
    let mut reader = begin(&mut world, &name, &mut answers);
    let bytes = world.read(&mut reader, &mut answers, 1_000_000);
    assert!(reader.failure().is_none(), "{:?}", reader.failure());
    assert!(bytes == content);
}

/// The publisher is away; a cache has nodes from after its root was there, and the description from
/// before.
#[test]
fn an_older_description_without_root_is_no_answer_while_the_publisher_is_away() {
    let (before, after, name) = before_and_after();
    let mut world = World::trusting(&before);
    let (mut is_away, mut older) = (false, 0);
    let mut answers = |interest: &Interest<'_>| match naming::parse(interest.name) {
        Some(parsed) if matches!(parsed.request, naming::Request::Segment { .. }) => {
            is_away = true;
            after.answer(interest)
        }
        _ if !is_away => before.answer(interest),
        _ if older >= 8 => after.answer(interest),
        _ if interest.must_be_fresh => Reply::Silence,
        _ => {
            older += 1;
            before.answer(interest)
        }
    };
    let discovered = world.discover(&name, &mut answers);
    let plan = ObjectPlan::new(&discovered.metadata, false).unwrap();
    let mut reader = Reader::new(plan, Selection::All, FetchConfig::default().begun());
    let bytes = world.read(&mut reader, &mut answers, 100_000);
    assert!(reader.failure().is_none(), "{:?}", reader.failure());
    assert!(bytes == sample(SIZE));
}

#[test]
fn an_unsigned_node_proves_nothing_while_the_root_is_not_known() {
    let (before, _, name) = before_and_after();
    let mut liar = Publisher::new("/lab", 9);
    liar.publish("f", 1000, &vec![7; SIZE]);
    let mut world = World::trusting(&before);
    let mut answers = |interest: &Interest<'_>| match naming::parse(interest.name) {
        Some(parsed) if matches!(parsed.request, naming::Request::Segment { .. }) => {
            liar.answer(interest)
        }
        _ => before.answer(interest),
    };
    let mut reader = begin(&mut world, &name, &mut answers);
    let bytes = world.read(&mut reader, &mut answers, 100_000);
    assert!(bytes.is_empty());
    let error = reader.failure().expect("it gives up");
    assert_eq!(error.class(), ErrorClass::Corrupt, "{error}");
}

#[test]
fn a_node_signed_by_somebody_else_is_refused() {
    let (before, _, name) = before_and_after();
    let mut liar = Publisher::new("/lab", 9);
    liar.publish("f", 1000, &vec![7; SIZE]);
    liar.object_mut(&name).root = ContentRoot::Pending;
    let mut world = World::trusting(&before);
    let mut answers = |interest: &Interest<'_>| match naming::parse(interest.name) {
        Some(parsed) if matches!(parsed.request, naming::Request::Segment { .. }) => {
            liar.answer(interest)
        }
        Some(_) => before.answer(interest),
        None => match before.answer(interest) {
            Reply::Silence => liar.answer(interest),
            reply => reply,
        },
    };
    let mut reader = begin(&mut world, &name, &mut answers);
    let bytes = world.read(&mut reader, &mut answers, 100_000);
    assert!(bytes.is_empty());
    let error = reader.failure().expect("it gives up");
    assert!(matches!(error, ReadError::Trust(_)), "{error}");
}

#[test]
fn a_file_that_changed_when_its_root_is_there_is_gone() {
    let (before, mut after, name) = before_and_after();
    after.publish("f", 2000, &sample(SIZE));
    let mut world = World::trusting(&before);
    let mut is_found = false;
    let mut answers = |interest: &Interest<'_>| {
        let parsed = naming::parse(interest.name).map(|parsed| parsed.request);
        match (parsed, before.answer(interest)) {
            // It signs no more, because it has a root: of another version.
            (Some(naming::Request::Segment { part: Part::Tree(1), .. }), Reply::Data(_)) => {
                is_found = true;
                let mut unsigned = Publisher::new("/lab", 1);
                unsigned.publish("f", 1000, &sample(SIZE));
                unsigned.answer(interest)
            }
            (Some(naming::Request::Metadata { .. }), _) if is_found => after.answer(interest),
            (_, reply) => reply,
        }
    };
    let mut reader = begin(&mut world, &name, &mut answers);
    world.read(&mut reader, &mut answers, 100_000);
    assert!(matches!(reader.failure(), Some(ReadError::VersionGone { .. })));
}

fn golden(name: &str, field: &str) -> Vec<u8> {
    let text = include_str!("../../../vectors/tree/pending.json");
    let vectors: Vec<serde_json::Value> = serde_json::from_str(text).unwrap();
    let vector = vectors.iter().find(|vector| vector["name"] == name).unwrap();
    let hex = vector[field].as_str().unwrap();
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn what_is_said_before_the_root_is_known_is_as_specified() {
    let octets = golden("metadata without the root", "hex");
    let metadata = Metadata::decode(&octets).unwrap();
    assert_eq!((metadata.root, metadata.size), (ContentRoot::Pending, Some(8193)));
    let mut again = Vec::new();
    metadata.encode(&mut again);
    assert_eq!(again, octets);

    let node = "a level-1 segment signed with HMAC";
    let secret = golden(node, "secret");
    let signer = HmacSigner::new(&secret, "/KEY/1".parse().unwrap());
    let name: Name = "/f/v=5/32=tree-1/seg=0".parse().unwrap();
    let order = SignSegment {
        source: Handle(0),
        state: FileState { fingerprint: Fingerprint::new([1; 16], [2; 24]), size: 8193 },
        octets: Octets::Values { offset: 0, len: 64 },
        name: name.view().value().to_vec(),
        last_segment: 0,
        signer: SegmentSigner(Arc::new(signer)),
    };
    let packet = sign_segment(&order, &golden(node, "values")).unwrap();
    assert_eq!(packet, golden(node, "hex"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever bit of whatever packet is always wrong: nothing false is handed out.
    #[test]
    fn no_flipped_bit_is_handed_out(victim in 0usize..40, at in 0usize..8192 * 8) {
        let (before, _, name) = before_and_after();
        let mut world = World::trusting(&before);
        let mut names: Vec<Name> = Vec::new();
        let mut answers = |interest: &Interest<'_>| {
            let place = names.iter().position(|name| name.view() == interest.name);
            let place = place.unwrap_or_else(|| {
                names.push(interest.name.to_name());
                names.len() - 1
            });
            let is_segment = interest.name.last().is_some_and(|last| last.segment().is_some());
            match before.answer(interest) {
                Reply::Data(mut wire) if place == victim && is_segment => {
                    flip_content_bit(&mut wire, at);
                    Reply::Data(wire)
                }
                reply => reply,
            }
        };
        let range = Selection::Bytes(0..400_000);
        let mut reader = begin_with(&mut world, &name, range, &mut answers);
        let bytes = world.read(&mut reader, &mut answers, 20_000);
        for (unit, piece) in bytes.chunks(8192).enumerate() {
            let start = unit * 8192;
            let is_absent = piece.iter().all(|octet| *octet == 0);
            prop_assert!(is_absent || piece == &sample(SIZE)[start..start + piece.len()]);
        }
        if let Some(error) = reader.failure() {
            prop_assert_eq!(error.class(), ErrorClass::Corrupt, "{}", error);
        }
    }
}
