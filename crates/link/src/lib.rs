//! What a link adds to packets: stream framing and NDNLPv2 (fragmentation, reassembly, reliability,
//! congestion marking). Sans-I/O.
//!
//! [`LinkService`] stands between frames (what a socket carries) and network-layer packets with
//! their header (what a forwarder or an application handles). One per face. On a stream a packet is
//! one frame; on datagrams one that does not fit is split.
//!
//! Invariants: nothing is allocated by a number a peer wrote; an unfinished packet lives for
//! [`ReassemblyLimits::lifetime_ns`] at most; the octets held, of either direction, are bounded.
//! A link without reliability keeps nothing of what it sent and has no timers.

pub mod back_off;
pub mod congestion;
mod fragment;
pub mod frame;
pub mod reassembly;
mod receiver;
mod recent;
mod reliability;
mod rtt;
mod sender;
pub mod service;

pub use back_off::BackOff;
pub use congestion::{CongestionMarker, MarkingOptions};
pub use frame::stream_frame_len;
pub use reassembly::ReassemblyLimits;
pub use receiver::{DropReason, Feedback, LinkReceiver, Received};
pub use reliability::{IDLE_ACK_NS, RETRIES_MAX, ReliabilityCounters};
pub use sender::{LinkSender, SendError};
pub use service::{LinkOptions, LinkService};
