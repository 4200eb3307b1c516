//! Which segment of one object to ask for next, and when to give up.
//!
//! The fetch knows numbers of segments only: no bytes, no names, no verification. Its owner turns
//! a number into an Interest, and tells what came back. Segments are independent, so they may
//! arrive in any order and a lost one holds up nobody else; that also makes "resume" and "byte
//! range" the same thing as a fresh download, with other runs of segments to do.
//!
//! Invariants: a segment is to do, in flight, waiting for its next attempt, or finished, never two
//! of these; what is in flight is counted in the shared [`Flow`] exactly once; memory is bounded by
//! the runs given at the start plus the window of the flow.

mod config;
mod failure;
mod refusals;
mod retries;
mod runs;
mod table;

pub use crate::sharing::Class;
pub use config::{FetchConfig, NO_ROUTE_PATIENCE_NS, OUTAGE_SILENCES};
pub use failure::{FetchFailure, NackKind};
pub use runs::SegmentRuns;

use byname_retry::{BackOff, Jitter};

use crate::flow::Flow;
use crate::sharing::Share;
use refusals::Refusals;
use retries::Retries;
use table::{Attempt, Table};

const MS: u64 = 1_000_000;

/// Pause after "no route".
const NO_ROUTE_RETRY_NS: u64 = 100 * MS;
/// The same once that has lasted for [`NO_ROUTE_PATIENCE_NS`], for who waits longer.
const NO_ROUTE_RETRY_LATE_NS: u64 = 800 * MS;
const CONGESTION_PAUSES: BackOff = BackOff { min_ns: 100 * MS, max_ns: 1600 * MS };
/// Pauses after a Nonce that was seen before: where Interests run in a circle, for long.
const DUPLICATE_PAUSES: BackOff = BackOff { min_ns: 20 * MS, max_ns: 800 * MS };
const REFUSED_RETRY_NS: u64 = 20 * MS;
/// Pause before another replica is asked.
const ELSEWHERE_RETRY_NS: u64 = MS;
/// Later answers that show a request to be lost, once it is late as well.
const LATER_ANSWERS: usize = 3;
/// While others are answered, a segment may be tried so many times as often, or for so many
/// silences: where every second packet is lost, one in sixty is not answered six times.
const LOSSY_TIMES: u32 = 6;
const LOSSY_SILENCES: u64 = 3;
/// Repetitions that are let out whatever the room.
const REPEATS_MIN: usize = 8;

/// The state machine of one object.
///
/// * **handle** (something happened): [`handle_data`](Fetch::handle_data),
///   [`handle_nack`](Fetch::handle_nack), [`handle_timeout`](Fetch::handle_timeout).
/// * **command** (the owner wants something): [`set_last_segment`](Fetch::set_last_segment),
///   [`refuse`](Fetch::refuse), [`abandon`](Fetch::abandon).
/// * **poll** (what to do now): [`poll_segment`](Fetch::poll_segment),
///   [`poll_deadline`](Fetch::poll_deadline), [`failure`](Fetch::failure),
///   [`is_finished`](Fetch::is_finished).
///
/// After any handle or command, poll segments until `None`, then sleep until the deadline.
#[derive(Debug)]
pub struct Fetch {
    config: FetchConfig,
    to_do: SegmentRuns,
    in_flight: Table,
    /// Places in the order of sending of the last answered ones, highest first.
    answered: [u64; LATER_ANSWERS],
    share: Share,
    /// Segments to ask for again.
    waiting: Retries,
    refusals: Refusals,
    /// Of its pauses; from the flow, at the first request.
    jitter: Option<Jitter>,
    last_segment: Option<u64>,
    heard_ns: Option<u64>,
    /// When a silence was last broken by asking for one segment again.
    probed_ns: Option<u64>,
    polled_ns: u64,
    no_route_since_ns: Option<u64>,
    failure: Option<FetchFailure>,
}

impl Fetch {
    /// Will ask for the segments in `to_do`. Give `last_segment` if it is known; otherwise it is
    /// learned through [`set_last_segment`](Fetch::set_last_segment).
    pub fn new(mut to_do: SegmentRuns, last_segment: Option<u64>, config: FetchConfig) -> Self {
        if let Some(last) = last_segment {
            to_do.cut_after(last);
        }
        Fetch {
            config,
            to_do,
            in_flight: Table::default(),
            answered: [0; LATER_ANSWERS],
            share: Share::new(config.class),
            waiting: Retries::default(),
            refusals: Refusals::default(),
            jitter: None,
            last_segment,
            heard_ns: None,
            probed_ns: None,
            polled_ns: 0,
            no_route_since_ns: None,
            failure: None,
        }
    }

