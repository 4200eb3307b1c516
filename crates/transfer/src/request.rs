//! Common interface of the client engines: what they ask for, and what they are given.
//!
//! Every engine ([`Discovery`](crate::discovery::Discovery), [`Reader`](crate::reader::Reader))
//! is used in the same way: report events (`handle_*`), then send every request it has
//! (`poll_request` until `None`), then wait for a packet or for its deadline (`poll_deadline`).

use byname_packet::lp::nack_reason;
use byname_packet::{Interest, InterestBuilder, Name, NameRef};
use byname_security::trust::Validator;

use crate::fetch::{Class, Fetch, FetchConfig, FetchFailure, NackKind, SegmentRuns};
use crate::flow::Flow;
use crate::versions::VersionMemory;

/// An Interest to send; the driver adds the Nonce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Name asked for.
    pub name: Name,
    /// Data with a longer name will do.
    pub can_be_prefix: bool,
    /// Stale copies in caches will not do.
    pub must_be_fresh: bool,
    /// The replica that is to answer: the only delegation of a forwarding hint.
    pub hint: Option<Name>,
    /// Copies in caches will not do: what came did not verify.
    pub past_caches: bool,
}

impl Request {
    /// Asks for exactly this name.
    pub fn exact(name: Name) -> Self {
        Request { name, can_be_prefix: false, must_be_fresh: false, hint: None, past_caches: false }
    }

    /// Asks for any Data under this name.
    pub fn prefix(name: Name) -> Self {
        Request { can_be_prefix: true, ..Self::exact(name) }
    }

    /// Asks for what its producer says now.
    pub fn fresh_prefix(name: Name) -> Self {
        Request { must_be_fresh: true, ..Self::prefix(name) }
    }

    /// Appends the Interest to `out`. It lives as long as one that does not say: retransmission
    /// does not wait for that.
    pub fn encode(&self, nonce: [u8; 4], out: &mut Vec<u8>) {
        InterestBuilder::new(self.name.view())
            .can_be_prefix(self.can_be_prefix)
            .must_be_fresh(self.must_be_fresh)
            .forwarding_hint(self.hint.as_slice())
            .past_caches(self.past_caches)
            .nonce(nonce)
            .encode(out);
    }

    /// True if Data of this name answers the request.
    pub fn is_answered_by(&self, name: NameRef<'_>) -> bool {
        if self.can_be_prefix {
            self.name.view().is_prefix_of(name)
        } else {
            self.name.view() == name
        }
    }
}

/// State that an engine works with and does not own.
pub struct Context<'a> {
    /// Monotonic time.
    pub now_ns: u64,
    /// Wall clock, for the validity of certificates.
    pub unix_ns: u64,
    /// The path that the requests take.
    pub flow: &'a mut Flow,
    /// Decides which signatures count.
    pub validator: &'a mut Validator,
    /// The newest version seen of each name.
    pub versions: &'a mut VersionMemory,
}

impl Context<'_> {
    /// Wall clock in seconds.
    pub fn unix_s(&self) -> u64 {
        self.unix_ns / 1_000_000_000
    }
}

impl NackKind {
    /// The meaning of a Nack of this Interest.
    pub fn of(interest: &Interest<'_>, reason: u64) -> Self {
        match Self::from_reason(reason) {
            NackKind::NoRoute | NackKind::Gone if interest.must_be_fresh => NackKind::NotFresh,
            kind => kind,
        }
    }

    /// The meaning of an NDNLPv2 NackReason.
    pub fn from_reason(reason: u64) -> Self {
        match reason {
            nack_reason::CONGESTION => NackKind::Congestion,
            nack_reason::DUPLICATE => NackKind::Duplicate,
            nack_reason::NO_ROUTE => NackKind::NoRoute,
            // Unknown reasons mean the same as none: a definite no.
            _ => NackKind::Gone,
        }
    }
}

/// One request with its retransmissions: a fetch of a single "segment".
#[derive(Debug)]
pub(crate) struct Ask {
    request: Request,
    fetch: Fetch,
}

/// Expected size of an answer that is no segment.
const ANSWER_BYTES: u64 = 512;

impl Ask {
    pub(crate) fn new(request: Request, config: FetchConfig) -> Self {
        // Everything else waits for it.
        let config = FetchConfig { class: Class::Prompt, ..config };
        Ask { request, fetch: Fetch::new(SegmentRuns::up_to(0), Some(0), config) }
    }

    pub(crate) fn request(&self) -> &Request {
        &self.request
    }

    /// True if the Data of this name answers, and was waited for.
    pub(crate) fn handle_data(&mut self, name: NameRef<'_>, context: &mut Context<'_>) -> bool {
        self.request.is_answered_by(name)
            && self.fetch.handle_data(0, false, context.now_ns, context.flow)
    }

    pub(crate) fn handle_nack(
        &mut self,
        name: NameRef<'_>,
        kind: NackKind,
        context: &mut Context<'_>,
    ) {
        if self.request.name.view() == name {
            self.fetch.handle_nack(0, kind, context.now_ns, context.flow);
        }
    }

    pub(crate) fn handle_timeout(&mut self, context: &mut Context<'_>) {
        self.fetch.handle_timeout(context.now_ns, context.flow);
    }

    pub(crate) fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        self.fetch.poll_segment(context.now_ns, 1, ANSWER_BYTES, context.flow)?;
        Some(self.request.clone())
    }

    pub(crate) fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        self.fetch.poll_deadline(flow)
    }

    pub(crate) fn failure(&self) -> Option<FetchFailure> {
        self.fetch.failure()
    }

    pub(crate) fn abandon(&mut self, flow: &mut Flow) {
        self.fetch.abandon(flow);
    }
}
