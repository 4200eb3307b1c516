//! Why a client call failed.

mod errno;
mod refusals;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use byname_io::IoError;
use byname_packet::Name;
use byname_transfer::error::{ErrorClass, ReadError};
use thiserror::Error;

pub use refusals::Refusals;

/// Why a client call failed.
#[derive(Debug, Error)]
pub enum ClientError {
    /// A name could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// No endpoint could be connected to.
    #[error("no forwarder answers: {tried}")]
    NoForwarder {
        /// The endpoints, in the order tried, each with its cause.
        tried: Refusals,
    },
    /// There is nowhere to look for a forwarder.
    #[error("no forwarder is named")]
    NoEndpoint,
    /// The other machine says that nobody listens there.
    #[error("nobody listens on {endpoint}")]
    Unreachable {
        /// The endpoint.
        endpoint: String,
    },
    /// The forwarder went away and did not come back in time.
    #[error("the connection to {endpoint} was lost")]
    Disconnected {
        /// The endpoint.
        endpoint: String,
        /// Error that ended the connection, if it did not just close.
        source: Option<IoError>,
    },
    /// The operating system refused something that is not about files.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The local disk: full, no permission, name too long, and so on.
    #[error("{}: {source}", path.display())]
    LocalDisk {
        /// The file or directory.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The receiver of the bytes does not take them.
    #[error("cannot write the output: {0}")]
    Output(std::io::Error),
    /// Something that is no ordinary file stands in the way.
    #[error("{}: {obstacle} is in the way", path.display())]
    InTheWay {
        /// The path.
        path: PathBuf,
        /// The obstacle.
        obstacle: &'static str,
    },
    /// Another run fetches to the same target.
    #[error("{}: another byname is fetching this file", path.display())]
    Busy {
        /// The part file.
        path: PathBuf,
    },
    /// The target exists and must not be replaced.
    #[error("{}: exists already", path.display())]
    Exists {
        /// The target.
        path: PathBuf,
    },
    /// Versions follow each other faster than one can be read.
    #[error("{name} keeps changing: {versions} versions in one transfer")]
    KeepsChanging {
        /// The name.
        name: Name,
        /// Versions that were begun.
        versions: u32,
    },
    /// Answers come, but for too long nothing new was verified.
    #[error("{name}: no progress for {} s", after.as_secs())]
    NoProgress {
        /// The name.
        name: Name,
        /// For how long.
        after: Duration,
    },
    /// A listing is larger than this client takes.
    #[error("{name}: the listing has {bytes} bytes, more than {max}")]
    ListingTooLarge {
        /// The directory.
        name: Name,
        /// Its size.
        bytes: u64,
        /// The limit.
        max: u64,
    },
    /// A limit of this library is reached.
    #[error("more than {max} {what}")]
    TooMany {
        /// Of what.
        what: Limit,
        /// The limit.
        max: usize,
    },
    /// The system gives no thread.
    #[error("no thread for the client: {0}")]
    Thread(std::io::Error),
    /// The file was opened by another client.
    #[error("the file was opened by another client")]
    OtherClient,
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// A limit of this library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Files open at a time.
    OpenFiles,
    /// Ranges in one call.
    Ranges,
}

impl fmt::Display for Limit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Limit::OpenFiles => "open files",
            Limit::Ranges => "ranges in one call",
        })
    }
}

impl ClientError {
    /// The same error for one more caller, if it is one that ends all calls.
    pub(crate) fn repeated(&self) -> Option<Self> {
        match self {
            ClientError::Unreachable { endpoint } => {
                Some(ClientError::Unreachable { endpoint: endpoint.clone() })
            }
            ClientError::Disconnected { endpoint, .. } => {
                Some(ClientError::Disconnected { endpoint: endpoint.clone(), source: None })
            }
            ClientError::Interrupted => Some(ClientError::Interrupted),
            _ => None,
        }
    }

    /// Class of the error, by the remedy open to the caller.
    pub fn class(&self) -> ErrorClass {
        match self {
            ClientError::Read(error) => error.class(),
            ClientError::NoForwarder { .. }
            | ClientError::Unreachable { .. }
            | ClientError::Disconnected { .. }
            | ClientError::Busy { .. }
            | ClientError::KeepsChanging { .. }
            | ClientError::NoProgress { .. }
            | ClientError::Interrupted => ErrorClass::Retryable,
            ClientError::NoEndpoint
            | ClientError::Io(_)
            | ClientError::LocalDisk { .. }
            | ClientError::Output(_)
            | ClientError::InTheWay { .. }
            | ClientError::Exists { .. }
            | ClientError::TooMany { .. }
            | ClientError::OtherClient
            | ClientError::Thread(_)
            | ClientError::ListingTooLarge { .. } => ErrorClass::Permanent,
        }
    }
}
