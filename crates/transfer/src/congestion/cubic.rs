//! CUBIC by the formulas of RFC 9438, counted in segments.
//!
//! The window is a cubic function of the time since the last reduction, so that it returns to
//! where the path was full quickly, lingers there, and then probes further. Losses decide: at
//! 100 ms and 0.01 % loss that is 187 segments or 123 Mbit/s, on any link.

use super::{CongestionController, DataSample, LossSample, WINDOW_INITIAL, WINDOW_MIN};

/// spec: RFC 9438 §4.1, in segments per cubic second
const SCALE: f64 = 0.4;
/// spec: RFC 9438 §4.6
const DECREASE: f64 = 0.7;
/// spec: RFC 9438 §4.3, so that the two have the same mean window
const RENO_STEP: f64 = 3.0 * (1.0 - DECREASE) / (1.0 + DECREASE);

/// Grows with the cube of the time since the last reduction.
#[derive(Clone, Debug)]
pub struct Cubic {
    window: f64,
    window_max: f64,
    threshold: f64,
    /// The window before the last reduction.
    full: f64,
    /// Window of Reno by now.
    reno: f64,
    epoch: Option<Epoch>,
    reduced_ns: Option<u64>,
    smoothed_rtt_ns: f64,
}

/// Since when the present growth lasts.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    began_ns: u64,
    began_at: f64,
    /// Seconds until the old maximum is reached again.
    k: f64,
}

impl Cubic {
    /// Never exceeds `window_max`.
    pub fn new(window_max: usize) -> Self {
        let window_max = window_max.max(WINDOW_MIN) as f64;
        Cubic {
            window: (WINDOW_INITIAL as f64).min(window_max),
            window_max,
            threshold: f64::INFINITY,
            full: 0.0,
            reno: 0.0,
            epoch: None,
            reduced_ns: None,
            smoothed_rtt_ns: 0.0,
        }
    }

    fn grow(&mut self, now_ns: u64) {
        let (window, full) = (self.window, self.full);
        let epoch = *self.epoch.get_or_insert_with(|| Epoch {
            began_ns: now_ns,
            began_at: window,
            // spec: RFC 9438 §4.2
            k: ((full - window).max(0.0) / SCALE).cbrt(),
        });
        if now_ns == epoch.began_ns {
            self.reno = window;
        }
        let rtt_s = self.smoothed_rtt_ns / 1e9;
        let elapsed_s = now_ns.saturating_sub(epoch.began_ns) as f64 / 1e9;
        let origin = full.max(epoch.began_at);
        let cubic = |at_s: f64| SCALE * (at_s - epoch.k).powi(3) + origin;
        let step = if self.reno >= full { 1.0 } else { RENO_STEP };
        self.reno += step / window;
        if cubic(elapsed_s) < self.reno {
            self.window = self.reno;
        } else {
            let target = cubic(elapsed_s + rtt_s).clamp(window, 1.5 * window);
            self.window += (target - window) / window;
        }
    }

    fn reduce(&mut self, now_ns: u64, sent_ns: u64) {
        if self.reduced_ns.is_some_and(|reduced| sent_ns <= reduced) {
            return;
        }
        self.reduced_ns = Some(now_ns);
        // spec: RFC 9438 §4.7, fast convergence
        let is_shrinking = self.window < self.full;
        self.full = if is_shrinking { self.window * (1.0 + DECREASE) / 2.0 } else { self.window };
        self.window = (self.window * DECREASE).max(WINDOW_MIN as f64);
        self.threshold = self.window;
        self.epoch = None;
    }
}

impl CongestionController for Cubic {
    fn on_data(&mut self, sample: &DataSample) {
        if let Some(rtt_ns) = sample.rtt_ns {
            let rtt_ns = rtt_ns as f64;
            let is_first = self.smoothed_rtt_ns == 0.0;
            self.smoothed_rtt_ns +=
                (rtt_ns - self.smoothed_rtt_ns) * if is_first { 1.0 } else { 0.125 };
        }
        if sample.is_marked {
            return self.reduce(sample.now_ns, sample.sent_ns);
        }
        if !sample.is_limiting {
            return;
        }
        if self.window < self.threshold {
            self.window += 1.0;
        } else {
            self.grow(sample.now_ns);
        }
        self.window = self.window.min(self.window_max);
    }

    fn on_loss(&mut self, sample: &LossSample) {
        self.reduce(sample.now_ns, sample.sent_ns);
    }

    fn window(&self) -> usize {
        self.window as usize
    }

    fn name(&self) -> &'static str {
        "cubic"
    }
}
