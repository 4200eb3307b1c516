//! A session: many threads and tasks, many files, ranges of any kind.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use byname_client::{
    Client, ClientConfig, ClientError, Pending, RANGES_MAX, RemoteFile, Session, SessionOptions,
};
use byname_io::Endpoint;
use byname_io::loan::lend;
use byname_packet::{Interest, Name};
use byname_transfer::error::{ErrorClass, ReadError};
use byname_transfer::naming::{self, Part, Request};

use super::publisher::{Publisher, Reply, flip_content_bit, sample};
use super::server::{Meddler, Server, trusting};

const SIZE: usize = 9_000_001;
const NO_PREFETCH: SessionOptions =
    SessionOptions { node_bytes_max: 16 << 20, cache_bytes_max: 16 << 20, prefetch_bytes_max: 0 };

/// Requests seen by the server, in the order of their coming.
type Log = Arc<Mutex<Vec<Name>>>;

fn logging() -> (Log, Meddler) {
    let log = Log::default();
    let seen = Arc::clone(&log);
    let meddler: Meddler = Box::new(move |interest, reply| {
        seen.lock().expect("no panic").push(interest.name.to_name());
        reply
    });
    (log, meddler)
}

fn session(publisher: Publisher, meddler: Meddler, options: SessionOptions) -> (Server, Session) {
    let (server, client) = Server::meddled(publisher, meddler);
    (server, Session::start(client, options).expect("a thread"))
}

/// A session with one open file `/lab/f` of [`SIZE`] bytes.
fn open_with(meddler: Meddler, options: SessionOptions) -> (Server, RemoteFile, Vec<u8>) {
    let mut publisher = Publisher::new("/lab", 1);
    let bytes = sample(SIZE);
    let name = publisher.publish("f", 1000, &bytes);
    let (server, session) = session(publisher, meddler, options);
    (server, session.open(&name).expect("it is there"), bytes)
}

fn content_segment(interest: &Interest<'_>) -> Option<u64> {
    match naming::parse(interest.name)?.request {
        Request::Segment { part: Part::Content, segment, .. } => Some(segment),
        _ => None,
    }
}

/// Random numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 20) % end
    }
}

fn read_ranges(file: &RemoteFile, ranges: &[(u64, usize)]) -> Vec<Vec<u8>> {
    let mut buffers: Vec<Vec<u8>> = ranges.iter().map(|(_, length)| vec![0; *length]).collect();
    let places = ranges.iter().map(|(offset, _)| *offset);
    let mut wanted: Vec<(u64, &mut [u8])> =
        places.zip(buffers.iter_mut().map(Vec::as_mut_slice)).collect();
    let filled = file.read_ranges(&mut wanted).expect("they are there");
    for (buffer, filled) in buffers.iter_mut().zip(filled) {
        buffer.truncate(filled);
    }
    buffers
}

fn expected(bytes: &[u8], ranges: &[(u64, usize)]) -> Vec<Vec<u8>> {
    let cut = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let part = |(offset, length): &(u64, usize)| {
        bytes[cut(*offset)..cut(offset.saturating_add(*length as u64))].to_vec()
    };
    ranges.iter().map(part).collect()
}

struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The smallest executor: this thread, until the future is ready.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(ThreadWaker(std::thread::current())));
    let mut future = Box::pin(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn ranges_of_any_order_overlapping_empty_or_beyond_the_end_are_filled() {
    let (log, meddler) = logging();
    let (_server, file, bytes) = open_with(meddler, NO_PREFETCH);
    let ranges = [
        (8_999_000, 5000),
        (0, 1),
        (100, 20_000),
        (5000, 100),
        (16_384, 8192),
        (16_384, 8192),
        (7_777_777, 0),
        (SIZE as u64, 10),
        (u64::MAX - 3, 10),
        (8191, 2),
    ];
    assert!(read_ranges(&file, &ranges) == expected(&bytes, &ranges));
    let asked = log.lock().expect("no panic").clone();
    let unique: BTreeSet<&Name> = asked.iter().collect();
    assert_eq!(asked.len(), unique.len(), "nothing is asked for twice");
    assert_eq!(file.size(), Some(SIZE as u64));
    assert_eq!(file.read_at(&mut [0; 10], SIZE as u64).expect("no error"), 0);
    assert_eq!(read_ranges(&file, &[]), Vec::<Vec<u8>>::new());
}

#[test]
fn random_ranges_are_the_bytes_of_the_file_whatever_the_segment_size() {
    for segment_bytes in [8192, 4096, 1000, 8700] {
        let mut publisher = Publisher::new("/lab", 1);
        let bytes = sample(SIZE);
        let name = publisher.publish("f", 1000, &bytes);
        publisher.object_mut(&name).segment_bytes = segment_bytes;
        let (_server, session) =
            session(publisher, Box::new(|_, reply| reply), SessionOptions::default());
        let file = session.open(&name).expect("it is there");
        let mut dice = Dice(segment_bytes as u64);
        for _ in 0..10 {
            let ranges: Vec<(u64, usize)> = (0..dice.below(60))
                .map(|_| (dice.below(SIZE as u64 + 9), dice.below(30_000) as usize))
                .collect();
            assert!(read_ranges(&file, &ranges) == expected(&bytes, &ranges), "{segment_bytes}");
        }
    }
}

/// Bytes on the wire per byte asked, for ranges of 4 KiB as thinly spread as 1000 over 1 GiB.
fn cost(dice: &mut Dice, granularity: u64) -> f64 {
    const LARGE: u64 = 256 << 20;
    const COUNT: u64 = 250;
    let mut publisher = Publisher::new("/lab", 1);
    let mut bytes = vec![0; LARGE as usize];
    for at in (0..bytes.len()).step_by(1024) {
        bytes[at..at + 8].copy_from_slice(&(at as u64).to_ne_bytes());
    }
    let name = publisher.publish("f", 1000, &bytes);
    let (_server, session) = session(publisher, Box::new(|_, reply| reply), NO_PREFETCH);
    let file = session.open(&name).expect("it is there");
    let ranges: Vec<(u64, usize)> = (0..COUNT)
        .map(|_| (dice.below((LARGE - 4096) / granularity) * granularity, 4096))
        .collect();
    assert!(read_ranges(&file, &ranges) == expected(&bytes, &ranges));
    let counters = file.counters();
    assert_eq!(counters.asked_bytes, COUNT * 4096);
    counters.received_bytes as f64 / counters.asked_bytes as f64
}

#[test]
fn lent_buffers_come_back_filled_or_when_the_call_is_dropped() {
    let (_log, meddler) = logging();
    let (_server, file, bytes) = open_with(meddler, NO_PREFETCH);
    let ranges = [(3, 9000), (SIZE as u64 - 5, 10), (0, 0)];
    let mut buffers: Vec<Vec<u8>> = ranges.iter().map(|(_, length)| vec![0; *length]).collect();
    let mut places: Vec<&mut [u8]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
    let read = lend(&mut places, |loan| file.read_lent_later(loan, &ranges).map(Pending::wait));
    let read = read.expect("few ranges").expect("they are there");
    assert_eq!(read.filled, [9000, 5, 0]);
    buffers[1].truncate(5);
    assert_eq!(buffers, expected(&bytes, &ranges));

    let (mut buffer, waker) = (vec![0; SIZE], Waker::noop());
    // That `lend` returns says that the buffer came back.
    lend(&mut [&mut buffer], |loan| {
        let mut pending = file.read_lent_later(loan, &[(0, SIZE)]).expect("one range");
        assert!(Pin::new(&mut pending).poll(&mut Context::from_waker(waker)).is_pending());
    });
}

#[test]
fn thinly_spread_ranges_cost_their_units_and_each_node_once() {
    let mut dice = Dice(1);
    let (aligned, unaligned) = (cost(&mut dice, 4096), cost(&mut dice, 1));
    assert!(aligned <= 3.0, "{aligned}");
    assert!(unaligned <= 4.3, "{unaligned}");
}

#[test]
fn a_client_without_a_thread_reads_ranges_too() {
    let mut publisher = Publisher::new("/lab", 1);
    let bytes = sample(SIZE);
    let name = publisher.publish("f", 1000, &bytes);
    let (_server, mut client) = Server::honest(publisher);
    let file = client.open(&name).expect("it is there");
    let ranges = [(8_999_990, 20), (5, 10), (4_000_000, 30_000), (SIZE as u64, 7)];
    let read = client.read_ranges(&file, &ranges).expect("they are there");
    assert_eq!(read.filled, [11, 10, 30_000, 0]);
    assert!(read.buffer[20..30_030] == expected(&bytes, &ranges[1..3]).concat());
    let too_many = vec![(0, 1); RANGES_MAX + 1];
    let error = client.read_ranges(&file, &too_many).expect_err("it is too much");
    assert!(matches!(error, ClientError::TooMany { .. }), "{error}");
}

#[test]
fn what_was_read_nearby_is_not_fetched_again() {
    let (log, meddler) = logging();
    let (_server, file, bytes) = open_with(meddler, NO_PREFETCH);
    let part = |at: u64| (at, 1000);
    // Names, since a busy machine may make a request be sent twice.
    let asked = || log.lock().expect("no panic").iter().cloned().collect::<BTreeSet<Name>>().len();
    read_ranges(&file, &[part(4_000_000)]);
    let before = asked();
    for at in [4_001_000, 4_000_500, 4_000_000] {
        assert_eq!(read_ranges(&file, &[part(at)]), expected(&bytes, &[part(at)]));
    }
    assert_eq!(asked(), before);
    assert_eq!(file.counters().cached_bytes, 3000, "all of it was here");
    // Another unit under the same node costs one packet.
    read_ranges(&file, &[part(4_020_000)]);
    assert_eq!(asked(), before + 1);
}

#[test]
fn a_sequential_reader_finds_its_bytes_there_and_a_random_one_pays_nothing() {
    let honest: fn() -> Meddler = || Box::new(|_, reply| reply);
    let (_server, file, bytes) = open_with(honest(), SessionOptions::default());
    let (mut at, mut buffer) = (0, vec![0; 65_536]);
    while at < bytes.len() {
        let length = file.read_at(&mut buffer, at as u64).expect("it is there");
        assert!(buffer[..length] == bytes[at..at + length]);
        at += length;
    }
    let counters = file.counters();
    assert!(counters.prefetch_useful_bytes > SIZE as u64 / 2, "{counters:?}");
    assert_eq!(counters.prefetch_wasted_bytes, 0, "{counters:?}");
    assert!(counters.received_bytes < SIZE as u64 * 102 / 100, "nothing came twice: {counters:?}");

    let (_server, file, _) = open_with(honest(), SessionOptions::default());
    let mut dice = Dice(3);
    for _ in 0..200 {
        file.read_at(&mut buffer[..4096], dice.below(SIZE as u64)).expect("it is there");
    }
    assert_eq!(file.counters().prefetched_bytes, 0);
}

#[test]
fn sixty_four_files_are_read_by_sixteen_threads_at_once() {
    let mut publisher = Publisher::new("/lab", 1);
    let contents: Vec<Vec<u8>> = (0..64).map(|seed| sample(300_000 + seed * 7001)).collect();
    let publish = |(index, bytes): (usize, &Vec<u8>)| {
        publisher.publish(&format!("f{index}"), 1000 + index as u64, bytes)
    };
    let names: Vec<Name> = contents.iter().enumerate().map(publish).collect();
    let (_server, session) =
        session(publisher, Box::new(|_, reply| reply), SessionOptions::default());
    let files: Vec<RemoteFile> = std::thread::scope(|scope| {
        let open = |name| session.open(name).expect("it is there");
        let threads: Vec<_> = names.iter().map(|name| scope.spawn(move || open(name))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    std::thread::scope(|scope| {
        for thread in 0..16u64 {
            let (files, contents) = (&files, &contents);
            scope.spawn(move || {
                let mut dice = Dice(thread);
                for _ in 0..40 {
                    let index = dice.below(64) as usize;
                    let size = contents[index].len() as u64;
                    let ranges: Vec<(u64, usize)> =
                        (0..8).map(|_| (dice.below(size), dice.below(20_000) as usize)).collect();
                    let read = read_ranges(&files[index], &ranges);
                    assert!(read == expected(&contents[index], &ranges));
                }
            });
        }
    });
}

#[test]
fn futures_of_many_reads_run_on_one_thread() {
    let (_server, file, bytes) = open_with(Box::new(|_, reply| reply), SessionOptions::default());
    let mut dice = Dice(5);
    let ranges: Vec<Vec<(u64, usize)>> =
        (0..200).map(|_| (0..4).map(|_| (dice.below(SIZE as u64), 3000)).collect()).collect();
    let mut reads: Vec<_> = ranges
        .iter()
        .map(|ranges| file.read_ranges_later(Vec::new(), ranges).expect("not too many"))
        .collect();
    let mut results: Vec<Option<Vec<u8>>> = vec![None; reads.len()];
    let all = std::future::poll_fn(|context| {
        for (read, result) in reads.iter_mut().zip(&mut results) {
            if result.is_none()
                && let Poll::Ready(done) = Pin::new(read).poll(context)
            {
                let done = done.expect("it is there");
                // The last range may be cut by the end of the file.
                let mut bytes = Vec::new();
                for (place, filled) in done.filled.iter().enumerate() {
                    bytes.extend_from_slice(&done.buffer[place * 3000..place * 3000 + filled]);
                }
                *result = Some(bytes);
            }
        }
        if results.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    });
    block_on(all);
    for (ranges, result) in ranges.iter().zip(results) {
        assert!(result.expect("it is done") == expected(&bytes, ranges).concat());
    }
    let buffer = block_on(file.read_at_later(vec![0; 100], 50)).expect("it is there").buffer;
    assert_eq!(buffer, bytes[50..150]);
}

/// Waits for something that happens in another thread.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_dropped_future_takes_its_requests_back_and_harms_nobody() {
    let answered = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&answered);
    let meddler: Meddler = Box::new(move |interest, reply| {
        if content_segment(interest).is_some_and(|segment| segment >= 100) {
            count.fetch_add(1, Ordering::Relaxed);
            return Reply::Silence;
        }
        reply
    });
    let (_server, file, bytes) = open_with(meddler, NO_PREFETCH);
    let mut read = Box::pin(file.read_at_later(vec![0; SIZE - 1_000_000], 1_000_000));
    let poll = read.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll.is_pending());
    eventually("it is asked for", || answered.load(Ordering::Relaxed) > 0);
    drop(read);
    // At most a window was in flight; nothing of the 977 units is asked for any more.
    let mut buffer = vec![0; 50_000];
    file.read_at(&mut buffer, 0).expect("others are served");
    assert!(buffer == bytes[..50_000]);
    let seen = answered.load(Ordering::Relaxed);
    file.read_at(&mut buffer, 500_000).expect("others are served");
    assert_eq!(answered.load(Ordering::Relaxed), seen);
    assert!(seen < 600, "{seen}");
}

#[test]
fn a_corrupt_unit_fails_its_readers_and_nobody_else() {
    let meddler: Meddler = Box::new(|interest, reply| match reply {
        Reply::Data(mut wire) if content_segment(interest) == Some(300) => {
            flip_content_bit(&mut wire, 4000);
            Reply::Data(wire)
        }
        other => other,
    });
    let (_server, file, bytes) = open_with(meddler, NO_PREFETCH);
    let whole = file.read_at_later(vec![0; SIZE], 0);
    let error = std::thread::scope(|scope| {
        let reader = scope.spawn(|| whole.wait().expect_err("a unit is forged"));
        for at in [0, 2_000_000, 2_470_000, 8_000_000] {
            let part = [(at, 5000)];
            assert!(read_ranges(&file, &part) == expected(&bytes, &part));
        }
        reader.join().expect("no panic")
    });
    assert!(matches!(error, ClientError::Read(ReadError::BadUnit { unit: 300, .. })), "{error}");
    let part = [(299 * 8192, 8192)];
    assert!(read_ranges(&file, &part) == expected(&bytes, &part), "the file is still good");
    let error = file.read_at(&mut [0; 10], 300 * 8192).expect_err("it is still forged");
    assert!(matches!(error, ClientError::Read(ReadError::BadUnit { unit: 300, .. })), "{error}");
}

#[test]
fn a_version_that_is_gone_is_said_so_and_the_next_open_finds_the_new_one() {
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish("f", 1000, &sample(SIZE));
    let (server, session) = session(publisher, Box::new(|_, reply| reply), NO_PREFETCH);
    let old = session.open(&name).expect("it is there");
    let new_bytes = sample(50_000);
    server.publisher.lock().expect("no panic").publish("f", 2000, &new_bytes);
    let error = old.read_at(&mut [0; 10], 0).expect_err("it is gone");
    assert!(matches!(error, ClientError::Read(ReadError::VersionGone { .. })), "{error}");
    let new = session.open(&name).expect("it is there");
    assert_eq!(read_ranges(&new, &[(0, 60_000)]), [new_bytes]);
    assert_eq!(session.stat(&name).expect("it is there").size, Some(50_000));
    let missing = name.with_generic(b"no");
    let error = session.open(&missing).expect_err("it is not there");
    assert!(matches!(error, ClientError::Read(ReadError::NotFound { .. })), "{error}");
}

#[test]
fn directories_are_listed_and_not_opened() {
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish_listing("d", 1000, &[b"a", b"b/"]);
    let (_server, session) = session(publisher, Box::new(|_, reply| reply), NO_PREFETCH);
    let listing = session.list(&name).expect("it is there");
    assert_eq!(listing.entries().count(), 2);
    let error = session.open(&name).expect_err("it is a directory");
    assert!(matches!(error, ClientError::Read(ReadError::Protocol { .. })), "{error}");
}

#[test]
fn a_lost_connection_ends_every_call_with_an_error() {
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish("f", 1000, &sample(SIZE));
    let config = ClientConfig { timeout: Duration::from_millis(300), ..trusting(&publisher) };
    let directory = tempfile::tempdir().expect("a directory");
    let endpoint = Endpoint::Unix(directory.path().join("sock"));
    // The description, its certificate, and the server is gone.
    Server::listen(&endpoint, Arc::new(Mutex::new(publisher)), Some(2));
    let client = Client::connect(&[endpoint], config).expect("it listens");
    let session = Session::start(client, NO_PREFETCH).expect("a thread");
    let file = session.open(&name).expect("it is there");
    std::thread::scope(|scope| {
        for at in 0..8 {
            let file = &file;
            scope.spawn(move || {
                let error = file.read_at(&mut [0; 10], at * 10).expect_err("nobody answers");
                // Whichever of the two patiences ends first; they are equal.
                assert_eq!(error.class(), ErrorClass::Retryable, "{error}");
            });
        }
    });
}

#[test]
fn a_forwarder_that_restarts_between_two_reads_is_not_noticed() {
    let mut publisher = Publisher::new("/lab", 1);
    let bytes = sample(SIZE);
    let name = publisher.publish("f", 1000, &bytes);
    let config = trusting(&publisher);
    let publisher = Arc::new(Mutex::new(publisher));
    let directory = tempfile::tempdir().expect("a directory");
    let endpoint = Endpoint::Unix(directory.path().join("sock"));
    let first = Server::listen(&endpoint, Arc::clone(&publisher), Some(2));
    let client = Client::connect(std::slice::from_ref(&endpoint), config).expect("it listens");
    let session = Session::start(client, NO_PREFETCH).expect("a thread");
    let file = session.open(&name).expect("it is there");
    first.join().expect("no panic");
    let _second = Server::listen(&endpoint, publisher, None);
    let ranges = [(3_000_000, 5000), (17, 4)];
    assert!(read_ranges(&file, &ranges) == expected(&bytes, &ranges));
}

#[test]
fn stop_ends_every_call() {
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish("f", 1000, &sample(SIZE));
    let config = trusting(&publisher);
    let stop = config.stop.clone();
    let meddler: Meddler =
        Box::new(|it, reply| if content_segment(it).is_some() { Reply::Silence } else { reply });
    let (_server, connection) = Server::start(publisher, meddler);
    let client = Client::with_connection(connection, config).expect("a client");
    let session = Session::start(client, NO_PREFETCH).expect("a thread");
    let file = session.open(&name).expect("it is there");
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| file.read_at(&mut [0; 10], 0).expect_err("it was stopped"));
        stop.request();
        let error = reader.join().expect("no panic");
        assert!(matches!(error, ClientError::Interrupted), "{error}");
    });
    let error = session.stat(&name).expect_err("it stays stopped");
    assert!(matches!(error, ClientError::Interrupted), "{error}");
}

