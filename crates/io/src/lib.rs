//! The only home of sockets, packet memory and the real clock. Knows no protocol crate.
//!
//! Everything here is non-blocking and level-triggered: a [`Poller`] says which [`Connection`],
//! [`DatagramSocket`] or [`Listener`] has work, the caller lets it deliver one bounded burst of
//! borrowed frames, queues answers and flushes. What a frame is, the caller says with a
//! [`FrameFn`]; this crate never looks inside one.
//!
//! Invariants: no call except [`Connection::connect`], name resolution and [`Poller::wait`] blocks;
//! every buffer has the size named in [`Limits`]; what a peer sends never panics and never makes a
//! buffer grow; received bytes are borrowed for the duration of a callback only.

pub mod admission;
pub mod amplification;
pub mod budget;
pub mod clock;
pub mod connection;
pub mod datagram;
pub mod descriptors;
pub mod endpoint;
pub mod error;
pub mod files;
pub mod interfaces;
pub mod limits;
pub mod listener;
pub mod loan;
pub mod memif;
pub mod memory;
pub mod poller;
pub mod websocket;

mod address;
mod attachments;
mod bind;
mod burst_limit;
mod connect;
mod path;
mod pending;
mod port_owner;
mod run;
mod writeback;

pub use address::{is_loopback, peer_uri};
pub use amplification::{AnswerLimiter, UdpPeer, UnvalidatedRates};
pub use attachments::Attachments;
pub use budget::{Charge, MemoryBudget};
pub use clock::Clock;
pub use connection::{Connection, Draft, PeerCredentials, RecvStatus};
pub use datagram::{DatagramCounters, DatagramReceiver, DatagramSocket};
pub use endpoint::{Endpoint, Family, Host, MemifRole};
pub use error::{
    BindError, ConnectError, EndpointError, ErrorClass, FrameError, IoError, QueueFull,
};
pub use limits::Limits;
pub use listener::Listener;
pub use memif::MemifError;
pub use path::datagram_bytes_max;
pub use poller::{Event, Interest, Poller, Token, Waker};
pub use port_owner::PortOwner;
pub use websocket::AllowedOrigins;
pub use writeback::begin_writeback;

/// Tells the length of the first whole frame of a buffer, `None` when more bytes are needed.
///
/// A framer that knows the length of a frame before all of it has come may return it at once:
/// a length beyond the buffer means "more bytes are needed", beyond the limit it is refused early.
pub type FrameFn = fn(&[u8]) -> Result<Option<usize>, FrameError>;

/// Takes the frames of a burst.
pub trait FrameSink {
    /// The frames that follow, up to [`FrameSink::end`], lie in `burst`. Transports whose frames do
    /// not lie in one piece of memory leave both calls out.
    fn begin(&mut self, burst: &[u8]) {
        let _ = burst;
    }

    /// One frame, valid during the call.
    fn frame(&mut self, frame: &[u8]);

    /// The same piece of memory again, for the last time: what is sent from here need not be
    /// copied before.
    fn end(&mut self, burst: &[u8]) {
        let _ = burst;
    }
}

impl FrameSink for &mut dyn FnMut(&[u8]) {
    fn frame(&mut self, frame: &[u8]) {
        self(frame);
    }
}
