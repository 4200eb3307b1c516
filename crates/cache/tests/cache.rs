//! The cache as its users see it: what comes back, what is bounded, and what a bad disk does.

use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use byname_cache::{Cache, CacheConfig, Content, Description, Disk, Found, Probe, Step};
use byname_security::tree::{Check, NodeId, Tree, UNIT_BYTES, Verifier};

const PATIENCE: Duration = Duration::from_secs(60);

/// Content with its tree, different for each seed.
struct File {
    bytes: Vec<u8>,
    tree: Tree,
}

impl File {
    fn new(seed: u64, length: usize) -> Self {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let bytes: Vec<u8> = (0..length)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state as u8
            })
            .collect();
        let tree = Tree::of(&bytes);
        File { bytes, tree }
    }

    fn units(&self) -> u64 {
        self.bytes.len().div_ceil(UNIT_BYTES) as u64
    }

    fn content(&self, cache: &Cache) -> Content {
        cache.content(self.tree.root, self.bytes.len() as u64)
    }

    /// What a reader does before it reads. Names are kept with units that come while it is open.
    fn open(&self, cache: &Cache, name: &str) -> Content {
        let content = self.content(cache);
        describe(&content, name);
        content
    }

    fn insert_all(&self, cache: &Cache) {
        let content = self.content(cache);
        for (at, unit) in self.bytes.chunks(UNIT_BYTES).enumerate() {
            content.insert((at * UNIT_BYTES) as u64, unit);
        }
        self.insert_nodes(&content);
        assert!(cache.flush(PATIENCE));
    }

    fn insert_nodes(&self, content: &Content) {
        for node in self.nodes() {
            content.insert_node(node, self.tree.node(node).expect("it is one"));
        }
    }

    /// From the top down.
    fn nodes(&self) -> Vec<NodeId> {
        let shape = byname_security::tree::Shape::new(self.bytes.len() as u64);
        let levels = (1..=shape.level_count()).rev();
        levels
            .flat_map(|level| {
                (0..shape.node_count(level)).map(move |index| NodeId { level, index })
            })
            .collect()
    }

    /// Units that a reader could use: found in the cache and genuine.
    fn verified(&self, found: &Found) -> u64 {
        let mut verifier = Verifier::new(self.tree.root, self.bytes.len() as u64, 1000);
        for (node, bytes) in &found.nodes {
            let _ = verifier.add_node(*node, bytes);
        }
        let mut count = 0;
        for (first, bytes) in &found.runs {
            for (at, unit) in bytes.chunks(UNIT_BYTES).enumerate() {
                count += u64::from(verifier.check(first + at as u64, unit) == Check::Verified);
            }
        }
        count
    }
}

fn read(content: &Content, units: std::ops::Range<u64>, nodes: Vec<NodeId>) -> Option<Found> {
    let (sender, receiver) = mpsc::channel();
    let is_asked = content.read(units, nodes, move |found| {
        let _ = sender.send(found);
    });
    is_asked.then(|| receiver.recv_timeout(PATIENCE).expect("an answer"))
}

fn read_all(file: &File, cache: &Cache) -> Found {
    read(&file.content(cache), 0..file.units(), file.nodes()).expect("the disk is asked")
}

fn config(directory: &Path) -> CacheConfig {
    // Tests must not depend on how full and how slow the machine's disk is.
    let (directory, patience) = (directory.join("cache"), PATIENCE);
    CacheConfig { free_bytes_min: 0, patience, ..CacheConfig::new(directory) }
}

fn describe(content: &Content, name: &str) {
    let name = name.parse().expect("a name");
    let mtime_ns = Some(1_234_567_890_000_000_000);
    content.describe(Description {
        name,
        version: 5,
        mtime_ns,
        mode: Some(0o100_640),
        packet: None,
    });
}

/// The only entry's file of this name.
fn entry_file(directory: &Path, name: &str) -> std::path::PathBuf {
    let groups = fs::read_dir(directory.join("cache/entries")).expect("entries");
    let entry = groups
        .flat_map(|group| fs::read_dir(group.expect("one").path()).expect("a group"))
        .next()
        .expect("an entry");
    entry.expect("one").path().join(name)
}

