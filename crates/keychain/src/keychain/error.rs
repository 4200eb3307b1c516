//! Errors of a keychain.

use std::path::PathBuf;

use byname_packet::{Name, UriError};
use byname_security::base64::Base64Error;
use byname_security::cert::{CertificateError, IssueError};
use byname_security::key::{KeyError, KeyId};
use thiserror::Error;

use crate::files::FileError;

/// A failed keychain operation.
#[derive(Debug, Error)]
pub enum KeychainError {
    /// A file or directory cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file does not hold what its place says.
    #[error("{} is damaged: {damage}", path.display())]
    Damaged {
        /// The file or directory.
        path: PathBuf,
        /// The damage.
        damage: Damage,
    },
    /// A text given to be imported is no certificate.
    #[error("not a certificate: {0}")]
    Import(Damage),
    /// The certificate is of a key that is not in this keychain.
    #[error("{name} is the certificate of a key that is not in this keychain")]
    NotOurs {
        /// The certificate's name.
        name: Name,
    },
    /// Another key has this name.
    #[error("another key named {name} is in this keychain already")]
    Taken {
        /// The name.
        name: Name,
    },
    /// A private key came without name and certificate.
    #[error("a private key came without a certificate or a name")]
    Nameless,
    /// There is no usable key for this name.
    #[error("there is no key for {prefix}; run: byname key generate {prefix}")]
    NoIdentity {
        /// The identity asked for.
        prefix: Name,
    },
    /// There is no such key.
    #[error("key {key_id} is not in this keychain")]
    NoSuchKey {
        /// The key asked for.
        key_id: KeyId,
    },
    /// A key could not be made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A certificate could not be made.
    #[error(transparent)]
    Issue(#[from] IssueError),
}

/// Damage of the content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Damage {
    /// It should be text.
    #[error("it is not text")]
    NotText,
    /// It should hold a name.
    #[error("{0}")]
    Name(#[from] UriError),
    /// It should name a key in hexadecimal.
    #[error("{text:?} is no key id component in hexadecimal")]
    Component {
        /// The text found.
        text: String,
    },
    /// The folder lacks a file.
    #[error("the file {file} is missing")]
    Missing {
        /// The file's name.
        file: String,
    },
    /// The current key has no certificate.
    #[error("the current key has no certificate")]
    NoCertificate,
    /// It should hold a private key.
    #[error("{0}")]
    Key(#[from] KeyError),
    /// It should be named as a key.
    #[error("{name} is no key name: it does not end in /KEY/<keyId>")]
    KeyName {
        /// The name found.
        name: Name,
    },
    /// It should be base64.
    #[error("{0}")]
    Base64(#[from] Base64Error),
    /// A certificate is not signed by the key that it names as its issuer.
    #[error("the certificate {name} was altered or forged: its own key did not sign it")]
    Forged {
        /// The certificate.
        name: Name,
    },
    /// It should hold a certificate.
    #[error("{0}")]
    Certificate(#[from] CertificateError),
}
