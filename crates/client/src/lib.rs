//! Reads files by name over a real connection: the client engine of `transfer`, driven by `io`.
//!
//! [`Client`] is blocking and single-threaded. Every call runs an event loop on the calling thread
//! until its answer is there, an error is certain, or [`Stop`] is requested. [`Session`] moves a
//! client to a thread of its own, for many threads and tasks that read many files at once.

pub mod config;
pub mod error;

mod download;
mod engine;
mod lookup;
mod read;
mod session;

pub use config::{ClientConfig, Stop};
pub use download::context::DownloadOptions;
pub use download::copies::Copies;
pub use download::disk;
pub use download::progress::{Event, FileOutcome, FileReport, NoProgress, Progress};
pub use download::striped::SourceReport;
pub use download::tree::{FAILURES_MAX, Filter, TreeReport};
pub use engine::path::PathReport;
pub use error::{ClientError, Limit};
pub use lookup::listing::{Described, LISTING_BYTES_MAX, Listing};
pub use read::operation::{RANGES_MAX, RangesRead};
pub use read::stream::Sink;
pub use session::client::{Client, FoundFile, TreeOptions};
pub use session::executor::{FILES_OPEN_MAX, SessionOptions};
pub use session::handle::{Pending, ReadCounters, RemoteFile, Session};
pub use session::queue::CALLS_MAX;
pub use session::transfer::{self, Transfer};
