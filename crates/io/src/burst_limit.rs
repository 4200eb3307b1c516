//! Bound of the frames that a burst from a byte stream brings.
//!
//! What lies in a read has to be handed out, for the poller would not tell of it again. So the
//! bound is on what is read, by the length of the frames that came before.

/// Octets of a frame as long as nothing is known: a short Interest.
const FRAME_BYTES_FIRST: usize = 64;

/// Share by which the expected length of a frame grows; it falls at once.
const GROWTH_DIVISOR: usize = 8;

/// Amount that may be read, see the module.
#[derive(Debug)]
pub(crate) struct BurstLimit {
    frames_max: usize,
    /// Expected length of a frame.
    frame_bytes: usize,
}

impl BurstLimit {
    pub(crate) fn new(frames_max: usize) -> Self {
        Self { frames_max, frame_bytes: FRAME_BYTES_FIRST }
    }

    /// Octets that the next read may bring in a burst that has brought so many frames; none when
    /// it has brought more than half of what is allowed, since short reads are not worth a call.
    pub(crate) fn read_bytes(&self, frames: usize) -> Option<usize> {
        let left = self.frames_max.checked_sub(frames)?;
        (left >= self.frames_max / 2).then(|| left.saturating_mul(self.frame_bytes))
    }

    /// Takes note of what a read has brought.
    pub(crate) fn on_read(&mut self, bytes: usize, frames: usize) {
        let mean_bytes = bytes / frames.max(1);
        let grown_bytes = self.frame_bytes + mean_bytes.div_ceil(GROWTH_DIVISOR);
        self.frame_bytes = mean_bytes.clamp(1, grown_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_frames_after_long_ones_are_noticed_at_once_and_long_ones_slowly() {
        let mut limit = BurstLimit::new(256);
        assert_eq!(limit.read_bytes(0), Some(256 * FRAME_BYTES_FIRST));
        (0..20).for_each(|_| limit.on_read(80_000, 10));
        assert_eq!(limit.read_bytes(0), Some(256 * 8000));
        assert_eq!(limit.read_bytes(128), Some(128 * 8000));
        assert_eq!(limit.read_bytes(129), None);
        limit.on_read(3000, 100);
        assert_eq!(limit.read_bytes(0), Some(256 * 30));
        limit.on_read(8000, 1);
        assert_eq!(limit.read_bytes(0), Some(256 * 1030));
        limit.on_read(0, 0);
        assert_eq!(limit.read_bytes(0), Some(256));
    }

    #[test]
    fn without_a_bound_everything_is_read() {
        let limit = BurstLimit::new(usize::MAX);
        assert_eq!(limit.read_bytes(1 << 40), Some(usize::MAX));
    }
}
