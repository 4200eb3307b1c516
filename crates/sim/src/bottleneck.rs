//! Consumers, each with a flow of its own, that fetch through one bottleneck.
//!
//! A request takes half the consumer's round trip to the producer; the answer passes the queue,
//! then takes the other half. Loss, duplication and disorder happen behind the queue. Packets have
//! no content: the real `Flow` and `Fetch` decide what is asked for when, and that is all.

mod timeline;

use byname_transfer::congestion::{Congestion, WINDOW_MAX};
use byname_transfer::fetch::{Class, Fetch, FetchConfig, NackKind, SegmentRuns};
use byname_transfer::flow::Flow;
use hdrhistogram::Histogram;

use crate::queue::{Fate, Queue, QueueConfig};
use crate::random::Random;
use crate::world::MS;

use timeline::Timeline;

/// Payload of a segment; on the wire it is a little more.
pub const SEGMENT: u64 = 8192;
/// Octets of a segment on the wire beside its payload.
pub const OVERHEAD: u64 = 100;

/// Faults of packets besides the queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Probability that a packet is lost.
    pub loss: f64,
    /// Every so many packets exactly one is lost; 0 for none.
    pub loss_every: u64,
    /// Packets lost in a row, once one is lost.
    pub burst: u64,
    /// Probability that a packet comes twice.
    pub duplication: f64,
    /// Probability of being late by up to `late_ns`.
    pub disorder: f64,
    /// See `disorder`.
    pub late_ns: u64,
    /// Everything that is sent in this time is lost.
    pub outage_ns: (u64, u64),
    /// Period and length of pauses of the consumers' machine: nothing is received or sent in one,
    /// and all that has arrived is received at once afterwards.
    pub pause_ns: (u64, u64),
}

impl Faults {
    /// When the consumers' machine sees what is there at this time.
    fn awake_ns(&self, at_ns: u64) -> u64 {
        let (every_ns, pause_ns) = self.pause_ns;
        let asleep_ns = at_ns.checked_rem(every_ns).unwrap_or(pause_ns);
        at_ns + pause_ns.saturating_sub(asleep_ns)
    }
}

/// One consumer.
#[derive(Clone, Copy, Debug)]
pub struct ConsumerConfig {
    /// Congestion control that sets its window.
    pub congestion: Congestion,
    /// To the producer and back, without the queue.
    pub rtt_ns: u64,
    /// Share of segments that a cache nearby answers, without the bottleneck.
    pub cached: f64,
    /// To that cache and back.
    pub cache_rtt_ns: u64,
    /// When it begins.
    pub start_ns: u64,
    /// Segments that may be in flight at most.
    pub window_max: usize,
    /// Segments of one transfer that may be in flight at most: what its owner has room for.
    pub room: usize,
}

impl ConsumerConfig {
    /// A consumer at that distance, with the default control and no cache.
    pub fn at(rtt_ns: u64) -> Self {
        ConsumerConfig {
            congestion: Congestion::Bdp,
            rtt_ns,
            cached: 0.0,
            cache_rtt_ns: MS,
            start_ns: 0,
            window_max: WINDOW_MAX,
            room: usize::MAX,
        }
    }

    /// The same with another control.
    pub fn with(self, congestion: Congestion) -> Self {
        ConsumerConfig { congestion, ..self }
    }
}

/// Delays in microseconds, counted in classes of 1/128 of their size.
#[derive(Clone, Debug)]
pub struct Delays(Histogram<u64>);

impl Default for Delays {
    fn default() -> Self {
        // A minute is more than any queue lasts.
        Delays(Histogram::new_with_bounds(1, 60_000_000, 2).expect("two digits are allowed"))
    }
}

impl Delays {
    fn record(&mut self, delay_us: u64) {
        self.0.saturating_record(delay_us);
    }

    /// Percentile, in milliseconds.
    pub fn percentile_ms(&self, percent: f64) -> f64 {
        self.0.value_at_percentile(percent) as f64 / 1000.0
    }

