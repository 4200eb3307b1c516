//! A bad network between reader and server: everything arrives as it was, or fails and says why.

use crate::bad_network::{Faults, relay_tcp, relay_udp};
use crate::harness::{Daemon, Home, free_port, noise, write};
use serde_json::Value;
use std::net::{SocketAddr, TcpListener, UdpSocket};

const SIZE: usize = 4_000_000;
/// Five pieces for several sources.
const LARGE: usize = 40_000_000;

/// A server that listens itself, over UDP and TCP, and readers that come through bad networks.
struct Scene {
    home: Home,
    _server: Daemon,
    port: u16,
}

impl Scene {
    fn new() -> Self {
        let home = Home::new();
        let dir = home.work("data");
        write(&dir.join("file"), &noise(SIZE, 5));
        write(&dir.join("large"), &noise(LARGE, 6));
        let port = free_port();
        let (udp, tcp) = (format!("udp://127.0.0.1:{port}"), format!("tcp://127.0.0.1:{port}"));
        let dir = dir.to_str().unwrap();
        let args = ["serve", dir, "--name", "/lab", "--listen", &udp, "--listen", &tcp];
        let server = home.start(&args, "byname:/");
        Self { home, _server: server, port }
    }

    /// Starts a relay with these faults; its address.
    fn bad(&self, transport: &str, faults: &[&str]) -> String {
        let faults: Vec<String> = faults.iter().map(|fault| (*fault).to_owned()).collect();
        let faults = Faults::parse(&faults).unwrap();
        let target = SocketAddr::from(([127, 0, 0, 1], self.port));
        let address = if transport == "udp" {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let address = socket.local_addr().unwrap();
            std::thread::spawn(move || relay_udp(&socket, target, faults).map_err(drop));
            address
        } else {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            std::thread::spawn(move || relay_tcp(&listener, target, faults).map_err(drop));
            address
        };
        format!("{transport}://{address}")
    }

    /// Reads the large file from several sources; what each has brought and why it was left.
    fn share(&self, sources: &[&str]) -> Vec<Value> {
        let mut args = vec!["get", "/lab/large", "-o", "large-out", "--no-keep", "--json"];
        args.extend(sources.iter().flat_map(|uri| ["--via", uri]));
        let done = self.home.run(&args).ok();
        let out = self.home.path().join("large-out");
        assert!(std::fs::read(&out).unwrap() == noise(LARGE, 6), "{}", done.stderr());
        std::fs::remove_file(&out).unwrap();
        let told: Value = serde_json::from_str(&done.stdout()).unwrap();
        assert!(told["bytes"].as_u64().unwrap() >= LARGE as u64, "{told}");
        assert_eq!(told["bytes_resumed"], 0, "{told}");
        told["sources"].as_array().unwrap().clone()
    }

    fn arrives(&self, transport: &str, faults: &[&str]) {
        let via = self.bad(transport, faults);
        let out = self.home.path().join("out");
        let args = ["get", "/lab/file", "--via", &via, "-o", out.to_str().unwrap(), "--no-keep"];
        let done = self.home.run(&args).ok();
        let shown = format!("{faults:?}: {}", done.stderr());
        assert!(std::fs::read(&out).unwrap() == noise(SIZE, 5), "it differs; {shown}");
        std::fs::remove_file(&out).unwrap();
    }
}

#[test]
fn what_is_lost_doubled_or_out_of_order_arrives_as_it_was() {
    let scene = Scene::new();
    for loss in ["loss=0.0001", "loss=0.01", "loss=0.05"] {
        scene.arrives("udp", &[loss]);
    }
    scene.arrives("udp", &["duplicate=0.05", "reorder=0.05"]);
    scene.arrives("udp", &["delay=10", "jitter=10", "loss=0.01"]);
}

#[test]
fn a_link_that_comes_and_goes_delays_and_spoils_nothing() {
    let scene = Scene::new();
    scene.arrives("udp", &["flap=1000:300", "rate=4000000"]);
    scene.arrives("tcp", &["flap=500:200", "rate=8000000", "delay=5"]);
}

#[test]
fn corrupt_pieces_are_requested_again() {
    let scene = Scene::new();
    for seed in 1..=5 {
        scene.arrives("udp", &["corrupt=0.02", &format!("seed={seed}")]);
    }
    let seed = "seed=7";
    let all = ["corrupt=0.01", "loss=0.02", "duplicate=0.02", "reorder=0.02", "delay=5", seed];
    scene.arrives("udp", &all);
}

#[test]
fn what_cannot_arrive_fails_and_leaves_nothing_that_looks_whole() {
    let scene = Scene::new();
    let out = scene.home.path().join("out");
    // 6: a flipped bit may lie where it does not count, such as a Nonce; then a description comes,
    // and its certificate does not.
    let cases = [(["loss=1", "seed=1"], &[4][..]), (["corrupt=1", "seed=2"], &[4, 5, 6])];
    for (faults, codes) in cases {
        let via = scene.bad("udp", &faults);
        let args = ["get", "/lab/file", "--via", &via, "-o", "out", "--timeout", "3"];
        let ended = scene.home.byname().args(args).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        let code = ended.status.code().unwrap();
        assert!(codes.contains(&code), "{faults:?}: code {code}: {said}");
        assert!(said.contains("byname: "), "{faults:?}: {said}");
        assert!(!out.exists());
    }
}

fn bytes_of(source: &Value) -> u64 {
    source["bytes"].as_u64().unwrap()
}

#[test]
fn several_sources_share_one_large_file() {
    let scene = Scene::new();
    let slow = "rate=12000000";
    let (one, other) = (scene.bad("udp", &[slow]), scene.bad("tcp", &[slow]));
    // The root has to be known before a file is shared.
    scene.home.run(&["stat", "/lab/large", "--checksum", "b3", "--via", &one]).ok();
    let sources = scene.share(&[&one, &other]);
    assert_eq!(sources.len(), 2);
    for source in &sources {
        assert!(bytes_of(source) >= 8 << 20, "both bring something: {sources:?}");
        assert_eq!(source["left"], Value::Null, "{sources:?}");
    }
}

#[test]
fn a_source_that_lies_or_is_silent_is_left_and_what_it_owes_comes_from_another() {
    let scene = Scene::new();
    let good = scene.bad("tcp", &["rate=20000000"]);
    scene.home.run(&["stat", "/lab/large", "--checksum", "b3", "--via", &good]).ok();
    for fault in ["corrupt=1", "loss=1"] {
        let bad = scene.bad("udp", &[fault]);
        let sources = scene.share(&[&good, &bad]);
        let (left, stayed): (Vec<_>, Vec<_>) =
            sources.iter().partition(|source| source["endpoint"] == bad[..]);
        assert!(left[0]["left"].is_string(), "{fault}: {sources:?}");
        assert_eq!(stayed[0]["left"], Value::Null, "{fault}: {sources:?}");
        assert!(bytes_of(stayed[0]) >= 30 << 20, "{fault}: {sources:?}");
    }
}
