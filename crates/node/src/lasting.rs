//! Faces that outlive their link: connect, notice the loss, wait, connect again.
//!
//! Static faces and those made by command are of this kind. This file knows only when to try; the
//! attempts themselves run in `connector`.

use byname_io::Endpoint;
use byname_retry::BackOff;

/// A connection that lasted this long was a good one: the next pause is short again.
const GOOD_NS: u64 = 5_000_000_000;

/// The far end of a face, and how it stands with it.
#[derive(Debug)]
pub(crate) struct Lasting {
    pub(crate) endpoint: Endpoint,
    state: State,
    /// Failures in a row.
    failures: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting { until_ns: u64 },
    Connecting,
    Connected { since_ns: u64 },
}

impl Lasting {
    /// A far end whose first attempt is due at once.
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        let state = State::Waiting { until_ns: 0 };
        Self { endpoint, state, failures: 0 }
    }

    /// Time at which the next attempt is due.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        match self.state {
            State::Waiting { until_ns } => Some(until_ns),
            _ => None,
        }
    }

    pub(crate) fn on_started(&mut self) {
        self.state = State::Connecting;
    }

    pub(crate) fn on_connected(&mut self, now_ns: u64) {
        self.state = State::Connected { since_ns: now_ns };
    }

    /// The attempt failed or the connection was lost. Returns the pause before the next attempt;
    /// `random` makes its jitter.
    pub(crate) fn on_lost(&mut self, now_ns: u64, back_off: BackOff, random: u64) -> u64 {
        if let State::Connected { since_ns } = self.state
            && now_ns.saturating_sub(since_ns) >= GOOD_NS
        {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        let pause_ns = back_off.pause_ns(self.failures, random);
        self.state = State::Waiting { until_ns: now_ns.saturating_add(pause_ns) };
        pause_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACK_OFF: BackOff = BackOff { min_ns: 100, max_ns: 1000 };
    /// Makes each of these pauses as long as it may be: the divisors are the spans of their jitter.
    const LONGEST: u64 = 51 * 101 * 201 * 401 * 501 - 1;

    #[test]
    fn pauses_double_up_to_the_maximum_and_start_anew_after_a_good_connection() {
        let endpoint = "tcp://127.0.0.1:1".parse().unwrap();
        let mut lasting = Lasting::new(endpoint);
        assert_eq!(lasting.due_ns(), Some(0));
        let pauses: Vec<u64> = (0..6).map(|_| lasting.on_lost(0, BACK_OFF, LONGEST)).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1000, 1000]);
        lasting.on_connected(0);
        assert_eq!(lasting.due_ns(), None);
        assert_eq!(lasting.on_lost(GOOD_NS - 1, BACK_OFF, LONGEST), 1000, "it did not last");
        lasting.on_connected(0);
        assert_eq!(lasting.on_lost(GOOD_NS, BACK_OFF, LONGEST), 100);
        assert_eq!(lasting.due_ns(), Some(GOOD_NS + 100));
    }
}