    /// A packet with this segment came. True if it was wanted; a duplicate, or a segment nobody
    /// asked for, is not.
    pub fn handle_data(
        &mut self,
        segment: u64,
        is_marked: bool,
        now_ns: u64,
        flow: &mut Flow,
    ) -> bool {
        if let Some(attempt) = self.in_flight.remove(segment) {
            self.check_verdict(&attempt, now_ns, flow);
            flow.on_data(now_ns, &attempt.sent(), is_marked);
            self.note_answered(attempt.order);
            self.find_overtaken(now_ns, flow);
        } else if let Some(attempt) = self.waiting.remove(segment) {
            if attempt.was_overtaken {
                flow.on_verdict(false);
            }
        } else {
            return false;
        }
        // Even late, after its time-out, an answer is taken instead of asking again.
        self.heard_ns = Some(now_ns);
        self.no_route_since_ns = None;
        self.refusals.on_answer();
        true
    }

    /// A Nack for this segment came.
    pub fn handle_nack(&mut self, segment: u64, kind: NackKind, now_ns: u64, flow: &mut Flow) {
        let Some(attempt) = self.in_flight.remove(segment) else { return };
        if kind == NackKind::Congestion {
            flow.on_congestion_nack(now_ns, &attempt.sent());
        } else {
            flow.on_released(1);
        }
        let pause_ns = match kind {
            NackKind::Congestion => CONGESTION_PAUSES.longest_ns(attempt.tries),
            NackKind::Duplicate => DUPLICATE_PAUSES.longest_ns(attempt.tries),
            NackKind::NoRoute | NackKind::NotFresh => {
                let since_ns = *self.no_route_since_ns.get_or_insert(now_ns);
                let lasted_ns = now_ns.saturating_sub(since_ns);
                if lasted_ns >= self.config.no_route_ns {
                    self.fail(FetchFailure::NoRoute);
                }
                let is_late = lasted_ns >= NO_ROUTE_PATIENCE_NS;
                if is_late { NO_ROUTE_RETRY_LATE_NS } else { NO_ROUTE_RETRY_NS }
            }
            NackKind::Elsewhere => ELSEWHERE_RETRY_NS,
            NackKind::Gone => return self.fail(FetchFailure::Gone { segment }),
        };
        if self.is_worn_out(&attempt, now_ns) {
            return self.fail(FetchFailure::Silence { segment });
        }
        let pause_ns = self.jittered(pause_ns);
        self.retry_later(segment, attempt, now_ns.saturating_add(pause_ns));
    }

    /// Call when [`poll_deadline`](Fetch::poll_deadline) has passed; harmless at other times.
    pub fn handle_timeout(&mut self, now_ns: u64, flow: &mut Flow) {
        self.find_overtaken(now_ns, flow);
        while let Some((segment, attempt)) = self.in_flight.oldest() {
            if self.deadline_of(attempt, flow) > now_ns {
                break;
            }
            let mut attempt = *attempt;
            attempt.was_overtaken = false;
            self.in_flight.remove(segment);
            if now_ns < attempt.sent_ns.saturating_add(flow.rto_ns()) && self.may_probe(&attempt) {
                self.probed_ns = Some(now_ns);
                flow.on_released(1);
                self.retry_later(segment, attempt, now_ns);
                continue;
            }
            flow.on_time_out(now_ns, &attempt.sent());
            if self.is_worn_out(&attempt, now_ns) {
                self.fail(FetchFailure::Silence { segment });
            }
            self.retry_later(segment, attempt, now_ns);
        }
    }

    /// The last segment of the object is now known. Requests beyond it are forgotten.
    pub fn set_last_segment(&mut self, last: u64, flow: &mut Flow) {
        match self.last_segment {
            Some(known) if known == last => return,
            Some(_) => return self.fail(FetchFailure::EndMoved),
            None => self.last_segment = Some(last),
        }
        self.to_do.cut_after(last);
        flow.on_released(self.in_flight.cut_after(last));
        self.waiting.cut_after(last);
    }

    /// The answer for this segment is not what it should be: ask again, a bounded number of times.
    pub fn refuse(&mut self, segment: u64, now_ns: u64) {
        if self.refusals.add(segment, self.config.refusals_max) {
            return self.fail(FetchFailure::Refused { segment });
        }
        let pause_ns = self.jittered(REFUSED_RETRY_NS);
        self.want(segment, now_ns.saturating_add(pause_ns), now_ns);
    }

    /// The answer is not what it should be, but that may be a cache's fault: ask again.
    pub fn doubt(&mut self, segment: u64, now_ns: u64) {
        let pause_ns = self.jittered(REFUSED_RETRY_NS);
        self.want(segment, now_ns.saturating_add(pause_ns), now_ns);
    }

