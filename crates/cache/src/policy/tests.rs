//! Policies over traces: what a scan may push out, and hit ratios beside each other.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::*;

/// A cache of entries of one size over a policy, with rounds of removing as the real one has.
struct Model {
    entries_max: usize,
    low: usize,
    entries: BTreeMap<u64, Standing>,
    ghosts: VecDeque<u64>,
    now_ns: u64,
    make: fn() -> Box<dyn Policy>,
    hits: u64,
    asked: u64,
}

impl Model {
    fn new(entries_max: usize, make: fn() -> Box<dyn Policy>) -> Self {
        let (entries, ghosts) = Default::default();
        let low = entries_max * 9 / 10;
        Model { entries_max, low, entries, ghosts, now_ns: 0, make, hits: 0, asked: 0 }
    }

    fn read(&mut self, key: u64) {
        self.now_ns += 1;
        self.asked += 1;
        if let Some(standing) = self.entries.get_mut(&key) {
            standing.touch(self.now_ns);
            self.hits += 1;
            return;
        }
        let is_ghost = self.ghosts.contains(&key);
        self.entries.insert(key, Standing::new(self.now_ns, is_ghost));
        if self.entries.len() > self.entries_max {
            self.remove_some();
        }
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

    fn ratio(&self) -> f64 {
        self.hits as f64 / self.asked as f64
    }
}

fn lru() -> Box<dyn Policy> {
    Box::new(Lru::default())
}

fn s3_fifo() -> Box<dyn Policy> {
    Box::new(S3Fifo::default())
}

/// Keys of a Zipf distribution with exponent 1, from a fixed seed.
fn zipf(keys: usize, count: usize) -> impl Iterator<Item = u64> {
    let mut sum = 0.0;
    let cumulated: Vec<f64> = (1..=keys)
        .map(|rank| {
            sum += 1.0 / rank as f64;
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

#[test]
fn a_scan_pushes_out_nothing_that_was_read_again() {
    let kept_after_scan = |make| {
        let mut model = Model::new(100, make);
        for _ in 0..3 {
            (0..50).for_each(|key| model.read(key));
        }
        (1000..3000).for_each(|key| model.read(key));
        (0..50).filter(|key| model.entries.contains_key(key)).count()
    };
    assert_eq!(kept_after_scan(s3_fifo), 50);
    assert_eq!(kept_after_scan(lru), 0, "the scan would notice a policy that keeps everything");
}

#[test]
fn on_a_zipf_trace_it_hits_at_least_as_often_as_lru_and_more_often_with_scans() {
    let ratio = |make: fn() -> Box<dyn Policy>, has_scans: bool| {
        let mut model = Model::new(500, make);
        for (at, key) in zipf(10_000, 100_000).enumerate() {
            model.read(key);
            if has_scans && at % 5000 == 4999 {
                (0..2000).for_each(|key| model.read(1_000_000 + at as u64 * 10_000 + key));
            }
        }
        model.ratio()
    };
    let (fifo, recency) = (ratio(s3_fifo, false), ratio(lru, false));
    println!("Zipf: S3-FIFO {fifo:.4}, LRU {recency:.4}");
    assert!(fifo >= recency, "{fifo} {recency}");
    let (fifo, recency) = (ratio(s3_fifo, true), ratio(lru, true));
    println!("Zipf with scans: S3-FIFO {fifo:.4}, LRU {recency:.4}");
    assert!(fifo > recency * 1.05, "{fifo} {recency}");
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
