//! A traffic generator: it asks for made-up names, answers them with made-up content, and counts.
//!
//! [`Consumer`] and [`Producer`] are cores without I/O; [`run_consumer`] and [`run_producer`] drive
//! them over a [`byname_io::Connection`]. The content of a packet follows from its name alone
//! ([`Payload`]), so every answer can be checked without an agreement between the two sides. The
//! generator must cost less than the forwarder it measures: packets are patched templates, state
//! lives in slots that the PIT token names, and nothing is allocated per packet.
//!
//! Invariants: at most [`consumer::OUTSTANDING_MAX`] Interests wait for an answer; every answer is
//! counted in exactly one place; time and randomness come from outside.

pub mod consumer;
pub mod drive;
pub mod error;
pub mod latency;
pub mod numbers;
pub mod pattern;
pub mod payload;
pub mod producer;
pub mod register;

pub use consumer::{Consumer, ConsumerConfig, ConsumerReport, Load, PatternCounters};
pub use drive::{Stop, register, run_consumer, run_producer};
pub use error::TrafficError;
pub use latency::Latency;
pub use numbers::{Distribution, Numbers};
pub use pattern::{NumberKind, Pattern};
pub use payload::{Payload, Sizes};
pub use producer::{Producer, ProducerConfig, ProducerReport, Signature};
pub use register::Routes;
