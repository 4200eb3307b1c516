//! A peer that does not keep up: Interests for it leave in turns of the faces they came from.

use byname_node::{Node, NodeConfig};
use byname_packet::InterestBuilder;
use byname_packet::lp::nack_reason;

use crate::harness::{Client, Got, Running, name, wait_for};

const FLOOD: usize = 60_000;

fn patient(interest: InterestBuilder<'_>) -> InterestBuilder<'_> {
    interest.lifetime_ms(600_000)
}

/// A node, a producer of `/slow` that reads nothing yet, an attacker and a reader.
fn scene() -> (Running, [Client; 3], tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let unix = format!("unix://{}/nfd.sock", directory.path().display());
    let uris = [unix.as_str(), "tcp://127.0.0.1:0"];
    let listen = uris.iter().map(|uri| uri.parse().unwrap()).collect();
    let node = Running::start(NodeConfig { listen, ..NodeConfig::default() });
    let mut producer = node.client(0);
    assert_eq!(producer.register("/slow").status_code, 200);
    let clients = [producer, node.client(1), node.client(1)];
    (node, clients, directory)
}

/// Waits until the forwarder has taken so many Interests besides those of registration.
fn wait_for_interests(node: &Running, before: u64, count: usize) {
    wait_for("the forwarder", || {
        node.control.snapshot().unwrap().counters.in_interests >= before + count as u64
    });
}

#[test]
fn a_single_interest_passes_a_flood_that_waits_for_a_slow_peer() {
    let (node, [mut producer, mut attacker, mut reader], _directory) = scene();
    let before = node.control.snapshot().unwrap().counters.in_interests;
    for number in 0..FLOOD {
        attacker.express_with(&format!("/slow/flood/{number}"), None, patient);
    }
    wait_for_interests(&node, before, FLOOD);
    reader.express_with("/slow/read", None, patient);
    wait_for_interests(&node, before, FLOOD + 1);
    let wanted = name("/slow/read");
    let passed = (0..FLOOD)
        .take_while(|_| {
            let got = producer.next().expect("what waits leaves when it is read");
            let interest = got.interest();
            let is_it = interest.name == wanted.view();
            if is_it {
                producer.put(interest.name, b"here", got.token.as_deref());
            }
            !is_it
        })
        .count();
    assert!(passed < FLOOD / 4, "{passed} Interests of the flood left before it");
    assert_eq!(reader.next().expect("an answer").data().content, b"here");
    // What the flood had no room for was refused.
    assert_eq!(attacker.next().expect("a Nack").nack, Some(nack_reason::CONGESTION));
}

#[test]
fn a_slow_peer_gets_every_interest_of_a_single_reader() {
    const COUNT: usize = 10_000;
    let (node, [mut producer, _, mut reader], _directory) = scene();
    let before = node.control.snapshot().unwrap().counters.in_interests;
    for number in 0..COUNT {
        reader.express_with(&format!("/slow/{number}"), None, patient);
    }
    wait_for_interests(&node, before, COUNT);
    for number in 0..COUNT {
        let got = producer.next().expect("nothing is lost");
        assert_eq!(got.interest().name, name(&format!("/slow/{number}")).view());
    }
}

/// Encodes Interests as a client would, one behind the other.
fn flood_of(count: usize) -> Vec<u8> {
    let mut octets = Vec::new();
    for number in 0..count {
        let name = name(&format!("/slow/flood/{number}"));
        patient(InterestBuilder::new(name.view())).encode(&mut octets);
    }
    octets
}

#[test]
fn a_connection_with_thousands_of_interests_brings_few_in_a_turn() {
    const COUNT: usize = 4000;
    let (node, [mut producer, mut attacker, mut reader], _directory) = scene();
    // All of it waits at the node's sockets before it looks at them, the flood first.
    let mut node = node.finish();
    attacker.send_raw(&flood_of(COUNT));
    reader.express_with("/slow/read", None, patient);
    let other = Node::new(NodeConfig::default()).unwrap();
    let stop = other.stop_handle();
    let handle = stop.clone();
    let thread = std::thread::spawn(move || node.run(&handle));
    let wanted = name("/slow/read");
    let is_of_flood = |got: Got| got.interest().name != wanted.view();
    let passed = (0..COUNT).take_while(|_| producer.next().is_some_and(is_of_flood)).count();
    stop.stop();
    // Only an event lets the node look at it.
    reader.express("/nowhere");
    thread.join().unwrap().unwrap();
    assert!(passed < COUNT / 4, "{passed} Interests of the flood left before it");
}
