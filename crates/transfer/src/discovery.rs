//! From a name to the signed description of its current version.
//!
//! Asks `<name>/32=metadata`, walks the signature's certificates to an anchor, and accepts the
//! description only if it is about that name and not older than what was seen before. "Being
//! written" and "root pending" are answers to wait on, not errors: the publisher is asked again
//! with growing pauses.
//!
//! The publisher is asked first (MustBeFresh). Only when it does not answer is the same asked of
//! whoever has an older answer: a cache, or a mirror. One after the other, because a Data that
//! comes does not tell which of two Interests it answers. A publisher that is busy (Nack
//! Congestion) is there: it is waited for, and no older answer is taken.

mod answer;
mod damage;
mod unverified;

use byname_packet::{Data, Name, NameRef};
use byname_security::trust::{TrustError, Trusted};

use crate::authenticate::{Authenticator, Verdict};
use crate::error::ReadError;
use crate::fetch::{FetchConfig, FetchFailure, NackKind};
use crate::flow::Flow;
use crate::freshness::{FRESH_PATIENCE_NS, Freshness, SHORT_PATIENCE_NS};
use crate::metadata::{Answer, Metadata};
use crate::naming::metadata_name;
use crate::request::{Ask, Context, Request};

const MS: u64 = 1_000_000;
const PAUSE_FIRST_NS: u64 = 50 * MS;
const PAUSE_MAX_NS: u64 = 1_000 * MS;

/// Patience of a discovery.
#[derive(Clone, Copy, Debug)]
pub struct DiscoveryConfig {
    /// Retransmission of the single requests.
    pub fetch: FetchConfig,
    /// True if an older description will do.
    pub freshness: Freshness,
    /// Time for which "being written" is waited on.
    pub being_written_ns: u64,
    /// Time for which "root pending" and "being listed" are waited on, while the publisher keeps
    /// saying so.
    pub root_pending_ns: u64,
    /// Take "root pending" for an answer if a reader can go on from there: see
    /// [`Proof::Pending`](crate::reader::Proof).
    pub takes_pending: bool,
}

impl Default for DiscoveryConfig {
    fn default() -> Self {
        DiscoveryConfig {
            fetch: FetchConfig::default(),
            freshness: Freshness::default(),
            being_written_ns: 60_000 * MS,
            // A server hashes more than 1 GB/s; an hour is a file of several TiB.
            root_pending_ns: 3_600_000 * MS,
            takes_pending: false,
        }
    }
}

/// The current version of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovered {
    /// Its description.
    pub metadata: Metadata,
    /// Version component of the description's name.
    pub version: u64,
    /// Why the description counts.
    pub trust: Trusted,
    /// The signed packet, which proves all this to others.
    pub packet: Vec<u8>,
    /// The certificates that lead from it to the anchor, as far as they are known.
    pub certificates: Vec<Vec<u8>>,
    /// True if this is what the publisher says now. Otherwise it did not answer, or what came as
    /// its answer is old.
    pub is_fresh: bool,
    /// Time since it was signed, by the clocks of the publisher and of this machine.
    pub age_ns: u64,
}

/// Reason to wait that an answer gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// Somebody is writing the file at the publisher's.
    Written,
    /// The publisher is computing the root.
    Hashed,
    /// The publisher is making the list of the directory.
    Listed,
}

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whom {
    /// The publisher, until this time.
    Publisher { until_ns: u64 },
    /// Whoever has an answer, because asking the publisher ended with this.
    Anybody(Option<FetchFailure>),
}

#[derive(Debug)]
enum Stage {
    /// Waiting for a description.
    Asking(Box<Ask>),
    /// Waiting for certificates; the description came in this packet.
    Authenticating(Vec<u8>),
    /// Asking again at this time.
    Pausing(u64),
    Done,
}

