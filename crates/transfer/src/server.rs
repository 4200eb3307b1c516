//! The file-server engine: Interests in, file operations and Data out. Sans-I/O.
//!
//! Whoever drives it calls, in any order,
//!
//! * handle: [`Server::handle_interest`], [`Server::handle_completion`],
//!   [`Server::handle_timeout`];
//! * poll, after each of them and until nothing is left: [`Server::poll_op`] (execute it and hand
//!   the completion back), [`Server::poll_segments`] (several of them, to be executed together),
//!   [`Server::poll_transmit`] (send it), [`Server::poll_timeout`] (when to call
//!   `handle_timeout`).
//!
//! One idea carries it: a *task* per published path. A discovery Interest, or a segment request
//! for a version that is not open, joins the task of its path or starts one. A task resolves the
//! path anew, recalls what was announced, waits for the file to be quiet or for the root,
//! announces a version, and answers everybody who joined. After any wait it starts over, so that
//! an answer never describes an older state than the one found after the last wait. Segments of
//! open versions pass by all this.
//!
//! Invariants: a version is announced only after its record is durable; no record's version is ever
//! below an earlier one of its name; every Interest handled is answered by one packet or counted as
//! expired; every table has a bound in [`ServerConfig`].

mod burst;
mod cache;
mod completion;
mod config;
mod counters;
mod directories;
mod finish;
mod interest;
mod made;
mod mirror;
mod ops;
mod reply;
mod segments;
mod tasks;
mod versions;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};

use byname_packet::{Data, DecodeError, Interest, Name};

pub use burst::{BURST_SEGMENTS_MAX, SegmentBurst, SegmentPlan};
pub use config::{FixedData, Mount, ServerConfig, SharedSigner};
pub use counters::Counters;
pub use made::{SegmentSigner, signed_segment};
pub use mirror::MirrorOptions;
pub use ops::{
    Completion, FaceId, FileStat, Handle, Hashed, Identity, KeptObject, KeptOf, ListFailure,
    Listing, Located, Made, MakeSegment, Octets, Op, OpId, Outgoing, Recalled, Record, RecordKey,
    SegmentSent, Subject,
};

pub use versions::{Quiet, next_version};

use burst::Forming;
use cache::Cache;
use directories::Snapshots;
use made::Making;
use mirror::Mirrors;
use reply::{Answers, Echo};
use segments::{Hashing, OpenFile, PendingSegment, Template};
use tasks::Tasks;

/// Both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Monotonic nanoseconds since an arbitrary epoch.
    pub now_ns: u64,
    /// Nanoseconds since the Unix epoch.
    pub unix_ns: u64,
}

/// An Interest and what the link layer said about it.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// The Interest.
    pub interest: &'a Interest<'a>,
    /// Token to be returned with the answer.
    pub pit_token: Option<&'a [u8]>,
    /// Congestion mark to be returned with the answer.
    pub congestion_mark: Option<u64>,
    /// Whom it came from.
    pub face: FaceId,
}

/// How full the tables are.
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

/// The engine. See the module's documentation for the order of calls.
pub struct Server {
    config: ServerConfig,
    mounts: Vec<Mount>,
    fixed: Vec<(Name, Vec<u8>)>,
    tasks: Tasks,
    open: Cache<OpenFile>,
    snapshots: Snapshots,
    hashing: HashMap<Identity, Hashing>,
    /// Requests for trees that are being opened, by the version's name.
    trees: HashMap<Vec<u8>, Vec<PendingSegment>>,
    making: Making,
    mirrors: Mirrors,
    segment_signers: HashMap<usize, SegmentSigner>,
    answers: Answers,
    owners: HashMap<OpId, Owner>,
    ops: VecDeque<(OpId, Op)>,
    forming: Forming,
    template: Template,
    out: VecDeque<Outgoing>,
    counters: Counters,
    next_op: u64,
    /// Interests kept anywhere: with tasks, trees and segments under way.
    waiting: usize,
    /// The latest time this was told.
    now_ns: u64,
}

