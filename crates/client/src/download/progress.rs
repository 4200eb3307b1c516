//! Events that a caller can watch, and reports of what was done.

use std::path::Path;

use byname_io::Endpoint;
use byname_packet::Name;
use byname_transfer::discovery::Waiting;

use crate::engine::answers::AnswerPath;
use crate::error::ClientError;

/// Something that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// The publisher is not ready to hand the file out; it is asked again.
    Waiting {
        /// The target.
        path: &'a Path,
        /// The reason.
        waiting: Waiting,
    },
    /// The publisher is not ready to hand the list of a directory out; it is asked again.
    DirectoryWaiting {
        /// Its name.
        name: &'a Name,
        /// The reason.
        waiting: Waiting,
    },
    /// A version of this file was found and is being fetched.
    FileStarted {
        /// The target.
        path: &'a Path,
        /// Its size, if announced.
        size: Option<u64>,
    },
    /// So many more bytes were verified; they are written, or are about to be.
    Fetched {
        /// Bytes.
        bytes: u64,
    },
    /// Something came that is not what was signed. It is asked for again, a few times.
    Refused {
        /// The target.
        path: &'a Path,
        /// The unit or node.
        what: &'a str,
        /// The endpoint that sent it, if that is known.
        endpoint: Option<&'a str>,
    },
    /// So many more bytes were found on the disk: left by an earlier run, or in an older version.
    Reused {
        /// Bytes.
        bytes: u64,
    },
    /// A file is in place.
    FileDone {
        /// The target.
        path: &'a Path,
        /// Report of the file.
        report: &'a FileReport,
    },
    /// A file could not be fetched.
    FileFailed {
        /// The target.
        path: &'a Path,
        /// Why.
        error: &'a ClientError,
    },
    /// A directory was listed.
    DirectoryListed {
        /// Its name.
        name: &'a Name,
        /// Its entries.
        entry_count: usize,
    },
    /// An entry makes no safe path and is left out.
    EntrySkipped {
        /// The directory.
        directory: &'a Name,
        /// The entry as announced.
        entry: &'a [u8],
    },
}

/// Watches a call.
pub trait Progress {
    /// Called for everything that happens, on the thread of the call.
    fn on_event(&mut self, event: Event<'_>);
}

impl<P: Progress + ?Sized> Progress for &mut P {
    fn on_event(&mut self, event: Event<'_>) {
        (**self).on_event(event);
    }
}

/// Watches nothing.
#[derive(Debug, Default)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn on_event(&mut self, _: Event<'_>) {}
}

/// Outcome of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOutcome {
    /// It was fetched.
    Fetched,
    /// The same bytes were there already.
    Identical,
    /// Something was there, and the caller said not to replace it.
    Kept,
}

/// Report of a file, in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReport {
    /// The outcome.
    pub outcome: FileOutcome,
    /// Version that was read.
    pub version: u64,
    /// Its size.
    pub size: u64,
    /// Bytes that came over the network and were verified.
    pub fetched_bytes: u64,
    /// Bytes that an earlier run had left.
    pub reused_bytes: u64,
    /// Reports of the sources, if it came from several at once.
    pub sources: Vec<SourceReport>,
}

/// Report of one of several sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceReport {
    /// Where it is.
    pub endpoint: String,
    /// Verified bytes that came from it.
    pub bytes: u64,
    /// Pieces from it that did not verify.
    pub refused_count: u64,
    /// Why it was left, if it was.
    pub left: Option<String>,
    /// The paths that its answers took, if [`ClientConfig::traces`](crate::ClientConfig::traces)
    /// is set.
    pub answer_paths: Vec<AnswerPath>,
}

impl SourceReport {
    /// Nothing came yet.
    pub(crate) fn begin(endpoint: &Endpoint) -> Self {
        SourceReport {
            endpoint: endpoint.to_string(),
            bytes: 0,
            refused_count: 0,
            left: None,
            answer_paths: Vec::new(),
        }
    }
}
