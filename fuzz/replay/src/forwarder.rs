//! The whole forwarder under a list of operations: packets, time, commands, faces that come and go.
//!
//! A plain ledger stands beside it: who asked for what, with which token and until when. It knows
//! nothing of tables, routes or strategies, only what may never happen: Data or Nacks that nobody
//! waits for, a token of another face, Interests that nobody asked for or that leave the machine
//! although they must not, tables beyond their bounds, packets that lead to nothing and are not
//! counted.

use std::collections::HashMap;

use byname_forwarder::{
    Config, DropReason, FaceFailure, FaceId, FaceInfo, FaceOptions, Forwarder, LinkType, Route, Tx,
    strategy,
};
use byname_packet::lp::{CACHE_POLICY_NO_CACHE, LpHeader};
use byname_packet::mgmt::ControlParameters;
use byname_packet::{Data, DataBuilder, Interest, InterestBuilder, Name, NullSigner};

const MS_NS: u64 = 1_000_000;
const PIT_ENTRIES_MAX: usize = 12;
const CS_ENTRIES_MAX: usize = 6;
const OWN_UID: u32 = 1000;

/// Instances that operations choose among.
const STRATEGIES: [&str; 7] = [
    "best-route",
    "multicast",
    "asf",
    "asf/v=5/probing-interval~10/max-timeouts~1",
    "random",
    "best-route/v=5/retx-suppression-initial~1/retx-suppression-max~2",
    "access",
];

/// Something the forwarder sent.
struct Sent {
    face: FaceId,
    token: Vec<u8>,
    nack: Option<u64>,
    wire: Vec<u8>,
}

#[derive(Default)]
struct Collector(Vec<Sent>);

impl Tx for Collector {
    fn send(&mut self, face: FaceId, header: &LpHeader<'_>, packet: &[u8]) {
        self.0.push(Sent {
            face,
            token: header.pit_token.unwrap_or_default().to_vec(),
            nack: header.nack,
            wire: packet.to_vec(),
        });
    }
}

/// An Interest that a face has sent and that may be answered.
struct Asked {
    face: FaceId,
    token: Vec<u8>,
    wire: Vec<u8>,
    expires_ns: u64,
}

/// Operations not yet read.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn octet(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn octets(&mut self, len: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken.to_vec()
    }

    /// Names of one to four components, few enough to meet again, some of them special.
    fn name(&mut self) -> Name {
        let octet = self.octet();
        let first: &[u8] = match octet & 7 {
            0 => b"localhost",
            1 => b"localhop",
            _ => b"a",
        };
        let mut name = Name::new().with_generic(first);
        for level in 0..(octet >> 3 & 3) {
            name.push_generic(&[octet >> (5 + level % 3) & 1]);
        }
        if octet & 0xC0 == 0xC0 { name.with_segment(u64::from(octet & 0x3F)) } else { name }
    }
}

struct World {
    forwarder: Forwarder,
    faces: Vec<(FaceId, FaceInfo)>,
    down: Vec<FaceId>,
    asked: Vec<Asked>,
    /// Interests of each face that were not answered yet.
    unanswered: HashMap<FaceId, u64>,
    /// The Interests sent last.
    sent_interests: Vec<(FaceId, Vec<u8>)>,
    now_ns: u64,
    returned_drops: u64,
}

/// Properties of a face, by kind.
fn face_info(kind: u8) -> FaceInfo {
    FaceInfo {
        local: kind % 4 < 2,
        peer_uid: (kind.is_multiple_of(4)).then_some(OWN_UID),
        link_type: match kind % 8 {
            3 => LinkType::MultiAccess,
            7 => LinkType::AdHoc,
            _ => LinkType::PointToPoint,
        },
        ..FaceInfo::default()
    }
}

