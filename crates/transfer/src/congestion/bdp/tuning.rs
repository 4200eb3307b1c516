//! The numbers of the [model](super): how fast it starts, probes for bandwidth, and gives way.

use super::super::MS;

/// Doubles the rate every round, although what is known of it is one round old.
pub(super) const GAIN_START: f64 = 4.0;
/// Late answers in a row that end the start in mid-round. So many, because answers from caches
/// come in between where there are any.
pub(super) const LATE_IN_A_ROW: u32 = 32;
/// The part of a round trip over which they have to come. What a pause of either end or of
/// anybody between has held back comes nearly at once, and each answer less late than the one
/// before; a queue that grows makes each later.
pub(super) const LATE_PART: u64 = 4;
/// Answers that make a mean.
pub(super) const SAMPLES_MIN: f64 = 32.0;
/// By how often in a row the bandwidth probe has found more, with no queue: a start that ended too
/// early, or a path that has become wider, is not made up for a quarter at a time.
pub(super) const GAIN_UP: [f64; 3] = [1.25, 1.5, 2.0];
/// Probing, a small flow takes a larger step than its rate says, so that it catches up.
pub(super) const UP_SEGMENTS: f64 = 2.0;
pub(super) const GAIN_DOWN: f64 = 0.75;
/// More than the path holds, so that a late answer does not stop the stream.
pub(super) const SLACK: f64 = 1.25;
/// The same while probing for bandwidth, on top of the gain.
pub(super) const SLACK_UP: f64 = 1.2;
/// Rounds from one bandwidth probe to the next.
pub(super) const CRUISE_ROUNDS: u32 = 6;
/// Queueing that is not worth avoiding: it lets end systems work in batches.
pub(super) const QUEUE_TARGET_NS: u64 = MS;
/// Below this round trip the other end is in this machine or next to it, and timers cost more
/// than they give.
pub(super) const PACED_FROM_NS: u64 = MS;
/// The same for the mean of rounds: as long as processes that share a processor make it.
pub(super) const LOCAL_BASE_NS: u64 = 4 * MS;
/// Time over which a rate is averaged there, some turns of these processes.
pub(super) const LOCAL_RATE_NS: u64 = 5 * MS;
/// Queueing on so short a path: as long as a few turns of the processes that share a processor,
/// because whoever finds nothing to do goes to sleep and has to be woken.
pub(super) const LOCAL_QUEUE_NS: u64 = 2 * MS;
/// Segments in flight there, unless the shortest round trips hold more: less than the 256 slots
/// of a memif ring, and half of what fits into the send queue of a forwarder, 4 MiB.
pub(super) const LOCAL_SEGMENTS: f64 = 224.0;
pub(super) const LOCAL_ROUND_TRIPS: u64 = 2;
/// Growth by an answer of a window that is larger than that and has seen so short a round trip.
pub(super) const WIDE_STEP: f64 = 0.5;
/// Age at which the undisturbed round trip has to be measured anew.
pub(super) const BASE_AGE_NS: u64 = 10_000 * MS;
/// Segments that it takes to notice a loss without waiting for a time-out.
pub(super) const WINDOW_LEAST: f64 = 4.0;
pub(super) const PROBE_RTT_ROUNDS: u32 = 2;
/// The part of what the path seems to hold that is in flight for the first RTT probe.
pub(super) const PROBE_RTT_PART: f64 = 0.5;
/// A path may be another one after so many rounds that look like it.
pub(super) const PATH_CHANGE_ROUNDS: u32 = 3;
/// After a probe there is none for so long, and so many round trips: what pauses once
/// pauses again.
pub(super) const PROBE_RTT_PAUSE_NS: u64 = 200 * MS;
pub(super) const PROBE_RTT_PAUSE_TRIPS: u64 = 32;
pub(super) const CUT_MARK: f64 = 0.85;
pub(super) const CUT_LOSS: f64 = 0.7;
pub(super) const CUT_RATE: f64 = 0.9;
/// No reduction goes further below the model: the rate that still comes is real.
pub(super) const CUT_FLOOR: f64 = 0.7;
/// Share of losses that is congestion, in 1/1000.
pub(super) const LOSS_TOLERATED: u64 = 50;
pub(super) const LOSS_QUEUEING: u64 = 25;
/// Outcomes needed to tell a share of losses from chance.
pub(super) const OUTCOMES_MIN: u64 = 128;
