//! Which certificates are asked for, how many, and which ones lead to an anchor.

use std::sync::Arc;

use byname_packet::{DataBuilder, ValidityPeriod};
use byname_security::cert::{Certificate, CertificateRequest};
use byname_security::key::{KeyPair, KeySigner};
use byname_security::trust::{TrustPolicy, Validator};

use super::*;
use crate::versions::VersionMemory;

const UNIX_NS: u64 = 1_800_000_000_000_000_000;

struct World {
    key: Arc<KeyPair>,
    flow: Flow,
    validator: Validator,
    versions: VersionMemory,
}

impl World {
    fn new() -> Self {
        let key = Arc::new(KeyPair::ed25519_from_seed(&[1; 32]));
        let mut policy = TrustPolicy::default();
        policy.add_anchor("/lab".parse().expect("a name"), key.key_id());
        let (flow, versions) = (Flow::default(), VersionMemory::default());
        World { key, flow, validator: Validator::new(policy), versions }
    }

    fn context(&mut self, now_ns: u64) -> Context<'_> {
        let World { flow, validator, versions, .. } = self;
        Context { now_ns, unix_ns: UNIX_NS, flow, validator, versions }
    }

    /// A packet of the key that says that this is where its certificate is.
    fn packet(&self, name: &str, locator: &Name) -> Vec<u8> {
        let signer = KeySigner::new(Arc::clone(&self.key), locator.clone());
        let name: Name = name.parse().expect("a name");
        let mut wire = Vec::new();
        DataBuilder::new(name.view()).encode(b"x", &signer, &mut wire).expect("it fits");
        wire
    }

    /// Adds a certificate for the key of this number.
    fn certify(&mut self, number: usize, issuer_id: &[u8], issuer: &Name) -> Vec<u8> {
        let (key_name, public_key) = (key_name(number), self.key.public_key());
        let request = CertificateRequest {
            key_name: key_name.view(),
            public_key: &public_key,
            issuer_id,
            version: 1,
            validity: ValidityPeriod { not_before_s: 0, not_after_s: 4_000_000_000 },
        };
        let signer = KeySigner::new(Arc::clone(&self.key), issuer.clone());
        let wire = request.issue(&signer).expect("a certificate").wire().to_vec();
        self.validator.add_certificate(&wire).expect("well-formed");
        wire
    }
}

fn key_name(number: usize) -> Name {
    format!("/lab/KEY/{number}").parse().expect("a name")
}

/// Each packet of an object may name a key of its own, and each key costs a request.
#[test]
fn no_more_than_so_many_certificates_are_fetched_for_one_object() {
    let mut world = World::new();
    let mut authenticator = Authenticator::new(FetchConfig::default());
    for number in 0..2 * ASKS_MAX {
        let wire = world.packet(&format!("/lab/f/v=1/seg={number}"), &key_name(number));
        let data = Data::decode(&wire).expect("well-formed");
        let mut context = world.context(0);
        match authenticator.check(&data, &mut context) {
            Verdict::Wait => {
                assert!(number < ASKS_MAX, "one more");
                let asked = authenticator.ask().map(|ask| ask.request().name.clone());
                assert_eq!(asked, Some(key_name(number)));
            }
            Verdict::Refused(TrustError::ChainTooLong { name }) => {
                assert!(number >= ASKS_MAX, "{number}");
                assert_eq!(name.view(), data.name);
            }
            other => panic!("{number}: {other:?}"),
        }
        // Nobody has it; the next packet comes.
        authenticator.abandon(context.flow);
    }
}

#[test]
fn one_certificate_at_a_time_is_fetched_and_one_that_does_not_come_is_missing() {
    let mut world = World::new();
    let mut authenticator = Authenticator::new(FetchConfig::default());
    let first = world.packet("/lab/f/v=1/seg=0", &key_name(0));
    let second = world.packet("/lab/f/v=1/seg=1", &key_name(1));
    for wire in [&first, &second] {
        let data = Data::decode(wire).expect("well-formed");
        assert!(matches!(authenticator.check(&data, &mut world.context(0)), Verdict::Wait));
        let asked = authenticator.ask().map(|ask| ask.request().name.clone());
        assert_eq!(asked, Some(key_name(0)), "what is in flight may be what is missing");
    }
    assert!(!authenticator.give_up(&mut world.context(0)), "it may still come");
    let mut now_ns = 0;
    while authenticator.failed_certificate().is_none() {
        assert!(now_ns < 60_000_000_000, "it gives up some time");
        let ask = authenticator.ask().expect("it is being fetched");
        while ask.poll_request(&mut world.context(now_ns)).is_some() {}
        now_ns = now_ns.max(ask.poll_deadline(&world.flow).expect("it waits"));
        ask.handle_timeout(&mut world.context(now_ns));
    }
    assert_eq!(authenticator.failed_certificate(), Some(key_name(0)));
    assert!(authenticator.give_up(&mut world.context(now_ns)));
    assert!(authenticator.ask().is_none());
    assert!(!authenticator.give_up(&mut world.context(now_ns)), "none is missing any more");
    let data = Data::decode(&first).expect("well-formed");
    match authenticator.check(&data, &mut world.context(now_ns)) {
        Verdict::Refused(TrustError::NoCertificate { certificate, .. }) => {
            assert_eq!(certificate, key_name(0));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_chain_ends_at_the_certificate_that_signed_itself() {
    let mut world = World::new();
    let own = key_name(1).with_generic(b"self");
    let anchor = world.certify(1, b"self", &own);
    let leaf = world.certify(0, b"lab", &key_name(1));
    let wire = world.packet("/lab/f/v=1/seg=0", &key_name(0));
    let data = Data::decode(&wire).expect("well-formed");
    assert_eq!(chain(&data, &mut world.context(0)), [leaf, anchor]);
}

#[test]
fn of_a_key_that_another_certified_its_own_certificate_is_kept_as_well() {
    let mut world = World::new();
    let leaf = world.certify(0, b"other", &"/other/KEY/1".parse().expect("a name"));
    let own = world.certify(0, b"self", &key_name(0).with_generic(b"self"));
    let other = Certificate::decode(&leaf).expect("a certificate").name().to_name();
    let wire = world.packet("/lab/f/v=1/seg=0", &other);
    let data = Data::decode(&wire).expect("well-formed");
    assert_eq!(chain(&data, &mut world.context(0)), [leaf, own]);
}

/// Who signs in a circle, or without an end, makes nobody collect more.
#[test]
fn no_chain_is_longer_than_a_validator_takes() {
    let mut world = World::new();
    for number in 0..2 * CHAIN_MAX {
        world.certify(number, b"lab", &key_name(number + 1));
        let wire = world.packet("/lab/f/v=1/seg=0", &key_name(0));
        let data = Data::decode(&wire).expect("well-formed");
        assert_eq!(chain(&data, &mut world.context(0)).len(), CHAIN_MAX.min(number + 1));
    }
    for length in [CHAIN_MAX - 1, CHAIN_MAX] {
        // The first of them have certificates of their own, too.
        let mut world = World::new();
        for number in 0..length {
            let issuer = key_name(number + 1).with_generic(b"lab");
            world.certify(number, b"lab", &issuer);
            world.certify(number, b"self", &key_name(number).with_generic(b"self"));
        }
        let wire = world.packet("/lab/f/v=1/seg=0", &key_name(0).with_generic(b"lab"));
        let data = Data::decode(&wire).expect("well-formed");
        assert_eq!(chain(&data, &mut world.context(0)).len(), CHAIN_MAX);
    }
}
