//! Sizes of the tables, for whoever has to see that they stay bounded.

use super::Forwarder;

/// Sizes of the tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Pending Interests.
    pub pit_entries: usize,
    /// Octets of pending Interests.
    pub pit_bytes: usize,
    /// Packets in the content store.
    pub cs_entries: usize,
    /// Octets in the content store, tables included.
    pub cs_bytes: usize,
    /// Places for nonces.
    pub dead_nonces: usize,
    /// Prefixes of which round trips are known.
    pub measured: usize,
    /// Prefixes with a next hop.
    pub fib_entries: usize,
    /// Prefixes with a route.
    pub rib_entries: usize,
}

impl Forwarder {
    /// Sizes of the tables now.
    pub fn occupancy(&self) -> Occupancy {
        Occupancy {
            pit_entries: self.pipeline.pit.len(),
            pit_bytes: self.pipeline.pit.bytes(),
            cs_entries: self.pipeline.cs.len(),
            cs_bytes: self.pipeline.cs.bytes(),
            dead_nonces: self.pipeline.dead_nonces.capacity(),
            measured: self.pipeline.measurements.len(),
            fib_entries: self.pipeline.fib.len(),
            rib_entries: self.rib.len(),
        }
    }
}
