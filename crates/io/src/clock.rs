//! The real clock. Protocol crates never read time; whoever drives them reads it here.
//!
//! `now_ns` is the kernel's monotonic clock itself, not the distance from the creation of a
//! `Clock`, so that values taken by different threads and different `Clock`s can be compared.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Reads the machine's clocks. Costs nothing to create or copy.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clock;

impl Clock {
    /// A clock; all clocks of one machine agree.
    pub fn new() -> Self {
        Clock
    }

    /// Nanoseconds since an arbitrary epoch (on Linux, boot). Never goes back.
    pub fn now_ns(&self) -> u64 {
        nanoseconds(clock_gettime(ClockId::Monotonic))
    }

    /// Nanoseconds since 1970-01-01 UTC. Goes back when somebody sets the clock.
    pub fn unix_ns(&self) -> u64 {
        nanoseconds(clock_gettime(ClockId::Realtime))
    }

    /// Processor time of the calling thread. A system call, unlike the others.
    pub fn thread_cpu_ns(&self) -> u64 {
        nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
    }
}

/// A clock set before 1970 reads as zero; one past the year 2554 stays at the maximum.
fn nanoseconds(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let fraction = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_clocks_share_one_timeline() {
        let first = Clock::new().now_ns();
        let second = Clock::new().now_ns();
        assert!(second >= first);
        let system =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos()
                as u64;
        assert!(Clock::new().unix_ns() >= system);
    }

    #[test]
    fn times_out_of_range_saturate() {
        assert_eq!(nanoseconds(Timespec { tv_sec: -1, tv_nsec: 0 }), 0);
        assert_eq!(nanoseconds(Timespec { tv_sec: i64::MAX, tv_nsec: 0 }), u64::MAX);
        assert_eq!(nanoseconds(Timespec { tv_sec: 2, tv_nsec: 3 }), 2_000_000_003);
    }
}
