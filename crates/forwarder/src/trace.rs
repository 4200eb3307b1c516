//! Path traces: what is told of the way of an answer, and to whom.
//!
//! Nothing is told unless an Interest asks for it (`PathTrace`). Then every forwarder adds a hop to
//! the header of the answer: whether it had the Data, and else from what kind of face it came and
//! after how long. Names and addresses are for programs of this machine, and for others only where
//! the operator says so ([`TracePolicy::All`]); that holds for what other forwarders of this
//! machine have added, too.

use byname_packet::lp::LpHeader;
use byname_packet::lp::trace::{Hop, Origin, hops};

/// Whom a forwarder tells where answers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TracePolicy {
    /// Nobody; nor is the wish passed on.
    Off,
    /// Everybody; names and addresses only programs of this machine.
    #[default]
    Local,
    /// Everybody, with names and addresses.
    All,
}

/// See the module. Buffers are filled anew for each answer that is traced.
#[derive(Debug)]
pub(crate) struct Tracer {
    pub(crate) policy: TracePolicy,
    node: String,
    detailed: Vec<u8>,
    plain: Vec<u8>,
}

impl Tracer {
    /// For a machine of this name.
    pub(crate) fn new(policy: TracePolicy, node: &str) -> Self {
        Self { policy, node: node.to_owned(), detailed: Vec::new(), plain: Vec::new() }
    }

    /// Returns whether the answer to an Interest with this header is to be traced.
    pub(crate) fn is_asked(&self, header: &LpHeader<'_>) -> bool {
        header.path_trace.is_some() && self.policy != TracePolicy::Off
    }

    /// Makes the trace of an answer from the content store.
    pub(crate) fn note_cached(&mut self) {
        self.note(None, Hop { node: None, origin: Origin::Cache, peer: None, waited_us: None });
    }

    /// Makes the trace of an answer that came with `upstream`. A trace that is malformed counts as
    /// none.
    pub(crate) fn note(&mut self, upstream: Option<&[u8]>, hop: Hop<'_>) {
        self.detailed.clear();
        self.plain.clear();
        let is_from_here = hop.origin == Origin::Program;
        let before = upstream.and_then(|trace| hops(trace).ok()).unwrap_or_default();
        for hop in before {
            hop.append(&mut self.detailed);
            // A neighbour has left out what strangers must not know, a program of this machine not.
            if is_from_here { without_details(hop) } else { hop }.append(&mut self.plain);
        }
        let node = Some(&*self.node).filter(|node| !node.is_empty());
        Hop { node, ..hop }.append(&mut self.detailed);
        without_details(hop).append(&mut self.plain);
    }

    /// The trace made last, for a program of this machine or somebody else.
    pub(crate) fn trace_for(&self, is_local: bool) -> &[u8] {
        if is_local || self.policy == TracePolicy::All { &self.detailed } else { &self.plain }
    }
}

fn without_details(hop: Hop<'_>) -> Hop<'_> {
    Hop { node: None, peer: None, ..hop }
}
