//! The client's engines against a publisher, in virtual time and over a bad network.

#[allow(dead_code, unreachable_pub)]
#[path = "support/publisher.rs"]
mod publisher;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use byname_packet::lp::nack_reason;
use byname_packet::{Data, Interest, InterestBuilder, Name, NameRef};
use byname_security::trust::{TrustError, TrustPolicy, Validator};
use byname_transfer::discovery::{Discovered, Discovery, DiscoveryConfig};
use byname_transfer::error::{ProtocolProblem, ReadError};
use byname_transfer::fetch::{FetchConfig, NackKind};
use byname_transfer::flow::Flow;
use byname_transfer::metadata::{Absence, ContentRoot};
use byname_transfer::reader::{ObjectPlan, Reader, SPECULATIVE_MAX, Selection};
use byname_transfer::request::{Context, Request};
use byname_transfer::versions::VersionMemory;

use publisher::{Publisher, Reply, UNIX_NS, flip_content_bit, sample};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// Treatment of a reply by the network: when it comes (perhaps twice, perhaps never), and how.
type Network<'a> = dyn FnMut(&Interest<'_>, Reply) -> (Reply, Vec<u64>) + 'a;

struct World {
    now_ns: u64,
    flow: Flow,
    validator: Validator,
    versions: VersionMemory,
    /// (arrival, number, Interest's name, reply)
    arrivals: BinaryHeap<Reverse<(u64, u64)>>,
    replies: Vec<(Name, Reply)>,
    request_count: u64,
}

enum Engine<'a> {
    Discovery(&'a mut Discovery),
    Reader(&'a mut Reader, &'a mut Vec<u8>),
}

impl Engine<'_> {
    fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        match self {
            Engine::Discovery(discovery) => discovery.poll_request(context),
            Engine::Reader(reader, _) => reader.poll_request(context),
        }
    }

    fn handle(&mut self, name: NameRef<'_>, reply: &Reply, context: &mut Context<'_>) {
        match (self, reply) {
            (_, Reply::Silence) => {}
            (Engine::Discovery(discovery), Reply::Data(wire)) => {
                let data = Data::decode(wire).expect("well-formed");
                discovery.handle_data(&data, context);
            }
            (Engine::Discovery(discovery), Reply::Nack(reason)) => {
                discovery.handle_nack(name, NackKind::from_reason(*reason), context);
            }
            (Engine::Reader(reader, bytes), Reply::Data(wire)) => {
                let data = Data::decode(wire).expect("well-formed");
                reader.handle_data(&data, false, context, &mut |offset, piece| {
                    let end = offset as usize + piece.len();
                    if bytes.len() < end {
                        bytes.resize(end, 0);
                    }
                    bytes[offset as usize..end].copy_from_slice(piece);
                });
            }
            (Engine::Reader(reader, _), Reply::Nack(reason)) => {
                reader.handle_nack(name, NackKind::from_reason(*reason), context);
            }
        }
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        match self {
            Engine::Discovery(discovery) => discovery.handle_timeout(context),
            Engine::Reader(reader, _) => reader.handle_timeout(context),
        }
    }

    fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        match self {
            Engine::Discovery(discovery) => discovery.poll_deadline(flow),
            Engine::Reader(reader, _) => reader.poll_deadline(flow),
        }
    }
}

impl World {
    fn new(policy: TrustPolicy) -> Self {
        World {
            now_ns: SECOND,
            flow: Flow::default(),
            validator: Validator::new(policy),
            versions: VersionMemory::default(),
            arrivals: BinaryHeap::new(),
            replies: Vec::new(),
            request_count: 0,
        }
    }

