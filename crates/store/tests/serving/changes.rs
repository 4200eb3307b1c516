//! Files that change: what is promised, and what only the content gives away.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use byname_packet::{Data, InterestBuilder, Name};
use byname_security::tree::{Check, Hash, NodeId, Verifier};
use byname_transfer::metadata::{Absence, Answer, ContentRoot, Metadata};
use byname_transfer::naming::{self, Part};

use super::client::{Peer, Reply, World, pattern};

const SIZE: usize = 10 * 8192;

fn open(world: &World, path: &str) -> File {
    OpenOptions::new().read(true).write(true).open(world.path(path)).unwrap()
}

fn version(metadata: &Metadata) -> u64 {
    metadata.version().unwrap()
}

/// True if a segment verifies against the signed root, checked as by a reader.
fn is_genuine(peer: &mut Peer, metadata: &Metadata, unit: u64, content: &[u8]) -> bool {
    let ContentRoot::Known(root) = metadata.root else { panic!("no root") };
    let mut verifier = Verifier::new(Hash(root), metadata.size.unwrap(), 16);
    loop {
        let NodeId { level, index } = match verifier.check(unit, content) {
            Check::Verified => return true,
            Check::Bad => return false,
            Check::Need(id) => id,
        };
        let Ok(node) = peer.segment(metadata.name.view(), Part::Tree(level), index) else {
            return false;
        };
        if verifier.add_node(NodeId { level, index }, &node).is_err() {
            return false;
        }
    }
}

#[test]
fn replace_by_rename_is_noticed_by_the_next_request() {
    let world = World::new();
    world.write("f", &pattern(SIZE));
    let mut peer = Peer::start(&world);
    let old = peer.metadata("/t/f");
    peer.segment(old.name.view(), Part::Content, 0).unwrap();
    std::fs::write(world.beside("new"), vec![9; SIZE]).unwrap();
    std::fs::rename(world.beside("new"), world.path("f")).unwrap();
    let new = peer.metadata("/t/f");
    assert!(version(&new) > version(&old));
    assert!(peer.fetch(&new) == vec![9; SIZE]);
    // What still is served of the old version is the old content.
    for unit in 0..10 {
        if let Ok(content) = peer.segment(old.name.view(), Part::Content, unit) {
            assert!(is_genuine(&mut peer, &old, unit, &content));
        }
    }
}

#[test]
fn modify_in_place_ends_the_version_in_mid_transfer() {
    let world = World::new();
    world.write("f", &pattern(SIZE));
    let mut peer = Peer::start(&world);
    let old = peer.metadata("/t/f");
    peer.segment(old.name.view(), Part::Content, 0).unwrap();
    open(&world, "f").write_all_at(b"changed", 5 * 8192).unwrap();
    for unit in 0..10 {
        assert_eq!(peer.segment(old.name.view(), Part::Content, unit), Err(0));
    }
    let new = peer.metadata("/t/f");
    assert!(version(&new) > version(&old));
    assert!(peer.fetch(&new)[5 * 8192..].starts_with(b"changed"));
}

#[test]
fn nothing_of_a_burst_leaves_once_the_file_has_changed() {
    const SEGMENTS: u64 = 200;
    let world = World::new();
    world.write("f", &vec![b'a'; SEGMENTS as usize * 8192]);
    world.write("g", &vec![b'g'; SEGMENTS as usize * 8192]);
    let mut peer = Peer::start(&world);
    let (changed, kept) = (peer.metadata("/t/f"), peer.metadata("/t/g"));
    let name = |metadata: &Metadata, segment| {
        naming::segment_name(metadata.name.view(), Part::Content, segment)
    };
    assert!(peer.segment(changed.name.view(), Part::Content, 0).is_ok());
    open(&world, "f").write_all_at(b"b", SEGMENTS * 8192 - 1).unwrap();
    for first in (0..SEGMENTS).step_by(20) {
        for (metadata, token) in [(&changed, b"f"), (&kept, b"g")] {
            for segment in first..first + 20 {
                peer.send(&InterestBuilder::new(name(metadata, segment).view()), token);
            }
        }
    }
    for _ in 0..2 * SEGMENTS {
        let (token, reply) = peer.receive();
        match (token.as_slice(), reply) {
            (b"f", Reply::Nack(0)) | (b"g", Reply::Data(_)) => {}
            (token, Reply::Nack(reason)) => panic!("{token:?}: Nack {reason}"),
            (token, Reply::Data(_)) => panic!("{token:?}: Data"),
        }
    }
    let counters = peer.counters();
    assert_eq!(counters.changed + counters.stale, SEGMENTS);
    assert!(counters.changed > 0);
}

#[test]
fn a_file_cut_short_in_mid_transfer_is_refused() {
    let world = World::new();
    world.write("f", &pattern(SIZE));
    let mut peer = Peer::start(&world);
    let old = peer.metadata("/t/f");
    open(&world, "f").set_len(100).unwrap();
    assert_eq!(peer.segment(old.name.view(), Part::Content, 7), Err(0));
    let new = peer.metadata("/t/f");
    assert_eq!(peer.fetch(&new), &pattern(SIZE)[..100]);
}

#[test]
fn a_restored_mtime_does_not_hide_a_change() {
    let world = World::new();
    world.write("f", &pattern(SIZE));
    let file = open(&world, "f");
    let mtime = file.metadata().unwrap().modified().unwrap();
    let mut peer = Peer::start(&world);
    let old = peer.metadata("/t/f");
    file.write_all_at(b"changed", 0).unwrap();
    file.set_modified(mtime).unwrap();
    assert_eq!(peer.segment(old.name.view(), Part::Content, 0), Err(0));
    let new = peer.metadata("/t/f");
    assert_eq!(new.mtime_ns, old.mtime_ns);
    assert!(version(&new) > version(&old));
    assert!(peer.fetch(&new).starts_with(b"changed"));
}

