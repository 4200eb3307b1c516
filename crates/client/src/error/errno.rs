//! The errno of each error, for callers that know only numbers: the C ABI, FUSE, XRootD.
//!
//! README.md has the table. No match has a catch-all, so a new variant does not compile without a
//! number. What does not verify is EIO: every program expects it of a read and gives up, as it
//! must. A key that nobody has said to trust is ENOKEY, so that it is not taken for the publisher
//! refusing (EACCES); the kernel says the same of encrypted files.

use byname_security::trust::TrustError;
use byname_transfer::error::{ProtocolProblem, ReadError, ServerReason};
use rustix::io::Errno;

use super::{ClientError, Limit};

impl ClientError {
    /// The errno for programs that know only numbers.
    pub fn errno(&self) -> i32 {
        let number = match self {
            ClientError::Read(error) => of_read(error),
            ClientError::NoForwarder { tried } => return tried.telling().errno(),
            ClientError::NoEndpoint => Errno::HOSTUNREACH,
            ClientError::Unreachable { .. } => Errno::CONNREFUSED,
            ClientError::Disconnected { .. } => Errno::CONNRESET,
            ClientError::Io(error) => return error.errno(),
            ClientError::LocalDisk { source, .. }
            | ClientError::Output(source)
            | ClientError::Thread(source) => return of_io(source),
            ClientError::InTheWay { .. } | ClientError::Exists { .. } => Errno::EXIST,
            ClientError::Busy { .. } => Errno::BUSY,
            ClientError::KeepsChanging { .. } => Errno::STALE,
            ClientError::NoProgress { .. } => Errno::TIMEDOUT,
            ClientError::ListingTooLarge { .. } => Errno::FBIG,
            ClientError::TooMany { what: Limit::OpenFiles, .. } => Errno::MFILE,
            ClientError::TooMany { what: Limit::Ranges, .. } => Errno::INVAL,
            ClientError::OtherClient => Errno::BADF,
            ClientError::Interrupted => Errno::INTR,
        };
        number.raw_os_error()
    }
}

fn of_read(error: &ReadError) -> Errno {
    match error {
        ReadError::NotFound { .. } => Errno::NOENT,
        ReadError::NoRoute { .. } => Errno::HOSTUNREACH,
        ReadError::TimeOut { .. } | ReadError::RootPending { .. } | ReadError::NotFresh { .. } => {
            Errno::TIMEDOUT
        }
        ReadError::VersionGone { .. } => Errno::STALE,
        ReadError::BeingWritten { .. } | ReadError::BeingListed { .. } => Errno::BUSY,
        ReadError::NoPermission { .. } => Errno::ACCESS,
        ReadError::Unservable { reason, .. } => match reason {
            ServerReason::ListingTooLarge => Errno::FBIG,
            ServerReason::NameTooLong => Errno::NAMETOOLONG,
            ServerReason::Unreadable { .. } => Errno::REMOTEIO,
        },
        ReadError::Trust(error) => of_trust(error),
        ReadError::RolledBack { .. }
        | ReadError::BadUnit { .. }
        | ReadError::BadNode { .. }
        | ReadError::Manifest { .. } => Errno::IO,
        ReadError::Protocol { problem, .. } => match problem {
            ProtocolProblem::Kind { is_directory: true } => Errno::ISDIR,
            ProtocolProblem::Kind { is_directory: false } => Errno::NOTDIR,
            ProtocolProblem::Link { .. } => Errno::LOOP,
            ProtocolProblem::Announcement(_)
            | ProtocolProblem::OtherName { .. }
            | ProtocolProblem::Incomplete
            | ProtocolProblem::SegmentSize { .. }
            | ProtocolProblem::SegmentLength { .. }
            | ProtocolProblem::EndMoved
            | ProtocolProblem::Listing => Errno::IO,
        },
    }
}

fn of_trust(error: &TrustError) -> Errno {
    match error {
        TrustError::UnknownKey { .. }
        | TrustError::KeyMismatch { .. }
        | TrustError::OutsideAnchor { .. }
        | TrustError::NoCertificate { .. } => Errno::NOKEY,
        TrustError::Expired { .. } => Errno::KEYEXPIRED,
        TrustError::NotYetValid { .. } | TrustError::Unvouched { .. } => Errno::KEYREJECTED,
        TrustError::Revoked { .. } => Errno::KEYREVOKED,
        TrustError::NotUnder { .. }
        | TrustError::BadSignature { .. }
        | TrustError::BadDigest { .. }
        | TrustError::Unsigned { .. }
        | TrustError::NoKeyLocator { .. }
        | TrustError::UnsupportedSignature { .. }
        | TrustError::ChainTooLong { .. }
        | TrustError::MalformedCertificate { .. } => Errno::IO,
    }
}

/// The system's own number, or EIO for an error that no system call made.
fn of_io(error: &std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(Errno::IO.raw_os_error())
}

#[cfg(test)]
mod tests;
