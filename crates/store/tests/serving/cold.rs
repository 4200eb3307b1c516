//! Files that are not in memory: what has to wait for the disk keeps nobody else waiting, and is
//! right. Everything runs with io_uring (where it is allowed) and with threads.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

use byname_io::files::ReaderKind;
use byname_packet::{Data, InterestBuilder, Name};
use byname_store::FileServerConfig;
use byname_transfer::metadata::Metadata;
use byname_transfer::naming::{self, Part};
use rustix::fs::Advice;

use super::client::{Peer, Reply, World, pattern};

const UNIT: usize = 8192;

const READERS: [ReaderKind; 2] = [ReaderKind::Auto, ReaderKind::Threads(2)];

fn config(world: &World, reader: ReaderKind) -> FileServerConfig {
    FileServerConfig { reader, ..world.config() }
}

/// Sees to it that the next read of a file has to wait for the disk (where there is one).
fn make_cold(world: &World, path: &str) {
    let file = File::open(world.path(path)).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
}

fn content(index: u64, size: usize) -> Vec<u8> {
    let mut content = pattern(size);
    content.iter_mut().for_each(|octet| *octet = octet.wrapping_add(index as u8));
    content
}

/// Asks for segments without waiting, a token each.
fn ask_all(peer: &mut Peer, found: &Metadata, segments: impl IntoIterator<Item = u64>, file: u32) {
    for segment in segments {
        let name = naming::segment_name(found.name.view(), Part::Content, segment);
        let token = [file.to_be_bytes(), (segment as u32).to_be_bytes()].concat();
        peer.send(&InterestBuilder::new(name.view()), &token);
    }
}

/// The answers to so many requests, by file and segment.
fn answers(peer: &mut Peer, count: usize) -> HashMap<(u32, u32), Result<Vec<u8>, u64>> {
    let answer = |_| {
        let (token, reply) = peer.receive();
        let number = |octets: &[u8]| u32::from_be_bytes(octets.try_into().unwrap());
        let reply = match reply {
            Reply::Data(wire) => Ok(Data::decode(&wire).unwrap().content.to_vec()),
            Reply::Nack(reason) => Err(reason),
        };
        ((number(&token[..4]), number(&token[4..])), reply)
    };
    let answers: HashMap<_, _> = (0..count).map(answer).collect();
    assert_eq!(answers.len(), count, "each is answered once");
    answers
}

#[test]
fn a_cold_file_is_read_whole_from_front_to_back_and_at_random() {
    const SEGMENTS: u64 = 600;
    for reader in READERS {
        let world = World::new();
        let whole = pattern(SEGMENTS as usize * UNIT - 5);
        world.write("f", &whole);
        let mut peer = Peer::start_with(config(&world, reader));
        let found = peer.metadata("/t/f");
        let scattered = (0..SEGMENTS).map(|at| at * 7 % SEGMENTS).collect();
        for order in [(0..SEGMENTS).collect::<Vec<_>>(), scattered] {
            make_cold(&world, "f");
            ask_all(&mut peer, &found, order, 0);
            let answers = answers(&mut peer, SEGMENTS as usize);
            for (segment, expected) in whole.chunks(UNIT).enumerate() {
                assert!(answers[&(0, segment as u32)].as_deref() == Ok(expected), "{segment}");
            }
        }
        assert_eq!(peer.counters().failed, 0);
    }
}

#[test]
fn sixty_four_cold_files_at_the_same_time_are_all_right() {
    const FILES: u32 = 64;
    const SEGMENTS: u64 = 20;
    for reader in READERS {
        let world = World::new();
        let size = SEGMENTS as usize * UNIT;
        (0..FILES).for_each(|n| world.write(&format!("f{n}"), &content(n.into(), size)));
        let mut peer = Peer::start_with(config(&world, reader));
        let found: Vec<Metadata> = (0..FILES).map(|n| peer.metadata(&format!("/t/f{n}"))).collect();
        (0..FILES).for_each(|n| make_cold(&world, &format!("f{n}")));
        for segment in 0..SEGMENTS {
            for (n, found) in (0..FILES).zip(&found) {
                ask_all(&mut peer, found, [segment], n);
            }
        }
        let answers = answers(&mut peer, FILES as usize * SEGMENTS as usize);
        for n in 0..FILES {
            let expected = content(n.into(), size);
            for (segment, expected) in expected.chunks(UNIT).enumerate() {
                let answer = &answers[&(n, segment as u32)];
                assert!(answer.as_deref() == Ok(expected), "file {n} segment {segment}");
            }
        }
    }
}

