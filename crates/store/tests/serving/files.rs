//! Files are read back as they are, whatever their size and name.

use std::fs::File;
use std::os::unix::fs::FileExt;

use byname_packet::{Data, InterestBuilder};
use byname_security::tree::{Check, NodeId, Shape, Tree, Verifier};
use byname_store::Exposure;
use byname_transfer::metadata::{Absence, ContentRoot, Metadata};
use byname_transfer::naming::{self, Part};

use super::client::{Peer, Reply, World, pattern};

fn tree_object(peer: &mut Peer, metadata: &Metadata, level: u8) -> Vec<u8> {
    peer.object(metadata.name.view(), Part::Tree(level))
}

over_backends!(files_of_sizes_around_every_boundary_are_read_back_with_their_trees);

fn files_of_sizes_around_every_boundary_are_read_back_with_their_trees(world: World) {
    const UNIT: usize = 8192;
    const GROUP: usize = 256 * UNIT;
    let sizes = [0, 1, UNIT - 1, UNIT, UNIT + 1, 2 * UNIT, 20 * UNIT, GROUP, GROUP + 1, 3 * GROUP];
    for size in sizes {
        world.write(&format!("f{size}"), &pattern(size));
    }
    let mut peer = Peer::start(&world);
    for size in sizes {
        let metadata = peer.metadata(&format!("/t/f{size}"));
        assert_eq!(metadata.size, Some(size as u64));
        assert_eq!(metadata.segment_size, Some(8192));
        assert_eq!(metadata.last_segment, Some((size as u64).div_ceil(8192).saturating_sub(1)));
        assert_eq!(peer.fetch(&metadata), pattern(size));
        let tree = Tree::of(&pattern(size));
        for (level, values) in (1u8..).zip(&tree.levels) {
            assert_eq!(&tree_object(&mut peer, &metadata, level), values, "size {size}");
        }
        let beyond = tree.levels.len() as u8 + 1;
        assert_eq!(peer.segment(metadata.name.view(), Part::Tree(beyond), 0), Err(0));
    }
}

over_backends!(an_empty_file_is_one_empty_segment);

fn an_empty_file_is_one_empty_segment(world: World) {
    world.write("empty", b"");
    let mut peer = Peer::start(&world);
    let metadata = peer.metadata("/t/empty");
    assert_eq!(peer.segment(metadata.name.view(), Part::Content, 0), Ok(Vec::new()));
    assert_eq!(peer.segment(metadata.name.view(), Part::Content, 1), Err(0));
}

over_backends!(segments_beyond_the_end_and_of_other_versions_are_nacked);

fn segments_beyond_the_end_and_of_other_versions_are_nacked(world: World) {
    world.write("f", &pattern(16384));
    let mut peer = Peer::start(&world);
    let metadata = peer.metadata("/t/f");
    let version = metadata.version().unwrap();
    assert!(peer.segment(metadata.name.view(), Part::Content, 1).is_ok());
    assert_eq!(peer.segment(metadata.name.view(), Part::Content, 2), Err(0));
    assert_eq!(peer.segment(metadata.name.view(), Part::Content, u64::MAX), Err(0));
    for other in [0, version - 1, version + 1] {
        let name = format!("/t/f/v={other}").parse::<byname_packet::Name>().unwrap();
        assert_eq!(peer.segment(name.view(), Part::Content, 0), Err(0));
    }
}

over_backends!(names_with_spaces_utf8_and_percent_signs_lead_to_their_files);

fn names_with_spaces_utf8_and_percent_signs_lead_to_their_files(world: World) {
    let paths =
        ["d/v=1/t=3/x y.parquet", "d/größe.txt", "d/100%", "d/a=b&c", "d/...", "d/ ", "d/\n"];
    for path in paths {
        world.write(path, path.as_bytes());
    }
    let mut peer = Peer::start_with({
        let mut config = world.config();
        config.mounts[0].source = world.source(Exposure { hidden: true, private: false });
        config
    });
    for path in paths {
        let mut name = byname_packet::Name::from_path("/t").unwrap();
        path.split('/').for_each(|component| name.push_generic(component.as_bytes()));
        let metadata = peer.metadata_of(name.view());
        assert_eq!(peer.fetch(&metadata), path.as_bytes(), "{path:?}");
    }
}

#[test]
fn a_file_above_four_gibibytes_is_described_and_read_at_its_end() {
    const SIZE: u64 = (4 << 30) + 1;
    let world = World::new();
    let file = File::create(world.path("big")).unwrap();
    file.set_len(SIZE).unwrap();
    file.write_all_at(b"!", SIZE - 1).unwrap();
    let mut peer = Peer::start(&world);
    let metadata = peer.metadata("/t/big");
    assert_eq!((metadata.size, metadata.last_segment), (Some(SIZE), Some(524_288)));
    let ContentRoot::Known(root) = metadata.root else { panic!("no root") };
    let mut verifier = Verifier::new(byname_security::tree::Hash(root), SIZE, 16);
    for (unit, expected) in [(524_288, vec![b'!']), (0, vec![0; 8192]), (300_000, vec![0; 8192])] {
        let content = peer.segment(metadata.name.view(), Part::Content, unit).unwrap();
        assert!(content == expected);
        while let Check::Need(NodeId { level, index }) = verifier.check(unit, &content) {
            let node = peer.segment(metadata.name.view(), Part::Tree(level), index).unwrap();
            verifier.add_node(NodeId { level, index }, &node).unwrap();
        }
        assert!(matches!(verifier.check(unit, &content), Check::Verified));
    }
    assert_eq!(Shape::new(SIZE).level_count(), 3);
}

over_backends!(long_names_get_smaller_segments);

fn long_names_get_smaller_segments(world: World) {
    let path = format!("{}/{}", "d".repeat(255), "f".repeat(255));
    world.write(&path, &pattern(10_000));
    let mut peer = Peer::start(&world);
    let metadata = peer.metadata(&format!("/t/{path}"));
    assert_eq!(metadata.segment_size, Some(4096));
    assert_eq!(peer.fetch(&metadata), pattern(10_000));
    assert_eq!(tree_object(&mut peer, &metadata, 1), Tree::of(&pattern(10_000)).levels[0]);
}

over_backends!(names_that_leave_no_room_are_refused_with_the_reason);

fn names_that_leave_no_room_are_refused_with_the_reason(world: World) {
    world.write("f", b"x");
    let mut config = world.config();
    let mut prefix = byname_packet::Name::new();
    (0..20).for_each(|_| prefix.push_generic(&[b'p'; 220]));
    config.mounts[0].prefix = prefix.clone();
    let mut peer = Peer::start_with(config);
    assert_eq!(peer.absence_of(prefix.with_generic(b"f").view()), Absence::NameTooLong);
}

over_backends!(segments_of_a_version_carry_what_other_software_needs);

fn segments_of_a_version_carry_what_other_software_needs(world: World) {
    world.write("f", &pattern(20_000));
    let mut peer = Peer::start(&world);
    let metadata = peer.metadata("/t/f");
    let name = naming::segment_name(metadata.name.view(), Part::Content, 1);
    let Reply::Data(wire) = peer.ask(&InterestBuilder::new(name.view())) else { panic!("Nack") };
    let data = Data::decode(&wire).unwrap();
    assert_eq!(data.name, name.view());
    assert_eq!(data.meta.freshness_ms, 3_600_000);
    assert_eq!(data.meta.final_block_id.unwrap().segment(), Some(2));
    assert_eq!((data.signature_info.signature_type, data.signature_value.len()), (200, 0));
}
