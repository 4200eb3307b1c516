//! The link layer: stream framing and NDNLPv2 (fragmentation, reassembly, reliability,
//! congestion marking). Sans-I/O.
//!
//! [`LinkService`] stands between frames (what a socket carries) and network-layer packets with
//! their header (what a forwarder or an application handles). One per face. On a stream a packet is
//! one frame; on datagrams one that does not fit is split.
//!
//! Invariants: nothing is allocated by a number a peer wrote; an unfinished packet lives for
//! [`ReassemblyLimits::lifetime_ns`] at most; the octets held, of either direction, are bounded.
//! A link without reliability keeps nothing of what it sent and has no timers.

pub mod congestion;
mod drop_reason;
mod feedback;
mod fragment;
pub mod frame;
mod options;
pub mod reassembly;
mod receiver;
mod recent;
mod reliability;
mod rtt;
mod sender;
pub mod service;

pub use congestion::{CongestionMarker, MarkingOptions};
pub use drop_reason::DropReason;
pub use feedback::Feedback;
pub use frame::stream_frame_len;
pub use options::{CAUTIOUS_MTU_BYTES, LinkOptions};
pub use reassembly::ReassemblyLimits;
pub use receiver::{LinkReceiver, Received};
pub use reliability::{IDLE_ACK_NS, RETRIES_MAX, ReliabilityCounters};
pub use sender::{LinkSender, SendError};
pub use service::LinkService;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
