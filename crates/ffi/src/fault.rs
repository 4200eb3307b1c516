//! Reasons why a call of the interface failed, and how they reach the caller.
//!
//! What went wrong with a name, the network or the disk has the number that `byname-profile` gives
//! it. Misuse has numbers of its own kind here, and a text that names the argument.

use byname_access::{AccessError, MappingError};
use byname_client::ClientError;
use byname_profile::{ConfigError, LinkError, ProfileError, UnknownKey};
use byname_transfer::error::ErrorClass;
use byname_writer::WriterError;
use thiserror::Error;

use crate::abi;

const OWN_VERSION: u32 = abi::BYNAME_ABI_VERSION;

/// Why a call failed.
#[derive(Debug, Error)]
pub(crate) enum Fault {
    #[error("this is no {wanted}: it was never given by byname")]
    NoHandle { wanted: &'static str },
    #[error("this is a {given}, not a {wanted}")]
    OtherKind { wanted: &'static str, given: &'static str },
    #[error("there is no such {wanted}: it was closed, has ended, or never was")]
    Closed { wanted: &'static str },
    #[error("{argument} is NULL")]
    Null { argument: &'static str },
    #[error("{argument}.struct_size is {given}, less than the {least} of this interface")]
    StructSize { argument: &'static str, given: u32, least: usize },
    #[error("{argument} is {given}, which means nothing")]
    Unknown { argument: &'static str, given: u64 },
    #[error("{argument} is not UTF-8")]
    NotText { argument: &'static str },
    #[error("{argument} is no list of entries, such as u:anna:r-x,g::r-x")]
    NotAcl { argument: &'static str },
    #[error("{given:?} in a path leads out of it")]
    Dots { given: String },
    #[error("{what} has {bytes} octets, more than {max}")]
    TooLong { what: &'static str, bytes: usize, max: usize },
    #[error("{count} ranges in one call, more than {max}")]
    Ranges { count: u64, max: u64 },
    #[error("a buffer of {bytes} octets cannot exist")]
    Buffer { bytes: u64 },
    #[error("the text has {given} octets, this entry alone needs {needed}")]
    TextRoom { given: u64, needed: u64 },
    #[error("{name}: not in this listing")]
    NoEntry { name: String },
    #[error("too many open: no place for one more {what}")]
    TooMany { what: &'static str },
    #[error("the open listings of this session have more than {max} octets")]
    ListingBytes { max: u64 },
    #[error("more than {max} started calls have not ended")]
    TooManyCalls { max: u64 },
    #[error("a session cannot be closed from a call-back of its own")]
    CloseFromDone,
    #[error(
        "this program was built for version {}.{} of the interface, the library has {}.{}",
        .given >> 16, .given & 0xffff, OWN_VERSION >> 16, OWN_VERSION & 0xffff
    )]
    AbiVersion { given: u32 },
    #[error("byname was used before fork(): the child has none of its threads")]
    Forked,
    #[error("the call was cancelled")]
    Cancelled,
    #[error("no thread for call-backs: {0}")]
    Thread(std::io::Error),
    #[error("local_file is no open file: {error}")]
    Descriptor { error: std::io::Error },
    #[error("a bug of byname: {message}")]
    Panic { message: String },
    #[error("{method} {name} is nobody at this door: {reason}")]
    Nobody { method: String, name: String, reason: String },
    #[error(transparent)]
    Table(MappingError),
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Client(ClientError),
    #[error(transparent)]
    Access(AccessError),
}

impl From<AccessError> for Fault {
    fn from(error: AccessError) -> Self {
        let is_stopped = match &error {
            AccessError::Stopped => true,
            AccessError::Write { source, .. } => matches!(**source, WriterError::Stopped),
            AccessError::Read { source, .. } => matches!(**source, ClientError::Interrupted),
            _ => false,
        };
        // As of a read: the session is being closed.
        if is_stopped { Fault::Cancelled } else { Fault::Access(error) }
    }
}

impl From<ClientError> for Fault {
    fn from(error: ClientError) -> Self {
        match error {
            // A session stops its calls for one reason alone: it is being closed.
            ClientError::Interrupted => Fault::Cancelled,
            error => Fault::Client(error),
        }
    }
}

impl From<ConfigError> for Fault {
    fn from(error: ConfigError) -> Self {
        Fault::Profile(error.into())
    }
}

impl From<LinkError> for Fault {
    fn from(error: LinkError) -> Self {
        Fault::Profile(error.into())
    }
}

impl Fault {
    /// The number: an errno, or that of a bug.
    pub(crate) fn code(&self) -> i32 {
        match self {
            Fault::NoHandle { .. } | Fault::OtherKind { .. } | Fault::Closed { .. } => libc::EBADF,
            Fault::Null { .. }
            | Fault::StructSize { .. }
            | Fault::Unknown { .. }
            | Fault::NotText { .. }
            | Fault::NotAcl { .. }
            | Fault::Dots { .. }
            | Fault::Ranges { .. }
            | Fault::Buffer { .. } => libc::EINVAL,
            Fault::Nobody { .. } => libc::EACCES,
            Fault::Table(MappingError::Unreadable { source, .. }) => {
                source.raw_os_error().unwrap_or(libc::EIO)
            }
            Fault::Table(_) => libc::EINVAL,
            Fault::TooLong { .. } => libc::ENAMETOOLONG,
            Fault::NoEntry { .. } => libc::ENOENT,
            Fault::TextRoom { .. } => libc::ERANGE,
            Fault::TooMany { .. } => libc::EMFILE,
            Fault::ListingBytes { .. } => libc::ENOMEM,
            Fault::TooManyCalls { .. } => libc::EAGAIN,
            Fault::CloseFromDone => libc::EDEADLK,
            Fault::AbiVersion { .. } | Fault::Forked => libc::ENOTSUP,
            Fault::Cancelled => libc::ECANCELED,
            Fault::Thread(error) => error.raw_os_error().unwrap_or(libc::EAGAIN),
            Fault::Descriptor { error } => error.raw_os_error().unwrap_or(libc::EBADF),
            Fault::Panic { .. } => abi::BYNAME_EINTERNAL,
            Fault::Profile(error) => error.errno(),
            Fault::Client(error) => error.errno(),
            Fault::Access(error) => error.errno(),
        }
    }

    /// BYNAME_CLASS_*.
    pub(crate) fn class(&self) -> u32 {
        match self {
            Fault::NoHandle { .. }
            | Fault::OtherKind { .. }
            | Fault::Closed { .. }
            | Fault::Null { .. }
            | Fault::StructSize { .. }
            | Fault::Unknown { .. }
            | Fault::NotText { .. }
            | Fault::NotAcl { .. }
            | Fault::Dots { .. }
            | Fault::Ranges { .. }
            | Fault::Buffer { .. }
            | Fault::TextRoom { .. }
            | Fault::CloseFromDone
            | Fault::Descriptor { .. }
            | Fault::AbiVersion { .. }
            | Fault::Forked => abi::BYNAME_CLASS_MISUSE,
            Fault::TooLong { .. }
            | Fault::NoEntry { .. }
            | Fault::Nobody { .. }
            | Fault::Table(_) => abi::BYNAME_CLASS_PERMANENT,
            Fault::TooMany { .. }
            | Fault::ListingBytes { .. }
            | Fault::TooManyCalls { .. }
            | Fault::Cancelled
            | Fault::Thread(_) => abi::BYNAME_CLASS_RETRYABLE,
            Fault::Panic { .. } => abi::BYNAME_CLASS_INTERNAL,
            Fault::Profile(ProfileError::Client(error)) | Fault::Client(error) => of(error.class()),
            Fault::Profile(_) => abi::BYNAME_CLASS_PERMANENT,
            Fault::Access(AccessError::Read { source, .. }) => of(source.class()),
            Fault::Access(error) if error.is_retryable() => abi::BYNAME_CLASS_RETRYABLE,
            Fault::Access(_) => abi::BYNAME_CLASS_PERMANENT,
        }
    }

    /// The text: what went wrong, and for a key that is not trusted what to do about it.
    pub(crate) fn message(&self) -> String {
        if let Fault::Access(error) = self {
            return of_access(error);
        }
        let unknown = match self {
            Fault::Client(error) | Fault::Profile(ProfileError::Client(error)) => {
                UnknownKey::of(error)
            }
            _ => None,
        };
        unknown.map_or_else(|| self.to_string(), |key| key.to_string())
    }
}

/// The text of an error at a site, with what to do about a key that is missing.
fn of_access(error: &AccessError) -> String {
    match error {
        AccessError::NoKey { .. } | AccessError::NoSiteAbove { .. } => {
            format!("{error}; make one: byname site join LINK")
        }
        AccessError::Untrusted { .. } => {
            format!("{error}; trust the site's key: byname trust add LINK")
        }
        error => error.to_string(),
    }
}

fn of(class: ErrorClass) -> u32 {
    match class {
        ErrorClass::Retryable => abi::BYNAME_CLASS_RETRYABLE,
        ErrorClass::Permanent => abi::BYNAME_CLASS_PERMANENT,
        ErrorClass::Corrupt => abi::BYNAME_CLASS_CORRUPT,
    }
}