/// Who waits for a completion.
enum Owner {
    Task(u64),
    Hash(Identity),
    Tree { object: Vec<u8>, identity: Identity },
    Made { key: Vec<u8>, is_node: bool },
}

/// An Interest that could not be answered at once.
#[derive(Debug)]
struct Waiter {
    wire: Vec<u8>,
    echo: Echo,
    wants: Wants,
    arrived_ns: u64,
    lifetime_ns: u64,
}

/// What a waiter waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wants {
    Metadata { listing: bool },
    Segment { listing: bool, version: u64 },
}

impl Waiter {
    /// When a waiter that may be held for `hold_ns` must be answered.
    fn hold_until(&self, hold_ns: u64) -> u64 {
        self.arrived_ns.saturating_add(hold_ns.min(self.lifetime_ns / 2))
    }

    fn expires_ns(&self) -> u64 {
        self.arrived_ns.saturating_add(self.lifetime_ns)
    }
}

impl Server {
    /// A server for `mounts`.
    pub fn new(config: ServerConfig, mounts: Vec<Mount>) -> Self {
        Self {
            config,
            mounts,
            fixed: Vec::new(),
            tasks: Tasks::default(),
            open: Cache::new(config.open_max),
            snapshots: Snapshots::new(config.listing_bytes_max),
            hashing: HashMap::new(),
            trees: HashMap::new(),
            making: Making::new(&config),
            mirrors: Mirrors::default(),
            segment_signers: HashMap::new(),
            answers: Answers::new(&config),
            owners: HashMap::new(),
            ops: VecDeque::new(),
            forming: Forming::default(),
            template: Template::default(),
            out: VecDeque::new(),
            counters: Counters::default(),
            next_op: 0,
            waiting: 0,
            now_ns: 0,
        }
    }

    /// Serves a whole Data packet, such as a certificate, under its name and prefixes of it that
    /// are at most three components shorter (`…/KEY/<keyId>`).
    ///
    /// # Errors
    /// [`DecodeError`] when it is none.
    pub fn add_fixed(&mut self, data: FixedData) -> Result<(), DecodeError> {
        let name = Data::decode(&data.wire)?.name.to_name();
        self.fixed.push((name, data.wire));
        Ok(())
    }

    /// The published directories, in the order of their numbers in operations.
    pub fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    /// What happened so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// How full the tables are.
    pub fn levels(&self) -> Levels {
        Levels {
            pending: self.waiting,
            open_files: self.open.len(),
            listing_bytes: self.snapshots.bytes(),
            hashing: self.hashing.len(),
            nodes: self.making.nodes_under_way(),
            node_bytes: self.making.node_bytes(),
            paths: self.tasks.len(),
            operations: self.owners.len(),
            answers: self.answers.len(),
            queues: self.forming.face_count(),
        }
    }

    /// The next operation to execute.
    pub fn poll_op(&mut self) -> Option<(OpId, Op)> {
        self.ops.pop_front()
    }

    /// Segments of one source to be read and sent together. What became of them is told with
    /// [`Server::handle_segments`], now or later, together or in parts.
    ///
    /// To be called until nothing is left before [`Server::poll_op`], which may close their source.
    pub fn poll_segments(&mut self) -> Option<SegmentBurst> {
        self.forming.pop()
    }

    /// The next packet to send, with its link header.
    pub fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.out.pop_front()
    }

    /// When [`Server::handle_timeout`] must be called, in monotonic nanoseconds.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.tasks.next_timer()
    }

    fn issue(&mut self, op: Op, owner: Owner) {
        let id = OpId(self.next_op);
        self.next_op += 1;
        self.owners.insert(id, owner);
        self.ops.push_back((id, op));
    }

    fn close(&mut self, handle: Handle) {
        let id = OpId(self.next_op);
        self.next_op += 1;
        self.ops.push_back((id, Op::Close { handle }));
    }
}
