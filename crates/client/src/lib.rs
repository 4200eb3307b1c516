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
pub use download::progress::{Event, FileOutcome, FileReport, NoProgress, Progress, SourceReport};
pub use download::tree::{Filter, TreeEntry};
pub use download::tree_report::{FAILURES_MAX, TreeReport};
pub use engine::answers::{AnswerHop, AnswerPath};
pub use engine::path::PathReport;
pub use error::{ClientError, Limit, Refusals};
pub use lookup::listing::{LISTING_BYTES_MAX, ListedEntry, Listing};
pub use lookup::resolved::ResolvedEntry;
pub use lookup::sorted::SortedListing;
pub use lookup::stat::{FileKind, Stat, TrustLevel};
pub use read::nowait::{CachedRead, ComingRead, VerifiedRead};
pub use read::operation::{RANGES_MAX, RangesRead};
pub use read::stream::{Extent, NodeSink, Sink};
pub use session::client::{Client, LocalFile, TreeOptions};
pub use session::files::{FILES_OPEN_MAX, SessionOptions};
pub use session::handle::{ReadCounters, RemoteFile, Session};
pub use session::pending::Pending;
pub use session::queue::CALLS_MAX;
pub use session::transfer::{self, Transfer};
