//! Numbers for callers that know nothing else. A socket that is not there is ECONNREFUSED, never
//! ENOENT: that would speak of the file somebody asked for.

use std::io;

use crate::error::{ConnectError, EndpointError, IoError};

impl EndpointError {
    /// The errno for programs that know only numbers.
    pub fn errno(&self) -> i32 {
        match self {
            EndpointError::MissingScheme { .. }
            | EndpointError::UnknownScheme { .. }
            | EndpointError::RelativePath { .. }
            | EndpointError::BadParameter { .. }
            | EndpointError::PathTooLong { .. }
            | EndpointError::BadHost { .. }
            | EndpointError::BadPort { .. }
            | EndpointError::FamilyMismatch { .. }
            | EndpointError::Wildcard
            | EndpointError::NoDevice { .. }
            | EndpointError::WrongTransport { .. } => libc::EINVAL,
            EndpointError::Unresolved { .. } | EndpointError::NoAddress { .. } => {
                libc::EHOSTUNREACH
            }
        }
    }
}

impl ConnectError {
    /// The errno for programs that know only numbers.
    pub fn errno(&self) -> i32 {
        match self {
            ConnectError::Endpoint(error) => error.errno(),
            ConnectError::NobodyListens { .. } => libc::ECONNREFUSED,
            ConnectError::Denied { .. } => libc::EACCES,
            ConnectError::TimedOut { .. } => libc::ETIMEDOUT,
            ConnectError::Handshake { .. } => libc::EPROTO,
            ConnectError::Failed { source, .. } => of_io(source),
        }
    }
}

impl IoError {
    /// The errno for programs that know only numbers.
    pub fn errno(&self) -> i32 {
        match self {
            IoError::Disconnected { .. } => libc::ECONNRESET,
            IoError::Frame(_) | IoError::FrameTooLarge { .. } | IoError::Memif(_) => libc::EPROTO,
            IoError::Exhausted { source, .. } | IoError::Failed { source, .. } => of_io(source),
        }
    }
}

/// The system's own number, or EIO for an error that no system call made.
fn of_io(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_is_missing_is_no_missing_file() {
        let error = |number| {
            let source = io::Error::from_raw_os_error(number);
            ConnectError::new("unix:///x".into(), std::time::Duration::ZERO, source).errno()
        };
        assert_eq!(error(libc::ENOENT), libc::ECONNREFUSED);
        assert_eq!(error(libc::ECONNREFUSED), libc::ECONNREFUSED);
        assert_eq!(error(libc::EACCES), libc::EACCES);
        assert_eq!(error(libc::ETIMEDOUT), libc::ETIMEDOUT);
        assert_eq!(error(libc::ENETUNREACH), libc::ENETUNREACH);
        assert_eq!("tcp://".parse::<crate::Endpoint>().unwrap_err().errno(), libc::EINVAL);
    }

    #[test]
    fn a_lost_connection_and_a_peer_that_babbles() {
        let lost = IoError::Disconnected { source: io::ErrorKind::BrokenPipe.into() };
        assert_eq!(lost.errno(), libc::ECONNRESET);
        assert_eq!(IoError::FrameTooLarge { length: 2, max: 1 }.errno(), libc::EPROTO);
        let full = io::Error::from_raw_os_error(libc::EMFILE);
        assert_eq!(IoError::new("socket", full).errno(), libc::EMFILE);
    }
}
