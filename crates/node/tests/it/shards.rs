//! Several shards behind one set of sockets: everything is as with one.

use std::collections::BTreeSet;

use byname_node::NodeConfig;
use byname_packet::lp::nack_reason;
use byname_packet::mgmt::{ControlParameters, GeneralStatus, status_code};

use crate::harness::{Client, Running, name, produce};

fn sharded(shards: usize) -> (tempfile::TempDir, Running) {
    let dir = tempfile::tempdir().unwrap();
    let uri = format!("unix://{}/node.sock", dir.path().display());
    let listen = vec![uri.parse().unwrap()];
    (dir, Running::start(NodeConfig { listen, shards, ..NodeConfig::default() }))
}

fn general(client: &mut Client) -> GeneralStatus {
    client.express_with("/localhost/nfd/status/general", None, |interest| {
        interest.can_be_prefix(true).must_be_fresh(true)
    });
    GeneralStatus::decode(client.next().unwrap().data().content).unwrap()
}

#[test]
fn names_of_one_prefix_are_answered_by_all_shards() {
    const COUNT: usize = 400;
    const WINDOW: usize = 40;
    let (_dir, node) = sharded(3);
    let (mut producer, mut consumer) = (node.client(0), node.client(0));
    assert_eq!(producer.register("/app").status_code, status_code::OK);
    let serving = produce(producer, vec![7; 3000]);
    for round in 0..2 {
        let (mut asked, mut answered) = (0, BTreeSet::new());
        while answered.len() < COUNT {
            // No more at once than what sockets hold: a consumer that is not scheduled for a while
            // would not get the rest.
            while asked < COUNT.min(answered.len() + WINDOW) {
                let token = (asked as u32).to_be_bytes();
                consumer.express_with(&format!("/app/seg={asked}"), Some(&token), |i| i);
                asked += 1;
            }
            let got = consumer.next().expect("an answer to each");
            let number = got.data().name.last().unwrap().segment().unwrap();
            assert_eq!(got.data().content, [7; 3000]);
            assert_eq!(got.token.as_deref(), Some(&(number as u32).to_be_bytes()[..]));
            assert!(answered.insert(number), "round {round}: {number} came twice");
        }
    }
    // Figures of the other shards come a little later than their packets.
    let deadline = std::time::Instant::now() + crate::harness::PATIENCE;
    loop {
        let status = general(&mut consumer);
        let is_all_kept = status.cs_entry_count == COUNT as u64;
        if status.out_data_count as usize >= 2 * COUNT && is_all_kept {
            assert!(status.in_data_count >= COUNT as u64, "{status:?}");
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{status:?}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    drop(consumer);
    drop(node);
    serving.join().unwrap();
}

#[test]
fn data_without_a_token_finds_exact_and_prefix_interests() {
    let (_dir, node) = sharded(4);
    let (mut producer, mut consumer) = (node.client(0), node.client(0));
    assert_eq!(producer.register("/app").status_code, status_code::OK);
    for number in 0..40 {
        let (prefix, whole) = (format!("/app/{number}"), format!("/app/{number}/v=1/seg=0"));
        consumer.express_with(&prefix, None, |interest| interest.can_be_prefix(true));
        let asked = producer.next().unwrap();
        assert_eq!(asked.interest().name, name(&prefix).view());
        assert!(asked.token.is_some(), "shards name themselves");
        producer.put(name(&whole).view(), b"by prefix", None);
        assert_eq!(consumer.next().unwrap().data().content, b"by prefix");
        let exact = format!("/app/x/{number}");
        consumer.express(&exact);
        producer.next().unwrap();
        producer.put(name(&exact).view(), b"exact", None);
        assert_eq!(consumer.next().unwrap().data().content, b"exact");
    }
}

#[test]
fn every_shard_knows_of_faces_routes_and_strategies() {
    let (_dir, node) = sharded(4);
    let mut consumer = node.client(0);
    let strategy = ControlParameters {
        name: Some(name("/many")),
        strategy: Some(name("/localhost/nfd/strategy/multicast")),
        ..ControlParameters::default()
    };
    let answer = consumer.command("/localhost/nfd/strategy-choice/set", &strategy);
    assert_eq!(answer.status_code, status_code::OK);
    {
        let (mut one, mut other) = (node.client(0), node.client(0));
        assert_eq!(one.register("/many").status_code, status_code::OK);
        assert_eq!(other.register("/many").status_code, status_code::OK);
        for number in 0..40 {
            let asked = format!("/many/{number}");
            consumer.express(&asked);
            for producer in [&mut one, &mut other] {
                let got = producer.next().expect("multicast reaches both");
                assert_eq!(got.interest().name, name(&asked).view());
            }
            one.put(name(&asked).view(), b"x", None);
            assert_eq!(consumer.next().unwrap().data().content, b"x");
        }
    }
    for number in 0.. {
        // The node learns of the close when it reads; then no shard has the route.
        let names: Vec<String> = (0..20).map(|i| format!("/many/gone/{number}/{i}")).collect();
        names.iter().for_each(|name| consumer.express_with(name, None, |i| i.lifetime_ms(300)));
        let patience = std::time::Duration::from_millis(600);
        let answers: Vec<_> =
            std::iter::from_fn(|| consumer.next_within(patience)).take(names.len()).collect();
        if answers.len() == names.len()
            && answers.iter().all(|got| got.nack == Some(nack_reason::NO_ROUTE))
        {
            break;
        }
        assert!(number < 20);
    }
}