#[test]
fn the_engine_ends_with_its_last_handle() {
    let (server, file, bytes) = open_with(Box::new(|_, reply| reply), NO_PREFETCH);
    let copy = file.clone();
    drop(file);
    assert_eq!(read_ranges(&copy, &[(7, 9)]), expected(&bytes, &[(7, 9)]));
    drop(copy);
    eventually("the connection is closed", || server.is_finished());
}

#[test]
fn foreign_files_are_read_in_ranges_even_if_only_the_order_tells_offsets() {
    let mut publisher = Publisher::new("/lab", 1);
    publisher.is_foreign = true;
    publisher.signs_segments = true;
    let bytes = sample(300_001);
    let name = publisher.publish("f", 1000, &bytes);
    publisher.object_mut(&name).segment_bytes = 1300;
    let (_server, session) = session(publisher, Box::new(|_, reply| reply), NO_PREFETCH);
    let file = session.open(&name).expect("it is there");
    let ranges = [(299_000, 5000), (10, 20), (10, 20), (150_000, 40_000)];
    assert!(read_ranges(&file, &ranges) == expected(&bytes, &ranges));
    assert!(read_ranges(&file, &[(5, 6)]) == expected(&bytes, &[(5, 6)]));
}

#[test]
fn downloads_go_on_beside_reads_and_end_as_whole_files() {
    let mut publisher = Publisher::new("/lab", 1);
    let (large, small) = (sample(SIZE), sample(40_000));
    let names = [publisher.publish("f", 1000, &large), publisher.publish("g", 1000, &small)];
    let (log, meddler) = logging();
    let (_server, session) = session(publisher, meddler, NO_PREFETCH);
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("f");
    let options = byname_client::DownloadOptions::default();
    let download = session.download_later(&names[0], &target, options);
    let file = session.open(&names[1]).expect("it is there");
    assert_eq!(read_ranges(&file, &[(30_000, 5000)]), [&small[30_000..35_000]]);
    let report = download.wait().expect("it arrives");
    assert_eq!(report.fetched_bytes, SIZE as u64);
    assert!(std::fs::read(&target).expect("it is in place") == large);
    let before = log.lock().expect("no panic").len();
    let again = session.download(&names[0], &target, options).expect("it is there already");
    assert_eq!(again.outcome, byname_client::FileOutcome::Identical);
    let after = log.lock().expect("no panic").len();
    assert!(after - before <= 2, "{} requests for what is there", after - before);
    let nowhere = directory.path().join("no/such/directory");
    let refused = session.download(&names[0], &nowhere, options);
    assert!(matches!(refused, Err(ClientError::LocalDisk { .. })), "{refused:?}");
}
