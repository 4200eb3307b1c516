//! The head of a site: the process that serves the catalog.
//!
//! Paths are answered by the file server of `store` over [`CatalogBackend`]: what reads files by
//! name reads a site. Commands are queued by [`Commands`] and executed by [`Executor`], both
//! without I/O but the engine's; [`HeadService`] puts them beside the file server, with a thread
//! for the catalog. [`Head`] opens a site's directory and puts all of it together.

mod activity;
mod audit;
pub mod backup;
mod commands;
mod contents;
mod copies;
mod counters;
mod describe;
mod engine;
mod execute;
mod fsck;
mod gateway;
mod head;
mod keys;
mod losses;
mod moving;
mod observations;
mod own;
mod proving;
mod pulse;
mod query;
mod reading;
pub mod rebuild;
mod repair;
mod service;
mod sessions;
mod succession;
mod term;
mod traffic;
mod watch;

pub use activity::{
    Activity, DISKS_MAX, DiskActivity, FilesActivity, OperationActivity, QueueActivity, USERS_MAX,
    UserActivity,
};
pub use commands::{CommandAnswer, CommandCounters, CommandLevels, Commands, Waiting};
pub use contents::Contents;
pub use counters::HeadCounters;
pub use describe::{Described, Describer};
pub use engine::{AddressError, BadAddress, EngineAddress};
pub use execute::Executor;
pub use head::{CatalogRest, Head, HeadError, HeadServer, LeadConfig, NewSite, init, refuse_site};
pub use moving::{MoveError, Moved, move_engine};
pub use observations::{DiskErrors, DutyReport};
pub use reading::CatalogBackend;
pub use repair::RepairConfig;
pub use service::{BatchQueues, CatalogOrder, Handover, HeadService};
pub use succession::Succession;
pub use term::OnRole;
pub use traffic::{Rates, Times};
pub use watch::{
    CopyOrders, DiskWatch, ListOrder, Order, ProveOrder, RepairOrders, Watch, has_more,
};
