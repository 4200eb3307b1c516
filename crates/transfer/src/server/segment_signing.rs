//! Signed segments: left to a worker, because each costs a read, perhaps hashing, and a signature.
//!
//! There are two kinds. Segments of tree level 1 are signed while the root is being computed:
//! nothing else proves them yet. And all segments are signed if the operator wants that for
//! readers who know no roots. Whoever asks for the same one meanwhile shares it, so a popular
//! pending file costs one read and one signature a node.
//!
//! Invariants: at most `ServerConfig::nodes_max` nodes are being computed, at most
//! `ServerConfig::nodes_per_s` are signed in a second, and only of files whose root is being
//! computed, so that the work counts towards the root too.

use byname_packet::NameRef;
use byname_packet::lp::nack_reason;

use super::Server;
use super::config::{SegmentSigner, SharedSigner};
use super::open_files::{Extent, OpenFile, PendingSegment};
use super::ops::{Handle, Octets, Op, SignSegment, SignedSegment};
use super::reply::{Echo, interest_name};
use super::signing_queue::signature_bytes;
use super::state::FileState;
use super::waiters::Owner;
use crate::naming::{self, ParsedName, Part, Request};
use crate::numbers::MANIFEST_KEYWORD;

/// A segment that needs a signature. Its packet has the name of the Interest.
pub(super) struct UnsignedSegment {
    /// The open file or tree.
    pub(super) source: Handle,
    /// State of the file.
    pub(super) state: FileState,
    pub(super) octets: Octets,
    pub(super) last_segment: u64,
    pub(super) signer: SegmentSigner,
}

impl Server {
    /// Signs all segments of a mount's files and listings with this key, for readers that check
    /// packets and know no roots.
    pub fn sign_segments(&mut self, mount: usize, signer: SharedSigner) {
        self.segment_signers.insert(mount, SegmentSigner(signer));
    }

    /// The key for segments of a directory's snapshots.
    pub(super) fn listing_signer(&self, path: NameRef<'_>) -> Option<SegmentSigner> {
        if self.segment_signers.is_empty() {
            return None;
        }
        let is_manifest = path.last().is_some_and(|last| last.is_keyword(MANIFEST_KEYWORD));
        let directory = path.without_last(usize::from(is_manifest));
        let mount = self.place(directory)?.mount;
        self.segment_signers.get(&mount).cloned()
    }

    /// The segment size of versions of a mount with names of this length; `None` if none fits.
    pub(super) fn segment_size(&self, mount: usize, versioned_bytes: usize) -> Option<usize> {
        let signature = self.segment_signature_bytes(mount);
        naming::segment_size_for(versioned_bytes.saturating_add(signature))
    }

    /// Room that a packet of a mount keeps for its signature.
    pub(super) fn segment_signature_bytes(&self, mount: usize) -> usize {
        let own = self.mounts.get(mount).map(|mount| signature_bytes(&*mount.signer));
        let asked = self.segment_signers.get(&mount).map(|signer| signature_bytes(&*signer.0));
        own.into_iter().chain(asked).max().unwrap_or(0)
    }

    /// A tree is asked for that is not open. False if it can be opened; true if the segment is
    /// answered, or being signed, without it.
    pub(super) fn serve_pending(
        &mut self,
        wire: &[u8],
        parsed: &ParsedName<'_>,
        extent: &Extent,
        echo: Echo,
    ) -> bool {
        let Request::Segment { part: Part::Tree(level), .. } = parsed.request else {
            return false;
        };
        let Some(open) = self.open.peek(parsed.object.value()) else { return false };
        if !self.hashing.contains_key(&open.state) {
            return false;
        }
        if self.is_mirror(open.mount) {
            // What cannot be signed has to wait for the root.
            self.counters.root_pending += 1;
            self.out.push_back(echo.nack(wire, nack_reason::CONGESTION));
            return true;
        }
        if level > 1 {
            // Nobody knows them before the root. But that may be on record already, although the
            // engine has no report of it yet: whoever opens the tree will see.
            return false;
        }
        if let Some(kept) = self.signing.nodes.get(parsed_name(wire)) {
            self.counters.nodes_reused += 1;
            self.out.push_back(echo.wrap(kept));
            return true;
        }
        let Some(mount) = self.mounts.get(open.mount) else { return false };
        let signer = SegmentSigner(mount.signer.clone());
        let octets = Octets::Values { offset: extent.offset, len: extent.len };
        let (source, state, last_segment) = (open.file, open.state, extent.last_segment);
        let unsigned = UnsignedSegment { source, state, octets, last_segment, signer };
        self.queue_signing(wire, echo, unsigned);
        true
    }