#[test]
fn what_one_process_kept_another_finds() {
    let directory = tempfile::tempdir().expect("a directory");
    for length in [1, UNIT_BYTES, UNIT_BYTES + 1, 5 << 20] {
        let file = File::new(length as u64, length);
        let first = Cache::new(config(directory.path()));
        let content = file.content(&first);
        assert_eq!(content.probe(0), Probe::Unknown);
        assert_eq!(read_all(&file, &first).runs, []);
        assert_eq!(content.probe(0), Probe::Absent);
        file.insert_all(&first);
        assert_eq!(content.probe(0), Probe::Present);
        drop((content, first));
        let second = Cache::new(config(directory.path()));
        let content = file.content(&second);
        assert_eq!(file.verified(&read_all(&file, &second)), file.units());
        assert_eq!(content.present_bytes(), length as u64);
    }
}

/// A directory whose files are in memory and can be told to be, on whatever the others lie.
fn directory_in_memory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    tempfile::tempdir_in(place).expect("a directory")
}

#[test]
fn what_is_in_memory_is_read_without_a_thread_until_it_is_removed() {
    let directory = directory_in_memory();
    let file = File::new(5, 300 * UNIT_BYTES - 7);
    let cache = Cache::new(config(directory.path()));
    let content = file.content(&cache);
    let mut bytes = vec![0; 2 * UNIT_BYTES];
    assert!(!content.read_nowait(3..5, &mut bytes), "nobody has looked yet");
    file.insert_all(&cache);
    read_all(&file, &cache);
    assert!(content.read_nowait(3..5, &mut bytes));
    assert_eq!(bytes, file.bytes[3 * UNIT_BYTES..5 * UNIT_BYTES]);
    bytes.truncate(UNIT_BYTES - 7);
    assert!(content.read_nowait(299..300, &mut bytes));
    assert_eq!(bytes, file.bytes[299 * UNIT_BYTES..]);
    for node in file.nodes() {
        assert_eq!(content.read_node_nowait(node).as_deref(), file.tree.node(node));
    }
    content.note_rotten(299);
    assert!(!content.read_nowait(299..300, &mut bytes), "it is fetched anew");
    let other = Cache::new(config(directory.path()));
    assert_eq!(other.remove(None).expect("removed"), 1);
    let until = std::time::Instant::now() + PATIENCE;
    let mut unit = vec![0; UNIT_BYTES];
    while content.read_nowait(0..1, &mut unit) {
        assert!(std::time::Instant::now() < until, "the entry is never let go of");
        std::thread::yield_now();
    }
}

#[test]
fn two_processes_that_write_one_content_lose_none_of_each_others_bits() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = File::new(7, 400 * UNIT_BYTES);
    let caches = [(); 2].map(|()| Cache::new(config(directory.path())));
    std::thread::scope(|scope| {
        for (parity, cache) in caches.iter().enumerate() {
            let file = &file;
            scope.spawn(move || {
                let content = file.content(cache);
                for (at, unit) in file.bytes.chunks(UNIT_BYTES).enumerate() {
                    if at % 2 == parity {
                        content.insert((at * UNIT_BYTES) as u64, unit);
                    }
                    // Small batches, so that both are at the map again and again.
                    assert!(at % 10 != 0 || cache.flush(PATIENCE));
                }
                file.insert_nodes(&content);
                assert!(cache.flush(PATIENCE));
            });
        }
    });
    drop(caches);
    let third = Cache::new(config(directory.path()));
    assert_eq!(file.verified(&read_all(&file, &third)), file.units());
}

#[test]
fn an_entry_that_another_process_removed_is_begun_anew() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = File::new(3, 20 * UNIT_BYTES);
    let (first, second) =
        (Cache::new(config(directory.path())), Cache::new(config(directory.path())));
    file.insert_all(&first);
    assert_eq!(second.remove(None).expect("removed"), 1);
    assert_eq!(read_all(&file, &first).runs, []);
    file.insert_all(&first);
    assert_eq!(file.verified(&read_all(&file, &second)), file.units());
}

