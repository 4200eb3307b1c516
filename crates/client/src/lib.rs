//! Reads files by name over a real connection: the client engine of `transfer`, driven by `io`.
//!
//! [`Client`] is blocking and single-threaded. Every call runs an event loop on the calling thread
//! until its answer is there, an error is certain, or [`Stop`] is requested.

pub mod client;
pub mod config;
pub mod endpoints;
pub mod error;
pub mod listing;
pub mod progress;

mod driver;
mod file_job;
mod job;
mod list_job;
mod local_dir;
mod net;
mod part_file;
mod read_job;
mod routes;
mod tree;

pub use client::{Client, RemoteFile, TreeOptions};
pub use config::{ClientConfig, Stop};
pub use endpoints::{default_endpoints, default_endpoints_with};
pub use error::ClientError;
pub use file_job::DownloadOptions;
pub use listing::Listing;
pub use progress::{Event, FileOutcome, FileReport, NoProgress, Progress};
pub use read_job::Sink;
pub use tree::{FAILURES_MAX, Filter, TreeReport};
