//! Reading while the publisher still computes the root.
//!
//! Until then each packet of tree level 1 is signed like a description and proves the 2 MiB under
//! it. Once the root is there, nodes come unsigned, or signed for others; the reader then asks for
//! the description again, beside everything else, and goes on with what it has verified. Nodes that
//! came before that answer are put aside, not trusted, and refused if there is no root after all.
//!
//! Invariant: a node counts only if its packet's signature leads to an anchor, or if it folds to a
//! root that does.

use std::collections::BTreeMap;

use byname_packet::{Data, signature_type};
use byname_security::trust::TrustError;

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

/// Time for which the root is asked for after a node that does not prove itself; no cache holds a
/// description without the root for so long.
const ROOT_PATIENCE_NS: u64 = 500_000_000;

/// Pause before the description is asked for again while the publisher does not answer.
const OUTAGE_PAUSE_NS: u64 = 500_000_000;

/// Such nodes kept until the root is known; the others are asked for again then.
const ASIDE_MAX: usize = 64;

/// A segment of level 1 and the number of the source that sent it.
#[derive(Debug)]
struct Aside {
    sender: usize,
    bytes: Box<[u8]>,
}

/// State of a reader without a root.
#[derive(Debug)]
pub(super) struct Pending {
    config: FetchConfig,
    /// Asks for the description with the root.
    pub(super) discovery: Option<Box<Discovery>>,
    /// Segments of level 1 that came without a signature that counts, as far as they are kept.
    aside: BTreeMap<u64, Option<Aside>>,
    /// Since when the root has been asked for without an answer of the publisher.
    unanswered_since_ns: Option<u64>,
    /// The fault of the last of them.
    doubt: Option<TrustError>,
    settled: Option<Box<Discovered>>,
}

impl Pending {
    pub(super) fn new(config: FetchConfig) -> Self {
        Pending {
            config,
            discovery: None,
            aside: BTreeMap::new(),
            unanswered_since_ns: None,
            doubt: None,
            settled: None,
        }
    }
}

impl Reader {
    /// True if the root is not known yet: nodes then prove themselves.
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
        let is_unsigned = data.signature_info.signature_type == signature_type::NULL;
        match self.authenticator.check(data, context) {
            Verdict::Trusted(_) if !is_unsigned => {
                if let Body::Tree(verifier) = &mut self.body {
                    verifier.set_sender(context.flow.source());
                    verifier.handle_segment(Part::Tree(1), segment, data.content, out);
                }
                return;
            }
            Verdict::Wait => {
                let now_ns = context.now_ns;
                return self.parts[LEVEL_1].fetch.want(segment, now_ns, now_ns);
            }
            Verdict::Trusted(_) => {}
            Verdict::Refused(doubt) => self.pending.doubt = Some(doubt),
        }
        // Either the root is there by now, or somebody on the path made it up.
        let is_kept = self.pending.aside.values().flatten().count() < ASIDE_MAX;
        let sender = context.flow.source();
        let kept = is_kept.then(|| Aside { sender, bytes: data.content.into() });
        self.pending.aside.insert(segment, kept);
        self.discover_root(context.now_ns);
    }

    fn discover_root(&mut self, now_ns: u64) {
        if self.pending.discovery.is_none() {
            let name = self.plan.name.view().without_last(1).to_name();
            let config = DiscoveryConfig {
                fetch: self.pending.config,
                root_pending_ns: ROOT_PATIENCE_NS,
                ..DiscoveryConfig::default()
            };
            let discovery = Discovery::new(name, config, now_ns);
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
            Some(Err(ReadError::RootPending { .. })) => {
                let is_unanswered = discovery.is_unanswered();
                return self.on_still_pending(is_unanswered, context.now_ns);
            }
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
            if let Some(Aside { sender, bytes }) = bytes {
                verifier.set_sender(*sender);
                verifier.handle_segment(Part::Tree(1), *segment, bytes, out);
            }
        }
        for segment in verifier.segments_of_missing_nodes() {
            if !matches!(aside.get(&segment), Some(Some(_))) {
                let now_ns = context.now_ns;
                self.parts[LEVEL_1].fetch.want(segment, now_ns, now_ns);
            }
        }
        self.settle_faults(context.now_ns);
        self.settle_needs(context.now_ns);
    }

    /// The description has no root yet. An older one says nothing of what the publisher, who does
    /// not answer, would say now: it is waited for as long as the fetch bears silence.
    fn on_still_pending(&mut self, is_unanswered: bool, now_ns: u64) {
        let since_ns = *self.pending.unanswered_since_ns.get_or_insert(now_ns);
        let is_over = now_ns.saturating_sub(since_ns) >= self.pending.config.silence_ns;
        if !is_unanswered || is_over {
            self.pending.unanswered_since_ns = None;
            return self.refuse_aside(now_ns);
        }
        self.pending.discovery = None;
        self.discover_root(now_ns.saturating_add(OUTAGE_PAUSE_NS));
    }

    /// The root is still not there, so what was put aside is from nobody who counts: another
    /// attempt may get the right one.
    fn refuse_aside(&mut self, now_ns: u64) {
        self.pending.discovery = None;
        let fetch = &mut self.parts[LEVEL_1].fetch;
        for segment in std::mem::take(&mut self.pending.aside).into_keys() {
            fetch.refuse(segment, now_ns);
        }
        if matches!(fetch.failure(), Some(FetchFailure::Refused { .. })) {
            let name = self.plan.name.clone();
            let doubt = self.pending.doubt.take().map(ReadError::from);
            self.fail(doubt.unwrap_or(ReadError::RootPending { name }));
        }
    }

    fn fail_gone(&mut self) {
        let name = self.plan.name.clone();
        self.fail(ReadError::VersionGone { name });
    }
}
