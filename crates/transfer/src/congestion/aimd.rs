//! Additive increase, multiplicative decrease, with a slow start: one segment more a round trip,
//! half of them after a loss. Fair, and slow on long paths; here to be compared with.

use super::{CongestionController, DataSample, LossSample, WINDOW_INITIAL, WINDOW_MIN};

/// Halves on loss, grows by one segment a round trip.
#[derive(Clone, Debug)]
pub struct Aimd {
    window: f64,
    threshold: f64,
    window_max: f64,
    reduced_ns: Option<u64>,
}

impl Aimd {
    /// Never exceeds `window_max`.
    pub fn new(window_max: usize) -> Self {
        let window_max = window_max.max(WINDOW_MIN) as f64;
        Aimd {
            window: (WINDOW_INITIAL as f64).min(window_max),
            threshold: f64::INFINITY,
            window_max,
            reduced_ns: None,
        }
    }

    fn reduce(&mut self, now_ns: u64, sent_ns: u64, factor: f64) {
        if self.reduced_ns.is_some_and(|reduced| sent_ns <= reduced) {
            return;
        }
        self.window = (self.window * factor).max(WINDOW_MIN as f64);
        self.threshold = self.window;
        self.reduced_ns = Some(now_ns);
    }
}

impl CongestionController for Aimd {
    fn on_data(&mut self, sample: &DataSample) {
        if sample.is_marked {
            // A mark comes before anything is lost, so it asks for less than a loss does.
            self.reduce(sample.now_ns, sample.sent_ns, 0.7);
        } else if sample.is_limiting {
            let step = if self.window < self.threshold { 1.0 } else { 1.0 / self.window };
            self.window = (self.window + step).min(self.window_max);
        }
    }

    fn on_loss(&mut self, sample: &LossSample) {
        self.reduce(sample.now_ns, sample.sent_ns, 0.5);
    }

    fn window(&self) -> usize {
        self.window as usize
    }

    fn name(&self) -> &'static str {
        "aimd"
    }
}