    /// Ask for this segment too, not before `due_ns`: it is needed on demand, or it came but could
    /// not be used yet.
    pub fn want(&mut self, segment: u64, due_ns: u64, now_ns: u64) {
        if self.in_flight.contains(segment) || self.waiting.contains(segment) {
            return;
        }
        let attempt = Attempt { sent_ns: now_ns, ..fresh(due_ns) };
        self.retry_later(segment, attempt, due_ns);
    }

    /// Who waits for what is asked for from now on.
    pub fn set_class(&mut self, class: Class) {
        self.share.set_class(class);
    }

    /// Nobody wants this segment any more. If it comes all the same, it is nobody's.
    pub fn unwant(&mut self, segment: u64, flow: &mut Flow) {
        if self.in_flight.remove(segment).is_some() {
            flow.on_released(1);
        }
        self.waiting.remove(segment);
    }

    /// Gives back to the flow what is in flight. Call before dropping an unfinished fetch.
    pub fn abandon(&mut self, flow: &mut Flow) {
        flow.on_released(self.in_flight.len());
        flow.leave(&mut self.share);
        self.in_flight = Table::default();
        self.waiting = Retries::default();
        self.to_do = SegmentRuns::default();
    }

    /// The next segment to ask for now; new ones only while fewer than `room` are in flight. The
    /// caller must send it.
    /// `bytes` is the payload one segment is expected to carry.
    pub fn poll_segment(
        &mut self,
        now_ns: u64,
        room: usize,
        bytes: u64,
        flow: &mut Flow,
    ) -> Option<u64> {
        self.polled_ns = now_ns;
        if self.failure.is_some() || !self.wants_more(now_ns, room) {
            flow.on_idle(&mut self.share);
            return None;
        }
        if !flow.may_send(&mut self.share, now_ns) {
            return None;
        }
        let again = if self.may_repeat(room) { self.waiting.pop_due(now_ns) } else { None };
        let next = again.or_else(|| self.pop_new(now_ns, room));
        let Some((segment, mut attempt)) = next else {
            flow.on_idle(&mut self.share);
            return None;
        };
        attempt.sent_ns = now_ns;
        attempt.tries += 1;
        attempt.bytes = bytes;
        attempt.order = flow.on_sent(&mut self.share, bytes, now_ns);
        self.jitter.get_or_insert_with(|| Jitter::new(flow.jitter().next_u64()));
        self.in_flight.push(segment, attempt);
        Some(segment)
    }

