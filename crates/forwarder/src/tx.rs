//! The way out of the forwarder: a trait of the driver.

use byname_packet::lp::LpHeader;

use crate::face::FaceId;

/// Takes the forwarder's packets.
pub trait Tx {
    /// Sends a network-layer packet with a header over a face. What cannot be sent is dropped.
    fn send(&mut self, face: FaceId, header: &LpHeader<'_>, packet: &[u8]);

    /// Sends an Interest that came from `from`. A driver whose link to `face` does not keep up may
    /// let it wait until others had their turn, or answer it by a congestion Nack of that face.
    fn send_interest(
        &mut self,
        (face, _from): (FaceId, FaceId),
        header: &LpHeader<'_>,
        packet: &[u8],
    ) {
        self.send(face, header, packet);
    }
}
