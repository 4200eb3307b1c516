//! Why a face cannot send or go on, and why a forwarder sends no Interests for a prefix.

use byname_io::{IoError, QueueFull};
use byname_link::SendError;
use byname_packet::{Name, SignError};

/// A failure of a face.
#[derive(Debug, thiserror::Error)]
pub enum FaceError {
    /// A packet does not fit the link.
    #[error(transparent)]
    Link(#[from] SendError),
    /// There is no room for a packet.
    #[error(transparent)]
    Full(#[from] QueueFull),
    /// The connection failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The forwarder closed the connection.
    #[error("the forwarder closed the connection")]
    Closed,
    /// The forwarder did not take a prefix.
    #[error(transparent)]
    Register(#[from] RegisterError),
}

/// Why a forwarder sends no Interests for a prefix.
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
        /// True if the command went over a local face.
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
        /// True if the command went over a local face.
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
    /// The command could not be signed.
    #[error("the command to register {prefix} could not be signed: {source}")]
    Sign {
        /// The prefix.
        prefix: Name,
        /// Why.
        source: SignError,
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
