//! Reads one version of an object: content, tree levels, certificates, whatever the proof needs.
//!
//! Bytes are handed out when they are verified, in any order. How they are verified depends on what
//! the publisher offers ([`ObjectPlan`]): by the signed root (ours), by the signature of each
//! packet (publishers that know no roots), or not at all (`insecure`).
//!
//! Invariants: nothing is handed out unverified; memory is bounded by what
//! [`verify`](crate::verify) names, or by [`PARKED_MAX`] segments of a foreign object.

mod faults;
mod foreign;
mod local;
mod pending;
mod plan;
mod random;
mod replicas;
mod speculative;
mod whole;

pub use faults::{REFUSED_MAX, Refused};
pub use foreign::PARKED_MAX;
pub use plan::{ObjectPlan, Proof, Selection};
pub use speculative::SPECULATIVE_MAX;

use std::collections::{BTreeMap, VecDeque};

use byname_packet::{ContentType, Data, Name, NameRef};

use crate::authenticate::{Authenticator, Verdict};
use crate::error::{ProtocolProblem, ReadError};
use crate::fetch::{Class, Fetch, FetchConfig, NackKind, SegmentRuns};
use crate::flow::Flow;
use crate::naming::{Part, part_name};
use crate::numbers::SEGMENT_BYTES_MAX;
use crate::request::{Context, Request};
use crate::verify::{Output, SEGMENTS_MAX, UnitSet, Verifier};

use foreign::{Foreign, Taken};
use pending::Pending;
use replicas::Replicas;

/// Blocks that an owner may hold back because it needs them in order, with those in flight.
pub const HELD_MAX: usize = 4096;

#[derive(Debug)]
struct PartFetch {
    part: Part,
    name: Name,
    fetch: Fetch,
}

#[derive(Debug)]
enum Body {
    /// Verified by the tree under a signed root.
    Tree(Box<Verifier>),
    /// Verified packet by packet, or not at all.
    Foreign(Foreign),
}

/// The state machine; see [`crate::request`] for the order of calls.
#[derive(Debug)]
pub struct Reader {
    plan: ObjectPlan,
    /// The content first, then the tree levels from 1 on.
    parts: Vec<PartFetch>,
    body: Body,
    /// Units that the owner may have, not asked for yet.
    local: SegmentRuns,
    /// Blocks that the owner holds back, if it needs them in order.
    held_count: Option<usize>,
    /// Packets that came before the plan was verified, with who sent them; `None` if it is.
    held: Option<Vec<(usize, Box<[u8]>)>>,
    /// The last unit that was selected.
    last_unit: u64,
    refused: VecDeque<Refused>,
    refused_count: u64,
    /// By the number of the source.
    refused_by: BTreeMap<usize, u64>,
    replicas: Replicas,
    authenticator: Authenticator,
    pending: Pending,
    failure: Option<ReadError>,
}

impl Reader {
    /// Will read what `selection` says of the object.
    pub fn new(plan: ObjectPlan, selection: Selection, config: FetchConfig) -> Self {
        let to_do = plan.segments(&selection);
        let last_unit = plan.last_unit(&selection);
        let content = PartFetch {
            part: Part::Content,
            name: plan.name.clone(),
            fetch: Fetch::new(to_do, plan.last_segment, config),
        };
        let mut parts = vec![content];
        let mut local = SegmentRuns::default();
        let verifier = match plan.proof {
            Proof::Root { root, size, segment_bytes } => {
                Some(Verifier::new(root, size, segment_bytes, UnitSet::default()))
            }
            Proof::Pending { size, segment_bytes } => Some(Verifier::rootless(size, segment_bytes)),
            Proof::Packets | Proof::Nothing => None,
        };
        let body = match verifier {
            Some(verifier) => {
                if let Selection::Resume(claimed) = &selection {
                    claimed.iter().for_each(|unit| local.push(unit..unit + 1));
                }
                // The content waits for its nodes.
                let prompt = FetchConfig { class: Class::Prompt, ..config };
                parts.extend((1..=verifier.level_count()).map(|level| {
                    let part = Part::Tree(level);
                    PartFetch {
                        part,
                        name: part_name(plan.name.view(), part),
                        fetch: Fetch::new(Default::default(), verifier.last_segment(part), prompt),
                    }
                }));
                Body::Tree(Box::new(verifier))
            }
            None => Body::Foreign(Foreign::new(&plan)),
        };
        let (authenticator, pending) = (Authenticator::new(config), Pending::new(config));
        let replicas = Replicas::new(&plan.name, plan.hints.clone());
        Reader {
            plan,
            parts,
            body,
            local,
            held_count: None,
            held: None,
            last_unit,
            refused: VecDeque::new(),
            refused_count: 0,
            refused_by: BTreeMap::new(),
            replicas,
            authenticator,
            pending,
            failure: None,
        }
    }