#[test]
fn a_power_cut_costs_a_fetch_and_never_a_wrong_byte() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = File::new(11, 300 * UNIT_BYTES);
    file.insert_all(&Cache::new(config(directory.path())));
    // The bits came to the disk, the second half of the bytes did not; nor did the tree.
    let data = fs::OpenOptions::new().write(true).open(entry_file(directory.path(), "data"));
    let data = data.expect("the data");
    let half = 150 * UNIT_BYTES as u64;
    data.set_len(half).and_then(|()| data.set_len(file.bytes.len() as u64)).expect("cut");
    let cache = Cache::new(config(directory.path()));
    let found = read_all(&file, &cache);
    assert_eq!(found.runs.iter().map(|(_, bytes)| bytes.len()).sum::<usize>(), file.bytes.len());
    assert_eq!(file.verified(&found), 150);
    fs::write(entry_file(directory.path(), "tree"), b"").expect("cut");
    assert_eq!(file.verified(&read_all(&file, &cache)), 0, "without nodes nothing counts");
    fs::write(entry_file(directory.path(), "map"), b"torn").expect("torn");
    let again = Cache::new(config(directory.path()));
    assert_eq!(read_all(&file, &again).runs, [], "a damaged map is an empty one");
    file.insert_all(&again);
    assert_eq!(file.verified(&read_all(&file, &again)), file.units());
}

#[test]
fn scrub_finds_flipped_bits_and_they_count_as_missing() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = File::new(13, 300 * UNIT_BYTES + 77);
    let cache = Cache::new(config(directory.path()));
    let _open = file.open(&cache, "/lab/f");
    file.insert_all(&cache);
    let sound = cache.scrub(None, &mut |_, _| {}).expect("it is scrubbed");
    assert_eq!((sound.good_units, sound.rotten_units), (301, 0));
    let tree = directory.path().join("cache/tree/lab/f");
    assert!(tree.exists());
    let path = entry_file(directory.path(), "data");
    let data = fs::OpenOptions::new().write(true).read(true).open(path).expect("the data");
    for unit in [0, 256, 300] {
        let (mut octet, at) = ([0], unit * UNIT_BYTES as u64 + 5);
        data.read_exact_at(&mut octet, at).expect("read");
        data.write_all_at(&[octet[0] ^ 1], at).expect("written");
    }
    let rotten = cache.scrub(None, &mut |_, _| {}).expect("it is scrubbed");
    assert_eq!((rotten.good_units, rotten.rotten_units), (298, 3));
    assert!(!tree.exists(), "it is no copy any more");
    let again = Cache::new(config(directory.path()));
    let found = read_all(&file, &again);
    assert_eq!((found.runs.len(), file.verified(&found)), (2, 298));
}

#[test]
fn a_whole_content_is_a_copy_under_its_name_until_it_is_removed() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = File::new(17, 10 * UNIT_BYTES + 1);
    let cache = Cache::new(config(directory.path()));
    let content = file.content(&cache);
    describe(&content, "/lab/a%2Fb/run");
    describe(&content, "/lab/sub/run");
    content.insert(0, &file.bytes[..10 * UNIT_BYTES]);
    assert!(cache.flush(PATIENCE));
    let copy = directory.path().join("cache/tree/lab/sub/run");
    assert!(!copy.exists(), "a part is no copy");
    content.insert(10 * UNIT_BYTES as u64, &file.bytes[10 * UNIT_BYTES..]);
    assert!(cache.flush(PATIENCE));
    assert_eq!(fs::read(&copy).expect("the copy"), file.bytes);
    assert_eq!(fs::metadata(&copy).expect("its time").mtime(), 1_234_567_890);
    let name: byname_packet::Name = "/lab".parse().expect("a name");
    let listed = cache.entries(Some(name.view())).expect("listed");
    assert!(listed[0].is_whole && !listed[0].is_pinned);
    let other: byname_packet::Name = "/la".parse().expect("a name");
    assert_eq!(cache.remove(Some(other.view())).expect("nothing"), 0);
    assert_eq!(cache.remove(Some(name.view())).expect("removed"), 1);
    assert!(!copy.exists() && !copy.parent().expect("a directory").exists());
    assert!(
        !directory.path().join("cache/entries").read_dir().expect("entries").any(|group| {
            group.expect("one").path().read_dir().expect("a group").next().is_some()
        })
    );
}

