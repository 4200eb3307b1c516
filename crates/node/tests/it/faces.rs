//! Faces made, changed and ended by command.

use byname_forwarder::FaceId;
use byname_io::{Endpoint, Listener};
use byname_node::NodeConfig;
use byname_packet::mgmt::{ControlParameters, ControlResponse, FaceStatus};

use crate::harness::{Client, PATIENCE, Running, name, wait_for};

const PERSISTENT: u64 = 0;
const ON_DEMAND: u64 = 1;
const PERMANENT: u64 = 2;

fn unix(directory: &tempfile::TempDir) -> String {
    format!("unix://{}/nfd.sock", directory.path().display())
}

/// A node with an administrator's socket and other listeners.
struct Site {
    node: Running,
    admin: Client,
    _directory: tempfile::TempDir,
}

impl Site {
    fn new(others: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut listen = vec![unix(&directory)];
        listen.extend(others.iter().map(|uri| (*uri).to_owned()));
        let listen = listen.iter().map(|uri| uri.parse().unwrap()).collect();
        let config = NodeConfig {
            listen,
            reconnect_min_ns: 1_000_000,
            reconnect_max_ns: 10_000_000,
            connect_timeout_ns: 2_000_000_000,
            ..NodeConfig::default()
        };
        let node = Running::start(config);
        let admin = node.client(0);
        Self { node, admin, _directory: directory }
    }

    fn create(&mut self, uri: &str, persistency: u64) -> (u64, ControlParameters) {
        let parameters = ControlParameters {
            uri: Some(uri.to_owned()),
            face_persistency: Some(persistency),
            ..ControlParameters::default()
        };
        let response = self.admin.command("/localhost/nfd/faces/create", &parameters);
        let body = body(&response);
        (response.status_code, body)
    }

    fn created(&mut self, uri: &str) -> FaceId {
        let (code, body) = self.create(uri, PERSISTENT);
        assert_eq!(code, 200, "{uri}");
        FaceId(body.face_id.unwrap())
    }

    fn destroy(&mut self, face: FaceId) {
        let parameters =
            ControlParameters { face_id: Some(face.0), ..ControlParameters::default() };
        let response = self.admin.command("/localhost/nfd/faces/destroy", &parameters);
        assert_eq!(response.status_code, 200);
    }

    fn route(&mut self, prefix: &str, face: FaceId) {
        let parameters = ControlParameters {
            name: Some(name(prefix)),
            face_id: Some(face.0),
            ..ControlParameters::default()
        };
        let response = self.admin.command("/localhost/nfd/rib/register", &parameters);
        assert_eq!(response.status_code, 200);
    }

    fn faces(&mut self) -> Vec<FaceStatus> {
        self.admin.faces()
    }

    fn uri(&self, index: usize) -> String {
        self.node.listening[index].to_string()
    }
}

fn body(response: &ControlResponse) -> ControlParameters {
    response.parameters().unwrap_or_default()
}

#[test]
fn a_udp_face_made_by_command_leaves_from_the_port_we_listen_on() {
    let (mut near, mut far) =
        (Site::new(&["udp://127.0.0.1:0"]), Site::new(&["udp://127.0.0.1:0"]));
    let uri = far.uri(1);
    let (code, body) = near.create(&uri, PERMANENT);
    assert_eq!(code, 200);
    let canonical = uri.replace("udp://", "udp4://");
    assert_eq!(body.uri.as_deref(), Some(canonical.as_str()));
    let ours = near.uri(1).replace("udp://", "udp4://");
    assert_eq!(body.local_uri.as_deref(), Some(ours.as_str()));
    let face = FaceId(body.face_id.unwrap());
    near.route("/far", face);
    let mut producer = far.node.client(0);
    assert_eq!(producer.register("/far").status_code, 200);
    near.admin.express("/far/1");
    producer.serve_one(b"from afar");
    assert_eq!(near.admin.next().unwrap().data().content, b"from afar");
    let seen = far.faces().into_iter().any(|status| status.uri == ours);
    assert!(seen, "the far side sees our port");

    let (code, body) = near.create(&uri, PERSISTENT);
    assert_eq!((code, body.face_id), (409, Some(face.0)), "there is one already");
    near.destroy(face);
    assert_eq!(near.faces().iter().filter(|status| status.face_id == face.0).count(), 0);
    near.admin.express("/far/2");
    assert!(near.admin.next().unwrap().nack.is_some(), "its route is gone");
    assert_ne!(near.created(&uri), face);
}

