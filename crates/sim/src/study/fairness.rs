//! Who gets how much of one line: flows of equal and unequal distance, the default control among
//! itself and beside CUBIC, on queues that drop, mark, or do as CoDel says.

use byname_transfer::congestion::Congestion;

use super::path::{GBIT, discipline_name, line, measure, percent, world};
use super::{Effort, Section, on_all_processors};
use crate::bottleneck::ConsumerConfig;
use crate::plot::{Axis, Plot, Series};
use crate::queue::Discipline;
use crate::trace::Trace;
use crate::world::{MS, SECOND};

/// For the list of studies.
pub const QUESTION: &str = "How do 2 to 10 flows of equal and unequal distance share a line?";

/// One comes after the other at this distance, the nearest first.
const STEP_NS: u64 = 300 * MS;
const BITS_PER_S: u64 = GBIT;

/// Round trips in milliseconds, and controls.
type Flows = Vec<(u64, Congestion)>;

#[derive(Clone, Debug)]
struct Case {
    title: String,
    flows: Flows,
    /// The buffer holds one product of the rate and this.
    buffer_rtt_ms: u64,
    discipline: Discipline,
}

impl Case {
    fn consumers(&self) -> Vec<ConsumerConfig> {
        let consumer = |(place, (rtt_ms, congestion)): (usize, &(u64, Congestion))| {
            let config = ConsumerConfig::at(rtt_ms * MS).with(*congestion);
            ConsumerConfig { start_ns: place as u64 * STEP_NS, ..config }
        };
        self.flows.iter().enumerate().map(consumer).collect()
    }

    fn world(&self, seed: u64) -> crate::bottleneck::Bottleneck {
        let queue = line(BITS_PER_S, self.buffer_rtt_ms * MS, 1.0, self.discipline);
        world(queue, 0.0, &self.consumers(), seed)
    }
}

/// Answers the question.
pub fn run(effort: &Effort) -> Section {
    let (from_ns, to_ns) =
        if effort.is_quick { (2 * SECOND, 4 * SECOND) } else { (15 * SECOND, 35 * SECOND) };
    let cases = cases(effort);
    let figures =
        on_all_processors(&cases, |case| measure(&mut case.world(effort.seed), from_ns, to_ns));
    let mut section = Section::new("Fairness");
    section.paragraph(format!(
        "Flows on 1 Gbit/s, each {} ms after the one before, measured from {} to {} s. The buffer \
         holds one product of the rate and of the round trip of equal flows, 50 ms where they \
         differ. Jain's index is 1 where all get the same and 1/n where one gets everything. \
         *marks* and *CoDel drops* follow CoDel's law (5 ms, 100 ms).",
        STEP_NS / MS,
        from_ns / SECOND,
        to_ns / SECOND
    ));
    let rows = cases.iter().zip(&figures).map(|(case, figures)| {
        let shares: Vec<String> = figures.shares.iter().map(|share| percent(*share)).collect();
        vec![
            case.title.clone(),
            discipline_name(case.discipline).to_owned(),
            format!("{:.3}", figures.jain()),
            percent(figures.used()),
            format!("{:.1}", figures.delay_median_ms),
            format!("{:.2}", 100.0 * figures.drop_share),
            shares.join(" "),
        ]
    });
    let head = ["flows", "queue", "Jain", "used %", "queue ms", "dropped %", "each gets %"];
    section.table(&head, rows.collect());
    section.plot(jain_plot(&cases, &figures));
    courses(&mut section, effort);
    section
}

fn cases(effort: &Effort) -> Vec<Case> {
    let (own, cubic) = (Congestion::Bdp, Congestion::Cubic);
    let mut flows: Vec<(String, u64, Flows)> = Vec::new();
    for count in [2, 5, 10] {
        flows.push((format!("{count} bdp, 50 ms"), 50, vec![(50, own); count]));
    }
    flows.push(("5 cubic, 50 ms".to_owned(), 50, vec![(50, cubic); 5]));
    let far = |congestion| [10, 30, 100].map(|rtt_ms| (rtt_ms, congestion)).to_vec();
    flows.push(("bdp, 10, 30, 100 ms".to_owned(), 50, far(own)));
    flows.push(("cubic, 10, 30, 100 ms".to_owned(), 50, far(cubic)));
    flows.push(("bdp, 3 of 10 ms, 3 of 100 ms".to_owned(), 50, {
        [vec![(10, own); 3], vec![(100, own); 3]].concat()
    }));
    for rtt_ms in [5, 20, 100] {
        let beside = vec![(rtt_ms, own), (rtt_ms, cubic)];
        flows.push((format!("bdp beside cubic, {rtt_ms} ms"), rtt_ms, beside));
    }
    if effort.is_quick {
        flows.retain(|(_, buffer_rtt_ms, flows)| *buffer_rtt_ms < 100 && flows.len() < 4);
    }
    let disciplines = [Discipline::DropTail, Discipline::CodelMarks, Discipline::Codel];
    let case = |(title, buffer_rtt_ms, flows): (String, u64, Flows)| {
        disciplines.map(|discipline| Case {
            title: title.clone(),
            flows: flows.clone(),
            buffer_rtt_ms,
            discipline,
        })
    };
    flows.into_iter().flat_map(case).collect()
}

/// Jain's index against the number of equal flows.
fn jain_plot(cases: &[Case], figures: &[super::path::Figures]) -> Plot {
    let disciplines = [Discipline::DropTail, Discipline::CodelMarks, Discipline::Codel];
    let series = disciplines.map(|discipline| {
        let equal = cases.iter().zip(figures).filter(|(case, _)| {
            let is_equal = case.flows.iter().all(|flow| *flow == (50, Congestion::Bdp));
            is_equal && case.discipline == discipline
        });
        let points = equal.map(|(case, figures)| (case.flows.len() as f64, figures.jain()));
        Series::dots(discipline_name(discipline), points.collect())
    });
    Plot {
        name: "fairness-jain".to_owned(),
        title: "Flows of 50 ms with the default control".to_owned(),
        x: Axis::linear("flows"),
        y: Axis::linear("Jain's index"),
        series: series.to_vec(),
    }
}

/// Plots the goodput of each flow over time.
fn courses(section: &mut Section, effort: &Effort) {
    let (own, cubic) = (Congestion::Bdp, Congestion::Cubic);
    let three = vec![(10, own), (30, own), (100, own)];
    let beside = vec![(20, own), (20, cubic)];
    let all = [
        ("fairness-far-drop-tail", "10, 30 and 100 ms, drop-tail", &three, Discipline::DropTail),
        ("fairness-far-marks", "10, 30 and 100 ms, marks", &three, Discipline::CodelMarks),
        ("fairness-cubic", "bdp beside CUBIC, 20 ms, drop-tail", &beside, Discipline::DropTail),
    ];
    let end_ns = if effort.is_quick { 3 * SECOND } else { 30 * SECOND };
    for (name, title, flows, discipline) in all {
        let buffer_rtt_ms = if flows.len() == 3 { 50 } else { 20 };
        let (title, flows) = (title.to_owned(), flows.clone());
        let case = Case { title, flows, buffer_rtt_ms, discipline };
        let trace = Trace::record(&mut case.world(effort.seed), end_ns, 200 * MS);
        let labels: Vec<String> =
            case.flows.iter().map(|(rtt_ms, which)| format!("{which}, {rtt_ms} ms")).collect();
        let plots = trace.plots(name, &case.title, &labels);
        plots.into_iter().filter(|plot| plot.name.ends_with("-goodput")).for_each(|plot| {
            section.plot(plot);
        });
    }
}
