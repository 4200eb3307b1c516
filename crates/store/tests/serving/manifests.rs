//! Manifests: what a listing shows, with all that a reader needs to fetch it.

use std::os::unix::fs::{PermissionsExt, symlink};

use byname_packet::Name;
use byname_security::tree::Hash;
use byname_transfer::manifest::{self, Version};
use byname_transfer::metadata::{Absence, Metadata};
use byname_transfer::naming::{self, Part};

use super::client::{Peer, World, pattern};

/// One entry, with a name of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    name: String,
    is_directory: bool,
    mode: u16,
    size: Option<u64>,
    version: Option<Version>,
    link_target: Option<Vec<u8>>,
}

fn entries(payload: &[u8]) -> Vec<Found> {
    let (count, mut at) = manifest::check(payload).unwrap();
    let mut found = Vec::new();
    while let Some((entry, next)) = manifest::entry_at(payload, at) {
        at = next;
        found.push(Found {
            name: String::from_utf8(entry.name.to_vec()).unwrap(),
            is_directory: entry.is_directory(),
            mode: entry.mode,
            size: entry.size,
            version: entry.version,
            link_target: entry.attributes.link_target.map(<[u8]>::to_vec),
        });
    }
    assert_eq!(found.len() as u64, count);
    found
}

fn metadata(peer: &mut Peer, path: &str) -> Metadata {
    let name = naming::manifest_name(Name::from_path(path).unwrap().view());
    peer.metadata_of(name.view())
}

/// The manifest of a directory, once every file in it is old enough to have a version.
fn settled(peer: &mut Peer, path: &str) -> Vec<Found> {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        let metadata = metadata(peer, path);
        let found = entries(&peer.fetch(&metadata));
        let needs_none = |entry: &Found| entry.is_directory || entry.link_target.is_some();
        if found.iter().all(|entry| needs_none(entry) || entry.version.is_some()) {
            return found;
        }
        assert!(std::time::Instant::now() < deadline, "versions never come: {found:?}");
    }
}

fn names(found: &[Found]) -> Vec<&str> {
    found.iter().map(|entry| entry.name.as_str()).collect()
}

#[test]
fn small_files_can_be_fetched_and_proved_with_the_manifest_alone() {
    let world = World::new();
    world.write("d/empty", b"");
    world.write("d/small", b"small");
    world.write("d/large", &pattern(100_000));
    std::fs::create_dir(world.path("d/sub")).unwrap();
    let mut peer = Peer::start(&world);
    let found = settled(&mut peer, "/t/d");
    assert_eq!(names(&found), ["empty", "large", "small", "sub"]);
    assert!(found[3].is_directory && found[3].size.is_none());
    for entry in &found[..3] {
        let version = entry.version.unwrap();
        let path: Name = format!("/t/d/{}", entry.name).parse().unwrap();
        let versioned = path.with_version(version.number);
        let content = peer.object(versioned.view(), Part::Content);
        assert_eq!(content.len() as u64, entry.size.unwrap());
        assert_eq!(version.root.unwrap(), Hash::of(&content).0);
        assert_eq!(version.segment_bytes, 8192);
        let discovered = peer.metadata_of(path.view());
        assert_eq!(discovered.version(), Some(version.number), "discovery says the same");
        assert_eq!(discovered.mode, Some(entry.mode));
    }
    assert_eq!(peer.counters().hashes, 0, "the roots came with the manifest");
}

over_backends!(the_version_of_a_manifest_changes_with_whatever_is_in_it_and_not_otherwise);

fn the_version_of_a_manifest_changes_with_whatever_is_in_it_and_not_otherwise(world: World) {
    world.write("d/f", b"one");
    let config = world.config();
    let mut peer = Peer::start_with(config.clone());
    settled(&mut peer, "/t/d");
    let first = metadata(&mut peer, "/t/d");
    drop(peer);
    let mut peer = Peer::start_with(config);
    assert_eq!(metadata(&mut peer, "/t/d"), first, "a restart changes nothing");
    // Writing into a file does not touch its directory.
    world.write("d/f", b"two");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while metadata(&mut peer, "/t/d").version() == first.version() {
        assert!(std::time::Instant::now() < deadline, "the change is never noticed");
    }
    let old = peer.fetch(&first);
    assert_eq!(old.len() as u64, first.listing_size.unwrap(), "the old one can be finished");
    let found = settled(&mut peer, "/t/d");
    assert_eq!(found[0].version.unwrap().root.unwrap(), Hash::of(b"two").0);
}

