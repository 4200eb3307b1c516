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
mod lasting;
mod links;
mod marking;

pub use config::{NodeConfig, SocketAccess, StaticFace, StaticRoute};
pub use error::NodeError;
pub use file::ForwarderFile;
pub use metrics::Snapshot;
pub use node::{Changes, Control, ControlError, Node, Stop, is_strategy};
