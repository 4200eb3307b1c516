//! How many requests may be under way: the interface and its first implementation.
//!
//! In NDN the consumer alone decides the rate, so a controller counts requested segments, not
//! bytes. Signals of congestion carry the time at which the request they concern was sent: all
//! requests of one window that suffer from the same full queue are one event, and a request sent
//! before the last reduction says nothing new.

/// Window before anything is known. A local link answers within a scheduling quantum; sixteen
/// segments are what TCP would send (ten full-size segments are 14 KiB, these are 128 KiB, but
/// the forwarders in between queue packets, not bytes).
pub const WINDOW_INITIAL: usize = 16;
/// Largest window: 512 segments of 8 KiB are 4 MiB under way.
pub const WINDOW_MAX: usize = 512;
/// A window never shrinks below this.
pub const WINDOW_MIN: usize = 2;

/// What told us that the path is too full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionSignal {
    /// A Data packet came with an NDNLPv2 congestion mark.
    Mark,
    /// A forwarder answered with a Nack of reason Congestion.
    Nack,
    /// No answer within the time-out.
    TimeOut,
}

/// Decides the number of segments under way on one path.
pub trait CongestionController: Send {
    /// A segment arrived in time. `is_limiting` is true when the window, not the reader or the
    /// disk, was what kept us from asking for more.
    fn on_data(&mut self, is_limiting: bool);

    /// The path is too full, as shown by a request sent at `sent_ns`.
    fn on_congestion(&mut self, now_ns: u64, sent_ns: u64, signal: CongestionSignal);

    /// Number of segments that may be under way.
    fn window(&self) -> usize;
}

/// Additive increase, multiplicative decrease, with a slow start.
#[derive(Clone, Debug)]
pub struct Aimd {
    window: f64,
    threshold: f64,
    window_max: f64,
    reduced_ns: Option<u64>,
}

impl Aimd {
    /// Starts with [`WINDOW_INITIAL`] and never exceeds `window_max`.
    pub fn new(window_max: usize) -> Self {
        let window_max = window_max.max(WINDOW_MIN) as f64;
        Aimd {
            window: (WINDOW_INITIAL as f64).min(window_max),
            threshold: f64::INFINITY,
            window_max,
            reduced_ns: None,
        }
    }
}

impl Default for Aimd {
    fn default() -> Self {
        Aimd::new(WINDOW_MAX)
    }
}

impl CongestionController for Aimd {
    fn on_data(&mut self, is_limiting: bool) {
        if !is_limiting {
            return;
        }
        let step = if self.window < self.threshold { 1.0 } else { 1.0 / self.window };
        self.window = (self.window + step).min(self.window_max);
    }

    fn on_congestion(&mut self, now_ns: u64, sent_ns: u64, signal: CongestionSignal) {
        if self.reduced_ns.is_some_and(|reduced| sent_ns <= reduced) {
            return;
        }
        // A mark comes before anything is lost, so it asks for less than a loss does.
        let factor = match signal {
            CongestionSignal::Mark => 0.7,
            CongestionSignal::Nack | CongestionSignal::TimeOut => 0.5,
        };
        self.window = (self.window * factor).max(WINDOW_MIN as f64);
        self.threshold = self.window;
        self.reduced_ns = Some(now_ns);
    }

    fn window(&self) -> usize {
        self.window as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_doubles_then_growth_is_linear() {
        let mut aimd = Aimd::default();
        for _ in 0..WINDOW_INITIAL {
            aimd.on_data(true);
        }
        assert_eq!(aimd.window(), 2 * WINDOW_INITIAL);
        aimd.on_congestion(10, 5, CongestionSignal::TimeOut);
        assert_eq!(aimd.window(), WINDOW_INITIAL);
        for _ in 0..WINDOW_INITIAL + 1 {
            aimd.on_data(true);
        }
        assert_eq!(aimd.window(), WINDOW_INITIAL + 1);
    }

    #[test]
    fn one_full_queue_is_one_reduction() {
        let mut aimd = Aimd::default();
        for sent_ns in 0..100 {
            aimd.on_congestion(100, sent_ns, CongestionSignal::Mark);
        }
        assert_eq!(aimd.window(), 11);
        aimd.on_congestion(200, 101, CongestionSignal::Mark);
        assert_eq!(aimd.window(), 7);
    }

    #[test]
    fn the_window_keeps_its_bounds_and_ignores_an_idle_reader() {
        let mut aimd = Aimd::default();
        for _ in 0..10_000 {
            aimd.on_data(false);
        }
        assert_eq!(aimd.window(), WINDOW_INITIAL);
        for _ in 0..10_000 {
            aimd.on_data(true);
        }
        assert_eq!(aimd.window(), WINDOW_MAX);
        for now_ns in 1..100 {
            aimd.on_congestion(now_ns * 2, now_ns * 2 - 1, CongestionSignal::TimeOut);
        }
        assert_eq!(aimd.window(), WINDOW_MIN);
    }
}
