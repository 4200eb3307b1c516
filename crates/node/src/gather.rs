//! Pauses that gather packets under load.
//!
//! A client that moves packet by packet wakes the forwarder for each of them, and to fall asleep
//! and be woken costs as much as to forward. Who looks at the sockets a little later finds several
//! packets at once, and the clients that sent them did not have to wake anybody. But clients with
//! few packets in flight would wait for us: that cannot be seen from here, so it is measured.
//!
//! [`Gather`] counts turns of the loop and the packets they brought in windows of [`WINDOW_NS`].
//! Where turns are frequent and bring few packets, it compares windows with pauses and without, in
//! turn. Pauses stay for [`GATHERING_NS`] if no fewer packets came with them and each cost less
//! processor time; otherwise the next comparison is put off, each time for longer.
//!
//! Invariants: a pause follows only a turn that brought packets, lasts [`PAUSE_NS`] (and what the
//! system's timer adds, 50 µs unless set), and comes after all that was to be sent has been sent.
//! After [`HOLE_NS`] without a packet there is none: who has been idle is served at once.

use std::time::Duration;

/// Length of a pause.
const PAUSE_NS: u64 = 50_000;
/// Time over which turns and packets are counted.
const WINDOW_NS: u64 = 8_000_000;
/// A window that lasts longer had a hole in it and tells nothing.
const HOLE_NS: u64 = 2 * WINDOW_NS;
/// Turns in a window, below which sleeping costs too little to save (5000 a second).
const TURNS_MIN: u64 = 40;
/// Packets that a turn brings on average, above which they come in bursts anyway.
const PACKETS_PER_TURN_MAX: u64 = 4;
/// Pairs of windows, one without and one with pauses, that a comparison takes.
const PAIRS: u32 = 4;
/// Packets that have to come with pauses for each without, at the end of a comparison and before.
const RATE_MIN: f64 = 0.97;
const RATE_HOPELESS: f64 = 0.7;
/// Processor time that a packet may cost with pauses for each nanosecond without.
const COST_MAX: f64 = 0.85;
/// Pauses that bring fewer than two packets each are given up after so many.
const FRUITLESS_TURNS: u64 = 8;
/// Time after which pauses that were worthwhile are compared anew.
const GATHERING_NS: u64 = 1_000_000_000;
/// Time for which comparisons are put off, at first and at most.
const HOLD_MIN_NS: u64 = 100_000_000;
const HOLD_MAX_NS: u64 = 6_400_000_000;

/// Sums of one window or several.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    turns: u64,
    packets: u64,
    elapsed_ns: u64,
    /// Processor time of the thread; counted in comparisons only.
    cpu_ns: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.turns += other.turns;
        self.packets += other.packets;
        self.elapsed_ns += other.elapsed_ns;
        self.cpu_ns += other.cpu_ns;
    }

    fn packets_per_ns(self) -> f64 {
        self.packets as f64 / self.elapsed_ns.max(1) as f64
    }

    fn cpu_ns_per_packet(self) -> f64 {
        self.cpu_ns as f64 / self.packets.max(1) as f64
    }

    /// True if turns are so frequent, and bring so little, that pauses may save something.
    fn is_costly(self) -> bool {
        self.turns >= TURNS_MIN && self.packets <= PACKETS_PER_TURN_MAX * self.turns
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No pauses; looks for load.
    Watching,
    /// The windows of a comparison; so many pairs are done.
    Comparing { is_pausing: bool, pairs: u32 },
    /// Pauses until then.
    Gathering { until_ns: u64 },
}

/// See the module. Driven by [`Gather::handle_turn`]; [`Gather::pause`] says what to do next.
#[derive(Debug)]
pub(crate) struct Gather {
    phase: Phase,
    since_ns: u64,
    /// Processor time of the thread when the window of a comparison began.
    since_cpu_ns: u64,
    window: Tally,
    /// Sums of the windows without and with pauses of this comparison.
    direct: Tally,
    paused: Tally,
    /// No comparison begins before this time.
    next_ns: u64,
    hold_ns: u64,
    /// True if the last turn brought packets.
    is_fed: bool,
}

