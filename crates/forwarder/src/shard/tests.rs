//! Where packets go, against what the tables of each shard would want.

use byname_packet::{DataBuilder, InterestBuilder, NullSigner};
use proptest::prelude::*;

use super::{Dispatcher, ShardPlace, Shards};
use byname_packet::lp::LpHeader;
use byname_packet::{Data, Interest, Name, types};

const SEED: [u64; 3] = [1, 2, 3];
const SECOND_NS: u64 = 1_000_000_000;

fn interest(name: &Name, can_be_prefix: bool) -> Vec<u8> {
    let mut wire = Vec::new();
    InterestBuilder::new(name.view())
        .can_be_prefix(can_be_prefix)
        .lifetime_ms(1000)
        .nonce([1, 2, 3, 4])
        .encode(&mut wire);
    wire
}

fn data(name: &Name) -> Vec<u8> {
    let mut wire = Vec::new();
    DataBuilder::new(name.view()).encode(b"x", &NullSigner, &mut wire).unwrap();
    wire
}

fn name() -> impl Strategy<Value = Name> {
    proptest::collection::vec(0u8..4, 1..6).prop_map(|components| {
        let mut name = Name::new();
        components.iter().for_each(|c| name.push_generic(&[b'a' + c]));
        name
    })
}

proptest! {
    /// Wherever Interests were put, Data without a token reaches all that it satisfies.
    #[test]
    fn data_reaches_every_shard_that_waits(
        interests in proptest::collection::vec((name(), any::<bool>(), any::<bool>()), 1..20),
        data_name in name(),
        count in 1usize..9,
    ) {
        let mut dispatcher = Dispatcher::new(SEED, count);
        let packet = data(&data_name);
        let digest = Data::decode(&packet).unwrap().implicit_digest();
        let mut expected = Vec::new();
        for (mut name, can_be_prefix, wants_digest) in interests {
            if wants_digest {
                name.push(byname_packet::Component {
                    typ: types::IMPLICIT_SHA256_DIGEST,
                    value: &digest,
                });
            }
            let wire = interest(&name, can_be_prefix);
            let shards = dispatcher.shards_of(&LpHeader::default(), &wire, 0);
            prop_assert_eq!(shards.iter().count(), 1);
            let decoded = Interest::decode(&wire).unwrap();
            if decoded.matches(&Data::decode(&packet).unwrap()) {
                expected.push(shards.iter().next().unwrap());
            }
        }
        let found = dispatcher.shards_of(&LpHeader::default(), &packet, SECOND_NS);
        for index in expected {
            prop_assert!(found.contains(index));
        }
        prop_assert!(found.iter().all(|index| index < count));
    }
}

#[test]
fn a_token_names_its_shard_and_what_a_peer_makes_up_does_not() {
    let mut dispatcher = Dispatcher::new(SEED, 4);
    let packet = data(&"/a/b".parse().unwrap());
    let plain = dispatcher.shards_of(&LpHeader::default(), &packet, 0);
    for index in 0..4u16 {
        let token = ShardPlace { index, count: 4 }.token(SEED);
        let header = LpHeader { pit_token: Some(&token), ..LpHeader::default() };
        assert_eq!(dispatcher.shards_of(&header, &packet, 0), Shards::one(index.into()));
    }
    let beyond = ShardPlace { index: 4, count: 5 }.token(SEED);
    for token in [&beyond[..], &[0; 6], &[0; 5], &[], &[255; 32]] {
        let header = LpHeader { pit_token: Some(token), ..LpHeader::default() };
        assert_eq!(dispatcher.shards_of(&header, &packet, 0), plain);
    }
}

#[test]
fn one_prefix_spreads_and_management_stays_with_shard_0() {
    let mut dispatcher = Dispatcher::new(SEED, 4);
    let mut counts = [0; 4];
    for segment in 0..4000 {
        let name: Name = format!("/lab/one/file/v=1/seg={segment}").parse().unwrap();
        let wire = interest(&name, false);
        let shards = dispatcher.shards_of(&LpHeader::default(), &wire, 0);
        counts[shards.iter().next().unwrap()] += 1;
        // A Nack brings the Interest back to where it was sent from.
        let nack = LpHeader { nack: Some(150), ..LpHeader::default() };
        assert_eq!(dispatcher.shards_of(&nack, &wire, 0), shards);
    }
    assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    for text in ["/localhost/nfd/rib/register/x", "/localhop/nfd/rib/register/x"] {
        let wire = interest(&text.parse().unwrap(), false);
        let shards = dispatcher.shards_of(&LpHeader::default(), &wire, 0);
        assert_eq!(shards, Shards::one(0));
    }
    assert_eq!(dispatcher.shards_of(&LpHeader::default(), b"\x05", 0), Shards::one(0));
}

#[test]
fn shorter_prefixes_count_only_while_such_interests_may_be_pending() {
    let mut dispatcher = Dispatcher::new(SEED, 64);
    let packet = data(&"/a/b/c/d".parse().unwrap());
    let header = LpHeader::default();
    assert_eq!(dispatcher.shards_of(&header, &packet, 0).iter().count(), 1);
    let prefix = interest(&"/a/b".parse().unwrap(), true);
    let asked = dispatcher.shards_of(&header, &prefix, 0);
    let found = dispatcher.shards_of(&header, &packet, SECOND_NS);
    assert!(found.contains(asked.iter().next().unwrap()));
    assert_eq!(found.iter().count(), 2);
    assert_eq!(dispatcher.shards_of(&header, &packet, 2 * SECOND_NS).iter().count(), 1);
}
