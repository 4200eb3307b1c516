//! Plan of a read, from the description of a version: what to fetch and how to verify it.

use std::ops::{Range, RangeInclusive};

use byname_packet::Name;
use byname_security::tree::{Hash, Shape, UNIT_BYTES};

use crate::error::{ProtocolProblem, ReadError};
use crate::fetch::SegmentRuns;
use crate::metadata::{ContentRoot, Metadata};
use crate::naming::last_segment;
use crate::verify::{SEGMENT_BYTES_MIN, UnitSet};

/// Segment sizes with which a tree can be read.
const SEGMENT_BYTES: RangeInclusive<u64> =
    SEGMENT_BYTES_MIN..=byname_packet::MAX_PACKET_BYTES as u64;

/// Verification of the bytes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// By the hash tree under the signed root.
    Root {
        /// The root.
        root: Hash,
        /// Octets of the object.
        size: u64,
        /// Octets in every segment but the last.
        segment_bytes: u64,
    },
    /// By signed nodes of tree level 1, until the root is known.
    Pending {
        /// Octets of the object.
        size: u64,
        /// Octets in every segment but the last.
        segment_bytes: u64,
    },
    /// Each packet by its own signature, for publishers that announce no root.
    Packets,
    /// Not at all.
    Nothing,
}

/// One version of an object, ready to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectPlan {
    /// Versioned name.
    pub name: Name,
    /// Octets of the object, if announced.
    pub size: Option<u64>,
    /// Octets in every segment but the last, if announced. Without it, offsets are known only in
    /// order, and so the object is handed out in order.
    pub segment_bytes: Option<u64>,
    /// The last segment, if it follows from the announcement.
    pub last_segment: Option<u64>,
    /// Verification of its bytes.
    pub proof: Proof,
    /// Replicas of the content: each Interest names one of them.
    pub hints: Vec<Name>,
}

impl ObjectPlan {
    /// The content that `metadata` describes: of a file its bytes, of a directory its listing.
    /// With `is_insecure`, what cannot be verified is read all the same.
    ///
    /// # Errors
    /// [`ReadError::Protocol`] if the announcement contradicts itself or is that of a link.
    pub fn new(metadata: &Metadata, is_insecure: bool) -> Result<Self, ReadError> {
        if let Some(target) = metadata.attributes().link_target {
            // Nothing follows links yet, and the target must not pass for the content of a file.
            let problem = ProtocolProblem::Link { target: target.to_vec() };
            return Err(ReadError::Protocol { name: metadata.name.clone(), problem });
        }
        let (size, segment_bytes) = if metadata.is_directory() {
            (metadata.listing_size, metadata.listing_segment_size)
        } else {
            (metadata.size, metadata.segment_size)
        };
        let fail = |problem| {
            let name = metadata.name.clone();
            Err(ReadError::Protocol { name, problem })
        };
        let proof = match (metadata.root, size, segment_bytes) {
            (ContentRoot::Known(_) | ContentRoot::Pending, _, Some(bytes))
                if !SEGMENT_BYTES.contains(&bytes) =>
            {
                return fail(ProtocolProblem::SegmentSize { bytes });
            }
            (ContentRoot::Known(root), Some(size), Some(segment_bytes)) => {
                Proof::Root { root: Hash(root), size, segment_bytes }
            }
            (ContentRoot::Pending, Some(size), Some(segment_bytes))
                if Shape::new(size).level_count() > 0 =>
            {
                Proof::Pending { size, segment_bytes }
            }
            (ContentRoot::Known(_), _, _) => return fail(ProtocolProblem::Incomplete),
            _ if is_insecure => Proof::Nothing,
            _ => Proof::Packets,
        };
        if segment_bytes == Some(0) {
            return fail(ProtocolProblem::SegmentSize { bytes: 0 });
        }
        let both = size.zip(segment_bytes);
        let last_segment = both.map(|(size, bytes)| last_segment(size, bytes));
        let last_segment = last_segment.or(metadata.last_segment);
        let (name, hints) = (metadata.name.clone(), metadata.forwarding_hint().to_vec());
        Ok(ObjectPlan { name, size, segment_bytes, last_segment, proof, hints })
    }

