//! Commands count once: no key signs two at the same time, and old times do not come back.
//!
//! The last few times of each key are remembered. One that is new counts, also if a later one came
//! before: one publisher's commands over two connections may change their order, all the more where
//! one has to wait for a certificate. One older than all that are remembered does not.
//!
//! What is remembered is bounded, by *signers*: keys that the operator allowed, and those that such
//! a key has certified itself. Whoever has a key can certify as many more as he likes, so the keys
//! below a signer share its room, and who fills that hurts himself alone. The key that was used
//! longest ago is forgotten, and never a signer's own. Its last time is kept as a floor for other
//! keys of that signer that are not remembered, and a forgotten signer's for signers,
//! so forgetting opens no door. After a restart nothing is remembered, and a command of the last
//! two minutes could be sent again.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::cert::format_time;
use crate::key::KeyId;

/// Largest distance between the time of a command and now.
pub const GRACE_MS: u64 = 120_000;

/// Most signers that are remembered.
pub const SIGNERS_MAX: usize = 1024;

/// Most keys of one signer whose last times are remembered: its own, and more than a user may lend.
pub const KEYS_MAX: usize = 80;

/// Times remembered of each key.
const TIMES_MAX: usize = 32;

/// Why a command's time does not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ReplayError {
    /// The time is too far from now.
    #[error(
        "the command was signed at {}, more than two minutes from {} on this machine: do both \
         clocks agree?",
        format_time(time_ms / 1000), format_time(now_ms / 1000)
    )]
    Clock {
        /// SignatureTime.
        time_ms: u64,
        /// The clock here.
        now_ms: u64,
    },
    /// The time counted before, or is older than all that are remembered.
    #[error("a command of this key with this time, or many with later ones, came before")]
    Replayed,
}

/// Memory against replays: the last times of each key.
#[derive(Debug, Default)]
pub struct Replay {
    signers: BTreeMap<KeyId, Keys>,
    /// For signers that are not remembered.
    floor_ms: u64,
}

/// The keys of one signer.
#[derive(Debug)]
struct Keys {
    keys: BTreeMap<KeyId, Last>,
    /// For keys that are not remembered, but for the signer's own.
    floor_ms: u64,
    /// For that, which is never forgotten by itself.
    own_floor_ms: u64,
    used_ms: u64,
}

#[derive(Debug, Clone)]
struct Last {
    /// Times that count no more, at or below.
    floor_ms: u64,
    /// Times seen above the floor, ascending.
    times_ms: Vec<u64>,
    used_ms: u64,
}

impl Last {
    fn latest_ms(&self) -> u64 {
        self.times_ms.last().copied().unwrap_or(self.floor_ms)
    }
}

impl Replay {
    /// Admits a command whose signature was found good, or says why not. `signer` is the key that
    /// the operator allowed or the one certified by that, `key` itself or one that it leads to.
    ///
    /// # Errors
    /// [`ReplayError`] for a time too far from now, and for one that counted before.
    pub fn admit(
        &mut self,
        (signer, key): (KeyId, KeyId),
        time_ms: u64,
        now_ms: u64,
    ) -> Result<(), ReplayError> {
        // A time far in the future would lock the key out until then.
        if time_ms.abs_diff(now_ms) > GRACE_MS {
            return Err(ReplayError::Clock { time_ms, now_ms });
        }
        let known = self.signers.get(&signer);
        let floor_ms = known.map_or(self.floor_ms, |keys| keys.floor_of((signer, key)));
        if time_ms <= floor_ms {
            return Err(ReplayError::Replayed);
        }
        if known.is_none() && self.signers.len() >= SIGNERS_MAX {
            self.forget_one();
        }
        let (keys, floor_ms) = (BTreeMap::new(), self.floor_ms);
        let new = || Keys { keys, floor_ms, own_floor_ms: floor_ms, used_ms: now_ms };
        self.signers.entry(signer).or_insert_with(new).admit((signer, key), time_ms, now_ms)
    }

    fn forget_one(&mut self) {
        let oldest = self.signers.iter().min_by_key(|(_, keys)| keys.used_ms).map(|(key, _)| *key);
        let Some(keys) = oldest.and_then(|key| self.signers.remove(&key)) else { return };
        let latest_ms = keys.keys.values().map(Last::latest_ms).max().unwrap_or(0);
        self.floor_ms = self.floor_ms.max(latest_ms).max(keys.floor_ms);
    }
}

impl Keys {
    fn floor_of(&self, (signer, key): (KeyId, KeyId)) -> u64 {
        let unknown_ms = if key == signer { self.own_floor_ms } else { self.floor_ms };
        self.keys.get(&key).map_or(unknown_ms, |last| last.floor_ms)
    }

    fn admit(
        &mut self,
        (signer, key): (KeyId, KeyId),
        time_ms: u64,
        now_ms: u64,
    ) -> Result<(), ReplayError> {
        let floor_ms = self.floor_of((signer, key));
        if self.keys.len() >= KEYS_MAX && !self.keys.contains_key(&key) {
            self.forget_one(signer);
        }
        let new = || Last { floor_ms, times_ms: Vec::new(), used_ms: now_ms };
        let last = self.keys.entry(key).or_insert_with(new);
        let Err(place) = last.times_ms.binary_search(&time_ms) else {
            return Err(ReplayError::Replayed);
        };
        last.times_ms.insert(place, time_ms);
        if last.times_ms.len() > TIMES_MAX {
            last.floor_ms = last.times_ms.remove(0);
        }
        last.used_ms = now_ms;
        self.used_ms = now_ms;
        Ok(())
    }