/// The state machine; see [`crate::request`] for the order of calls.
#[derive(Debug)]
pub struct Discovery {
    name: Name,
    config: DiscoveryConfig,
    stage: Stage,
    whom: Whom,
    authenticator: Authenticator,
    started_ns: u64,
    pause_ns: u64,
    /// The publisher, or a forwarder on the way to it, has said "congestion".
    is_busy: bool,
    /// Since when only refusals have come of asking the publisher.
    refused_since_ns: Option<u64>,
    stale_asks: u32,
    damaged_asks: u32,
    waiting: Option<Waiting>,
    is_waiting_reported: bool,
    outcome: Option<Result<Discovered, ReadError>>,
}

impl Discovery {
    /// Will find the current version of `name`, a file or directory.
    pub fn new(name: Name, config: DiscoveryConfig, now_ns: u64) -> Self {
        Discovery {
            stage: Stage::Pausing(now_ns),
            whom: Whom::Anybody(None),
            authenticator: Authenticator::new(config.fetch),
            name,
            config,
            started_ns: now_ns,
            pause_ns: PAUSE_FIRST_NS,
            is_busy: false,
            refused_since_ns: None,
            stale_asks: 0,
            damaged_asks: 0,
            waiting: None,
            is_waiting_reported: false,
            outcome: None,
        }
    }

    /// Uses only what the answer states about `about`: a key that counts for that name will do.
    pub fn vouching_for(mut self, about: Name) -> Self {
        self.authenticator.set_about(about);
        self
    }

