//! The configuration of a forwarder.

use std::sync::Arc;

use byname_packet::Name;
use byname_packet::mgmt::CommandVerifier;

use crate::content_store::CsPolicy;
use crate::shard::ShardPlace;
use crate::trace::TracePolicy;

/// Bounds and identity of a forwarder.
#[derive(Debug, Clone)]
pub struct Config {
    /// Randomness for hash keys and missing nonces; must differ from run to run.
    pub seed: [u64; 3],
    /// The user who may command everything over a Unix socket (root may too).
    pub own_uid: u32,
    /// A group whose users may command everything, too.
    pub authorized_gid: Option<u32>,
    /// True if any program of this machine may register routes to itself over loopback TCP, where
    /// nobody knows its user.
    pub allow_register_loopback: bool,
    /// Verifies commands of other machines; without one they are refused.
    pub command_verifier: Option<Arc<dyn CommandVerifier>>,
    /// Which of several forwarders that share the faces this one is; `None` if it is alone.
    pub shard: Option<ShardPlace>,
    /// Packets in the content store.
    pub cs_entries_max: usize,
    /// Octets in the content store, tables included.
    pub cs_bytes_max: usize,
    /// Which packet leaves a full content store.
    pub cs_policy: CsPolicy,
    /// Pending Interests.
    pub pit_entries_max: usize,
    /// Octets of pending Interests.
    pub pit_bytes_max: usize,
    /// Routes.
    pub routes_max: usize,
    /// Nonces remembered after their Interest is done.
    pub dead_nonces_max: usize,
    /// Regions in which this forwarder stands: a forwarding hint is fulfilled and taken off if one
    /// of its delegations is a prefix of one.
    pub regions: Vec<Name>,
    /// Whom it tells where answers come from.
    pub trace: TracePolicy,
    /// Name of the machine, for traces; none if empty.
    pub node_name: String,
    /// Time of day, in nanoseconds since the Unix epoch, at `start_now_ns`.
    pub start_unix_ns: u64,
    /// Monotonic time at the start.
    pub start_now_ns: u64,
    /// Name and version of the program, for `status/general`.
    pub version: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: [0; 3],
            own_uid: 0,
            authorized_gid: None,
            allow_register_loopback: false,
            command_verifier: None,
            shard: None,
            cs_entries_max: 65_536,
            cs_bytes_max: 256 << 20,
            cs_policy: CsPolicy::default(),
            pit_entries_max: 131_072,
            pit_bytes_max: 64 << 20,
            routes_max: 65_536,
            dead_nonces_max: 262_144,
            regions: Vec::new(),
            trace: TracePolicy::default(),
            node_name: String::new(),
            start_unix_ns: 0,
            start_now_ns: 0,
            version: String::from("byname"),
        }
    }
}

impl Config {
    /// Time of day at `now_ns`.
    pub(crate) fn unix_ns(&self, now_ns: u64) -> u64 {
        let age_ns = now_ns.saturating_sub(self.start_now_ns);
        self.start_unix_ns.saturating_add(age_ns)
    }

    /// Number of shards.
    pub(crate) fn shard_count(&self) -> usize {
        self.shard.map_or(1, |place| usize::from(place.count.max(1)))
    }
}
