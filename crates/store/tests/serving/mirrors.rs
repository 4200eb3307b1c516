//! A server of copies answers octet for octet what the origin answers, and nothing of its own.

use std::fs::File;

use byname_io::Attachments;
use byname_packet::lp::nack_reason;
use byname_packet::{Data, InterestBuilder, Name, tlv, types};
use byname_store::{FileServerConfig, MirrorConfig};
use byname_transfer::copies::{FILE_SLOT, LISTING_SLOT};
use byname_transfer::metadata::Metadata;
use byname_transfer::naming::{self, Part};
use byname_transfer::server::MirrorOptions;

use crate::client::{Peer, Reply, World, pattern};

/// The origin's tree with a file of several tree levels' worth of units, and a copy of it.
struct Scene {
    origin: World,
    copy: World,
}

const SIZE: usize = 3 << 20;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

impl Scene {
    fn new() -> Self {
        let (origin, copy) = (World::new(), World::new());
        origin.write("file", &pattern(SIZE));
        origin.write("other", b"other");
        Self { origin, copy }
    }

    fn attachments(&self) -> Attachments {
        Attachments::new(self.copy.beside("copies"))
    }

    /// Fetches packets and content as `get` would.
    fn fetch(&self, peer: &mut Peer) -> Metadata {
        for file in ["file", "other"] {
            let metadata = peer.metadata(&format!("/t/{file}"));
            let content = peer.fetch(&metadata);
            self.copy.write(file, &content);
            let file = File::options().write(true).open(self.copy.path(file)).unwrap();
            let time = std::time::Duration::from_nanos(metadata.mtime_ns.unwrap());
            file.set_modified(std::time::UNIX_EPOCH + time).unwrap();
            let path = metadata.name.view().without_last(1).to_name();
            let packet = data(ask(peer, &naming::metadata_name(path.view()), true));
            self.attachments().set(&file, FILE_SLOT, &packet).unwrap();
        }
        let listing = peer.metadata("/t");
        let mut kept = data(ask(peer, &naming::metadata_name(name("/t").view()), true));
        tlv::write_element(&mut kept, types::CONTENT, &peer.fetch(&listing));
        let directory = File::open(self.copy.tree()).unwrap();
        self.attachments().set(&directory, LISTING_SLOT, &kept).unwrap();
        listing
    }

    fn mirror(&self, options: MirrorOptions) -> FileServerConfig {
        let mut config = self.copy.config();
        config.mirror = Some(MirrorConfig { copies: self.copy.beside("copies"), options });
        config
    }
}

fn ask(peer: &mut Peer, name: &Name, fresh: bool) -> Reply {
    let is_metadata = name.view().last().unwrap().is_keyword(b"metadata");
    let builder = InterestBuilder::new(name.view()).lifetime_ms(4000);
    let mut reply = peer.ask(&builder.clone().can_be_prefix(is_metadata).must_be_fresh(fresh));
    // The mirror is computing a root.
    while matches!(reply, Reply::Nack(nack_reason::CONGESTION)) {
        std::thread::sleep(std::time::Duration::from_millis(5));
        reply = peer.ask(&builder.clone().can_be_prefix(is_metadata).must_be_fresh(fresh));
    }
    reply
}

fn data(reply: Reply) -> Vec<u8> {
    match reply {
        Reply::Data(wire) => wire,
        Reply::Nack(reason) => panic!("Nack {reason}"),
    }
}

fn assert_elsewhere(reply: Reply) {
    assert!(matches!(reply, Reply::Nack(nack_reason::NO_ROUTE)), "{reply:?}");
}

