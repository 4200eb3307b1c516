//! The forwarder as a service: its file, SIGHUP, metrics, and what systemd is told.

use crate::harness::{Home, free_port, signal, wait_for, write};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Duration;

/// A file with a socket, metrics and whatever else is wanted.
fn file(home: &Home, metrics: u16, more: &str) -> (PathBuf, PathBuf) {
    let socket = home.work("run").join("f.sock");
    let path = home.path().join("forward.toml");
    let text = format!(
        "[forwarder]\nlisten = [\"unix://{}\"]\nsocket_mode = \"0660\"\n\
         metrics = \"127.0.0.1:{metrics}\"\n{more}",
        socket.display()
    );
    write(&path, text.as_bytes());
    (path, socket)
}

fn get(port: u16, path: &str) -> String {
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn everything_stands_in_a_file_that_is_read_again_on_sighup() {
    let home = Home::new();
    let (metrics, port) = (free_port(), free_port());
    let (path, socket) = file(&home, metrics, "");
    let args = ["forward", "--config", path.to_str().unwrap()];
    let daemon = home.start(&args, "listening");
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    daemon.await_line("metrics at");
    assert!(get(metrics, "/healthz").ends_with("ok\n"));

    let more = format!("[[forwarder.route]]\nprefix = \"/far\"\nto = \"udp://127.0.0.1:{port}\"\n");
    file(&home, metrics, &more);
    signal(daemon.pid(), "HUP");
    daemon.await_line("routes +1 -0");
    let connect = format!("unix://{}", socket.display());
    let routes = home.run(&["status", "--connect", &connect, "--json"]).ok().stdout();
    assert!(routes.contains("/far"), "{routes}");
    let peer = format!("remote=\"udp4://127.0.0.1:{port}\"");
    wait_for(
        "the face in the metrics",
        || get(metrics, "/metrics").contains(&peer),
        || get(metrics, "/metrics"),
    );

    file(&home, metrics, "pit_entires = 5\n");
    signal(daemon.pid(), "HUP");
    daemon.await_line("configuration not taken over");
    assert!(daemon.log().contains("pit_entires"), "{}", daemon.log());
    let routes = home.run(&["status", "--connect", &connect, "--json"]).ok().stdout();
    assert!(routes.contains("/far"), "the old configuration stays: {routes}");
}

#[test]
fn flags_win_over_the_file_and_mistakes_are_named() {
    let home = Home::new();
    let (path, socket) = file(&home, free_port(), "strategy = { \"/\" = \"best-route\" }\n");
    let other = home.work("run").join("other.sock");
    let listen = format!("unix://{}", other.display());
    let config = path.to_str().unwrap();
    let args = ["forward", "--config", config, "--listen", &listen, "--strategy", "/a=multicast"];
    let _daemon = home.start(&args, "other.sock");
    assert!(!socket.exists());
    let strategies = home.run(&["strategy", "list", "--connect", &listen]).ok().stdout();
    assert!(strategies.contains("/a") && strategies.contains("multicast"), "{strategies}");

    home.run(&["forward", "--config", "/no/such/file"]).fails_with(7, "/no/such/file");
    home.run(&["forward", "--strategy", "/a=worst"]).fails_with(2, "worst");
    home.run(&["forward", "--allow-register", "/a"]).fails_with(2, "--allow-register");
    home.run(&["forward", "--socket-group", "no-such-group"]).fails_with(2, "no-such-group");
    home.run(&["config", "check", config]).ok();
    write(&path, b"[[forwarder.route]]\nprefix = \"/a\"\n");
    home.run(&["config", "check", config]).fails_with(2, "line 1");
}

#[test]
fn systemd_is_told() {
    let home = Home::new();
    let inbox = home.path().join("notify");
    let socket = UnixDatagram::bind(&inbox).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let next = || {
        let mut buffer = [0u8; 512];
        let length = socket.recv(&mut buffer).expect("news");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    let listen = format!("unix://{}", home.work("run").join("f.sock").display());
    let mut child = home
        .byname()
        .env("NOTIFY_SOCKET", &inbox)
        .args(["forward", "--listen", &listen])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    assert!(next().starts_with("READY=1\n"));
    signal(child.id(), "HUP");
    assert!(next().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert!(next().starts_with("READY=1\nSTATUS=configuration taken over"));
    signal(child.id(), "TERM");
    assert_eq!(next(), "STOPPING=1");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
