//! Policies over traces: what a scan may push out, and hit ratios beside each other.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::*;

mod arc;

/// A cache that is read from.
trait Cached {
    /// True if the key was there; it is afterwards.
    fn read(&mut self, key: u64) -> bool;
}

/// A cache of entries of one size over a policy, with rounds of removing as the real one has.
struct Model {
    entries_max: usize,
    low: usize,
    entries: BTreeMap<u64, Standing>,
    ghosts: VecDeque<u64>,
    now_ns: u64,
    make: fn() -> Box<dyn Policy>,
}

impl Model {
    fn new(entries_max: usize, make: fn() -> Box<dyn Policy>) -> Self {
        let (entries, ghosts) = Default::default();
        let low = entries_max * 9 / 10;
        Model { entries_max, low, entries, ghosts, now_ns: 0, make }
    }

    fn remove_some(&mut self) {
        let mut policy = (self.make)();
        let keys: Vec<u64> = self.entries.keys().copied().collect();
        for (index, key) in keys.iter().enumerate() {
            policy.restore(index, 1, self.entries[key]);
        }
        while self.entries.len() > self.low {
            let victim = policy.victim(self.now_ns).expect("there are entries");
            self.entries.remove(&keys[victim]).expect("named once");
            self.ghosts.push_back(keys[victim]);
        }
        for (index, standing) in policy.changed() {
            *self.entries.get_mut(&keys[index]).expect("it stays") = standing;
        }
        while self.ghosts.len() > self.entries_max {
            self.ghosts.pop_front();
        }
    }
}

impl Cached for Model {
    fn read(&mut self, key: u64) -> bool {
        self.now_ns += 1;
        if let Some(standing) = self.entries.get_mut(&key) {
            standing.touch(self.now_ns);
            return true;
        }
        let is_ghost = self.ghosts.contains(&key);
        self.entries.insert(key, Standing::new(self.now_ns, is_ghost));
        if self.entries.len() > self.entries_max {
            self.remove_some();
        }
        false
    }
}

fn lru() -> Box<dyn Policy> {
    Box::new(Lru::default())
}

fn s3_fifo() -> Box<dyn Policy> {
    Box::new(S3Fifo::default())
}

/// Keys of a Zipf distribution with this exponent, from a fixed seed.
fn zipf(exponent: f64, keys: usize, count: usize) -> impl Iterator<Item = u64> {
    let mut sum = 0.0;
    let cumulated: Vec<f64> = (1..=keys)
        .map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        })
        .collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..count).map(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let drawn = (state >> 11) as f64 / (1u64 << 53) as f64 * sum;
        cumulated.partition_point(|at| *at < drawn) as u64
    })
}

/// Reads of 10 000 keys, and after every 5000 of them, if there are scans, 2000 keys that are read
/// only once.
fn trace(exponent: f64, has_scans: bool) -> Vec<u64> {
    let mut trace = Vec::new();
    for (at, key) in zipf(exponent, 10_000, 100_000).enumerate() {
        trace.push(key);
        if has_scans && at % 5000 == 4999 {
            trace.extend((0..2000).map(|key| 1_000_000 + at as u64 * 10_000 + key));
        }
    }
    trace
}

fn ratio(cache: &mut dyn Cached, trace: &[u64]) -> f64 {
    trace.iter().filter(|key| cache.read(**key)).count() as f64 / trace.len() as f64
}

#[test]
fn a_scan_pushes_out_nothing_that_was_read_again() {
    let kept_after_scan = |make| {
        let mut model = Model::new(100, make);
        for _ in 0..3 {
            (0..50).for_each(|key| {
                model.read(key);
            });
        }
        (1000..3000).for_each(|key| {
            model.read(key);
        });
        (0..50).filter(|key| model.entries.contains_key(key)).count()
    };
    assert_eq!(kept_after_scan(s3_fifo), 50);
    assert_eq!(kept_after_scan(lru), 0, "the scan would notice a policy that keeps everything");
}

/// Prints the table of docs/cache.md.
#[test]
fn it_hits_as_often_as_arc_and_more_often_than_lru_where_there_are_scans() {
    println!("| trace | room | S3-FIFO | LRU | ARC |\n|---|---|---|---|---|");
    for (exponent, has_scans) in [(1.0, false), (1.0, true), (0.8, false), (0.8, true)] {
        let trace = trace(exponent, has_scans);
        for entries_max in [100, 500, 2000] {
            let fifo = ratio(&mut Model::new(entries_max, s3_fifo), &trace);
            let recency = ratio(&mut Model::new(entries_max, lru), &trace);
            let arc = ratio(&mut arc::Arc::new(entries_max), &trace);
            let scans = if has_scans { ", scans" } else { "" };
            let room = entries_max / 100;
            let (a, b, c) = (fifo * 100.0, recency * 100.0, arc * 100.0);
            println!("| Zipf {exponent:.1}{scans} | {room} % | {a:.1} % | {b:.1} % | {c:.1} % |");
            assert!(fifo >= recency, "{fifo} {recency}");
            assert!(fifo >= 0.97 * arc, "{fifo} {arc}");
            assert!(!has_scans || fifo > 1.05 * recency, "{fifo} {recency}");
        }
    }
}

#[test]
fn every_entry_is_named_exactly_once() {
    for make in [lru, s3_fifo] {
        let mut policy = make();
        let mut named: HashMap<EntryIndex, u32> = HashMap::new();
        for entry in 0..100 {
            let uses = (entry % 5).min(3) as u8;
            let standing = Standing { queued_ns: 5, used_ns: 6, uses, is_main: entry % 3 == 0 };
            policy.restore(entry, 1 + entry as u64 * 7, standing);
        }
        while let Some(entry) = policy.victim(9) {
            *named.entry(entry).or_default() += 1;
        }
        assert_eq!(named.len(), 100);
        assert!(named.values().all(|count| *count == 1));
        assert_eq!(policy.changed(), [], "nothing stays");
    }
}
