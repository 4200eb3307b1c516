//! Cuts the stream of answers into rounds: what a round trip delivers is the rate of the path.
//!
//! A round ends when nearly all requests that were in flight at its beginning are settled. So it
//! lasts as long as the path to the publisher even if caches nearby answer most of them. Counting
//! whole rounds, not the time behind each single answer, needs nothing per request, and averages
//! away that answers come in bursts. But where there is less in flight than the path holds, all of
//! it may come in one burst with nothing behind it, and a pause hands in at once what came long
//! before: a round is never shorter than a part of a round trip.

use crate::congestion::Round;

/// Rounds are no shorter, or a burst handed in by the kernel would pass for the rate.
pub(crate) const ROUND_MIN_NS: u64 = 1_000_000;
/// Fewer segments make a rate that is mostly chance; the round goes on for some windows more.
pub(crate) const SEGMENTS_MIN: u64 = 16;
const WINDOWS_MAX: u64 = 4;
/// The part of a window that need not be settled: what is lost is noticed late.
const UNSETTLED_PART: u64 = 8;
/// The least part of the mean round trip that a round lasts.
const DURATION_PART: u64 = 2;

/// The round that is going on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds {
    /// `None` until the first answer: the path there is no part of the rate.
    began_ns: Option<u64>,
    /// The last request sent before it began.
    last_order: u64,
    window: u64,
    unsettled: u64,
    bytes: u64,
    segment_count: u64,
    idle_count: u64,
    rtt_sum_ns: u64,
    rtt_count: u64,
}

/// Contribution of one answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) now_ns: u64,
    pub(crate) order: u64,
    pub(crate) bytes: u64,
    pub(crate) rtt_ns: Option<u64>,
    pub(crate) is_limiting: bool,
    /// Requests still in flight, and the number of the last one.
    pub(crate) in_flight: usize,
    pub(crate) last_order: u64,
}

impl Rounds {
    /// The first request after a pause: nothing before it counts.
    pub(crate) fn clear(&mut self) {
        *self = Rounds::default();
    }

    /// A request is no longer waited for.
    pub(crate) fn on_settled(&mut self, order: u64) {
        if order <= self.last_order {
            self.unsettled = self.unsettled.saturating_sub(1);
        }
    }

    /// So many requests are no longer waited for.
    pub(crate) fn on_released(&mut self, count: usize) {
        self.unsettled = self.unsettled.saturating_sub(count as u64);
    }

    /// Takes an answer; gives the round that it ends.
    pub(crate) fn on_data(&mut self, answer: &Answer) -> Option<Round> {
        let Some(began_ns) = self.began_ns else {
            self.begin(answer);
            self.add_rtt(answer);
            return None;
        };
        self.on_settled(answer.order);
        self.bytes += answer.bytes;
        self.segment_count += 1;
        self.idle_count += u64::from(!answer.is_limiting);
        self.add_rtt(answer);
        let duration_ns = answer.now_ns.saturating_sub(began_ns);
        let is_settled = self.unsettled <= self.window / UNSETTLED_PART;
        let is_rich = self.segment_count >= SEGMENTS_MIN.min(WINDOWS_MAX * self.window);
        if !is_settled || !is_rich || duration_ns < ROUND_MIN_NS {
            return None;
        }
        let rtt_mean_ns = self.rtt_sum_ns.checked_div(self.rtt_count).unwrap_or(0);
        if duration_ns < rtt_mean_ns / DURATION_PART {
            return None;
        }
        let rate = u128::from(self.bytes) * 1_000_000_000 / u128::from(duration_ns);
        let round = Round {
            duration_ns,
            bytes: self.bytes,
            segment_count: self.segment_count,
            bytes_per_s: u64::try_from(rate).unwrap_or(u64::MAX),
            rtt_mean_ns,
            rtt_count: self.rtt_count,
            is_reader_limited: self.idle_count * 4 > self.segment_count,
        };
        self.begin(answer);
        Some(round)
    }

    fn begin(&mut self, answer: &Answer) {
        let window = answer.in_flight as u64;
        let began_ns = Some(answer.now_ns);
        let (last_order, unsettled) = (answer.last_order, window);
        *self = Rounds { began_ns, last_order, window, unsettled, ..Rounds::default() };
    }

    fn add_rtt(&mut self, answer: &Answer) {
        if let Some(rtt_ns) = answer.rtt_ns {
            self.rtt_sum_ns = self.rtt_sum_ns.saturating_add(rtt_ns);
            self.rtt_count += 1;
        }
    }
}
