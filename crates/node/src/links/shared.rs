//! UDP sockets that peers share, and what bounds the answers to those not validated.

use byname_io::amplification::TOKEN_FRAME_BYTES;
use byname_io::{AnswerLimiter, DatagramSocket, IoError, UdpPeer};
use byname_packet::lp;

use super::Outcome;

/// A shared UDP socket; `None` in a place that is not used.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) socket: Option<DatagramSocket>,
    /// Octets that waited after the last flush.
    pub(super) queued_bytes: usize,
    pub(crate) token: u64,
    pub(crate) is_watching_write: bool,
    pub(super) is_dirty: bool,
}

impl Shared {
    pub(crate) fn new(socket: DatagramSocket, token: u64) -> Self {
        Self {
            socket: Some(socket),
            queued_bytes: 0,
            token,
            is_watching_write: false,
            is_dirty: false,
        }
    }
}

/// All shared sockets.
#[derive(Debug, Default)]
pub(crate) struct SharedSockets {
    pub(crate) sockets: Vec<Shared>,
    pub(crate) limiter: AnswerLimiter,
}

impl SharedSockets {
    /// Queues a datagram, unless its peer has had enough: then it waits, or is lost as on the path.
    pub(super) fn queue(
        &mut self,
        index: usize,
        peer: &mut UdpPeer,
        parts: &[&[u8]],
        now_ns: u64,
    ) -> Outcome {
        let Some(socket) = &mut self.sockets[index].socket else { return Outcome::Absent };
        match self.limiter.queue((index, socket), peer, parts, now_ns) {
            Ok(true) => Outcome::Queued,
            Ok(false) => Outcome::Limited,
            Err(_) => Outcome::Full,
        }
    }

    /// Queues datagrams that have waited; says which sockets have something to flush, and how many
    /// datagrams found no room.
    pub(super) fn release(&mut self, now_ns: u64) -> (Vec<usize>, u64) {
        let (mut touched, mut lost) = (Vec::new(), 0);
        let sockets = &mut self.sockets;
        self.limiter.release(now_ns, |index, address, octets| {
            let socket = sockets.get_mut(index).and_then(|shared| shared.socket.as_mut());
            let Some(socket) = socket else { return };
            lost += u64::from(socket.queue(address, &[octets]).is_err());
            touched.push(index);
        });
        touched.dedup();
        (touched, lost)
    }

    /// Counts what a peer has sent, and sends it a token if one is due; says if it did.
    pub(super) fn on_received(
        &mut self,
        index: usize,
        peer: &mut UdpPeer,
        bytes: usize,
        now_ns: u64,
    ) -> bool {
        let Some(token) = self.limiter.on_received(peer, bytes, now_ns) else { return false };
        let Some(socket) = &mut self.sockets[index].socket else { return false };
        let mut frame = Vec::with_capacity(TOKEN_FRAME_BYTES);
        lp::encode_address_token(token, &mut frame);
        socket.queue(peer.address(), &[&frame]).is_ok()
    }

    /// Flushes a socket; whether datagrams still wait.
    pub(super) fn flush(&mut self, index: usize) -> Result<bool, IoError> {
        let shared = &mut self.sockets[index];
        let Some(socket) = &mut shared.socket else { return Ok(false) };
        socket.flush()?;
        shared.queued_bytes = socket.queued_bytes();
        Ok(shared.queued_bytes > 0)
    }
}
