//! Reading while the publisher still computes the root.
//!
//! Until then each packet of tree level 1 is signed like a description and proves the 2 MiB under
//! it. Once the root is there, nodes come unsigned; the reader then asks for the description
//! again, beside everything else, and goes on with what it has proved. Unsigned nodes that came
//! before that answer are put aside, not trusted.
//!
//! Invariant: a node counts only if its packet's signature leads to an anchor, or if it folds to a
//! root that does.

use std::collections::BTreeMap;

use byname_packet::{Data, signature_type};

use super::{Body, ObjectPlan, Proof, Reader};
use crate::authenticate::Verdict;
use crate::discovery::{Discovered, Discovery, DiscoveryConfig};
use crate::error::{ProtocolProblem, ReadError};
use crate::fetch::{FetchConfig, FetchFailure};
use crate::naming::Part;
use crate::request::Context;
use crate::verify::Output;

/// Where level 1 stands among the parts of an object: after the content.
const LEVEL_1: usize = 1;

/// Unsigned nodes kept until the root is known; more are asked for again.
const ASIDE_MAX: usize = 64;

/// What a reader without a root is up to.
#[derive(Debug)]
pub(super) struct Pending {
    config: FetchConfig,
    /// Asks for the description with the root.
    pub(super) discovery: Option<Box<Discovery>>,
    /// Segments of level 1 that came unsigned.
    aside: BTreeMap<u64, Box<[u8]>>,
    settled: Option<Box<Discovered>>,
}

impl Pending {
    pub(super) fn new(config: FetchConfig) -> Self {
        Pending { config, discovery: None, aside: BTreeMap::new(), settled: None }
    }
}

impl Reader {
    /// Whether the root is not known yet: nodes then prove themselves.
    pub fn is_root_pending(&self) -> bool {
        matches!(self.plan.proof, Proof::Pending { .. })
    }

    /// The description with the root, if the reader began without and has found it since.
    pub fn settled(&self) -> Option<&Discovered> {
        self.pending.settled.as_deref()
    }

    /// Takes a packet that belongs to the search for the root.
    pub(super) fn take_description(
        &mut self,
        data: &Data<'_>,
        context: &mut Context<'_>,
        out: &mut Output<'_>,
    ) -> bool {
        let Some(discovery) = &mut self.pending.discovery else { return false };
        if !discovery.handle_data(data, context) {
            return false;
        }
        self.check_description(context, out);
        true
    }

    /// A segment of level 1 while the root is pending.
    pub(super) fn take_signed_node(
        &mut self,
        segment: u64,
        data: &Data<'_>,
        context: &mut Context<'_>,
        out: &mut Output<'_>,
    ) {
        let now_ns = context.now_ns;
        if data.signature_info.signature_type == signature_type::NULL {
            if self.pending.aside.len() < ASIDE_MAX {
                self.pending.aside.insert(segment, data.content.into());
            }
            return self.look_for_root(context);
        }
        let part = Part::Tree(1);
        match self.authenticator.check(data, context) {
            Verdict::Trusted(_) => {
                if let Body::Tree(verifier) = &mut self.body {
                    verifier.handle_segment(part, segment, data.content, out);
                }
            }
            Verdict::Wait => self.parts[LEVEL_1].fetch.want(segment, now_ns, now_ns),
            Verdict::Refused(error) => {
                // Perhaps somebody on the way made it up: another attempt may get the right one.
                let fetch = &mut self.parts[LEVEL_1].fetch;
                fetch.refuse(segment, now_ns);
                if matches!(fetch.failure(), Some(FetchFailure::Refused { .. })) {
                    self.fail(error.into());
                }
            }
        }
    }

    fn look_for_root(&mut self, context: &Context<'_>) {
        if self.pending.discovery.is_none() {
            let name = self.plan.name.view().without_last(1).to_name();
            let config = DiscoveryConfig { fetch: self.pending.config, ..Default::default() };
            let discovery = Discovery::new(name, config, context.now_ns);
            self.pending.discovery = Some(Box::new(discovery));
        }
    }

    /// Goes on with the root once it is known.
    pub(super) fn check_description(&mut self, context: &mut Context<'_>, out: &mut Output<'_>) {
        let Some(discovery) = &mut self.pending.discovery else { return };
        let discovered = match discovery.poll_outcome() {
            None => return,
            Some(Ok(discovered)) => discovered,
            Some(Err(ReadError::NotFound { .. })) => return self.fail_gone(),
            Some(Err(error)) => return self.fail(error),
        };
        self.pending.discovery = None;
        if discovered.metadata.name != self.plan.name {
            return self.fail_gone();
        }
        let plan = match ObjectPlan::new(&discovered.metadata, false) {
            Ok(plan) => plan,
            Err(error) => return self.fail(error),
        };
        let is_same = (plan.size, plan.segment_bytes) == (self.plan.size, self.plan.segment_bytes);
        let (Some(root), true) = (plan.root(), is_same) else {
            let (name, problem) = (plan.name, ProtocolProblem::Incomplete);
            return self.fail(ReadError::Protocol { name, problem });
        };
        self.plan = plan;
        self.pending.settled = Some(Box::new(discovered));
        let Body::Tree(verifier) = &mut self.body else { return };
        verifier.set_root(root);
        let aside = std::mem::take(&mut self.pending.aside);
        for (segment, bytes) in &aside {
            verifier.handle_segment(Part::Tree(1), *segment, bytes, out);
        }
        for segment in verifier.segments_of_missing_nodes() {
            if !aside.contains_key(&segment) {
                let now_ns = context.now_ns;
                self.parts[LEVEL_1].fetch.want(segment, now_ns, now_ns);
            }
        }
        self.settle_faults(context.now_ns);
        self.settle_needs(context.now_ns);
    }

    fn fail_gone(&mut self) {
        let name = self.plan.name.clone();
        self.fail(ReadError::VersionGone { name });
    }
}
