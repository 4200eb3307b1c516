//! Checksums beside the root: computed behind the reader's back, kept, announced from then on.

use std::time::{Duration, Instant};

use byname_packet::Name;
use byname_store::FileServerConfig;
use byname_transfer::attributes::Checksums;
use byname_transfer::checksums::{Algorithm, Summing};
use byname_transfer::manifest;
use byname_transfer::naming;

use super::client::{Peer, World, pattern};

/// More than one piece.
const LARGE: usize = (5 << 20) + 3;

fn config(world: &World) -> FileServerConfig {
    FileServerConfig { checksums: Algorithm::ALL.to_vec(), ..world.config() }
}

fn sums_of(content: &[u8]) -> Checksums {
    let mut summing = Summing::new(&Algorithm::ALL);
    summing.update(content);
    summing.finish()
}

/// Asks until checksums are announced.
fn announced(peer: &mut Peer, path: &str) -> Checksums {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let checksums = peer.metadata(path).attributes().checksums;
        if checksums != Checksums::default() {
            return checksums;
        }
        assert!(Instant::now() < deadline, "checksums of {path} never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

over_backends!(checksums_are_announced_when_they_are_known_and_survive_a_restart);

fn checksums_are_announced_when_they_are_known_and_survive_a_restart(world: World) {
    let contents = [("empty", Vec::new()), ("small", pattern(20_000)), ("large", pattern(LARGE))];
    for (name, content) in &contents {
        world.write(name, content);
    }
    let mut peer = Peer::start_with(config(&world));
    let version = peer.metadata("/t/large").name;
    for (name, content) in &contents {
        assert_eq!(announced(&mut peer, &format!("/t/{name}")), sums_of(content), "{name}");
    }
    assert_eq!(peer.metadata("/t/large").name, version, "the content is the same");
    drop(peer);
    // One that computes none still announces what is known.
    let mut peer = Peer::start(&world);
    for (name, content) in &contents {
        let metadata = peer.metadata(&format!("/t/{name}"));
        assert_eq!(metadata.attributes().checksums, sums_of(content), "{name}");
    }
    world.write("small", b"something else");
    let changed = peer.metadata("/t/small");
    assert_eq!(changed.attributes().checksums, Checksums::default(), "of the older content");
}

#[test]
fn manifests_have_the_checksums_that_are_known() {
    let world = World::new();
    world.write("a", b"123456789");
    world.write("b", b"x");
    let mut peer = Peer::start_with(config(&world));
    announced(&mut peer, "/t/a");
    drop(peer);
    let mut peer = Peer::start(&world);
    let directory: Name = "/t".parse().unwrap();
    let metadata = peer.metadata_of(naming::manifest_name(directory.view()).view());
    let payload = peer.fetch(&metadata);
    let (mut sums, (_, mut at)) = (Vec::new(), manifest::check(&payload).unwrap());
    while let Some((entry, next)) = manifest::entry_at(&payload, at) {
        at = next;
        sums.push(entry.attributes.checksums);
    }
    assert_eq!(sums, [sums_of(b"123456789"), Checksums::default()]);
}

#[test]
fn nothing_is_computed_unless_asked_for() {
    let world = World::new();
    world.write("f", b"x");
    let some = vec![Algorithm::Adler32];
    let mut peer = Peer::start(&world);
    peer.metadata("/t/f");
    assert_eq!(peer.metadata("/t/f").attributes().checksums, Checksums::default());
    drop(peer);
    let mut peer = Peer::start_with(FileServerConfig { checksums: some, ..world.config() });
    let only = Checksums { adler32: sums_of(b"x").adler32, ..Checksums::default() };
    assert_eq!(announced(&mut peer, "/t/f"), only);
    drop(peer);
    // More of them later: all are computed again.
    let mut peer = Peer::start_with(config(&world));
    let deadline = Instant::now() + Duration::from_secs(60);
    while announced(&mut peer, "/t/f") != sums_of(b"x") {
        assert!(Instant::now() < deadline, "the others never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}
