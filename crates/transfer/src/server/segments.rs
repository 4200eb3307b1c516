//! Segments of open versions, and the trees they are checked with.
//!
//! A version of a file is open under its versioned name. Its octets are read by the executor, which
//! compares the file's state after reading and before anything leaves; "changed" ends the version.

use byname_packet::lp::nack_reason;
use byname_packet::{Name, NameRef};
use byname_security::tree::Shape;

use super::Server;
use super::arrival::Now;
use super::burst::{NewSegment, SegmentBurst};
use super::directories::ListingSegment;
use super::open_files::{Extent, Hashing, OpenFile, PendingSegment, Template};
use super::ops::{Handle, Hashed, Octets, Op, SegmentSent};
use super::reply::{Echo, interest_name};
use super::segment_signing::UnsignedSegment;
use super::state::FileState;
use super::waiters::{Owner, Waiter};
use crate::naming::{self, Aspect, ParsedName, Part, Request};

fn is_lowest_level(parsed: &ParsedName<'_>) -> bool {
    matches!(parsed.request, Request::Segment { part: Part::Tree(1), .. })
}

impl Server {
    /// Answers a segment request of an open version; false if the version is not open.
    pub(super) fn serve_segment(
        &mut self,
        wire: &[u8],
        parsed: &ParsedName<'_>,
        echo: Echo,
    ) -> bool {
        let Request::Segment { aspect, version, part, segment } = parsed.request else {
            return false;
        };
        let listed = ListingSegment { version, part, segment };
        match aspect {
            Aspect::File => {}
            Aspect::Listing => return self.serve_listing(wire, parsed.path, &listed, echo),
            Aspect::Manifest => {
                return self.serve_listing(wire, parsed.object.without_last(1), &listed, echo);
            }
        }
        let Some(open) = self.open.get(parsed.object.value()) else { return false };
        let (mount, state, segment_size) = (open.mount, open.state, open.segment_size);
        let (source, base, size) = match part {
            Part::Content => (open.file, 0, open.state.size),
            Part::Tree(level) => {
                let shape = Shape::new(open.state.size);
                let size = shape.level_bytes(level);
                if size == 0 {
                    self.nack_stale(wire, echo);
                    return true;
                }
                let Some(tree) = open.tree else {
                    let file = open.file;
                    match Extent::of(size, segment_size, segment) {
                        None => self.nack_stale(wire, echo),
                        Some(extent) if self.serve_pending(wire, parsed, &extent, echo) => {}
                        Some(_) => {
                            self.wait_for_tree((file, state), parsed.object, wire, echo);
                        }
                    }
                    return true;
                };
                (tree, (1..level).map(|below| shape.level_bytes(below)).sum(), size)
            }
        };
        match (Extent::of(size, segment_size, segment), self.segment_signers.get(&mount)) {
            (Some(extent), None) => self.send_segment(wire, echo, (source, base), &extent),
            (Some(Extent { offset, len, last_segment }), Some(signer)) => {
                let octets = Octets::Stored { offset: base + offset, len };
                let signer = signer.clone();
                let unsigned = UnsignedSegment { source, state, octets, last_segment, signer };
                self.queue_signing(wire, echo, unsigned);
            }
            (None, _) => self.nack_stale(wire, echo),
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
        if !self.template.fits(name, extent) {
            let Some(template) = Template::new(name, extent) else { return };
            self.template = template;
        }
        self.counters.segments += 1;
        self.waiting += 1;
        let (front, trailer) = self.template.around(name);
        self.forming.add(&NewSegment {
            source,
            offset: base + extent.offset,
            len: extent.len,
            front,
            trailer,
            request: wire,
            echo,
        });
    }

    /// Takes what became of a burst, or of a part of one.
    pub fn handle_segments(&mut self, burst: SegmentBurst, sent: SegmentSent) {
        self.waiting -= burst.len();
        if sent != SegmentSent::Sent {
            for (wire, echo) in burst.requests() {
                self.out.push_back(echo.nack(wire, nack_reason::NONE));
            }
        }
        match sent {
            SegmentSent::Sent => {}
            SegmentSent::Changed => {
                self.counters.changed += burst.len() as u64;
                let first = burst.requests().next().and_then(|(wire, _)| interest_name(wire));
                if let Some(parsed) = first.and_then(naming::parse) {
                    let gone = self.open.remove(parsed.object.value());
                    self.close_files(gone);
                }
            }
            SegmentSent::Failed => self.counters.failed += burst.len() as u64,
        }
        self.forming.recycle(burst);
    }

    pub(super) fn nack_stale(&mut self, wire: &[u8], echo: Echo) {
        self.counters.stale += 1;
        self.out.push_back(echo.nack(wire, nack_reason::NONE));
    }

    /// Makes a version readable under its name, unless it is already.
    /// Returns the handle to read it with.
    pub(super) fn open_version(&mut self, versioned: &Name, open: OpenFile) -> Handle {
        let key = versioned.view().value();
        let present = self.open.get(key).filter(|present| present.state == open.state);
        if let Some(file) = present.map(|present| present.file) {
            self.close(open.file);
            return file;
        }
        let file = open.file;
        let gone = self.open.insert(key.to_vec(), open, 1);
        self.close_files(gone);
        file
    }

    pub(super) fn close_files(&mut self, gone: impl IntoIterator<Item = OpenFile>) {
        for open in gone {
            self.close(open.file);
            if let Some(tree) = open.tree {
                self.close(tree);
            }
        }
    }

    fn wait_for_tree(
        &mut self,
        (file, state): (Handle, FileState),
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
            self.issue(Op::OpenTree { file, state }, Owner::Tree { object, state });
        }
    }

