//! Why the file server cannot start or go on.

use std::path::{Path, PathBuf};

use byname_face::RegisterError;
use byname_io::{BindError, ConnectError, IoError};
use byname_packet::DecodeError;

/// A failure of the file server.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// A published directory cannot be used.
    #[error("cannot publish {}: {source}", directory.display())]
    Mount {
        /// The directory.
        directory: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A mount's name has typed components.
    #[error("cannot publish under {prefix}: every component of a mount's name must be generic")]
    Prefix {
        /// The name.
        prefix: String,
    },
    /// A packet to be served is none.
    #[error("not a Data packet: {0}")]
    Certificate(#[source] DecodeError),
    /// The first connection failed.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// It cannot listen there.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// Threads, descriptors or the poller could not be made.
    #[error(transparent)]
    Io(#[from] IoError),
    /// A worker thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] std::io::Error),
    /// The system gives out no more watches.
    #[error("cannot watch directories: {0}")]
    Watch(#[source] std::io::Error),
    /// The forwarder did not take the prefix.
    #[error(transparent)]
    Register(#[from] RegisterError),
}

impl StoreError {
    /// True if there is no room for what must be kept.
    pub fn is_no_room(&self) -> bool {
        let source = match self {
            Self::State(StateError::File { source, .. }) => source,
            Self::State(StateError::Records { source, .. }) => match &**source {
                redb::Error::Io(source) => source,
                _ => return false,
            },
            _ => return false,
        };
        matches!(source.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
    }
}

/// Why a state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Another server uses it.
    #[error("{} is in use by another file server{}", directory.display(), holder(*pid))]
    Locked {
        /// The directory.
        directory: PathBuf,
        /// The other process, if it said.
        pid: Option<u32>,
    },
    /// A file in it cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The records cannot be read or written.
    #[error("{}: {source}", path.display())]
    Records {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<redb::Error>,
    },
}

fn holder(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}

/// Names the file that an error of the disk is about.
pub(crate) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> StateError {
    let path = path.to_path_buf();
    move |source| StateError::File { path, source }
}
