//! Files to be written, and what happens to them.

use std::sync::Arc;

use byname_catalog::{Create, Entry};

use crate::error::WriterError;
use crate::source::Source;

/// A file to be written.
#[derive(Debug, Clone)]
pub struct Put {
    /// Where to.
    pub create: Create,
    /// It gets the local file's time of modification.
    pub keep_time: bool,
    /// The file.
    pub source: Arc<Source>,
}

/// Something that happened to a file, which is told by its number.
#[derive(Debug)]
pub enum PutEvent {
    /// The slowest of its disks has so many octets.
    Progress {
        /// The file.
        number: usize,
        /// The octets.
        received_bytes: u64,
    },
    /// It has a new version, or not.
    Done {
        /// The file.
        number: usize,
        /// What came of it.
        result: Result<Box<Entry>, WriterError>,
    },
}
