//! Segments of an object without a root: put at their offsets, or in order when only the order
//! tells the offsets.

use std::collections::BTreeMap;

use crate::verify::Output;

use super::ObjectPlan;

/// Segments kept until those before them have come.
pub const PARKED_MAX: usize = 512;

/// Outcome of taking a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Yes,
    WrongLength,
}

#[derive(Debug)]
enum SegmentOrder {
    /// Offsets follow from the announced size and segment size.
    Any { size: u64, segment_bytes: u64 },
    /// Offsets follow from the lengths of the segments before.
    Ascending { next_segment: u64, next_offset: u64, parked: BTreeMap<u64, Box<[u8]>> },
}

/// Where segments belong.
#[derive(Debug)]
pub(super) struct Foreign {
    order: SegmentOrder,
    /// Octets, once the last segment was handed out in order.
    end: Option<u64>,
}

impl Foreign {
    pub(super) fn new(plan: &ObjectPlan) -> Self {
        let order = match (plan.size, plan.segment_bytes) {
            (Some(size), Some(segment_bytes)) => SegmentOrder::Any { size, segment_bytes },
            _ => {
                SegmentOrder::Ascending { next_segment: 0, next_offset: 0, parked: BTreeMap::new() }
            }
        };
        Foreign { order, end: None }
    }

    pub(super) fn end(&self) -> Option<u64> {
        self.end
    }

    pub(super) fn room(&self) -> usize {
        match &self.order {
            SegmentOrder::Any { .. } => PARKED_MAX,
            SegmentOrder::Ascending { parked, .. } => PARKED_MAX.saturating_sub(parked.len()),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        match &self.order {
            SegmentOrder::Any { .. } => true,
            SegmentOrder::Ascending { parked, .. } => parked.is_empty(),
        }
    }

    pub(super) fn take(
        &mut self,
        segment: u64,
        bytes: &[u8],
        last: Option<u64>,
        out: &mut Output<'_>,
    ) -> Taken {
        match &mut self.order {
            SegmentOrder::Any { size, segment_bytes } => {
                let start = segment.saturating_mul(*segment_bytes);
                let expected = size.saturating_sub(start).min(*segment_bytes);
                if bytes.len() as u64 != expected {
                    return Taken::WrongLength;
                }
                out(start, bytes);
            }
            SegmentOrder::Ascending { next_segment, next_offset, parked } => {
                if segment > *next_segment {
                    parked.insert(segment, bytes.into());
                    return Taken::Yes;
                }
                if segment < *next_segment {
                    return Taken::Yes;
                }
                out(*next_offset, bytes);
                *next_offset = next_offset.saturating_add(bytes.len() as u64);
                *next_segment += 1;
                while let Some(bytes) = parked.remove(next_segment) {
                    out(*next_offset, &bytes);
                    *next_offset = next_offset.saturating_add(bytes.len() as u64);
                    *next_segment += 1;
                }
                if last.is_some_and(|last| *next_segment > last) {
                    self.end = Some(*next_offset);
                }
            }
        }
        Taken::Yes
    }
}
