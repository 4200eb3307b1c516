//! Pauses between attempts: bounds, doubling, jitter.
//!
//! Jitter keeps those who met the same trouble at the same moment from coming back at the same
//! moment. Random numbers are arguments, or come from a generator with a seed: equal seeds give
//! equal pauses.

mod back_off;
mod jitter;

pub use back_off::BackOff;
pub use jitter::{Jitter, jittered, jittered_above};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
