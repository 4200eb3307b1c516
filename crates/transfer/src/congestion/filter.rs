//! The largest of the last values: what a path has shown it can do lately.

/// Values remembered.
pub(super) const VALUES: usize = 10;

/// Maximum over the last [`VALUES`] values.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxFilter {
    values: [u64; VALUES],
    next: usize,
    /// When the last value was put in that is not part of an older one.
    began_ns: u64,
}

impl MaxFilter {
    pub(super) fn push(&mut self, value: u64) {
        self.values[self.next] = value;
        self.next = (self.next + 1) % VALUES;
    }

    /// The same for values of which many may come in `span_ns`: those of a tenth of it become one.
    pub(super) fn push_for(&mut self, value: u64, now_ns: u64, span_ns: u64) {
        if now_ns.saturating_sub(self.began_ns) < span_ns / VALUES as u64 {
            let last = (self.next + VALUES - 1) % VALUES;
            self.values[last] = self.values[last].max(value);
        } else {
            self.began_ns = now_ns;
            self.push(value);
        }
    }

    pub(super) fn scale(&mut self, factor: f64) {
        self.values.iter_mut().for_each(|value| *value = (*value as f64 * factor) as u64);
    }

    pub(super) fn max(&self) -> u64 {
        self.values.iter().copied().max().unwrap_or(0)
    }
}
