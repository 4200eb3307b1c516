//! How full the tables are, for whoever has to see that they stay bounded.

use super::Forwarder;

/// What the tables hold.
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
    /// What the tables hold now.
    pub fn occupancy(&self) -> Occupancy {
        Occupancy {
            pit_entries: self.pit.len(),
            pit_bytes: self.pit.bytes(),
            cs_entries: self.cs.len(),
            cs_bytes: self.cs.bytes(),
            dead_nonces: self.dead_nonces.capacity(),
            measured: self.measurements.len(),
            fib_entries: self.fib.len(),
            rib_entries: self.rib.len(),
        }
    }
}
