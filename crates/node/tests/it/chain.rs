//! Several nodes in a row.

use std::time::Duration;

use byname_io::Endpoint;
use byname_node::NodeConfig;
use byname_packet::lp::nack_reason;

use crate::harness::{Client, Running, name, produce};

fn node(listen: &[String], route: Option<&Endpoint>) -> Running {
    Running::start(NodeConfig {
        listen: listen.iter().map(|uri| uri.parse().unwrap()).collect(),
        routes: route.map(|to| (name("/lab"), to.clone()).into()).into_iter().collect(),
        reconnect_max_ns: 500_000_000,
        ..NodeConfig::default()
    })
}

/// Asks until an answer comes: uplinks connect in the background, and datagrams can be lost.
fn fetch(client: &mut Client, base: &str) -> Vec<u8> {
    for attempt in 0..200 {
        client.express_with(&format!("{base}/{attempt}"), None, |i| i.lifetime_ms(500));
        match client.next_within(Duration::from_millis(500)) {
            Some(got) if got.nack.is_none() => return got.data().content.to_vec(),
            Some(got) => {
                assert_eq!(got.nack, Some(nack_reason::NO_ROUTE));
                std::thread::sleep(Duration::from_millis(50));
            }
            None => {}
        }
    }
    panic!("nothing came for {base}");
}

/// Each node listens on a Unix socket for its clients and on `transport` for other nodes.
fn three_in_a_row(transport: &str) {
    let dir = tempfile::tempdir().unwrap();
    let local = |which: &str| format!("unix://{}/{which}.sock", dir.path().display());
    let content: Vec<u8> = (0..8192u32).map(|i| (i % 253) as u8).collect();
    let far = node(&[local("far"), transport.to_owned()], None);
    let middle = node(&[local("middle"), transport.to_owned()], Some(&far.listening[1]));
    let near = node(&[local("near"), transport.to_owned()], Some(&middle.listening[1]));
    let mut producer = far.client(0);
    producer.register("/lab");
    let serving = produce(producer, content.clone());
    let mut consumer = near.client(0);
    assert_eq!(fetch(&mut consumer, "/lab/file"), content);
    // What the nodes on the way have kept is asked of nobody again.
    let other = &mut middle.client(0);
    other.express_with("/lab/file", None, |i| i.can_be_prefix(true));
    assert_eq!(other.next().unwrap().data().content, content);
    drop((near, middle, far));
    serving.join().unwrap();
}

#[test]
fn three_nodes_over_tcp_and_ipv4() {
    three_in_a_row("tcp://127.0.0.1:0");
}

#[test]
fn three_nodes_over_tcp_and_ipv6() {
    three_in_a_row("tcp://[::1]:0");
}

#[test]
fn three_nodes_over_udp_and_ipv4() {
    three_in_a_row("udp://127.0.0.1:0");
}

#[test]
fn three_nodes_over_udp_and_ipv6() {
    three_in_a_row("udp://[::1]:0");
}

#[test]
fn segments_cross_udp_in_fragments() {
    let content = vec![3u8; 8192];
    let dir = tempfile::tempdir().unwrap();
    let local = format!("unix://{}/far.sock", dir.path().display());
    let far = Running::start(NodeConfig {
        listen: vec![local.parse().unwrap(), "udp://127.0.0.1:0".parse().unwrap()],
        udp_mtu_loopback_bytes: 1420,
        ..NodeConfig::default()
    });
    let mut producer = far.client(0);
    producer.register("/lab");
    let serving = produce(producer, content.clone());
    let mut consumer = far.client(1);
    assert_eq!(fetch(&mut consumer, "/lab/fragments"), content);
    drop(far);
    serving.join().unwrap();
}

#[test]
fn routes_come_back_after_the_middle_node_was_restarted() {
    let dir = tempfile::tempdir().unwrap();
    let local = |which: &str| format!("unix://{}/{which}.sock", dir.path().display());
    let tcp = String::from("tcp://127.0.0.1:0");
    let far = node(&[local("far"), tcp.clone()], None);
    let middle = node(&[local("middle"), tcp], Some(&far.listening[1]));
    let near = node(&[local("near")], Some(&middle.listening[1]));
    let mut producer = far.client(0);
    producer.register("/lab");
    let serving = produce(producer, b"content".to_vec());
    let mut consumer = near.client(0);
    assert_eq!(fetch(&mut consumer, "/lab/before"), b"content");

    let middle_address = middle.listening[1].to_string();
    drop(middle);
    // Without the middle node there is no way; the consumer learns it instead of waiting.
    let mut refused = false;
    for attempt in 0..100 {
        let uri = format!("/lab/during/{attempt}");
        consumer.express_with(&uri, None, |i| i.lifetime_ms(100));
        if let Some(got) = consumer.next_within(Duration::from_millis(200)) {
            assert_eq!(got.nack, Some(nack_reason::NO_ROUTE));
            refused = true;
            break;
        }
    }
    assert!(refused);

    let _middle = node(&[local("middle"), middle_address], Some(&far.listening[1]));
    assert_eq!(fetch(&mut consumer, "/lab/after"), b"content");
    drop((near, far));
    serving.join().unwrap();
}
