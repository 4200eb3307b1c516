//! The wire format as others see it: golden packets, packets of real peers, and hostile input.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic like tests")]

mod hostile;
mod peers;
mod properties;
// The fuzz targets of this crate and what they share; the fuzzer itself is in fuzz/.
#[path = "../../../../fuzz/replay/src/rebuild.rs"]
mod rebuild;
mod shown;
mod vectors;
#[path = "../../../../fuzz/replay/src/wire.rs"]
mod wire;
