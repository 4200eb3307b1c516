//! Contract of the unit cache: what one open of a file has read, the next open of the same content
//! does not ask for again.

use byname_client::{RemoteFile, SessionOptions};
use byname_packet::Interest;
use byname_transfer::metadata::ContentRoot;
use byname_transfer::naming::{self, Request};

use super::*;

/// Scattered ranges, some of them whole units, under several tree nodes.
const RANGES: [(u64, usize); 4] = [(0, 100), (8192, 16_384), (2_500_000, 5000), (2_999_000, 2000)];

/// Names of requests for content and tree nodes. Whatever was sent before the last answer of the
/// server is in the log, as it answers in order.
fn segments(log: &Log) -> Vec<Name> {
    let log = log.lock().expect("no panic");
    let is_segment = |name: &&Name| {
        let parsed = naming::parse(name.view());
        parsed.is_some_and(|parsed| matches!(parsed.request, Request::Segment { .. }))
    };
    log.iter().filter(is_segment).cloned().collect()
}

fn expected(bytes: &[u8], ranges: &[(u64, usize)]) -> Vec<Vec<u8>> {
    let end = |at: usize, length: usize| (at + length).min(bytes.len());
    let part =
        |(at, length): &(u64, usize)| bytes[*at as usize..end(*at as usize, *length)].to_vec();
    ranges.iter().map(part).collect()
}

/// Opens a file, reads the ranges and closes it again; the segments that were asked for.
fn open_and_read<F: Facade>(facade: &mut F, log: &Log, (name, bytes): (&Name, &[u8])) -> Vec<Name> {
    let file = facade.open(name).expect("it is there");
    let before = segments(log).len();
    assert!(facade.read(&file, &RANGES).expect("it is there") == expected(bytes, &RANGES));
    // The log is whole once this is answered.
    facade.stat(name).expect("it is there");
    segments(log).split_off(before)
}

pub(super) fn a_second_open_of_a_file_asks_for_no_content<F: Facade>() {
    let mut publisher = Publisher::new("/lab", 1);
    let bytes = sample(SIZE);
    let name = publisher.publish("f", 1000, &bytes);
    let (log, meddler) = logging();
    let (_server, mut facade) = meddled::<F>(publisher, meddler);
    assert!(open_and_read(&mut facade, &log, (&name, &bytes)).len() >= 8, "units and nodes");
    assert_eq!(open_and_read(&mut facade, &log, (&name, &bytes)), []);
    // Another unit under a node that is there costs its own packet only.
    let file = facade.open(&name).expect("it is there");
    let before = segments(&log).len();
    let part = [(1_000_000, 10)];
    assert!(facade.read(&file, &part).expect("it is there") == expected(&bytes, &part));
    facade.stat(&name).expect("it is there");
    let mut asked = segments(&log).split_off(before);
    asked.dedup();
    assert_eq!(asked.len(), 1, "{asked:?}");
}

pub(super) fn names_of_equal_content_share_it_and_other_versions_do_not<F: Facade>() {
    let mut publisher = Publisher::new("/lab", 1);
    let bytes = sample(SIZE);
    let name = publisher.publish("f", 1000, &bytes);
    let copy = publisher.publish("copy", 7, &bytes);
    // Segments of another size hold the same units.
    publisher.object_mut(&copy).segment_bytes = 4096;
    let mut changed = bytes.clone();
    changed[SIZE - 1] ^= 1;
    let newer = publisher.publish("newer", 1001, &changed);
    let (log, meddler) = logging();
    let (_server, mut facade) = meddled::<F>(publisher, meddler);
    let first = open_and_read(&mut facade, &log, (&name, &bytes));
    assert_eq!(open_and_read(&mut facade, &log, (&copy, &bytes)), []);
    let asked = open_and_read(&mut facade, &log, (&newer, &changed));
    let unique = |names: Vec<Name>| names.into_iter().collect::<std::collections::BTreeSet<_>>();
    assert_eq!(unique(asked).len(), unique(first).len(), "another root shares nothing");
}

pub(super) fn a_new_version_of_a_file_is_read_anew<F: Facade>() {
    let (old, new) = (sample(SIZE), vec![7; SIZE]);
    let publisher = || Publisher::new("/lab", 1);
    let (mut before, mut after) = (publisher(), publisher());
    let name = before.publish("f", 1000, &old);
    after.publish("f", 1001, &new);
    let is_changed = Stop::default();
    let changed = is_changed.clone();
    let meddler: Meddler =
        Box::new(
            move |interest: &Interest<'_>, reply| {
                if changed.is_requested() { after.answer(interest) } else { reply }
            },
        );
    let (_server, mut facade) = meddled::<F>(before, meddler);
    let file = facade.open(&name).expect("it is there");
    assert!(facade.read(&file, &RANGES).expect("it is there") == expected(&old, &RANGES));
    is_changed.request();
    let newer = facade.open(&name).expect("it is there");
    assert!(facade.read(&newer, &RANGES).expect("it is there") == expected(&new, &RANGES));
    // The old version is not to be had any more, but what was read of it is.
    assert!(facade.read(&file, &RANGES).expect("it is kept") == expected(&old, &RANGES));
}

pub(super) fn segments_of_a_file_without_root_are_kept_for_its_version<F: Facade>() {
    let mut publisher = Publisher::new("/lab", 1);
    publisher.signs_segments = true;
    let bytes = sample(SIZE);
    let (name, copy) = (publisher.publish("f", 1, &bytes), publisher.publish("g", 1, &bytes));
    for name in [&name, &copy] {
        publisher.object_mut(name).root = ContentRoot::Absent;
    }
    let (log, meddler) = logging();
    let (_server, mut facade) = meddled::<F>(publisher, meddler);
    let first = open_and_read(&mut facade, &log, (&name, &bytes));
    assert_eq!(open_and_read(&mut facade, &log, (&name, &bytes)), []);
    let of_copy = open_and_read(&mut facade, &log, (&copy, &bytes));
    assert!(of_copy.len() >= 5 && first.len() >= 5, "nobody says that they are equal");
}

#[test]
fn a_session_without_a_cache_keeps_nothing_and_shares_nothing() {
    let mut publisher = Publisher::new("/lab", 1);
    let bytes = sample(SIZE);
    let name = publisher.publish("f", 1000, &bytes);
    let (log, meddler) = logging();
    let (_server, client) = Server::meddled(publisher, meddler);
    let options = SessionOptions { cache_bytes_max: 0, ..SessionOptions::default() };
    let session = byname_client::Session::start(client, options).expect("a thread");
    let read = |file: &RemoteFile| {
        let mut buffer = vec![0; 5000];
        file.read_at(&mut buffer, 100).expect("it is there");
        assert!(buffer == bytes[100..5100]);
    };
    read(&session.open(&name).expect("it is there"));
    let first = session.open(&name).expect("it is there");
    let before = segments(&log).len();
    read(&first);
    assert!(segments(&log).len() >= before + 2, "the unit and its node again");
}
