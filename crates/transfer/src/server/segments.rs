//! Segments of open versions, and the trees they are checked with.
//!
//! A version of a file is open under its versioned name. Its octets are read by the executor, which
//! compares the file's state after reading and before anything leaves; "changed" ends the version.

use byname_packet::lp::nack_reason;
use byname_packet::{DataBuilder, Name, NameRef, NullSigner, NumberComponent};
use byname_security::tree::Shape;

use super::ops::{Handle, Hashed, Identity, Op, SegmentSent, SendSegment};
use super::reply::{Echo, interest_name};
use super::{Now, Owner, Server, Waiter};
use crate::naming::{self, ParsedName, Part, Request};
use crate::numbers::SEGMENT_FRESHNESS_MS;

/// A version of a file that can be read.
pub(super) struct OpenFile {
    pub(super) identity: Identity,
    pub(super) file: Handle,
    pub(super) tree: Option<Handle>,
    pub(super) segment_size: usize,
}

/// A root being computed.
#[derive(Default)]
pub(super) struct Hashing {
    /// Tasks that wait for it.
    pub(super) tasks: Vec<u64>,
}

/// A segment under way, with what a Nack needs.
pub(super) struct PendingSegment {
    wire: Vec<u8>,
    echo: Echo,
}

/// Where a segment lies in its object.
pub(super) struct Extent {
    pub(super) offset: u64,
    pub(super) len: usize,
    pub(super) last_segment: u64,
}

impl Extent {
    /// `None` beyond the last segment.
    pub(super) fn of(size: u64, segment_size: usize, segment: u64) -> Option<Self> {
        let last_segment = naming::last_segment(size, segment_size as u64);
        if segment > last_segment {
            return None;
        }
        let offset = segment * segment_size as u64;
        let len = (size - offset).min(segment_size as u64) as usize;
        Some(Self { offset, len, last_segment })
    }
}

/// The Data named `name` around content of an extent's length.
pub(super) fn segment_builder<'a>(name: NameRef<'a>, last: &'a NumberComponent) -> DataBuilder<'a> {
    DataBuilder::new(name).freshness_ms(SEGMENT_FRESHNESS_MS).final_block_id(last.as_component())
}

impl Server {
    /// Answers a segment request of an open version; false if the version is not open.
    pub(super) fn serve_segment(
        &mut self,
        wire: &[u8],
        parsed: &ParsedName<'_>,
        echo: Echo,
    ) -> bool {
        let Request::Segment { listing, version, part, segment } = parsed.request else {
            return false;
        };
        if listing {
            return self.serve_listing(wire, parsed.path, (version, part, segment), echo);
        }
        let Some(open) = self.open.get(parsed.object.value()) else { return false };
        let (source, base, size) = match part {
            Part::Content => (open.file, 0, open.identity.size),
            Part::Tree(level) => {
                let shape = Shape::new(open.identity.size);
                let size = shape.level_bytes(level);
                if size == 0 {
                    self.nack_stale(wire, echo);
                    return true;
                }
                let Some(tree) = open.tree else {
                    let (file, identity) = (open.file, open.identity);
                    self.wait_for_tree((file, identity), parsed.object, wire, echo);
                    return true;
                };
                (tree, (1..level).map(|below| shape.level_bytes(below)).sum(), size)
            }
        };
        match Extent::of(size, open.segment_size, segment) {
            Some(extent) => self.send_segment(wire, echo, (source, base), &extent),
            None => self.nack_stale(wire, echo),
        }
        true
    }

    fn send_segment(
        &mut self,
        wire: &[u8],
        echo: Echo,
        (source, base): (Handle, u64),
        extent: &Extent,
    ) {
        if self.waiting >= self.config.pending_max {
            self.counters.pending_full += 1;
            return self.out.push_back(echo.nack(wire, nack_reason::CONGESTION));
        }
        let Some(name) = interest_name(wire) else { return };
        let last = NumberComponent::segment(extent.last_segment);
        let Ok(plan) = segment_builder(name, &last).plan(extent.len, &NullSigner) else { return };
        let mut header = Vec::with_capacity(plan.header.len() + 64);
        echo.write(plan.packet_len(), &mut header);
        header.extend_from_slice(&plan.header);
        let op = SendSegment {
            source,
            offset: base + extent.offset,
            len: extent.len,
            header,
            trailer: plan.trailer,
        };
        self.counters.segments += 1;
        self.waiting += 1;
        let pending = PendingSegment { wire: wire.to_vec(), echo };
        self.issue(Op::SendSegment(op), Owner::Segment(pending));
    }

