//! The dead nonce list: nonces of Interests whose PIT entry is gone, so that a copy still circling
//! in a loop is recognised.
//!
//! Two generations of 64-bit hashes of (name, nonce). The younger one is filled; when it is full or
//! [`LIFETIME_NS`] old it becomes the older one. A nonce is thus remembered for at least one
//! lifetime (less only when the list overflows) and at most two, without a timer or a queue. A
//! false match has probability 2^-64 times the number of entries.

use std::collections::HashSet;

/// How long a nonce is remembered at least.
pub(crate) const LIFETIME_NS: u64 = 6_000_000_000;

#[derive(Debug)]
pub(crate) struct DeadNonceList {
    young: HashSet<u64>,
    old: HashSet<u64>,
    rotated_ns: u64,
    generation_max: usize,
}

impl DeadNonceList {
    /// A list of at most `entries_max` nonces.
    pub(crate) fn new(entries_max: usize) -> Self {
        Self {
            young: HashSet::new(),
            old: HashSet::new(),
            rotated_ns: 0,
            generation_max: (entries_max / 2).max(1),
        }
    }

    /// Remembers a nonce.
    pub(crate) fn insert(&mut self, name_hash: u64, nonce: [u8; 4], now_ns: u64) {
        self.rotate(now_ns);
        if self.young.len() >= self.generation_max {
            self.shift(now_ns);
        }
        self.young.insert(key(name_hash, nonce));
    }

    /// Whether a nonce is remembered.
    pub(crate) fn contains(&mut self, name_hash: u64, nonce: [u8; 4], now_ns: u64) -> bool {
        self.rotate(now_ns);
        let key = key(name_hash, nonce);
        self.young.contains(&key) || self.old.contains(&key)
    }

    fn rotate(&mut self, now_ns: u64) {
        let age_ns = now_ns.saturating_sub(self.rotated_ns);
        if age_ns < LIFETIME_NS {
            return;
        }
        if age_ns >= 2 * LIFETIME_NS {
            self.young.clear();
        }
        self.shift(now_ns);
    }

    fn shift(&mut self, now_ns: u64) {
        std::mem::swap(&mut self.young, &mut self.old);
        self.young.clear();
        self.rotated_ns = now_ns;
    }
}

/// The name's hash is keyed and well mixed, so an odd multiplier spreads the nonce over it.
fn key(name_hash: u64, nonce: [u8; 4]) -> u64 {
    name_hash ^ u64::from(u32::from_be_bytes(nonce)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_remembered_for_a_lifetime_and_then_forgotten() {
        let mut list = DeadNonceList::new(1000);
        list.insert(1, [1; 4], 5 * LIFETIME_NS);
        assert!(list.contains(1, [1; 4], 6 * LIFETIME_NS - 1));
        assert!(!list.contains(2, [1; 4], 6 * LIFETIME_NS - 1));
        assert!(!list.contains(1, [2; 4], 6 * LIFETIME_NS - 1));
        assert!(!list.contains(1, [1; 4], 8 * LIFETIME_NS));
    }

    #[test]
    fn an_overflowing_list_keeps_the_newest_half() {
        let mut list = DeadNonceList::new(100);
        for i in 0..1000u32 {
            list.insert(7, i.to_be_bytes(), 0);
        }
        assert!(list.young.len() + list.old.len() <= 100);
        for i in 950..1000u32 {
            assert!(list.contains(7, i.to_be_bytes(), 0));
        }
        assert!(!list.contains(7, 1u32.to_be_bytes(), 0));
    }
}
