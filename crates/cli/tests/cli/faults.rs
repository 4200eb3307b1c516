//! A bad network between reader and server: everything arrives as it was, or fails and says why.

use crate::bad_network::{Faults, relay_tcp, relay_udp};
use crate::harness::{Daemon, Home, free_port, noise, write};
use std::net::{SocketAddr, TcpListener, UdpSocket};

const SIZE: usize = 4_000_000;

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
fn what_is_spoiled_now_and_then_is_asked_for_again() {
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
    for (faults, codes) in [(["loss=1", "seed=1"], &[4][..]), (["corrupt=1", "seed=2"], &[4, 5])] {
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
