//! Links and forwarders between reader and publisher.

use crate::harness::{Home, below, free_port, noise, write};
use std::io::Write as _;

/// Publishes through `listen`, reads through a second forwarder that listens on `middle`.
fn two_hops(listen: &str, middle: &str) {
    let (a, f, b) = (Home::new(), Home::new(), Home::new());
    let dir = a.work("d");
    let content = noise(2_000_000, 11);
    write(&dir.join("x"), &content);
    let up = a.start(
        &["up", dir.to_str().unwrap(), "--name", "/lab/d", "--listen", listen, "--via", middle],
        "byname:/",
    );
    let route = format!("/lab={listen}");
    let forward = f.start(&["forward", "--listen", middle, "--route", &route], "listening");
    let link = up.link_to("x");
    let got = b.run(&["cat", &link]);
    if got.bytes() != content {
        panic!("{}\n{}\n{}", got.stderr(), up.log(), forward.log());
    }
    got.ok();
}

#[test]
fn over_tcp() {
    let (p, q) = (free_port(), free_port());
    two_hops(&format!("tcp://127.0.0.1:{p}"), &format!("tcp://127.0.0.1:{q}"));
}

#[test]
fn over_udp() {
    let (p, q) = (free_port(), free_port());
    two_hops(&format!("udp://127.0.0.1:{p}"), &format!("udp://127.0.0.1:{q}"));
}

#[test]
fn over_ipv6_and_a_mix() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        assert!(std::env::var_os("CI").is_none(), "no IPv6 loopback");
        // Past the runner's capture, so that `make test` counts it.
        let _ = writeln!(std::io::stderr(), "SKIPPED: no IPv6 loopback");
        return;
    }
    let (p, q) = (free_port(), free_port());
    two_hops(&format!("tcp://[::1]:{p}"), &format!("udp://[::1]:{q}"));
}

#[test]
fn over_unix_sockets() {
    let dir = tempfile::tempdir().unwrap();
    let socket = |name: &str| format!("unix://{}", dir.path().join(name).display());
    two_hops(&socket("a.sock"), &socket("b.sock"));
}

#[test]
fn serve_attaches_to_a_forwarder_and_ndn_client_transport_is_honoured() {
    let home = Home::new();
    let dir = home.work("d");
    write(&dir.join("x"), b"content");
    let socket = format!("unix://{}", home.path().join("f.sock").display());
    let _forward = home.start(&["forward", "--listen", &socket], "listening");
    let path = dir.to_str().unwrap();
    let serve = home.start(&["serve", path, "--name", "/lab/d", "--connect", &socket], "byname:/");
    assert!(serve.log().contains("key=SHA256:"), "{}", serve.log());
    let mut cat = home.byname();
    cat.args(["cat", "/lab/d/x"]).env("NDN_CLIENT_TRANSPORT", &socket);
    assert_eq!(cat.output().unwrap().stdout, b"content");
}

#[test]
fn several_mounts() {
    let home = Home::new();
    let (one, two) = (home.work("one"), home.work("two"));
    write(&one.join("x"), b"1");
    write(&two.join("x"), b"2");
    let socket = format!("unix://{}", home.path().join("f.sock").display());
    let _forward = home.start(&["forward", "--listen", &socket], "listening");
    let mounts = [format!("/lab/one={}", one.display()), format!("/lab/two={}", two.display())];
    let args = ["serve", "--mount", &mounts[0], "--mount", &mounts[1], "--connect", &socket];
    let _serve = home.start(&args, "/lab/two");
    assert_eq!(home.run(&["cat", "/lab/one/x", "--connect", &socket]).ok().bytes(), b"1");
    assert_eq!(home.run(&["cat", "/lab/two/x", "--connect", &socket]).ok().bytes(), b"2");
}

#[test]
fn up_attaches_to_a_forwarder_that_is_there() {
    let home = Home::new();
    let dir = home.work("d");
    write(&dir.join("x"), b"content");
    let _forward = home.start(&["forward"], "listening");
    let up = home.start(&["up", dir.to_str().unwrap(), "--name", "/lab/d"], "byname:/");
    assert!(up.log().contains("attached"), "{}", up.log());
    assert_eq!(home.run(&["cat", "/lab/d/x"]).ok().bytes(), b"content");
}

#[test]
fn up_alone_serves_this_machine_only_and_says_how_to_share() {
    let home = Home::new();
    let dir = home.work("d");
    write(&dir.join("x"), b"content");
    let mut up = home.start(&["up", dir.to_str().unwrap()], "byname:/");
    assert!(up.log().contains("--share"), "{}", up.log());
    let link = up.line_with("byname:/");
    assert!(link.contains("/d,via=unix:///"), "{link}");
    assert_eq!(home.run(&["cat", &below(&link, "x")]).ok().bytes(), b"content");
    assert_eq!(up.interrupt(), Some(0));
}

#[test]
fn one_user_publishes_as_often_as_they_like_but_each_name_once() {
    let home = Home::new();
    let (one, two) = (home.work("one"), home.work("two"));
    write(&one.join("x"), b"1");
    write(&two.join("x"), b"2");
    let _first = home.start(&["up", one.to_str().unwrap(), "--name", "/lab/one"], "byname:/");
    let second = home.start(&["up", two.to_str().unwrap(), "--name", "/lab/two"], "byname:/");
    assert!(second.log().contains("attached"), "{}", second.log());
    assert_eq!(home.run(&["cat", "/lab/one/x"]).ok().bytes(), b"1");
    assert_eq!(home.run(&["cat", "/lab/two/x"]).ok().bytes(), b"2");
    let again = home.run(&["up", two.to_str().unwrap(), "--name", "/lab/two"]);
    again.fails_with(7, "this very name");
}