    /// Begins counting anew.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// A fetch of a consumer.
pub struct Transfer {
    /// The real thing.
    pub fetch: Fetch,
    /// Segments that came for the first time.
    pub received: u64,
    /// Segments that had come before, or were not asked for any more.
    pub duplicate_count: u64,
    /// When the last one came.
    pub finished_ns: Option<u64>,
}

/// A consumer with its transfers.
pub struct Consumer {
    /// Its settings.
    pub config: ConsumerConfig,
    /// The real thing.
    pub flow: Flow,
    /// In the order of their making.
    pub transfers: Vec<Transfer>,
    /// Requests sent, repetitions included.
    pub requested: u64,
    wake_ns: u64,
    turn: usize,
    /// Lanes of the timeline: towards the queue, and back.
    lanes: [usize; 2],
}

impl Consumer {
    /// Payload that came.
    pub fn received_bytes(&self) -> u64 {
        self.transfers.iter().map(|transfer| transfer.received * SEGMENT).sum()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    AtQueue { consumer: usize, transfer: usize, segment: u64 },
    AtConsumer { consumer: usize, transfer: usize, segment: u64, is_marked: bool },
    Refused { consumer: usize, transfer: usize, segment: u64 },
    Wake { consumer: usize },
}

/// Everything, and the clock.
pub struct Bottleneck {
    /// The clock.
    pub now_ns: u64,
    /// Queue that all answers of the producer pass.
    pub queue: Queue,
    /// Settings of the queue.
    pub line: QueueConfig,
    /// May be changed at any time.
    pub faults: Faults,
    /// In the order of their making.
    pub consumers: Vec<Consumer>,
    /// Requests of this probability are refused with Nack Congestion.
    pub refusal: f64,
    /// Time that packets spent in the queue, their own transmission included, in microseconds.
    pub delays_us: Delays,
    timeline: Timeline<Event>,
    random: Random,
    burst_left: u64,
    delivered: u64,
}

impl Bottleneck {
    /// A bottleneck that nobody uses yet.
    pub fn new(queue: QueueConfig, faults: Faults, seed: u64) -> Self {
        Bottleneck {
            now_ns: 0,
            queue: Queue::new(queue),
            line: queue,
            faults,
            consumers: Vec::new(),
            refusal: 0.0,
            delays_us: Delays::default(),
            timeline: Timeline::new(),
            random: Random::new(seed),
            burst_left: 0,
            delivered: 0,
        }
    }

    /// Adds a consumer; returns its number.
    pub fn add_consumer(&mut self, config: ConsumerConfig) -> usize {
        let jitter_seed = self.consumers.len() as u64;
        let flow = Flow::new(config.congestion.controller(config.window_max), jitter_seed);
        let (transfers, wake_ns) = (Vec::new(), u64::MAX);
        let lanes = [self.timeline.add_lane(), self.timeline.add_lane()];
        let (requested, turn) = (0, 0);
        self.consumers.push(Consumer { config, flow, transfers, requested, wake_ns, turn, lanes });
        self.consumers.len() - 1
    }

    /// Adds a transfer of so many segments, or an endless one; returns its number.
    pub fn add_transfer(&mut self, consumer: usize, count: Option<u64>, class: Class) -> usize {
        let last = count.unwrap_or(u64::MAX / 2) - 1;
        let config = FetchConfig { class, ..FetchConfig::default() };
        let fetch = Fetch::new(SegmentRuns::up_to(last), Some(last), config);
        let transfer = Transfer { fetch, received: 0, duplicate_count: 0, finished_ns: None };
        let one = &mut self.consumers[consumer];
        one.transfers.push(transfer);
        let at_ns = one.config.start_ns.max(self.now_ns);
        self.schedule(at_ns, Event::Wake { consumer });
        self.consumers[consumer].transfers.len() - 1
    }

    /// Lets time pass until `end_ns` or until nothing happens any more.
    pub fn run_until(&mut self, end_ns: u64) {
        while let Some((at_ns, event)) = self.timeline.pop_until(end_ns) {
            self.now_ns = at_ns;
            self.happen(event);
        }
        self.now_ns = end_ns;
    }

    /// Time that a packet that comes to the queue now waits, in milliseconds.
    pub fn queue_ms(&self) -> f64 {
        let bits = self.queue.queued_bytes(self.now_ns) * 8;
        bits as f64 * 1e3 / self.line.bits_per_s as f64
    }

    /// Events that happened or were planned: a measure of the work done.
    pub fn event_count(&self) -> u64 {
        self.timeline.count()
    }

    fn schedule(&mut self, at_ns: u64, event: Event) {
        self.timeline.plan(at_ns, None, event);
    }

    fn happen(&mut self, event: Event) {
        let now_ns = self.now_ns;
        match event {
            Event::AtQueue { consumer, transfer, segment } => {
                if let Fate::Leaves { at_ns, is_marked } =
                    self.queue.push(now_ns, SEGMENT + OVERHEAD)
                {
                    self.delays_us.record((at_ns - now_ns) / 1000);
                    let half_ns = self.consumers[consumer].config.rtt_ns / 2;
                    let event = Event::AtConsumer { consumer, transfer, segment, is_marked };
                    let lane = Some(self.consumers[consumer].lanes[1]);
                    self.deliver(at_ns + half_ns, event, lane);
                }
            }
            Event::AtConsumer { consumer, transfer, segment, is_marked } => {
                self.take(consumer, transfer, segment, is_marked);
                self.turn(consumer);
            }
            Event::Refused { consumer, transfer, segment } => {
                let one = &mut self.consumers[consumer];
                let fetch = &mut one.transfers[transfer].fetch;
                fetch.handle_nack(segment, NackKind::Congestion, now_ns, &mut one.flow);
                self.turn(consumer);
            }
            Event::Wake { consumer } => {
                if now_ns >= self.consumers[consumer].wake_ns {
                    self.consumers[consumer].wake_ns = u64::MAX;
                }
                self.turn(consumer);
            }
        }
    }

