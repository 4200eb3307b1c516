//! Short forms of the scripts in bench/attacks: what strangers do to a server, and whether others
//! notice. Nothing is timed.

use crate::harness::{Daemon, Home, free_port, wait_for, write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// Connections that say nothing: more than there are places, and than descriptors.
const IDLE: usize = 1100;
/// Soft and hard limit of the server's descriptors, so that it cannot raise it.
const DESCRIPTORS: &str = "1024";
const FILES: usize = 20;

/// A server with few descriptors, in whose state a silent second is long.
struct Server {
    home: Home,
    _daemon: Daemon,
    port: u16,
    socket: String,
}

impl Server {
    fn start(kind: &str) -> Self {
        let home = Home::new();
        let dir = home.work("d");
        (0..FILES).for_each(|n| write(&dir.join(format!("f{n}")), b"still here"));
        let port = free_port();
        let socket = format!("unix://{}", home.path().join("s.sock").display());
        let listen = format!("tcp://127.0.0.1:{port}");
        let words = [kind, "d", "--name", "/lab", "--listen", &socket, "--listen", &listen];
        let daemon = home.start_limited(DESCRIPTORS, &words, "byname:/");
        Self { home, _daemon: daemon, port, socket }
    }

    fn get(&self, number: usize, via: &str) -> bool {
        let file = format!("/lab/f{number}");
        let args = ["get", &file, "--via", via, "-o", "out", "--timeout", "2", "--no-keep"];
        let output = self.home.byname().args(args).output().unwrap();
        let is_right = || std::fs::read(self.home.path().join("out")).unwrap() == b"still here";
        output.status.success() && is_right()
    }
}

fn idle_connections_lock_nobody_out(kind: &str) {
    byname_io::descriptors::raise_limit();
    let server = Server::start(kind);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port));
    let idle: Vec<TcpStream> = (0..IDLE)
        .map_while(|_| TcpStream::connect_timeout(&address, Duration::from_secs(5)).ok())
        .collect();
    assert!(idle.len() > 600, "only {} connections", idle.len());
    // The operator comes in at once, and every file can be opened.
    for number in 0..FILES {
        assert!(server.get(number, &server.socket), "f{number} over the Unix socket");
    }
    // A stranger does as soon as somebody has been silent for long.
    let via = format!("tcp://{address}");
    wait_for("place for a reader", || server.get(0, &via), || "it stays full".to_owned());
    drop(idle);
}

#[test]
fn a_thousand_idle_connections_lock_nobody_out_of_up() {
    idle_connections_lock_nobody_out("up");
}

#[test]
fn a_thousand_idle_connections_lock_nobody_out_of_serve() {
    idle_connections_lock_nobody_out("serve");
}
