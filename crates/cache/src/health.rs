//! Whether the disk can be asked: passed by after errors, when it is full, and while a call hangs.
//!
//! A read that has not returned within the patience counts as hanging; from then until it returns
//! nothing is asked of the disk. The writer may take longer: it also syncs and removes, and holds
//! up nobody. An error ends reading or writing for a pause, which
//! doubles as long as errors go on. Each time this is said once.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::counters::{Counts, add};

/// First pause after an error.
const PAUSE_FIRST: Duration = Duration::from_secs(5);
/// Longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// Threads that call the disk, at most.
pub(crate) const CALLERS_MAX: usize = 8;

/// Patience with the writer, in those with a reader.
const WRITER_PATIENCES: u64 = 15;

/// Direction of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

#[derive(Debug, Default)]
struct Pause {
    /// Until then the disk is passed by.
    until: Option<Instant>,
    length: Duration,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Health {
    begun: Instant,
    patience: Duration,
    /// Milliseconds since `begun`, plus one, at which the call of each thread began; 0 for none.
    calls: [AtomicU64; CALLERS_MAX],
    pauses: Mutex<[Pause; 2]>,
    /// Number of the hanging call that was reported last.
    reported: AtomicU64,
}

impl Health {
    pub(crate) fn new(patience: Duration) -> Self {
        let calls = std::array::from_fn(|_| AtomicU64::new(0));
        let (begun, reported) = (Instant::now(), AtomicU64::new(0));
        Health { begun, patience, calls, pauses: Mutex::default(), reported }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The thread of this number is about to call the disk.
    pub(crate) fn begin(&self, caller: usize) -> InCall<'_> {
        self.calls[caller].store(self.now_ms() + 1, Ordering::Relaxed);
        InCall { health: self, caller }
    }

    /// True if the disk may be asked. Reports once when a call hangs.
    pub(crate) fn is_usable(&self, direction: Direction, counts: &Counts) -> bool {
        !self.is_hanging(direction, counts) && !self.is_paused(direction)
    }

    fn is_hanging(&self, direction: Direction, counts: &Counts) -> bool {
        let patience_ms = u64::try_from(self.patience.as_millis()).unwrap_or(u64::MAX);
        let (writer, readers) = self.calls.split_at(1);
        let hanging = self.oldest_over(readers, patience_ms).or_else(|| match direction {
            Direction::Read => None,
            Direction::Write => {
                self.oldest_over(writer, patience_ms.saturating_mul(WRITER_PATIENCES))
            }
        });
        let Some(oldest) = hanging else { return false };
        if self.reported.swap(oldest, Ordering::Relaxed) != oldest {
            add(&counts.bypasses, 1);
            tracing::warn!("the cache's disk does not answer; reading goes on without it");
        }
        true
    }

    /// The oldest of these calls, if it has taken so long.
    fn oldest_over(&self, calls: &[AtomicU64], patience_ms: u64) -> Option<u64> {
        let began = calls.iter().map(|call| call.load(Ordering::Relaxed));
        let oldest = began.filter(|began| *began != 0).min()?;
        (self.now_ms() + 1 >= oldest.saturating_add(patience_ms)).then_some(oldest)
    }

    fn is_paused(&self, direction: Direction) -> bool {
        let pauses = self.pauses.lock().unwrap_or_else(PoisonError::into_inner);
        pauses[direction as usize].until.is_some_and(|until| Instant::now() < until)
    }

    /// A call ended with an error: the disk is passed by for a while.
    pub(crate) fn note_error(&self, direction: Direction, error: &io::Error, counts: &Counts) {
        let mut pauses = self.pauses.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = &mut pauses[direction as usize];
        if pause.until.is_some_and(|until| Instant::now() < until) {
            return;
        }
        let is_new = pause.length.is_zero();
        pause.length = (pause.length * 2).clamp(PAUSE_FIRST, PAUSE_MAX);
        pause.until = Some(Instant::now() + pause.length);
        drop(pauses);
        if !is_new {
            return;
        }
        add(&counts.bypasses, 1);
        match direction {
            Direction::Read => {
                tracing::warn!(%error, "the cache cannot be read; reading goes on without it");
            }
            Direction::Write => {
                tracing::warn!(%error, "the cache cannot be written; reading goes on");
            }
        }
    }

    /// A call succeeded.
    pub(crate) fn note_success(&self, direction: Direction) {
        let mut pauses = self.pauses.lock().unwrap_or_else(PoisonError::into_inner);
        let was_paused = !pauses[direction as usize].length.is_zero();
        pauses[direction as usize] = Pause::default();
        if was_paused {
            tracing::info!("the cache's disk is used again");
        }
    }
}

/// A call to the disk, until it is dropped.
pub(crate) struct InCall<'a> {
    health: &'a Health,
    caller: usize,
}

impl Drop for InCall<'_> {
    fn drop(&mut self) {
        self.health.calls[self.caller].store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_hangs_passes_the_disk_by_until_it_returns_and_is_said_once() {
        let (health, counts) = (Health::new(Duration::ZERO), Counts::default());
        assert!(health.is_usable(Direction::Read, &counts));
        let call = health.begin(3);
        for direction in [Direction::Read, Direction::Write, Direction::Read] {
            assert!(!health.is_usable(direction, &counts));
        }
        assert_eq!(counts.snapshot().bypasses, 1);
        drop(call);
        assert!(health.is_usable(Direction::Read, &counts));
    }

    #[test]
    fn a_writer_that_takes_its_time_keeps_nobody_from_reading() {
        let (health, counts) = (Health::new(Duration::ZERO), Counts::default());
        let _call = health.begin(0);
        assert!(health.is_usable(Direction::Read, &counts));
        assert!(!health.is_usable(Direction::Write, &counts));
    }

    #[test]
    fn an_error_pauses_its_direction_alone_and_is_said_once() {
        let (health, counts) = (Health::new(Duration::from_secs(3600)), Counts::default());
        let full = io::Error::from(rustix::io::Errno::NOSPC);
        (0..3).for_each(|_| health.note_error(Direction::Write, &full, &counts));
        assert!(!health.is_usable(Direction::Write, &counts));
        assert!(health.is_usable(Direction::Read, &counts));
        assert_eq!(counts.snapshot().bypasses, 1);
        health.note_success(Direction::Write);
        assert!(health.is_usable(Direction::Write, &counts));
    }
}
