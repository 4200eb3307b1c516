//! Executes the file-server engine's operations on back-ends and a state directory.
//!
//! [`FileServer`] is one thread with one face: Interests come in bursts, the engine in
//! `byname_transfer::server` turns them into operations, [`Executor`] carries these out, Data
//! leave. What takes long (hashing, reading directories, committing records) is done by worker
//! threads that wake the first one. Nothing is ever written into a published tree.

pub mod backend;
pub mod drafts;
mod error;
pub mod mirror;
pub mod prepare;
pub mod snapshot;
pub mod state;

mod census;
mod content;
mod executor;
mod hashing;
mod segment_signing;
mod server;
mod stored_roots;
mod summing;
mod watch;
mod workers;

pub use backend::posix::Exposure;
pub use byname_face::RegisterError;
pub use census::{Census, census};
pub use drafts::TreeDraft;
pub use error::{StateError, StoreError};
pub use mirror::MirrorConfig;
pub use server::{
    AccessRecord, AccessSink, FileServer, FileServerConfig, MountConfig, MountSource, ServerEvent,
    ServerHandle, Service,
};
pub use state::StateDir;
pub use watch::ahead::NewContents;
pub use watch::counters::WatchLevels;