#[test]
fn versions_never_go_back_not_even_after_a_restart() {
    let world = World::new();
    world.write("f", b"first");
    let mut peer = Peer::start(&world);
    let first = peer.metadata("/t/f");
    let replace = |content: &[u8], age_s: u64| {
        let path = world.beside("older");
        std::fs::write(&path, content).unwrap();
        let when = SystemTime::now() - Duration::from_secs(age_s);
        OpenOptions::new().write(true).open(&path).unwrap().set_modified(when).unwrap();
        std::fs::rename(&path, world.path("f")).unwrap();
    };
    replace(b"second, but older", 1_000_000);
    let second = peer.metadata("/t/f");
    assert!(second.mtime_ns < first.mtime_ns);
    assert_eq!(version(&second), version(&first) + 1);
    drop(peer);
    replace(b"third, older still", 2_000_000);
    let mut peer = Peer::start(&world);
    let third = peer.metadata("/t/f");
    assert_eq!(version(&third), version(&second) + 1);
    assert_eq!(peer.fetch(&third), b"third, older still");
}

#[test]
fn a_file_that_went_away_and_came_back_gets_a_later_version() {
    let world = World::new();
    world.write("f", b"first");
    let mut peer = Peer::start(&world);
    let first = peer.metadata("/t/f");
    std::fs::remove_file(world.path("f")).unwrap();
    assert_eq!(peer.absence("/t/f"), Absence::NotFound);
    world.write("f", b"again");
    open(&world, "f").set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let second = peer.metadata("/t/f");
    assert!(version(&second) > version(&first));
}

#[test]
fn a_file_being_written_gets_no_version_until_it_is_quiet() {
    let world = World::new();
    world.write("f", b"");
    let mut config = world.config();
    config.engine.quiet_ns = 1_500_000_000;
    let mut peer = Peer::start_with(config);
    let mut file = open(&world, "f");
    file.write_all(b"part one, ").unwrap();
    let name = naming::metadata_name("/t/f".parse::<Name>().unwrap().view());
    let asked = InterestBuilder::new(name.view()).can_be_prefix(true).lifetime_ms(100);
    let Reply::Data(wire) = peer.ask(&asked) else { panic!("Nack") };
    let answer = Answer::decode(&Data::decode(&wire).unwrap()).unwrap();
    let Answer::Absence(Absence::BeingWritten { retry_ms }) = answer else { panic!("{answer:?}") };
    assert!((1..=1500).contains(&retry_ms));
    file.write_all(b"part two").unwrap();
    let metadata = peer.metadata("/t/f");
    assert_eq!(peer.fetch(&metadata), b"part one, part two");
    assert_eq!(peer.counters().versions, 1);
}

over_backends!(a_waiting_reader_is_answered_as_soon_as_the_file_is_quiet);

fn a_waiting_reader_is_answered_as_soon_as_the_file_is_quiet(world: World) {
    world.write("f", b"fresh");
    let mut peer = Peer::start(&world);
    // One Interest suffices: it is held while the file settles.
    let Reply::Data(wire) = peer.ask_metadata("/t/f") else { panic!("Nack") };
    let answer = Answer::decode(&Data::decode(&wire).unwrap()).unwrap();
    assert!(matches!(answer, Answer::Metadata(_)), "{answer:?}");
}

/// A process that maps the file, dirties it, and stores once more when told to.
const MAPPER: &str = "
import mmap, sys
with open(sys.argv[1], 'r+b') as f:
    m = mmap.mmap(f.fileno(), 0)
    m[5*8192] = 1
    print('mapped', flush=True)
    sys.stdin.readline()
    m[5*8192] = 2
    print('stored', flush=True)
    sys.stdin.readline()
";

#[test]
fn a_store_through_mmap_is_never_taken_for_what_was_signed() {
    let world = World::new();
    world.write("f", &pattern(SIZE));
    let child = Command::new("python3")
        .args(["-c", MAPPER, world.path("f").to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        // Past the runner's capture, so that `make test` counts it.
        let _ = writeln!(std::io::stderr(), "SKIPPED: python3 is needed to store through mmap");
        return;
    };
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "mapped");
    let mut peer = Peer::start(&world);
    let metadata = peer.metadata("/t/f");
    let before = peer.segment(metadata.name.view(), Part::Content, 5).unwrap();
    assert!(is_genuine(&mut peer, &metadata, 5, &before));
    // The page is dirty already, so this store leaves every timestamp as it is.
    input.write_all(b"\n").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "stored");
    if let Ok(content) = peer.segment(metadata.name.view(), Part::Content, 5) {
        assert_ne!(content, before, "the store must be visible to be caught");
        assert!(!is_genuine(&mut peer, &metadata, 5, &content));
    }
    let other = peer.segment(metadata.name.view(), Part::Content, 4);
    if let Ok(content) = other {
        assert!(is_genuine(&mut peer, &metadata, 4, &content));
    }
    drop(input);
    child.wait().unwrap();
}

#[test]
fn a_file_that_changes_while_it_is_hashed_is_hashed_again() {
    let world = World::new();
    world.write("f", &vec![1; 64 << 20]);
    let mut peer = Peer::start(&world);
    let file = open(&world, "f");
    let writer = std::thread::spawn(move || {
        for n in 0..20u8 {
            file.write_all_at(&[n], 1000).unwrap();
            std::thread::sleep(Duration::from_millis(25));
        }
    });
    let metadata = peer.metadata("/t/f");
    writer.join().unwrap();
    let last = peer.metadata("/t/f");
    assert!(version(&last) >= version(&metadata));
    let content = peer.fetch(&last);
    assert_eq!(content[1000], 19);
}