#[test]
fn the_bounds_hold_and_pins_stay() {
    let directory = tempfile::tempdir().expect("a directory");
    let bytes_max = 40 * (64 << 10);
    let cache = Cache::new(CacheConfig { bytes_max, files_max: 100, ..config(directory.path()) });
    let pinned: byname_packet::Name = "/lab/keep".parse().expect("a name");
    assert!(cache.pin(&pinned).expect("pinned") && !cache.pin(&pinned).expect("was"));
    for at in 0..200 {
        let file = File::new(1000 + at, 60_000);
        let place = if at < 3 { "keep" } else { "other" };
        let _open = file.open(&cache, &format!("/lab/{place}/{at}"));
        file.insert_all(&cache);
        let usage = cache.usage().expect("counted");
        assert!(usage.bytes <= bytes_max, "{usage:?} at {at}");
    }
    let kept = cache.entries(Some(pinned.view())).expect("listed");
    assert_eq!(kept.iter().filter(|entry| entry.is_pinned && entry.is_whole).count(), 3);
    let counters = cache.counters();
    assert!(counters.evicted_entries > 100, "{counters:?}");
    assert_eq!(counters.refused_bytes, 0);
    assert!(cache.unpin(&pinned).expect("ended") && !cache.unpin(&pinned).expect("was"));
}

#[test]
fn a_name_with_a_limit_keeps_no_more_and_takes_nothing_from_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let cache = Cache::new(config(directory.path()));
    let name = |text: &str| text.parse::<byname_packet::Name>().expect("a name");
    let bytes_of = |below: &str| {
        let listed = cache.entries(Some(name(below).view())).expect("listed");
        listed.iter().map(|entry| entry.disk_bytes).sum::<u64>()
    };
    let limit = 20 * (64 << 10);
    cache.pin(&name("/lab/scratch/keep")).expect("pinned");
    cache.limit(&name("/lab/scratch"), Some(limit)).expect("limited");
    let fill = |place: &str, seed: u64| {
        // Another process each time: what it wrote counts when it ends.
        let own = Cache::new(config(directory.path()));
        for at in 0..40 {
            let file = File::new(seed + at, 60_000);
            let _open = file.open(&own, &format!("/lab/{place}/{at}"));
            file.insert_all(&own);
        }
    };
    fill("scratch/keep", 1000);
    fill("other", 2000);
    fill("scratch/rest", 3000);
    let kept = bytes_of("/lab/scratch/keep");
    assert!(kept > limit, "pins stay, also above it");
    assert_eq!(bytes_of("/lab/scratch/rest"), 0, "there is room for nothing else");
    assert!(bytes_of("/lab/other") > 40 * 60_000, "others are not looked at");
    cache.unpin(&name("/lab/scratch/keep")).expect("unpinned");
    cache.limit(&name("/lab/scratch"), Some(limit)).expect("limited");
    assert!((1..=limit).contains(&bytes_of("/lab/scratch")));
    assert_eq!(cache.limits().expect("listed").len(), 1);
    cache.limit(&name("/lab/scratch"), None).expect("ended");
    fill("scratch/rest", 3000);
    assert!(bytes_of("/lab/scratch") > limit);
}

#[test]
fn one_content_has_at_most_its_share_and_the_rest_is_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = File::new(5, 4 << 20);
    let bytes_max = 4 << 20;
    let cache = Cache::new(CacheConfig { bytes_max, ..config(directory.path()) });
    file.insert_all(&cache);
    let counters = cache.counters();
    assert!(counters.written_bytes <= 1 << 20, "{counters:?}");
    assert_eq!(counters.written_bytes + counters.refused_bytes, 4 << 20);
}

/// A disk whose steps wait while it is held.
#[derive(Clone, Default)]
struct Gate {
    state: Arc<(Mutex<bool>, Condvar)>,
}

impl Gate {
    fn set(&self, is_held: bool) {
        *self.state.0.lock().expect("no panic") = is_held;
        self.state.1.notify_all();
    }

    fn pass(&self) {
        let held = self.state.0.lock().expect("no panic");
        drop(self.state.1.wait_while(held, |held| *held).expect("no panic"));
    }

    fn disk(&self) -> Disk {
        let gate = self.clone();
        Disk::hooked(move |_, _| {
            gate.pass();
            Ok(())
        })
    }
}

