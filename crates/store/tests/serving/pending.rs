//! Answers while a root is being computed, and the form of signed segments.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use byname_packet::lp::nack_reason;
use byname_packet::{Data, InterestBuilder, NameRef, signature_type};
use byname_security::key::HmacSigner;
use byname_security::tree::{Hash, NodeId, Shape, Tree};
use byname_transfer::metadata::{Absence, Answer, ContentRoot, Metadata};
use byname_transfer::naming::{self, Part};

use super::client::{Peer, Reply, World, pattern};

/// Takes seconds to hash, and no place on the disk.
const HUGE: u64 = 64 << 30;

fn described(peer: &mut Peer, path: &str) -> Metadata {
    let Reply::Data(wire) = peer.ask_metadata(path) else { panic!("Nack") };
    match Answer::decode(&Data::decode(&wire).unwrap()).unwrap() {
        Answer::Metadata(metadata) => metadata,
        Answer::Absence(absence) => panic!("{absence:?}"),
    }
}

/// A segment's content and the type of its signature.
fn signed(peer: &mut Peer, object: NameRef<'_>, part: Part, n: u64) -> Result<(Vec<u8>, u64), u64> {
    let name = naming::segment_name(object, part, n);
    match peer.ask(&InterestBuilder::new(name.view())) {
        Reply::Data(wire) => {
            let data = Data::decode(&wire).unwrap();
            Ok((data.content.to_vec(), data.signature_info.signature_type))
        }
        Reply::Nack(reason) => Err(reason),
    }
}

/// A quiet file of `HUGE` octets that are zero but for the last ones.
fn huge(world: &World) -> File {
    let file = File::create(world.path("huge")).unwrap();
    file.set_len(HUGE).unwrap();
    file.write_all_at(b"the end", HUGE - 7).unwrap();
    file
}

fn pending(peer: &mut Peer, path: &str) -> Metadata {
    loop {
        // Until it has been quiet for a moment it is being written.
        let Reply::Data(wire) = peer.ask_metadata(path) else { panic!("Nack") };
        if let Answer::Metadata(found) = Answer::decode(&Data::decode(&wire).unwrap()).unwrap() {
            assert_eq!(found.root, ContentRoot::Pending, "nobody hashes that fast");
            return found;
        }
    }
}

#[test]
fn nodes_of_a_file_that_is_being_hashed_are_computed_when_asked_and_signed() {
    let world = World::new();
    let _file = huge(&world);
    let mut peer = Peer::start(&world);
    let metadata = pending(&mut peer, "/t/huge");
    assert_eq!((metadata.size, metadata.segment_size), (Some(HUGE), Some(8192)));
    let shape = Shape::new(HUGE);
    let last = shape.node_count(1) - 1;
    for node in [last, 0, last / 2, last] {
        let (values, signature) =
            signed(&mut peer, metadata.name.view(), Part::Tree(1), node).unwrap();
        assert_eq!(signature, signature_type::SHA256, "by the key that signs the metadata");
        let mut content = vec![0; 2 << 20];
        if node == last {
            let len = content.len();
            content[len - 7..].copy_from_slice(b"the end");
        }
        let mut expected = Vec::new();
        shape.hash_units(node * 256, &content, &mut expected).unwrap();
        assert!(values == expected, "node {node}");
        assert_eq!(shape.node_len(NodeId { level: 1, index: node }), Some(values.len()));
    }
    let (content, signature) =
        signed(&mut peer, metadata.name.view(), Part::Content, HUGE / 8192 - 1).unwrap();
    assert_eq!((&content[8185..], signature), (&b"the end"[..], signature_type::NULL));
    let counters = peer.counters();
    assert_eq!((counters.nodes_signed, counters.nodes_reused), (3, 1));
}

#[test]
fn what_follows_from_the_root_only_is_put_off_while_it_is_not_there() {
    let world = World::new();
    let _file = huge(&world);
    let mut peer = Peer::start(&world);
    let metadata = pending(&mut peer, "/t/huge");
    let shape = Shape::new(HUGE);
    for level in 2..=shape.level_count() {
        let asked = signed(&mut peer, metadata.name.view(), Part::Tree(level), 0);
        assert_eq!(asked, Err(nack_reason::CONGESTION), "{level}");
    }
    for (level, segment) in [(shape.level_count() + 1, 0), (1, shape.node_count(1)), (1, u64::MAX)]
    {
        let asked = signed(&mut peer, metadata.name.view(), Part::Tree(level), segment);
        assert_eq!(asked, Err(nack_reason::NONE), "{level} {segment}");
    }
}

