//! Faces that outlive their link: connect, notice the loss, wait, connect again.
//!
//! Static faces and those made by command are of this kind. This file knows only when to try; the
//! attempts themselves run in `connector`.

use byname_io::Endpoint;

/// A connection that lasted this long was a good one: the next wait is short again.
const GOOD_NS: u64 = 5_000_000_000;

/// The far end of a face, and how it stands with it.
#[derive(Debug)]
pub(crate) struct Lasting {
    pub(crate) endpoint: Endpoint,
    state: State,
    wait_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting { until_ns: u64 },
    Connecting,
    Connected { since_ns: u64 },
}

/// Bounds of the waits between attempts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BackOff {
    pub(crate) min_ns: u64,
    pub(crate) max_ns: u64,
}

impl Lasting {
    /// A far end whose first attempt is due at once.
    pub(crate) fn new(endpoint: Endpoint, back_off: BackOff) -> Self {
        let state = State::Waiting { until_ns: 0 };
        Self { endpoint, state, wait_ns: back_off.min_ns }
    }

    /// When the next attempt is due.
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

    /// The attempt failed or the connection was lost. Returns the wait before the next attempt.
    pub(crate) fn on_lost(&mut self, now_ns: u64, back_off: BackOff) -> u64 {
        if let State::Connected { since_ns } = self.state
            && now_ns.saturating_sub(since_ns) >= GOOD_NS
        {
            self.wait_ns = back_off.min_ns;
        }
        let wait_ns = self.wait_ns;
        self.wait_ns = (wait_ns * 2).min(back_off.max_ns);
        self.state = State::Waiting { until_ns: now_ns.saturating_add(wait_ns) };
        wait_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACK_OFF: BackOff = BackOff { min_ns: 100, max_ns: 1000 };

    #[test]
    fn waits_double_up_to_the_maximum_and_start_anew_after_a_good_connection() {
        let endpoint = "tcp://127.0.0.1:1".parse().unwrap();
        let mut lasting = Lasting::new(endpoint, BACK_OFF);
        assert_eq!(lasting.due_ns(), Some(0));
        let waits: Vec<u64> = (0..6).map(|_| lasting.on_lost(0, BACK_OFF)).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1000, 1000]);
        lasting.on_connected(0);
        assert_eq!(lasting.due_ns(), None);
        assert_eq!(lasting.on_lost(GOOD_NS - 1, BACK_OFF), 1000, "it did not last");
        lasting.on_connected(0);
        assert_eq!(lasting.on_lost(GOOD_NS, BACK_OFF), 100);
        assert_eq!(lasting.due_ns(), Some(GOOD_NS + 100));
    }
}
