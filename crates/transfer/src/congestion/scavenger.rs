//! A background controller: takes what others leave of a path, and gives it back within some round
//! trips. For prefetching and warming of caches.
//!
//! It keeps a queueing delay, not a rate: the window grows while answers are less than
//! [`TARGET_NS`] later than the shortest round trip of the last minutes, and shrinks in proportion
//! when they are more. Whoever else sends makes answers later and so gets the path. The target is
//! below what the default controller takes for a queue, or that one would give way to this one.
//!
//! A flow that starts on a path with a standing queue takes the queue for the path. So the window
//! is let down to [`WINDOW_MIN`] for two round trips now and then, a tenth of the time at most.
//! spec: RFC 6817 (LEDBAT), draft-irtf-iccrg-ledbat-plus-plus §4

use super::{CongestionController, DataSample, LossSample, MS, WINDOW_INITIAL, WINDOW_MIN};

/// Queueing delay that is aimed at.
const TARGET_NS: u64 = 3 * MS;
/// Part of the target that ends a slow start.
const START_PART: f64 = 0.75;
/// On short paths the window grows this much more slowly at most.
const GAIN_PART_MAX: u64 = 16;
/// Round trips of which the shortest is the present one: one late answer is no queue.
const RECENT: usize = 4;
/// The shortest round trip is that of so many intervals.
const INTERVALS: usize = 10;
const INTERVAL_NS: u64 = 60_000 * MS;
/// Round trips that the window stays down, and the pause until then after the first start.
const DOWN_TRIPS: u64 = 2;
/// Pause between two of them, in times of what one took.
const PAUSE_TIMES: u64 = 9;

/// Shortest round trips of the last intervals.
#[derive(Clone, Copy, Debug)]
struct BaseDelay {
    shortest_ns: [u64; INTERVALS],
    began_ns: u64,
}

impl BaseDelay {
    fn new() -> Self {
        BaseDelay { shortest_ns: [u64::MAX; INTERVALS], began_ns: 0 }
    }

    fn on_sample(&mut self, rtt_ns: u64, now_ns: u64) {
        if now_ns.saturating_sub(self.began_ns) >= INTERVAL_NS {
            self.shortest_ns.rotate_right(1);
            self.shortest_ns[0] = u64::MAX;
            self.began_ns = now_ns;
        }
        self.shortest_ns[0] = self.shortest_ns[0].min(rtt_ns);
    }

    fn ns(&self) -> u64 {
        self.shortest_ns.iter().copied().min().unwrap_or(u64::MAX)
    }
}

/// Pace, in windows a round trip, of a slow start and later: a window sent at once would be taken
/// for a queue. Shorter round trips than this are not paced, timers cost more there.
const PACE_START: f64 = 2.0;
const PACE: f64 = 1.25;
const PACED_FROM_NS: u64 = MS;

/// Where it is between two drains.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The first slow start: what the path holds is not known.
    Start,
    /// Following the delay until this time.
    Follow { until_ns: u64 },
    /// Down since then, until that time.
    Down { since_ns: u64, until_ns: u64 },
    /// Growing back to where it was, since it went down.
    Return { since_ns: u64 },
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Scavenger {
    phase: Phase,
    window: f64,
    window_max: f64,
    /// Below this window it grows as in a slow start.
    threshold: f64,
    base: BaseDelay,
    recent_ns: [u64; RECENT],
    reduced_ns: Option<u64>,
    segment_bytes: u64,
}

impl Scavenger {
    /// Never exceeds `window_max`.
    pub fn new(window_max: usize) -> Self {
        let window_max = window_max.max(WINDOW_MIN) as f64;
        Scavenger {
            phase: Phase::Start,
            window: (WINDOW_INITIAL as f64).min(window_max),
            window_max,
            threshold: f64::INFINITY,
            base: BaseDelay::new(),
            recent_ns: [u64::MAX; RECENT],
            reduced_ns: None,
            segment_bytes: 0,
        }
    }

    fn on_rtt(&mut self, rtt_ns: u64, now_ns: u64) {
        self.base.on_sample(rtt_ns, now_ns);
        self.recent_ns.rotate_right(1);
        self.recent_ns[0] = rtt_ns;
    }

    /// The present round trip.
    fn rtt_ns(&self) -> u64 {
        self.recent_ns.iter().copied().min().unwrap_or(u64::MAX)
    }

