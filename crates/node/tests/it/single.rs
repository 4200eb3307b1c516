//! One node and its clients.

use byname_node::{Node, NodeConfig};
use byname_packet::lp::nack_reason;
use byname_packet::mgmt::{ControlParameters, FaceStatus, GeneralStatus, RibEntry, status_code};

use crate::harness::{Client, Running, name};

fn unix_node() -> (tempfile::TempDir, Running) {
    let dir = tempfile::tempdir().unwrap();
    let uri = format!("unix://{}/node.sock", dir.path().display());
    let node = Running::listen(&[&uri]);
    (dir, node)
}

#[test]
fn two_clients_exchange_through_a_unix_socket() {
    let (_dir, node) = unix_node();
    let (mut producer, mut consumer) = (node.client(0), node.client(0));
    let response = producer.register("/app");
    assert_eq!(response.status_code, status_code::OK);
    let body = response.parameters().unwrap();
    assert_eq!(body.name, Some(name("/app")));
    assert_eq!((body.origin, body.cost, body.flags), (Some(0), Some(0), Some(1)));
    assert!(body.face_id.unwrap() > 0);

    consumer.express_with("/app/x", Some(b"my token"), |interest| interest);
    producer.serve_one(b"hello");
    let got = consumer.next().unwrap();
    assert_eq!(got.data().content, b"hello");
    assert_eq!(got.token.as_deref(), Some(&b"my token"[..]));

    consumer.express_with("/app/x", None, |interest| interest);
    let cached = consumer.next().unwrap();
    assert_eq!(cached.data().content, b"hello");
    assert_eq!(cached.token, None);
    let node = node.finish();
    assert_eq!(node.counters().cs_hits, 1);
}

#[test]
fn a_name_without_route_is_refused_at_once() {
    let (_dir, node) = unix_node();
    let mut consumer = node.client(0);
    consumer.express_with("/nowhere/x", Some(b"1"), |interest| interest);
    let got = consumer.next().unwrap();
    assert_eq!(got.nack, Some(nack_reason::NO_ROUTE));
    assert_eq!(got.interest().name, name("/nowhere/x").view());
    assert_eq!(got.token.as_deref(), Some(&b"1"[..]));
}

#[test]
fn the_routes_of_a_client_that_leaves_are_gone() {
    let (_dir, node) = unix_node();
    let mut consumer = node.client(0);
    {
        let mut producer = node.client(0);
        assert_eq!(producer.register("/app").status_code, status_code::OK);
        consumer.express("/app/1");
        producer.serve_one(b"x");
        assert_eq!(consumer.next().unwrap().data().content, b"x");
    }
    // The node learns of the close when it reads; ask until the route is gone.
    for attempt in 0.. {
        consumer.express_with(&format!("/app/gone/{attempt}"), None, |i| i.lifetime_ms(200));
        match consumer.next_within(std::time::Duration::from_millis(500)) {
            Some(got) => {
                assert_eq!(got.nack, Some(nack_reason::NO_ROUTE));
                break;
            }
            None => assert!(attempt < 40),
        }
    }
}

#[test]
fn an_in_process_face_works_like_any_other() {
    let dir = tempfile::tempdir().unwrap();
    let uri = format!("unix://{}/node.sock", dir.path().display());
    let config = NodeConfig { listen: vec![uri.parse().unwrap()], ..NodeConfig::default() };
    let mut node = Node::new(config).unwrap();
    let mut inside = Client::new(node.local_face().unwrap());
    let (stop, listening) = (node.stop_handle(), node.listening());
    let handle = stop.clone();
    let thread = std::thread::spawn(move || node.run(&handle));
    assert_eq!(inside.register("/inside").status_code, status_code::OK);
    let mut outside = Client::connect(&listening[0]);
    outside.express("/inside/1");
    inside.serve_one(b"from within");
    assert_eq!(outside.next().unwrap().data().content, b"from within");
    stop.stop();
    thread.join().unwrap().unwrap();
}

#[test]
fn datasets_show_faces_and_routes() {
    let (_dir, node) = unix_node();
    let mut client = node.client(0);
    client.register("/app");
    let mut fetch = |dataset: &str| {
        client.express_with(dataset, None, |i| i.can_be_prefix(true).must_be_fresh(true));
        let got = client.next().unwrap();
        assert_eq!(got.data().name.last().unwrap().segment(), Some(0));
        assert_eq!(got.data().meta.final_block_id, got.data().name.last());
        got.data().content.to_vec()
    };
    let status = GeneralStatus::decode(&fetch("/localhost/nfd/status/general")).unwrap();
    assert_eq!(status.fib_entry_count, 1);
    assert!(status.current_timestamp_ms >= status.start_timestamp_ms);
    assert!(status.start_timestamp_ms > 1_600_000_000_000);
    let faces = FaceStatus::decode_all(&fetch("/localhost/nfd/faces/list")).unwrap();
    assert_eq!(faces.len(), 1);
    assert_eq!(faces[0].scope, 1);
    assert!(faces[0].local_uri.starts_with("unix://"), "{}", faces[0].local_uri);
    let rib = RibEntry::decode_all(&fetch("/localhost/nfd/rib/list")).unwrap();
    assert_eq!(rib[0].name, name("/app"));
    assert_eq!(rib[0].routes[0].face_id, faces[0].face_id);
}

#[test]
fn loopback_tcp_registers_nothing_unless_configured() {
    let listen = vec!["tcp://127.0.0.1:0".parse().unwrap()];
    let node = Running::start_as_configured(NodeConfig { listen, ..NodeConfig::default() });
    let refused = node.client(0).register("/a");
    assert_eq!(refused.status_code, status_code::UNAUTHORIZED);
    assert!(refused.status_text.contains("Unix socket"), "{}", refused.status_text);
    assert!(refused.status_text.contains("--allow-register-loopback"), "{}", refused.status_text);
}

#[test]
fn where_allowed_loopback_tcp_may_register_itself_only_and_udp_nothing() {
    let node = Running::listen(&["tcp://127.0.0.1:0", "udp://127.0.0.1:0"]);
    let (mut first, mut second) = (node.client(0), node.client(0));
    let own = first.register("/a");
    assert_eq!(own.status_code, status_code::OK);
    let for_another = ControlParameters {
        name: Some(name("/b")),
        face_id: own.parameters().unwrap().face_id,
        ..ControlParameters::default()
    };
    let refused = second.command("/localhost/nfd/rib/register", &for_another);
    assert_eq!(refused.status_code, status_code::UNAUTHORIZED);
    let mut over_udp = node.client(1);
    let parameters = ControlParameters { name: Some(name("/c")), ..Default::default() };
    let refused = over_udp.command("/localhop/nfd/rib/register", &parameters);
    assert_eq!(refused.status_code, status_code::UNAUTHORIZED);
    assert!(refused.status_text.contains("allow"), "{}", refused.status_text);
}