/// The writer gathers bits: those of units that went into an entry which somebody removed must not
/// come into the map of the next one.
#[test]
fn bits_of_a_removed_entry_do_not_come_into_the_next_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = File::new(31, 20 * UNIT_BYTES);
    let other = Cache::new(config(directory.path()));
    let gate = Gate::default();
    let (held, is_first) = (gate.clone(), AtomicBool::new(true));
    let disk = Disk::hooked(move |step, _| {
        held.pass();
        if step == Step::Write && is_first.swap(false, Ordering::Relaxed) {
            assert_eq!(other.remove(None).expect("removed"), 1);
        }
        Ok(())
    });
    let cache = Cache::new(CacheConfig { disk, ..config(directory.path()) });
    // All of it is one batch, but no two of these are one write.
    gate.set(true);
    let content = file.content(&cache);
    for unit in [0, 10, 5] {
        let start = unit * UNIT_BYTES;
        content.insert(start as u64, &file.bytes[start..start + UNIT_BYTES]);
    }
    file.insert_nodes(&content);
    gate.set(false);
    assert!(cache.flush(PATIENCE));
    let found = Cache::new(config(directory.path())).scrub(None, &mut |_, _| {}).expect("scrubbed");
    assert_eq!((found.good_units, found.rotten_units), (2, 0));
    assert_eq!(content.present_bytes(), 2 * UNIT_BYTES as u64);
}

#[test]
fn a_disk_that_hangs_is_passed_by_and_used_again_when_it_answers() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = File::new(23, 200 * UNIT_BYTES);
    let gate = Gate::default();
    let patience = Duration::from_millis(50);
    let (disk, queue_bytes_max) = (gate.disk(), 64 * UNIT_BYTES);
    let config = CacheConfig { disk, patience, queue_bytes_max, ..config(directory.path()) };
    let cache = Cache::new(config);
    let content = file.content(&cache);
    content.insert(0, &file.bytes[..UNIT_BYTES]);
    assert!(cache.flush(PATIENCE));
    gate.set(true);
    let (sender, receiver) = mpsc::channel();
    assert!(content.read(0..1, Vec::new(), move |found| sender.send(found).expect("awaited")));
    // None of these calls waits; the disk would hold them for ever.
    while content.probe(0) != Probe::Absent {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!content.read(0..1, Vec::new(), |_| {}));
    for unit in 1..200 {
        let start = unit * UNIT_BYTES;
        content.insert(start as u64, &file.bytes[start..start + UNIT_BYTES]);
    }
    let counters = cache.counters();
    assert_eq!(counters.refused_bytes, 199 * UNIT_BYTES as u64, "{counters:?}");
    assert_eq!(counters.bypasses, 1, "said once");
    gate.set(false);
    assert_eq!(receiver.recv_timeout(PATIENCE).expect("answered late").runs.len(), 1);
    while content.probe(0) != Probe::Present {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_finds_no_room_in_the_queue_is_not_kept_and_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = File::new(29, 200 * UNIT_BYTES);
    let gate = Gate::default();
    gate.set(true);
    let (disk, queue_bytes_max) = (gate.disk(), 64 * UNIT_BYTES);
    let cache = Cache::new(CacheConfig { disk, queue_bytes_max, ..config(directory.path()) });
    let content = file.content(&cache);
    for (at, unit) in file.bytes.chunks(UNIT_BYTES).enumerate() {
        content.insert((at * UNIT_BYTES) as u64, unit);
    }
    let refused = cache.counters().refused_bytes;
    assert!(refused >= 136 * UNIT_BYTES as u64, "{refused}");
    gate.set(false);
    assert!(cache.flush(PATIENCE));
    assert_eq!(cache.counters().written_bytes + refused, file.bytes.len() as u64);
}

