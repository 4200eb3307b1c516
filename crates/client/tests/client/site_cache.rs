//! The site cache behind clients: what one read another finds, and what bad disks do to readers.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use byname_cache::{Cache, CacheConfig, Disk};
use byname_client::{CachedRead, Client, ClientConfig, Session, SessionOptions};
use byname_io::Endpoint;
use byname_packet::{Interest, Name};
use byname_security::trust::UnknownKeys;
use byname_transfer::naming::{self, Part, Request};

use super::publisher::{Publisher, sample};
use super::server::{Meddler, Server, trusting};
use super::session::block_on;

const SIZE: usize = 5_000_001;
const UNIT: usize = 8192;
const PATIENCE: Duration = Duration::from_secs(60);

/// Segments of content and tree that were asked for.
type Log = Arc<Mutex<Vec<Name>>>;

fn logging() -> (Log, Meddler) {
    let log = Log::default();
    let seen = Arc::clone(&log);
    let meddler: Meddler = Box::new(move |interest, reply| {
        if is_part(interest) {
            seen.lock().expect("no panic").push(interest.name.to_name());
        }
        reply
    });
    (log, meddler)
}

fn is_part(interest: &Interest<'_>) -> bool {
    let request = naming::parse(interest.name).map(|parsed| parsed.request);
    matches!(request, Some(Request::Segment { part: Part::Content | Part::Tree(_), .. }))
}

fn publisher() -> (Publisher, Name, Vec<u8>) {
    let mut publisher = Publisher::new("/lab", 1);
    let bytes = sample(SIZE);
    let name = publisher.publish("f", 1000, &bytes);
    (publisher, name, bytes)
}

fn cache_config(directory: &Path) -> CacheConfig {
    CacheConfig { free_bytes_min: 0, ..CacheConfig::new(directory.join("cache")) }
}

/// A client that reads through a cache, and what it asks its publisher for.
struct Reader {
    _server: Server,
    client: Client,
    cache: Cache,
    asked: Log,
    name: Name,
    bytes: Vec<u8>,
}

impl Reader {
    fn new(directory: &Path) -> Self {
        Self::with(cache_config(directory), |config| config)
    }

    fn with(cache: CacheConfig, change: impl Fn(ClientConfig) -> ClientConfig) -> Self {
        let (publisher, name, bytes) = publisher();
        let (asked, meddler) = logging();
        let cache = Cache::new(cache);
        let config = ClientConfig { cache: Some(cache.clone()), ..trusting(&publisher) };
        let (server, connection) = Server::start(publisher, meddler);
        let client = Client::with_connection(connection, change(config)).expect("a client");
        Reader { _server: server, client, cache, asked, name, bytes }
    }

    /// Reads all of it in order.
    fn stream(&mut self) {
        let file = self.client.open(&self.name).expect("it is there");
        let mut read = Vec::new();
        let mut sink = |_: u64, bytes: &[u8]| {
            read.extend_from_slice(bytes);
            Ok(())
        };
        let count = self.client.read_range(&file, 0..u64::MAX, &mut sink).expect("it is read");
        assert_eq!(count, SIZE as u64);
        assert!(read == self.bytes, "a wrong byte");
    }

    /// Reads ranges here and there.
    fn ranges(&mut self) {
        let file = self.client.open(&self.name).expect("it is there");
        let ranges: Vec<(u64, usize)> =
            (0..40).map(|at| (at * 123_457 % SIZE as u64, 9000)).collect();
        let read = self.client.read_ranges(&file, &ranges).expect("they are read");
        for (at, ((offset, length), filled)) in ranges.iter().zip(read.filled).enumerate() {
            let wanted = &self.bytes[*offset as usize..][..filled];
            assert!(read.buffer[at * length..][..filled] == *wanted, "a wrong byte");
        }
    }

    fn asked_count(&self) -> usize {
        self.asked.lock().expect("no panic").len()
    }
}

/// The only entry's file of this name.
fn entry_file(directory: &Path, name: &str) -> PathBuf {
    let groups = fs::read_dir(directory.join("cache/entries")).expect("entries");
    let mut entries =
        groups.flat_map(|group| fs::read_dir(group.expect("one").path()).expect("a group"));
    entries.next().expect("an entry").expect("one").path().join(name)
}

#[test]
fn what_one_client_read_others_find_on_the_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut first = Reader::new(directory.path());
    first.stream();
    assert!(first.asked_count() > SIZE / UNIT);
    assert!(first.cache.flush(PATIENCE));
    for read in [Reader::stream as fn(&mut Reader), Reader::ranges] {
        let mut other = Reader::new(directory.path());
        read(&mut other);
        assert_eq!(other.asked.lock().expect("no panic").as_slice(), [], "all of it was there");
    }
}

#[test]
fn what_was_read_in_pieces_serves_a_stream_which_fetches_the_rest() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut first = Reader::new(directory.path());
    first.ranges();
    let in_pieces = first.asked_count();
    assert!(first.cache.flush(PATIENCE));
    let mut second = Reader::new(directory.path());
    second.stream();
    let units = SIZE.div_ceil(UNIT);
    assert!(second.asked_count() < units, "{} and {in_pieces}", second.asked_count());
    assert!(second.cache.flush(PATIENCE));
    let mut third = Reader::new(directory.path());
    third.stream();
    assert_eq!(third.asked_count(), 0);
}

