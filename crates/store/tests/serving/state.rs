//! Contents of the state directory, and recovery when it is damaged.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant, SystemTime};

use byname_packet::NameRef;
use byname_packet::lp::nack_reason;
use byname_store::{FileServer, StateDir, StateError, StoreError};
use byname_transfer::naming::{self, Part};

use super::client::{Peer, World, pattern};

const LARGE: usize = 5 << 20;

/// Files of the state directory whose name ends so.
fn state_files(world: &World, folder: &str, end: &str) -> Vec<std::path::PathBuf> {
    let directory = world.beside("state").join(folder);
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.to_string_lossy().ends_with(end)).collect()
}

over_backends!(a_restart_keeps_versions_roots_and_trees);

fn a_restart_keeps_versions_roots_and_trees(world: World) {
    world.write("small", b"x");
    world.write("large", &pattern(LARGE));
    let mut peer = Peer::start(&world);
    let before = ["/t/small", "/t/large"].map(|path| peer.metadata(path));
    assert_eq!(peer.counters().hashes, 2);
    drop(peer);
    let mut peer = Peer::start(&world);
    let after = ["/t/small", "/t/large"].map(|path| peer.metadata(path));
    assert_eq!(before, after);
    assert_eq!((peer.counters().hashes, peer.counters().versions), (0, 0));
    // A reader of before the restart goes on without asking again.
    assert_eq!(peer.fetch(&before[1]), pattern(LARGE));
}

over_backends!(a_reader_goes_on_after_a_restart_without_discovering_again);

fn a_reader_goes_on_after_a_restart_without_discovering_again(world: World) {
    world.write("f", &pattern(100_000));
    let metadata = Peer::start(&world).metadata("/t/f");
    assert_eq!(Peer::start(&world).fetch(&metadata), pattern(100_000));
}