impl Default for Gather {
    fn default() -> Self {
        Self {
            phase: Phase::Watching,
            since_ns: 0,
            since_cpu_ns: 0,
            window: Tally::default(),
            direct: Tally::default(),
            paused: Tally::default(),
            next_ns: 0,
            hold_ns: HOLD_MIN_NS,
            is_fed: false,
        }
    }
}

impl Gather {
    /// Time to sleep before the sockets are looked at again.
    pub(crate) fn pause(&self) -> Option<Duration> {
        (self.is_fed && self.is_pausing()).then_some(Duration::from_nanos(PAUSE_NS))
    }

    fn is_pausing(&self) -> bool {
        match self.phase {
            Phase::Watching => false,
            Phase::Comparing { is_pausing, .. } => is_pausing,
            Phase::Gathering { .. } => true,
        }
    }

    /// Takes note of a turn that ended at `now_ns` and brought so many packets: a wait for events
    /// and what followed, or a pause after which there was nothing. `cpu_ns` is the processor time
    /// of the thread, asked for at the edges of windows only.
    pub(crate) fn handle_turn(&mut self, now_ns: u64, packets: usize, cpu_ns: impl Fn() -> u64) {
        self.is_fed = packets > 0;
        let elapsed_ns = now_ns.saturating_sub(self.since_ns);
        if elapsed_ns > HOLE_NS {
            self.begin(Phase::Watching, now_ns);
            return;
        }
        self.window.turns += 1;
        self.window.packets += packets as u64;
        let Tally { turns, packets, .. } = self.window;
        if self.is_pausing() && turns >= FRUITLESS_TURNS && packets < 2 * turns {
            self.give_up(now_ns);
        } else if elapsed_ns >= WINDOW_NS {
            self.window.elapsed_ns = elapsed_ns;
            self.handle_window(now_ns, cpu_ns);
        }
    }

    fn handle_window(&mut self, now_ns: u64, cpu_ns: impl Fn() -> u64) {
        let next = match self.phase {
            Phase::Watching if now_ns >= self.next_ns && self.window.is_costly() => {
                self.since_cpu_ns = cpu_ns();
                (self.direct, self.paused) = (Tally::default(), Tally::default());
                Phase::Comparing { is_pausing: false, pairs: 0 }
            }
            Phase::Watching => Phase::Watching,
            Phase::Comparing { is_pausing, pairs } => {
                let cpu_ns = cpu_ns();
                self.window.cpu_ns = cpu_ns.saturating_sub(self.since_cpu_ns);
                self.since_cpu_ns = cpu_ns;
                if is_pausing {
                    self.paused.add(self.window);
                    return self.handle_pair(pairs + 1, now_ns);
                }
                self.direct.add(self.window);
                Phase::Comparing { is_pausing: true, pairs }
            }
            Phase::Gathering { until_ns } if now_ns >= until_ns => Phase::Watching,
            gathering @ Phase::Gathering { .. } => gathering,
        };
        self.begin(next, now_ns);
    }

    /// So many pairs of windows have been compared.
    fn handle_pair(&mut self, pairs: u32, now_ns: u64) {
        let (direct, paused) = (self.direct, self.paused);
        let is_enough = pairs >= PAIRS;
        let rate_min = if is_enough { RATE_MIN } else { RATE_HOPELESS };
        if paused.packets_per_ns() < rate_min * direct.packets_per_ns() {
            self.give_up(now_ns);
        } else if !is_enough {
            self.begin(Phase::Comparing { is_pausing: false, pairs }, now_ns);
        } else if paused.cpu_ns_per_packet() > COST_MAX * direct.cpu_ns_per_packet() {
            self.give_up(now_ns);
        } else {
            self.hold_ns = HOLD_MIN_NS;
            self.begin(Phase::Gathering { until_ns: now_ns.saturating_add(GATHERING_NS) }, now_ns);
        }
    }

    fn give_up(&mut self, now_ns: u64) {
        self.next_ns = now_ns.saturating_add(self.hold_ns);
        self.hold_ns = (2 * self.hold_ns).min(HOLD_MAX_NS);
        self.begin(Phase::Watching, now_ns);
    }

    fn begin(&mut self, phase: Phase, now_ns: u64) {
        (self.phase, self.since_ns, self.window) = (phase, now_ns, Tally::default());
    }
}

#[cfg(test)]
mod tests;
