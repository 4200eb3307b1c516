//! Commands count once: the times at which a key signs must increase.
//!
//! The keys remembered are bounded; the one that was used longest ago is forgotten. Its last time is
//! kept as a floor for keys that are not remembered, so forgetting opens no door. After a restart
//! nothing is remembered, and a command of the last two minutes could be sent again.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::cert::format_time;
use crate::key::KeyId;

/// How far the time of a command may be from now.
pub const GRACE_MS: u64 = 120_000;

/// Most keys whose last time is remembered.
pub const KEYS_MAX: usize = 1024;

/// Why a command's time does not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum ReplayError {
    #[error(
        "the command was signed at {}, more than two minutes from {} on this machine: do both \
         clocks agree?",
        format_time(time_ms / 1000), format_time(now_ms / 1000)
    )]
    Clock { time_ms: u64, now_ms: u64 },
    #[error("a command of this key with the same or a later time came before")]
    Replayed,
}

/// The last time of each key.
#[derive(Debug, Default)]
pub(super) struct Replay {
    keys: BTreeMap<KeyId, Last>,
    floor_ms: u64,
}

#[derive(Debug, Clone, Copy)]
struct Last {
    time_ms: u64,
    used_ms: u64,
}

impl Replay {
    /// Admits a command whose signature was found good, or says why not.
    pub(super) fn admit(
        &mut self,
        key: KeyId,
        time_ms: u64,
        now_ms: u64,
    ) -> Result<(), ReplayError> {
        // A time far ahead would lock the key out until then.
        if time_ms.abs_diff(now_ms) > GRACE_MS {
            return Err(ReplayError::Clock { time_ms, now_ms });
        }
        let last_ms = self.keys.get(&key).map_or(self.floor_ms, |last| last.time_ms);
        if time_ms <= last_ms {
            return Err(ReplayError::Replayed);
        }
        if self.keys.len() >= KEYS_MAX && !self.keys.contains_key(&key) {
            self.forget_one();
        }
        self.keys.insert(key, Last { time_ms, used_ms: now_ms });
        Ok(())
    }

    fn forget_one(&mut self) {
        let oldest = self.keys.iter().min_by_key(|(_, last)| last.used_ms);
        let Some((key, last)) = oldest.map(|(key, last)| (*key, *last)) else { return };
        self.floor_ms = self.floor_ms.max(last.time_ms);
        self.keys.remove(&key);
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
    fn times_must_increase_and_be_close_to_now() {
        let mut replay = Replay::default();
        let early = ReplayError::Clock { time_ms: NOW - GRACE_MS - 1, now_ms: NOW };
        assert_eq!(replay.admit(key(1), NOW - GRACE_MS - 1, NOW), Err(early));
        assert_eq!(replay.admit(key(1), NOW - GRACE_MS, NOW), Ok(()));
        assert_eq!(replay.admit(key(1), NOW - GRACE_MS, NOW), Err(ReplayError::Replayed));
        assert_eq!(replay.admit(key(1), NOW, NOW), Ok(()));
        assert_eq!(replay.admit(key(1), NOW - 1, NOW), Err(ReplayError::Replayed));
        assert_eq!(replay.admit(key(2), NOW - 1, NOW), Ok(()), "each key has its own times");
        assert!(replay.admit(key(1), NOW + GRACE_MS + 1, NOW).is_err());
        assert_eq!(replay.admit(key(1), NOW + GRACE_MS, NOW), Ok(()));
    }

    #[test]
    fn a_forgotten_key_cannot_be_replayed_and_memory_is_bounded() {
        let mut replay = Replay::default();
        for number in 0..KEYS_MAX as u16 + 1 {
            let time_ms = NOW + u64::from(number);
            assert_eq!(replay.admit(key(number), time_ms, time_ms), Ok(()));
        }
        assert_eq!(replay.keys.len(), KEYS_MAX);
        assert_eq!(replay.admit(key(0), NOW, NOW), Err(ReplayError::Replayed));
        assert_eq!(replay.admit(key(0), NOW + 5000, NOW + 5000), Ok(()));
    }
}