#[test]
fn a_session_with_readahead_finds_all_of_it_on_the_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut first = Reader::new(directory.path());
    first.stream();
    assert!(first.cache.flush(PATIENCE));
    let Reader { client, asked, name, bytes, _server, .. } = Reader::new(directory.path());
    let session = Session::start(client, SessionOptions::default()).expect("a thread");
    let file = session.open(&name).expect("it is there");
    let (mut at, mut buffer) = (0, vec![0; 100_000]);
    while at < bytes.len() {
        let length = file.read_at(&mut buffer, at as u64).expect("it is there");
        assert!(buffer[..length] == bytes[at..at + length]);
        at += length;
    }
    assert!(file.counters().site_cache_bytes >= SIZE as u64);
    assert_eq!(asked.lock().expect("no panic").as_slice(), []);
}

/// A directory whose files are in memory and can be told to be, on whatever the others lie.
fn directory_in_memory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    tempfile::tempdir_in(place).expect("a directory")
}

#[test]
fn what_the_disk_has_in_memory_is_verified_on_the_callers_thread_alone() {
    let directory = directory_in_memory();
    let mut first = Reader::new(directory.path());
    first.stream();
    assert!(first.cache.flush(PATIENCE));
    let data = fs::OpenOptions::new().write(true).open(entry_file(directory.path(), "data"));
    data.expect("the data").write_all_at(b"rot", 300 * UNIT as u64 + 600).expect("written");
    let Reader { client, cache, name, bytes, _server, .. } = Reader::new(directory.path());
    let session = Session::start(client, SessionOptions::default()).expect("a thread");
    let file = session.open(&name).expect("it is there");
    let mut scratch = Vec::new();
    let is_elsewhere = |read| matches!(read, CachedRead::Elsewhere);
    let here = |read| match read {
        CachedRead::Here(place) => place,
        read => panic!("{read:?}"),
    };
    assert!(is_elsewhere(file.read_nowait(&mut scratch, 0, 10)), "nobody has looked what is there");
    file.read_at(&mut [0; 10], 0).expect("now somebody has");
    for (offset, length) in [(0, 10), (8191, 2), (3 * UNIT, 500_000), (SIZE - 20_000, 4096)] {
        let place = here(file.read_nowait(&mut scratch, offset as u64, length));
        assert!(scratch[place] == bytes[offset..offset + length], "{length} from {offset}");
    }
    for (offset, length) in [(SIZE - 5, 5), (SIZE, 0), (SIZE + UNIT, 0)] {
        let place = here(file.read_nowait(&mut scratch, offset as u64, 4096));
        assert!(scratch[place] == bytes[offset.min(SIZE)..][..length]);
    }
    let rotten = file.read_nowait(&mut scratch, 300 * UNIT as u64, 4096);
    assert!(is_elsewhere(rotten), "a rotten unit");
    assert_eq!(cache.counters().rotten_units, 1);
    let mut fetched = [0; 4096];
    file.read_at(&mut fetched, 300 * UNIT as u64).expect("it is fetched anew");
    assert!(fetched == bytes[300 * UNIT..][..4096]);
}

/// Has the kernel forget what it has of a file in memory, if its file system has a disk.
fn forget(path: &Path) {
    let file = fs::File::open(path).expect("a file");
    file.sync_all().expect("written");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("forgotten");
}

#[test]
fn what_only_the_disk_has_is_read_ahead_and_verified() {
    let directory = tempfile::tempdir_in(".").expect("a directory");
    let mut first = Reader::new(directory.path());
    first.stream();
    assert!(first.cache.flush(PATIENCE));
    let path = entry_file(directory.path(), "data");
    let data = fs::OpenOptions::new().write(true).open(&path).expect("the data");
    data.write_all_at(b"rot", 300 * UNIT as u64 + 600).expect("written");
    let Reader { client, cache, name, bytes, _server, .. } = Reader::new(directory.path());
    let session = Session::start(client, SessionOptions::default()).expect("a thread");
    let file = session.open(&name).expect("it is there");
    file.read_at(&mut [0; 10], 0).expect("somebody has looked");
    forget(&path);
    forget(&entry_file(directory.path(), "tree"));
    let (mut scratch, mut coming, mut missing) = (Vec::new(), 0, Vec::new());
    for offset in (0..SIZE).step_by(100_000) {
        let wanted = &bytes[offset..(offset + 100_000).min(SIZE)];
        match file.read_nowait(&mut scratch, offset as u64, 100_000) {
            CachedRead::Here(place) => assert!(scratch[place] == *wanted, "{offset}"),
            CachedRead::Coming(read) => match block_on(read.verified()) {
                Some(read) => {
                    assert!(read.bytes(&mut scratch) == wanted, "{offset}");
                    coming += 1;
                }
                None => missing.push(offset),
            },
            CachedRead::Elsewhere => missing.push(offset),
        }
    }
    assert_eq!(missing, [300 * UNIT / 100_000 * 100_000], "only what is rotten");
    assert_eq!(cache.counters().rotten_units, 1);
    if coming == 0 {
        eprintln!("SKIPPED: this file system forgets nothing");
    }
}