    fn trusting(publisher: &Publisher) -> Self {
        let mut policy = TrustPolicy::default();
        policy.add_anchor(publisher.prefix.clone(), publisher.key_id());
        World::new(policy)
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

    /// Sends what there is to send, then goes to the next event.
    fn turn(&mut self, engine: &mut Engine<'_>, publisher: &Publisher, network: &mut Network<'_>) {
        while let Some(request) = engine.poll_request(&mut self.context()) {
            self.request_count += 1;
            let mut wire = Vec::new();
            InterestBuilder::new(request.name.view())
                .can_be_prefix(request.can_be_prefix)
                .must_be_fresh(request.must_be_fresh)
                .encode(&mut wire);
            let interest = Interest::decode(&wire).expect("well-formed");
            let (reply, delays_ns) = network(&interest, publisher.answer(&interest));
            for delay_ns in delays_ns {
                self.arrivals.push(Reverse((self.now_ns + delay_ns, self.replies.len() as u64)));
                self.replies.push((request.name.clone(), reply.clone()));
            }
        }
        let arrival_ns = self.arrivals.peek().map(|Reverse((at, _))| *at);
        let deadline_ns = engine.poll_deadline(&self.flow);
        let flow_ns = self.flow.poll_deadline();
        let next_ns = [arrival_ns, deadline_ns, flow_ns].into_iter().flatten().min();
        self.now_ns = self.now_ns.max(next_ns.expect("an unfinished engine waits for something"));
        while let Some(Reverse((at, number))) = self.arrivals.peek().copied() {
            if at > self.now_ns {
                break;
            }
            self.arrivals.pop();
            let (name, reply) = self.replies[number as usize].clone();
            engine.handle(name.view(), &reply, &mut self.context());
        }
        engine.handle_timeout(&mut self.context());
    }

    fn discover(
        &mut self,
        name: &Name,
        publisher: &Publisher,
        network: &mut Network<'_>,
    ) -> Result<Discovered, ReadError> {
        let config = DiscoveryConfig::default();
        let mut discovery = Discovery::new(name.clone(), config, self.now_ns);
        for _ in 0..100_000 {
            if let Some(outcome) = discovery.poll_outcome() {
                discovery.abandon(&mut self.flow);
                assert_eq!(self.flow.in_flight(), 0);
                return outcome;
            }
            self.turn(&mut Engine::Discovery(&mut discovery), publisher, network);
        }
        panic!("the discovery does not end");
    }

    fn read(
        &mut self,
        plan: ObjectPlan,
        selection: Selection,
        publisher: &Publisher,
        network: &mut Network<'_>,
    ) -> Result<Vec<u8>, ReadError> {
        self.read_by(Reader::new(plan, selection, FetchConfig::default()), publisher, network)
    }

    fn read_by(
        &mut self,
        mut reader: Reader,
        publisher: &Publisher,
        network: &mut Network<'_>,
    ) -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::new();
        for _ in 0..1_000_000 {
            if let Some(failure) = reader.failure() {
                return Err(failure.clone());
            }
            if reader.is_finished() {
                reader.abandon(&mut self.flow);
                assert_eq!(self.flow.in_flight(), 0, "every request is accounted for once");
                return Ok(bytes);
            }
            self.turn(&mut Engine::Reader(&mut reader, &mut bytes), publisher, network);
        }
        panic!("the reader does not end");
    }

    fn fetch(
        &mut self,
        name: &Name,
        publisher: &Publisher,
        network: &mut Network<'_>,
    ) -> Result<Vec<u8>, ReadError> {
        let discovered = self.discover(name, publisher, network)?;
        let plan = ObjectPlan::new(&discovered.metadata, false)?;
        self.read(plan, Selection::All, publisher, network)
    }
}

fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

fn with_file(size: usize) -> (Publisher, Name) {
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish("f", 1000, &sample(size));
    (publisher, name)
}

fn clean(_: &Interest<'_>, reply: Reply) -> (Reply, Vec<u64>) {
    (reply, vec![MS])
}

#[test]
fn a_bad_network_changes_nothing_but_the_time_it_takes() {
    for seed in 0..12 {
        let size = [0, 1, 8192, 8193, 300_000, 2_500_000][seed as usize % 6];
        let (mut publisher, name) = with_file(size);
        publisher.object_mut(&name).segment_bytes = [8192, 1024, 4096, 5000][seed as usize % 4];
        let mut random = random(seed + 1);
        let mut world = World::trusting(&publisher);
        let bytes = world.fetch(&name, &publisher, &mut |_, reply| match random() % 20 {
            0 => (Reply::Silence, vec![]),
            1 => (Reply::Nack(nack_reason::CONGESTION), vec![2 * MS]),
            2 => (Reply::Nack(nack_reason::DUPLICATE), vec![2 * MS]),
            3 => (reply, vec![MS, 5 * MS, 90 * MS]),
            4 => (reply, vec![random() % (300 * MS)]),
            _ => (reply, vec![MS + random() % (30 * MS)]),
        });
        assert!(bytes.expect("it arrives") == sample(size), "seed {seed}");
    }
}

