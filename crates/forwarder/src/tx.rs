//! The way out of the forwarder: a trait of the driver.

use byname_packet::lp::LpHeader;

use crate::face::FaceId;

/// Takes the forwarder's packets.
pub trait Tx {
    /// Sends a network-layer packet with a header over a face. What cannot be sent is dropped.
    fn send(&mut self, face: FaceId, header: &LpHeader<'_>, packet: &[u8]);
}
