//! A forwarder on a test bench: packets are put in by hand, what it sends is collected.

use byname_packet::lp::LpHeader;
use byname_packet::{Data, DataBuilder, Interest, InterestBuilder, Name, NullSigner};

use crate::config::Config;
use crate::counters::DropReason;
use crate::face::{FaceFailure, FaceId, FaceInfo, RequestId};
use crate::forwarder::Forwarder;
use crate::rib::Route;
use crate::tx::Tx;

pub(crate) const MS: u64 = 1_000_000;

pub(crate) fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

/// A packet the forwarder sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) face: FaceId,
    pub(crate) token: Option<Vec<u8>>,
    pub(crate) nack: Option<u64>,
    pub(crate) congestion_mark: Option<u64>,
    pub(crate) cache_policy: Option<u64>,
    pub(crate) incoming_face_id: Option<u64>,
    pub(crate) path_trace: Option<Vec<u8>>,
    pub(crate) not_fresh: bool,
    pub(crate) wire: Vec<u8>,
}

impl Sent {
    pub(crate) fn interest(&self) -> Interest<'_> {
        Interest::decode(&self.wire).unwrap()
    }

    pub(crate) fn data(&self) -> Data<'_> {
        Data::decode(&self.wire).unwrap()
    }
}

#[derive(Default)]
struct Collector(Vec<Sent>);

impl Tx for Collector {
    fn send(&mut self, face: FaceId, header: &LpHeader<'_>, packet: &[u8]) {
        self.0.push(Sent {
            face,
            token: header.pit_token.map(<[u8]>::to_vec),
            nack: header.nack,
            congestion_mark: header.congestion_mark,
            cache_policy: header.cache_policy,
            incoming_face_id: header.incoming_face_id,
            path_trace: header.path_trace.map(<[u8]>::to_vec),
            not_fresh: header.not_fresh,
            wire: packet.to_vec(),
        });
    }
}

pub(crate) struct Bench {
    pub(crate) forwarder: Forwarder,
    pub(crate) now_ns: u64,
    pub(crate) last_drop: Option<DropReason>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(Config::default())
    }

    pub(crate) fn with(config: Config) -> Self {
        let config = Config { own_uid: 1000, ..config };
        Self { forwarder: Forwarder::new(config), now_ns: 1_000 * MS, last_drop: None }
    }

    /// A face of our user's Unix socket.
    pub(crate) fn local(&mut self) -> FaceId {
        self.forwarder.add_face(FaceInfo {
            local: true,
            peer_uid: Some(1000),
            ..FaceInfo::default()
        })
    }

    pub(crate) fn remote(&mut self) -> FaceId {
        self.forwarder.add_face(FaceInfo::default())
    }

    pub(crate) fn route(&mut self, prefix: &str, face: FaceId, cost: u64) {
        let route = Route { face, origin: 0, cost, flags: 1, expires_ns: None };
        self.forwarder.add_route(&name(prefix), route).unwrap();
    }

    pub(crate) fn packet(
        &mut self,
        face: FaceId,
        header: &LpHeader<'_>,
        packet: &[u8],
    ) -> Vec<Sent> {
        let mut out = Collector::default();
        self.last_drop = self.forwarder.handle_packet(face, header, packet, self.now_ns, &mut out);
        out.0
    }

    pub(crate) fn interest(&mut self, face: FaceId, uri: &str, nonce: u8) -> Vec<Sent> {
        self.interest_with(face, uri, nonce, |interest| interest)
    }

    pub(crate) fn interest_with(
        &mut self,
        face: FaceId,
        uri: &str,
        nonce: u8,
        adjust: impl FnOnce(InterestBuilder<'_>) -> InterestBuilder<'_>,
    ) -> Vec<Sent> {
        let (name, mut wire) = (name(uri), Vec::new());
        adjust(InterestBuilder::new(name.view()).nonce([nonce; 4])).encode(&mut wire);
        self.packet(face, &LpHeader::default(), &wire)
    }

    pub(crate) fn interest_with_token(
        &mut self,
        face: FaceId,
        uri: &str,
        nonce: u8,
        token: &[u8],
    ) -> Vec<Sent> {
        let (name, mut wire) = (name(uri), Vec::new());
        InterestBuilder::new(name.view()).nonce([nonce; 4]).encode(&mut wire);
        self.packet(face, &LpHeader { pit_token: Some(token), ..LpHeader::default() }, &wire)
    }

    pub(crate) fn interest_hinted(
        &mut self,
        face: FaceId,
        uri: &str,
        nonce: u8,
        hint: &[&str],
    ) -> Vec<Sent> {
        let hint: Vec<Name> = hint.iter().map(|uri| name(uri)).collect();
        let (name, mut wire) = (name(uri), Vec::new());
        let interest = InterestBuilder::new(name.view()).nonce([nonce; 4]);
        interest.forwarding_hint(&hint).encode(&mut wire);
        self.packet(face, &LpHeader::default(), &wire)
    }

    pub(crate) fn data(&mut self, face: FaceId, uri: &str, freshness_ms: u64) -> Vec<Sent> {
        let wire = data(uri, freshness_ms);
        self.packet(face, &LpHeader::default(), &wire)
    }

    pub(crate) fn nack(&mut self, face: FaceId, interest: &[u8], reason: u64) -> Vec<Sent> {
        self.packet(face, &LpHeader { nack: Some(reason), ..LpHeader::default() }, interest)
    }

    pub(crate) fn wait_ms(&mut self, ms: u64) {
        self.wait_until(self.now_ns + ms * MS);
    }

    pub(crate) fn wait_until(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        let mut out = Collector::default();
        self.forwarder.handle_timeout(self.now_ns, &mut out);
        assert_eq!(out.0, []);
    }
}

/// Packets that the forwarder sends on its own account.
impl Bench {
    /// Lets time pass; what is sent when it has.
    pub(crate) fn after_ms(&mut self, ms: u64) -> Vec<Sent> {
        self.now_ns += ms * MS;
        let mut out = Collector::default();
        self.forwarder.handle_timeout(self.now_ns, &mut out);
        out.0
    }

    /// The driver reports on a request.
    pub(crate) fn complete(
        &mut self,
        id: RequestId,
        outcome: Result<FaceId, FaceFailure>,
    ) -> Vec<Sent> {
        let mut out = Collector::default();
        self.forwarder.complete_request(id, outcome, self.now_ns, &mut out);
        out.0
    }
}

pub(crate) fn data(uri: &str, freshness_ms: u64) -> Vec<u8> {
    let (name, mut wire) = (name(uri), Vec::new());
    DataBuilder::new(name.view())
        .freshness_ms(freshness_ms)
        .encode(b"content", &NullSigner, &mut wire)
        .unwrap();
    wire
}

/// The faces packets were sent to.
pub(crate) fn faces(sent: &[Sent]) -> Vec<FaceId> {
    sent.iter().map(|sent| sent.face).collect()
}