#[test]
fn nothing_is_asked_for_twice_on_a_good_network() {
    let (publisher, name) = with_file(3_000_000);
    let mut world = World::trusting(&publisher);
    let bytes = world.fetch(&name, &publisher, &mut clean).expect("it arrives");
    assert!(bytes == sample(3_000_000));
    // Description, certificate, 367 segments, two nodes and their parent.
    let tree_requests = 3;
    assert_eq!(world.request_count, 2 + 367 + tree_requests);
}

#[test]
fn a_range_asks_for_its_units_and_their_nodes_only() {
    let size = 9_000_000;
    let (publisher, name) = with_file(size);
    let mut world = World::trusting(&publisher);
    let discovered = world.discover(&name, &publisher, &mut clean).expect("it is there");
    let plan = ObjectPlan::new(&discovered.metadata, false).expect("a plan");
    let (start, before) = (size - 10_000, world.request_count);
    let selection = Selection::Bytes(start as u64..u64::MAX);
    let bytes = world.read(plan, selection, &publisher, &mut clean).expect("it arrives");
    assert!(bytes[start..] == sample(size)[start..]);
    assert_eq!(world.request_count - before, 2 + 2, "two units, a node and its parent");
}

/// Reads an object as who wants it whole.
fn read_whole(
    (publisher, name): &(Publisher, Name),
    network: &mut Network<'_>,
) -> (Result<Vec<u8>, ReadError>, u64) {
    let mut world = World::trusting(publisher);
    let discovered = world.discover(name, publisher, &mut clean).expect("it is there");
    let plan = ObjectPlan::new(&discovered.metadata, false).expect("a plan");
    let mut reader = Reader::new(plan, Selection::All, FetchConfig::default());
    reader.verify_whole();
    let before = world.request_count;
    (world.read_by(reader, publisher, network), world.request_count - before)
}

#[test]
fn whoever_wants_a_small_object_whole_asks_for_its_segments_only() {
    for (size, requests) in [(8192, 1), (8193, 2), (65_536, 8), (131_072, 16), (131_073, 17 + 1)] {
        let (bytes, request_count) = read_whole(&with_file(size), &mut clean);
        assert!(bytes.expect("it arrives") == sample(size));
        assert_eq!(request_count, requests, "{size} octets");
    }
}

#[test]
fn an_object_that_is_wanted_whole_arrives_over_any_network_that_others_do() {
    let mut spoilt_count = 0;
    for seed in 0..12 {
        let size = [8193, 65_536, 131_072][seed as usize % 3];
        let mut file = with_file(size);
        let name = file.1.clone();
        file.0.object_mut(&name).segment_bytes = [8192, 1024, 5000][seed as usize / 3 % 3];
        let (mut random, mut spoilt) = (random(seed + 1), 0);
        let (bytes, _) = read_whole(&file, &mut |_, reply| match (random() % 20, reply) {
            (0, _) => (Reply::Silence, vec![]),
            (1, _) => (Reply::Nack(nack_reason::CONGESTION), vec![2 * MS]),
            // Each of the first few packets may be somebody else's.
            (2..=6, Reply::Data(mut wire)) if spoilt < 3 => {
                spoilt += 1;
                let middle = wire.len() / 2;
                wire[middle] ^= 1;
                (Reply::Data(wire), vec![MS])
            }
            (_, reply) => (reply, vec![MS + random() % (30 * MS)]),
        });
        assert!(bytes.expect("it arrives") == sample(size), "seed {seed}");
        spoilt_count += spoilt;
    }
    assert!(spoilt_count > 6, "{spoilt_count} packets were somebody else's");
}

#[test]
fn an_object_that_is_wanted_whole_and_is_another_is_refused() {
    let (bytes, _) = read_whole(&with_file(65_536), &mut |interest, reply| match reply {
        Reply::Data(mut wire) if interest.name.last().and_then(|it| it.segment()) == Some(3) => {
            let middle = wire.len() / 2;
            wire[middle] ^= 1;
            (Reply::Data(wire), vec![MS])
        }
        reply => (reply, vec![MS]),
    });
    assert!(matches!(bytes, Err(ReadError::BadUnit { unit: 3, .. })), "{bytes:?}");
}

