//! Load of a disk: how many of its threads wait for its file system at a time, on average.
//!
//! A disk that is slow, or has much to do, has more of them waiting: by Little's law it is what is
//! stored in a second times how long that takes. A slow writer makes no load, and a file system
//! that hangs makes as much as there are threads. The average is over the last seconds, older ones
//! counting less.

use std::sync::{Arc, Mutex, PoisonError};

use byname_io::Clock;

/// Age at which something counts a third.
const MEMORY_NS: f64 = 8e9;

/// An average over time of how many there are at a time.
#[derive(Debug, Clone, Copy, Default)]
pub struct LoadAverage {
    count: u32,
    average: f64,
    at_ns: u64,
}

impl LoadAverage {
    /// One more begins at this time.
    pub fn begin(&mut self, now_ns: u64) {
        self.advance(now_ns);
        self.count += 1;
    }

    /// One has ended.
    pub fn end(&mut self, now_ns: u64) {
        self.advance(now_ns);
        self.count = self.count.saturating_sub(1);
    }

    /// The average, in hundredths.
    pub fn hundredths(&mut self, now_ns: u64) -> u64 {
        self.advance(now_ns);
        (self.average * 100.0).round() as u64
    }

    fn advance(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.at_ns) as f64;
        let kept = (-elapsed_ns / MEMORY_NS).exp();
        self.average = self.average * kept + f64::from(self.count) * (1.0 - kept);
        self.at_ns = self.at_ns.max(now_ns);
    }
}

/// The load of a disk, told by its threads.
#[derive(Debug, Clone)]
pub struct LoadMeter {
    clock: Clock,
    average: Arc<Mutex<LoadAverage>>,
}

impl Default for LoadMeter {
    fn default() -> Self {
        Self { clock: Clock::new(), average: Arc::default() }
    }
}

impl LoadMeter {
    /// Does something that waits for the file system.
    pub(crate) fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        self.begin();
        let done = work();
        self.end();
        done
    }

    pub(crate) fn begin(&self) {
        self.tell(LoadAverage::begin);
    }

    pub(crate) fn end(&self) {
        self.tell(LoadAverage::end);
    }

    /// The load, in hundredths.
    pub(crate) fn hundredths(&self) -> u64 {
        self.tell(LoadAverage::hundredths)
    }

    fn tell<T>(&self, what: impl FnOnce(&mut LoadAverage, u64) -> T) -> T {
        let mut average = self.average.lock().unwrap_or_else(PoisonError::into_inner);
        what(&mut average, self.clock.now_ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_disk_that_is_always_busy_has_the_load_of_its_threads_and_forgets_it() {
        let mut load = LoadAverage::default();
        assert_eq!(load.hundredths(SECOND), 0);
        (0..3).for_each(|_| load.begin(SECOND));
        assert_eq!(load.hundredths(9 * SECOND), 190, "two thirds of it after eight seconds");
        assert_eq!(load.hundredths(100 * SECOND), 300);
        (0..3).for_each(|_| load.end(100 * SECOND));
        assert_eq!(load.hundredths(108 * SECOND), 110);
        assert_eq!(load.hundredths(1000 * SECOND), 0);
    }

    /// The same work on a disk that takes four times as long.
    #[test]
    fn a_slow_disk_has_more_load_by_the_same_work() {
        let load = |takes_ns: u64| {
            let mut load = LoadAverage::default();
            for second in 1..60 {
                load.begin(second * SECOND);
                load.end(second * SECOND + takes_ns);
            }
            load.hundredths(60 * SECOND)
        };
        assert_eq!((load(SECOND / 5), load(4 * SECOND / 5)), (19, 79));
    }

    #[test]
    fn a_clock_that_goes_back_changes_nothing() {
        let mut load = LoadAverage::default();
        load.begin(5 * SECOND);
        assert_eq!(load.hundredths(SECOND), 0);
        load.end(SECOND);
        assert_eq!(load.hundredths(5 * SECOND), 0);
    }
}
