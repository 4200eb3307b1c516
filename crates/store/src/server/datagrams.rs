//! UDP sockets that peers share: which peer has which face, and what bounds the answers to those
//! that have not shown that they receive.

use std::collections::HashMap;
use std::net::SocketAddr;

use byname_io::amplification::TOKEN_FRAME_BYTES;
use byname_io::{
    AnswerLimiter, DatagramSocket, Endpoint, Interest, IoError, Poller, Token, UnvalidatedRates,
};
use byname_packet::lp;
use byname_transfer::server::FaceId;

use crate::error::StoreError;

/// Numbers of sockets for the poller begin here.
pub(super) const SOCKET_BASE: u64 = 1 << 63;

/// See the module.
#[derive(Default)]
pub(super) struct Datagrams {
    pub(super) sockets: Vec<DatagramSocket>,
    is_write_watched: Vec<bool>,
    pub(super) peers: HashMap<(usize, SocketAddr), FaceId>,
    pub(super) limiter: AnswerLimiter,
}

impl Datagrams {
    pub(super) fn new(rates: UnvalidatedRates) -> Self {
        Self { limiter: AnswerLimiter::new(rates), ..Self::default() }
    }

    /// Opens a socket; says where.
    pub(super) fn bind(
        &mut self,
        endpoint: &Endpoint,
        poller: &Poller,
    ) -> Result<Endpoint, StoreError> {
        let socket = DatagramSocket::bind(endpoint).map_err(StoreError::Bind)?;
        let at = socket.local_endpoint().clone();
        let token = Token(SOCKET_BASE + self.sockets.len() as u64);
        poller.add(&socket, token, Interest::READ)?;
        self.sockets.push(socket);
        self.is_write_watched.push(false);
        Ok(at)
    }

    /// Sends a peer the token that it is to return.
    pub(super) fn send_token(&mut self, socket: usize, peer: SocketAddr, token: u64) {
        let mut frame = Vec::with_capacity(TOKEN_FRAME_BYTES);
        lp::encode_address_token(token, &mut frame);
        // What finds no room is lost, as on the path: the next follows.
        let _ = self.sockets[socket].queue(peer, &[&frame]);
    }

    /// Queues what has waited for its machine; flush the sockets afterwards.
    pub(super) fn release(&mut self, now_ns: u64) {
        let sockets = &mut self.sockets;
        self.limiter.release(now_ns, |index, peer, octets| {
            if let Some(socket) = sockets.get_mut(index) {
                // What finds no room is lost, as on the path.
                let _ = socket.queue(peer, &[octets]);
            }
        });
    }

    /// Hands on what a socket takes now, and watches for room if `has_more` or something is left.
    pub(super) fn flush(
        &mut self,
        index: usize,
        has_more: bool,
        poller: &Poller,
    ) -> Result<(), IoError> {
        let socket = &mut self.sockets[index];
        socket.flush()?;
        let wanted = socket.wants_write() || has_more;
        if wanted != self.is_write_watched[index] {
            let interest = if wanted { Interest::READ_WRITE } else { Interest::READ };
            poller.modify(&*socket, Token(SOCKET_BASE + index as u64), interest)?;
            self.is_write_watched[index] = wanted;
        }
        Ok(())
    }
}
