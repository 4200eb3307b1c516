//! Frames lent together.

use smallvec::SmallVec;

/// Frames lent at the same time.
pub const FRAMES_MAX: usize = 64;

/// Frames to be written, each where it will be sent from.
pub(crate) type FrameList<'a> = SmallVec<[&'a mut [u8]; FRAMES_MAX]>;
