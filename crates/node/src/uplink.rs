//! Persistent faces towards configured endpoints: connect, notice the loss, wait, connect again.
//!
//! Connecting can ask a name server and block, so each attempt runs on a thread of its own, one at
//! a time for each uplink; its result comes back through a channel, and a waker ends the node's
//! wait.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use byname_forwarder::FaceId;
use byname_io::{ConnectError, Connection, Endpoint, Limits, Waker};

/// A connection that lasted this long was a good one: the next wait is short again.
const GOOD_NS: u64 = 5_000_000_000;

#[derive(Debug)]
pub(crate) struct Uplink {
    pub(crate) endpoint: Endpoint,
    pub(crate) face: FaceId,
    state: State,
    wait_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting { until_ns: u64 },
    Connecting,
    Connected { since_ns: u64 },
}

/// How an attempt ended.
pub(crate) struct Attempt {
    pub(crate) uplink: usize,
    pub(crate) result: Result<Connection, ConnectError>,
}

/// Bounds of the waits between attempts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BackOff {
    pub(crate) min_ns: u64,
    pub(crate) max_ns: u64,
}

impl Uplink {
    /// An uplink whose first attempt is due at once.
    pub(crate) fn new(endpoint: Endpoint, face: FaceId, back_off: BackOff) -> Self {
        let state = State::Waiting { until_ns: 0 };
        Self { endpoint, face, state, wait_ns: back_off.min_ns }
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

/// Starts attempts and collects their results.
pub(crate) struct Connector {
    waker: Waker,
    sender: Sender<Attempt>,
    receiver: Receiver<Attempt>,
}

impl Connector {
    pub(crate) fn new(waker: Waker) -> Self {
        let (sender, receiver) = channel();
        Self { waker, sender, receiver }
    }

    /// Starts an attempt; false when the system gives no thread.
    pub(crate) fn start(
        &self,
        uplink: usize,
        endpoint: Endpoint,
        timeout_ns: u64,
        limits: Limits,
    ) -> bool {
        let (sender, waker) = (self.sender.clone(), self.waker.clone());
        let attempt = move || {
            let timeout = Duration::from_nanos(timeout_ns);
            let result = Connection::connect_with(&endpoint, timeout, limits);
            // When the node is gone, so is the need for the connection.
            if sender.send(Attempt { uplink, result }).is_ok() {
                waker.wake();
            }
        };
        std::thread::Builder::new().name("byname-connect".into()).spawn(attempt).is_ok()
    }

    /// An attempt that has ended.
    pub(crate) fn poll(&self) -> Option<Attempt> {
        self.receiver.try_recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACK_OFF: BackOff = BackOff { min_ns: 100, max_ns: 1000 };

    #[test]
    fn waits_double_up_to_the_maximum_and_start_anew_after_a_good_connection() {
        let endpoint = "tcp://127.0.0.1:1".parse().unwrap();
        let mut uplink = Uplink::new(endpoint, FaceId(1), BACK_OFF);
        assert_eq!(uplink.due_ns(), Some(0));
        let waits: Vec<u64> = (0..6).map(|_| uplink.on_lost(0, BACK_OFF)).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1000, 1000]);
        uplink.on_connected(0);
        assert_eq!(uplink.due_ns(), None);
        assert_eq!(uplink.on_lost(GOOD_NS - 1, BACK_OFF), 1000, "it did not last");
        uplink.on_connected(0);
        assert_eq!(uplink.on_lost(GOOD_NS, BACK_OFF), 100);
        assert_eq!(uplink.due_ns(), Some(GOOD_NS + 100));
    }
}
