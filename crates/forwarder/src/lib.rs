//! FIB, PIT, content store, strategies, scopes and management. Sans-I/O: packets in, actions out.
//!
//! [`Forwarder`] is a state machine without sockets, threads or clock. The driver reports
//! faces, packets and time; it answers through [`Tx`] within the same call. Given the same calls
//! and the same [`Config::seed`] it does the same.

pub mod counters;
pub mod face;
pub mod forwarder;
pub mod records;
pub mod rib;
pub mod shard;
pub mod strategy;

mod config;
mod content_store;
mod dead_nonce;
mod face_table;
mod hash;
mod hint;
mod management;
mod pipeline;
mod pit;
mod prefix_table;
mod rng;
mod scope;
mod slab;
#[cfg(test)]
mod testing;
mod trace;
mod tx;
mod wheel;

pub use byname_packet::mgmt::{CommandVerifier, Verdict};
pub use config::Config;
pub use content_store::CsPolicy;
pub use counters::{Counters, DropReason, Drops};
pub use face::{
    FaceCounters, FaceFailure, FaceId, FaceInfo, FaceOptions, FaceRequest, LinkType, Persistency,
    RequestId,
};
pub use forwarder::{Forwarder, Occupancy};
pub use rib::{NextHop, RibFull, Route};
pub use shard::{Change, Dispatcher, Figures, SHARDS_MAX, ShardPlace, Shards};
pub use trace::TracePolicy;
pub use tx::Tx;