    fn take(&mut self, consumer: usize, transfer: usize, segment: u64, is_marked: bool) {
        let one = &mut self.consumers[consumer];
        let transfer = &mut one.transfers[transfer];
        if transfer.fetch.handle_data(segment, is_marked, self.now_ns, &mut one.flow) {
            transfer.received += 1;
        } else {
            transfer.duplicate_count += 1;
        }
        if transfer.fetch.is_finished() {
            transfer.finished_ns.get_or_insert(self.now_ns);
        }
    }

    /// Drives a consumer's transfers after an event.
    fn turn(&mut self, consumer: usize) {
        let now_ns = self.now_ns;
        let count = self.consumers[consumer].transfers.len();
        let first = self.consumers[consumer].turn;
        self.consumers[consumer].turn = (first + 1) % count.max(1);
        for place in (0..count).map(|step| (first + step) % count) {
            let one = &mut self.consumers[consumer];
            let fetch = &mut one.transfers[place].fetch;
            if fetch.poll_deadline(&one.flow).is_some_and(|at_ns| at_ns <= now_ns) {
                fetch.handle_timeout(now_ns, &mut one.flow);
            }
        }
        for place in (0..count).map(|step| (first + step) % count) {
            loop {
                let one = &mut self.consumers[consumer];
                let fetch = &mut one.transfers[place].fetch;
                let room = one.config.room;
                let segment = fetch.poll_segment(now_ns, room, SEGMENT, &mut one.flow);
                let Some(segment) = segment else { break };
                one.requested += 1;
                self.send(consumer, place, segment);
            }
        }
        self.sleep(consumer);
    }

    fn sleep(&mut self, consumer: usize) {
        let one = &mut self.consumers[consumer];
        let flow = &one.flow;
        let fetches = one.transfers.iter_mut().map(|transfer| transfer.fetch.poll_deadline(flow));
        let deadline_ns = fetches.flatten().chain(flow.poll_deadline()).min();
        let Some(deadline_ns) = deadline_ns else { return };
        // Drivers oversleep a little, and so does the model.
        let at_ns = self.faults.awake_ns(deadline_ns.max(self.now_ns) + 20_000);
        if at_ns < one.wake_ns {
            one.wake_ns = at_ns;
            self.schedule(at_ns, Event::Wake { consumer });
        }
    }

    fn send(&mut self, consumer: usize, transfer: usize, segment: u64) {
        let (now_ns, config) = (self.now_ns, self.consumers[consumer].config);
        if self.random.chance(self.refusal) {
            let event = Event::Refused { consumer, transfer, segment };
            return self.schedule(now_ns + config.cache_rtt_ns.min(config.rtt_ns), event);
        }
        // The same segments are in the cache whenever one asks.
        let is_cached = config.cached > 0.0
            && Random::new(segment * 7 + 3).draw() % 1000 < (config.cached * 1000.0) as u64;
        if is_cached {
            let event = Event::AtConsumer { consumer, transfer, segment, is_marked: false };
            return self.deliver(now_ns + config.cache_rtt_ns, event, None);
        }
        let at_ns = now_ns + config.rtt_ns / 2;
        let lane = Some(self.consumers[consumer].lanes[0]);
        self.timeline.plan(at_ns, lane, Event::AtQueue { consumer, transfer, segment });
    }

    fn deliver(&mut self, at_ns: u64, event: Event, lane: Option<usize>) {
        let at_ns = self.faults.awake_ns(at_ns);
        let Faults { loss, loss_every, burst, duplication, disorder, late_ns, outage_ns, .. } =
            self.faults;
        self.delivered += 1;
        if self.burst_left > 0 {
            self.burst_left -= 1;
            return;
        }
        if (outage_ns.0..outage_ns.1).contains(&self.now_ns) {
            return;
        }
        let is_its_turn = loss_every > 0 && self.delivered.is_multiple_of(loss_every);
        if is_its_turn || self.random.chance(loss) {
            self.burst_left = burst.saturating_sub(1);
            return;
        }
        let late = if self.random.chance(disorder) { self.random.below(late_ns) } else { 0 };
        self.timeline.plan(at_ns + late, lane.filter(|_| late == 0), event);
        if self.random.chance(duplication) {
            let extra_ns = self.random.below(5 * MS);
            self.schedule(at_ns + late + extra_ns, event);
        }
    }
}
