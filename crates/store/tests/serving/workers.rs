//! Several threads that read for readers: the answers are those of one.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

use byname_io::{Connection, Endpoint};
use byname_packet::lp::LpPacket;
use byname_packet::{Data, InterestBuilder};
use byname_store::{FileServer, FileServerConfig};
use byname_transfer::metadata::Metadata;
use byname_transfer::naming::{self, Part};
use rustix::fs::Advice;

use super::client::{Peer, Reply, World, pattern};

const UNIT: usize = 8192;
const WORKERS: usize = 4;

fn config(world: &World) -> FileServerConfig {
    FileServerConfig { data_workers: WORKERS, ..world.config() }
}

/// Asks for segments in one go, so that they come as bursts.
fn ask_all(peer: &mut Peer, found: &Metadata, segments: impl IntoIterator<Item = u64>) {
    for segment in segments {
        let name = naming::segment_name(found.name.view(), Part::Content, segment);
        peer.queue(&InterestBuilder::new(name.view()), &segment.to_be_bytes());
    }
    peer.flush();
}

/// The answers to so many requests.
fn answers(peer: &mut Peer, count: usize) -> HashMap<u64, Result<Vec<u8>, u64>> {
    let mut answers = HashMap::new();
    for _ in 0..count {
        let (token, reply) = peer.receive();
        let reply = match reply {
            Reply::Data(wire) => Ok(Data::decode(&wire).unwrap().content.to_vec()),
            Reply::Nack(reason) => Err(reason),
        };
        answers.insert(u64::from_be_bytes(token.try_into().unwrap()), reply);
    }
    assert_eq!(answers.len(), count, "each is answered once");
    answers
}

#[test]
fn one_large_file_is_read_by_several_threads_and_every_octet_is_in_its_place() {
    const SEGMENTS: u64 = 1500;
    let world = World::new();
    let whole = pattern(SEGMENTS as usize * UNIT - 5);
    world.write("f", &whole);
    let mut peer = Peer::start_with(config(&world));
    let found = peer.metadata("/t/f");
    for is_cold in [false, true] {
        if is_cold {
            let file = File::open(world.path("f")).unwrap();
            file.sync_all().unwrap();
            // Every third MiB has to come from the disk.
            for at in (0..whole.len() as u64).step_by(3 << 20) {
                let len = std::num::NonZeroU64::new(1 << 20);
                rustix::fs::fadvise(&file, at, len, Advice::DontNeed).unwrap();
            }
        }
        ask_all(&mut peer, &found, 0..SEGMENTS);
        let answers = answers(&mut peer, SEGMENTS as usize);
        for (segment, expected) in (0..).zip(whole.chunks(UNIT)) {
            assert!(answers[&segment].as_deref() == Ok(expected), "{segment}");
        }
    }
    assert!(peer.handed_over() > 0, "the serving thread was alone");
}

#[test]
fn a_file_that_changes_under_several_threads_never_yields_a_mixture() {
    const SEGMENTS: u64 = 1500;
    let world = World::new();
    let old = pattern(SEGMENTS as usize * UNIT);
    world.write("f", &old);
    let mut peer = Peer::start_with(config(&world));
    let found = peer.metadata("/t/f");
    ask_all(&mut peer, &found, 0..SEGMENTS);
    let file = OpenOptions::new().write(true).open(world.path("f")).unwrap();
    file.write_all_at(&vec![0xee; old.len()], 0).unwrap();
    let during = answers(&mut peer, SEGMENTS as usize);
    for (segment, expected) in (0..).zip(old.chunks(UNIT)) {
        if let Ok(content) = &during[&segment] {
            assert!(content == expected, "{segment} is of another state");
        }
    }
    ask_all(&mut peer, &found, 0..SEGMENTS);
    assert!(answers(&mut peer, SEGMENTS as usize).values().all(Result::is_err));
}

#[test]
fn a_reader_that_does_not_read_is_bounded_and_told_with_several_threads_too() {
    const REQUESTS: u64 = 3000;
    let world = World::new();
    world.write("f", &pattern(200 * UNIT));
    let mut server = FileServer::new(config(&world)).unwrap();
    let at = server.listen(&Endpoint::Unix(world.beside("socket"))).unwrap();
    let handle = server.handle();
    let thread = std::thread::spawn(move || server.run_alone());
    let connect = || Connection::connect(&at, std::time::Duration::from_secs(60)).unwrap();
    let mut slow = Peer::over(connect(), handle.clone());
    let mut quick = Peer::over(connect(), handle.clone());
    let found = quick.metadata("/t/f");
    ask_all(&mut slow, &found, (0..REQUESTS).map(|number| number % 200));
    for _ in 0..3 {
        assert!(quick.fetch(&found) == pattern(200 * UNIT));
    }
    let answered = handle.counters().segments;
    assert!(answered < REQUESTS, "the server holds {answered} answers");
    std::thread::sleep(std::time::Duration::from_millis(150));
    let mut marks = 0;
    for _ in 0..REQUESTS {
        let (frame, is_data) = slow.receive_frame();
        assert!(is_data);
        let mark = LpPacket::decode(&frame).unwrap().header.congestion_mark;
        marks += u64::from(mark == Some(1));
    }
    assert!(marks > 0, "it was never told");
    assert_eq!(handle.congestion_marks(), marks);
    assert!(handle.bursts_handed_over() > 0);
    handle.stop();
    thread.join().unwrap().unwrap();
}