#[test]
fn a_disk_that_is_full_or_read_only_is_still_read() {
    for errno in [rustix::io::Errno::NOSPC, rustix::io::Errno::ROFS] {
        let directory = tempfile::tempdir().expect("a directory");
        let (there, new) = (File::new(31, 9 * UNIT_BYTES), File::new(37, 9 * UNIT_BYTES));
        there.insert_all(&Cache::new(config(directory.path())));
        let disk = Disk::hooked(move |step, _| match step {
            Step::Write => Err(io::Error::from(errno)),
            _ => Ok(()),
        });
        let cache = Cache::new(CacheConfig { disk, ..config(directory.path()) });
        new.insert_all(&cache);
        let counters = cache.counters();
        assert_eq!(counters.written_bytes, 0);
        assert!(counters.failed_writes > 0, "{counters:?}");
        assert_eq!(counters.bypasses, 1, "said once");
        new.insert_all(&cache);
        assert_eq!(cache.counters().failed_writes, counters.failed_writes, "it has a pause");
        assert_eq!(there.verified(&read_all(&there, &cache)), there.units());
    }
}

/// Whoever may write into the directory chooses by links what is written to and removed.
#[test]
fn a_directory_that_others_may_change_is_not_used() {
    let directory = tempfile::tempdir().expect("a directory");
    let (cache_directory, victim) = (directory.path().join("cache"), directory.path().join("home"));
    fs::create_dir_all(victim.join("work")).expect("made");
    fs::write(victim.join("profile"), b"mine").expect("written");
    fs::create_dir(&cache_directory).expect("made");
    symlink(victim.join("profile"), cache_directory.join("account")).expect("planted");
    symlink(victim.join("profile"), cache_directory.join("pins")).expect("planted");
    symlink(&victim, cache_directory.join("trash")).expect("planted");
    symlink(&victim, cache_directory.join("entries")).expect("planted");
    let file = File::new(47, 9 * UNIT_BYTES);
    for mode in [0o777, 0o775, 0o1777] {
        fs::set_permissions(&cache_directory, fs::Permissions::from_mode(mode)).expect("changed");
        // Small bounds, so that something has to be removed.
        let bounds = CacheConfig { bytes_max: 8 * UNIT_BYTES as u64, ..config(directory.path()) };
        let cache = Cache::new(CacheConfig { free_bytes_min: u64::MAX / 2, ..bounds });
        file.insert_all(&cache);
        assert_eq!(cache.counters().written_bytes, 0);
        let found = read(&file.content(&cache), 0..file.units(), file.nodes());
        assert!(found.is_none_or(|found| found.runs.is_empty()));
        let error = cache.pin(&"/lab".parse().expect("a name")).expect_err("not its own");
        assert!(error.to_string().contains("is not this user's alone"), "{error}");
        assert!(cache.usage().is_err() && cache.remove(None).is_err());
        let left: Vec<_> = fs::read_dir(&victim).expect("there").flatten().collect();
        assert_eq!(left.len(), 2, "{left:?}");
        assert_eq!(fs::read(victim.join("profile")).expect("there"), b"mine");
    }
}

#[test]
fn a_disk_that_cannot_be_read_is_as_one_that_has_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = File::new(41, 9 * UNIT_BYTES);
    file.insert_all(&Cache::new(config(directory.path())));
    let disk = Disk::hooked(|step, _| match step {
        Step::Read => Err(io::Error::from(rustix::io::Errno::IO)),
        _ => Ok(()),
    });
    let cache = Cache::new(CacheConfig { disk, ..config(directory.path()) });
    assert_eq!(read_all(&file, &cache).runs, []);
    assert!(read(&file.content(&cache), 0..1, Vec::new()).is_none(), "it has a pause");
    assert_eq!(cache.counters().failed_reads, 1);
}

#[test]
fn parts_of_units_are_not_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = File::new(43, 3 * UNIT_BYTES + 10);
    let cache = Cache::new(config(directory.path()));
    let content = file.content(&cache);
    content.insert(1, &file.bytes[1..UNIT_BYTES + 1]);
    content.insert(0, &file.bytes[..UNIT_BYTES - 1]);
    content.insert(0, &[]);
    assert!(cache.flush(PATIENCE));
    assert!(!directory.path().join("cache/entries").exists());
}

/// The file of a content that needs no verifier.
fn whole(content: &Content) -> Option<fs::File> {
    let (sender, receiver) = mpsc::channel();
    assert!(content.whole(move |file| sender.send(file).expect("awaited")));
    receiver.recv_timeout(PATIENCE).expect("an answer")
}

