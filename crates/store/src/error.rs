//! Why the file server cannot start or go on.

use std::path::PathBuf;

use byname_io::{BindError, ConnectError, IoError};
use byname_packet::{DecodeError, Name};

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
    /// The forwarder did not take the prefix.
    #[error(transparent)]
    Register(#[from] RegisterError),
}

/// Why a forwarder does not send Interests for a prefix here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// It refused.
    #[error(
        "the forwarder refused to register {prefix}: {code} {text}{}",
        refusal_hint(*code, *is_local)
    )]
    Refused {
        /// The prefix.
        prefix: Name,
        /// Status code of the answer.
        code: u64,
        /// Status text of the answer.
        text: String,
        /// Whether the command went over a local face.
        is_local: bool,
    },
    /// It did not answer.
    #[error(
        "the forwarder did not answer the command to register {prefix}{}",
        silence_hint(*is_local)
    )]
    Silent {
        /// The prefix.
        prefix: Name,
        /// Whether the command went over a local face.
        is_local: bool,
    },
    /// It has no management.
    #[error("the forwarder has no management that could register {prefix} (Nack reason {reason})")]
    NoManagement {
        /// The prefix.
        prefix: Name,
        /// Reason of the Nack.
        reason: u64,
    },
}

fn refusal_hint(code: u64, is_local: bool) -> &'static str {
    match (code, is_local) {
        (401 | 403, true) => {
            "; allow it in the forwarder's configuration (NFD: authorizations, localhost_security)"
        }
        (401 | 403, false) => {
            "; with NFD, localhop_security says who may; with byname, --allow-register"
        }
        (414, _) => "; the prefix has too many components for this forwarder",
        _ => "",
    }
}

fn silence_hint(is_local: bool) -> &'static str {
    match is_local {
        true => "; is that socket a forwarder's?",
        false => "; a remote forwarder must accept /localhop/nfd/rib commands from this host",
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
