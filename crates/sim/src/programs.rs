//! What runs on hosts besides the forwarder: production engines with everything around them made of
//! memory and virtual time.

pub mod publisher;
pub mod reader;

pub use publisher::{DiskTimes, Publisher};
pub use reader::{Download, Order};
