//! Choice of the source that is asked, of several, and the step to the next one.
//!
//! The next one is when this one is gone, says nothing for [`SILENCE_NS`], refuses a request or
//! sends what does not verify. The connection in use stays until another is there. Requests in
//! flight are then repeated by whoever made them, when their time is over.
//!
//! A lost connection that has delivered something is made again at once. One that has not, and an
//! attempt that failed, are followed by a pause that doubles ([`PAUSES`]), and the next source has
//! its turn: who accepts connections only to close them is asked twice a second, not as often as a
//! processor can. No peer gets connections closer together than the shortest pause.
//!
//! Until somebody has delivered anything, "nobody listens" from all of them is believed at once.
//! From then on it is an outage like a lost connection, and all of them are tried until it has
//! lasted too long.

use std::collections::VecDeque;

use byname_retry::BackOff;

/// Silence after which another source is asked, if there is one.
const SILENCE_NS: u64 = 2_000_000_000;
/// Longest time to connect to another source.
const SWITCH_TIMEOUT_NS: u64 = 500_000_000;
/// Longest time to connect to the lost one.
const RECONNECT_TIMEOUT_NS: u64 = 100_000_000;
/// Pauses between attempts. The longest and an attempt on top of it: who comes back is found within
/// a second.
const PAUSES: BackOff = BackOff { min_ns: 20_000_000, max_ns: 500_000_000 };

/// Why nothing can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// No source could be connected to for as long as that is waited for.
    Disconnected,
    /// Nobody listens where the first request went.
    Unreachable,
}

/// Time for which there may be no source before that is an end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Before anything was delivered.
    pub(crate) first_ns: u64,
    /// From then on.
    pub(crate) begun_ns: u64,
}

/// A source that shall be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connect {
    /// Its number, in the order in which the sources were named.
    pub source: usize,
    /// After that long it counts as failed.
    pub timeout_ns: u64,
}

/// An attempt to connect.
#[derive(Debug)]
struct Attempt {
    connect: Connect,
    is_reported: bool,
    aim: Aim,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    /// Back to the source that was lost.
    Back,
    /// To another one, so many of which are left if this one fails.
    Switch { left: usize, is_for_good: bool },
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Sources {
    current: usize,
    /// The others that may be asked, the next one first.
    others: VecDeque<usize>,
    can_reconnect: bool,
    /// Longest time that a lost connection may stay away.
    patience: Patience,
    /// Some source has sent Data.
    has_delivered: bool,
    is_connected: bool,
    lost_ns: Option<u64>,
    /// When a lost one may be tried again.
    retry_ns: u64,
    /// Attempts and connections in a row that came to nothing.
    failures: u32,
    connected_ns: u64,
    attempt: Option<Attempt>,
    /// Changes of source since the last Data.
    switches: usize,
    /// From when on it counts that something was asked and nothing heard.
    asked_ns: Option<u64>,
    /// Something came over this connection.
    is_answered: bool,
    /// If no other source can be had, there is none.
    is_unreachable: bool,
}

impl Sources {
    /// So many sources, of which the first is connected to. Without any, the connection exists and
    /// there is nowhere to reconnect to.
    pub(crate) fn new(count: usize, patience: Patience) -> Self {
        Sources {
            current: 0,
            others: (1..count).collect(),
            can_reconnect: count > 0,
            patience,
            has_delivered: false,
            is_connected: true,
            lost_ns: None,
            retry_ns: 0,
            failures: 0,
            connected_ns: 0,
            attempt: None,
            switches: 0,
            asked_ns: None,
            is_answered: false,
            is_unreachable: false,
        }
    }

    /// Number of the source in use.
    pub(super) fn current(&self) -> usize {
        self.current
    }

    pub(super) fn can_reconnect(&self) -> bool {
        self.can_reconnect
    }

    pub(super) fn is_answered(&self) -> bool {
        self.is_answered
    }

    /// True if there is anybody else who was not asked since the last Data.
    pub(super) fn has_others(&self) -> bool {
        self.switches < self.others.len()
    }

    /// Another source is being connected to.
    pub(super) fn is_switching(&self) -> bool {
        matches!(&self.attempt, Some(Attempt { aim: Aim::Switch { .. }, .. }))
    }

    /// Something is asked.
    pub(super) fn ask(&mut self, now_ns: u64) {
        self.asked_ns.get_or_insert(now_ns);
    }

    /// Something came.
    pub(super) fn hear(&mut self) {
        self.is_answered = true;
        self.failures = 0;
        (self.asked_ns, self.lost_ns) = (None, None);
    }

    /// It was no refusal.
    pub(super) fn hear_data(&mut self) {
        self.switches = 0;
        self.has_delivered = true;
    }

    /// True if anything was ever delivered: outages are borne.
    pub(super) fn has_delivered(&self) -> bool {
        self.has_delivered
    }

    /// Begins to go over to the next source; false if there is none.
    pub(super) fn switch(&mut self) -> bool {
        self.is_switching() || self.begin_switch(false)
    }

    /// Begins to go over to the next source for good: this one is not asked again. What it has
    /// sent may still be found out to be wrong, and must not count against the next.
    pub(super) fn leave(&mut self) -> bool {
        !self.is_switching() && self.begin_switch(true)
    }

