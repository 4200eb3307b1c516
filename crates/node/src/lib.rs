//! The forwarder daemon: drives the forwarder over io.
//!
//! One thread owns everything: it waits for sockets, hands what comes to `link` and `forwarder`,
//! and writes what they answer. Only connecting, which may ask a name server and block, happens on
//! short-lived helper threads.

pub mod config;
pub mod error;
pub mod file;
pub mod metrics;
pub mod node;
mod shards;

mod connector;
mod control;
mod gather;
mod lasting;
mod links;
mod marking;
mod pending_face;
mod strategies;

pub use config::{Changes, NodeConfig, SocketAccess, StaticFace, StaticRoute};
pub use control::{Control, ControlError};
pub use error::NodeError;
pub use file::ForwarderFile;
pub use metrics::Snapshot;
pub use node::{Node, Stop};
pub use strategies::{is_strategy, strategy_labels};