    pub(super) fn on_tree_opened(
        &mut self,
        object: &[u8],
        state: FileState,
        handle: Option<Handle>,
    ) {
        let waiting = self.trees.remove(object).unwrap_or_default();
        self.waiting -= waiting.len();
        let open = self.open.get(object).filter(|open| open.state == state);
        match (open, handle) {
            (Some(open), Some(tree)) if open.tree.is_none() => open.tree = Some(tree),
            (_, Some(tree)) => self.close(tree),
            (_, None) => {}
        }
        let is_open = self.open.peek(object).is_some_and(|open| open.tree.is_some());
        let is_ready = is_open || (!waiting.is_empty() && self.begin_pending(object));
        for PendingSegment { wire, echo } in waiting {
            let parsed = interest_name(&wire).and_then(naming::parse);
            match parsed {
                // Without the tree, only what is computed from the file can be had.
                Some(parsed) if is_open || is_ready && is_lowest_level(&parsed) => {
                    self.serve_segment(&wire, &parsed, echo);
                }
                // A level above. A reader who knows the root from elsewhere may have it once it is
                // computed.
                Some(_) if is_ready => {
                    self.counters.root_pending += 1;
                    self.out.push_back(echo.nack(&wire, nack_reason::CONGESTION));
                }
                _ => self.nack_stale(&wire, echo),
            }
        }
    }

    /// Sees to it that a root is computed; false if too many are.
    pub(super) fn hash(&mut self, file: Handle, state: FileState, task: Option<u64>) -> bool {
        let is_full = self.hashing.len() >= self.config.hashes_max;
        if let Some(hashing) = self.hashing.get_mut(&state) {
            hashing.tasks.extend(task.filter(|task| !hashing.tasks.contains(task)));
            return true;
        }
        if is_full {
            self.counters.hashes_full += 1;
            return false;
        }
        self.counters.hashes += 1;
        self.hashing.insert(state, Hashing { tasks: task.into_iter().collect() });
        self.issue(Op::Hash { file, state }, Owner::Hash(state));
        true
    }

    pub(super) fn on_hashed(&mut self, state: FileState, hashed: Hashed, now: Now) {
        let tasks = self.hashing.remove(&state).unwrap_or_default().tasks;
        for id in tasks {
            let waits = self.tasks.get(id).is_some_and(|task| task.awaits_root_of(&state));
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