#[test]
fn a_pending_file_that_changes_is_gone() {
    let world = World::new();
    let file = huge(&world);
    let mut peer = Peer::start(&world);
    let metadata = pending(&mut peer, "/t/huge");
    file.write_all_at(b"?", 5).unwrap();
    let last = Shape::new(HUGE).node_count(1) - 1;
    assert_eq!(signed(&mut peer, metadata.name.view(), Part::Tree(1), last), Err(0));
    assert_eq!(signed(&mut peer, metadata.name.view(), Part::Content, 0), Err(0));
}

over_backends!(nodes_that_readers_ask_for_count_towards_the_root);

fn nodes_that_readers_ask_for_count_towards_the_root(world: World) {
    let content = pattern(40_000_000);
    world.write("f", &content);
    let mut config = world.config();
    config.worker_threads = 1;
    let mut peer = Peer::start_with(config);
    let mut metadata = described(&mut peer, "/t/f");
    while metadata.segment_size.is_none() {
        metadata = described(&mut peer, "/t/f");
    }
    let tree = Tree::of(&content);
    for node in (0..tree.levels[0].len().div_ceil(8192) as u64).rev() {
        let values = signed(&mut peer, metadata.name.view(), Part::Tree(1), node).unwrap().0;
        assert!(tree.levels[0].chunks(8192).nth(node as usize) == Some(&values[..]));
    }
    let settled = peer.metadata("/t/f");
    assert_eq!(settled.name, metadata.name, "the version stays");
    assert_eq!(settled.root, ContentRoot::Known(Hash::of(&content).0));
    for (level, values) in (1u8..).zip(&tree.levels) {
        assert_eq!(&peer.object(settled.name.view(), Part::Tree(level)), values);
    }
    let node = signed(&mut peer, settled.name.view(), Part::Tree(1), 0).unwrap();
    assert_eq!(node.1, signature_type::NULL, "the root proves it now");
}

over_backends!(segments_are_signed_for_foreign_readers_if_asked_for);

fn segments_are_signed_for_foreign_readers_if_asked_for(world: World) {
    world.write("d/f", &pattern(20_000));
    let key = HmacSigner::new(b"a secret of thirty-two octets ...", "/t/KEY/1".parse().unwrap());
    let mut config = world.config();
    config.segment_signer = Some(Arc::new(key));
    let mut peer = Peer::start_with(config);
    let metadata = peer.metadata("/t/d/f");
    assert_eq!(peer.fetch(&metadata), pattern(20_000));
    for (part, last) in [(Part::Content, 2), (Part::Tree(1), 0)] {
        let (_, signature) = signed(&mut peer, metadata.name.view(), part, last).unwrap();
        assert_eq!(signature, signature_type::HMAC, "{part:?}");
        assert_eq!(signed(&mut peer, metadata.name.view(), part, last + 1), Err(0));
    }
    let listing = peer.metadata("/t/d");
    let (payload, signature) = signed(&mut peer, listing.name.view(), Part::Content, 0).unwrap();
    assert_eq!((&payload[..], signature), (&b"f\0"[..], signature_type::HMAC));
    world.write("d/f", b"changed");
    assert_eq!(signed(&mut peer, metadata.name.view(), Part::Content, 0), Err(0));
}

/// Holes cost nothing, so whoever may write in a published tree can make files of any size.
#[test]
fn a_file_that_nobody_could_hash_is_refused_before_anything_is_done_for_it() {
    const LARGEST: u64 = 1 << 50;
    let world = World::in_shared_memory();
    world.write("f", b"other");
    for (name, size) in [("largest", LARGEST), ("larger", LARGEST + 1), ("immense", 1 << 62)] {
        File::create(world.path(name)).unwrap().set_len(size).unwrap();
    }
    let mut peer = Peer::start(&world);
    for name in ["larger", "immense"] {
        assert_eq!(peer.absence(&format!("/t/{name}")), Absence::Unreadable { code: 4 }, "{name}");
    }
    assert_eq!(pending(&mut peer, "/t/largest").size, Some(LARGEST));
    let metadata = peer.metadata("/t/f");
    assert_eq!(peer.fetch(&metadata), b"other");
}
