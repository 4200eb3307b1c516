//! One error enum per family of operations; each knows its class.
//!
//! Losing a datagram is no error: it is counted in the status of the call that met it.

mod errno;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::memif::MemifError;
use crate::port_owner::PortOwner;

/// Classes of errors, by what a caller can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// The same call may succeed later.
    Retryable,
    /// The same call will fail again until somebody changes something.
    Permanent,
    /// The peer sent what cannot be understood; the connection is of no further use.
    Corrupt,
}

/// Forms of a URI.
const EXPECTED: &str = "unix:///path, memif:///path, tcp://host[:port] or udp://host[:port]";

/// A URI that does not name an endpoint, or a host that has no usable address.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// No `scheme://`.
    #[error("`{uri}` is no URI: expected {EXPECTED}")]
    MissingScheme {
        /// The text given.
        uri: String,
    },
    /// A scheme this crate has no transport for.
    #[error("unknown scheme `{scheme}` (known: unix, memif, tcp, tcp4, tcp6, udp, udp4, udp6, ws)")]
    UnknownScheme {
        /// The text before `://`.
        scheme: String,
    },
    /// `unix://` without an absolute path.
    #[error("`{uri}` needs an absolute path, as in unix:///run/nfd/nfd.sock")]
    RelativePath {
        /// The text given.
        uri: String,
    },
    /// Something behind the question mark that means nothing, or is there twice.
    #[error("`{parameter}` is no parameter of memif: id=NUMBER and role=client|server are")]
    BadParameter {
        /// The text given.
        parameter: String,
    },
    /// A path that does not fit a socket address.
    #[error("socket path {path} is longer than {max} bytes", path = path.display())]
    PathTooLong {
        /// The path.
        path: PathBuf,
        /// The longest path the kernel takes.
        max: usize,
    },
    /// No host, or one with characters that no host name has.
    #[error("`{uri}` has no valid host (an IPv6 address goes into brackets)")]
    BadHost {
        /// The text given.
        uri: String,
    },
    /// A port that is not a number from 0 to 65535.
    #[error("`{port}` is no port number")]
    BadPort {
        /// The text after the last colon.
        port: String,
    },
    /// An IPv6 address behind `tcp4`, or the reverse.
    #[error("address {host} does not belong behind {scheme}://")]
    FamilyMismatch {
        /// The address.
        host: String,
        /// The scheme.
        scheme: String,
    },
    /// `*` where a peer has to be named.
    #[error("`*` means every address of this machine; name a host to connect to")]
    Wildcard,
    /// A multicast group without a network interface.
    #[error("`{uri}` is a multicast group: add the network interface, as in ?dev=eth0")]
    NoDevice {
        /// The text given.
        uri: String,
    },
    /// The resolver does not know the host.
    #[error("cannot resolve host {host}: {source}")]
    Unresolved {
        /// The host.
        host: String,
        /// The resolver's error.
        source: io::Error,
    },
    /// The host has addresses, but none of the family asked for.
    #[error("host {host} has no {family} address")]
    NoAddress {
        /// The host.
        host: String,
        /// `IPv4`, `IPv6` or `IP`.
        family: &'static str,
    },
    /// The endpoint is of a kind that the operation has no use for.
    #[error("{uri} cannot be used here: {wanted} expected")]
    WrongTransport {
        /// The endpoint.
        uri: String,
        /// The form that would have been right.
        wanted: &'static str,
    },
}

