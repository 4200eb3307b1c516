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

mod arrival;
mod burst;
mod cache;
mod claims;
mod completion;
mod config;
mod counters;
mod directories;
mod finish;
mod interest;
mod levels;
mod lookups;
mod mirror;
mod open_files;
mod ops;
mod reply;
mod segment_signing;
mod segments;
mod signing_queue;
mod snapshots;
mod state;
mod tasks;
mod timers;
mod turns;
mod versions;
mod waiters;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};

use byname_packet::{Data, DecodeError, Name};

pub use arrival::{Arrival, Asker, Now};
pub use burst::{BURST_SEGMENTS_MAX, SegmentBurst, SegmentPlan};
pub use claims::MirrorOptions;
pub use config::{FixedData, Mount, SegmentSigner, ServerConfig, SharedSigner};
pub use counters::Counters;
pub use levels::Levels;
pub use ops::{
    Completion, FaceId, Handle, Hashed, KeptObject, KeptOf, ListFailure, Listing, Located, Octets,
    Op, OpId, Outgoing, SegmentSent, SignSegment, SignedSegment, VersionedListing,
};
pub use reply::Echo;
pub use signing_queue::sign_segment;
pub use state::{FileStat, FileState, Fingerprint, Recalled, Record, RecordKey, Subject};
pub use versions::{Quiet, next_version};

use burst::Forming;
use cache::Cache;
use claims::Mirrors;
use lookups::Lookups;
use open_files::{Hashing, OpenFile, PendingSegment, Template};
use reply::Answers;
use signing_queue::SigningQueue;
use snapshots::Snapshots;
use tasks::Tasks;
use waiters::Owner;

/// The engine. See the module's documentation for the order of calls.
pub struct Server {
    config: ServerConfig,
    mounts: Vec<Mount>,
    fixed: Vec<(Name, Vec<u8>)>,
    tasks: Tasks,
    lookups: Lookups,
    open: Cache<OpenFile>,
    snapshots: Snapshots,
    hashing: HashMap<FileState, Hashing>,
    /// Requests for trees that are being opened, by the version's name.
    trees: HashMap<Vec<u8>, Vec<PendingSegment>>,
    signing: SigningQueue,
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
    /// Interests kept anywhere: with tasks, trees and segments in flight.
    waiting: usize,
    /// The latest time that a caller gave.
    now_ns: u64,
}

impl Server {
    /// A server for `mounts`.
    pub fn new(config: ServerConfig, mounts: Vec<Mount>) -> Self {
        Self {
            config,
            mounts,
            fixed: Vec::new(),
            tasks: Tasks::default(),
            lookups: Lookups::default(),
            open: Cache::new(config.open_max),
            snapshots: Snapshots::new(config.listing_bytes_max),
            hashing: HashMap::new(),
            trees: HashMap::new(),
            signing: SigningQueue::new(&config),
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

    /// Counts since the start.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Fill levels of the tables.
    pub fn levels(&self) -> Levels {
        Levels {
            pending: self.waiting,
            open_files: self.open.len(),
            listing_bytes: self.snapshots.bytes(),
            hashing: self.hashing.len(),
            nodes: self.signing.nodes_in_flight(),
            node_bytes: self.signing.node_bytes(),
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

    /// Segments of one source to be read and sent together. What became of them is reported with
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
        [self.tasks.next_timer(), self.lookups_due_ns()].into_iter().flatten().min()
    }

    fn issue(&mut self, op: Op, owner: Owner) {
        let id = OpId(self.next_op);
        self.next_op += 1;
        self.lookups.ops_in_flight += usize::from(matches!(owner, Owner::Task(_)));
        self.owners.insert(id, owner);
        self.ops.push_back((id, op));
    }

    fn close(&mut self, handle: Handle) {
        let id = OpId(self.next_op);
        self.next_op += 1;
        self.ops.push_back((id, Op::Close { handle }));
    }
}
