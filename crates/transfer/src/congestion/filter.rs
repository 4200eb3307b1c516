//! The largest of the last values: what a path has shown it can do lately.

/// Values remembered.
pub(super) const VALUES: usize = 10;

/// Maximum over the last [`VALUES`] values.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxFilter {
    values: [u64; VALUES],
    next: usize,
}

impl MaxFilter {
    pub(super) fn push(&mut self, value: u64) {
        self.values[self.next] = value;
        self.next = (self.next + 1) % VALUES;
    }

    pub(super) fn scale(&mut self, factor: f64) {
        self.values.iter_mut().for_each(|value| *value = (*value as f64 * factor) as u64);
    }

    pub(super) fn max(&self) -> u64 {
        self.values.iter().copied().max().unwrap_or(0)
    }
}
