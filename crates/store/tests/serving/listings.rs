//! Directories: sorted, whole, and one snapshot per version.

use std::os::unix::fs::PermissionsExt;

use byname_packet::{InterestBuilder, Name};
use byname_security::tree::Tree;
use byname_transfer::metadata::{Absence, Answer};
use byname_transfer::naming::Part;

use super::client::{Peer, Reply, World};

#[test]
fn entries_are_sorted_by_octets_and_directories_are_marked() {
    let world = World::new();
    for path in ["b", "a/x", "a!", "B", "é", "a b", "aa"] {
        world.write(path, b"");
    }
    std::fs::create_dir(world.path("empty")).unwrap();
    let mut peer = Peer::start(&world);
    assert_eq!(peer.list("/t"), ["B", "a/", "a b", "a!", "aa", "b", "empty/", "é"]);
    assert_eq!(peer.list("/t/a"), ["x"]);
    assert_eq!(peer.list("/t/empty"), [""; 0]);
}

over_backends!(a_directory_describes_its_listing_and_answers_under_both_names);

fn a_directory_describes_its_listing_and_answers_under_both_names(world: World) {
    world.write("d/f", b"");
    let mut peer = Peer::start(&world);
    let metadata = peer.metadata("/t/d");
    assert_eq!(metadata.listing_size, Some(2));
    assert_eq!(metadata.listing_segment_size, Some(8192));
    assert_eq!((metadata.size, metadata.segment_size, metadata.last_segment), (None, None, None));
    assert_eq!(metadata.mode.unwrap() & 0o170_000, 0o040_000);
    let listing: Name = "/t/d/32=ls".parse().unwrap();
    assert_eq!(peer.metadata_of(listing.view()), metadata);
    assert!(listing.view().is_prefix_of(metadata.name.view()));
}

#[test]
fn fifty_thousand_entries_are_listed_whole() {
    let world = World::new();
    for n in 0..50_000 {
        std::fs::File::create(world.path(format!("entry-{n:05}"))).unwrap();
    }
    let mut peer = Peer::start(&world);
    let metadata = peer.metadata("/t");
    assert_eq!(metadata.listing_size, Some(50_000 * 12));
    let payload = peer.fetch(&metadata);
    let expected: Vec<u8> =
        (0..50_000).flat_map(|n| format!("entry-{n:05}\0").into_bytes()).collect();
    assert!(payload == expected);
    let tree = Tree::of(&payload);
    assert_eq!(tree.levels.len(), 1);
    assert_eq!(peer.object(metadata.name.view(), Part::Tree(1)), tree.levels[0]);
    assert_eq!(peer.segment(metadata.name.view(), Part::Tree(2), 0), Err(0));
}

#[test]
fn a_listing_beyond_the_bound_is_refused_and_never_cut() {
    let world = World::new();
    for n in 0..100 {
        std::fs::File::create(world.path(format!("{n:015}"))).unwrap();
    }
    let mut config = world.config();
    config.engine.listing_bytes_max = 2 * 1600;
    let mut peer = Peer::start_with(config.clone());
    assert_eq!(peer.list("/t").len(), 100);
    drop(peer);
    std::fs::File::create(world.path("one more")).unwrap();
    let mut peer = Peer::start_with(config);
    assert_eq!(peer.absence("/t"), Absence::ListingTooLarge);
}

#[test]
fn a_changed_directory_has_a_new_version_and_the_old_one_can_be_finished() {
    let world = World::new();
    for n in 0..1000 {
        std::fs::File::create(world.path(format!("entry-{n:05}"))).unwrap();
    }
    let mut peer = Peer::start(&world);
    let old = peer.metadata("/t");
    let first = peer.segment(old.name.view(), Part::Content, 0).unwrap();
    std::fs::File::create(world.path("entry-99999")).unwrap();
    let new = peer.metadata("/t");
    assert!(new.version() > old.version());
    assert!(peer.fetch(&old).starts_with(&first));
    assert!(peer.fetch(&new).ends_with(b"entry-99999\0"));
}

#[test]
fn what_changes_in_a_listing_without_touching_the_directory_is_noticed() {
    let world = World::new();
    world.write("public", b"");
    world.write("secret", b"");
    let mut peer = Peer::start(&world);
    let old = peer.metadata("/t");
    assert_eq!(peer.list("/t"), ["public", "secret"]);
    let nobody = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(world.path("secret"), nobody).unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while peer.list("/t") != ["public"] {
        assert!(std::time::Instant::now() < deadline, "the change is never noticed");
    }
    assert!(peer.metadata("/t").version() > old.version());
}

over_backends!(an_unchanged_directory_keeps_its_version_over_restarts);

fn an_unchanged_directory_keeps_its_version_over_restarts(world: World) {
    world.write("f", b"");
    let first = Peer::start(&world).metadata("/t");
    let mut peer = Peer::start(&world);
    let second = peer.metadata("/t");
    assert_eq!(first, second);
    assert_eq!(peer.counters().versions, 0);
}

#[test]
fn a_listing_of_a_file_is_not_found_and_a_segment_of_a_directory_is_nacked() {
    let world = World::new();
    world.write("f", b"x");
    std::fs::create_dir(world.path("d")).unwrap();
    let mut peer = Peer::start(&world);
    peer.metadata("/t/f");
    let listing: Name = "/t/f/32=ls".parse().unwrap();
    assert_eq!(peer.absence_of(listing.view()), Absence::NotFound);
    let version = peer.metadata("/t/d").version().unwrap();
    let file: Name = format!("/t/d/v={version}").parse().unwrap();
    assert_eq!(peer.segment(file.view(), Part::Content, 0), Err(0));
}

over_backends!(listings_of_many_directories_stay_within_their_bound);

fn listings_of_many_directories_stay_within_their_bound(world: World) {
    for n in 0..200 {
        world.write(&format!("{n}/{}", "x".repeat(200)), b"");
    }
    let mut config = world.config();
    config.engine.listing_bytes_max = 16 << 10;
    let mut peer = Peer::start_with(config);
    let first = peer.metadata("/t/0");
    for n in 1..200 {
        assert!(matches!(peer.discover(&format!("/t/{n}")), Answer::Metadata(_)));
    }
    // Forgotten, so it is read again: the version is recorded and the content the same.
    let name = byname_transfer::naming::segment_name(first.name.view(), Part::Content, 0);
    assert!(matches!(peer.ask(&InterestBuilder::new(name.view())), Reply::Data(_)));
    assert_eq!(peer.counters().listings, 201);
}

over_backends!(nothing_is_scanned_before_it_is_asked_for);

fn nothing_is_scanned_before_it_is_asked_for(world: World) {
    for n in 0..5_000 {
        world.write(&format!("{}/{n}", n % 10), b"x");
    }
    let mut peer = Peer::start(&world);
    let metadata = peer.metadata("/t/7/4997");
    assert_eq!(peer.fetch(&metadata), b"x");
    let counters = peer.counters();
    assert_eq!((counters.listings, counters.hashes, counters.versions), (0, 1, 1));
}
