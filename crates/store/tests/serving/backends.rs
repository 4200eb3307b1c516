//! Contract of every back-end: distinct states, whole listings, and nothing of a past state.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use byname_packet::{Data, InterestBuilder, Name};
use byname_store::backend::memory::{Memory, PathError};
use byname_store::{FileServerConfig, MountConfig, MountSource};
use byname_transfer::manifest::{self, Entry};
use byname_transfer::metadata::{Absence, ContentRoot, Metadata};
use byname_transfer::naming::{self, Part};

use super::client::{Peer, Reply, World, pattern};

const UNIT: usize = 8192;
/// Long enough for the slowest machine; a test that reaches it fails.
const PATIENCE: Duration = Duration::from_secs(60);

over_backends!(a_file_that_is_replaced_gets_a_later_version_and_the_older_one_ends);

fn a_file_that_is_replaced_gets_a_later_version_and_the_older_one_ends(world: World) {
    world.write("f", &pattern(20 * UNIT));
    let mut peer = Peer::start(&world);
    let old = peer.metadata("/t/f");
    assert!(peer.segment(old.name.view(), Part::Content, 0).is_ok());
    world.write("f", &vec![9; 20 * UNIT]);
    for unit in 0..20 {
        assert_eq!(peer.segment(old.name.view(), Part::Content, unit), Err(0));
    }
    let new = peer.metadata("/t/f");
    assert!(new.version() > old.version());
    assert_eq!(peer.fetch(&new), vec![9; 20 * UNIT]);
    assert!(peer.counters().changed > 0);
}

over_backends!(a_file_that_went_away_is_gone_and_comes_back_with_a_later_version);

fn a_file_that_went_away_is_gone_and_comes_back_with_a_later_version(world: World) {
    world.write("d/f", b"first");
    let mut peer = Peer::start(&world);
    let first = peer.metadata("/t/d/f");
    world.remove("d/f");
    assert_eq!(peer.absence("/t/d/f"), Absence::NotFound);
    world.write("d/f", b"again");
    let second = peer.metadata("/t/d/f");
    assert!(second.version() > first.version());
    assert_eq!(peer.fetch(&second), b"again");
}

over_backends!(a_directory_is_listed_whole_and_its_entries_can_be_had);

fn a_directory_is_listed_whole_and_its_entries_can_be_had(world: World) {
    for path in ["b", "a/x", "a/y/z", "a-c", "a0", "c/deep/er/f"] {
        world.write(path, path.as_bytes());
    }
    let mut peer = Peer::start(&world);
    assert_eq!(peer.list("/t"), ["a/", "a-c", "a0", "b", "c/"]);
    assert_eq!(peer.list("/t/a"), ["x", "y/"]);
    assert_eq!(peer.list("/t/c/deep/er"), ["f"]);
    let deep = peer.metadata("/t/c/deep/er/f");
    assert_eq!(peer.fetch(&deep), b"c/deep/er/f");
    assert_eq!(peer.absence("/t/c/deep/e"), Absence::NotFound);
    let before = peer.metadata("/t/a");
    world.write("a/w", b"new");
    let deadline = Instant::now() + PATIENCE;
    while peer.list("/t/a") != ["w", "x", "y/"] {
        assert!(Instant::now() < deadline, "the new entry is never listed");
    }
    assert!(peer.metadata("/t/a").version() > before.version());
}

fn entries(payload: &[u8]) -> Vec<Entry<'_>> {
    let (_, mut at) = manifest::check(payload).unwrap();
    let next = || {
        let (entry, next) = manifest::entry_at(payload, at)?;
        at = next;
        Some(entry)
    };
    std::iter::from_fn(next).collect()
}

over_backends!(a_manifest_gives_files_versions_and_roots_that_are_served);

fn a_manifest_gives_files_versions_and_roots_that_are_served(world: World) {
    world.write("d/small", b"small");
    world.write("d/large", &pattern(300_000));
    world.write("d/sub/f", b"f");
    let mut peer = Peer::start(&world);
    let directory = naming::manifest_name("/t/d".parse::<Name>().unwrap().view());
    let deadline = Instant::now() + PATIENCE;
    let payload = loop {
        assert!(Instant::now() < deadline, "its files never settle");
        let found = peer.metadata_of(directory.view());
        let payload = peer.fetch(&found);
        if entries(&payload).iter().filter(|entry| entry.version.is_some()).count() == 2 {
            break payload;
        }
    };
    let entries = entries(&payload);
    let names: Vec<&[u8]> = entries.iter().map(|entry| entry.name).collect();
    assert_eq!(names, [&b"large"[..], b"small", b"sub"]);
    for (entry, size, has_root) in [(&entries[0], 300_000, false), (&entries[1], 5, true)] {
        let version = entry.version.unwrap();
        assert_eq!((entry.size, version.root.is_some()), (Some(size), has_root));
        let path = format!("/t/d/{}", String::from_utf8_lossy(entry.name));
        let found = peer.metadata(&path);
        assert_eq!(found.version(), Some(version.number), "{path}");
        assert!(version.root.is_none_or(|root| found.root == ContentRoot::Known(root)));
        assert_eq!(peer.fetch(&found).len() as u64, size);
    }
}

