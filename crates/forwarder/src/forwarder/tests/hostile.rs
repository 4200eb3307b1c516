//! Whatever a face sends, the forwarder goes on and its tables stay within their bounds.

use byname_packet::InterestBuilder;
use byname_packet::lp::LpHeader;
use byname_packet::mgmt::ControlParameters;
use proptest::prelude::*;

use crate::config::Config;
use crate::testing::{Bench, data, name};

fn seeds() -> Vec<Vec<u8>> {
    let mut parameters = Vec::new();
    ControlParameters { name: Some(name("/a")), ..ControlParameters::default() }
        .encode(&mut parameters);
    let command = name("/localhost/nfd/rib/register").with_generic(&parameters);
    let names = [
        name("/a/b/c"),
        name("/localhost/nfd/faces/list"),
        name("/localhop/nfd/rib/register/x"),
        command.with_generic(b"1").with_generic(b"2").with_generic(b"3").with_generic(b"4"),
    ];
    let mut seeds: Vec<Vec<u8>> = names
        .iter()
        .map(|name| {
            let mut wire = Vec::new();
            InterestBuilder::new(name.view())
                .can_be_prefix(true)
                .nonce([1; 4])
                .hop_limit(7)
                .encode(&mut wire);
            wire
        })
        .collect();
    seeds.push(data("/a/b/c/d", 1000));
    seeds
}

proptest! {
    #[test]
    fn damaged_packets_do_no_harm(
        packets in proptest::collection::vec(
            (
                0usize..5,
                proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
                any::<bool>(),
                proptest::option::of(0u64..200),
                proptest::collection::vec(any::<u8>(), 0..40),
            ),
            1..40,
        )
    ) {
        let mut bench = Bench::with(Config {
            pit_entries_max: 5,
            cs_entries_max: 5,
            routes_max: 5,
            ..Config::default()
        });
        let faces = [bench.local(), bench.remote()];
        bench.route("/a", faces[0], 0);
        let seeds = seeds();
        for (seed, damage, remote, nack, token) in packets {
            let mut wire = seeds[seed].clone();
            for (at, octet) in damage {
                let at = at.index(wire.len());
                wire[at] = octet;
            }
            let header = LpHeader {
                nack,
                pit_token: (!token.is_empty()).then_some(&token[..]),
                ..LpHeader::default()
            };
            bench.packet(faces[usize::from(remote)], &header, &wire);
            prop_assert!(bench.forwarder.pending_count() <= 5);
            prop_assert!(bench.forwarder.occupancy().cs_entries <= 5);
            prop_assert!(bench.forwarder.occupancy().rib_entries <= 5);
            bench.wait_ms(100);
        }
    }
}
