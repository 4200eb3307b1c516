//! The same forwarder over transports with ways of their own: WebSocket, shared memory, multicast.

use std::io::Write as _;
use std::time::Duration;

use byname_forwarder::LinkType;
use byname_io::{ConnectError, Connection, Endpoint};
use byname_node::{NodeConfig, StaticRoute};
use byname_packet::mgmt::ControlParameters;

use crate::harness::{Client, PATIENCE, Running, name, produce};

const SILENCE: Duration = Duration::from_millis(300);

#[test]
fn websockets_carry_packets_but_are_never_local() {
    let node = Running::listen(&["ws://127.0.0.1:0", "tcp://127.0.0.1:0"]);
    let mut producer = node.client(1);
    assert_eq!(producer.register("/app").status_code, 200);
    let serving = produce(producer, vec![3; 8000]);
    let mut page = node.client(0);
    for n in 0..50 {
        page.express(&format!("/app/{n}"));
        assert_eq!(page.next().unwrap().data().content.len(), 8000);
    }
    page.express_with("/localhost/nfd/faces/list", None, |interest| {
        interest.can_be_prefix(true).must_be_fresh(true)
    });
    assert!(page.next_within(SILENCE).is_none());
    let faces = node.client(1).faces();
    let face = faces.iter().find(|face| face.local_uri.starts_with("ws://")).unwrap();
    assert_eq!((face.scope, face.mtu), (0, Some(8800)));
    drop(node);
    serving.join().unwrap();
}

#[test]
fn a_route_over_websocket_leads_to_another_forwarder() {
    let far = Running::listen(&["ws://127.0.0.1:0", "tcp://127.0.0.1:0"]);
    let mut producer = far.client(1);
    assert_eq!(producer.register("/app").status_code, 200);
    let near = Running::start(NodeConfig {
        listen: vec!["tcp://127.0.0.1:0".parse().unwrap()],
        routes: vec![StaticRoute::from((name("/app"), far.listening[0].clone()))],
        ..NodeConfig::default()
    });
    let mut consumer = near.client(0);
    let mut answered = false;
    for n in 0..100 {
        consumer.express(&format!("/app/{n}"));
        // Until the route has its link, the answer is a Nack.
        if let Some(got) = producer.next_within(SILENCE) {
            producer.put(got.interest().name, b"through", got.token.as_deref());
        }
        let got = consumer.next().unwrap();
        if got.nack.is_none() {
            assert_eq!(got.data().content, b"through");
            answered = true;
            break;
        }
    }
    assert!(answered);
}

#[test]
fn shared_memory_is_local_and_its_peer_may_command() {
    let directory = tempfile::tempdir().unwrap();
    let memif = format!("memif://{}/memif.sock", directory.path().display());
    let node = Running::listen(&[&memif, "tcp://127.0.0.1:0"]);
    let mut client = Client::connect(&node.listening[0]);
    assert_eq!(client.register("/memory").status_code, 200);
    let parameters = ControlParameters {
        name: Some(name("/memory")),
        strategy: Some(name("/localhost/nfd/strategy/multicast")),
        ..ControlParameters::default()
    };
    let response = client.command("/localhost/nfd/strategy-choice/set", &parameters);
    assert_eq!(response.status_code, 200, "the kernel vouches for our user");
    let mut consumer = node.client(1);
    consumer.express("/memory/1");
    client.serve_one(&[5; 1000]);
    assert_eq!(consumer.next().unwrap().data().content, [5; 1000]);
    let faces = consumer.faces();
    let face = faces.iter().find(|face| face.local_uri.starts_with("memif://")).unwrap();
    assert_eq!(face.scope, 1);
    assert!(face.mtu.is_some());
}

/// An interface on which multicast comes back to us, if this machine lets us have one.
fn group() -> Option<Endpoint> {
    let group: Endpoint = "udp4://224.0.23.170:56363?dev=lo".parse().unwrap();
    match Connection::connect(&group, PATIENCE) {
        Ok(_) => Some(group),
        Err(ConnectError::Failed { .. } | ConnectError::Denied { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_multicast_group_is_one_permanent_face_for_many_peers() {
    let Some(group) = group() else {
        assert!(std::env::var_os("CI").is_none(), "no multicast on the loopback interface");
        // Past the runner's capture, so that `make test` counts it.
        let _ = writeln!(std::io::stderr(), "SKIPPED: no multicast on the loopback interface");
        return;
    };
    let listen = vec!["tcp://127.0.0.1:0".parse().unwrap(), group.clone()];
    let node = Running::start(NodeConfig { listen, ..NodeConfig::default() });
    let faces = node.client(0).faces();
    let face = faces.iter().find(|face| face.local_uri.contains("dev://lo")).unwrap();
    assert_eq!(face.link_type, LinkType::MultiAccess as u64);
    assert_eq!(face.persistency, 2, "permanent");
    assert_eq!(face.scope, 0);
    assert!(face.uri.contains("224.0.23.170"));
}