    /// The queueing delay in targets.
    fn delay(&self) -> f64 {
        self.rtt_ns().saturating_sub(self.base.ns()) as f64 / TARGET_NS as f64
    }

    /// A short round trip does not make it grow faster than others.
    fn gain(&self) -> f64 {
        let parts = (2 * TARGET_NS).div_ceil(self.base.ns().max(1));
        1.0 / parts.clamp(1, GAIN_PART_MAX) as f64
    }

    /// Moves on to the next phase if it is time.
    fn advance(&mut self, now_ns: u64) {
        let trips_ns = DOWN_TRIPS.saturating_mul(self.rtt_ns());
        self.phase = match self.phase {
            Phase::Start if self.window >= self.threshold => {
                Phase::Follow { until_ns: now_ns.saturating_add(trips_ns) }
            }
            Phase::Follow { until_ns } if now_ns >= until_ns => {
                self.threshold = self.window;
                self.window = WINDOW_MIN as f64;
                Phase::Down { since_ns: now_ns, until_ns: now_ns.saturating_add(trips_ns) }
            }
            Phase::Down { since_ns, until_ns } if now_ns >= until_ns => Phase::Return { since_ns },
            Phase::Return { since_ns } if self.window >= self.threshold => {
                let pause_ns = PAUSE_TIMES.saturating_mul(now_ns.saturating_sub(since_ns));
                Phase::Follow { until_ns: now_ns.saturating_add(pause_ns) }
            }
            phase => phase,
        };
    }

    /// Follows the delay by one answer.
    fn follow(&mut self, is_limiting: bool) {
        let (delay, gain) = (self.delay(), self.gain());
        if self.window < self.threshold {
            if delay > START_PART {
                self.threshold = self.window;
            } else if is_limiting {
                self.window += gain;
            }
        } else if delay < 1.0 {
            self.window += if is_limiting { gain / self.window } else { 0.0 };
        } else {
            let step = (gain - self.window * (delay - 1.0)).max(-self.window / 2.0);
            self.window += step / self.window;
        }
        self.window = self.window.clamp(WINDOW_MIN as f64, self.window_max);
    }

    fn reduce(&mut self, now_ns: u64, sent_ns: u64) {
        if self.reduced_ns.is_some_and(|reduced| sent_ns <= reduced) {
            return;
        }
        self.reduced_ns = Some(now_ns);
        self.window = (self.window / 2.0).max(WINDOW_MIN as f64);
        self.threshold = self.window;
    }
}

impl CongestionController for Scavenger {
    fn on_data(&mut self, sample: &DataSample) {
        if let Some(rtt_ns) = sample.rtt_ns {
            self.on_rtt(rtt_ns, sample.now_ns);
        }
        self.segment_bytes = sample.bytes;
        if sample.is_marked {
            self.reduce(sample.now_ns, sample.sent_ns);
        } else if sample.rtt_ns.is_some() && !matches!(self.phase, Phase::Down { .. }) {
            self.follow(sample.is_limiting);
        }
        self.advance(sample.now_ns);
    }

    fn on_loss(&mut self, sample: &LossSample) {
        self.reduce(sample.now_ns, sample.sent_ns);
    }

    fn window(&self) -> usize {
        self.window as usize
    }

    fn pacing_bytes_per_s(&self) -> Option<u64> {
        let trip_ns = self.base.ns();
        if !(PACED_FROM_NS..u64::MAX).contains(&trip_ns) || self.segment_bytes == 0 {
            return None;
        }
        let windows = if self.window < self.threshold { PACE_START } else { PACE };
        Some((windows * self.window * self.segment_bytes as f64 * 1e9 / trip_ns as f64) as u64)
    }

    fn name(&self) -> &'static str {
        "scavenger"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIP_NS: u64 = 20 * MS;
    /// Segments that the path carries in a millisecond.
    const SEGMENTS: u64 = 15;

    /// A path of 20 ms, one round trip after the other: all that others leave of it, and the delay
    /// that they make.
    struct Path {
        now_ns: u64,
        scavenger: Scavenger,
        lowest: usize,
        longest_ns: u64,
    }

    impl Path {
        fn new() -> Self {
            let scavenger = Scavenger::new(1 << 14);
            Path { now_ns: MS, scavenger, lowest: usize::MAX, longest_ns: 0 }
        }

