//! A holder that stops without a word, while another one has the same.

use crate::harness::{Home, free_port, noise, signal, wait_for, write};
use crate::killed::await_data;
use serde_json::Value;

const SIZE: usize = 48 << 20;
/// Octets a second that the reader may ask for, and the Interests that are.
const RATE: u64 = 8_000_000;
const INTERESTS_PER_S: u64 = RATE / 8192 + 1;

/// Interests sent so far to each face with a route to `/lab/d`, by the number of the face.
fn asked(home: &Home, socket: &str) -> Vec<u64> {
    let rows = |command: &[&str]| -> Vec<Value> {
        let args = [command, &["--connect", socket, "--json"]].concat();
        let out = home.run(&args).ok().stdout();
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let faces = rows(&["face", "list"]);
    let mut holders: Vec<u64> =
        rows(&["route", "list", "/lab/d"]).iter().map(|it| it["face"].as_u64().unwrap()).collect();
    holders.sort_unstable();
    let out = |holder| faces.iter().find(|face| face["face"] == holder);
    holders.into_iter().map(|it| out(it).unwrap()["out_interests"].as_u64().unwrap()).collect()
}

/// Docs/decisions, 11: best-route leaves the dead. Counted, not timed: the reader's rate says how
/// many Interests two seconds are.
#[test]
fn a_stopped_holder_is_left_within_two_seconds_and_the_reader_finishes() {
    let (origin, copier, mirror, reader) = (Home::new(), Home::new(), Home::new(), Home::new());
    let socket = format!("unix://{}", origin.work("run").join("f.sock").display());
    let forwarder = origin.start(&["forward", "--listen", &socket], "listening");
    // Answers come from holders, not from the forwarder's memory.
    origin.run(&["cs", "config", "--admit", "off", "--connect", &socket]).ok();
    let dir = origin.work("d");
    let content = noise(SIZE, 31);
    write(&dir.join("big"), &content);
    let own = format!("tcp://127.0.0.1:{}", free_port());
    let path = dir.to_str().unwrap();
    let publish = ["serve", path, "--name", "/lab/d", "--connect", &socket, "--listen", &own];
    let publisher = origin.start(&publish, "byname:/");
    let link = publisher.link_to("big");
    let copy = copier.work("copy");
    copier.run(&["get", &link, "--connect", &own, "-o", "copy/big"]).ok();
    let copy = copy.to_str().unwrap();
    let serve = ["serve", "--mirror", copy, "--name", "/lab/d", "--connect", &socket];
    let mirrored = mirror.start(&serve, "byname:/");
    wait_for("two holders", || asked(&origin, &socket).len() == 2, || mirrored.log());

    let mut get = reader.byname();
    get.args(["get", &link, "--connect", &socket, "--bwlimit", &RATE.to_string()]);
    let mut get = get.spawn().unwrap();
    await_data(&reader.path().join(".big.byname-part"), || forwarder.log());
    let before = asked(&origin, &socket);
    // The publisher connected first.
    let best = usize::from(before[1] > before[0]);
    let dead = [&publisher, &mirrored][best].pid();
    signal(dead, "STOP");
    let stat = format!("/proc/{dead}/stat");
    let is_stopped = || std::fs::read_to_string(&stat).unwrap().contains(") T ");
    wait_for("stopped holder", is_stopped, || forwarder.log());
    let stopped = asked(&origin, &socket);
    let code = get.wait().unwrap().code();
    let after = asked(&origin, &socket);
    signal(dead, "CONT");
    assert_eq!(code, Some(0), "{}", forwarder.log());
    assert!(std::fs::read(reader.path().join("big")).unwrap() == content);
    let (to_dead, to_other) = (after[best] - stopped[best], after[1 - best] - stopped[1 - best]);
    assert!(to_dead <= 2 * INTERESTS_PER_S, "{before:?} {stopped:?} {after:?}");
    assert!(to_other > 2 * to_dead, "the other holder served it: {stopped:?} {after:?}");
}