impl World {
    fn new() -> Self {
        let forwarder = Forwarder::new(Config {
            own_uid: OWN_UID,
            pit_entries_max: PIT_ENTRIES_MAX,
            cs_entries_max: CS_ENTRIES_MAX,
            routes_max: 8,
            dead_nonces_max: 16,
            ..Config::default()
        });
        let mut world = Self {
            forwarder,
            faces: Vec::new(),
            down: Vec::new(),
            asked: Vec::new(),
            unanswered: HashMap::new(),
            sent_interests: Vec::new(),
            now_ns: 1_000 * MS_NS,
            returned_drops: 0,
        };
        for kind in [0, 1, 2, 2, 3] {
            world.add_face(kind);
        }
        world
    }

    fn add_face(&mut self, kind: u8) {
        let info = face_info(kind);
        let face = self.forwarder.add_face(info.clone());
        let options = FaceOptions { local_fields: kind % 4 == 1, ..FaceOptions::default() };
        self.forwarder.set_face_options(face, options);
        self.faces.push((face, info));
    }

    fn face(&self, number: u8) -> FaceId {
        self.faces[usize::from(number) % self.faces.len()].0
    }

    fn info(&self, face: FaceId) -> Option<&FaceInfo> {
        self.faces.iter().find(|(known, _)| *known == face).map(|(_, info)| info)
    }

    fn apply(&mut self, input: &mut Input<'_>) {
        let operation = input.octet();
        let face = self.face(input.octet());
        match operation % 12 {
            0..=2 => self.interest(face, input),
            3 | 4 => self.data(face, input),
            5 => self.nack(input),
            6 => self.command(face, input),
            7 => self.wait(u64::from(input.octet()) * MS_NS),
            8 => self.route(face, input),
            9 => self.change_face(face, input),
            10 => {
                let chosen = STRATEGIES[usize::from(input.octet()) % STRATEGIES.len()];
                let name = format!("/localhost/nfd/strategy/{chosen}");
                let name: Name = name.parse().expect("a constant name");
                let chosen = strategy::by_name(name.view()).expect("a known strategy");
                self.forwarder.set_strategy(&input.name(), chosen);
            }
            _ => {
                let len = usize::from(input.octet());
                let octets = input.octets(len);
                self.packet(face, &LpHeader::default(), &octets);
            }
        }
    }

    fn interest(&mut self, face: FaceId, input: &mut Input<'_>) {
        let (name, flags, nonce) = (input.name(), input.octet(), input.octet());
        let token_len = usize::from(flags >> 5);
        let token = input.octets(token_len);
        let hint = [input.name()];
        let mut builder = InterestBuilder::new(name.view())
            .can_be_prefix(flags & 1 != 0)
            .must_be_fresh(flags & 2 != 0)
            .nonce([nonce & 15; 4])
            .lifetime_ms(u64::from(nonce >> 4) * 40);
        if flags & 4 != 0 {
            builder = builder.hop_limit(nonce & 3);
        }
        if flags & 24 == 24 {
            builder = builder.forwarding_hint(&hint);
        }
        let mut wire = Vec::new();
        builder.encode(&mut wire);
        let next_hop = (flags & 24 == 8).then(|| self.face(nonce).0);
        let header = LpHeader {
            pit_token: (!token.is_empty()).then_some(&token[..]),
            next_hop_face_id: next_hop,
            ..LpHeader::default()
        };
        self.packet(face, &header, &wire);
    }

    fn data(&mut self, face: FaceId, input: &mut Input<'_>) {
        let (name, flags) = (input.name(), input.octet());
        let mut wire = Vec::new();
        DataBuilder::new(name.view())
            .freshness_ms(u64::from(flags & 7) * 20)
            .encode(&[flags], &NullSigner, &mut wire)
            .expect("the Null signature cannot fail");
        let cache_policy = (flags & 0x80 != 0).then_some(CACHE_POLICY_NO_CACHE);
        self.packet(face, &LpHeader { cache_policy, ..LpHeader::default() }, &wire);
    }

