//! Reads files by name over a real connection: the client engine of `transfer`, driven by `io`.
//!
//! [`Client`] is blocking and single-threaded. Every call runs an event loop on the calling thread
//! until its answer is there, an error is certain, or [`Stop`] is requested. [`Session`] moves a
//! client to a thread of its own, for many threads and tasks that read many files at once.

pub mod client;
pub mod config;
pub mod copies;
pub mod disk;
pub mod endpoints;
pub mod error;
pub mod handle;
pub mod listing;
pub mod progress;
pub mod transfer;

mod described;
mod driver;
mod engine;
mod file_job;
mod finding;
mod job;
mod list_job;
mod local_dir;
mod machine;
mod net;
mod part_file;
mod path;
mod prefetch;
mod ranges;
mod read_job;
mod routes;
mod small_files;
mod striped;
mod tree;

pub use client::{Client, FoundFile, TreeOptions};
pub use config::{ClientConfig, Stop};
pub use copies::Copies;
pub use endpoints::{default_endpoints, default_endpoints_with};
pub use engine::FILES_OPEN_MAX;
pub use engine::port::CALLS_MAX;
pub use error::ClientError;
pub use file_job::DownloadOptions;
pub use handle::{Pending, RangesRead, ReadCounters, RemoteFile, Session, SessionOptions};
pub use listing::{Described, Listing};
pub use path::PathReport;
pub use progress::{Event, FileOutcome, FileReport, NoProgress, Progress};
pub use ranges::RANGES_MAX;
pub use read_job::Sink;
pub use striped::SourceReport;
pub use transfer::Transfer;
pub use tree::{FAILURES_MAX, Filter, TreeReport};