    /// The plan that is followed.
    pub fn plan(&self) -> &ObjectPlan {
        &self.plan
    }

    /// The names of which the requested segments are children: content, then tree levels. A
    /// driver uses them to find the reader for a packet.
    pub fn part_names(&self) -> impl Iterator<Item = NameRef<'_>> {
        self.parts.iter().map(|part| part.name.view())
    }

    /// The units verified so far, if the object has a root.
    pub fn verified(&self) -> Option<&UnitSet> {
        match &self.body {
            Body::Tree(verifier) => Some(verifier.verified()),
            Body::Foreign(_) => None,
        }
    }

    /// Number of verified units that the owner had already.
    pub fn local_count(&self) -> u64 {
        match &self.body {
            Body::Tree(verifier) => verifier.local_count(),
            Body::Foreign(_) => 0,
        }
    }

    /// Size of the object: announced, or known because its end was reached.
    pub fn size(&self) -> Option<u64> {
        match &self.body {
            Body::Tree(_) => self.plan.size,
            Body::Foreign(foreign) => self.plan.size.or_else(|| foreign.end()),
        }
    }

    /// A packet came. Verified bytes go to `out`. True if it was meant for this reader.
    pub fn handle_data(
        &mut self,
        data: &Data<'_>,
        is_marked: bool,
        context: &mut Context<'_>,
        out: &mut Output<'_>,
    ) -> bool {
        if let Some(result) = self.authenticator.handle_data(data, context) {
            if let Err(error) = result {
                self.fail(error.into());
            }
            return true;
        }
        if self.take_description(data, context, out) {
            return true;
        }
        let Some((place, segment)) = self.find(data.name) else { return false };
        let fetch = &mut self.parts[place].fetch;
        if !fetch.handle_data(segment, is_marked, context.now_ns, context.flow) {
            return true;
        }
        self.replicas.on_data((place, segment));
        if data.meta.content_type == ContentType::NACK {
            let name = self.plan.name.clone();
            self.fail(ReadError::VersionGone { name });
            return true;
        }
        if !self.hold(data, context.flow.source()) {
            self.take((place, segment), data, context, out);
        }
        self.check_fetches();
        true
    }

    /// Takes a packet that was asked for.
    fn take(
        &mut self,
        (place, segment): (usize, u64),
        data: &Data<'_>,
        context: &mut Context<'_>,
        out: &mut Output<'_>,
    ) {
        let part = self.parts[place].part;
        let is_signed_node = part == Part::Tree(1) && self.is_root_pending();
        match &mut self.body {
            Body::Tree(_) if is_signed_node => {
                self.take_signed_node(segment, data, context, out);
                self.settle_faults(context.now_ns);
                self.settle_needs(context.now_ns);
            }
            Body::Tree(verifier) => {
                verifier.set_sender(context.flow.source());
                verifier.handle_segment(part, segment, data.content, out);
                self.settle_faults(context.now_ns);
                self.settle_needs(context.now_ns);
            }
            Body::Foreign(_) => self.take_foreign(segment, data, context, out),
        }
    }

    /// A Nack for the Interest of this name came.
    pub fn handle_nack(&mut self, name: NameRef<'_>, kind: NackKind, context: &mut Context<'_>) {
        if let Some(ask) = self.authenticator.ask() {
            ask.handle_nack(name, kind, context);
        }
        if let Some(discovery) = &mut self.pending.discovery {
            discovery.handle_nack(name, kind, context);
            self.check_description(context, &mut |_, _| {});
        }
        if let Some((place, segment)) = self.find(name) {
            let fetch = &mut self.parts[place].fetch;
            let kind = self.replicas.on_nack((place, segment), kind);
            fetch.handle_nack(segment, kind, context.now_ns, context.flow);
        }
        self.check_fetches();
    }

    /// The deadline has passed.
    pub fn handle_timeout(&mut self, context: &mut Context<'_>) {
        if let Some(ask) = self.authenticator.ask() {
            ask.handle_timeout(context);
        }
        if let Some(discovery) = &mut self.pending.discovery {
            discovery.handle_timeout(context);
            self.check_description(context, &mut |_, _| {});
        }
        for part in &mut self.parts {
            part.fetch.handle_timeout(context.now_ns, context.flow);
        }
        self.check_fetches();
    }

    /// The next Interest to send.
    pub fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        context.flow.settle(context.now_ns);
        if self.failure.is_some() {
            return None;
        }
        if let Some(ask) = self.authenticator.ask() {
            // Content that cannot be checked yet would only have to be fetched again.
            return ask.poll_request(context);
        }
        if let Some(discovery) = &mut self.pending.discovery
            && let Some(request) = discovery.poll_request(context)
        {
            return Some(request);
        }
        self.poll_tree(context).or_else(|| self.poll_content(context))
    }

    /// Who waits for the content that is asked for from now on; a tree is always prompt.
    pub fn set_class(&mut self, class: Class) {
        self.parts[0].fetch.set_class(class);
    }

    /// Reports how many blocks the owner holds back, because it needs them in order. They count
    /// against the memory bound, so fewer new ones are asked for.
    pub fn set_held_count(&mut self, held_count: usize) {
        self.held_count = Some(held_count);
    }

    /// Puts what comes from now on together with its neighbours, which is cheaper to check and to
    /// write: `out` gets up to [`SPAN_UNITS`](crate::verify::SPAN_UNITS) units at once. The
    /// owner calls [`settle`](Reader::settle) whenever `poll_request` has nothing more.
    pub fn buffer_spans(&mut self) {
        if let Body::Tree(verifier) = &mut self.body {
            verifier.buffer_spans();
        }
    }

    /// True if [`settle`](Reader::settle) has something to do.
    pub fn has_buffered_spans(&self) -> bool {
        matches!(&self.body, Body::Tree(verifier) if verifier.has_buffered_spans())
    }

    /// Checks the buffered spans; verified bytes go to `out`.
    pub fn settle(&mut self, now_ns: u64, out: &mut Output<'_>) {
        let Body::Tree(verifier) = &mut self.body else { return };
        verifier.settle(out);
        self.settle_faults(now_ns);
        self.settle_needs(now_ns);
        self.check_fetches();
    }

    /// When [`handle_timeout`](Reader::handle_timeout) has something to do.
    pub fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        if let Some(ask) = self.authenticator.ask() {
            // Nothing else is sent before the certificate is there.
            return ask.poll_deadline(flow);
        }
        let parts = self.parts.iter_mut().filter_map(|part| part.fetch.poll_deadline(flow));
        let discovery = self.pending.discovery.as_mut();
        let discovery = discovery.and_then(|discovery| discovery.poll_deadline(flow));
        parts.chain(discovery).min()
    }

    /// Why the reading ended early, if it did.
    pub fn failure(&self) -> Option<&ReadError> {
        self.failure.as_ref()
    }

    /// True when everything selected was handed out.
    pub fn is_finished(&self) -> bool {
        let is_idle = match &self.body {
            Body::Tree(verifier) => verifier.is_idle(),
            Body::Foreign(foreign) => foreign.is_idle(),
        };
        let is_idle = is_idle && self.local.is_empty();
        self.failure.is_none() && is_idle && self.parts[0].fetch.is_finished()
    }

    /// The first of its tables that holds more than it may, with what it holds and may hold.
    pub fn overfull(&self) -> Option<(&'static str, usize, usize)> {
        let in_flight = self.parts[0].fetch.in_flight_count();
        let tables = [
            ("segments in flight", in_flight, SEGMENTS_MAX),
            ("bad pieces to report", self.refused.len(), REFUSED_MAX),
        ];
        let own = tables.into_iter().find(|(_, held, max)| held > max);
        own.or_else(|| match &self.body {
            Body::Tree(verifier) => verifier.overfull(),
            Body::Foreign(_) => None,
        })
    }

    /// Gives back to the flow what is in flight. Call before dropping the reader.
    pub fn abandon(&mut self, flow: &mut Flow) {
        self.authenticator.abandon(flow);
        if let Some(discovery) = &mut self.pending.discovery {
            discovery.abandon(flow);
        }
        self.parts.iter_mut().for_each(|part| part.fetch.abandon(flow));
    }

    fn find(&self, name: NameRef<'_>) -> Option<(usize, u64)> {
        let mut parts = self.parts.iter().enumerate();
        parts.find_map(|(place, part)| Some((place, name.segment_of(part.name.view())?)))
    }

    fn poll_tree(&mut self, context: &mut Context<'_>) -> Option<Request> {
        for (place, part) in self.parts.iter_mut().enumerate().skip(1) {
            let (now_ns, flow) = (context.now_ns, &mut *context.flow);
            let bytes = SEGMENT_BYTES_MAX as u64;
            if let Some(segment) = part.fetch.poll_segment(now_ns, usize::MAX, bytes, flow) {
                return Some(self.replicas.request(&part.name, (place, segment), now_ns));
            }
        }
        None
    }

    fn poll_content(&mut self, context: &mut Context<'_>) -> Option<Request> {
        let room = match &self.body {
            Body::Tree(verifier) => verifier.segments_room(),
            Body::Foreign(foreign) => foreign.room(),
        };
        let room = match self.held_count {
            // All that is in flight may have to wait for the first.
            Some(held_count) => room.min(HELD_MAX.saturating_sub(held_count)),
            None => room,
        };
        let room = self.speculative_room(room);
        let bytes = self.plan.segment_bytes.unwrap_or(SEGMENT_BYTES_MAX as u64);
        let content = &mut self.parts[0];
        let segment = content.fetch.poll_segment(context.now_ns, room, bytes, context.flow)?;
        if let Body::Tree(verifier) = &mut self.body {
            verifier.prepare(segment);
            // The window may have doubled when the answer comes.
            let prefetch = 2 * content.fetch.in_flight_count() as u64;
            verifier.prefetch_nodes(segment, prefetch, self.last_unit);
        }
        let name = &self.parts[0].name;
        let request = self.replicas.request(name, (0, segment), context.now_ns);
        self.settle_needs(context.now_ns);
        Some(request)
    }

    fn settle_needs(&mut self, now_ns: u64) {
        let Body::Tree(verifier) = &mut self.body else { return };
        while let Some(node) = verifier.poll_need() {
            let part = Part::Tree(node.level);
            let Some(segments) = verifier.segments_of(part, node.index) else { continue };
            let fetch = &mut self.parts[usize::from(node.level)].fetch;
            segments.for_each(|segment| fetch.want(segment, now_ns, now_ns));
        }
    }

    /// A segment of an object without root: each packet proves itself, as far as wanted.
    fn take_foreign(
        &mut self,
        segment: u64,
        data: &Data<'_>,
        context: &mut Context<'_>,
        out: &mut Output<'_>,
    ) {
        if self.plan.proof == Proof::Packets {
            match self.authenticator.check(data, context) {
                Verdict::Trusted(_) => {}
                Verdict::Refused(error) => return self.fail(error.into()),
                Verdict::Wait => {
                    // Kept by nobody: it is asked for again when its certificate is there.
                    let now_ns = context.now_ns;
                    return self.parts[0].fetch.want(segment, now_ns, now_ns);
                }
            }
        }
        let fetch = &mut self.parts[0].fetch;
        let last = data.meta.final_block_id.and_then(|component| component.segment());
        if let Some(last) = last {
            fetch.set_last_segment(last, context.flow);
        }
        let last = fetch.last_segment();
        let Body::Foreign(foreign) = &mut self.body else { return };
        if foreign.take(segment, data.content, last, out) == Taken::WrongLength {
            let name = self.plan.name.clone();
            let problem = ProtocolProblem::SegmentLength { segment };
            self.fail(ReadError::Protocol { name, problem });
        }
    }

    fn fail(&mut self, error: ReadError) {
        self.failure.get_or_insert(error);
    }
}
