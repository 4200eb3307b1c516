//! Another configuration while the node runs.

use byname_io::Endpoint;
use byname_node::{Changes, ControlError, NodeConfig, StaticRoute};

use crate::harness::{Client, Running, name, wait_for};

struct Site {
    node: Running,
    config: NodeConfig,
    directory: tempfile::TempDir,
}

impl Site {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listen = vec![unix(&directory, "a"), "udp://127.0.0.1:0".parse().unwrap()];
        let config = NodeConfig { listen, reconnect_min_ns: 1_000_000, ..NodeConfig::default() };
        let node = Running::start(config.clone());
        Self { node, config, directory }
    }

    fn reload(&mut self, change: impl FnOnce(&mut NodeConfig)) -> Changes {
        change(&mut self.config);
        self.node.control.reload(self.config.clone()).unwrap()
    }
}

fn unix(directory: &tempfile::TempDir, which: &str) -> Endpoint {
    format!("unix://{}/{which}.sock", directory.path().display()).parse().unwrap()
}

#[test]
fn listeners_come_and_go_and_faces_stay() {
    let mut site = Site::new();
    let mut producer = site.node.client(0);
    assert_eq!(producer.register("/app").status_code, 200);
    let (first, second) = (unix(&site.directory, "a"), unix(&site.directory, "b"));
    let changes = site.reload(|config| config.listen[0] = second.clone());
    assert_eq!((changes.listeners_added, changes.listeners_removed), (1, 1));
    assert!(byname_io::Connection::connect(&first, crate::harness::PATIENCE).is_err());
    // Who came through the socket that is gone is served as before.
    let mut consumer = Client::connect(&second);
    consumer.express("/app/1");
    producer.serve_one(b"through both");
    assert_eq!(consumer.next().unwrap().data().content, b"through both");
    assert_eq!(site.reload(|_| {}), Changes::default());
}

#[test]
fn a_configuration_that_cannot_be_had_changes_nothing() {
    let mut site = Site::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let mut wanted = site.config.clone();
    wanted.listen =
        vec![unix(&site.directory, "new"), format!("tcp://127.0.0.1:{port}").parse().unwrap()];
    let refused = site.node.control.reload(wanted);
    assert!(matches!(refused, Err(ControlError::Refused(_))), "{refused:?}");
    assert_eq!(site.node.client(0).register("/still").status_code, 200);
    assert!(!site.directory.path().join("new.sock").exists());
    assert_eq!(site.reload(|_| {}), Changes::default());
}

#[test]
fn routes_and_their_faces_follow_the_file() {
    let far = Running::listen(&["tcp://127.0.0.1:0"]);
    let mut producer = far.client(0);
    assert_eq!(producer.register("/far").status_code, 200);
    let mut site = Site::new();
    let mut consumer = site.node.client(0);
    consumer.express("/far/before");
    assert!(consumer.next().unwrap().nack.is_some());
    let route = StaticRoute::from((name("/far"), far.listening[0].clone()));
    assert_eq!(site.reload(|config| config.routes.push(route)).routes_added, 1);
    let mut count = 0;
    wait_for("the route", || {
        count += 1;
        consumer.express(&format!("/far/{count}"));
        match consumer.next_within(std::time::Duration::from_millis(50)) {
            Some(_) => false,
            None => {
                producer.serve_one(b"far");
                consumer.next().unwrap().data().content == b"far"
            }
        }
    });
    let costly = site.reload(|config| config.routes[0].cost = 7);
    assert_eq!((costly.routes_added, costly.faces_removed), (1, 0), "the face stays");
    let gone = site.reload(|config| config.routes.clear());
    assert_eq!((gone.routes_removed, gone.faces_removed), (1, 1));
    consumer.express("/far/after");
    assert!(consumer.next().unwrap().nack.is_some());
    assert!(producer.register("/far/other").status_code == 200, "the far side goes on");
}

#[test]
fn what_commands_have_set_up_is_left_alone() {
    let mut site = Site::new();
    let mut producer = site.node.client(0);
    assert_eq!(producer.register("/app").status_code, 200);
    let changes = site.reload(|config| {
        config.strategies = vec![(name("/app"), "multicast".to_owned())];
        config.udp_idle_ns = 1;
    });
    assert_eq!(changes.strategies_changed, 1);
    let mut consumer = site.node.client(0);
    consumer.express("/app/1");
    producer.serve_one(b"registered by command");
    assert_eq!(consumer.next().unwrap().data().content, b"registered by command");
    assert_eq!(site.reload(|config| config.strategies.clear()).strategies_changed, 1);
}

#[test]
fn the_content_store_can_be_closed_and_opened() {
    let mut site = Site::new();
    let mut producer = site.node.client(0);
    assert_eq!(producer.register("/app").status_code, 200);
    let mut consumer = site.node.client(0);
    let mut ask = |consumer: &mut Client, expected: &[u8]| {
        consumer.express("/app/1");
        producer.serve_one(expected);
        assert_eq!(consumer.next().unwrap().data().content, expected);
    };
    ask(&mut consumer, b"one");
    consumer.express("/app/1");
    assert_eq!(consumer.next().unwrap().data().content, b"one", "from memory");
    site.reload(|config| config.cs_serve = false);
    ask(&mut consumer, b"two");
    site.reload(|config| {
        config.cs_serve = true;
        config.forwarder.cs_bytes_max = 0;
    });
    ask(&mut consumer, b"three");
    ask(&mut consumer, b"four");
}

#[test]
fn a_udp_face_survives_when_its_listener_goes_if_it_is_meant_to_last() {
    let far = Running::listen(&["tcp://127.0.0.1:0", "udp://127.0.0.1:0"]);
    let mut producer = far.client(0);
    assert_eq!(producer.register("/far").status_code, 200);
    let mut site = Site::new();
    let route = StaticRoute::from((name("/far"), far.listening[1].clone()));
    site.reload(|config| config.routes.push(route));
    let mut consumer = site.node.client(0);
    let mut count = 0;
    let mut reach = |consumer: &mut Client, producer: &mut Client| {
        wait_for("the route", || {
            count += 1;
            consumer.express(&format!("/far/{count}"));
            match consumer.next_within(std::time::Duration::from_millis(50)) {
                Some(_) => false,
                None => {
                    producer.serve_one(b"far");
                    consumer.next().unwrap().data().content == b"far"
                }
            }
        });
    };
    reach(&mut consumer, &mut producer);
    let gone = site.reload(|config| drop(config.listen.remove(1)));
    assert_eq!((gone.listeners_removed, gone.faces_removed), (1, 0));
    reach(&mut consumer, &mut producer);
}