#[test]
fn any_altered_packet_is_refused_or_harmless() {
    // Every request in turn has a bit of its answer flipped, always the same one.
    let (publisher, name) = with_file(40_000);
    for victim in 0..9u64 {
        for at in [0, 31, 4_000] {
            let mut world = World::trusting(&publisher);
            let mut names: Vec<Name> = Vec::new();
            let result = world.fetch(&name, &publisher, &mut |interest, reply| {
                let place = names.iter().position(|name| name.view() == interest.name);
                let place = place.unwrap_or_else(|| {
                    names.push(interest.name.to_name());
                    names.len() - 1
                });
                match reply {
                    Reply::Data(mut wire) if place as u64 == victim => {
                        flip_content_bit(&mut wire, at);
                        (Reply::Data(wire), vec![MS])
                    }
                    other => (other, vec![MS]),
                }
            });
            match result {
                Ok(bytes) => {
                    assert!(bytes == sample(40_000));
                    assert!(names.len() as u64 <= victim, "the victim was never asked for");
                }
                Err(error) => assert_eq!(
                    error.class(),
                    byname_transfer::error::ErrorClass::Corrupt,
                    "{victim} {at}: {error}"
                ),
            }
        }
    }
}

#[test]
fn what_the_network_spoils_now_and_then_arrives_all_the_same() {
    // Of twenty packets the first three that come have a flipped bit: description, certificate,
    // tree and content alike.
    let size = 2_500_000;
    let (publisher, name) = with_file(size);
    let mut world = World::trusting(&publisher);
    let mut spoiled: HashMap<Name, usize> = HashMap::new();
    let bytes = world.fetch(&name, &publisher, &mut |interest, reply| {
        let count = spoiled.entry(interest.name.to_name()).or_default();
        *count += 1;
        let is_spoiled = *count <= 3;
        match reply {
            Reply::Data(mut wire) if is_spoiled && spoiled.len() <= 20 => {
                flip_content_bit(&mut wire, 31);
                (Reply::Data(wire), vec![MS])
            }
            other => (other, vec![MS]),
        }
    });
    assert!(bytes.expect("it arrives") == sample(size));
}

#[test]
fn times_are_kept() {
    let (publisher, name) = with_file(10_000);
    let mut world = World::trusting(&publisher);
    let begin_ns = world.now_ns;
    let mut no_route = |_: &Interest<'_>, _| (Reply::Nack(nack_reason::NO_ROUTE), vec![MS]);
    let error = world.discover(&name, &publisher, &mut no_route).expect_err("no route");
    assert!(matches!(error, ReadError::NoRoute { .. }));
    assert!(world.now_ns - begin_ns < SECOND, "no route fails within a second");
    let begin_ns = world.now_ns;
    let mut silent = |_: &Interest<'_>, reply| (reply, vec![]);
    let error = world.discover(&name, &publisher, &mut silent).expect_err("silence");
    assert!(matches!(error, ReadError::TimeOut { .. }));
    assert_eq!(world.now_ns - begin_ns, 15 * SECOND);
}

#[test]
fn a_stale_copy_in_a_cache_is_outlasted_but_a_replay_is_not() {
    let (mut publisher, name) = with_file(100);
    let mut world = World::trusting(&publisher);
    assert_eq!(world.discover(&name, &publisher, &mut clean).expect("there").version, 1000);
    publisher.publish("f", 2000, &sample(100));
    assert_eq!(world.discover(&name, &publisher, &mut clean).expect("there").version, 2000);
    let (old, _) = with_file(100);
    let mut asked = 0;
    let discovered = world.discover(&name, &publisher, &mut |interest, reply| {
        asked += 1;
        (if asked == 1 { old.answer(interest) } else { reply }, vec![MS])
    });
    assert_eq!(discovered.expect("the cache forgets").version, 2000);
    let error = world.discover(&name, &old, &mut clean).expect_err("a replay");
    assert!(matches!(error, ReadError::RolledBack { seen: 2000, got: 1000, .. }), "{error}");
}

#[test]
fn waiting_ends_in_an_error_of_its_own() {
    let (mut publisher, name) = with_file(100);
    publisher.object_mut(&name).absence = Some(Absence::BeingWritten { retry_ms: 100 });
    let mut world = World::trusting(&publisher);
    let begin_ns = world.now_ns;
    let error = world.discover(&name, &publisher, &mut clean).expect_err("never done");
    assert!(matches!(error, ReadError::BeingWritten { .. }));
    assert!((60 * SECOND..62 * SECOND).contains(&(world.now_ns - begin_ns)));
    publisher.object_mut(&name).absence = None;
    publisher.object_mut(&name).root = ContentRoot::Pending;
    let error = world.discover(&name, &publisher, &mut clean).expect_err("never hashed");
    assert!(matches!(error, ReadError::RootPending { .. }));
}

