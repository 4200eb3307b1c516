//! Transport state of the path to the publisher: round trip, window, pace, rate limit.
//!
//! One `Flow` is shared by every fetch over the same connection, because the queue that fills up
//! belongs to the path and not to a file. That also bounds the memory of any number of concurrent
//! transfers by one window, and a small file starts with what the previous ones have learned.
//!
//! Invariants: what is in flight is counted once; fetches that all want more get the same number
//! of bytes ([`sharing`](crate::sharing)).

use byname_retry::Jitter;

use crate::congestion::{
    Congestion, CongestionController, DataSample, LossKind, LossSample, WINDOW_MAX,
};
use crate::pacing::{Pacer, TokenBucket};
use crate::rounds::{Answer, Rounds};
use crate::rtt::RttEstimator;
use crate::sharing::{Class, PROMPT_RESERVE, Share, Sharing};

const MS: u64 = 1_000_000;
/// Answers may come this much late without having been lost: reads from disks do.
const LATE_MIN_NS: u64 = 5 * MS;
/// A silence this long is broken by asking for one segment again, long before the time-out.
const PROBE_MIN_NS: u64 = 20 * MS;
const REORDERING_MAX: u64 = 64;
/// Requests rightly asked for again before less patience is tried.
const RIGHT_MAX: u32 = 64;
/// Time that a fetch may sleep while it waits for another one.
const SKIPPED_NS: u64 = MS;

/// Record of a request, for when its answer comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) sent_ns: u64,
    /// The number that [`Flow::on_sent`] gave.
    pub(crate) order: u64,
    pub(crate) bytes: u64,
    pub(crate) was_sent_once: bool,
}

/// Counts of requests that were not answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Overtaken by answers to later requests.
    pub overtaken: u64,
    /// Not answered within the time-out.
    pub timed_out: u64,
    /// Refused because of congestion.
    pub refused: u64,
}

/// Shared state of one path. All times are monotonic nanoseconds.
pub struct Flow {
    rtt: RttEstimator,
    controller: Box<dyn CongestionController>,
    rounds: Rounds,
    pacer: Pacer,
    sharing: Sharing,
    window: usize,
    in_flight: usize,
    /// Requests sent so far.
    sent_count: u64,
    heard_ns: Option<u64>,
    backed_off_ns: u64,
    limit: Option<TokenBucket>,
    /// The reader has nothing to ask for, although it might.
    is_idle: bool,
    /// The pace is what holds requests back.
    is_paced: bool,
    skipped_ns: Option<u64>,
    /// Longest round trip in this round and in the one before; `None` until there was one.
    longest_ns: (u64, Option<u64>),
    /// Patience with answers that are overtaken, in quarters of a round trip.
    reordering: u64,
    right_count: u32,
    losses: Losses,
    marked_count: u64,
    jitter: Jitter,
    source: usize,
}

impl Default for Flow {
    fn default() -> Self {
        Flow::new(Congestion::default().controller(WINDOW_MAX), 0)
    }
}

impl Flow {
    /// A path about which nothing is known yet. The seed makes the jitter of all pauses: readers
    /// that shall not act in step have different ones.
    pub fn new(controller: Box<dyn CongestionController>, jitter_seed: u64) -> Self {
        let mut flow = Flow {
            rtt: RttEstimator::default(),
            controller,
            rounds: Rounds::default(),
            pacer: Pacer::default(),
            sharing: Sharing::default(),
            window: 0,
            in_flight: 0,
            sent_count: 0,
            heard_ns: None,
            backed_off_ns: 0,
            limit: None,
            is_idle: false,
            is_paced: false,
            skipped_ns: None,
            longest_ns: (0, None),
            reordering: 1,
            right_count: 0,
            losses: Losses::default(),
            marked_count: 0,
            jitter: Jitter::new(jitter_seed),
            source: 0,
        };
        flow.follow_controller();
        flow
    }

    /// Limits the payload that is asked for to `bytes_per_second`.
    pub fn limit_rate(&mut self, bytes_per_second: u64, now_ns: u64) {
        self.limit = Some(TokenBucket::new(bytes_per_second, now_ns));
    }

    /// Number of the source at the end of the path, as the owner counts them: what comes is from
    /// there, and is held against it if it turns out to be bad.
    pub fn source(&self) -> usize {
        self.source
    }

    /// The path leads to another source from now on.
    pub fn set_source(&mut self, source: usize) {
        self.source = source;
    }

    /// Jitter of the pauses of whoever uses this path.
    pub fn jitter(&mut self) -> &mut Jitter {
        &mut self.jitter
    }

    /// Retransmission time-out.
    pub fn rto_ns(&self) -> u64 {
        self.rtt.rto_ns()
    }

    /// Smoothed round-trip time, if anything was measured.
    pub fn smoothed_rtt_ns(&self) -> Option<u64> {
        self.rtt.smoothed_ns()
    }

    /// Number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Number of requests that may be in flight.
    pub fn window(&self) -> usize {
        self.window
    }

