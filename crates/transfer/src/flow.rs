//! What is known about the path to the publisher: round trip, window, rate limit.
//!
//! One `Flow` is shared by every fetch over the same connection, because the queue that fills up
//! belongs to the path and not to a file. That also bounds the memory of any number of concurrent
//! transfers by one window, and a small file starts with what the previous ones have learned.

use crate::congestion::{Aimd, CongestionController, CongestionSignal};
use crate::rtt::RttEstimator;

/// Shared state of one path. All times are monotonic nanoseconds.
pub struct Flow {
    rtt: RttEstimator,
    controller: Box<dyn CongestionController>,
    in_flight: usize,
    backed_off_ns: u64,
    limit: Option<TokenBucket>,
}

impl Default for Flow {
    fn default() -> Self {
        Flow::new(Box::new(Aimd::default()))
    }
}

impl Flow {
    /// A path about which nothing is known yet.
    pub fn new(controller: Box<dyn CongestionController>) -> Self {
        Flow {
            rtt: RttEstimator::default(),
            controller,
            in_flight: 0,
            backed_off_ns: 0,
            limit: None,
        }
    }

    /// Limits the payload that is asked for to `bytes_per_second`.
    pub fn limit_rate(&mut self, bytes_per_second: u64, now_ns: u64) {
        self.limit = Some(TokenBucket::new(bytes_per_second, now_ns));
    }

    /// How long to wait for an answer.
    pub fn rto_ns(&self) -> u64 {
        self.rtt.rto_ns()
    }

    /// Smoothed round-trip time, if anything was measured.
    pub fn smoothed_rtt_ns(&self) -> Option<u64> {
        self.rtt.smoothed_ns()
    }

    /// Number of requests under way.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Number of requests that may be under way.
    pub fn window(&self) -> usize {
        self.controller.window()
    }

    /// True when one more request may be sent now.
    pub fn has_room(&mut self, now_ns: u64) -> bool {
        self.in_flight < self.controller.window()
            && self.limit.as_mut().is_none_or(|limit| limit.has_tokens(now_ns))
    }

    /// When the rate limit lets the next request out, if it is what holds requests back.
    pub fn poll_deadline(&self) -> Option<u64> {
        self.limit.as_ref().and_then(TokenBucket::refill_deadline_ns)
    }

    /// A request was sent that asks for about `bytes` of payload.
    pub fn on_sent(&mut self, bytes: u64) {
        self.in_flight += 1;
        if let Some(limit) = &mut self.limit {
            limit.take(bytes);
        }
    }

    /// A request was answered; `rtt_ns` only if it had been sent exactly once.
    pub fn on_data(&mut self, now_ns: u64, sent_ns: u64, was_sent_once: bool, is_marked: bool) {
        let is_limiting = self.in_flight >= self.controller.window();
        self.in_flight = self.in_flight.saturating_sub(1);
        if was_sent_once {
            self.rtt.on_sample(now_ns.saturating_sub(sent_ns));
        }
        if is_marked {
            self.controller.on_congestion(now_ns, sent_ns, CongestionSignal::Mark);
        } else {
            self.controller.on_data(is_limiting);
        }
    }

    /// A request got no answer in time.
    pub fn on_time_out(&mut self, now_ns: u64, sent_ns: u64) {
        self.in_flight = self.in_flight.saturating_sub(1);
        // One back-off per round: all requests sent before the last one share its fate.
        if sent_ns >= self.backed_off_ns {
            self.rtt.back_off();
            self.backed_off_ns = now_ns;
        }
        self.controller.on_congestion(now_ns, sent_ns, CongestionSignal::TimeOut);
    }

    /// A request was refused by a forwarder whose queue is full.
    pub fn on_congestion_nack(&mut self, now_ns: u64, sent_ns: u64) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.controller.on_congestion(now_ns, sent_ns, CongestionSignal::Nack);
    }

    /// `count` requests are no longer waited for, whatever happens to them.
    pub fn on_released(&mut self, count: usize) {
        self.in_flight = self.in_flight.saturating_sub(count);
    }
}

/// A bucket that fills at a constant rate and may go below zero by one request.
#[derive(Clone, Debug)]
struct TokenBucket {
    bytes_per_second: u64,
    depth_bytes: i64,
    tokens: i64,
    filled_ns: u64,
}

impl TokenBucket {
    fn new(bytes_per_second: u64, now_ns: u64) -> Self {
        let bytes_per_second = bytes_per_second.max(1);
        // A tenth of a second of traffic, so that short files do not escape the limit.
        let depth_bytes = i64::try_from(bytes_per_second / 10).unwrap_or(i64::MAX).max(1);
        TokenBucket { bytes_per_second, depth_bytes, tokens: depth_bytes, filled_ns: now_ns }
    }

    fn has_tokens(&mut self, now_ns: u64) -> bool {
        let elapsed_ns = now_ns.saturating_sub(self.filled_ns);
        let earned = u128::from(elapsed_ns) * u128::from(self.bytes_per_second) / 1_000_000_000;
        if earned > 0 {
            let earned = i64::try_from(earned).unwrap_or(i64::MAX);
            self.tokens = self.tokens.saturating_add(earned).min(self.depth_bytes);
            self.filled_ns = now_ns;
        }
        self.tokens > 0
    }

    fn take(&mut self, bytes: u64) {
        self.tokens = self.tokens.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    fn refill_deadline_ns(&self) -> Option<u64> {
        if self.tokens > 0 {
            return None;
        }
        let missing = u128::from(self.tokens.unsigned_abs()) + 1;
        let wait_ns = missing * 1_000_000_000 / u128::from(self.bytes_per_second) + 1;
        Some(self.filled_ns.saturating_add(u64::try_from(wait_ns).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn the_window_limits_what_is_under_way() {
        let mut flow = Flow::default();
        let mut sent = 0;
        while flow.has_room(0) {
            flow.on_sent(8192);
            sent += 1;
        }
        assert_eq!(sent, flow.window());
        flow.on_released(sent);
        assert_eq!(flow.in_flight(), 0);
    }

    #[test]
    fn a_whole_window_lost_backs_off_once() {
        let mut flow = Flow::default();
        let before = flow.rto_ns();
        for sent_ns in 1..=16 {
            flow.on_sent(8192);
            flow.on_time_out(SECOND, sent_ns);
        }
        assert_eq!(flow.rto_ns(), 2 * before);
        assert_eq!(flow.window(), 8);
    }

    #[test]
    fn a_rate_limit_is_kept_over_ten_seconds() {
        let mut flow = Flow::default();
        flow.limit_rate(1_000_000, 0);
        let (mut now_ns, mut bytes) = (0, 0);
        while now_ns < 10 * SECOND {
            while flow.has_room(now_ns) {
                flow.on_sent(8192);
                flow.on_released(1);
                bytes += 8192;
            }
            now_ns = flow.poll_deadline().expect("the bucket is empty");
        }
        assert!((10_000_000..10_200_000).contains(&bytes), "{bytes}");
    }
}
