//! Numbers for Nonces and sequences.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// Where the numbers come from.
pub(crate) enum Random {
    /// Nobody can guess them in advance, so that Nonces of two clients do not collide.
    Secret { state: RandomState, count: u64 },
    /// The same again for the same seed.
    Seeded(u64),
}

impl Random {
    pub(crate) fn secret() -> Self {
        Random::Secret { state: RandomState::new(), count: 0 }
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        match self {
            Random::Secret { state, count } => {
                *count += 1;
                state.hash_one(*count)
            }
            // The finalizer of SplitMix64: neighbouring states give numbers without likeness.
            Random::Seeded(state) => {
                *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                mixed ^ (mixed >> 31)
            }
        }
    }

    pub(crate) fn next_nonce(&mut self) -> [u8; 4] {
        let [a, b, c, d, ..] = self.next_u64().to_le_bytes();
        [a, b, c, d]
    }
}
