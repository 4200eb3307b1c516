//! Questions and answers of studies.

use crate::plot::Plot;

/// Effort for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// A few cells instead of all: seconds, in a build without optimisation.
    pub is_quick: bool,
    /// Seed of everything random.
    pub seed: u64,
}

impl Effort {
    /// A few cells.
    pub const QUICK: Effort = Effort { is_quick: true, seed: 1 };
    /// All of it.
    pub const FULL: Effort = Effort { is_quick: false, seed: 1 };
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