    /// A Nack to an Interest that was sent, from the face it was sent to or from another.
    fn nack(&mut self, input: &mut Input<'_>) {
        let choice = input.octet();
        let Some((face, wire)) = self.sent_interests.iter().rev().nth(usize::from(choice & 3))
        else {
            return;
        };
        let (face, wire) = (*face, wire.clone());
        let face = if choice & 0x80 != 0 { self.face(choice >> 3) } else { face };
        let header = LpHeader { nack: Some(u64::from(choice & 0x70)), ..LpHeader::default() };
        self.packet(face, &header, &wire);
    }

    fn command(&mut self, face: FaceId, input: &mut Input<'_>) {
        let verbs = [
            "rib/register",
            "rib/unregister",
            "strategy-choice/set",
            "strategy-choice/unset",
            "cs/config",
            "cs/erase",
            "faces/create",
            "faces/update",
            "faces/destroy",
            "fib/add-nexthop",
        ];
        let choice = input.octet();
        let verb = verbs[usize::from(choice) % verbs.len()];
        let prefix = if choice & 0x80 != 0 { "/localhop/nfd/" } else { "/localhost/nfd/" };
        let number = input.octet();
        let parameters = ControlParameters {
            name: Some(input.name()),
            face_id: (number & 1 != 0).then(|| self.face(number >> 1).0),
            cost: (number & 2 != 0).then_some(u64::from(number)),
            capacity: (number & 4 != 0).then_some(u64::from(number % 7)),
            flags: (number & 8 != 0).then_some(u64::from(number >> 4)),
            mask: (number & 8 != 0).then_some(u64::from(number & 7)),
            uri: (number & 16 != 0).then(|| String::from("udp4://192.0.2.1:6363")),
            expiration_period_ms: (number & 32 != 0).then_some(u64::from(number)),
            ..ControlParameters::default()
        };
        let mut octets = Vec::new();
        parameters.encode(&mut octets);
        let name: Name = format!("{prefix}{verb}").parse().expect("a constant name");
        let signed = (0..4u8).fold(name.with_generic(&octets), |name, n| name.with_generic(&[n]));
        let mut wire = Vec::new();
        InterestBuilder::new(signed.view()).nonce([number; 4]).encode(&mut wire);
        self.packet(face, &LpHeader::default(), &wire);
        let mut out = Collector::default();
        while let Some((id, _)) = self.forwarder.poll_request() {
            let outcome = Err(FaceFailure::Failed(String::from("no links here")));
            self.forwarder.complete_request(id, outcome, self.now_ns, &mut out);
        }
        self.check(out);
    }

    fn route(&mut self, face: FaceId, input: &mut Input<'_>) {
        let (prefix, choice) = (input.name(), input.octet());
        if choice & 0x80 != 0 {
            self.forwarder.remove_route(&prefix, face, 0);
            return;
        }
        let route = Route {
            face,
            origin: 0,
            cost: u64::from(choice & 15),
            flags: u64::from(choice >> 4 & 3),
            expires_ns: (choice & 0x40 != 0).then(|| self.now_ns + 100 * MS_NS),
        };
        // A full table is one of the things to be seen.
        let _ = self.forwarder.add_route(&prefix, route);
    }

    fn change_face(&mut self, face: FaceId, input: &mut Input<'_>) {
        let choice = input.octet();
        match choice & 3 {
            0 => {
                self.forwarder.remove_face(face);
                self.faces.retain(|(known, _)| *known != face);
                self.add_face(choice >> 2);
            }
            1 => {
                self.forwarder.set_face_up(face, true);
                self.down.retain(|known| *known != face);
            }
            _ => {
                self.forwarder.set_face_up(face, false);
                self.down.push(face);
            }
        }
    }

    fn wait(&mut self, ns: u64) {
        self.now_ns += ns;
        let mut out = Collector::default();
        self.forwarder.handle_timeout(self.now_ns, &mut out);
        self.check(out);
        let now_ns = self.now_ns;
        self.asked.retain(|asked| asked.expires_ns > now_ns);
    }