    /// When [`handle_timeout`](Fetch::handle_timeout) or
    /// [`poll_segment`](Fetch::poll_segment) has something to do without anything arriving.
    pub fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        let oldest = self.in_flight.oldest();
        let time_out = oldest.map(|(_, attempt)| self.deadline_of(attempt, flow));
        let retry = self.waiting.next_due_ns();
        // What was due already and not let out waits for room, not for time.
        let retry = retry.filter(|due_ns| *due_ns > self.polled_ns);
        [time_out, retry].into_iter().flatten().min()
    }

    /// Why the fetch ended early, if it did.
    pub fn failure(&self) -> Option<FetchFailure> {
        self.failure
    }

    /// True when every segment to do has arrived.
    pub fn is_finished(&self) -> bool {
        self.failure.is_none()
            && self.in_flight.is_empty()
            && self.waiting.is_empty()
            && self.to_do.is_empty()
    }

    /// Number of segments in flight.
    pub fn in_flight_count(&self) -> usize {
        self.in_flight.len()
    }

    /// Number of segments that wait for their next attempt.
    pub fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    /// The last segment, if known.
    pub fn last_segment(&self) -> Option<u64> {
        self.last_segment
    }

    fn jittered(&mut self, pause_ns: u64) -> u64 {
        self.jitter.as_mut().map_or(pause_ns, |jitter| jitter.pause_ns(pause_ns))
    }

    fn fail(&mut self, failure: FetchFailure) {
        self.failure.get_or_insert(failure);
    }

    fn is_worn_out(&self, attempt: &Attempt, now_ns: u64) -> bool {
        let is_old = now_ns.saturating_sub(attempt.first_sent_ns) >= self.config.silence_ns;
        // What was in flight when everything fell silent cannot each be tried so often by then.
        let is_silent = self
            .heard_ns
            .is_none_or(|heard| now_ns.saturating_sub(heard) >= self.config.silence_ns);
        let age_ns = now_ns.saturating_sub(attempt.first_sent_ns);
        let may_be_lost = age_ns < self.config.silence_ns.saturating_mul(LOSSY_SILENCES)
            && attempt.tries <= self.config.retries.saturating_mul(LOSSY_TIMES);
        is_old && (is_silent || attempt.tries > self.config.retries && !may_be_lost)
    }

    fn deadline_of(&self, attempt: &Attempt, flow: &Flow) -> u64 {
        let patience_ns = if self.is_overtaken(attempt) {
            flow.overtaken_after_ns()
        } else if self.may_probe(attempt) {
            flow.probe_after_ns()
        } else {
            flow.rto_ns()
        };
        let again_ns = attempt.sent_ns.saturating_add(patience_ns);
        let silence_ns = attempt.first_sent_ns.saturating_add(self.config.silence_ns);
        if silence_ns > attempt.sent_ns { again_ns.min(silence_ns) } else { again_ns }
    }

    /// True if enough requests sent later were answered.
    fn is_overtaken(&self, attempt: &Attempt) -> bool {
        attempt.order < self.answered[LATER_ANSWERS - 1]
    }

    /// True if this one may be asked for again early, because nothing comes any more: the last
    /// ones of a file are overtaken by nobody. Once in a silence, or it would be a second window.
    fn may_probe(&self, attempt: &Attempt) -> bool {
        let Some(heard_ns) = self.heard_ns else { return false };
        attempt.tries == 1 && self.probed_ns.is_none_or(|probed_ns| probed_ns < heard_ns)
    }

    fn note_answered(&mut self, mut order: u64) {
        for highest in &mut self.answered {
            if order > *highest {
                std::mem::swap(highest, &mut order);
            }
        }
    }

    /// Asks again for what was overtaken and is late.
    fn find_overtaken(&mut self, now_ns: u64, flow: &mut Flow) {
        while let Some((segment, attempt)) = self.in_flight.oldest() {
            let late_ns = attempt.sent_ns.saturating_add(flow.overtaken_after_ns());
            if !self.is_overtaken(attempt) || now_ns < late_ns {
                return;
            }
            let mut attempt = *attempt;
            attempt.was_overtaken = true;
            self.in_flight.remove(segment);
            flow.on_overtaken(now_ns, &attempt.sent());
            if self.is_worn_out(&attempt, now_ns) {
                return self.fail(FetchFailure::Silence { segment });
            }
            self.retry_later(segment, attempt, now_ns);
        }
    }

    /// True if asking again was right: an answer that comes at once is one to the first request,
    /// and one that takes much longer comes from farther away than others.
    fn check_verdict(&self, attempt: &Attempt, now_ns: u64, flow: &mut Flow) {
        if attempt.was_overtaken && attempt.tries > 1 {
            let usual_ns = flow.smoothed_rtt_ns().unwrap_or(0);
            let elapsed_ns = now_ns.saturating_sub(attempt.sent_ns);
            flow.on_verdict((usual_ns / 2..=2 * usual_ns + 5 * MS).contains(&elapsed_ns));
        }
    }

    /// True if there is something to ask for, as far as the owner has room.
    fn wants_more(&self, now_ns: u64, room: usize) -> bool {
        let due = self.waiting.next_due_ns().is_some_and(|due_ns| due_ns <= now_ns);
        (!self.to_do.is_empty() && self.may_begin(room)) || (due && self.may_repeat(room))
    }

    /// True if a segment may be asked for that was not before.
    fn may_begin(&self, room: usize) -> bool {
        // Nothing heard and no end known: one request shows both, and asking beyond the end of a
        // foreign object costs a time-out each.
        let is_blind = self.last_segment.is_none() && self.heard_ns.is_none();
        let is_first = self.in_flight.is_empty() && self.waiting.is_empty();
        (is_first || !is_blind) && self.in_flight.len() < room
    }

    /// A lost segment may always be asked for again: it is what everything else waits for.
    fn may_repeat(&self, room: usize) -> bool {
        self.in_flight.len() < room.max(REPEATS_MIN)
    }

    fn pop_new(&mut self, now_ns: u64, room: usize) -> Option<(u64, Attempt)> {
        let segment = if self.may_begin(room) { self.to_do.pop_first() } else { None };
        segment.map(|segment| (segment, fresh(now_ns)))
    }

    fn retry_later(&mut self, segment: u64, attempt: Attempt, due_ns: u64) {
        if self.last_segment.is_none_or(|last| segment <= last) {
            self.waiting.push(segment, attempt, due_ns);
        }
    }
}

/// A segment that was not asked for yet.
fn fresh(now_ns: u64) -> Attempt {
    Attempt {
        first_sent_ns: now_ns,
        sent_ns: now_ns,
        bytes: 0,
        order: 0,
        tries: 0,
        was_overtaken: false,
    }
}

#[cfg(test)]
mod tests;
