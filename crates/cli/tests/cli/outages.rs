//! Restarts that sites make every day: a transfer that has begun bears them and says so.

use crate::harness::{Daemon, Home, free_port, noise, wait_for, write};
use crate::killed::await_data;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

const SIZE: usize = 24 << 20;

/// A `get` slow enough to be hit in the middle.
fn slow_get(home: &Home, args: &[&str]) -> Child {
    let mut command = home.byname();
    command.arg("get").args(args).args(["--bwlimit", "6000000"]);
    command.stderr(Stdio::piped()).spawn().unwrap()
}

#[track_caller]
fn finished(get: Child) -> String {
    let output = get.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    stderr
}

fn publish(home: &Home, dir: &Path, port: u16) -> Daemon {
    let [tcp, udp] = ["tcp", "udp"].map(|scheme| format!("{scheme}://127.0.0.1:{port}"));
    let dir = dir.to_str().unwrap();
    home.start(&["up", dir, "--name", "/lab/d", "--listen", &tcp, "--listen", &udp], "byname:/")
}

/// What `up --share` prints: both addresses are of one publisher, who restarts.
#[test]
fn a_publisher_with_two_addresses_may_restart_in_mid_file() {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    let content = noise(SIZE, 41);
    write(&dir.join("big"), &content);
    let port = free_port();
    let mut up = publish(&a, &dir, port);
    let link = up.link_to("big");
    let get = slow_get(&b, &[&link]);
    await_data(&b.path().join(".big.byname-part"), || up.log());
    up.kill();
    // Long enough to be refused over TCP and to be told "unreachable" over UDP.
    std::thread::sleep(Duration::from_millis(1500));
    let _up = publish(&a, &dir, port);
    finished(get);
    assert!(std::fs::read(b.path().join("big")).unwrap() == content);
}

/// A tree through a forwarder, while forwarder and server are away one after the other.
#[test]
fn a_tree_bears_a_forwarder_and_a_server_that_are_away() {
    let (origin, reader) = (Home::new(), Home::new());
    let socket = format!("unix://{}", origin.work("run").join("f.sock").display());
    let forward = || origin.start(&["forward", "--listen", &socket], "listening");
    let dir = origin.work("d");
    let files: Vec<Vec<u8>> = (0..24).map(|file| noise(1 << 20, 100 + file)).collect();
    for (index, content) in files.iter().enumerate() {
        std::fs::create_dir_all(dir.join(format!("{}", index % 6))).unwrap();
        write(&dir.join(format!("{}/{index}", index % 6)), content);
    }
    let path = dir.to_str().unwrap();
    let serve =
        || origin.start(&["serve", path, "--name", "/lab/d", "--connect", &socket], "byname:/");
    let mut forwarder = forward();
    let mut server = serve();
    let link = server.link();
    let get = slow_get(&reader, &["-r", &link, "--connect", &socket, "-o", "copy"]);
    let copied = |count: usize| {
        let here = || {
            (0..files.len())
                .filter(|it| reader.path().join(format!("copy/{}/{it}", it % 6)).exists())
                .count()
        };
        wait_for("files", || here() >= count, String::new);
    };
    copied(2);
    forwarder.kill();
    std::thread::sleep(Duration::from_millis(1500));
    let _forwarder = forward();
    copied(8);
    server.interrupt();
    std::thread::sleep(Duration::from_secs(3));
    let _server = serve();
    let said = finished(get);
    for (index, content) in files.iter().enumerate() {
        let copy = reader.path().join(format!("copy/{}/{index}", index % 6));
        assert!(std::fs::read(copy).unwrap() == *content, "{index}");
    }
    assert!(said.contains("waiting, up to 60 s"), "{said}");
    assert!(said.contains("answers again after"), "{said}");
}

#[test]
fn a_server_waits_for_a_forwarder_that_starts_after_it() {
    let home = Home::new();
    let socket = format!("unix://{}", home.work("run").join("f.sock").display());
    let dir = home.work("d");
    write(&dir.join("x"), b"content");
    let args = ["serve", dir.to_str().unwrap(), "--name", "/lab/d", "--connect", &socket];
    let server = home.start(&args, "waiting for a forwarder");
    assert!(server.log().contains("nobody listens on unix:///"), "{}", server.log());
    let _forwarder = home.start(&["forward", "--listen", &socket], "listening");
    server.await_line("byname:/");
    let found = home.run(&["cat", &server.link_to("x"), "--connect", &socket]).ok();
    assert_eq!(found.bytes(), b"content");
}