    pub(super) fn on_segment(&mut self, pending: PendingSegment, sent: SegmentSent) {
        self.waiting -= 1;
        match sent {
            SegmentSent::Sent => return,
            SegmentSent::Changed => {
                self.counters.changed += 1;
                if let Some(parsed) = interest_name(&pending.wire).and_then(naming::parse) {
                    let gone = self.open.remove(parsed.object.value());
                    self.close_files(gone);
                }
            }
            SegmentSent::Failed => self.counters.failed += 1,
        }
        self.out.push_back(pending.echo.nack(&pending.wire, nack_reason::NONE));
    }

    pub(super) fn nack_stale(&mut self, wire: &[u8], echo: Echo) {
        self.counters.stale += 1;
        self.out.push_back(echo.nack(wire, nack_reason::NONE));
    }

    /// Makes a version readable under its name, unless it is already.
    /// Returns the handle to read it with.
    pub(super) fn open_version(&mut self, versioned: &Name, open: OpenFile) -> Handle {
        let key = versioned.view().value();
        let present = self.open.get(key).filter(|present| present.identity == open.identity);
        if let Some(file) = present.map(|present| present.file) {
            self.close(open.file);
            return file;
        }
        let file = open.file;
        let gone = self.open.insert(key.to_vec(), open, 1);
        self.close_files(gone);
        file
    }

    fn close_files(&mut self, gone: impl IntoIterator<Item = OpenFile>) {
        for open in gone {
            self.close(open.file);
            if let Some(tree) = open.tree {
                self.close(tree);
            }
        }
    }

    fn wait_for_tree(
        &mut self,
        (file, identity): (Handle, Identity),
        object: NameRef<'_>,
        wire: &[u8],
        echo: Echo,
    ) {
        if self.waiting >= self.config.pending_max {
            self.counters.pending_full += 1;
            return self.out.push_back(echo.nack(wire, nack_reason::CONGESTION));
        }
        self.waiting += 1;
        let waiting = self.trees.entry(object.value().to_vec()).or_default();
        waiting.push(PendingSegment { wire: wire.to_vec(), echo });
        if waiting.len() == 1 {
            let object = object.value().to_vec();
            self.issue(Op::OpenTree { file, identity }, Owner::Tree { object, identity });
        }
    }

    pub(super) fn on_tree_opened(
        &mut self,
        object: &[u8],
        identity: Identity,
        handle: Option<Handle>,
    ) {
        let waiting = self.trees.remove(object).unwrap_or_default();
        self.waiting -= waiting.len();
        let open = self.open.get(object).filter(|open| open.identity == identity);
        match (open, handle) {
            (Some(open), Some(tree)) if open.tree.is_none() => open.tree = Some(tree),
            (_, Some(tree)) => self.close(tree),
            (_, None) => {}
        }
        for PendingSegment { wire, echo } in waiting {
            let parsed = interest_name(&wire).and_then(naming::parse);
            let is_ready = self.open.peek(object).is_some_and(|open| open.tree.is_some());
            match parsed {
                Some(parsed) if is_ready => {
                    self.serve_segment(&wire, &parsed, echo);
                }
                _ => self.nack_stale(&wire, echo),
            }
        }
    }

    /// Sees to it that a root is computed; false if too many are.
    pub(super) fn hash(&mut self, file: Handle, identity: Identity, task: u64) -> bool {
        let is_full = self.hashing.len() >= self.config.hashes_max;
        if let Some(hashing) = self.hashing.get_mut(&identity) {
            if !hashing.tasks.contains(&task) {
                hashing.tasks.push(task);
            }
            return true;
        }
        if is_full {
            self.counters.hashes_full += 1;
            return false;
        }
        self.counters.hashes += 1;
        self.hashing.insert(identity, Hashing { tasks: vec![task] });
        self.issue(Op::Hash { file, identity }, Owner::Hash(identity));
        true
    }

    pub(super) fn on_hashed(&mut self, identity: Identity, hashed: Hashed, now: Now) {
        let tasks = self.hashing.remove(&identity).unwrap_or_default().tasks;
        for id in tasks {
            let waits = self.tasks.get(id).is_some_and(|task| task.awaits_root_of(&identity));
            match hashed {
                _ if !waits => {}
                Hashed::Root(_) | Hashed::Changed => self.locate(id),
                // They are answered "root pending" when their time is over.
                Hashed::Busy => self.counters.hashes_full += 1,
                Hashed::Failed => self.finish_unreadable(id, now),
            }
        }
    }

    /// Answers or Nacks a waiter for a segment, now that its version is open or is not.
    pub(super) fn settle_segment(&mut self, waiter: &Waiter) {
        let parsed = interest_name(&waiter.wire).and_then(naming::parse);
        let is_served =
            parsed.is_some_and(|parsed| self.serve_segment(&waiter.wire, &parsed, waiter.echo));
        if !is_served {
            self.nack_stale(&waiter.wire, waiter.echo);
        }
    }
}
