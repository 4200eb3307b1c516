//! WebSocket: binary messages over TCP, one frame each, as browsers speak to a forwarder.
//!
//! The protocol is tungstenite's; sockets, time and bounds are ours. tungstenite never waits: what
//! it writes goes to a bounded run of bytes ([`Wire`]), which `flush` hands to the kernel, and what
//! it reads comes from one bounded amount per burst, of which it keeps no whole message back; so
//! the level-triggered poller can watch the socket itself. No subprotocol, no compression, no TLS
//! (a web server in front adds that); text is refused. These faces are never local.
//!
//! Pings are due by [`crate::Connection::tick_due_ns`]; they find out that a browser's machine is
//! gone, and keep the proxies between us from closing a silent connection.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use tungstenite::error::{CapacityError, ProtocolError};
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, Message};

use crate::budget::MemoryBudget;
use crate::burst_limit::BurstLimit;
use crate::connection::RecvStatus;
use crate::error::{FrameError, IoError, QueueFull};
use crate::limits::Limits;
use crate::{FrameFn, FrameSink};

mod accepting;
mod connect;
mod origin;
mod queue;
mod wire;

pub(crate) use accepting::Handshake;
pub(crate) use connect::connect;
pub use origin::AllowedOrigins;

use queue::FrameQueue;
use wire::Wire;

/// Bytes of tungstenite's receive buffer, of each connection.
const READ_BUFFER_BYTES: usize = 32 << 10;

/// Answers to pings that wait while the peer does not read; further ones replace each other.
const CONTROL_BYTES_MAX: usize = 4 << 10;

/// As NFD.
const PING_INTERVAL_NS: u64 = 10_000_000_000;

/// Intervals without a single byte from the peer after which it is gone.
const SILENT_INTERVALS_MAX: u32 = 3;

type Socket = tungstenite::WebSocket<Wire>;

/// One peer whose handshake is done.
#[derive(Debug)]
pub(crate) struct WebSocket {
    socket: Socket,
    queue: FrameQueue,
    burst: BurstLimit,
    frame_bytes_max: usize,
    is_server: bool,
    next_tick_ns: u64,
    silent_intervals: u32,
}

/// Settings of tungstenite for frames of these limits.
fn config(limits: Limits) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        // Everything is handed to our own buffer at once.
        .write_buffer_size(0)
        .max_write_buffer_size(limits.frame_bytes_max + CONTROL_BYTES_MAX)
        .max_message_size(Some(limits.frame_bytes_max))
        .max_frame_size(Some(limits.frame_bytes_max))
        .accept_unmasked_frames(false)
}

impl WebSocket {
    fn new(mut socket: Socket, is_server: bool, limits: Limits) -> Self {
        socket.get_mut().end_handshake();
        WebSocket {
            socket,
            queue: FrameQueue::new(limits.send_bytes_max),
            burst: BurstLimit::new(limits.burst_frames_max),
            frame_bytes_max: limits.frame_bytes_max,
            is_server,
            next_tick_ns: 0,
            silent_intervals: 0,
        }
    }

    /// Hands out the messages that have come. One that is not exactly one frame is dropped.
    pub(crate) fn recv_burst(
        &mut self,
        framer: FrameFn,
        sink: &mut dyn FrameSink,
    ) -> Result<RecvStatus, IoError> {
        let mut status = RecvStatus::default();
        let bytes_max = self.burst.read_bytes(0).unwrap_or(0);
        self.socket.get_mut().begin_burst(bytes_max);
        loop {
            match self.socket.read() {
                Ok(Message::Binary(bytes)) => match framer(&bytes) {
                    Ok(Some(length)) if length == bytes.len() && length > 0 => {
                        status.frames += 1;
                        sink.frame(&bytes);
                    }
                    _ => status.dropped += 1,
                },
                Ok(Message::Text(_)) => return Err(FrameError("a text message").into()),
                Ok(Message::Close(_)) => status.closed = true,
                // tungstenite answers pings by itself.
                Ok(_) => {}
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if is_end(&error) => {
                    status.closed = true;
                    break;
                }
                Err(error) => return Err(self.sort(error)),
            }
        }
        self.burst.on_read(self.socket.get_ref().read_bytes(), status.frames + status.dropped);
        if self.socket.get_ref().has_read() {
            self.silent_intervals = 0;
        }
        status.drained = status.closed || self.socket.get_ref().is_drained();
        // Answers to pings, and to a close.
        self.settle()?;
        if let Err(error) = self.socket.get_mut().drain()
            && !status.closed
        {
            return Err(IoError::new("send", error));
        }
        Ok(status)
    }

