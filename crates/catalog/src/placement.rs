//! Choice of disks: those with the most room more often, those that are busy less often, on
//! different servers, then under different labels, as far as there are any.
//!
//! The choice depends on its arguments alone. The attempt's number takes the place of chance, so a
//! command that is executed again chooses alike.

use crate::id::DiskId;
use crate::record::{DISK_LOAD_MAX, Disk};

/// A disk that may be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) id: DiskId,
    pub(crate) disk: Disk,
    pub(crate) free_bytes: u64,
    pub(crate) reserved_bytes: u64,
}

/// Candidates that have an older version already, on different servers.
pub(crate) fn stay(candidates: &[Candidate], present: &[DiskId], count: usize) -> Vec<Candidate> {
    let mut chosen: Vec<Candidate> = Vec::new();
    for candidate in candidates.iter().filter(|candidate| present.contains(&candidate.id)) {
        let (is_same_server, _) = shared(candidate, &chosen);
        if chosen.len() < count && !is_same_server {
            chosen.push(candidate.clone());
        }
    }
    chosen
}

/// Adds disks to those that are chosen until there are `count`, or no more candidates.
pub(crate) fn choose(
    mut candidates: Vec<Candidate>,
    chosen: Vec<Candidate>,
    count: usize,
    seed: u64,
) -> Vec<Candidate> {
    let mut chosen = chosen;
    candidates.retain(|candidate| chosen.iter().all(|taken| taken.id != candidate.id));
    while chosen.len() < count && !candidates.is_empty() {
        let least = candidates.iter().map(|one| shared(one, &chosen)).min().unwrap_or_default();
        let best: Vec<usize> = (0..candidates.len())
            .filter(|index| shared(&candidates[*index], &chosen) == least)
            .collect();
        let draw = mix(seed ^ mix(chosen.len() as u64));
        let index = weighted(&candidates, &best, draw);
        chosen.push(candidates.swap_remove(index));
    }
    chosen
}

/// How much a candidate has in common with what is chosen: same server weighs more than same
/// label.
fn shared(candidate: &Candidate, chosen: &[Candidate]) -> (bool, bool) {
    let server = chosen.iter().any(|taken| taken.disk.server == candidate.disk.server);
    let label = chosen.iter().any(|taken| taken.disk.label == candidate.disk.label);
    (server, label)
}

/// One of the indices, with a chance in proportion to its free room, halved by each step of load.
fn weighted(candidates: &[Candidate], indices: &[usize], draw: u64) -> usize {
    // One more, so that disks without any room have some weight for content without octets.
    let weight = |index: usize| {
        let Candidate { disk, free_bytes, .. } = &candidates[index];
        // Scaled, so that no step leaves nothing.
        (u128::from(*free_bytes) + 1) << DISK_LOAD_MAX.saturating_sub(disk.load)
    };
    let total: u128 = indices.iter().map(|index| weight(*index)).sum();
    // 48 bits of the draw: the product of many large disks still fits.
    let mut left = (u128::from(draw >> 16) * total) >> 48;
    for index in indices {
        if left < weight(*index) {
            return *index;
        }
        left -= weight(*index);
    }
    indices[indices.len() - 1]
}

/// SplitMix64's finaliser.
fn mix(seed: u64) -> u64 {
    let mut value = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::DiskState;

    fn candidate(id: u64, server: &str, label: &str, free_bytes: u64) -> Candidate {
        let disk = Disk {
            space: "s".into(),
            server: server.into(),
            label: label.into(),
            generation: 1,
            state: DiskState::ReadWrite,
            is_up: true,
            capacity_bytes: free_bytes,
            load: 0,
            drain_bytes_per_s: u64::MAX,
        };
        Candidate { id: DiskId(id), disk, free_bytes, reserved_bytes: 0 }
    }

    fn ids(chosen: &[Candidate]) -> Vec<u64> {
        chosen.iter().map(|candidate| candidate.id.0).collect()
    }

    #[test]
    fn replicas_go_to_different_servers_then_labels() {
        let all = vec![
            candidate(1, "a", "rack1", 1000),
            candidate(2, "a", "rack1", 1000),
            candidate(3, "b", "rack1", 1000),
            candidate(4, "c", "rack2", 1),
        ];
        for seed in 0..200 {
            let chosen = choose(all.clone(), vec![], 3, seed);
            let mut servers: Vec<_> = chosen.iter().map(|c| c.disk.server.as_str()).collect();
            servers.sort_unstable();
            assert_eq!(servers, ["a", "b", "c"], "seed {seed}");
            let two = choose(all.clone(), vec![all[0].clone()], 2, seed);
            assert_eq!(ids(&two), [1, 4], "another rack, however little room it has");
            assert_eq!(choose(all.clone(), vec![], 9, seed).len(), 4, "no more than there are");
        }
    }

    #[test]
    fn a_file_stays_where_it_is_but_not_twice_on_one_server() {
        let all = vec![
            candidate(1, "a", "rack1", 1),
            candidate(2, "a", "rack1", 1000),
            candidate(3, "b", "rack1", 1000),
            candidate(4, "c", "rack2", 1),
        ];
        let of = |present: &[u64], count| {
            let present: Vec<DiskId> = present.iter().map(|id| DiskId(*id)).collect();
            ids(&stay(&all, &present, count))
        };
        assert_eq!(of(&[4, 1], 2), [1, 4]);
        assert_eq!(of(&[1, 2], 2), [1], "the other is on the same server");
        assert_eq!(of(&[3, 4], 1), [3], "fewer are wanted now");
        assert_eq!(of(&[9], 2), [0; 0], "takes nothing new, or is full");
    }

    #[test]
    fn room_weighs() {
        let all = vec![candidate(1, "a", "x", 900), candidate(2, "b", "y", 100)];
        let count = (0..10_000).filter(|s| ids(&choose(all.clone(), vec![], 1, *s)) == [1]).count();
        assert!((8_800..9_200).contains(&count), "{count} of 10000");
        let empty = vec![candidate(1, "a", "x", 0)];
        assert_eq!(ids(&choose(empty, vec![], 1, 7)), [1]);
    }

    #[test]
    fn load_weighs_and_never_leaves_a_disk_out() {
        let with = |load| {
            let mut all = vec![candidate(1, "a", "x", 1000), candidate(2, "b", "y", 1000)];
            all[1].disk.load = load;
            (0..10_000).filter(|s| ids(&choose(all.clone(), vec![], 1, *s)) == [2]).count()
        };
        // One of two, of three, of five, of nine, of seventeen.
        for (load, expected) in [5000, 3333, 2000, 1111, 588].into_iter().enumerate() {
            let count = with(load as u8);
            assert!(count.abs_diff(expected) < 150, "step {load}: {count} of 10000");
        }
        assert_eq!(with(u8::MAX), with(DISK_LOAD_MAX), "no step beyond the last");
        let mut only = vec![candidate(1, "a", "x", 0)];
        only[0].disk.load = DISK_LOAD_MAX;
        assert_eq!(ids(&choose(only, vec![], 1, 7)), [1]);
        // It decides among disks that are as good otherwise: servers count more.
        let mut all = vec![candidate(1, "a", "x", 1000), candidate(2, "b", "y", 1000)];
        all[1].disk.load = DISK_LOAD_MAX;
        for seed in 0..100 {
            assert_eq!(choose(all.clone(), vec![], 2, seed).len(), 2);
        }
    }
}
