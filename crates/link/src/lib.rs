//! What a link adds to packets: stream framing, NDNLPv2 fragmentation and reassembly. Sans-I/O.
//!
//! [`LinkService`] stands between frames (what a socket carries) and network-layer packets with
//! their header (what a forwarder or an application handles). One per face. On a stream a packet is
//! one frame; on datagrams one that does not fit is split.
//!
//! Invariants: nothing is allocated by a number a peer wrote; an unfinished packet lives for
//! [`ReassemblyLimits::lifetime_ns`] at most; the octets held are bounded.

pub mod frame;
pub mod reassembly;
pub mod service;

pub use frame::stream_frame_len;
pub use reassembly::ReassemblyLimits;
pub use service::{DropReason, LinkService, Received, SendError};
