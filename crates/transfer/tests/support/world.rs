//! A client that discovers names in virtual time, one request after the other.

use byname_packet::{Data, Interest, InterestBuilder, Name};
use byname_security::trust::{TrustPolicy, Validator};
use byname_transfer::discovery::{Discovered, Discovery, DiscoveryConfig};
use byname_transfer::error::ReadError;
use byname_transfer::fetch::NackKind;
use byname_transfer::flow::Flow;
use byname_transfer::freshness::Freshness;
use byname_transfer::request::{Context, Request};
use byname_transfer::versions::VersionMemory;

use crate::publisher::{Publisher, Reply, UNIX_NS};

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000 * MS;
/// Time that an answer is in flight.
pub const DELAY: u64 = MS;

pub struct World {
    pub now_ns: u64,
    /// Wall clock at `now_ns` 0.
    pub unix_ns: u64,
    pub flow: Flow,
    pub validator: Validator,
    pub versions: VersionMemory,
    /// Discovery requests: whether they wanted something fresh, and when.
    pub asked: Vec<(bool, u64)>,
    /// True if each Nack comes twice, as if the Interest had been sent again meanwhile.
    pub repeats_nacks: bool,
}

impl World {
    pub fn trusting(publisher: &Publisher) -> Self {
        let mut policy = TrustPolicy::default();
        policy.add_anchor(publisher.prefix.clone(), publisher.key_id());
        World {
            now_ns: 0,
            unix_ns: UNIX_NS,
            flow: Flow::default(),
            validator: Validator::new(policy),
            versions: VersionMemory::default(),
            asked: Vec::new(),
            repeats_nacks: false,
        }
    }

    fn context(&mut self) -> Context<'_> {
        Context {
            now_ns: self.now_ns,
            unix_ns: self.unix_ns + self.now_ns,
            flow: &mut self.flow,
            validator: &mut self.validator,
            versions: &mut self.versions,
        }
    }

    pub fn discover(
        &mut self,
        name: &Name,
        freshness: Freshness,
        answer: &mut dyn FnMut(&Request, &Interest<'_>) -> Reply,
    ) -> Result<Discovered, ReadError> {
        let config = DiscoveryConfig { freshness, ..DiscoveryConfig::default() };
        self.run(Discovery::new(name.clone(), config, self.now_ns), answer)
    }

    pub fn run(
        &mut self,
        mut discovery: Discovery,
        answer: &mut dyn FnMut(&Request, &Interest<'_>) -> Reply,
    ) -> Result<Discovered, ReadError> {
        let mut in_flight: Vec<(u64, Request, Reply)> = Vec::new();
        loop {
            while let Some(request) = discovery.poll_request(&mut self.context()) {
                let last = request.name.view().last().expect("a name");
                if last.is_keyword(b"metadata") {
                    self.asked.push((request.must_be_fresh, self.now_ns));
                }
                let wire = encoded(&request);
                let interest = Interest::decode(&wire).expect("well-formed");
                let reply = answer(&request, &interest);
                if let (Reply::Nack(_), true) = (&reply, self.repeats_nacks) {
                    in_flight.push((self.now_ns + DELAY * 3 / 2, request.clone(), reply.clone()));
                }
                in_flight.push((self.now_ns + DELAY, request, reply));
            }
            if let Some(outcome) = discovery.poll_outcome() {
                discovery.abandon(&mut self.flow);
                assert_eq!(self.flow.in_flight(), 0, "every request is accounted for once");
                return outcome;
            }
            in_flight.retain(|(_, _, reply)| *reply != Reply::Silence);
            let arrival = in_flight.iter().map(|(at, ..)| *at).min();
            let deadline = discovery.poll_deadline(&self.flow);
            let next = [arrival, deadline].into_iter().flatten().min();
            self.now_ns = self.now_ns.max(next.expect("it waits for something"));
            let now_ns = self.now_ns;
            for (_, request, reply) in in_flight.extract_if(.., |(at, ..)| *at <= now_ns) {
                match reply {
                    Reply::Data(wire) => {
                        let data = Data::decode(&wire).expect("well-formed");
                        discovery.handle_data(&data, &mut self.context());
                    }
                    Reply::Nack(reason) => {
                        let wire = encoded(&request);
                        let interest = Interest::decode(&wire).expect("well-formed");
                        let kind = NackKind::of(&interest, reason);
                        discovery.handle_nack(interest.name, kind, &mut self.context());
                    }
                    Reply::Silence => {}
                }
            }
            discovery.handle_timeout(&mut self.context());
        }
    }
}

fn encoded(request: &Request) -> Vec<u8> {
    let mut wire = Vec::new();
    InterestBuilder::new(request.name.view())
        .can_be_prefix(request.can_be_prefix)
        .must_be_fresh(request.must_be_fresh)
        .encode(&mut wire);
    wire
}
