//! The queue that flows build before a line, by distance, buffer and what the queue does when it
//! is long; and what window, round trip and queue look like over time.

use byname_transfer::congestion::Congestion;

use super::path::{Figures, GBIT, discipline_name, line, measure, percent, world};
use super::{Effort, Section, on_all_processors};
use crate::bottleneck::ConsumerConfig;
use crate::plot::{Axis, Plot, Series};
use crate::queue::Discipline;
use crate::trace::Trace;
use crate::world::{MS, SECOND};

/// For the list of studies.
pub const QUESTION: &str = "How long is the queue that flows build before a line?";

/// Buffers in products of rate and round trip, and what the queue does.
const QUEUES: [(f64, Discipline); 5] = [
    (0.25, Discipline::DropTail),
    (1.0, Discipline::DropTail),
    (4.0, Discipline::DropTail),
    (1.0, Discipline::CodelMarks),
    (1.0, Discipline::Codel),
];

#[derive(Clone, Copy, Debug)]
struct Case {
    rtt_ms: u64,
    count: usize,
    congestion: Congestion,
    queue: (f64, Discipline),
}

impl Case {
    fn world(&self, seed: u64) -> crate::bottleneck::Bottleneck {
        let (products, discipline) = self.queue;
        let queue = line(GBIT, self.rtt_ms * MS, products, discipline);
        let consumer = |place: usize| {
            let config = ConsumerConfig::at(self.rtt_ms * MS).with(self.congestion);
            ConsumerConfig { start_ns: place as u64 * 300 * MS, ..config }
        };
        let consumers: Vec<ConsumerConfig> = (0..self.count).map(consumer).collect();
        world(queue, 0.0, &consumers, seed)
    }
}

/// Answers the question.
pub fn run(effort: &Effort) -> Section {
    let (from_ns, to_ns) =
        if effort.is_quick { (SECOND, 2 * SECOND) } else { (8 * SECOND, 18 * SECOND) };
    let cases = cases(effort);
    let figures =
        on_all_processors(&cases, |case| measure(&mut case.world(effort.seed), from_ns, to_ns));
    let mut section = Section::new("The queue at the bottleneck");
    section.paragraph(format!(
        "1 Gbit/s, measured from {} to {} s. Delay is what a packet spends in the queue, its own \
         transmission (66 µs) included; the second number in each is the share of a product of \
         rate and round trip that waits. Buffers are given in such products.",
        from_ns / SECOND,
        to_ns / SECOND
    ));
    let rows = cases.iter().zip(&figures).map(|(case, figures)| row(case, figures));
    let head = ["flows", "round trip", "buffer, queue", "median", "99 %", "used %", "dropped %"];
    section.table(&head, rows.collect());
    section.plot(delay_plot(&cases, &figures));
    courses(&mut section, effort);
    section
}

fn cases(effort: &Effort) -> Vec<Case> {
    let rtts_ms: &[u64] = if effort.is_quick { &[10] } else { &[10, 50, 100] };
    let mut cases = Vec::new();
    for congestion in [Congestion::Bdp, Congestion::Cubic] {
        for count in [1, 4] {
            for rtt_ms in rtts_ms {
                let case = |queue| Case { rtt_ms: *rtt_ms, count, congestion, queue };
                cases.extend(QUEUES.map(case));
            }
        }
    }
    cases
}

fn row(case: &Case, figures: &Figures) -> Vec<String> {
    let Case { rtt_ms, count, congestion, queue: (products, discipline) } = case;
    let delay = |delay_ms: f64| {
        format!("{delay_ms:.1} ms, {} %", (100.0 * delay_ms / *rtt_ms as f64).round())
    };
    vec![
        format!("{congestion}, {count}"),
        format!("{rtt_ms} ms"),
        format!("{products}, {}", discipline_name(*discipline)),
        delay(figures.delay_median_ms),
        delay(figures.delay_p99_ms),
        percent(figures.used()),
        format!("{:.2}", 100.0 * figures.drop_share),
    ]
}

/// Median delay of four flows against the round trip, for one product of buffer.
fn delay_plot(cases: &[Case], figures: &[Figures]) -> Plot {
    let mut series = Vec::new();
    for congestion in [Congestion::Bdp, Congestion::Cubic] {
        for discipline in [Discipline::DropTail, Discipline::CodelMarks, Discipline::Codel] {
            let chosen = cases.iter().zip(figures).filter(|(case, _)| {
                let is_it = case.congestion == congestion && case.count == 4;
                is_it && case.queue == (1.0, discipline)
            });
            let points = chosen.map(|(case, it)| (case.rtt_ms as f64, it.delay_median_ms));
            let label = format!("{congestion}, {}", discipline_name(discipline));
            series.push(Series::dots(label, points.collect()));
        }
    }
    Plot {
        name: "queueing-median".to_owned(),
        title: "Median delay in the queue, four flows, a buffer of one product".to_owned(),
        x: Axis::linear("round trip, ms"),
        y: Axis::linear("ms"),
        series,
    }
}

/// One flow over time, the default control and CUBIC, alone on 100 Mbit/s and 50 ms.
fn courses(section: &mut Section, effort: &Effort) {
    let end_ns = if effort.is_quick { SECOND } else { 12 * SECOND };
    for congestion in [Congestion::Bdp, Congestion::Cubic] {
        let queue = line(GBIT / 10, 50 * MS, 1.0, Discipline::DropTail);
        let consumer = ConsumerConfig::at(50 * MS).with(congestion);
        let mut world = world(queue, 0.0, &[consumer], effort.seed);
        let trace = Trace::record(&mut world, end_ns, 50 * MS);
        let title = format!("{congestion} alone on 100 Mbit/s, 50 ms");
        let name = format!("queueing-{congestion}");
        trace.plots(&name, &title, &[congestion.to_string()]).into_iter().for_each(|plot| {
            section.plot(plot);
        });
    }
}
