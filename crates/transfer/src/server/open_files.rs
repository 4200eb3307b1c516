//! Open versions of files, and what stands around their segments.

use std::ops::Range;

use byname_packet::{DataBuilder, NameRef, NullSigner, NumberComponent};

use super::ops::Handle;
use super::reply::Echo;
use super::state::FileState;
use crate::naming;
use crate::numbers::SEGMENT_FRESHNESS_MS;

/// A version of a file that can be read.
pub(super) struct OpenFile {
    pub(super) mount: usize,
    pub(super) state: FileState,
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

/// A segment in flight, with what a Nack needs.
pub(super) struct PendingSegment {
    pub(super) wire: Vec<u8>,
    pub(super) echo: Echo,
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

/// Packet around the content of a segment, kept because that of the next one differs from it
/// in the octets of the name only.
#[derive(Default)]
pub(super) struct Template {
    pub(super) front: Vec<u8>,
    pub(super) trailer: Vec<u8>,
    /// Where the TLV-VALUE of the name lies in `front`.
    pub(super) name: Range<usize>,
    pub(super) len: usize,
    pub(super) last_segment: u64,
}

impl Template {
    pub(super) fn new(name: NameRef<'_>, extent: &Extent) -> Option<Self> {
        let last = NumberComponent::segment(extent.last_segment);
        let plan = segment_builder(name, &last).plan(extent.len, &NullSigner).ok()?;
        let name_end = plan.name_at() + name.wire_len();
        Some(Self {
            name: name_end - name.value().len()..name_end,
            front: plan.header,
            trailer: plan.trailer,
            len: extent.len,
            last_segment: extent.last_segment,
        })
    }

    pub(super) fn fits(&self, name: NameRef<'_>, extent: &Extent) -> bool {
        self.name.len() == name.value().len()
            && (self.len, self.last_segment) == (extent.len, extent.last_segment)
    }

    /// For a segment of this name.
    pub(super) fn around(&mut self, name: NameRef<'_>) -> (&[u8], &[u8]) {
        self.front[self.name.clone()].copy_from_slice(name.value());
        (&self.front, &self.trailer)
    }
}