#[test]
fn what_is_asked_for_ahead_is_handed_out_when_it_is_trusted_and_bounded_until_then() {
    let size = 3_000_000;
    let (publisher, name) = with_file(size);
    let mut world = World::trusting(&publisher);
    let mut discovery = Discovery::new(name, DiscoveryConfig::default(), world.now_ns);
    assert_eq!(discovery.unverified(), None);
    world.turn(&mut Engine::Discovery(&mut discovery), &publisher, &mut clean);
    let announced = discovery.unverified().expect("its certificate is not here");
    let plan = ObjectPlan::new(&announced, false).expect("a plan");
    let mut reader = Reader::speculative(plan.clone(), FetchConfig::default());
    let (mut bytes, before) = (Vec::new(), world.request_count);
    world.turn(&mut Engine::Reader(&mut reader, &mut bytes), &publisher, &mut clean);
    while world.flow.in_flight() > 0 {
        world.turn(&mut Engine::Reader(&mut reader, &mut bytes), &publisher, &mut clean);
    }
    let nodes = 3;
    assert!(
        world.request_count - before <= SPECULATIVE_MAX as u64 + nodes,
        "{}",
        world.request_count
    );
    assert!(bytes.is_empty() && !reader.is_finished());
    while discovery.poll_outcome().is_none() {
        world.turn(&mut Engine::Discovery(&mut discovery), &publisher, &mut clean);
    }
    assert_eq!(discovery.unverified(), None);
    reader.trust(&mut world.context(), &mut |offset, piece| {
        bytes.resize(bytes.len().max(offset as usize + piece.len()), 0);
        bytes[offset as usize..][..piece.len()].copy_from_slice(piece);
    });
    assert!(!bytes.is_empty() && bytes == sample(size)[..bytes.len()]);
    while !reader.is_finished() {
        world.turn(&mut Engine::Reader(&mut reader, &mut bytes), &publisher, &mut clean);
    }
    assert!(bytes == sample(size));
    assert_eq!(world.request_count, 2 + 367 + nodes, "nothing is asked for twice");
}

#[test]
fn a_certificate_that_is_none_is_refused() {
    let (publisher, name) = with_file(100);
    let mut world = World::trusting(&publisher);
    let error = world.discover(&name, &publisher, &mut |interest, reply| {
        let is_certificate = interest.name.get(1).is_some_and(|it| it.value == b"KEY");
        if !is_certificate {
            return (reply, vec![MS]);
        }
        let name = publisher.signer_name();
        let mut wire = Vec::new();
        byname_packet::DataBuilder::new(name.view())
            .encode(b"no key", &byname_packet::DigestSigner, &mut wire)
            .expect("it can be encoded");
        (Reply::Data(wire), vec![MS])
    });
    let error = error.expect_err("no certificate");
    assert!(matches!(error, ReadError::Trust(TrustError::MalformedCertificate { .. })), "{error}");
}

#[test]
fn a_publisher_cannot_spoil_the_versions_of_names_that_are_not_its_own() {
    let (mut publisher, name) = with_file(100);
    publisher.is_foreign = true;
    publisher.announces = Some("/other/f".parse().expect("a name"));
    let mut world = World::trusting(&publisher);
    world.discover(&name, &publisher, &mut clean).expect("content may lie elsewhere");
    let known: Vec<_> = world.versions.iter().map(|it| it.name.clone()).collect();
    assert_eq!(known, [name]);
}

#[test]
fn a_publisher_that_contradicts_itself_about_the_end_is_refused() {
    // With a root the signed size decides; without one there is only what the packets say.
    let (mut publisher, name) = with_file(100_000);
    publisher.is_foreign = true;
    publisher.signs_segments = true;
    let mut world = World::trusting(&publisher);
    let mut grown = Publisher::new("/lab", 1);
    grown.signs_segments = true;
    grown.publish("f", 1000, &sample(500_000));
    let result = world.fetch(&name, &publisher, &mut |interest, reply| {
        let segment = interest.name.last().and_then(|last| last.segment());
        let reply = if segment == Some(3) { grown.answer(interest) } else { reply };
        (reply, vec![MS])
    });
    let error = result.expect_err("which one is it?");
    assert!(
        matches!(error, ReadError::Protocol { problem: ProtocolProblem::EndMoved, .. }),
        "{error}"
    );
}