        /// Runs for so long beside somebody whose queue takes so long; gives the mean window.
        fn run(&mut self, ms: u64, others_ns: u64) -> f64 {
            let (end_ns, mut sum, mut count) = (self.now_ns + ms * MS, 0.0, 0.0);
            (self.lowest, self.longest_ns) = (usize::MAX, 0);
            while self.now_ns < end_ns {
                let window = self.scavenger.window();
                let rtt_ns = (window as u64 * MS / SEGMENTS).max(TRIP_NS) + others_ns;
                self.longest_ns = self.longest_ns.max(rtt_ns);
                for _ in 0..window {
                    self.now_ns += rtt_ns / window as u64;
                    self.scavenger.on_data(&DataSample {
                        now_ns: self.now_ns,
                        sent_ns: self.now_ns - rtt_ns.min(self.now_ns),
                        rtt_ns: Some(rtt_ns),
                        bytes: 8192,
                        is_marked: false,
                        in_flight: window,
                        is_limiting: true,
                        round: None,
                    });
                }
                self.lowest = self.lowest.min(self.scavenger.window());
                (sum, count) = (sum + window as f64, count + 1.0);
            }
            sum / count
        }
    }

    #[test]
    fn an_idle_path_is_filled_with_a_queue_below_the_target() {
        let mut path = Path::new();
        path.run(30_000, 0);
        let mean = path.run(30_000, 0);
        let holds = (TRIP_NS / MS * SEGMENTS) as f64;
        assert!(mean > 0.8 * holds, "{mean} of {holds}");
        let queue_ns = path.longest_ns - TRIP_NS;
        assert!(queue_ns < TARGET_NS + MS, "{queue_ns}");
    }

    #[test]
    fn it_gives_way_within_some_round_trips_and_comes_back() {
        let mut path = Path::new();
        let alone = path.run(30_000, 0);
        path.run(10 * TRIP_NS / MS, 10 * MS);
        let beside = path.run(5_000, 10 * MS);
        assert!(beside < 4.0, "{beside} of {alone} beside a queue of others");
        path.run(60_000, 0);
        assert!(path.run(10_000, 0) > 0.8 * alone, "alone again");
    }

    #[test]
    fn a_queue_that_was_there_first_is_noticed_when_it_goes_and_comes() {
        let mut path = Path::new();
        let blind = path.run(20_000, 10 * MS);
        assert!(blind > 100.0, "taken for the path: {blind}");
        path.run(200, 0);
        path.run(10 * TRIP_NS / MS, 10 * MS);
        let beside = path.run(5_000, 10 * MS);
        assert!(beside < 4.0, "seen since: {beside}");
    }

    #[test]
    fn the_window_goes_down_now_and_then_and_a_longer_path_is_learned() {
        let mut path = Path::new();
        path.run(30_000, 0);
        path.run(60_000, 0);
        assert_eq!(path.lowest, WINDOW_MIN, "to see the path without its own queue");
        path.run(INTERVALS as u64 * INTERVAL_NS / MS + 120_000, 10 * MS);
        assert!(path.run(30_000, 10 * MS) > 100.0, "no one else's queue lasts for ten minutes");
    }

    #[test]
    fn a_window_is_spread_over_the_round_trip() {
        let mut path = Path::new();
        assert_eq!(path.scavenger.pacing_bytes_per_s(), None, "before anything is known");
        path.run(30_000, 0);
        let pace = path.scavenger.pacing_bytes_per_s().expect("20 ms are paced");
        let window_per_s = path.scavenger.window() as u64 * 8192 * 1_000 / 20;
        assert!((window_per_s..3 * window_per_s).contains(&pace), "{pace} for {window_per_s}");
    }

    #[test]
    fn a_window_of_losses_or_marks_is_one_reduction() {
        let mut path = Path::new();
        path.run(30_000, 0);
        let before = path.scavenger.window();
        let now_ns = path.now_ns;
        for sent_ns in now_ns - TRIP_NS..now_ns - TRIP_NS + 100 {
            let kind = super::super::LossKind::Overtaken;
            let (in_flight, is_path_alive) = (before, true);
            let loss = LossSample { now_ns, sent_ns, kind, in_flight, is_path_alive };
            path.scavenger.on_loss(&loss);
        }
        assert_eq!(path.scavenger.window(), before / 2);
    }
}