    pub(crate) fn queue(&mut self, parts: &[&[u8]]) -> Result<(), QueueFull> {
        self.queue.append(parts)
    }

    /// Appends a frame that is yet to be written.
    pub(crate) fn draft(&mut self, frame_bytes: usize) -> Result<&mut [u8], QueueFull> {
        self.queue.extend(frame_bytes)
    }

    /// The last `count` frames are not to be sent.
    pub(crate) fn take_back(&mut self, count: usize) {
        self.queue.take_back(count);
    }

    pub(crate) fn set_budget(&mut self, budget: &MemoryBudget) {
        self.queue.set_budget(budget);
    }

    pub(crate) fn trim(&mut self, now_ns: u64) -> u64 {
        self.queue.trim(now_ns)
    }

    pub(crate) fn queued_bytes(&self) -> usize {
        self.queue.len() + self.socket.get_ref().unsent_bytes()
    }

    pub(crate) fn flush(&mut self) -> Result<(), IoError> {
        loop {
            self.encode()?;
            let has_room =
                self.socket.get_mut().drain().map_err(|error| IoError::new("send", error))?;
            if !has_room || self.queue.is_empty() {
                return Ok(());
            }
        }
    }

    /// Turns frames that wait into messages, as long as there is room for them.
    ///
    /// A client has to mask them, which is tungstenite's business. A server's are plain: they go
    /// where tungstenite's would, behind whatever it had to say, without its copies.
    fn encode(&mut self) -> Result<(), IoError> {
        self.settle()?;
        while self.socket.get_ref().has_room()
            && let Some(frame) = self.queue.first()
        {
            if !self.socket.can_write() {
                return Err(self.sort(Error::AlreadyClosed));
            }
            if self.is_server {
                self.socket.get_mut().append_binary(frame);
            } else if let Err(error) = self.socket.write(Message::binary(frame.to_vec())) {
                return Err(self.sort(error));
            }
            self.queue.sent_first();
        }
        Ok(())
    }

    /// Moves what tungstenite has to say to our own buffer.
    fn settle(&mut self) -> Result<(), IoError> {
        match self.socket.flush() {
            Ok(()) => Ok(()),
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) if is_end(&error) => Ok(()),
            Err(error) => Err(self.sort(error)),
        }
    }

    pub(crate) fn tick_due_ns(&self) -> u64 {
        self.next_tick_ns
    }

    pub(crate) fn tick(&mut self, now_ns: u64) -> Result<(), IoError> {
        if now_ns < self.next_tick_ns {
            return Ok(());
        }
        self.next_tick_ns = now_ns.saturating_add(PING_INTERVAL_NS);
        if self.silent_intervals >= SILENT_INTERVALS_MAX {
            let source = io::Error::from(io::ErrorKind::TimedOut);
            return Err(IoError::Disconnected { source });
        }
        self.silent_intervals += 1;
        if self.socket.get_ref().has_room() {
            match self.socket.write(Message::Ping(tungstenite::Bytes::new())) {
                Ok(()) => {}
                Err(error) => return Err(self.sort(error)),
            }
        }
        self.flush()
    }

    /// The end of a connection, in our words.
    fn sort(&self, error: Error) -> IoError {
        let max = self.frame_bytes_max;
        match error {
            Error::Io(source) => IoError::new("WebSocket", source),
            Error::Capacity(CapacityError::MessageTooLong { size, .. }) => {
                IoError::FrameTooLarge { length: size, max }
            }
            Error::ConnectionClosed
            | Error::AlreadyClosed
            | Error::Protocol(ProtocolError::SendAfterClosing) => {
                IoError::Disconnected { source: io::ErrorKind::ConnectionAborted.into() }
            }
            Error::Protocol(ProtocolError::UnmaskedFrameFromClient) => {
                FrameError("an unmasked WebSocket frame from a client").into()
            }
            _ => FrameError("not WebSocket").into(),
        }
    }
}

impl Drop for WebSocket {
    /// A polite end, if the kernel takes it at once.
    fn drop(&mut self) {
        let _ = self.socket.close(None);
        let _ = self.socket.get_mut().drain();
    }
}

impl AsFd for WebSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.get_ref().as_fd()
    }
}

/// The peer has closed, in the prescribed way or in a hurry.
fn is_end(error: &Error) -> bool {
    matches!(
        error,
        Error::ConnectionClosed
            | Error::AlreadyClosed
            | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)
    )
}
