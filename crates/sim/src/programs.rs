//! Programs on hosts besides the forwarder: production engines with everything around them made of
//! memory and virtual time.

pub mod client;
pub mod local_disk;
pub mod publisher;
pub mod reader;

pub use client::{Client, ClientOrder, Tally};
pub use local_disk::{DiskCounters, DiskFaults, LocalDisk};
pub use publisher::{DiskTimes, Publisher};
pub use reader::{Download, DownloadOrder};

use byname_transfer::request::Request;

use crate::random::Random;

/// The Interest of a request.
pub(crate) fn interest(request: &Request, random: &mut Random) -> Vec<u8> {
    let mut wire = Vec::new();
    request.encode((random.draw() as u32).to_be_bytes(), &mut wire);
    wire
}