/// Why an endpoint could not be listened on.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The endpoint itself is unusable.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// Somebody is there already.
    #[error("{uri} is already in use{}", by(owner))]
    InUse {
        /// The endpoint asked for.
        uri: String,
        /// Who holds it, where that is visible to this user.
        owner: Option<PortOwner>,
    },
    /// The path exists and is not a socket; nothing is deleted.
    #[error("{path} exists and is not a socket", path = path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// This user may not.
    #[error("no permission to listen on {uri}: {source}")]
    Denied {
        /// The endpoint asked for.
        uri: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// Anything else the kernel refused.
    #[error("cannot listen on {uri}: {operation}: {source}")]
    Failed {
        /// The endpoint asked for.
        uri: String,
        /// The step that failed.
        operation: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

/// Why a connection could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The endpoint itself is unusable.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// Nobody listens there: no socket file, or the connection was refused.
    #[error("nobody listens on {uri}: {source}")]
    NobodyListens {
        /// The endpoint.
        uri: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// This user may not.
    #[error("no permission to connect to {uri}: {source}")]
    Denied {
        /// The endpoint.
        uri: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// No answer in time.
    #[error("{uri} did not answer within {timeout:?}")]
    TimedOut {
        /// The endpoint.
        uri: String,
        /// Time that was allowed.
        timeout: Duration,
    },
    /// Somebody listens, but the handshake failed.
    #[error("no connection to {uri}: {source}")]
    Handshake {
        /// The endpoint.
        uri: String,
        /// The cause.
        source: MemifError,
    },
    /// Anything else, for example no route to the host.
    #[error("cannot connect to {uri}: {source}")]
    Failed {
        /// The endpoint.
        uri: String,
        /// The kernel's error.
        source: io::Error,
    },
}

/// The end of a connection, or of a call on a poller or listener.
#[derive(Debug, thiserror::Error)]
pub enum IoError {
    /// The peer is gone without closing: reset, broken pipe, keep-alive ran out.
    #[error("connection lost: {source}")]
    Disconnected {
        /// The kernel's error.
        source: io::Error,
    },
    /// The framer refused what the peer sent.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The peer sent a longer frame than is allowed.
    #[error("peer sent a frame of at least {length} bytes, the limit is {max}")]
    FrameTooLarge {
        /// Its length as far as known.
        length: usize,
        /// The limit.
        max: usize,
    },
    /// A memif peer broke the protocol.
    #[error("memif: {0}")]
    Memif(#[source] MemifError),
    /// The process or the machine has no descriptors or memory left.
    #[error("{operation}: out of resources: {source}")]
    Exhausted {
        /// The system call.
        operation: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// Anything else the kernel refused.
    #[error("{operation}: {source}")]
    Failed {
        /// The system call.
        operation: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

/// The bytes are no frame and never become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a frame: {0}")]
pub struct FrameError(pub &'static str);

/// The send buffer has no room for the frame; nothing of it was queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "send buffer full: {queued_bytes} of {bytes_max} bytes wait, {frame_bytes} more do not fit"
)]
pub struct QueueFull {
    /// The frame that found no room.
    pub frame_bytes: usize,
    /// Bytes that wait.
    pub queued_bytes: usize,
    /// The limit.
    pub bytes_max: usize,
}

fn by(owner: &Option<PortOwner>) -> String {
    owner.as_ref().map(|owner| format!(" by {owner}")).unwrap_or_default()
}

impl EndpointError {
    /// A resolver may know the host later; a malformed URI stays one.
    pub fn class(&self) -> ErrorClass {
        match self {
            EndpointError::Unresolved { .. } => ErrorClass::Retryable,
            _ => ErrorClass::Permanent,
        }
    }
}

impl BindError {
    /// Never retryable by itself: somebody has to free the address or give the permission.
    pub fn class(&self) -> ErrorClass {
        match self {
            BindError::Endpoint(error) => error.class(),
            _ => ErrorClass::Permanent,
        }
    }
}

impl ConnectError {
    /// A peer that is not there may come; a missing permission does not.
    pub fn class(&self) -> ErrorClass {
        match self {
            ConnectError::Endpoint(error) => error.class(),
            ConnectError::Denied { .. } => ErrorClass::Permanent,
            _ => ErrorClass::Retryable,
        }
    }

    /// Sorts what the kernel said about connecting to `uri`.
    pub(crate) fn new(uri: String, timeout: Duration, source: io::Error) -> Self {
        use io::ErrorKind as Kind;
        match source.kind() {
            Kind::ConnectionRefused | Kind::NotFound => ConnectError::NobodyListens { uri, source },
            Kind::PermissionDenied => ConnectError::Denied { uri, source },
            Kind::TimedOut | Kind::WouldBlock => ConnectError::TimedOut { uri, timeout },
            _ => ConnectError::Failed { uri, source },
        }
    }
}

impl ConnectError {
    /// Sorts what happened in a memif handshake.
    pub(crate) fn of_memif(uri: String, timeout: Duration, source: MemifError) -> Self {
        match source {
            MemifError::TimedOut => ConnectError::TimedOut { uri, timeout },
            source => ConnectError::Handshake { uri, source },
        }
    }
}

impl IoError {
    /// Class of the error: try again, give up, or drop the peer.
    pub fn class(&self) -> ErrorClass {
        match self {
            IoError::Disconnected { .. } | IoError::Exhausted { .. } => ErrorClass::Retryable,
            IoError::Frame(_) | IoError::FrameTooLarge { .. } | IoError::Memif(_) => {
                ErrorClass::Corrupt
            }
            IoError::Failed { .. } => ErrorClass::Permanent,
        }
    }

    /// Sorts what the kernel said in `operation`.
    pub(crate) fn new(operation: &'static str, source: impl Into<io::Error>) -> Self {
        use io::ErrorKind as Kind;
        let source = source.into();
        match (source.kind(), source.raw_os_error()) {
            (Kind::ConnectionReset | Kind::BrokenPipe | Kind::TimedOut, _)
            | (Kind::HostUnreachable | Kind::NetworkUnreachable | Kind::NotConnected, _) => {
                IoError::Disconnected { source }
            }
            (_, Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM)) => {
                IoError::Exhausted { operation, source }
            }
            _ => IoError::Failed { operation, source },
        }
    }
}

impl From<MemifError> for IoError {
    fn from(error: MemifError) -> Self {
        match error {
            MemifError::Gone | MemifError::Refused { .. } => {
                IoError::Disconnected { source: io::ErrorKind::BrokenPipe.into() }
            }
            MemifError::Failed { operation, source } => IoError::new(operation, source),
            error => IoError::Memif(error),
        }
    }
}