    fn begin_switch(&mut self, is_for_good: bool) -> bool {
        self.switches += 1;
        let left = self.others.len();
        self.try_other(left, is_for_good)
    }

    fn try_other(&mut self, left: usize, is_for_good: bool) -> bool {
        let Some(left) = left.checked_sub(1) else { return false };
        let Some(source) = self.others.pop_front() else { return false };
        let connect = Connect { source, timeout_ns: SWITCH_TIMEOUT_NS };
        let aim = Aim::Switch { left, is_for_good };
        self.attempt = Some(Attempt { connect, is_reported: false, aim });
        true
    }

    /// Goes over to the next source if this one owes an answer for too long.
    pub(super) fn check_silence(&mut self, now_ns: u64) {
        if self.silence_ends_ns().is_some_and(|at| at <= now_ns) {
            self.asked_ns = Some(now_ns);
            self.switch();
        }
    }

    fn silence_ends_ns(&self) -> Option<u64> {
        let is_waited = !self.others.is_empty() && self.attempt.is_none();
        self.asked_ns.filter(|_| is_waited).map(|at| at.saturating_add(SILENCE_NS))
    }

    pub(super) fn poll_connect(&mut self, now_ns: u64) -> Option<Connect> {
        let is_due = !self.is_connected && self.can_reconnect && now_ns >= self.retry_ns;
        if self.attempt.is_none() && is_due {
            let connect = Connect { source: self.current, timeout_ns: RECONNECT_TIMEOUT_NS };
            self.attempt = Some(Attempt { connect, is_reported: false, aim: Aim::Back });
        }
        let attempt = self.attempt.as_mut().filter(|attempt| !attempt.is_reported)?;
        attempt.is_reported = true;
        Some(attempt.connect)
    }

    pub(super) fn handle_connected(&mut self, now_ns: u64) {
        let Some(Attempt { connect, aim, .. }) = self.attempt.take() else { return };
        if let Aim::Switch { is_for_good, .. } = aim {
            let left = std::mem::replace(&mut self.current, connect.source);
            if !is_for_good {
                self.others.push_back(left);
            }
        }
        self.is_connected = true;
        self.connected_ns = now_ns;
        self.is_answered = false;
        self.is_unreachable = false;
        self.asked_ns = None;
    }

    /// `random` is the jitter of the pause.
    pub(super) fn handle_connect_failed(&mut self, now_ns: u64, random: u64) -> Option<End> {
        let Attempt { connect, aim, .. } = self.attempt.take()?;
        let is_tried = match aim {
            Aim::Back => self.begin_switch(false),
            Aim::Switch { left, is_for_good } => {
                self.others.push_back(connect.source);
                self.try_other(left, is_for_good)
            }
        };
        if is_tried {
            return None;
        }
        if std::mem::take(&mut self.is_unreachable) {
            return Some(End::Unreachable);
        }
        if self.is_connected {
            return None;
        }
        self.pause(now_ns, random);
        self.lost_ns.get_or_insert(now_ns);
        self.is_out_of_patience(now_ns).then_some(End::Disconnected)
    }

    fn is_out_of_patience(&self, now_ns: u64) -> bool {
        let Patience { first_ns, begun_ns } = self.patience;
        let patience_ns = if self.has_delivered { begun_ns } else { first_ns };
        self.lost_ns.is_some_and(|lost_ns| now_ns.saturating_sub(lost_ns) >= patience_ns)
    }

    /// `random` is the jitter of the pause, if there is one.
    pub(super) fn handle_disconnected(&mut self, now_ns: u64, random: u64) {
        let was_connected = std::mem::take(&mut self.is_connected);
        // Who owed an answer was no help: what is missing was missing before.
        if self.is_answered || self.asked_ns.is_none() {
            self.lost_ns = None;
        }
        self.lost_ns.get_or_insert(now_ns);
        if !was_connected {
            return;
        }
        if self.is_answered {
            self.retry_ns = now_ns.max(self.connected_ns.saturating_add(PAUSES.min_ns));
            return;
        }
        self.pause(now_ns, random);
        // Somebody else may be of more use.
        if self.attempt.is_none()
            && let Some(next) = self.others.pop_front()
        {
            self.others.push_back(std::mem::replace(&mut self.current, next));
        }
    }

    fn pause(&mut self, now_ns: u64, random: u64) {
        self.failures = self.failures.saturating_add(1);
        self.retry_ns = now_ns.saturating_add(PAUSES.pause_ns(self.failures, random));
    }

    /// Nobody listens at the other end, and nothing came from there yet. `random` is the jitter of
    /// the pause.
    pub(super) fn handle_unreachable(&mut self, now_ns: u64, random: u64) -> Option<End> {
        if self.has_delivered {
            self.handle_disconnected(now_ns, random);
            return self.is_out_of_patience(now_ns).then_some(End::Unreachable);
        }
        self.is_unreachable = self.is_switching() || (self.has_others() && self.switch());
        (!self.is_unreachable).then_some(End::Unreachable)
    }

    /// When a source has been silent for too long, or a lost one may be tried again.
    pub(super) fn poll_deadline(&self) -> Option<u64> {
        let is_lost = !self.is_connected && self.can_reconnect && self.attempt.is_none();
        self.silence_ends_ns().into_iter().chain(is_lost.then_some(self.retry_ns)).min()
    }
}

#[cfg(test)]
mod tests;