    fn forget_one(&mut self, signer: KeyId) {
        let others = self.keys.iter().filter(|(key, _)| **key != signer);
        let oldest = others.min_by_key(|(_, last)| last.used_ms).map(|(key, _)| *key);
        let Some(last) = oldest.and_then(|key| self.keys.remove(&key)) else { return };
        self.floor_ms = self.floor_ms.max(last.latest_ms());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u16) -> KeyId {
        let mut digest = [0; 32];
        digest[..2].copy_from_slice(&number.to_be_bytes());
        KeyId(digest)
    }

    const NOW: u64 = 1_800_000_000_000;

    #[test]
    fn times_count_once_and_must_be_close_to_now() {
        let mut replay = Replay::default();
        let early = ReplayError::Clock { time_ms: NOW - GRACE_MS - 1, now_ms: NOW };
        assert_eq!(replay.admit((key(1), key(1)), NOW - GRACE_MS - 1, NOW), Err(early));
        assert_eq!(replay.admit((key(1), key(1)), NOW - GRACE_MS, NOW), Ok(()));
        assert_eq!(replay.admit((key(1), key(1)), NOW - GRACE_MS, NOW), Err(ReplayError::Replayed));
        assert_eq!(replay.admit((key(1), key(1)), NOW, NOW), Ok(()));
        assert_eq!(
            replay.admit((key(1), key(1)), NOW - 1, NOW),
            Ok(()),
            "another order is no replay"
        );
        assert_eq!(replay.admit((key(1), key(1)), NOW - 1, NOW), Err(ReplayError::Replayed));
        assert_eq!(
            replay.admit((key(2), key(2)), NOW - 1, NOW),
            Ok(()),
            "each key has its own times"
        );
        assert!(replay.admit((key(1), key(1)), NOW + GRACE_MS + 1, NOW).is_err());
        assert_eq!(replay.admit((key(1), key(1)), NOW + GRACE_MS, NOW), Ok(()));
    }

    #[test]
    fn a_time_older_than_all_remembered_does_not_count() {
        let mut replay = Replay::default();
        for later in 0..=TIMES_MAX as u64 {
            assert_eq!(replay.admit((key(1), key(1)), NOW + 2 * later, NOW), Ok(()));
        }
        for old in [NOW - 1, NOW] {
            assert_eq!(replay.admit((key(1), key(1)), old, NOW), Err(ReplayError::Replayed));
        }
        assert_eq!(
            replay.admit((key(1), key(1)), NOW + 1, NOW),
            Ok(()),
            "not seen, and not too old"
        );
    }

    #[test]
    fn a_forgotten_key_cannot_be_replayed_and_memory_is_bounded() {
        let mut replay = Replay::default();
        let signer = key(60_000);
        for number in 0..KEYS_MAX as u16 + 1 {
            let time_ms = NOW + u64::from(number);
            assert_eq!(replay.admit((signer, key(number)), time_ms, time_ms), Ok(()));
        }
        assert_eq!(replay.signers[&signer].keys.len(), KEYS_MAX);
        assert_eq!(replay.admit((signer, key(0)), NOW, NOW), Err(ReplayError::Replayed));
        assert_eq!(replay.admit((signer, key(0)), NOW + 5000, NOW + 5000), Ok(()));
        let mut replay = Replay::default();
        for number in 0..SIGNERS_MAX as u16 + 1 {
            let time_ms = NOW + u64::from(number);
            assert_eq!(replay.admit((key(number), key(number)), time_ms, time_ms), Ok(()));
        }
        assert_eq!(replay.signers.len(), SIGNERS_MAX);
        assert_eq!(replay.admit((key(0), key(0)), NOW, NOW), Err(ReplayError::Replayed));
        assert_eq!(replay.admit((key(0), key(0)), NOW + 5000, NOW + 5000), Ok(()));
    }

    /// One who has a key certifies as many more as he likes, and dates their commands as late as he
    /// may.
    #[test]
    fn who_has_many_keys_locks_out_nobody_else_and_not_the_key_above_his() {
        let mut replay = Replay::default();
        let (thief, anna) = (key(60_000), key(60_001));
        for number in 0..5000 {
            let time_ms = NOW + GRACE_MS - 5000 + u64::from(number);
            assert_eq!(replay.admit((thief, key(number)), time_ms, NOW), Ok(()));
        }
        assert_eq!(replay.admit((anna, anna), NOW, NOW), Ok(()));
        assert_eq!(replay.admit((anna, key(7)), NOW, NOW), Ok(()), "a key that she has lent");
        assert_eq!(replay.admit((thief, key(6000)), NOW, NOW), Err(ReplayError::Replayed));
        for _ in 0..2 {
            assert_eq!(replay.admit((thief, thief), NOW + 2, NOW + 2), Ok(()));
            assert_eq!(replay.admit((thief, thief), NOW + 2, NOW + 2), Err(ReplayError::Replayed));
            for number in 0..5000 {
                let _ = replay.admit((thief, key(number)), NOW + GRACE_MS, NOW);
            }
            assert_eq!(replay.admit((thief, thief), NOW + 2, NOW + 2), Err(ReplayError::Replayed));
            replay.signers.clear();
        }
    }
}