#[test]
fn a_version_in_a_manifest_is_above_those_announced_before() {
    let world = World::new();
    world.write("f", b"new");
    let mut peer = Peer::start(&world);
    let first = peer.metadata("/t/f").version().unwrap();
    // An older file takes its place.
    let aside = world.path("aside");
    std::fs::write(&aside, b"old").unwrap();
    let past = std::fs::FileTimes::new()
        .set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1000));
    std::fs::File::options().write(true).open(&aside).unwrap().set_times(past).unwrap();
    std::fs::rename(&aside, world.path("f")).unwrap();
    let found = settled(&mut peer, "/t");
    assert_eq!(names(&found), ["f"]);
    let second = found[0].version.unwrap().number;
    assert!(second > first, "{second} must be above {first}");
    assert_eq!(peer.metadata("/t/f").version(), Some(second));
}

#[test]
fn a_manifest_shows_what_a_listing_shows() {
    let world = World::new();
    for path in ["shown", ".hidden", "private", "d/x", "closed/x"] {
        world.write(path, b"x");
    }
    let only = |path: &str, mode| {
        std::fs::set_permissions(world.path(path), PermissionsExt::from_mode(mode)).unwrap();
    };
    only("private", 0o600);
    only("closed", 0o700);
    std::fs::write(world.beside("outside"), b"x").unwrap();
    symlink("shown", world.path("link")).unwrap();
    symlink("private", world.path("link to private")).unwrap();
    symlink(world.beside("outside"), world.path("absolute")).unwrap();
    symlink("../outside", world.path("upward")).unwrap();
    symlink(".", world.path("circle")).unwrap();
    symlink("nowhere", world.path("dangling")).unwrap();
    let fifo = std::process::Command::new("mkfifo").arg(world.path("fifo")).status().unwrap();
    assert!(fifo.success());
    for (hidden, private) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut config = world.config();
        config.mounts[0].source = world.source(byname_store::Exposure { hidden, private });
        let mut peer = Peer::start_with(config);
        let found = settled(&mut peer, "/t");
        let mark = |entry: &Found| if entry.is_directory { "/" } else { "" };
        let marked: Vec<_> =
            found.iter().map(|entry| format!("{}{}", entry.name, mark(entry))).collect();
        assert_eq!(marked, peer.list("/t"), "hidden {hidden}, private {private}");
        let link = found.iter().find(|entry| entry.name == "link").unwrap();
        assert_eq!(link.link_target.as_deref(), Some(&b"shown"[..]), "described as a link");
        assert_eq!((link.mode, link.size, link.version), (0o100_444, None, None));
    }
}

over_backends!(files_have_no_manifest_and_a_large_one_is_refused_whole);

fn files_have_no_manifest_and_a_large_one_is_refused_whole(world: World) {
    for n in 0..100 {
        world.write(&format!("d/{n}"), b"x");
    }
    world.write("f", b"x");
    let mut config = world.config();
    config.engine.listing_bytes_max = 4 << 10;
    let mut peer = Peer::start_with(config);
    let name = |path: &str| naming::manifest_name(Name::from_path(path).unwrap().view());
    assert_eq!(peer.absence_of(name("/t/f").view()), Absence::NotFound);
    assert_eq!(peer.absence_of(name("/t/no").view()), Absence::NotFound);
    assert_eq!(peer.absence_of(name("/t/d").view()), Absence::ListingTooLarge);
    assert_eq!(peer.list("/t/d").len(), 100, "names alone may still fit");
}

over_backends!(a_long_name_has_the_segment_size_that_discovery_tells);

fn a_long_name_has_the_segment_size_that_discovery_tells(world: World) {
    let mut directory = String::from("d");
    for part in ["x", "y"] {
        directory = format!("{directory}/{}", part.repeat(250));
    }
    for len in [1, 50, 120, 250] {
        world.write(&format!("{directory}/{}", "f".repeat(len)), b"x");
    }
    let mut peer = Peer::start(&world);
    let path = format!("/t/{directory}");
    let found = settled(&mut peer, &path);
    let sizes: Vec<_> = found
        .iter()
        .map(|entry| {
            let told = peer.metadata(&format!("{path}/{}", entry.name)).segment_size;
            let size = entry.version.unwrap().segment_bytes;
            assert_eq!(told, Some(size), "{}", entry.name.len());
            size
        })
        .collect();
    assert!(sizes.contains(&4096), "{sizes:?}");
}

#[test]
fn what_is_being_written_has_no_version_yet() {
    let world = World::new();
    let mut config = world.config();
    config.engine.quiet_ns = 3_600_000_000_000;
    config.engine.quiet_coarse_ns = config.engine.quiet_ns;
    world.write("f", b"x");
    let mut peer = Peer::start_with(config);
    let metadata = metadata(&mut peer, "/t");
    let found = entries(&peer.fetch(&metadata));
    assert_eq!((names(&found), found[0].version), (vec!["f"], None));
}