    /// Payload per second that may be asked for, if the controller paces.
    pub fn pacing_bytes_per_s(&self) -> Option<u64> {
        self.controller.pacing_bytes_per_s()
    }

    /// The controller in use.
    pub fn controller_name(&self) -> &'static str {
        self.controller.name()
    }

    /// Requests sent so far, repeated ones included.
    pub fn sent_count(&self) -> u64 {
        self.sent_count
    }

    /// Requests that were not answered so far; each was, or will be, repeated.
    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// Answers with a congestion mark so far.
    pub fn marked_count(&self) -> u64 {
        self.marked_count
    }

    /// True when one more request may be sent now.
    pub fn has_room(&mut self, now_ns: u64) -> bool {
        self.has_room_for(Class::Bulk, now_ns)
    }

    /// As [`has_room`](Flow::has_room), for a request of this class.
    pub fn has_room_as(&mut self, class: Class, now_ns: u64) -> bool {
        self.has_room_for(class, now_ns)
    }

    /// When something is let out that is held back now, without any packet coming.
    pub fn poll_deadline(&self) -> Option<u64> {
        let limit = self.limit.as_ref().and_then(TokenBucket::refill_deadline_ns);
        let has_window = self.in_flight < self.window;
        let pace = (self.is_paced && has_window).then(|| self.pacer.deadline_ns());
        let skipped = self.skipped_ns.filter(|_| has_window);
        let skipped = skipped.map(|at_ns| at_ns.saturating_add(SKIPPED_NS));
        [limit, pace, skipped].into_iter().flatten().min()
    }

    /// Whoever waits is being asked what it wants now: what has been let out by `now_ns` is no
    /// reason to wake anybody again. Engines call this whenever they are polled.
    ///
    /// Who was held back may have lost interest since; without this its deadline would stay in the
    /// past, and drivers would not sleep until something else was sent.
    pub(crate) fn settle(&mut self, now_ns: u64) {
        self.is_paced &= self.pacer.deadline_ns() > now_ns;
        self.skipped_ns = self.skipped_ns.filter(|at| at.saturating_add(SKIPPED_NS) > now_ns);
        if let Some(limit) = &mut self.limit
            && limit.refill_deadline_ns().is_some_and(|at_ns| at_ns <= now_ns)
        {
            limit.has_tokens(now_ns);
        }
    }

    /// True if the fetch of this share may send one request now.
    pub(crate) fn may_send(&mut self, share: &mut Share, now_ns: u64) -> bool {
        if !self.has_room_for(share.class(), now_ns) {
            self.sharing.wait(share, now_ns);
            return false;
        }
        if !self.sharing.is_turn(share, now_ns) {
            self.sharing.wait(share, now_ns);
            self.skipped_ns = Some(now_ns);
            return false;
        }
        true
    }

    /// The fetch of this share has nothing to ask for now, although it might.
    pub(crate) fn on_idle(&mut self, share: &mut Share) {
        self.sharing.leave(share);
        // As long as another fetch waits for room, the path is the limit.
        self.is_idle = !self.sharing.has_waiters();
    }

    /// The fetch of this share is over.
    pub(crate) fn leave(&mut self, share: &mut Share) {
        self.sharing.leave(share);
    }

    /// A request was sent that asks for about `bytes` of payload. Returns its place in the order
    /// of sending.
    pub(crate) fn on_sent(&mut self, share: &mut Share, bytes: u64, now_ns: u64) -> u64 {
        // A pause of the reader's. One that the pace makes is what the round is to measure: without
        // it a pace so low that nothing overlaps would be kept for ever.
        if self.in_flight == 0 && self.is_idle {
            self.rounds.clear();
        }
        self.in_flight += 1;
        self.skipped_ns = None;
        self.pacer.take(now_ns, bytes);
        self.sharing.grant(share, bytes, now_ns);
        if let Some(limit) = &mut self.limit {
            limit.take(bytes);
        }
        self.sent_count += 1;
        self.sent_count
    }

    /// A request was answered.
    pub(crate) fn on_data(&mut self, now_ns: u64, sent: &Sent, is_marked: bool) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.heard_ns = Some(now_ns);
        self.marked_count += u64::from(is_marked);
        let sent_ns = sent.sent_ns;
        let rtt_ns = sent.was_sent_once.then(|| now_ns.saturating_sub(sent_ns));
        if let Some(rtt_ns) = rtt_ns {
            self.rtt.on_sample(rtt_ns);
        } else {
            // Whichever request was answered, a round trip takes this long at least. Without it
            // a path that became longer would have everything asked twice, for ever.
            self.rtt.on_least(now_ns.saturating_sub(sent_ns));
        }
        self.longest_ns.0 = self.longest_ns.0.max(now_ns.saturating_sub(sent_ns));
        let is_limiting = !self.is_idle;
        let bytes = sent.bytes;
        let in_flight = self.in_flight;
        let (order, last_order) = (sent.order, self.sent_count);
        let answer = Answer { now_ns, order, bytes, rtt_ns, is_limiting, in_flight, last_order };
        let round = self.rounds.on_data(&answer);
        if round.is_some() {
            self.longest_ns = (0, Some(self.longest_ns.0));
        }
        self.controller.on_data(&DataSample {
            now_ns,
            sent_ns,
            rtt_ns,
            bytes,
            is_marked,
            in_flight,
            is_limiting,
            round,
        });
        self.follow_controller();
    }

    /// A request got no answer in time.
    pub(crate) fn on_time_out(&mut self, now_ns: u64, sent: &Sent) {
        // One back-off per round: all requests sent before the last one share its fate.
        if sent.sent_ns >= self.backed_off_ns {
            self.rtt.back_off(self.jitter.next_u64());
            self.backed_off_ns = now_ns;
        }
        self.on_loss(now_ns, sent, LossKind::TimeOut);
    }

    /// A request was not answered although later ones were.
    pub(crate) fn on_overtaken(&mut self, now_ns: u64, sent: &Sent) {
        self.on_loss(now_ns, sent, LossKind::Overtaken);
    }

    /// A request was refused by a forwarder whose queue is full.
    pub(crate) fn on_congestion_nack(&mut self, now_ns: u64, sent: &Sent) {
        self.on_loss(now_ns, sent, LossKind::Nack);
    }

    /// `count` requests are no longer waited for, whatever happens to them.
    pub(crate) fn on_released(&mut self, count: usize) {
        self.rounds.on_released(count);
        self.in_flight = self.in_flight.saturating_sub(count);
    }

    /// Age at which a request is taken for lost, if later ones were answered.
    pub(crate) fn overtaken_after_ns(&self) -> u64 {
        // The first answers may all be from a cache, and the publisher far away.
        let Some(longest_ns) = self.longest_ns.1 else { return self.rtt.rto_ns() };
        let longest_ns = longest_ns.max(self.longest_ns.0);
        let usual_ns = self.rtt.smoothed_ns().unwrap_or(self.rtt.rto_ns());
        let patience_ns = (usual_ns / 4).saturating_mul(self.reordering);
        let patience_ns = patience_ns.max(2 * self.rtt.variation_ns()).max(LATE_MIN_NS);
        let late_ns = usual_ns.saturating_add(patience_ns);
        late_ns.max(longest_ns.saturating_add(longest_ns / 8)).min(self.rtt.rto_ns())
    }

    /// Age at which silence is broken by asking once more.
    pub(crate) fn probe_after_ns(&self) -> u64 {
        let usual_ns = self.rtt.smoothed_ns().unwrap_or(self.rtt.rto_ns());
        let patience_ns = (2 * self.rtt.variation_ns()).max(PROBE_MIN_NS);
        usual_ns.saturating_mul(2).saturating_add(patience_ns).min(self.rtt.rto_ns())
    }

    /// Verdict on a request that was taken for lost: it was, or its answer came after all.
    pub(crate) fn on_verdict(&mut self, was_right: bool) {
        if !was_right {
            self.reordering = (self.reordering * 2).min(REORDERING_MAX);
            self.right_count = 0;
        } else if self.reordering > 1 {
            self.right_count += 1;
            if self.right_count >= RIGHT_MAX {
                self.reordering /= 2;
                self.right_count = 0;
            }
        }
    }

    fn on_loss(&mut self, now_ns: u64, sent: &Sent, kind: LossKind) {
        self.rounds.on_settled(sent.order);
        let sent_ns = sent.sent_ns;
        self.in_flight = self.in_flight.saturating_sub(1);
        *match kind {
            LossKind::Overtaken => &mut self.losses.overtaken,
            LossKind::TimeOut => &mut self.losses.timed_out,
            LossKind::Nack => &mut self.losses.refused,
        } += 1;
        let is_path_alive = self.heard_ns.is_some_and(|heard_ns| heard_ns > sent_ns);
        let in_flight = self.in_flight;
        self.controller.on_loss(&LossSample { now_ns, sent_ns, kind, in_flight, is_path_alive });
        self.follow_controller();
    }

    fn has_room_for(&mut self, class: Class, now_ns: u64) -> bool {
        let is_prompt = class == Class::Prompt;
        let window = if is_prompt { self.window + PROMPT_RESERVE } else { self.window };
        let is_paced = !is_prompt && !self.pacer.allows(now_ns);
        let has_room = self.in_flight < window
            && !is_paced
            && self.limit.as_mut().is_none_or(|limit| limit.has_tokens(now_ns));
        if !is_prompt {
            self.is_paced = is_paced;
        }
        if !has_room {
            self.is_idle = false;
        }
        has_room
    }

    fn follow_controller(&mut self) {
        self.window = self.controller.window();
        self.pacer.set_pace(self.controller.pacing_bytes_per_s(), self.rtt.smoothed_ns());
    }
}

#[cfg(test)]
mod tests;
