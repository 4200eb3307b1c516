//! Watched directories: changes are seen although no directory is read again by itself, and new
//! files are hashed before anybody asks.

use std::fs::{File, FileTimes};
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant, SystemTime};

use byname_packet::Name;
use byname_store::WatchLevels;
use byname_transfer::manifest;
use byname_transfer::metadata::{Absence, ContentRoot};
use byname_transfer::naming;

use super::client::{Peer, World, pattern};

const HOUR_NS: u64 = 3_600_000_000_000;

/// A server that reads no watched directory again for an hour unless it sees a change. A manifest
/// that lacks a root, because the machine was busy, is made again as if nobody watched.
fn watching(world: &World) -> Peer {
    let mut config = world.config();
    config.watch = true;
    config.engine.relist_ns = 100_000_000;
    config.engine.relist_watched_ns = HOUR_NS;
    started(Peer::start_with(config))
}

/// Waits until the tree has been walked through.
fn started(peer: Peer) -> Peer {
    until(&peer, |levels| levels.walks == 1);
    peer
}

fn until(peer: &Peer, is_so: impl Fn(&WatchLevels) -> bool) -> WatchLevels {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let levels = peer.watched();
        if is_so(&levels) {
            return levels;
        }
        assert!(Instant::now() < deadline, "it never came: {levels:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Names, sizes and roots in the manifest of a directory.
fn manifest_of(peer: &mut Peer, path: &str) -> Vec<(String, Option<u64>, Option<[u8; 32]>)> {
    let name = naming::manifest_name(Name::from_path(path).unwrap().view());
    let metadata = peer.metadata_of(name.view());
    let payload = peer.fetch(&metadata);
    let (_, mut at) = manifest::check(&payload).unwrap();
    let mut found = Vec::new();
    while let Some((entry, next)) = manifest::entry_at(&payload, at) {
        at = next;
        let name = String::from_utf8(entry.name.to_vec()).unwrap();
        found.push((name, entry.size, entry.version.and_then(|version| version.root)));
    }
    found
}

/// Asks for the manifest until it is as wanted: what is too young has no root yet.
fn manifest_with(peer: &mut Peer, path: &str, name: &str, content: &[u8]) {
    let wanted = (name.to_owned(), Some(content.len() as u64), Some(*blake3_of(content)));
    let deadline = Instant::now() + Duration::from_secs(120);
    while !manifest_of(peer, path).contains(&wanted) {
        assert!(Instant::now() < deadline, "{path} never shows {name}");
    }
}

fn blake3_of(content: &[u8]) -> Box<[u8; 32]> {
    Box::new(byname_security::tree::Hash::of(content).0)
}

#[test]
fn a_directory_without_changes_is_not_read_again_and_one_with_changes_is() {
    let world = World::new();
    world.write("d/f", b"before");
    let mut config = world.config();
    config.watch = true;
    config.engine.relist_ns = 0;
    let mut peer = started(Peer::start_with(config));
    manifest_with(&mut peer, "/t/d", "f", b"before");
    let reads = peer.counters().manifests;
    for _ in 0..20 {
        manifest_of(&mut peer, "/t/d");
    }
    assert_eq!(peer.counters().manifests, reads);
    world.write("d/f", b"behind");
    manifest_with(&mut peer, "/t/d", "f", b"behind");
    assert!(peer.counters().manifests > reads);
}

#[test]
fn whatever_changes_is_seen_without_reading_again() {
    let world = World::new();
    world.write("d/f", b"one");
    let mut peer = watching(&world);
    manifest_with(&mut peer, "/t/d", "f", b"one");
    // In place, with the same size: the directory itself does not change.
    world.write("d/f", b"two");
    manifest_with(&mut peer, "/t/d", "f", b"two");
    // By a rename, with the old times.
    world.write("../new", b"six");
    let new = File::options().write(true).open(world.beside("new")).unwrap();
    new.set_times(FileTimes::new().set_modified(SystemTime::UNIX_EPOCH)).unwrap();
    std::fs::rename(world.beside("new"), world.path("d/f")).unwrap();
    manifest_with(&mut peer, "/t/d", "f", b"six");
    // Something new, and something that goes.
    world.write("d/g", b"more");
    manifest_with(&mut peer, "/t/d", "g", b"more");
    world.remove("d/f");
    assert_eq!(peer.list("/t/d"), ["g"]);
}

#[test]
fn the_time_of_a_directory_that_changed_is_seen_above_it() {
    let world = World::new();
    world.write("d/f", b"one");
    let mut peer = watching(&world);
    let manifest = naming::manifest_name(Name::from_path("/t").unwrap().view());
    let before = peer.metadata_of(manifest.view());
    world.write("d/g", b"two");
    assert_ne!(peer.metadata_of(manifest.view()).root, before.root);
}

#[test]
fn directories_that_come_move_and_go_are_watched_where_they_are() {
    let world = World::new();
    world.write("a/f", b"a");
    let mut peer = watching(&world);
    // New ones, at once with what is in them.
    world.write("new/x/y/f", b"deep");
    manifest_with(&mut peer, "/t/new/x/y", "f", b"deep");
    until(&peer, |levels| levels.directories == 5);
    world.write("new/x/y/f", b"deep again");
    manifest_with(&mut peer, "/t/new/x/y", "f", b"deep again");
    // Moved within the tree, with all below.
    std::fs::rename(world.path("new/x"), world.path("a/x")).unwrap();
    assert_eq!(peer.list("/t/a"), ["f", "x/"]);
    assert_eq!(peer.list("/t/new"), Vec::<String>::new());
    manifest_with(&mut peer, "/t/a/x/y", "f", b"deep again");
    world.write("a/x/y/f", b"moved");
    manifest_with(&mut peer, "/t/a/x/y", "f", b"moved");
    // Out of it, and in again.
    std::fs::rename(world.path("a/x"), world.beside("out")).unwrap();
    assert_eq!(peer.list("/t/a"), ["f"]);
    until(&peer, |levels| levels.directories == 3);
    std::fs::write(world.beside("out/y/f"), b"outside").unwrap();
    std::fs::rename(world.beside("out"), world.path("in")).unwrap();
    manifest_with(&mut peer, "/t/in/y", "f", b"outside");
    until(&peer, |levels| levels.directories == 5);
    world.write("in/y/f", b"inside");
    manifest_with(&mut peer, "/t/in/y", "f", b"inside");
    // Gone.
    std::fs::remove_dir_all(world.path("in")).unwrap();
    until(&peer, |levels| levels.directories == 3);
    assert_eq!(peer.list("/t"), ["a/", "new/"]);
}

#[test]
fn new_files_are_hashed_before_anybody_asks() {
    let world = World::new();
    world.write("old", b"was there");
    let mut peer = watching(&world);
    let large = pattern(5 << 20);
    world.write("large", &large);
    world.write("d/e/small", b"small");
    std::fs::create_dir_all(world.beside("out/z")).unwrap();
    std::fs::write(world.beside("out/z/moved"), b"moved").unwrap();
    std::fs::rename(world.beside("out"), world.path("out")).unwrap();
    let levels = until(&peer, |levels| levels.hashed == 3);
    assert_eq!((levels.dropped, levels.overflows, levels.unwatched), (0, 0, 0));
    let hashes = peer.counters().hashes;
    for (path, content) in [("/t/large", &large[..]), ("/t/d/e/small", b"small")] {
        let metadata = peer.metadata(path);
        assert_eq!(metadata.root, ContentRoot::Known(*blake3_of(content)), "{path}");
        assert!(peer.fetch(&metadata) == content);
    }
    assert_eq!(peer.counters().hashes, hashes, "nothing was left to do");
}

#[test]
fn ten_thousand_files_at_once_are_seen_and_hashed() {
    const FILES: usize = 10_000;
    let world = World::new();
    world.write("f", b"f");
    let mut peer = watching(&world);
    assert_eq!(peer.list("/t"), ["f"]);
    std::fs::create_dir_all(world.beside("many")).unwrap();
    for n in 0..FILES {
        std::fs::write(world.beside("many").join(n.to_string()), n.to_string()).unwrap();
    }
    std::fs::rename(world.beside("many"), world.path("many")).unwrap();
    assert_eq!(peer.list("/t"), ["f", "many/"]);
    let levels = until(&peer, |levels| levels.hashed == FILES as u64);
    assert_eq!((levels.directories, levels.dropped), (2, 0));
    assert_eq!(peer.list("/t/many").len(), FILES);
}

#[test]
fn what_depends_on_other_directories_is_read_again_when_asked() {
    let world = World::new();
    world.write("target/f", b"here");
    std::fs::create_dir(world.path("d")).unwrap();
    symlink("../target/f", world.path("d/link")).unwrap();
    std::fs::create_dir(world.path("hard")).unwrap();
    std::fs::hard_link(world.path("target/f"), world.path("hard/f")).unwrap();
    let mut config = world.config();
    config.watch = true;
    config.engine.relist_ns = 0;
    let mut peer = started(Peer::start_with(config));
    manifest_with(&mut peer, "/t/hard", "f", b"here");
    world.write("target/f", b"changed by another name");
    manifest_with(&mut peer, "/t/hard", "f", b"changed by another name");
    assert_eq!(peer.list("/t/d"), ["link"]);
    world.remove("target/f");
    // A list that took long stands for twice as long.
    let deadline = Instant::now() + Duration::from_secs(120);
    while !peer.list("/t/d").is_empty() {
        assert!(Instant::now() < deadline, "the link is listed for ever");
    }
}

#[test]
fn a_watched_directory_that_gives_way_to_a_link_is_no_way_out() {
    let world = World::new();
    world.write("d/e/f", b"inside");
    std::fs::create_dir_all(world.beside("outside/e")).unwrap();
    std::fs::write(world.beside("outside/e/f"), b"secret").unwrap();
    let mut peer = watching(&world);
    manifest_with(&mut peer, "/t/d/e", "f", b"inside");
    for _ in 0..20 {
        std::fs::rename(world.path("d"), world.beside("d")).unwrap();
        symlink(world.beside("outside"), world.path("d")).unwrap();
        assert_eq!(peer.absence("/t/d/e/f"), Absence::NotFound);
        world.remove("d");
        std::fs::rename(world.beside("d"), world.path("d")).unwrap();
    }
    manifest_with(&mut peer, "/t/d/e", "f", b"inside");
    std::fs::rename(world.path("d"), world.beside("d")).unwrap();
    symlink(world.beside("outside"), world.path("d")).unwrap();
    until(&peer, |levels| levels.directories == 1);
    std::fs::write(world.beside("outside/e/new"), b"secret").unwrap();
    world.write("new", b"new");
    until(&peer, |levels| levels.hashed == 1);
    assert_eq!(peer.list("/t"), ["new"]);
}

/// One directory is renamed faster than anybody can look at, to and fro and to ever other names.
#[test]
fn a_storm_of_renames_ends_with_what_is_there() {
    let world = World::new();
    world.write("d/e/f", b"first");
    let mut peer = watching(&world);
    manifest_with(&mut peer, "/t/d/e", "f", b"first");
    let mut at = world.path("d");
    for n in 0..40_000 {
        let to = if n % 2 == 0 { world.path(n.to_string()) } else { world.path("to") };
        std::fs::rename(&at, &to).unwrap();
        at = to;
    }
    std::fs::rename(&at, world.path("d")).unwrap();
    manifest_with(&mut peer, "/t/d/e", "f", b"first");
    until(&peer, |levels| levels.directories == 3);
    world.write("d/e/f", b"then");
    manifest_with(&mut peer, "/t/d/e", "f", b"then");
    assert_eq!(peer.watched().unwatched, 0);
}

#[test]
fn a_published_directory_that_is_replaced_is_watched_again() {
    let world = World::new();
    world.write("f", b"first");
    let mut peer = watching(&world);
    manifest_with(&mut peer, "/t", "f", b"first");
    std::fs::rename(world.tree(), world.beside("old")).unwrap();
    world.write("d/f", b"second");
    assert_eq!(peer.list("/t"), ["d/"]);
    until(&peer, |levels| levels.walks == 2 && levels.directories == 2);
    manifest_with(&mut peer, "/t/d", "f", b"second");
    world.write("d/f", b"third!");
    manifest_with(&mut peer, "/t/d", "f", b"third!");
}