#[test]
fn every_packet_is_the_origins_octet_for_octet() {
    let scene = Scene::new();
    let mut origin = Peer::start(&scene.origin);
    let listing = scene.fetch(&mut origin);
    let file = origin.metadata("/t/file");
    let mut mirror = Peer::start_with(scene.mirror(MirrorOptions::default()));
    let described = data(ask(&mut mirror, &naming::metadata_name(name("/t/file").view()), false));
    assert_eq!(Data::decode(&described).unwrap().content, {
        let mut content = Vec::new();
        file.encode(&mut content);
        content
    });
    let last = naming::last_segment(SIZE as u64, 8192);
    let tree = [(Part::Tree(1), 0), (Part::Tree(1), 1), (Part::Tree(2), 0)];
    let content = [0, 1, last / 2, last].map(|segment| (Part::Content, segment));
    for (part, segment) in content.into_iter().chain(tree) {
        let segment = naming::segment_name(file.name.view(), part, segment);
        let (one, other) = (ask(&mut origin, &segment, false), ask(&mut mirror, &segment, false));
        assert!(data(one) == data(other), "{segment}");
    }
    ask(&mut mirror, &naming::metadata_name(name("/t").view()), false);
    let segment = naming::segment_name(listing.name.view(), Part::Content, 0);
    assert!(data(ask(&mut origin, &segment, false)) == data(ask(&mut mirror, &segment, false)));
    let counters = mirror.counters();
    assert_eq!((counters.signatures, counters.versions), (0, 0), "it has no key and needs none");
}

#[test]
fn what_is_not_there_or_not_as_signed_is_looked_for_elsewhere() {
    let scene = Scene::new();
    let mut origin = Peer::start(&scene.origin);
    scene.fetch(&mut origin);
    scene.copy.write("local", b"not the publisher's");
    let mut mirror = Peer::start_with(scene.mirror(MirrorOptions::default()));
    let metadata = |path: &str| naming::metadata_name(name(path).view());
    for path in ["/t/local", "/t/nothing", "/t/file/below"] {
        assert_elsewhere(ask(&mut mirror, &metadata(path), false));
    }
    assert_eq!(mirror.counters().mirror_changed, 0);
    let file = origin.metadata("/t/file");
    let older = naming::versioned_name(name("/t/file").view(), false, file.version().unwrap() - 1);
    let segment = naming::segment_name(older.view(), Part::Content, 0);
    assert_elsewhere(ask(&mut mirror, &segment, false));
    data(ask(&mut mirror, &metadata("/t/file"), false));
    // In the middle of a transfer.
    scene.copy.write("file", &pattern(SIZE - 1));
    let segment = naming::segment_name(file.name.view(), Part::Content, 0);
    assert!(matches!(ask(&mut mirror, &segment, false), Reply::Nack(_)));
    assert_elsewhere(ask(&mut mirror, &metadata("/t/file"), false));
    assert_elsewhere(ask(&mut mirror, &segment, false));
    assert!(mirror.counters().mirror_changed > 0);
    data(ask(&mut mirror, &metadata("/t/other"), false));
}

#[test]
fn a_mirror_claims_freshness_only_while_the_packet_has_it_or_when_told_to() {
    let scene = Scene::new();
    scene.fetch(&mut Peer::start(&scene.origin));
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let metadata = naming::metadata_name(name("/t/file").view());
    let mut mirror = Peer::start_with(scene.mirror(MirrorOptions::default()));
    data(ask(&mut mirror, &metadata, false));
    assert_elsewhere(ask(&mut mirror, &metadata, true));
    assert_eq!(mirror.counters().mirror_unfresh, 1);
    drop(mirror);
    let mut mirror = Peer::start_with(scene.mirror(MirrorOptions { answers_fresh: true }));
    data(ask(&mut mirror, &metadata, true));
}

#[test]
fn garbage_kept_with_a_copy_does_no_harm() {
    let scene = Scene::new();
    let mut origin = Peer::start(&scene.origin);
    scene.fetch(&mut origin);
    let file = File::open(scene.copy.path("file")).unwrap();
    let packet = scene.attachments().get(&file, FILE_SLOT, 1 << 16).unwrap().unwrap();
    let other = File::open(scene.copy.path("other")).unwrap();
    let mut mirror = Peer::start_with(scene.mirror(MirrorOptions::default()));
    let metadata = naming::metadata_name(name("/t/other").view());
    // Another file's packet, none at all, broken ones.
    let mut garbage = vec![packet.clone(), b"x".to_vec(), vec![6; 4000], Vec::new()];
    garbage.extend((0..packet.len()).step_by(3).map(|end| packet[..end].to_vec()));
    for octets in garbage {
        scene.attachments().set(&other, FILE_SLOT, &octets).unwrap();
        assert_elsewhere(ask(&mut mirror, &metadata, false));
    }
}
