//! Answers that are not what was signed: asked for again, reported to the owner, then an error. And
//! answers that do not come.

use byname_security::trust::TrustError;

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
    /// Number of the source that sent it: [`Flow::source`](crate::flow::Flow::source) of then.
    pub source: usize,
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

    /// The same of those that one source sent.
    pub fn refused_by(&self, source: usize) -> u64 {
        self.refused_by.get(&source).copied().unwrap_or(0)
    }

    pub(super) fn settle_faults(&mut self, now_ns: u64) {
        let Body::Tree(verifier) = &mut self.body else { return };
        let mut failure = None;
        while let Some((fault, source)) = verifier.poll_fault() {
            let (part, segments) = match fault {
                Fault::Local { unit } => (Part::Content, verifier.segments_of(Part::Content, unit)),
                Fault::Segment { part, segment } => (part, Some(segment..=segment)),
                Fault::Block { part, block } => (part, verifier.segments_of(part, block)),
            };
            if let Some(refused) = refused(fault, source) {
                self.refused_count += 1;
                *self.refused_by.entry(source).or_insert(0) += 1;
                if self.refused.len() < REFUSED_MAX {
                    self.refused.push_back(refused);
                }
            }
            let place = place_of(part);
            let fetch = &mut self.parts[place].fetch;
            for segment in segments.into_iter().flatten() {
                match fault {
                    Fault::Local { .. } => fetch.want(segment, now_ns, now_ns),
                    _ if self.replicas.on_bad((place, segment)) => fetch.doubt(segment, now_ns),
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

    /// Ends if a certificate or a segment cannot be had.
    pub(super) fn check_fetches(&mut self) {
        if let Some(certificate) = self.authenticator.failed_certificate() {
            let name = self.plan.name.clone();
            return self.fail(TrustError::NoCertificate { name, certificate }.into());
        }
        let failure = self.parts.iter().find_map(|part| part.fetch.failure());
        let Some(failure) = failure else { return };
        let name = self.plan.name.clone();
        self.fail(match failure {
            FetchFailure::Silence { .. } => ReadError::TimeOut { name },
            FetchFailure::NoRoute => ReadError::NoRoute { name },
            FetchFailure::Gone { .. } => ReadError::VersionGone { name },
            FetchFailure::EndMoved => {
                ReadError::Protocol { name, problem: ProtocolProblem::EndMoved }
            }
            FetchFailure::Refused { segment } => {
                ReadError::Protocol { name, problem: ProtocolProblem::SegmentLength { segment } }
            }
        });
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

fn refused(fault: Fault, source: usize) -> Option<Refused> {
    match fault {
        Fault::Local { .. } => None,
        Fault::Block { part, block } => {
            Some(Refused { part, index: block, is_segment: false, source })
        }
        Fault::Segment { part, segment } => {
            Some(Refused { part, index: segment, is_segment: true, source })
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