    /// Hands a segment to a worker, or its asker to those who wait for it already.
    pub(super) fn queue_signing(&mut self, wire: &[u8], echo: Echo, unsigned: UnsignedSegment) {
        let Some(name) = interest_name(wire) else { return };
        let key = name.value();
        let is_node = matches!(unsigned.octets, Octets::Values { .. });
        if self.waiting >= self.config.pending_max {
            self.counters.pending_full += 1;
            return self.out.push_back(echo.nack(wire, nack_reason::CONGESTION));
        }
        let pending = PendingSegment { wire: wire.to_vec(), echo };
        if let Some(waiting) = self.signing.waiting.get_mut(key) {
            self.waiting += 1;
            return waiting.push(pending);
        }
        if is_node && self.signing.nodes_in_flight >= self.config.nodes_max {
            self.counters.nodes_full += 1;
            return self.out.push_back(echo.nack(wire, nack_reason::CONGESTION));
        }
        if is_node && !self.signing.budget.take(self.now_ns) {
            self.counters.signing_limited += 1;
            return self.out.push_back(echo.nack(wire, nack_reason::CONGESTION));
        }
        self.waiting += 1;
        self.signing.nodes_in_flight += usize::from(is_node);
        self.signing.waiting.insert(key.to_vec(), vec![pending]);
        let name = key.to_vec();
        let UnsignedSegment { source, state, octets, last_segment, signer } = unsigned;
        let sign = SignSegment { source, state, octets, name, last_segment, signer };
        self.issue(Op::SignSegment(sign), Owner::Signing { key: key.to_vec(), is_node });
    }

    pub(super) fn on_signed(&mut self, key: Vec<u8>, is_node: bool, signed: SignedSegment) {
        let waiting = self.signing.waiting.remove(&key).unwrap_or_default();
        self.waiting -= waiting.len();
        self.signing.nodes_in_flight -= usize::from(is_node);
        let packet = match signed {
            SignedSegment::Packet(packet) => packet,
            SignedSegment::Changed => {
                self.counters.changed += waiting.len() as u64;
                self.close_version_of(&key);
                return self.nack_all(waiting);
            }
            SignedSegment::Failed => {
                self.counters.failed += waiting.len() as u64;
                return self.nack_all(waiting);
            }
        };
        let count = waiting.len() as u64;
        for PendingSegment { echo, .. } in &waiting {
            self.out.push_back(echo.wrap(&packet));
        }
        match is_node {
            true => {
                self.counters.nodes_signed += 1;
                let weight = packet.len();
                self.signing.nodes.insert(key, packet, weight);
            }
            false => self.counters.segments += count,
        }
    }

    fn nack_all(&mut self, waiting: Vec<PendingSegment>) {
        for PendingSegment { wire, echo } in waiting {
            self.out.push_back(echo.nack(&wire, nack_reason::NONE));
        }
    }

    /// Ends the version to which a segment of this name belongs.
    fn close_version_of(&mut self, name: &[u8]) {
        let parsed = NameRef::from_value(name).ok().and_then(naming::parse);
        let gone: Option<OpenFile> = parsed.and_then(|it| self.open.remove(it.object.value()));
        self.close_files(gone);
    }

    /// The tree of an open version is not kept. Its root is computed again, and level 1 with it.
    pub(super) fn begin_pending(&mut self, object: &[u8]) -> bool {
        let Some(open) = self.open.peek(object) else { return false };
        let (file, state) = (open.file, open.state);
        self.hash(file, state, None)
    }
}

/// TLV-VALUE of the name of an Interest that was decoded before.
fn parsed_name(wire: &[u8]) -> &[u8] {
    interest_name(wire).map_or(&[], |name| name.value())
}