#[test]
fn what_the_disk_has_is_read_also_when_its_publisher_is_gone() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut first = Reader::new(directory.path());
    first.stream();
    assert!(first.cache.flush(PATIENCE));
    let (mut publisher, name, bytes) = publisher();
    let missing = publisher.publish("g", 1000, &sample(SIZE + 1));
    let timeout = Duration::from_millis(300);
    let cache = Some(Cache::new(cache_config(directory.path())));
    let config = ClientConfig { cache, timeout, ..trusting(&publisher) };
    let endpoint = Endpoint::Unix(directory.path().join("sock"));
    // Two descriptions and a certificate, and the server is gone.
    let server = Server::listen(&endpoint, Arc::new(Mutex::new(publisher)), Some(3));
    let client = Client::connect(&[endpoint], config).expect("it listens");
    let options = SessionOptions { prefetch_bytes_max: 0, ..SessionOptions::default() };
    let session = Session::start(client, options).expect("a thread");
    let (file, missing) = (session.open(&name).expect("f"), session.open(&missing).expect("g"));
    server.join().expect("no panic");
    let mut buffer = vec![0; 100_000];
    let mut read_some = |offset: usize| {
        let length = file.read_at(&mut buffer, offset as u64).expect("it is here");
        assert!(length > 0 && buffer[..length] == bytes[offset..offset + length]);
    };
    (0..10).for_each(|at| read_some(at * 300_000));
    // From now on the outage has lasted too long.
    missing.read_at(&mut [0; 10], 4_000_000).expect_err("nobody has it");
    (10..16).for_each(|at| read_some(at * 300_000));
}

#[test]
fn rotten_units_are_counted_fetched_anew_and_sound_for_the_next() {
    for read in [Reader::stream as fn(&mut Reader), Reader::ranges] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut first = Reader::new(directory.path());
        first.stream();
        assert!(first.cache.flush(PATIENCE));
        let data = fs::OpenOptions::new().write(true).open(entry_file(directory.path(), "data"));
        let data = data.expect("the data");
        // Ranges begin at 0 and 123 457.
        for unit in [0, 15] {
            data.write_all_at(b"rot", unit * UNIT as u64 + 600).expect("written");
        }
        let mut second = Reader::new(directory.path());
        read(&mut second);
        assert_eq!(second.cache.counters().rotten_units, 2);
        assert_eq!(second.asked_count(), 2);
        assert!(second.cache.flush(PATIENCE));
        let mut third = Reader::new(directory.path());
        read(&mut third);
        assert_eq!((third.cache.counters().rotten_units, third.asked_count()), (0, 0));
    }
}

#[test]
fn a_forged_cache_is_worth_nothing_and_harms_nobody() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut first = Reader::new(directory.path());
    first.stream();
    assert!(first.cache.flush(PATIENCE));
    fs::write(entry_file(directory.path(), "data"), vec![7; SIZE]).expect("forged");
    let tree = entry_file(directory.path(), "tree");
    let length = fs::metadata(&tree).expect("a tree").len() as usize;
    fs::write(tree, vec![7; length]).expect("forged");
    let mut second = Reader::new(directory.path());
    second.stream();
    second.ranges();
}

#[test]
fn a_disk_that_hangs_holds_up_no_reader() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut first = Reader::new(directory.path());
    first.stream();
    assert!(first.cache.flush(PATIENCE));
    for read in [Reader::stream as fn(&mut Reader), Reader::ranges] {
        let held = Arc::new((Mutex::new(true), Condvar::new()));
        let gate = Arc::clone(&held);
        let disk = Disk::hooked(move |_, _| {
            let is_held = gate.0.lock().expect("no panic");
            drop(gate.1.wait_while(is_held, |held| *held).expect("no panic"));
            Ok(())
        });
        let patience = Duration::from_millis(100);
        let config = CacheConfig { disk, patience, ..cache_config(directory.path()) };
        let mut reader = Reader::with(config, |config| config);
        // It would not return before the disk does, which it never does.
        read(&mut reader);
        assert!(reader.asked_count() > 0);
        // On a fast machine all has been read before the patience is over.
        std::thread::sleep(2 * patience);
        (0..2).for_each(|_| reader.cache.wait_for_room(Duration::ZERO));
        assert_eq!(reader.cache.counters().bypasses, 1, "said once");
        *held.0.lock().expect("no panic") = false;
        held.1.notify_all();
    }
}

#[test]
fn what_came_insecurely_stays_out_of_the_cache() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut reader = Reader::with(cache_config(directory.path()), |mut config| {
        config.trust.unknown_keys = UnknownKeys::Insecure;
        config
    });
    reader.stream();
    reader.ranges();
    assert!(reader.cache.flush(PATIENCE));
    assert!(!directory.path().join("cache/entries").exists());
}
