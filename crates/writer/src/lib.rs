//! Writes to a site: commands to its catalog, files to its disks.
//!
//! One thread, one connection. A [`Writer`] signs commands and sends them until they are answered;
//! a file that is being written it also *produces*: disks ask for its segments and tree over the
//! same connection, by the name of its content. What is decided about a file is decided without
//! I/O in `job.rs`.
//!
//! An [`Upload`] writes whole trees: what is the same at the site already stays.
//!
//! Every answer of the head is verified. Answers of disks are not: a receipt that the disk did not
//! sign is refused by the head, and whoever could forge another answer could as well withhold it.

mod asks;
mod core;
mod edge;
mod error;
mod hashing;
mod job;
mod producer;
mod put;
mod slots;
mod source;
mod upload;
mod writer;

pub use crate::asks::Heard;
pub use crate::core::{Now, Outgoing, WriterConfig, WriterCore};
pub use edge::Edge;
pub use error::WriterError;
pub use put::{Put, PutEvent};
pub use source::Source;
pub use upload::{
    Accept, Change, List, LocalEntry, Published, PublishedEntries, Upload, UploadError,
    UploadEvent, UploadOptions,
};
pub use writer::{CommandList, FILES_IN_FLIGHT_MAX, Next, QuestionList, Writer};
