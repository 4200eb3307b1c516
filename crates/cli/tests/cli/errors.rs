//! Each way to fail has its message and its exit code.

use crate::harness::{Home, free_port, noise, write};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

fn lab(home: &Home) -> crate::harness::Up {
    let dir = home.work("d");
    write(&dir.join("x"), &noise(1_000_000, 5));
    home.up(&dir, "/lab/d")
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn usage() {
    let home = Home::new();
    home.run(&["get"]).fails_with(2, "Usage");
    home.run(&["frobnicate"]).fails_with(2, "frobnicate");
    home.run(&["get", "no-slash"]).fails_with(2, "starts with '/'");
    home.run(&["ls", "lab"]).fails_with(2, "has a colon: lab:");
    home.run(&["get", "byname:/x?frob=1"]).fails_with(2, "frob");
    home.run(&["get", "/x", "--connect", "gopher://x"]).fails_with(2, "gopher");
    home.run(&["get", "-r", "/x", "-o", "-"]).fails_with(2, "-");
    assert!(home.run(&["--help"]).ok().stdout().contains("byname up"));
    for command in ["up", "forward", "serve", "get", "cat", "ls", "stat", "verify", "key", "trust"]
    {
        let help = home.run(&[command, "--help"]).ok().stdout();
        assert!(help.contains("byname"), "{command}: {help}");
    }
    assert!(home.run(&["--version"]).ok().stdout().contains("ed25519"));
}

#[test]
fn not_found() {
    let home = Home::new();
    let up = lab(&home);
    home.run(&["get", &up.link_to("y")]).fails_with(3, "/lab/d/y");
    home.run(&["ls", &up.link_to("no/such")]).fails_with(3, "/lab/d/no/such");
}

#[test]
fn no_forwarder_and_no_route() {
    let home = Home::new();
    let nobody = format!("tcp://127.0.0.1:{}", free_port());
    home.run(&["ls", "/x", "--connect", &nobody]).fails_with(4, &nobody);
    home.run(&["ls", "/x"]).fails_with(4, "byname up");
    let nobody = format!("udp://127.0.0.1:{}", free_port());
    let started = std::time::Instant::now();
    home.run(&["ls", "/x", "--connect", &nobody]).fails_with(4, "nobody listens");
    assert!(started.elapsed().as_secs() < 10, "told by the kernel, not by silence");
    let up = lab(&home);
    let started = std::time::Instant::now();
    home.run(&["ls", "/nobody/serves/this", "--connect", &up.uri()]).fails_with(4, "route");
    assert!(started.elapsed().as_secs() < 10, "no route is told by a Nack, not by silence");
}

#[test]
fn a_route_whose_neighbour_is_down_names_the_neighbour() {
    let home = Home::new();
    let neighbour = format!("tcp://127.0.0.1:{}", free_port());
    let route = format!("/lab={neighbour}");
    let _forwarder = home.start(&["forward", "--route", &route], "listening");
    let words = format!("the route /lab leads to {neighbour}, which is down");
    for args in [["ls", "/lab/d"], ["cat", "/lab/d/x"]] {
        home.run(&args).fails_with(4, &words);
    }
    home.run(&["ls", "/other"]).fails_with(4, "nobody has announced this prefix");
    let listed = home.run(&["face", "list", "--json"]).ok().stdout();
    assert!(listed.lines().any(|line| line.contains("\"is_down\":true")), "{listed}");
    assert!(home.run(&["face", "list"]).ok().stdout().contains("down"));
}

#[test]
fn a_neighbour_without_a_route_is_named_too() {
    let (home, other) = (Home::new(), Home::new());
    let neighbour = format!("tcp://127.0.0.1:{}", free_port());
    let _next = other.start(&["forward", "--listen", &neighbour], "listening");
    let route = format!("/lab={neighbour}");
    let forwarder = home.start(&["-v", "forward", "--route", &route], "listening");
    forwarder.await_line("connected");
    home.run(&["ls", "/lab/d"]).fails_with(4, "which has no route to it either");
}

#[test]
fn the_server_may_not_read_the_file() {
    let home = Home::new();
    let dir = home.work("d");
    write(&dir.join("x"), b"x");
    std::fs::set_permissions(dir.join("x"), std::fs::Permissions::from_mode(0o040)).unwrap();
    // Root reads everything, so the server runs as somebody else.
    for path in [home.path(), &dir] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    if !is_root() {
        let up = home.up_with(&dir, "/lab/d", &[]);
        home.run(&["cat", &up.link_to("x")]).fails_with(7, "permission");
        return;
    }
    let port = free_port();
    let log = home.path().join("log");
    let file = std::fs::File::create(&log).unwrap();
    let state = home.work("nobody");
    std::os::unix::fs::chown(&state, Some(65534), Some(65534)).unwrap();
    let program = copied_binary(home.path());
    let mut server = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(program)
        .args(["up", dir.to_str().unwrap(), "--name", "/lab/d"])
        .args(["--listen", &format!("tcp://127.0.0.1:{port}")])
        .env("BYNAME_HOME", &state)
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .spawn()
        .unwrap();
    let text = || std::fs::read_to_string(&log).unwrap();
    crate::harness::wait_for("link", || text().contains("byname:/"), text);
    let text = text();
    let link = text.split_whitespace().find(|word| word.starts_with("byname:/")).unwrap();
    let outcome = home.run(&["cat", &crate::harness::below(link, "x")]);
    server.kill().unwrap();
    server.wait().unwrap();
    outcome.fails_with(7, "permission");
}

/// The build directory may be closed to other users.
fn copied_binary(dir: &Path) -> std::path::PathBuf {
    let copy = dir.join("byname-copy");
    std::fs::copy(env!("CARGO_BIN_EXE_byname"), &copy).unwrap();
    copy
}

#[test]
fn the_client_may_not_write() {
    let home = Home::new();
    let up = lab(&home);
    home.run(&["get", &up.link_to("x"), "-o", "/proc/x"]).fails_with(7, "/proc");
    home.run(&["get", &up.link_to("x"), "-o", "no/such/dir/x"]).fails_with(7, "no/such/dir");
    write(&home.path().join("file"), b"");
    home.run(&["get", "-r", &up.link, "-o", "file"]).fails_with(7, "file");
}

#[test]
fn disk_full() {
    if !is_root() {
        assert!(std::env::var_os("CI").is_none(), "mounting needs root");
        // Past the runner's capture, so that `make test` counts it.
        let _ = writeln!(std::io::stderr(), "SKIPPED: mounting a small file system needs root");
        return;
    }
    let home = Home::new();
    let up = lab(&home);
    let small = home.work("small");
    let mount =
        |args: &[&str]| Command::new(args[0]).args(&args[1..]).arg(&small).status().unwrap();
    assert!(mount(&["mount", "-t", "tmpfs", "-o", "size=256k", "none"]).success());
    let target = small.join("x");
    let outcome = home.run(&["get", &up.link_to("x"), "-o", target.to_str().unwrap()]);
    let left = target.exists();
    assert!(mount(&["umount"]).success());
    outcome.fails_with(7, "space");
    assert!(!left);
}

#[test]
fn what_up_refuses_to_publish() {
    let home = Home::new();
    home.run(&["up", "/"]).fails_with(2, "--yes");
    home.run(&["up", home.path().to_str().unwrap()]).fails_with(2, "--yes");
    home.run(&["up", "no-such-dir"]).fails_with(7, "no-such-dir");
    write(&home.path().join("file"), b"");
    home.run(&["up", "file"]).fails_with(7, "directory");
}

#[test]
fn a_taken_port_names_its_owner() {
    let home = Home::new();
    let dir = home.work("d");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("tcp://{}", listener.local_addr().unwrap());
    let refused = home.run(&["up", dir.to_str().unwrap(), "--listen", &uri]);
    let text = refused.fails_with(1, "in use").stderr();
    assert!(text.contains(&std::process::id().to_string()), "{text}");
}

#[test]
fn configuration_mistakes_are_named() {
    let home = Home::new();
    let dir = home.path().join("home/config");
    std::fs::create_dir_all(&dir).unwrap();
    write(&dir.join("config.toml"), b"[client]\ntimeout = 3\n");
    home.run(&["config", "show"]).fails_with(2, "client.timeout");
    home.run(&["config", "check"]).fails_with(2, "config.toml");
    write(&dir.join("config.toml"), b"[client]\ntimeout_s = 3\n");
    let shown = home.run(&["config", "show", "--origin"]).ok().stdout();
    assert!(shown.lines().any(|l| l.contains("client.timeout_s") && l.contains("config.toml")));
}

#[test]
fn a_directory_in_place_of_the_target_is_told_before_anything_travels() {
    let home = Home::new();
    let up = lab(&home);
    home.work("x");
    home.run(&["get", &up.link_to("x")]).fails_with(7, "a directory");
    home.run(&["get", &up.link_to("x"), "-o", "new/"]).fails_with(2, "-o names the file");
    home.run(&["get", "/x", "--bwlimit", "fast"]).fails_with(2, "a number of bytes");
    assert!(!home.path().join(".x.byname-part").exists());
}
