//! Numbers for Nonces and sequences.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use byname_retry::Jitter;

/// Where the numbers come from.
pub(crate) enum Random {
    /// Nobody can guess them in advance, so that Nonces of two clients do not collide.
    Secret { state: RandomState, count: u64 },
    /// The same again for the same seed.
    Seeded(Jitter),
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
            Random::Seeded(numbers) => numbers.next_u64(),
        }
    }

    pub(crate) fn next_nonce(&mut self) -> [u8; 4] {
        let [a, b, c, d, ..] = self.next_u64().to_le_bytes();
        [a, b, c, d]
    }
}