    fn packet(&mut self, face: FaceId, header: &LpHeader<'_>, wire: &[u8]) {
        if let (Ok(interest), None) = (Interest::decode(wire), header.nack) {
            *self.unanswered.entry(face).or_default() += 1;
            self.asked.push(Asked {
                face,
                token: header.pit_token.unwrap_or_default().to_vec(),
                wire: wire.to_vec(),
                expires_ns: self.now_ns + interest.lifetime_ms_or_default() * MS_NS + 1,
            });
        }
        let mut out = Collector::default();
        let dropped = self.forwarder.handle_packet(face, header, wire, self.now_ns, &mut out);
        self.returned_drops += u64::from(dropped.is_some());
        self.check(out);
    }

    fn check(&mut self, out: Collector) {
        for sent in out.0 {
            let info =
                self.info(sent.face).expect("nothing is sent to a face that is gone").clone();
            match (Data::decode(&sent.wire), Interest::decode(&sent.wire), sent.nack) {
                (Ok(data), _, None) => self.check_answer(&sent, |interest| interest.matches(&data)),
                (_, Ok(nacked), Some(_)) => {
                    assert_eq!(info.link_type, LinkType::PointToPoint, "Nacks have one addressee");
                    self.check_answer(&sent, |interest| interest.name == nacked.name);
                }
                (_, Ok(interest), None) => {
                    assert!(!self.down.contains(&sent.face), "sent over a lost link");
                    self.check_forwarded(&sent, &interest, &info);
                    self.sent_interests.push((sent.face, sent.wire.clone()));
                }
                _ => panic!("what is sent is a packet"),
            }
        }
        self.check_bounds();
    }

    /// Data and Nacks go to who asked, with the token that came with it, at most one for each time
    /// it did. (Which of several Interests is answered is the forwarder's affair.)
    fn check_answer(&mut self, sent: &Sent, answers: impl Fn(&Interest<'_>) -> bool) {
        let is_wanted = self.asked.iter().any(|asked| {
            let interest = Interest::decode(&asked.wire).expect("it was decoded before");
            asked.face == sent.face
                && asked.token == sent.token
                && asked.expires_ns > self.now_ns
                && answers(&interest)
        });
        assert!(is_wanted, "nobody on this face asks for it with this token");
        let left = self.unanswered.get_mut(&sent.face).filter(|left| **left > 0);
        *left.expect("there are more answers than there were Interests") -= 1;
    }

    fn check_forwarded(&self, sent: &Sent, interest: &Interest<'_>, info: &FaceInfo) {
        assert!(interest.nonce.is_some());
        let local = Name::new().with_generic(b"localhost");
        let is_for_here = local.view().is_prefix_of(interest.name);
        assert!(info.local || !is_for_here, "this name must not leave the machine");
        assert!(info.local || interest.hop_limit != Some(0), "it has no hop left");
        let is_it = |asked: &Asked| {
            let wanted = Interest::decode(&asked.wire).expect("it was decoded before");
            wanted.name == interest.name && asked.expires_ns > self.now_ns
        };
        assert!(self.asked.iter().any(is_it), "nobody asks for it");
        assert!(sent.token.is_empty(), "a token stays on its link");
    }

    fn check_bounds(&self) {
        assert!(self.forwarder.pending_count() <= PIT_ENTRIES_MAX);
        let counters = self.forwarder.counters();
        let counted: u64 = DropReason::ALL
            .into_iter()
            .filter(|reason| *reason != DropReason::PitShed)
            .map(|reason| counters.drops(reason))
            .sum();
        assert_eq!(counted, self.returned_drops, "each packet dropped is counted once");
        let satisfied = counters.satisfied_interests + counters.unsatisfied_interests;
        assert!(satisfied + self.forwarder.pending_count() as u64 <= counters.in_interests);
    }
}

/// Operations as octets: which, on which face, and what it needs.
pub(crate) fn forwarder(input: &[u8]) {
    let mut world = World::new();
    let mut input = Input(input);
    while !input.0.is_empty() {
        world.apply(&mut input);
    }
    // All lifetimes end, and then nothing is left to be done for them.
    world.wait(11_000 * MS_NS);
    assert_eq!(world.forwarder.pending_count(), 0, "everything ends");
}
