//! The rule of jitter, and a generator for those who have no random numbers.

/// Between half and all of `longest_ns`, by `random`.
pub fn jittered(longest_ns: u64, random: u64) -> u64 {
    let shortest_ns = longest_ns / 2;
    // One more than the span, which is at most half of all numbers.
    shortest_ns + random % (longest_ns - shortest_ns + 1)
}

/// Between `shortest_ns` and half as much again, by `random`: for pauses that somebody asked for,
/// and those that shall outlast something.
pub fn jittered_above(shortest_ns: u64, random: u64) -> u64 {
    shortest_ns.saturating_add(random % (shortest_ns / 2 + 1))
}

/// A seeded generator of random numbers (SplitMix64); nothing secret comes from it.
#[derive(Clone, Debug)]
pub struct Jitter(u64);

impl Jitter {
    /// Equal seeds give equal pauses.
    pub fn new(seed: u64) -> Self {
        Jitter(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A pause of [`jittered`].
    pub fn pause_ns(&mut self, longest_ns: u64) -> u64 {
        jittered(longest_ns, self.next_u64())
    }

    /// A pause of [`jittered_above`].
    pub fn pause_above_ns(&mut self, shortest_ns: u64) -> u64 {
        jittered_above(shortest_ns, self.next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_stay_within_their_bounds_and_reach_them() {
        let mut jitter = Jitter::new(1);
        let pauses: Vec<u64> = (0..10_000).map(|_| jitter.pause_ns(100)).collect();
        assert_eq!((pauses.iter().min(), pauses.iter().max()), (Some(&50), Some(&100)));
        let above: Vec<u64> = (0..10_000).map(|_| jitter.pause_above_ns(100)).collect();
        assert_eq!((above.iter().min(), above.iter().max()), (Some(&100), Some(&150)));
    }

    #[test]
    fn two_seeds_give_different_pauses_and_one_seed_the_same() {
        let pauses = |seed| {
            let mut jitter = Jitter::new(seed);
            (0..8).map(|_| jitter.pause_ns(1 << 30)).collect::<Vec<_>>()
        };
        assert_eq!(pauses(7), pauses(7));
        assert!(pauses(7).iter().zip(&pauses(8)).all(|(one, other)| one != other));
    }

    #[test]
    fn no_pause_overflows() {
        for ns in [0, 1, 2, u64::MAX] {
            for random in [0, 1, u64::MAX] {
                assert!((ns / 2..=ns).contains(&jittered(ns, random)));
                assert!(jittered_above(ns, random) >= ns);
            }
        }
    }
}
