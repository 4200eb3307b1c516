//! Keys, certificates and trust on disk, with the right permissions.
//!
//! Two directories: [`Keychain`] holds one's own private keys and their certificates,
//! [`TrustStore`] whose keys count for which names. Both are read without locks and changed under
//! one: a change writes whole files (or a whole directory) beside the old ones and renames them
//! into place, so a reader or a crash sees the state before or after, never between.
//!
//! A file that others could read (keys) or change (trust) is refused, not silently used.

mod errno;
mod files;
mod keychain;
mod trust_store;

pub use files::FileError;
pub use keychain::{
    Damage, Identity, Import, KeyInfo, Keychain, KeychainError, VALIDITY_S, default_validity,
};
pub use trust_store::{LineProblem, TrustStore, TrustStoreError, parse_trust};
