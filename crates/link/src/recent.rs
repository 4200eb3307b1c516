//! Frames that came already: a retransmission whose first copy was not lost after all.
//!
//! A ring with one place per sequence number modulo its size, so its memory is fixed. A place
//! forgets after a while: a peer that started anew may use the same numbers.

/// Places. No sender of ours leaves a frame unacknowledged that is so many numbers behind.
pub(crate) const RECENT_MAX: usize = 4096;

/// Time for which a number is remembered, and a packet awaits its fragments: longer than a frame
/// is sent again, four times the longest time-out.
pub(crate) const MEMORY_NS: u64 = 8_000_000_000;

#[derive(Debug, Clone, Copy)]
struct Place {
    sequence: u64,
    at_ns: u64,
}

/// The sequence numbers that came lately.
#[derive(Debug)]
pub(crate) struct Recent {
    places: Vec<Option<Place>>,
}

impl Recent {
    pub(crate) fn new() -> Self {
        Self { places: vec![None; RECENT_MAX] }
    }

    /// Notes that a frame came; false if it came before, or must have.
    pub(crate) fn insert(&mut self, sequence: u64, now_ns: u64) -> bool {
        let place = &mut self.places[sequence as usize % RECENT_MAX];
        if let Some(known) = place {
            let is_remembered = now_ns.saturating_sub(known.at_ns) < MEMORY_NS;
            // The place of a later number: this one is so far behind that it was given up.
            let is_behind = known.sequence.wrapping_sub(sequence) < 1 << 32;
            if is_remembered && is_behind {
                return false;
            }
        }
        *place = Some(Place { sequence, at_ns: now_ns });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_new_once_until_it_is_forgotten() {
        let mut recent = Recent::new();
        for sequence in [u64::MAX, 0, 1] {
            assert!(recent.insert(sequence, 0));
            assert!(!recent.insert(sequence, MEMORY_NS - 1));
            assert!(recent.insert(sequence, MEMORY_NS));
        }
    }

    #[test]
    fn a_number_far_behind_is_old_and_one_far_ahead_is_new() {
        let mut recent = Recent::new();
        assert!(recent.insert(10_000, 0));
        assert!(recent.insert(10_000 + RECENT_MAX as u64, 0));
        assert!(!recent.insert(10_000, 0));
        assert!(recent.insert(10_001, 0));
    }
}
