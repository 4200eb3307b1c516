//! Cuts the stream of answers into rounds: what came in a round trip is the rate of the path.
//!
//! A round ends with the answer to a request that was sent after the round began. Counting whole
//! rounds, not the time behind each single answer, needs nothing per request, and averages away
//! that answers come in bursts.

use crate::congestion::Round;

/// Rounds are no shorter, or a burst handed in by the kernel would pass for the rate.
pub(crate) const ROUND_MIN_NS: u64 = 1_000_000;

/// The round that is going on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds {
    /// `None` until the first answer: the way there is no part of the rate.
    began_ns: Option<u64>,
    bytes: u64,
    segment_count: u64,
    idle_count: u64,
    rtt_sum_ns: u64,
    rtt_count: u64,
}

/// What one answer adds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) now_ns: u64,
    pub(crate) sent_ns: u64,
    pub(crate) bytes: u64,
    pub(crate) rtt_ns: Option<u64>,
    pub(crate) is_limiting: bool,
}

impl Rounds {
    /// The first request after a pause: nothing before it counts.
    pub(crate) fn clear(&mut self) {
        *self = Rounds::default();
    }

    /// Takes an answer; `usual_ns` is the usual round trip. Gives the round that it ends.
    pub(crate) fn on_data(&mut self, answer: &Answer, usual_ns: u64) -> Option<Round> {
        let begun_ns = self.began_ns;
        let began_ns = *self.began_ns.get_or_insert(answer.now_ns);
        if begun_ns.is_some() {
            self.bytes += answer.bytes;
            self.segment_count += 1;
            self.idle_count += u64::from(!answer.is_limiting);
        }
        if let Some(rtt_ns) = answer.rtt_ns {
            self.rtt_sum_ns = self.rtt_sum_ns.saturating_add(rtt_ns);
            self.rtt_count += 1;
        }
        let duration_ns = answer.now_ns.saturating_sub(began_ns);
        // An answer from a cache nearby must not end the round of a publisher far away.
        let is_long = duration_ns >= ROUND_MIN_NS.max(usual_ns / 4 * 3);
        if answer.sent_ns < began_ns || !is_long {
            return None;
        }
        let rate = u128::from(self.bytes) * 1_000_000_000 / u128::from(duration_ns);
        let round = Round {
            duration_ns,
            bytes: self.bytes,
            segment_count: self.segment_count,
            bytes_per_s: u64::try_from(rate).unwrap_or(u64::MAX),
            rtt_mean_ns: self.rtt_sum_ns.checked_div(self.rtt_count).unwrap_or(0),
            is_reader_limited: self.idle_count * 4 > self.segment_count,
        };
        *self = Rounds { began_ns: Some(answer.now_ns), ..Rounds::default() };
        Some(round)
    }
}