fn wait_for_whole(content: &Content) -> fs::File {
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        match whole(content) {
            Some(file) => return file,
            None => assert!(std::time::Instant::now() < deadline, "never verified"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_is_whole_is_given_when_it_was_hashed_and_not_after_a_change() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = File::new(51, 300 * UNIT_BYTES + 5);
    let cache = Cache::new(config(directory.path()));
    let content = file.open(&cache, "/lab/f");
    content.insert(0, &file.bytes[..UNIT_BYTES]);
    file.insert_nodes(&content);
    assert!(cache.flush(PATIENCE));
    assert!(whole(&content).is_none(), "a part");
    file.insert_all(&cache);
    assert!(whole(&content).is_none(), "nobody has hashed it");
    let mut read = Vec::new();
    io::Read::read_to_end(&mut wait_for_whole(&content), &mut read).expect("read");
    assert_eq!(read, file.bytes);
    let other = Cache::new(config(directory.path()));
    assert!(whole(&file.content(&other)).is_some(), "another process need not hash it");
    let path = entry_file(directory.path(), "data");
    let data = fs::OpenOptions::new().write(true).open(path).expect("the data");
    data.write_all_at(&[file.bytes[9000] ^ 1], 9000).expect("flipped");
    assert!(whole(&content).is_none(), "somebody has written to it");
    while cache.counters().rotten_units == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let found = cache.scrub(None, &mut |_, _| {}).expect("scrubbed");
    assert_eq!((found.good_units, found.rotten_units), (300, 0), "it counts as missing");
    assert!(whole(&file.content(&other)).is_none());
}

#[test]
fn what_scrub_found_sound_is_given_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = File::new(53, 20 * UNIT_BYTES);
    file.insert_all(&Cache::new(config(directory.path())));
    let cache = Cache::new(config(directory.path()));
    // What was written a moment ago could be written again in the same tick of the clock.
    std::thread::sleep(Duration::from_millis(150));
    assert_eq!(cache.scrub(None, &mut |_, _| {}).expect("scrubbed").good_units, 20);
    assert!(whole(&file.content(&cache)).is_some());
}

#[test]
fn what_others_may_write_to_is_never_given() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = File::new(57, 20 * UNIT_BYTES);
    let cache = Cache::new(config(directory.path()));
    file.insert_all(&cache);
    wait_for_whole(&file.content(&cache));
    let path = entry_file(directory.path(), "data");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).expect("changed");
    std::thread::sleep(Duration::from_millis(150));
    cache.scrub(None, &mut |_, _| {}).expect("scrubbed");
    assert!(whole(&file.content(&cache)).is_none());
    fs::remove_file(&path).expect("removed");
    symlink(directory.path().join("elsewhere"), &path).expect("planted");
    assert!(whole(&file.content(&Cache::new(config(directory.path())))).is_none());
}

/// What another process removes while it is looked for or hashed is no fault of the disk: reads go
/// on.
#[test]
fn an_entry_that_is_removed_while_it_is_hashed_ends_no_reading() {
    for removed_at in 1..=8 {
        let directory = tempfile::tempdir().expect("a directory");
        let (file, other) = (File::new(61, 300 * UNIT_BYTES), File::new(63, 9 * UNIT_BYTES));
        let first = Cache::new(config(directory.path()));
        file.insert_all(&first);
        let entry = entry_file(directory.path(), "");
        other.insert_all(&first);
        drop(first);
        let (removed, steps) = (entry.clone(), AtomicU64::new(0));
        let disk = Disk::hooked(move |step, path| {
            let is_counted = path.join("") == removed && matches!(step, Step::Open | Step::Read);
            if is_counted && steps.fetch_add(1, Ordering::Relaxed) + 1 == removed_at {
                fs::remove_dir_all(path).expect("removed");
            }
            Ok(())
        });
        let cache = Cache::new(CacheConfig { disk, ..config(directory.path()) });
        let content = file.content(&cache);
        while entry.exists() {
            let _ = whole(&content);
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(whole(&content).is_none());
        assert_eq!(other.verified(&read_all(&other, &cache)), other.units());
        let counters = cache.counters();
        assert_eq!((counters.failed_reads, counters.bypasses), (0, 0), "at {removed_at}");
    }
}
