//! Errors of opening a link.

use byname_client::ClientError;
use byname_io::EndpointError;
use byname_keychain::{KeychainError, TrustStoreError};
use thiserror::Error;

use crate::link::LinkError;
use crate::paths::PathsError;
use crate::remotes::RemoteError;
use crate::seen::SeenError;
use crate::settings::ConfigError;

/// A link that could not be opened.
#[derive(Debug, Error)]
pub enum ProfileError {
    /// The text is no link and no name.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// There is no such bookmark, or they cannot be read.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The configuration has a mistake.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The address of a forwarder cannot be used.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The directory for sockets cannot be used.
    #[error(transparent)]
    Paths(#[from] PathsError),
    /// The user's own keys cannot be used.
    #[error(transparent)]
    Keychain(#[from] KeychainError),
    /// The keys that are trusted cannot be read or changed.
    #[error(transparent)]
    TrustStore(#[from] TrustStoreError),
    /// The versions seen cannot be read or kept.
    #[error(transparent)]
    Seen(#[from] SeenError),
    /// No forwarder can be used, or what it answered cannot.
    #[error(transparent)]
    Client(#[from] ClientError),
}

impl ProfileError {
    /// The errno for programs that know only numbers; README.md has the table.
    pub fn errno(&self) -> i32 {
        match self {
            ProfileError::Link(error) => error.errno(),
            ProfileError::Remote(error) => error.errno(),
            ProfileError::Config(error) => error.errno(),
            ProfileError::Endpoint(error) => error.errno(),
            ProfileError::Paths(error) => error.errno(),
            ProfileError::Keychain(error) => error.errno(),
            ProfileError::TrustStore(error) => error.errno(),
            ProfileError::Seen(error) => error.errno(),
            ProfileError::Client(error) => error.errno(),
        }
    }
}
