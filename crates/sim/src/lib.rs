//! A network in a process: the real forwarder, link layer, file-server engine and client engines in
//! virtual time, from one seed.
//!
//! [`World`] has hosts, links and a clock. On each host runs a forwarder; [`programs`] publish and
//! read files; [`site`] has the head, disks and writers of a site. Whatever a seed and a scenario
//! do, they do again, so a run that breaks a promise ([`Fault`]) can be repeated. Nothing here
//! waits for anything: virtual seconds cost what the code in them costs.

mod agenda;
pub mod bottleneck;
pub mod campaign;
mod check;
pub mod codel;
pub mod disk;
pub mod frame;
pub mod host;
pub mod line;
pub mod plot;
mod ports;
pub mod program;
pub mod programs;
pub mod queue;
pub mod random;
pub mod report;
pub mod site;
pub mod study;
pub mod topology;
pub mod trace;
pub mod traffic;
pub mod workload;
pub mod world;

pub use host::Host;
pub use line::{Bursts, Faults, Line, LineConfig, LineCounters};
pub use program::{Crash, Now, Program};
pub use queue::{Discipline, QueueConfig};
pub use world::{Fault, HostId, Incident, LinkConfig, LinkId, MS, ProgramId, SECOND, World};
