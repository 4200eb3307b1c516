//! Hostile and unlucky peers.

use std::time::Duration;

use byname_node::NodeConfig;
use byname_packet::mgmt::FaceStatus;

use crate::harness::{Client, Running, name, wait_for};

#[test]
fn malformed_input_closes_only_that_face() {
    let node = Running::listen(&["tcp://127.0.0.1:0"]);
    let (mut good, mut bad) = (node.client(0), node.client(0));
    good.register("/app");
    bad.express("/app/1");
    good.serve_one(b"1");
    assert_eq!(bad.next().unwrap().data().content, b"1");
    bad.send_raw(b"GET / HTTP/1.1\r\n\r\n");
    assert!(bad.is_closed_by_peer());
    let mut other = node.client(0);
    other.express("/app/2");
    good.serve_one(b"2");
    assert_eq!(other.next().unwrap().data().content, b"2");
}

#[test]
fn a_frame_longer_than_any_packet_closes_the_face() {
    let node = Running::listen(&["tcp://127.0.0.1:0"]);
    let mut bad = node.client(0);
    bad.send_raw(&[0x05, 0xFE, 0x7F, 0xFF, 0xFF, 0xFF, 0x00]);
    assert!(bad.is_closed_by_peer());
}

#[test]
fn a_malformed_packet_in_a_whole_frame_is_only_dropped() {
    let node = Running::listen(&["tcp://127.0.0.1:0"]);
    let mut client = node.client(0);
    client.send_raw(&[0x05, 0x03, 0x01, 0x02, 0x03]);
    client.send_raw(&[0x64, 0x00]);
    assert_eq!(client.register("/still/alive").status_code, 200);
}

#[test]
fn a_peer_that_leaves_with_answers_under_way_harms_nobody() {
    let node = Running::listen(&["tcp://127.0.0.1:0"]);
    let mut producer = node.client(0);
    producer.register("/app");
    for round in 0..20 {
        let mut leaver = node.client(0);
        for i in 0..50 {
            leaver.express(&format!("/app/{round}/{i}"));
        }
        producer.serve_one(&[0; 8000]);
        drop(leaver);
        // Closing with unread answers resets the connection: not all of its Interests are read.
        for _ in 1..50 {
            let Some(got) = producer.next_within(Duration::from_millis(200)) else { break };
            producer.put(got.interest().name, &[0; 8000], got.token.as_deref());
        }
    }
    let mut stayer = node.client(0);
    stayer.express("/app/last");
    producer.serve_one(b"fine");
    assert_eq!(stayer.next().unwrap().data().content, b"fine");
}

#[test]
fn many_faces_are_served_and_more_than_allowed_are_turned_away() {
    const FACES: usize = 200;
    let node = Running::start(NodeConfig {
        listen: vec!["tcp://127.0.0.1:0".parse().unwrap()],
        faces_max: FACES + 1,
        silent_face_ns: u64::MAX,
        ..NodeConfig::default()
    });
    let mut producer = node.client(0);
    producer.register("/app");
    let mut clients: Vec<Client> = (0..FACES).map(|_| node.client(0)).collect();
    for (i, client) in clients.iter_mut().enumerate() {
        client.express(&format!("/app/{i}"));
    }
    for _ in 0..FACES {
        producer.serve_one(b"many");
    }
    for client in &mut clients {
        assert_eq!(client.next().unwrap().data().content, b"many");
    }
    let mut surplus = node.client(0);
    assert!(surplus.is_closed_by_peer());
    drop(clients.pop());
    // A place is free as soon as the node has read the close.
    wait_for("a free place", || {
        let mut late = node.client(0);
        late.express("/app/0");
        late.next().is_some_and(|got| got.data().content == b"many")
    });
}

#[test]
fn what_a_slow_reader_leaves_is_dropped_and_counted() {
    let node = Running::start(NodeConfig {
        listen: vec!["tcp://127.0.0.1:0".parse().unwrap()],
        send_bytes_max: 100_000,
        ..NodeConfig::default()
    });
    let mut producer = node.client(0);
    producer.register("/app");
    let mut slow = node.client(0);
    slow.express("/app/big");
    producer.serve_one(&[1; 8000]);
    assert!(slow.next().is_some());
    // Answers from the content store for somebody who does not read: far more than kernel
    // buffers and queue hold together.
    for _ in 0..4000 {
        slow.express("/app/big");
    }
    let mut other = node.client(0);
    other.express("/app/big");
    assert_eq!(other.next().unwrap().data().content.len(), 8000);
    let node = node.finish();
    assert!(node.queue_full_count() > 0);
}

fn udp_faces(client: &mut Client) -> usize {
    client.express_with("/localhost/nfd/faces/list", None, |i| {
        i.can_be_prefix(true).must_be_fresh(true)
    });
    let got = client.next().unwrap();
    let faces = FaceStatus::decode_all(got.data().content).unwrap();
    faces.iter().filter(|face| face.uri.starts_with("udp")).count()
}

#[test]
fn udp_faces_are_bounded_and_end_when_idle() {
    let node = Running::start(NodeConfig {
        listen: vec!["tcp://127.0.0.1:0".parse().unwrap(), "udp://127.0.0.1:0".parse().unwrap()],
        udp_faces_max: 4,
        udp_idle_ns: 300_000_000,
        ..NodeConfig::default()
    });
    let mut watcher = node.client(0);
    for _ in 0..20 {
        let mut peer = node.client(1);
        peer.express("/nowhere");
        assert!(peer.next().unwrap().nack.is_some());
        assert!(udp_faces(&mut watcher) <= 4);
    }
    let ended = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        udp_faces(&mut watcher) == 0
    });
    assert!(ended);
}

#[test]
fn data_from_an_unknown_udp_peer_makes_no_face() {
    let node = Running::listen(&["tcp://127.0.0.1:0", "udp://127.0.0.1:0"]);
    let mut watcher = node.client(0);
    let mut stranger = node.client(1);
    stranger.put(name("/unasked").view(), b"x", None);
    stranger.express("/nowhere");
    assert!(stranger.next().unwrap().nack.is_some());
    let mut other = node.client(1);
    other.put(name("/unasked").view(), b"x", None);
    // Both sockets are read in order, so that what came before was seen when this is answered.
    stranger.express("/nowhere/else");
    assert!(stranger.next().unwrap().nack.is_some());
    assert_eq!(udp_faces(&mut watcher), 1);
}
