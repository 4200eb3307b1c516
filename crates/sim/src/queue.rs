//! The bottleneck: a first-in-first-out queue before a line of constant rate.
//!
//! Departures follow from earlier arrivals, so a packet's fate is known on arrival. That
//! is exact but for CoDel, which decides when packets leave: the links of [`crate::World`] have
//! [`crate::codel`], the bottleneck of [`crate::bottleneck`] has the control law on arrival.

/// Behaviour of a full queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// Drops what does not fit.
    DropTail,
    /// Also marks: once the delay has been above 5 ms for 100 ms, one packet, then more and more
    /// often (CoDel's control law).
    CodelMarks,
    /// Drops what would be marked.
    Codel,
}

/// Settings of the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// Rate of the line behind it.
    pub bits_per_s: u64,
    /// Limit of what waits; two packets always may.
    pub buffer_bytes: u64,
    /// Behaviour when it is full, or long.
    pub discipline: Discipline,
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes on.
    Leaves {
        /// When its last bit has left.
        at_ns: u64,
        /// True if it shall carry a congestion mark.
        is_marked: bool,
    },
    /// It does not fit.
    Dropped,
}

const TARGET_NS: u64 = 5_000_000;
const INTERVAL_NS: u64 = 100_000_000;

/// The queue.
#[derive(Clone, Debug)]
pub struct Queue {
    config: QueueConfig,
    /// When the last packet accepted will have left, in picoseconds.
    busy_until_ps: u128,
    above_since_ns: Option<u64>,
    mark_next_ns: u64,
    mark_count: u64,
    /// Of the packets that passed.
    pub delay_sum_ns: u128,
    /// Of the packets that passed.
    pub delay_max_ns: u64,
    /// Packets that passed.
    pub packet_count: u64,
    /// Packets that did not fit, or that CoDel dropped.
    pub drop_count: u64,
}

impl Queue {
    /// An empty queue.
    pub fn new(config: QueueConfig) -> Self {
        Queue {
            config,
            busy_until_ps: 0,
            above_since_ns: None,
            mark_next_ns: 0,
            mark_count: 0,
            delay_sum_ns: 0,
            delay_max_ns: 0,
            packet_count: 0,
            drop_count: 0,
        }
    }

    /// A packet arrives. Calls must be in the order of time.
    pub fn push(&mut self, now_ns: u64, bytes: u64) -> Fate {
        let now_ps = u128::from(now_ns) * 1000;
        let delay_ps = self.busy_until_ps.saturating_sub(now_ps);
        let rate = u128::from(self.config.bits_per_s);
        if self.queued_bytes(now_ns) + bytes > self.config.buffer_bytes.max(2 * bytes) {
            self.drop_count += 1;
            return Fate::Dropped;
        }
        let delay_ns = (delay_ps / 1000) as u64;
        let is_due = self.config.discipline != Discipline::DropTail
            && self.is_to_be_marked(now_ns, delay_ns);
        if is_due && self.config.discipline == Discipline::Codel {
            self.drop_count += 1;
            return Fate::Dropped;
        }
        let is_marked = is_due;
        self.packet_count += 1;
        self.delay_sum_ns += u128::from(delay_ns);
        self.delay_max_ns = self.delay_max_ns.max(delay_ns);
        let line_ps = u128::from(bytes) * 8_000_000_000_000 / rate;
        self.busy_until_ps = self.busy_until_ps.max(now_ps) + line_ps;
        Fate::Leaves { at_ns: (self.busy_until_ps / 1000) as u64, is_marked }
    }

    /// Octets that have not left yet.
    pub fn queued_bytes(&self, now_ns: u64) -> u64 {
        let delay_ps = self.busy_until_ps.saturating_sub(u128::from(now_ns) * 1000);
        (delay_ps * u128::from(self.config.bits_per_s) / 8_000_000_000_000) as u64
    }

    /// Nothing waits any more.
    pub fn clear(&mut self, now_ns: u64) {
        self.busy_until_ps = self.busy_until_ps.min(u128::from(now_ns) * 1000);
    }

    /// Mean delay of what passed since the figures were set to zero.
    pub fn delay_mean_ns(&self) -> u64 {
        (self.delay_sum_ns / u128::from(self.packet_count.max(1))) as u64
    }

    /// Begins counting anew.
    pub fn clear_figures(&mut self) {
        (self.delay_sum_ns, self.delay_max_ns) = (0, 0);
        (self.packet_count, self.drop_count) = (0, 0);
    }

    fn is_to_be_marked(&mut self, now_ns: u64, delay_ns: u64) -> bool {
        if delay_ns < TARGET_NS {
            self.above_since_ns = None;
            self.mark_count = 0;
            return false;
        }
        let since_ns = *self.above_since_ns.get_or_insert(now_ns);
        let first_ns = since_ns + INTERVAL_NS;
        if now_ns < first_ns.max(self.mark_next_ns) {
            return false;
        }
        self.mark_count += 1;
        let pause_ns = INTERVAL_NS as f64 / (self.mark_count as f64).sqrt();
        self.mark_next_ns = now_ns + pause_ns as u64;
        true
    }
}
