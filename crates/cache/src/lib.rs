//! The site cache: verified units of published files on a local disk.
//!
//! One directory holds the units of many versions, for all processes of one user. An *entry* is the
//! content of one root and size: a sparse file, a bitmap of the units that are in it, the nodes of
//! its hash tree, and the names under which it was published.
//!
//! The one idea: the cache vouches for nothing. Whoever reads gives each unit to the verifier of
//! its own signed root, as if a peer had sent it. So nothing here needs to be durable before it is
//! marked present; a torn write, a lost one and a rotten block all cost a fetch and never a wrong
//! byte.
//!
//! Readers never wait for the disk. What they bring is queued for a thread, and what finds no room
//! there is not cached. What they ask for is read by other threads; a disk that fails, is full or
//! hangs is passed by ([`health`]).

mod account;
mod cache;
mod checker;
mod checks;
mod config;
mod content;
mod counters;
mod directories;
mod disk;
mod entry;
mod error;
mod evict;
mod files;
mod ghosts;
mod health;
mod known;
mod layout;
mod lending;
mod limits;
mod map;
mod names;
mod nowait;
mod pieces;
mod pins;
mod place;
pub mod policy;
mod reader;
mod reads;
mod room;
mod scan;
mod scrub;
mod service;
mod shares;
mod standing;
mod state;
mod streams;
mod version;
mod whole;
mod writer;
mod writes;

pub use cache::Cache;
pub use config::CacheConfig;
pub use content::{Content, Probe};
pub use counters::Counters;
pub use disk::{Disk, Step};
pub use error::CacheError;
pub use layout::{ContentKey, NotAKey};
pub use limits::Limit;
pub use pieces::{ComingUnits, FoundUnits};
pub use reads::Found;
pub use scan::{EntryReport, Usage};
pub use scrub::ScrubReport;
pub use service::Service;
pub use shares::SERVICE_USER_COMPONENT;
pub use version::{Description, DirectoryPacket};
