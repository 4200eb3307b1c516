//! Reasons why something was not written.

use crate::asks::Heard;
use std::io;
use std::path::PathBuf;

use byname_catalog::Refusal;
use byname_face::{FaceError, RegisterError};
use byname_io::IoError;
use byname_packet::{DecodeError, SignError};
use byname_site::{DiskName, DiskRefusal, HeadFailure, Untrusted};

/// Reason why something was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriterError {
    /// The catalog refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The head could not execute the command.
    #[error("the head: {failure}{}{reason}", if reason.is_empty() { "" } else { ": " })]
    Head {
        /// The kind of failure.
        failure: HeadFailure,
        /// More, if the head said more.
        reason: String,
    },
    /// Nobody answered.
    #[error("no answer to {what} within {} s: {heard}", waited_ms / 1000)]
    NoAnswer {
        /// The command or order.
        what: &'static str,
        /// Time waited.
        waited_ms: u64,
        /// What came last.
        heard: Heard,
    },
    /// Nobody has registered the site's name.
    #[error("no route to the site: is its head running, and attached to this network?")]
    NoRoute,
    /// An answer of the head is not signed by the site's key.
    #[error("an answer does not verify: {0}")]
    Untrusted(#[from] Untrusted),
    /// An answer is malformed, or none to what was asked.
    #[error("an answer is malformed: {0}")]
    Malformed(#[from] DecodeError),
    /// The answer is none to what was asked.
    #[error("the head answered something else than was asked")]
    OtherAnswer,
    /// Fewer disks than necessary took the content.
    #[error("disk {} at {}: {refusal}", disk.id.0, disk.place)]
    Disk {
        /// The last one that did not.
        disk: DiskName,
        /// Why.
        refusal: DiskRefusal,
    },
    /// Fewer disks than necessary answered.
    #[error("disk {} at {} does not answer", disk.id.0, disk.place)]
    SilentDisk {
        /// The last one that did not.
        disk: DiskName,
    },
    /// The local file is another one now.
    #[error("{} changed while it was written", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The local file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Local {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something could not be signed, or fits no packet.
    #[error("cannot be sent: {0}")]
    Sign(#[from] SignError),
    /// The connection failed.
    #[error(transparent)]
    Face(#[from] FaceError),
    /// It was told to stop.
    #[error("interrupted")]
    Stopped,
}

impl WriterError {
    /// True if no other file would come through either.
    pub fn ends_all(&self) -> bool {
        match self {
            Self::Refused(refusal) => matches!(
                refusal,
                Refusal::UnknownUser
                    | Refusal::UnknownSession
                    | Refusal::NotYourSession
                    | Refusal::TooManySessions
            ),
            Self::Head { .. }
            | Self::NoAnswer { .. }
            | Self::NoRoute
            | Self::Untrusted(_)
            | Self::Face(_)
            | Self::Stopped => true,
            Self::Malformed(_)
            | Self::OtherAnswer
            | Self::Disk { .. }
            | Self::SilentDisk { .. }
            | Self::Changed { .. }
            | Self::Local { .. }
            | Self::Sign(_) => false,
        }
    }
}

impl From<IoError> for WriterError {
    fn from(error: IoError) -> Self {
        Self::Face(error.into())
    }
}

impl From<RegisterError> for WriterError {
    fn from(error: RegisterError) -> Self {
        Self::Face(error.into())
    }
}
