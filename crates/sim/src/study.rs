//! Studies: questions that the simulator answers with tables and plots.
//!
//! A study is a function from an [`Effort`] to a [`Section`]; what it finds follows from its seed
//! alone. [`report`](crate::report) makes a page of them. Grids of independent runs use all
//! processors ([`on_all_processors`]); the order of results is that of the questions.

mod answer;
mod apart;
pub mod cell;
pub mod cluster;
pub mod fairness;
pub mod flash;
pub mod goodput;
pub mod kinds;
pub mod mirrors;
mod parallel;
mod path;
pub mod queueing;
pub mod replicas;
pub mod reroute;
pub mod scale;
pub mod zipf;

pub use answer::{Block, Effort, Section};
pub use parallel::on_all_processors;

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
