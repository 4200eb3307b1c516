//! A disk of a site: one directory that holds replicas of contents.
//!
//! [`orders`] verifies what comes from the network and answers it, [`Machine`] decides: both
//! without I/O. [`DiskDirectory`] is the directory: its label, the replicas with their records,
//! what is found at a start. [`pull`] brings one content from its writer into it. [`DiskServer`]
//! is all of that beside a file server. One promise carries the rest: what a disk calls stored is
//! whole, verified, and on stable storage, record and directory entries included.

mod copies;
mod copying;
mod directory;
mod error;
mod files;
mod growth;
mod held;
mod incoming;
mod label;
mod layout;
mod load;
pub mod machine;
pub mod orders;
mod pacer;
mod proving;
pub mod pull;
mod pulled_tree;
mod record;
mod refusal_budget;
mod rereads;
mod scan;
mod scrub;
mod server;
mod service;
mod shown;
mod workers;

pub use copies::{Editions, KeepOrder};
pub use copying::{Copied, CopyWork};
pub use directory::DiskDirectory;
pub use error::{DiskError, StoreFailure};
pub use files::{FileFacts, Files, LockGuard, OpenFile, SystemFiles};
pub use incoming::{Incoming, OnBytes, Step};
pub use label::Label;
pub use load::{LoadAverage, LoadMeter};
pub use machine::Machine;
pub use proving::ProofWork;
pub use record::Record;
pub use scan::{Quarantined, Removed, Scan};
pub use scrub::{ScrubConfig, ScrubWork, Scrubbed};
pub use server::{DiskServer, DiskServerConfig, DiskServerError, OpenDisk};
pub use service::{DiskReport, DiskReports, DiskService};
pub use shown::Hidden;
pub use workers::{Change, Event, Page, PullWork, Question, ReadWork, WorkQueues, Workers};