    /// True if what is described can be verified by its tree, now or while its root is computed.
    pub fn is_tree_of(metadata: &Metadata) -> bool {
        Self::new(metadata, false).is_ok_and(|plan| plan.tree().is_some())
    }

    /// The root, if there is one.
    pub fn root(&self) -> Option<Hash> {
        match self.proof {
            Proof::Root { root, .. } => Some(root),
            Proof::Pending { .. } | Proof::Packets | Proof::Nothing => None,
        }
    }

    /// Octets of the object and of its segments if it is verified by a tree, whether its root is
    /// known or not.
    pub fn tree(&self) -> Option<(u64, u64)> {
        match self.proof {
            Proof::Root { size, segment_bytes, .. } | Proof::Pending { size, segment_bytes } => {
                Some((size, segment_bytes))
            }
            Proof::Packets | Proof::Nothing => None,
        }
    }

    /// The segments to ask for.
    pub(super) fn segments(&self, selection: &Selection) -> SegmentRuns {
        let Some((size, segment_bytes)) = self.tree() else {
            return self.unverified_segments(selection);
        };
        let unit_bytes = UNIT_BYTES as u64;
        let unit_count = Shape::new(size).unit_count().max(1);
        let mut runs = SegmentRuns::default();
        let mut push_units = |units: Range<u64>| {
            let start = units.start * unit_bytes / segment_bytes;
            let end_bytes = units.end.saturating_mul(unit_bytes).min(size).max(1);
            runs.push(start..end_bytes.div_ceil(segment_bytes));
        };
        match selection {
            Selection::All => push_units(0..unit_count),
            Selection::Resume(claimed) => claimed.missing(0..unit_count).for_each(push_units),
            Selection::Bytes(bytes) if bytes.start < bytes.end => {
                let end = bytes.end.div_ceil(unit_bytes).min(unit_count);
                push_units(bytes.start / unit_bytes..end);
            }
            Selection::Rest { bytes, held } if bytes.start < bytes.end => {
                let end = bytes.end.div_ceil(unit_bytes).min(unit_count);
                held.missing(bytes.start / unit_bytes..end).for_each(push_units);
            }
            Selection::Bytes(_) | Selection::Rest { .. } => {}
        }
        runs
    }

    /// The last unit that will be asked for; no node beyond that is worth prefetching.
    pub(super) fn last_unit(&self, selection: &Selection) -> u64 {
        let end = match selection {
            Selection::Bytes(bytes) | Selection::Rest { bytes, .. } => {
                bytes.end.min(self.size.unwrap_or(bytes.end))
            }
            Selection::All | Selection::Resume(_) => self.size.unwrap_or(0),
        };
        end.div_ceil(UNIT_BYTES as u64).saturating_sub(1)
    }

    fn unverified_segments(&self, selection: &Selection) -> SegmentRuns {
        match (selection, self.size, self.segment_bytes) {
            (
                Selection::Bytes(bytes) | Selection::Rest { bytes, .. },
                Some(size),
                Some(segment_bytes),
            ) => {
                let mut runs = SegmentRuns::default();
                let end = bytes.end.min(size);
                if bytes.start < end {
                    runs.push(bytes.start / segment_bytes..end.div_ceil(segment_bytes));
                }
                runs
            }
            _ => SegmentRuns::from(0),
        }
    }
}

/// Which part of an object to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All of it.
    All,
    /// All, of which the owner may have these units already: they are asked from the owner
    /// ([`Reader::poll_local`](super::Reader::poll_local)) and checked, and fetched if they are
    /// not verified. Objects without a root are read whole.
    Resume(UnitSet),
    /// Overlap with this range of bytes; whole units or segments are handed out. Objects without
    /// a known segment size are read from the start.
    Bytes(Range<u64>),
    /// The same but for units that the owner expects to find in a cache: it gives them to
    /// [`Reader::offer_unit`](super::Reader::offer_unit), and says
    /// [`Reader::want`](super::Reader::want) of those that were not there after all. Objects
    /// without a tree are read as if nothing was held.
    Rest {
        /// The range.
        bytes: Range<u64>,
        /// The units.
        held: UnitSet,
    },
}
