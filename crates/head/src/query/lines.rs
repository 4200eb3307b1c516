//! Answers to queries as lines of JSON, and numbers in questions.

use byname_catalog::{Failure, Refusal};
use serde_json::{Value, json};

/// Octets of an answer's content, at most: a packet has room for more.
const CONTENT_BYTES_MAX: usize = 6144;
/// Rows read for one answer, at most.
pub(super) const ROWS_MAX: usize = 256;

/// Lines of an answer, as many as there is room for.
#[derive(Default)]
pub(super) struct Lines(pub(super) Vec<u8>);

impl Lines {
    /// Adds a line; false if there is no room for it.
    pub(super) fn push(&mut self, line: &Value) -> bool {
        let text = line.to_string();
        if !self.0.is_empty() && self.0.len() + text.len() + 1 > CONTENT_BYTES_MAX {
            return false;
        }
        self.0.extend_from_slice(text.as_bytes());
        self.0.push(b'\n');
        true
    }

    /// Adds the last line: there are rows behind this one.
    pub(super) fn push_more(&mut self, last: &str) {
        let more = json!({ "more": last });
        self.0.extend_from_slice(more.to_string().as_bytes());
        self.0.push(b'\n');
    }

    /// Rows with the keys that come after them.
    pub(super) fn of(rows: impl Iterator<Item = (String, Value)>) -> Vec<u8> {
        let (mut lines, mut last) = (Self::default(), String::new());
        for (count, (key, row)) in rows.enumerate() {
            if count + 1 >= ROWS_MAX || !lines.push(&row) {
                lines.push_more(&last);
                return lines.0;
            }
            last = key;
        }
        lines.0
    }
}

/// A number out of a question.
pub(super) fn number(text: &str) -> Result<u64, Failure> {
    Ok(text.parse().map_err(|_| Refusal::BadName)?)
}