/// Asks for segments without waiting, each with its number as a token.
fn ask_all(peer: &mut Peer, found: &Metadata, segments: impl IntoIterator<Item = u64>) {
    for segment in segments {
        let name = naming::segment_name(found.name.view(), Part::Content, segment);
        peer.send(&InterestBuilder::new(name.view()), &segment.to_be_bytes());
    }
}

over_backends!(many_segments_asked_for_at_once_and_in_any_order_are_all_right);

fn many_segments_asked_for_at_once_and_in_any_order_are_all_right(world: World) {
    const SEGMENTS: u64 = 600;
    let whole = pattern(SEGMENTS as usize * UNIT - 5);
    world.write("f", &whole);
    let mut peer = Peer::start(&world);
    let found = peer.metadata("/t/f");
    ask_all(&mut peer, &found, (0..SEGMENTS).map(|at| at * 7 % SEGMENTS));
    ask_all(&mut peer, &found, 0..SEGMENTS);
    let mut seen = HashSet::new();
    for _ in 0..2 * SEGMENTS {
        let (token, reply) = peer.receive();
        let segment = u64::from_be_bytes(token.try_into().unwrap());
        let Reply::Data(wire) = reply else { panic!("segment {segment} is refused") };
        let start = segment as usize * UNIT;
        let expected = &whole[start..whole.len().min(start + UNIT)];
        assert!(Data::decode(&wire).unwrap().content == expected, "segment {segment}");
        seen.insert(segment);
    }
    assert_eq!(seen.len() as u64, SEGMENTS);
    assert_eq!(peer.counters().failed, 0);
}

over_backends!(a_file_that_changes_among_many_requests_never_yields_a_mixture);

fn a_file_that_changes_among_many_requests_never_yields_a_mixture(world: World) {
    const SEGMENTS: u64 = 400;
    let old = pattern(SEGMENTS as usize * UNIT);
    world.write("f", &old);
    let mut peer = Peer::start(&world);
    let found = peer.metadata("/t/f");
    ask_all(&mut peer, &found, 0..SEGMENTS / 2);
    world.write("f", &vec![0xEE; old.len()]);
    ask_all(&mut peer, &found, SEGMENTS / 2..SEGMENTS);
    for _ in 0..SEGMENTS {
        let (token, reply) = peer.receive();
        let start = u64::from_be_bytes(token.try_into().unwrap()) as usize * UNIT;
        if let Reply::Data(wire) = reply {
            assert!(Data::decode(&wire).unwrap().content == &old[start..start + UNIT]);
        }
    }
    let new = peer.metadata("/t/f");
    assert_eq!(peer.fetch(&new), vec![0xEE; old.len()]);
}

/// Versions and roots live in the state directory, whoever has the files.
#[test]
fn another_life_of_the_files_never_has_the_fingerprints_of_an_earlier_one() {
    let world = World::new();
    let start = |content: &[u8]| {
        let memory = Memory::new();
        memory.put_changed("f", content, 7).unwrap();
        let source = MountSource::Backend(Arc::new(memory));
        let mount = MountConfig { source, ..world.config().mounts.remove(0) };
        Peer::start_with(FileServerConfig::new(vec![mount], world.beside("state")))
    };
    let first = start(b"first").metadata("/t/f");
    let mut peer = start(b"other");
    let second = peer.metadata("/t/f");
    assert!(second.version() > first.version());
    assert_eq!(peer.fetch(&second), b"other");
}

#[test]
fn a_path_in_memory_is_one_that_can_be_published_and_of_a_file_or_a_directory() {
    let memory = Memory::new();
    for path in ["", "/a", "a/", "a//b", "a/../b", "."] {
        assert_eq!(memory.put(path, b"x"), Err(PathError::Malformed), "{path}");
    }
    memory.put("a/b", b"x").unwrap();
    assert_eq!(memory.put("a", b"x"), Err(PathError::Taken));
    assert_eq!(memory.put("a/b/c", b"x"), Err(PathError::Taken));
    assert!(memory.remove("a/b") && !memory.remove("a/b"));
    memory.put("a", b"x").unwrap();
}