#[test]
fn host_names_are_resolved_and_ports_are_optional() {
    let (mut near, far) = (Site::new(&[]), Site::new(&["tcp://127.0.0.1:0"]));
    let Endpoint::Tcp { port, .. } = far.node.listening[1] else { unreachable!() };
    let (code, body) = near.create(&format!("tcp4://localhost:{port}"), PERSISTENT);
    assert_eq!(code, 200);
    assert_eq!(body.uri, Some(format!("tcp4://127.0.0.1:{port}")));
    let (code, again) = near.create(&format!("tcp4://127.0.0.1:{port}"), PERSISTENT);
    assert_eq!((code, again.face_id), (409, body.face_id));
    let (code, body) = near.create("udp4://localhost", PERSISTENT);
    assert_eq!((code, body.uri.as_deref()), (200, Some("udp4://127.0.0.1:6363")));
}

#[test]
fn what_cannot_be_is_refused_with_nfds_codes() {
    let mut site = Site::new(&[]);
    for (uri, persistency, code) in [
        ("not a uri", PERSISTENT, 400),
        ("udp4://", PERSISTENT, 400),
        ("udp6://127.0.0.1:6363", PERSISTENT, 400),
        ("udp4://no.such.host.invalid:6363", PERSISTENT, 400),
        ("gopher://127.0.0.1:70", PERSISTENT, 406),
        ("tcp4://127.0.0.1:6363", ON_DEMAND, 406),
        ("tcp4://127.0.0.1:1", PERSISTENT, 504),
        ("unix:///no/such/socket", PERSISTENT, 504),
    ] {
        assert_eq!(site.create(uri, persistency).0, code, "{uri}");
    }
    assert_eq!(site.faces().iter().filter(|status| !status.uri.starts_with("fd")).count(), 0);
}

#[test]
fn a_face_made_by_command_gets_a_new_link_when_it_loses_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let endpoint: Endpoint =
        format!("unix://{}/far.sock", directory.path().display()).parse().unwrap();
    let far = Listener::bind(&endpoint).unwrap();
    let mut near = Site::new(&[]);
    let face = near.created(&endpoint.to_string());
    near.route("/far", face);
    let accept = |far: &Listener| -> Client {
        let mut taken = None;
        wait_for("a connection", || {
            taken = far.accept().unwrap();
            taken.is_some()
        });
        Client::new(taken.unwrap())
    };
    let mut first = accept(&far);
    near.admin.express("/far/1");
    first.serve_one(b"1");
    assert_eq!(near.admin.next().unwrap().data().content, b"1");
    drop(first);
    let mut second = accept(&far);
    near.admin.express("/far/2");
    second.serve_one(b"2");
    assert_eq!(near.admin.next().unwrap().data().content, b"2");
    near.destroy(face);
    assert!(second.is_closed_by_peer(), "and is gone for good when it is destroyed");
}

#[test]
fn icmp_does_not_end_a_lasting_udp_face() {
    // Nobody listens there, and the kernel says so after the first datagram.
    let mut near = Site::new(&[]);
    let dead = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = dead.local_addr().unwrap();
    drop(dead);
    let face = near.created(&format!("udp4://{address}"));
    near.route("/far", face);
    for i in 0..5 {
        near.admin.express(&format!("/far/{i}"));
    }
    assert_eq!(near.node.client(0).faces().iter().filter(|it| it.face_id == face.0).count(), 1);
    let peer: Endpoint = format!("udp://{address}").parse().unwrap();
    let late = Running::start(NodeConfig { listen: vec![peer], ..NodeConfig::default() });
    for i in 5..100 {
        near.admin.express(&format!("/far/{i}"));
        if near.admin.next_within(PATIENCE).is_some_and(|got| got.nack.is_some()) {
            break;
        }
    }
    assert!(late.finish().counters().in_interests > 0, "the peer that came late is reached");
    assert!(near.node.client(0).faces().iter().any(|status| status.face_id == face.0));
}

#[test]
fn a_client_may_say_which_of_our_sockets_to_use() {
    let mut site = Site::new(&["udp://127.0.0.1:0"]);
    let ours = site.uri(1).replace("udp://", "udp4://");
    let mut create = |uri: &str, local_uri: &str| {
        let parameters = ControlParameters {
            uri: Some(uri.to_owned()),
            local_uri: Some(local_uri.to_owned()),
            ..ControlParameters::default()
        };
        let response = site.admin.command("/localhost/nfd/faces/create", &parameters);
        (response.status_code, body(&response).local_uri)
    };
    assert_eq!(create("udp4://127.0.0.1:7", &ours), (200, Some(ours.clone())));
    assert_eq!(create("udp4://127.0.0.1:8", "udp4://127.0.0.1:9").0, 406);
    assert_eq!(create("tcp4://127.0.0.1:8", &ours).0, 406);
    let made = site.faces().iter().filter(|status| status.uri.starts_with("udp")).count();
    assert_eq!(made, 1);
}
