//! Fill levels of the tables, and whether one holds more than it may.

use super::config::ServerConfig;

/// Fill levels of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Levels {
    /// Interests that wait.
    pub pending: usize,
    /// Open versions of files.
    pub open_files: usize,
    /// Octets of listings kept.
    pub listing_bytes: usize,
    /// Roots being computed.
    pub hashing: usize,
    /// Nodes being computed for readers who cannot wait for the root.
    pub nodes: usize,
    /// Octets of such nodes kept.
    pub node_bytes: usize,
    /// Paths being looked at, whether or not somebody still waits.
    pub paths: usize,
    /// Operations that were not completed.
    pub operations: usize,
    /// Signed packets kept.
    pub answers: usize,
    /// Clients with segments that wait for their turn.
    pub queues: usize,
}

impl Levels {
    /// The first table that holds more than `config` allows, with what it holds and may hold.
    pub fn overfull(&self, config: &ServerConfig) -> Option<(&'static str, usize, usize)> {
        let ServerConfig { pending_max, hashes_max, .. } = *config;
        let tables = [
            ("waiting Interests", self.pending, pending_max),
            ("open files", self.open_files, config.open_max),
            ("octets of listings", self.listing_bytes, config.listing_bytes_max),
            ("roots being computed", self.hashing, hashes_max),
            ("nodes being computed", self.nodes, config.nodes_max),
            ("octets of nodes", self.node_bytes, config.nodes_bytes_max),
            ("paths being looked at", self.paths, pending_max),
            // One of each path and root; those of trees and packets have somebody who waits.
            ("operations", self.operations, 2 * pending_max + hashes_max),
            ("signed packets", self.answers, config.answers_max),
            ("queues of clients", self.queues, pending_max),
        ];
        tables.into_iter().find(|(_, held, max)| held > max)
    }
}
