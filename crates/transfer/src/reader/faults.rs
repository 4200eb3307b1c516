//! Answers that are not what was signed: asked for again, reported to the owner, then an error.

use super::{Body, Reader};
use crate::error::{ProtocolProblem, ReadError};
use crate::fetch::FetchFailure;
use crate::naming::Part;
use crate::verify::Fault;

/// Refusals kept for [`Reader::poll_refused`]; more are counted only.
pub const REFUSED_MAX: usize = 64;

/// Something that came from the network and was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Content or tree level.
    pub part: Part,
    /// Index of the unit or node; for a segment that cannot exist, its number.
    pub index: u64,
    /// The packet was no segment of the object at all.
    pub is_segment: bool,
}

impl Reader {
    /// The next refusal since the last call, so that the owner can say where it came from.
    pub fn poll_refused(&mut self) -> Option<Refused> {
        self.refused.pop_front()
    }

    /// Number of units, nodes and segments that were refused.
    pub fn refused_count(&self) -> u64 {
        self.refused_count
    }

    pub(super) fn settle_faults(&mut self, now_ns: u64) {
        let Body::Tree(verifier) = &mut self.body else { return };
        let mut failure = None;
        while let Some(fault) = verifier.poll_fault() {
            let (part, segments) = match fault {
                Fault::Local { unit } => (Part::Content, verifier.segments_of(Part::Content, unit)),
                Fault::Segment { part, segment } => (part, Some(segment..=segment)),
                Fault::Block { part, block } => (part, verifier.segments_of(part, block)),
            };
            if let Some(refused) = refused(fault) {
                self.refused_count += 1;
                if self.refused.len() < REFUSED_MAX {
                    self.refused.push_back(refused);
                }
            }
            let fetch = &mut self.parts[place_of(part)].fetch;
            for segment in segments.into_iter().flatten() {
                match fault {
                    Fault::Local { .. } => fetch.want(segment, now_ns, now_ns),
                    _ => fetch.refuse(segment, now_ns),
                }
            }
            if matches!(fetch.failure(), Some(FetchFailure::Refused { .. })) {
                failure.get_or_insert(fault);
            }
        }
        if let Some(fault) = failure {
            self.fail(self.fault_error(fault));
        }
    }

    fn fault_error(&self, fault: Fault) -> ReadError {
        let name = self.plan.name.clone();
        match fault {
            Fault::Segment { segment, .. } => {
                ReadError::Protocol { name, problem: ProtocolProblem::SegmentLength { segment } }
            }
            Fault::Local { unit } | Fault::Block { part: Part::Content, block: unit } => {
                ReadError::BadUnit { name, unit }
            }
            Fault::Block { part: Part::Tree(level), block: node } => {
                ReadError::BadNode { name, level, node }
            }
        }
    }
}

fn refused(fault: Fault) -> Option<Refused> {
    match fault {
        Fault::Local { .. } => None,
        Fault::Block { part, block } => Some(Refused { part, index: block, is_segment: false }),
        Fault::Segment { part, segment } => {
            Some(Refused { part, index: segment, is_segment: true })
        }
    }
}

/// Where a part stands in the list of parts.
fn place_of(part: Part) -> usize {
    match part {
        Part::Content => 0,
        Part::Tree(level) => usize::from(level),
    }
}
