//! The client's side of the handshake, within a time limit.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tungstenite::client::IntoClientRequest;
use tungstenite::handshake::HandshakeError;
use tungstenite::handshake::client::ClientHandshake;

use super::{WebSocket, Wire, config};
use crate::limits::Limits;

/// Shakes hands over `socket`, which is connected and non-blocking, with the server that `uri`
/// names.
pub(crate) fn connect(
    socket: socket2::Socket,
    uri: &str,
    timeout: Duration,
    limits: Limits,
) -> io::Result<WebSocket> {
    let deadline = Instant::now() + timeout;
    let request = uri.into_client_request().map_err(refused)?;
    let wire = Wire::new(socket.into());
    let started = ClientHandshake::start(wire, request, Some(config(limits)));
    let mut handshake = started.map_err(refused)?;
    loop {
        match handshake.handshake() {
            Ok((socket, _)) => return Ok(WebSocket::new(socket, false, limits)),
            Err(HandshakeError::Interrupted(next)) => {
                wait(next.get_ref().get_ref(), deadline)?;
                handshake = next;
            }
            Err(HandshakeError::Failure(error)) => return Err(refused(error)),
        }
    }
}

/// Until the answer goes on, or the time is over.
fn wait(wire: &Wire, deadline: Instant) -> io::Result<()> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let left =
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(&mut [PollFd::new(wire, PollFlags::IN)], Some(&left)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

fn refused(error: tungstenite::Error) -> io::Error {
    match error {
        tungstenite::Error::Io(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidData, format!("no WebSocket: {other}")),
    }
}
