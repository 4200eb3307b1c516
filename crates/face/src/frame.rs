//! Where frames end in a stream of octets.

use byname_io::FrameError;
use byname_link::stream_frame_len;

/// Length of the first frame of a stream of packets, as soon as its TYPE and LENGTH are there: the
/// [`byname_io::FrameFn`] of every connection that carries NDN.
///
/// # Errors
/// [`FrameError`] if the stream goes on with something else.
pub fn frame_len(octets: &[u8]) -> Result<Option<usize>, FrameError> {
    stream_frame_len(octets).map_err(|_| FrameError("neither Interest nor Data nor LpPacket"))
}
