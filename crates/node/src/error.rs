//! Reason why a node cannot start or go on.

use std::path::PathBuf;

use byname_io::{BindError, ConnectError, ErrorClass, IoError};
use thiserror::Error;

/// See the module. What happens to a single face is no error of the node.
#[derive(Debug, Error)]
pub enum NodeError {
    /// An endpoint cannot be listened on.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A multicast group cannot be joined.
    #[error(transparent)]
    Group(#[from] ConnectError),
    /// Waiting for sockets, or making the first of them, failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// More static routes than the forwarder may hold.
    #[error(transparent)]
    Routes(#[from] byname_forwarder::RibFull),
    /// A Unix socket cannot be opened to those who should have it.
    #[error("access to {}: {source}", path.display())]
    Access {
        /// The socket's file.
        path: PathBuf,
        /// Error of the kernel.
        source: std::io::Error,
    },
    /// The kernel gives no thread for a shard.
    #[error("no thread for a shard: {0}")]
    Thread(#[source] std::io::Error),
    /// The kernel gives no random numbers.
    #[error("no random numbers: {0}")]
    Random(#[source] std::io::Error),
}

impl NodeError {
    /// Advice to the caller.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Bind(error) => error.class(),
            Self::Group(error) => error.class(),
            Self::Io(error) => error.class(),
            Self::Routes(_) | Self::Access { .. } | Self::Random(_) | Self::Thread(_) => {
                ErrorClass::Permanent
            }
        }
    }
}
