//! What runs on hosts besides the forwarder: production engines with everything around them made of
//! memory and virtual time.

pub mod client;
pub mod local_disk;
pub mod publisher;
pub mod reader;

pub use client::{Client, ClientOrder, Tally};
pub use local_disk::{DiskCounters, DiskFaults, LocalDisk};
pub use publisher::{DiskTimes, Publisher};
pub use reader::{Download, Order};
