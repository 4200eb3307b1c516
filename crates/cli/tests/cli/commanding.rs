//! Looking at a forwarder and commanding it: faces, routes, strategies, the content store, and
//! what `explain` tells about a read.

use crate::harness::{Daemon, Home, free_port, noise, signal, wait_for, write};
use serde_json::Value;

/// A forwarder with a socket of its own.
fn forwarder(home: &Home) -> (Daemon, String) {
    let socket = format!("unix://{}", home.work("run").join("f.sock").display());
    (home.start(&["forward", "--listen", &socket], "listening"), socket)
}

fn json(home: &Home, socket: &str, command: &str) -> Vec<Value> {
    let mut args: Vec<&str> = command.split(' ').collect();
    args.extend(["--connect", socket, "--json"]);
    let out = home.run(&args).ok().stdout();
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn faces_are_made_changed_and_ended() {
    let home = Home::new();
    let (_daemon, socket) = forwarder(&home);
    let uri = format!("udp4://127.0.0.1:{}", free_port());
    let create = format!("face create {uri} --persistency permanent --mtu 1200");
    let made = json(&home, &socket, &create);
    assert_eq!(made[0]["schema"], 1);
    let face = made[0]["face"].as_u64().unwrap();
    assert_eq!(json(&home, &socket, &create)[0]["face"], face, "made once");
    let find = |faces: &[Value]| faces.iter().find(|f| f["face"] == face).cloned();
    let listed = find(&json(&home, &socket, "face list")).unwrap();
    assert_eq!(listed["remote"], uri);
    assert_eq!(listed["persistency"], "permanent");
    assert_eq!(listed["mtu"], 1200);
    assert_eq!(listed["reliability"], false);
    json(&home, &socket, &format!("face update {face} --reliability on --marking off"));
    let listed = find(&json(&home, &socket, "face list")).unwrap();
    assert_eq!((&listed["reliability"], &listed["marking"]), (&true.into(), &false.into()));
    // As people write it, without a family; it is sent in the canonical form.
    let (_, far) = uri.split_once("://").unwrap();
    json(&home, &socket, &format!("face destroy udp://{far}"));
    assert_eq!(find(&json(&home, &socket, "face list")), None);
    home.run(&["face", "destroy", &uri, "--connect", &socket]).fails_with(3, "no face to udp4://");
    home.run(&["face", "create", "tape://3", "--connect", &socket]).fails_with(1, "faces/create");
    home.run(&["face", "update", "tape", "--connect", &socket]).fails_with(2, "not a face");
}

#[test]
fn routes_come_and_go() {
    let home = Home::new();
    let (_daemon, socket) = forwarder(&home);
    let uri = format!("udp4://127.0.0.1:{}", free_port());
    let add = format!("route add /lab/x {uri} --cost 7 --expires 600");
    let face = json(&home, &socket, &add)[0]["face"].as_u64().unwrap();
    let routes = json(&home, &socket, "route list /lab");
    assert_eq!(routes.len(), 1);
    let route = &routes[0];
    assert_eq!((&route["prefix"], &route["face"]), (&"/lab/x".into(), &face.into()));
    assert_eq!((&route["cost"], &route["origin"]), (&7.into(), &255.into()));
    assert!(route["expires_ms"].as_u64().unwrap() > 590_000);
    assert!(json(&home, &socket, "route list /elsewhere").is_empty());
    let table = home.run(&["route", "list", "--connect", &socket]).ok().stdout();
    assert!(
        table.contains("PREFIX") && table.contains(&uri) && table.contains("static"),
        "{table}"
    );
    json(&home, &socket, &format!("route remove /lab/x {face}"));
    assert!(json(&home, &socket, "route list /lab").is_empty());
    let bad = ["route", "add", "/lab", "1", "--origin", "moon", "--connect", &socket];
    home.run(&bad).fails_with(2, "origin");
}

#[test]
fn strategies_are_chosen_by_prefix() {
    let home = Home::new();
    let (_daemon, socket) = forwarder(&home);
    let set = json(&home, &socket, "strategy set /lab multicast");
    assert_eq!(set[0]["strategy"], "/localhost/nfd/strategy/multicast/v=5");
    let listed = json(&home, &socket, "strategy list");
    assert_eq!(listed[0]["prefix"], "/");
    assert!(listed.iter().any(|choice| choice["prefix"] == "/lab"));
    json(&home, &socket, "strategy unset /lab");
    assert!(json(&home, &socket, "strategy list").iter().all(|c| c["prefix"] != "/lab"));
    let bad = ["strategy", "set", "/lab", "telepathy", "--connect", &socket];
    let said = home.run(&bad).fails_with(3, "strategy-choice/set").stderr();
    assert!(said.contains("has best-route, multicast"), "{said}");
}

#[test]
fn the_store_is_sized_and_emptied_and_explain_tells_who_answered() {
    let home = Home::new();
    let (_daemon, socket) = forwarder(&home);
    let dir = home.work("d");
    write(&dir.join("x"), &noise(3_000_000, 5));
    let dir = dir.to_str().unwrap();
    let publish = ["serve", dir, "--name", "/lab/d", "--connect", &socket];
    let server = home.start(&publish, "byname:/");
    home.run(&["cat", "/lab/d/x", "--connect", &socket]).ok();
    let held = json(&home, &socket, "cs show")[0]["entries"].as_u64().unwrap();
    assert!(held > 300, "{held} packets of 367 segments");
    let steps = json(&home, &socket, "explain /lab/d/x");
    let step = |name: &str| steps.iter().find(|step| step["step"] == name).unwrap().clone();
    assert_eq!(step("route")["prefix"], "/lab/d");
    assert_eq!(step("metadata")["outcome"], "answered");
    assert!(step("signature")["key"].as_str().unwrap().starts_with("SHA256:"));
    assert_eq!(step("version")["size"], 3_000_000);
    let from = step("content")["by"].to_string();
    assert!(from.contains("from the content store"), "{from}");
    assert_eq!(step("path")["controller"], "bdp");
    assert!(step("path")["requests"].as_u64().unwrap() >= 128, "1 MiB was read");

    let erased = json(&home, &socket, "cs erase /lab/d")[0]["erased"].as_u64().unwrap();
    assert!(erased >= 300, "{erased}");
    let set = json(&home, &socket, "cs config --capacity 10 --admit off");
    assert_eq!((&set[0]["capacity"], &set[0]["admits"]), (&10.into(), &false.into()));
    let steps = json(&home, &socket, "explain /lab/d/x");
    let content = steps.iter().find(|step| step["step"] == "content").unwrap();
    assert!(content["by"].to_string().contains("which answered"), "{content}");

    signal(server.pid(), "STOP");
    let stat = format!("/proc/{}/stat", server.pid());
    let is_stopped = || std::fs::read_to_string(&stat).unwrap().contains(") T ");
    wait_for("stopped server", is_stopped, || server.log());
    let stuck = home.run(&["explain", "/lab/d/y", "--connect", &socket]);
    signal(server.pid(), "CONT");
    assert!(stuck.stdout().contains("which did not answer"), "{}", stuck.stdout());
    stuck.fails_with(4, "it waits here");
    home.run(&["explain", "/nowhere", "--connect", &socket]).fails_with(4, "no route");
}

#[test]
fn commands_over_tcp_are_refused_with_the_way_that_works() {
    let home = Home::new();
    let port = free_port();
    let listen = format!("tcp://127.0.0.1:{port}");
    let _daemon = home.start(&["forward", "--listen", &listen], "listening");
    let set = ["strategy", "set", "/lab", "multicast", "--connect", &listen];
    home.run(&set).fails_with(1, "Unix socket");
}
