//! State of a bottleneck and its flows at fixed intervals of virtual time: as text, of which
//! a change is a diff (`tests/it/traces.rs`), and as plots for a report.

use std::fmt::Write as _;

use crate::bottleneck::{Bottleneck, Consumer};
use crate::plot::{Axis, Plot, Series};

/// One flow at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowSample {
    /// Segments that may be in flight.
    pub window: usize,
    /// Segments that are in flight.
    pub in_flight: usize,
    /// Smoothed round trip; 0 before the first answer.
    pub rtt_ms: f64,
    /// Payload since the sample before.
    pub mbit_per_s: f64,
}

/// Everything at one time.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// When.
    pub at_ns: u64,
    /// Time that a packet that comes now waits.
    pub queue_ms: f64,
    /// Packets that the queue dropped since the sample before.
    pub drop_count: u64,
    /// In the order of the consumers.
    pub flows: Vec<FlowSample>,
}

/// Samples at equal distances.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// In the order of time.
    pub samples: Vec<Sample>,
}

impl Trace {
    /// Lets time pass until `end_ns` and looks every `interval_ns`. Figures of the queue go on
    /// counting.
    pub fn record(world: &mut Bottleneck, end_ns: u64, interval_ns: u64) -> Trace {
        let mut trace = Trace::default();
        let mut received: Vec<u64> = received_bytes(world);
        let mut dropped = world.queue.drop_count;
        while world.now_ns + interval_ns <= end_ns {
            let at_ns = world.now_ns + interval_ns;
            world.run_until(at_ns);
            let now = received_bytes(world);
            let came = now.iter().zip(&received).map(|(now, before)| now - before);
            let flows = world.consumers.iter().zip(came);
            let flows = flows.map(|(one, came)| FlowSample::of(one, came, interval_ns)).collect();
            let queue_ms = world.queue_ms();
            let drop_count = world.queue.drop_count - dropped;
            trace.samples.push(Sample { at_ns, queue_ms, drop_count, flows });
            (received, dropped) = (now, world.queue.drop_count);
        }
        trace
    }

    /// A table for people and for diffs, in units in which small differences do not show.
    pub fn text(&self) -> String {
        let mut text = String::from("    ms  queue ms  drops |  window  flight  rtt ms  Mbit/s\n");
        for sample in &self.samples {
            let Sample { at_ns, queue_ms, drop_count, flows } = sample;
            // Writing to a String does not fail.
            let _ = write!(text, "{:>6} {queue_ms:>9.1} {drop_count:>6}", at_ns / 1_000_000);
            for FlowSample { window, in_flight, rtt_ms, mbit_per_s } in flows {
                let _ =
                    write!(text, " | {window:>7} {in_flight:>7} {rtt_ms:>7.1} {mbit_per_s:>7.0}");
            }
            text.push('\n');
        }
        text
    }

    /// Goodput, window, round trip and queue over time, as `NAME-goodput` and so on.
    pub fn plots(&self, name: &str, title: &str, flows: &[String]) -> Vec<Plot> {
        let per_flow = |of: fn(&FlowSample) -> f64| -> Vec<Series> {
            let line = |(place, label): (usize, &String)| {
                let value = |sample: &Sample| sample.flows.get(place).map_or(0.0, of);
                Series::line(label, self.points(value))
            };
            flows.iter().enumerate().map(line).collect()
        };
        let queue = vec![Series::line("queue", self.points(|sample| sample.queue_ms))];
        let plot = |what: &str, label: &str, series: Vec<Series>| Plot {
            name: format!("{name}-{what}"),
            title: format!("{title}: {what}"),
            x: Axis::linear("seconds"),
            y: Axis::linear(label),
            series,
        };
        vec![
            plot("goodput", "Mbit/s", per_flow(|flow| flow.mbit_per_s)),
            plot("window", "segments of 8 KiB", per_flow(|flow| flow.window as f64)),
            plot("round-trip", "ms, smoothed", per_flow(|flow| flow.rtt_ms)),
            plot("queue", "ms", queue),
        ]
    }

    fn points(&self, of: impl Fn(&Sample) -> f64) -> Vec<(f64, f64)> {
        self.samples.iter().map(|sample| (sample.at_ns as f64 / 1e9, of(sample))).collect()
    }
}

impl FlowSample {
    fn of(consumer: &Consumer, came: u64, interval_ns: u64) -> Self {
        let flow = &consumer.flow;
        FlowSample {
            window: flow.window(),
            in_flight: flow.in_flight(),
            rtt_ms: flow.smoothed_rtt_ns().unwrap_or(0) as f64 / 1e6,
            mbit_per_s: came as f64 * 8e3 / interval_ns as f64,
        }
    }
}

fn received_bytes(world: &Bottleneck) -> Vec<u64> {
    world.consumers.iter().map(Consumer::received_bytes).collect()
}