    /// The name asked for.
    pub fn name(&self) -> NameRef<'_> {
        self.name.view()
    }

    /// Reason of the publisher to wait, once it has lasted for a second; reported once.
    pub fn poll_waiting(&mut self, now_ns: u64) -> Option<Waiting> {
        const WORTH_REPORTING_NS: u64 = 1_000 * MS;
        let waited_ns = now_ns.saturating_sub(self.started_ns);
        if waited_ns < WORTH_REPORTING_NS || self.is_waiting_reported {
            return None;
        }
        let waiting = self.waiting.take();
        self.is_waiting_reported = waiting.is_some();
        waiting
    }

    /// A packet came. True if it was meant for this discovery.
    pub fn handle_data(&mut self, data: &Data<'_>, context: &mut Context<'_>) -> bool {
        match &mut self.stage {
            Stage::Asking(ask) => {
                if !ask.handle_data(data.name, context) {
                    return false;
                }
                self.stage = Stage::Authenticating(data.wire().to_vec());
                self.authenticate(context);
                true
            }
            Stage::Authenticating(_) => match self.authenticator.handle_data(data, context) {
                None => false,
                Some(Ok(())) => {
                    self.authenticate(context);
                    true
                }
                Some(Err(error)) => {
                    self.on_distrust(error, context);
                    true
                }
            },
            Stage::Pausing(_) | Stage::Done => false,
        }
    }

    /// A Nack for the Interest of this name came.
    pub fn handle_nack(&mut self, name: NameRef<'_>, kind: NackKind, context: &mut Context<'_>) {
        let is_own = metadata_name(self.name.view()).view() == name;
        // Nobody signs a Nack: it says that there is no answer on this path, not that there is
        // nothing under this name.
        let kind = if is_own && kind == NackKind::Gone { NackKind::NoRoute } else { kind };
        if kind == NackKind::NotFresh && matches!(self.whom, Whom::Anybody(_)) {
            // To a question asked before, when only a fresh answer would do.
            return;
        }
        if let Some(ask) = self.current_ask() {
            ask.handle_nack(name, kind, context);
        }
        let is_refused = matches!(kind, NackKind::NoRoute | NackKind::NotFresh);
        if kind == NackKind::Congestion && is_own && matches!(self.whom, Whom::Publisher { .. }) {
            self.is_busy = true;
            self.refused_since_ns = None;
        }
        if is_refused && is_own && matches!(self.stage, Stage::Asking(_)) {
            self.refused_since_ns.get_or_insert(context.now_ns);
            self.on_no_route(context);
        }
        self.check_ask(context);
    }

    /// The deadline has passed.
    pub fn handle_timeout(&mut self, context: &mut Context<'_>) {
        self.wake(context);
        if let Some(ask) = self.current_ask() {
            ask.handle_timeout(context);
        }
        if let (Stage::Asking(_), Whom::Publisher { until_ns }) = (&self.stage, self.whom)
            && until_ns <= context.now_ns
            && !self.is_busy
        {
            self.ask_anybody(FetchFailure::Silence { segment: 0 }, context);
        }
        self.check_ask(context);
    }

    /// The next Interest to send.
    pub fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        context.flow.settle(context.now_ns);
        self.wake(context);
        self.current_ask()?.poll_request(context)
    }

    /// When [`handle_timeout`](Discovery::handle_timeout) has something to do.
    pub fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        if let Stage::Pausing(until_ns) = self.stage {
            return Some(until_ns);
        }
        let patience = match (&self.stage, self.whom) {
            (Stage::Asking(_), Whom::Publisher { until_ns }) if !self.is_busy => Some(until_ns),
            _ => None,
        };
        let ask = self.current_ask()?.poll_deadline(flow);
        [patience, ask].into_iter().flatten().min()
    }

    /// True if the publisher did not answer: what came, if anything, is older.
    pub fn is_unanswered(&self) -> bool {
        matches!(self.whom, Whom::Anybody(Some(_)))
    }

    /// The result, once.
    pub fn poll_outcome(&mut self) -> Option<Result<Discovered, ReadError>> {
        self.outcome.take()
    }

    /// Gives back to the flow what is in flight. Call before dropping an unfinished discovery.
    pub fn abandon(&mut self, flow: &mut Flow) {
        self.authenticator.abandon(flow);
        if let Stage::Asking(ask) = &mut self.stage {
            ask.abandon(flow);
        }
        self.stage = Stage::Done;
    }

    fn current_ask(&mut self) -> Option<&mut Ask> {
        match &mut self.stage {
            Stage::Asking(ask) => Some(ask),
            Stage::Authenticating(_) => self.authenticator.ask(),
            Stage::Pausing(_) | Stage::Done => None,
        }
    }

    /// Asks again when a pause is over; at the start, too.
    fn wake(&mut self, context: &mut Context<'_>) {
        let Stage::Pausing(until_ns) = self.stage else { return };
        if until_ns > context.now_ns {
            return;
        }
        let name = metadata_name(self.name.view());
        if self.config.freshness == Freshness::Offline {
            self.whom = Whom::Anybody(None);
            let ask = Ask::new(Request::prefix(name), self.config.fetch);
            self.stage = Stage::Asking(Box::new(ask));
            return;
        }
        let patience_ns = match self.config.freshness {
            Freshness::Required => u64::MAX,
            _ if self.is_unreachable(context) => SHORT_PATIENCE_NS,
            _ => FRESH_PATIENCE_NS.min(self.config.fetch.silence_ns / 2),
        };
        self.whom = Whom::Publisher { until_ns: context.now_ns.saturating_add(patience_ns) };
        let ask = Ask::new(Request::fresh_prefix(name), self.config.fetch);
        self.stage = Stage::Asking(Box::new(ask));
    }

    fn is_unreachable(&self, context: &mut Context<'_>) -> bool {
        context.versions.unreachable.contains(self.name.view(), context.now_ns)
    }

    /// The publisher has had its time: an older answer will do, if the user lets it.
    fn ask_anybody(&mut self, failure: FetchFailure, context: &mut Context<'_>) {
        let Stage::Asking(ask) = &mut self.stage else { return };
        if self.config.freshness != Freshness::Preferred {
            return;
        }
        ask.abandon(context.flow);
        self.whom = Whom::Anybody(Some(failure));
        let waited_ns = context.now_ns.saturating_sub(self.started_ns);
        let left_ns = self.config.fetch.silence_ns.saturating_sub(waited_ns);
        let silence_ns = left_ns.max(FRESH_PATIENCE_NS.min(self.config.fetch.silence_ns / 2));
        let config = FetchConfig { silence_ns, ..self.config.fetch };
        let request = Request::prefix(metadata_name(self.name.view()));
        self.stage = Stage::Asking(Box::new(Ask::new(request, config)));
    }

    /// "No route" comes for a moment whenever a server restarts. Who waited for that once does
    /// not wait again: neither for the other names of that publisher nor for older answers.
    fn on_no_route(&mut self, context: &mut Context<'_>) {
        match self.whom {
            Whom::Publisher { .. } if self.is_unreachable(context) => {
                self.ask_anybody(FetchFailure::NoRoute, context);
            }
            Whom::Anybody(Some(FetchFailure::NoRoute)) => {
                if let Stage::Asking(ask) = &mut self.stage {
                    ask.abandon(context.flow);
                }
                let name = self.name.clone();
                context.versions.unreachable.note(name.clone(), context.now_ns);
                self.fail(ReadError::NoRoute { name });
            }
            _ => {}
        }
    }

    /// True if the publisher is waited for although this came of asking it. A mirror is busy until
    /// it has hashed its copy; that it has no fresh answer then is believed once nothing else was
    /// heard for as long as without any congestion.
    fn is_only_busy(&self, failure: FetchFailure, now_ns: u64) -> bool {
        let patience_ns = self.config.fetch.no_route_ns;
        let lasted = |since_ns| now_ns.saturating_sub(since_ns) >= patience_ns;
        let is_refused = failure == FetchFailure::NoRoute;
        self.is_busy && !(is_refused && self.refused_since_ns.is_some_and(lasted))
    }

    fn check_ask(&mut self, context: &mut Context<'_>) {
        if matches!(self.stage, Stage::Authenticating(_)) && self.authenticator.give_up(context) {
            return self.authenticate(context);
        }
        let Stage::Asking(ask) = &self.stage else { return };
        let Some(failure) = ask.failure() else { return };
        let failure = match self.whom {
            Whom::Publisher { .. }
                if !self.is_only_busy(failure, context.now_ns)
                    && self.config.freshness == Freshness::Preferred =>
            {
                return self.ask_anybody(failure, context);
            }
            // Why the publisher was silent says more than that others were.
            Whom::Anybody(Some(first)) => first,
            _ => failure,
        };
        self.fail_unanswered(failure, context);
    }

    /// The publisher was silent, and nobody else can say what there is now.
    fn fail_unanswered(&mut self, failure: FetchFailure, context: &mut Context<'_>) {
        let name = self.name.clone();
        if matches!(self.whom, Whom::Anybody(Some(_))) {
            context.versions.unreachable.note(name.clone(), context.now_ns);
        }
        self.fail(match failure {
            FetchFailure::NoRoute => ReadError::NoRoute { name },
            _ => ReadError::TimeOut { name },
        });
    }

    fn fail(&mut self, error: ReadError) {
        self.stage = Stage::Done;
        self.outcome = Some(Err(error));
    }

    fn pause(&mut self, pause_ns: u64, context: &Context<'_>) {
        self.stage = Stage::Pausing(context.now_ns.saturating_add(pause_ns));
        self.pause_ns = (self.pause_ns * 2).min(PAUSE_MAX_NS);
    }

    fn authenticate(&mut self, context: &mut Context<'_>) {
        let Stage::Authenticating(packet) = &mut self.stage else { return };
        let packet = std::mem::take(packet);
        let Ok(data) = Data::decode(&packet) else { return self.stage = Stage::Done };
        match self.authenticator.check(&data, context) {
            Verdict::Wait => self.stage = Stage::Authenticating(packet),
            Verdict::Refused(TrustError::NoCertificate { certificate, .. }) => {
                let name = self.name.clone();
                self.on_distrust(TrustError::NoCertificate { name, certificate }, context);
            }
            Verdict::Refused(error) => self.on_distrust(error, context),
            Verdict::Trusted(trust) => match Answer::decode(&data) {
                Ok(Answer::Absence(absence)) => self.on_absence(absence, context),
                Ok(Answer::Metadata(metadata)) => {
                    self.on_metadata(metadata, trust, &data, context);
                }
                Err(error) => self.fail(self.problem(error.into())),
            },
        }
    }
}

#[cfg(test)]
mod tests;
