//! The errno of each error, for callers that know only numbers. A damaged file is EUCLEAN, as a
//! damaged file system is: it takes a person to put it right.

use rustix::io::Errno;

use crate::files::FileError;
use crate::keychain::KeychainError;
use crate::trust_store::TrustStoreError;

impl FileError {
    /// The errno for programs that know only numbers.
    pub fn errno(&self) -> i32 {
        match self {
            FileError::Io { source, .. } => {
                source.raw_os_error().unwrap_or(Errno::IO.raw_os_error())
            }
            FileError::TooOpen { .. } => Errno::ACCESS.raw_os_error(),
            FileError::TooLong { .. } | FileError::TooMany { .. } => Errno::FBIG.raw_os_error(),
        }
    }
}

impl KeychainError {
    /// The errno for programs that know only numbers.
    pub fn errno(&self) -> i32 {
        let number = match self {
            KeychainError::File(error) => return error.errno(),
            KeychainError::Damaged { .. } => Errno::UCLEAN,
            KeychainError::Import(_) | KeychainError::Nameless => Errno::INVAL,
            KeychainError::NotOurs { .. }
            | KeychainError::NoIdentity { .. }
            | KeychainError::NoSuchKey { .. } => Errno::NOKEY,
            KeychainError::Taken { .. } => Errno::EXIST,
            KeychainError::Key(_) | KeychainError::Issue(_) => Errno::IO,
        };
        number.raw_os_error()
    }
}

impl TrustStoreError {
    /// The errno for programs that know only numbers.
    pub fn errno(&self) -> i32 {
        match self {
            TrustStoreError::File(error) => error.errno(),
            TrustStoreError::NotText { .. } | TrustStoreError::Line { .. } => {
                Errno::UCLEAN.raw_os_error()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keychain::Damage;
    use crate::trust_store::LineProblem;
    use byname_packet::Name;
    use byname_security::cert::IssueError;
    use byname_security::key::{KeyError, KeyPair};
    use std::path::PathBuf;

    fn path() -> PathBuf {
        "keys".into()
    }

    fn file(number: Errno) -> FileError {
        let source = std::io::Error::from_raw_os_error(number.raw_os_error());
        FileError::Io { action: "open", path: path(), source }
    }

    #[test]
    fn files_keep_the_systems_number() {
        for (error, number) in [
            (file(Errno::ROFS), Errno::ROFS),
            (FileError::TooOpen { path: path(), mode: 0o644, fix: "go=" }, Errno::ACCESS),
            (FileError::TooLong { path: path(), max: 1 }, Errno::FBIG),
            (FileError::TooMany { path: path(), max: 1 }, Errno::FBIG),
        ] {
            assert_eq!(error.errno(), number.raw_os_error(), "{error}");
        }
    }

    #[test]
    fn every_error_of_a_keychain_has_its_number() {
        let name: Name = "/lab".parse().unwrap();
        let key_id = KeyPair::ed25519_from_seed(&[1; 32]).key_id();
        for (error, number) in [
            (KeychainError::File(file(Errno::ACCESS)), Errno::ACCESS),
            (KeychainError::Damaged { path: path(), damage: Damage::NotText }, Errno::UCLEAN),
            (KeychainError::Import(Damage::NotText), Errno::INVAL),
            (KeychainError::Nameless, Errno::INVAL),
            (KeychainError::NotOurs { name: name.clone() }, Errno::NOKEY),
            (KeychainError::NoIdentity { prefix: name.clone() }, Errno::NOKEY),
            (KeychainError::NoSuchKey { key_id }, Errno::NOKEY),
            (KeychainError::Taken { name }, Errno::EXIST),
            (KeychainError::Key(KeyError::Generate), Errno::IO),
            (KeychainError::Issue(IssueError::EmptyValidity), Errno::IO),
        ] {
            assert_eq!(error.errno(), number.raw_os_error(), "{error}");
        }
    }

    #[test]
    fn a_damaged_trust_store_is_told_from_an_unreadable_one() {
        let problem = LineProblem::Form { text: "x".into() };
        for (error, number) in [
            (TrustStoreError::File(file(Errno::IO)), Errno::IO),
            (TrustStoreError::NotText { path: path() }, Errno::UCLEAN),
            (TrustStoreError::Line { path: path(), line: 1, problem }, Errno::UCLEAN),
        ] {
            assert_eq!(error.errno(), number.raw_os_error(), "{error}");
        }
    }
}
