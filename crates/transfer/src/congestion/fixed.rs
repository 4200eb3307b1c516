//! A constant number of requests in flight, whatever happens: for measurements, and for networks
//! whose operator knows better.

use super::{CongestionController, DataSample, LossSample};

/// Always the same window.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    window: usize,
}

impl Fixed {
    /// At least one.
    pub fn new(window: usize) -> Self {
        Fixed { window: window.max(1) }
    }
}

impl CongestionController for Fixed {
    fn on_data(&mut self, _: &DataSample) {}

    fn on_loss(&mut self, _: &LossSample) {}

    fn window(&self) -> usize {
        self.window
    }

    fn name(&self) -> &'static str {
        "fixed"
    }
}