#[test]
fn more_requests_than_may_wait_for_the_disk_wait_themselves_and_none_is_refused() {
    const SEGMENTS: u64 = 11_000;
    let world = World::new();
    world.write("f", &pattern(SEGMENTS as usize * UNIT));
    let mut config = config(&world, ReaderKind::Threads(1));
    config.engine.pending_max = 9000;
    let mut peer = Peer::start_with(config);
    let found = peer.metadata("/t/f");
    make_cold(&world, "f");
    ask_all(&mut peer, &found, 0..SEGMENTS, 0);
    assert!(answers(&mut peer, SEGMENTS as usize).values().all(Result::is_ok), "refused");
    assert_eq!(peer.counters().pending_full, 0);
}

#[test]
fn a_file_cut_short_before_its_octets_came_from_the_disk_is_refused() {
    const SEGMENTS: u64 = 200;
    for reader in READERS {
        let world = World::new();
        world.write("f", &pattern(SEGMENTS as usize * UNIT));
        let mut peer = Peer::start_with(config(&world, reader));
        let found = peer.metadata("/t/f");
        make_cold(&world, "f");
        OpenOptions::new().write(true).open(world.path("f")).unwrap().set_len(5 << 13).unwrap();
        ask_all(&mut peer, &found, 0..SEGMENTS, 0);
        let answers = answers(&mut peer, SEGMENTS as usize);
        assert!(answers.values().all(Result::is_err), "something of another state left");
    }
}

#[test]
fn a_file_that_changes_while_it_is_read_never_yields_a_mixture() {
    const SEGMENTS: u64 = 400;
    for reader in READERS {
        let world = World::new();
        let old = pattern(SEGMENTS as usize * UNIT);
        world.write("f", &old);
        let mut peer = Peer::start_with(config(&world, reader));
        let found = peer.metadata("/t/f");
        make_cold(&world, "f");
        ask_all(&mut peer, &found, 0..SEGMENTS, 0);
        // Somewhere among the reads.
        let file = OpenOptions::new().write(true).open(world.path("f")).unwrap();
        file.write_all_at(&content(77, old.len()), 0).unwrap();
        let answers = answers(&mut peer, SEGMENTS as usize);
        let old: HashSet<&[u8]> = old.chunks(UNIT).collect();
        let is_old = |content: &Vec<u8>| old.contains(content.as_slice());
        assert!(answers.values().flatten().all(is_old), "an octet of the new state left as old");
        // The new state has a version of its own.
        let new = peer.metadata("/t/f");
        assert!(new.version() > found.version());
        let name: Name = new.name.clone();
        assert!(peer.segment(name.view(), Part::Content, 0).is_ok());
    }
}

#[test]
fn trees_on_disk_are_read_in_the_background_too() {
    for reader in READERS {
        let world = World::new();
        let whole = pattern(3 * 256 * UNIT);
        world.write("f", &whole);
        let mut peer = Peer::start_with(config(&world, reader));
        let found = peer.metadata("/t/f");
        let tree = byname_security::tree::Tree::of(&whole);
        assert!(peer.object(found.name.view(), Part::Tree(1)) == tree.levels[0]);
        for entry in std::fs::read_dir(world.beside("state").join("trees")).unwrap() {
            let file = File::open(entry.unwrap().path()).unwrap();
            file.sync_all().unwrap();
            rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        }
        assert!(peer.object(found.name.view(), Part::Tree(1)) == tree.levels[0]);
    }
}
