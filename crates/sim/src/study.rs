//! Studies: questions that the simulator answers with tables and plots.
//!
//! A study is a function from an [`Effort`] to a [`Section`]; what it finds follows from its seed
//! alone. [`report`](crate::report) makes a page of them. Grids of independent runs use all
//! processors ([`on_all_processors`]); the order of results is that of the questions.

pub mod apart;
pub mod cluster;
pub mod fairness;
pub mod flash;
pub mod goodput;
pub mod kinds;
pub mod mirrors;
mod path;
pub mod queueing;
pub mod replicas;
pub mod reroute;
pub mod scale;
pub mod zipf;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::plot::Plot;

/// How much may be spent on an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// A few cells instead of all: seconds, in a build without optimisation.
    pub is_quick: bool,
    /// What everything random is made from.
    pub seed: u64,
}

impl Effort {
    /// A few cells.
    pub const QUICK: Effort = Effort { is_quick: true, seed: 1 };
    /// All of it.
    pub const FULL: Effort = Effort { is_quick: false, seed: 1 };
}

/// A question and how it is answered.
#[derive(Clone, Copy, Debug)]
pub struct Study {
    /// One word, for the command line.
    pub name: &'static str,
    /// One sentence.
    pub question: &'static str,
    /// Answers it.
    pub run: fn(&Effort) -> Section,
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Its heading.
    pub title: String,
    /// In this order.
    pub text: Vec<Block>,
}

/// A part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Prose, Markdown allowed.
    Paragraph(String),
    /// A table; every row is as long as the head.
    Table {
        /// One word or two for each column.
        head: Vec<String>,
        /// The rows.
        rows: Vec<Vec<String>>,
    },
    /// A plot.
    Plot(Plot),
}

impl Section {
    /// A heading with nothing below it yet.
    pub fn new(title: impl Into<String>) -> Self {
        Section { title: title.into(), text: Vec::new() }
    }

    /// Adds prose.
    pub fn paragraph(&mut self, text: impl Into<String>) {
        self.text.push(Block::Paragraph(text.into()));
    }

    /// Adds a table.
    pub fn table(&mut self, head: &[&str], rows: Vec<Vec<String>>) {
        let head = head.iter().map(|word| (*word).to_owned()).collect();
        self.text.push(Block::Table { head, rows });
    }

    /// Adds a plot.
    pub fn plot(&mut self, plot: Plot) {
        self.text.push(Block::Plot(plot));
    }
}

/// All studies, in the order of the report.
pub fn studies() -> Vec<Study> {
    vec![
        Study { name: "goodput", question: goodput::QUESTION, run: goodput::run },
        Study { name: "fairness", question: fairness::QUESTION, run: fairness::run },
        Study { name: "queueing", question: queueing::QUESTION, run: queueing::run },
        Study { name: "zipf", question: zipf::QUESTION, run: zipf::run },
        Study { name: "replicas", question: replicas::QUESTION, run: replicas::run },
        Study { name: "flash", question: flash::QUESTION, run: flash::run },
        Study { name: "mirrors", question: mirrors::QUESTION, run: mirrors::run },
        Study { name: "kinds", question: kinds::QUESTION, run: kinds::run },
        Study { name: "reroute", question: reroute::QUESTION, run: reroute::run },
        Study { name: "scale", question: scale::QUESTION, run: scale::run },
        Study { name: "cluster", question: cluster::QUESTION, run: cluster::run },
    ]
}

/// Applies `answer` to all questions, on as many threads as there are processors.
pub fn on_all_processors<Q: Sync, A: Send>(
    questions: &[Q],
    answer: impl Fn(&Q) -> A + Sync,
) -> Vec<A> {
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
    let next = AtomicUsize::new(0);
    let answers: Mutex<Vec<(usize, A)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.min(questions.len()) {
            scope.spawn(|| {
                while let Some(place) = Some(next.fetch_add(1, Ordering::Relaxed))
                    && let Some(question) = questions.get(place)
                {
                    let found = answer(question);
                    answers.lock().expect("no answer panics with the lock").push((place, found));
                }
            });
        }
    });
    let mut answers = answers.into_inner().expect("no answer panics with the lock");
    answers.sort_by_key(|(place, _)| *place);
    answers.into_iter().map(|(_, found)| found).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_the_order_of_the_questions() {
        let questions: Vec<u64> = (0..100).collect();
        let answers = on_all_processors(&questions, |question| question * 2);
        assert_eq!(answers, (0..100).map(|it| it * 2).collect::<Vec<_>>());
        assert!(on_all_processors(&[0u8; 0], |it| *it).is_empty());
    }

    #[test]
    fn no_two_studies_have_one_name() {
        let mut names: Vec<_> = studies().iter().map(|study| study.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