/// With the tree, and a level of it above the lowest.
#[test]
fn a_reader_goes_on_at_a_server_that_has_lost_its_state_or_never_had_any() {
    let world = World::new();
    world.write("f", &pattern(LARGE));
    let mut first = Peer::start(&world);
    let metadata = first.metadata("/t/f");
    let level = |peer: &mut Peer, level| peer.object(metadata.name.view(), Part::Tree(level));
    let levels = [1, 2].map(|number| level(&mut first, number));
    drop(first);
    std::fs::remove_dir_all(world.beside("state")).unwrap();
    let mut lost = Peer::start(&world);
    assert_eq!(lost.fetch(&metadata), pattern(LARGE), "never asked for metadata");
    assert_eq!(lost.counters().metadata, 0);
    assert_eq!(level(&mut lost, 1), levels[0]);
    // The higher one is there with the root; until then it is asked for again.
    let deadline = Instant::now() + Duration::from_secs(60);
    let top = loop {
        match lost.segment(metadata.name.view(), Part::Tree(2), 0) {
            Ok(top) => break top,
            Err(reason) => assert_eq!(reason, nack_reason::CONGESTION),
        }
        assert!(Instant::now() < deadline, "the root never came");
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(top, levels[1]);
    // Another version than that of the file as it is, it does not serve.
    let older = naming::versioned_name(metadata.name.view().without_last(1), false, 1);
    assert_eq!(lost.segment(older.view(), Part::Content, 0), Err(nack_reason::NONE));
}

over_backends!(two_servers_cannot_share_a_state_directory);

fn two_servers_cannot_share_a_state_directory(world: World) {
    let peer = Peer::start(&world);
    let Err(error) = FileServer::new(world.config()) else { panic!("not locked") };
    let StoreError::State(StateError::Locked { pid, .. }) = &error else { panic!("{error}") };
    assert_eq!(*pid, Some(std::process::id()));
    assert!(error.to_string().contains("in use by another file server"), "{error}");
    drop(peer);
    Peer::start(&world);
}

fn set_modified(world: &World, path: &str, when: SystemTime) {
    let file = OpenOptions::new().write(true).open(world.path(path)).unwrap();
    file.set_modified(when).unwrap();
}

/// Also records that are empty or gone, which passed for those of a new directory.
#[test]
fn broken_records_are_set_aside_and_versions_do_not_go_back() {
    for (what, damage) in [
        ("garbage", (|path| std::fs::write(path, [0xA5; 70_000]).unwrap()) as fn(&std::path::Path)),
        ("cut short", |path| {
            OpenOptions::new().write(true).open(path).unwrap().set_len(5000).unwrap();
        }),
        ("empty", |path| std::fs::write(path, b"").unwrap()),
        ("missing", |path| std::fs::remove_file(path).unwrap()),
    ] {
        let world = World::new();
        world.write("f", b"first");
        // A version that lies in the future, so that the clock alone cannot tell what is above it.
        set_modified(&world, "f", SystemTime::now() + Duration::from_secs(86_400));
        let first = Peer::start(&world).metadata("/t/f");
        damage(&world.beside("state").join("records.redb"));
        world.write("f", b"second");
        set_modified(&world, "f", SystemTime::UNIX_EPOCH);
        let mut peer = Peer::start(&world);
        let second = peer.metadata("/t/f");
        assert!(second.version() > first.version(), "{what}");
        assert_eq!(peer.fetch(&second), b"second", "{what}");
    }
}

/// Octets all over the records are damaged in turn: whatever is hit, the server serves, and no
/// version is given to two contents.
#[test]
fn flipped_bits_in_the_records_do_no_harm() {
    let world = World::new();
    world.write("f", b"first");
    let first = Peer::start(&world).metadata("/t/f");
    let path = world.beside("state").join("records.redb");
    let intact = std::fs::read(&path).unwrap();
    world.write("f", b"second");
    set_modified(&world, "f", SystemTime::UNIX_EPOCH);
    let used = intact.iter().enumerate().filter(|(_, octet)| **octet != 0).map(|(at, _)| at);
    for at in used.step_by(211) {
        let mut damaged = intact.clone();
        damaged[at] ^= 0x10;
        std::fs::write(&path, &damaged).unwrap();
        let mut peer = Peer::start(&world);
        let second = peer.metadata("/t/f");
        assert!(second.version() > first.version(), "octet {at}");
        assert_eq!(peer.fetch(&second), b"second", "octet {at}");
    }
}

#[test]
fn a_broken_tree_is_computed_again() {
    let world = World::new();
    world.write("f", &pattern(LARGE));
    let metadata = Peer::start(&world).metadata("/t/f");
    let trees = state_files(&world, "trees", ".tree");
    assert_eq!(trees.len(), 1);
    let file = OpenOptions::new().read(true).write(true).open(&trees[0]).unwrap();
    let mut octet = [0];
    file.read_exact_at(&mut octet, 1000).unwrap();
    file.write_all_at(&[octet[0] ^ 1], 1000).unwrap();
    let mut peer = Peer::start(&world);
    let name = metadata.name.view();
    let level = byname_transfer::naming::Part::Tree(1);
    assert_eq!(peer.metadata("/t/f"), metadata);
    let expected = byname_security::tree::Tree::of(&pattern(LARGE));
    // A broken tree is not served: the node is computed, and signed until the root is there again.
    assert_eq!(peer.segment(name, level, 0).as_deref(), Ok(&expected.levels[0][..8192]));
    assert_eq!(peer.metadata("/t/f"), metadata);
    assert_eq!(peer.counters().hashes, 1);
    assert_levels_are_served(&mut peer, name, &expected.levels);
}

/// Fetches every level of a tree; says how often one was refused before it was there.
fn assert_levels_are_served(peer: &mut Peer, name: NameRef<'_>, levels: &[Vec<u8>]) -> u32 {
    let mut refused = 0;
    for (level, nodes) in (1u8..).zip(levels) {
        let part = byname_transfer::naming::Part::Tree(level);
        let served = loop {
            match peer.try_object(name, part) {
                Ok(served) => break served,
                Err(segment) => assert!(refused < 500, "{segment} is not served"),
            }
            refused += 1;
            std::thread::sleep(Duration::from_millis(20));
        };
        assert_eq!(&served, nodes, "level {level}");
    }
    refused
}

/// It was served until the next start.
#[test]
fn a_tree_that_is_damaged_while_the_server_runs_is_computed_again() {
    let world = World::new();
    world.write("f", &pattern(LARGE));
    let mut peer = Peer::start(&world);
    let metadata = peer.metadata("/t/f");
    let (name, level) = (metadata.name.view(), byname_transfer::naming::Part::Tree(1));
    let expected = byname_security::tree::Tree::of(&pattern(LARGE));
    assert_eq!(peer.object(name, level), expected.levels[0]);
    let trees = state_files(&world, "trees", ".tree");
    let file = OpenOptions::new().write(true).open(&trees[0]).unwrap();
    file.write_all_at(&[0xA5; 64], 1000).unwrap();
    // Octets that the server has read already are served still. The first read of damaged ones is
    // refused, whichever it is; upper levels are then put off until the tree is there again.
    let refused = assert_levels_are_served(&mut peer, name, &expected.levels);
    assert_eq!(peer.metadata("/t/f"), metadata, "the version stays");
    assert_eq!(peer.counters().hashes, if refused == 0 { 1 } else { 2 });
}

#[test]
fn trees_stay_within_their_bound_and_the_least_used_go_first() {
    let world = World::new();
    for name in ["a", "b", "c"] {
        world.write(name, &pattern(LARGE));
    }
    let mut config = world.config();
    // Two trees of 5 MiB fit, three do not.
    config.tree_bytes_max = 50_000;
    let mut peer = Peer::start_with(config);
    for name in ["a", "b", "c"] {
        peer.metadata(&format!("/t/{name}"));
    }
    assert_eq!(state_files(&world, "trees", ".tree").len(), 2);
    assert_eq!(peer.counters().hashes, 3);
    peer.metadata("/t/c");
    assert_eq!(peer.counters().hashes, 3);
    let metadata = peer.metadata("/t/a");
    assert_eq!(peer.counters().hashes, 4);
    assert_eq!(peer.fetch(&metadata), pattern(LARGE));
}

#[test]
fn the_state_directory_belongs_to_its_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let state = StateDir::open(&world.beside("state"), 1 << 20).unwrap();
    let mode = std::fs::metadata(state.directory()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}
