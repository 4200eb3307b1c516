//! The seam between the file server and whoever has the files.
//!
//! A back-end resolves paths, lists directories and gives open files, each in one state that a
//! [`Fingerprint`] tells from every other. The rest of this crate knows nothing else of it: no
//! descriptor, inode or time decides anything outside a back-end. The operations are those that an
//! object store has, too: list, stat, open, read a range; nothing is renamed, and a file is looked
//! at again after it was read. [`posix`] is a directory of this system, [`memory`] a map of paths.
//!
//! Calls that may wait are made by workers; the serving thread makes those that say that they do
//! not ([`Backend::is_ready`], [`Content::read_ready`], [`Content::is_unchanged`]).
//!
//! [`Fingerprint`]: byname_transfer::server::Fingerprint

pub mod memory;
pub mod posix;

use std::fmt::Debug;
use std::sync::Arc;

use byname_transfer::metadata::Metadata;
use byname_transfer::server::{FileStat, FileState, ListFailure, Listing};

pub use crate::content::Content;

/// A tree of files to be published.
pub trait Backend: Debug + Send + Sync {
    /// True if [`Backend::locate`] would not wait for this path.
    fn is_ready(&self, path: &[u8]) -> bool;

    /// Resolves a relative path (components separated by `/`, none empty; the empty path is the
    /// topmost directory) and opens what is there.
    ///
    /// # Errors
    /// [`LocateError`]; what is not to be published is not found.
    fn locate(&self, path: &[u8]) -> Result<Found, LocateError>;

    /// A whole snapshot of the directory at a path, of `bytes_max` octets at most, with its
    /// version; `None` if versions are given out by the server's records.
    fn versioned_listing(
        &self,
        _path: &[u8],
        _kind: ListingKind,
        _bytes_max: usize,
    ) -> Option<Result<Listing, ListFailure>> {
        None
    }

    /// Describes a path, for messages to the operator.
    fn describe(&self, path: &[u8]) -> String;
}

/// Target of a path.
#[derive(Debug)]
pub enum Found {
    /// A file.
    File(Arc<dyn BackendFile>),
    /// A directory.
    Directory(Box<dyn Directory>),
    /// A file or link that the back-end describes whole, because others have its content.
    Described(Box<Metadata>),
}

/// Which of a directory's two snapshots is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListingKind {
    /// The names of its entries.
    Names,
    /// The entries with what is known of them, see `byname_transfer::manifest`.
    Manifest,
}

/// Reason why a path leads to nothing.
#[derive(Debug, thiserror::Error)]
pub enum LocateError {
    /// It does not exist, or it is not published.
    #[error("not found, or not published")]
    NotFound,
    /// It exists, but the server may not read it.
    #[error("permission denied")]
    NoPermission,
    /// The back-end failed.
    #[error("cannot read: {0}")]
    Failed(#[source] std::io::Error),
    /// The back-end cannot be asked at present.
    #[error("not available at present: {0}")]
    Unavailable(#[source] std::io::Error),
}

/// An open file, in one state.
pub trait BackendFile: Content {
    /// The state in which it was opened, with what else was known of it then.
    fn stat(&self) -> FileStat;

    /// The content root that is stored with the file for this state, if it is to be believed.
    fn stored_root(&self) -> Option<[u8; 32]> {
        None
    }

    /// Stores a content root with the file; gives the state that the file is in afterwards. `None`
    /// if nothing was stored.
    fn store_root(&self, _root: &[u8; 32]) -> Option<FileState> {
        None
    }

    /// Octets that were kept with the file by whoever copied it, see `byname_transfer::copies`.
    ///
    /// # Errors
    /// The reason why they cannot be read.
    fn attachment(&self, _slot: &str, _bytes_max: usize) -> std::io::Result<Option<Vec<u8>>> {
        Ok(None)
    }
}

/// An entry of a directory.
#[derive(Debug)]
pub struct DirectoryEntry<'a> {
    /// Its name; one for which `byname_transfer::naming::is_safe_entry` holds.
    pub name: &'a [u8],
    /// True if it is a directory rather than a file.
    pub is_directory: bool,
    /// Its state and attributes, if they were asked for and can be had; of a link its own.
    pub stat: Option<FileStat>,
    /// Of a symbolic link that leads to something published: its target, if `stat` was asked for.
    pub link_target: Option<&'a [u8]>,
}

/// Takes an entry of a directory that is being listed.
pub type TakeEntry<'a> = dyn FnMut(DirectoryEntry<'_>) -> Result<(), ListFailure> + 'a;

/// A directory that was located.
pub trait Directory: Debug + Send {
    /// Its state and attributes when it was located.
    fn stat(&self) -> FileStat;

    /// Hands every published entry to `take`, in any order. `wants_stat`: with what is known of it.
    ///
    /// # Errors
    /// The error of `take`, or the reason why the directory cannot be read.
    fn list(&self, wants_stat: bool, take: &mut TakeEntry<'_>) -> Result<(), ListFailure>;

    /// True if it is still in the state in which it was located.
    fn is_unchanged(&self) -> bool;

    /// Changes of it and of its entries that had been seen when it was located. `None` if nobody
    /// watches it, or, once it was listed, if what it shows depends on other directories too. Never
    /// 0.
    fn changes(&self) -> Option<u64> {
        None
    }

    /// Opens a file that was listed.
    fn open(&self, name: &[u8]) -> Option<Arc<dyn BackendFile>>;

    /// Octets that were kept with the directory by whoever copied it.
    ///
    /// # Errors
    /// The reason why they cannot be read.
    fn attachment(&self, _slot: &str, _bytes_max: usize) -> std::io::Result<Option<Vec<u8>>> {
        Ok(None)
    }
}
