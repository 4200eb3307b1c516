//! One thing a check found: where it is and what to do about it.

use std::fmt;

/// A violation. Ordered by place so that reports are stable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Path below the workspace root, with `/`.
    pub(crate) path: String,
    /// 1-based; 1 where the finding is about the whole file.
    pub(crate) line: usize,
    /// Short name of the rule.
    pub(crate) rule: &'static str,
    /// The fault and its remedy.
    pub(crate) advice: String,
}

impl Finding {
    pub(crate) fn new(
        path: impl Into<String>,
        line: usize,
        rule: &'static str,
        advice: impl Into<String>,
    ) -> Self {
        Self { path: path.into(), line, rule, advice: advice.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {} [{}]", self.path, self.line, self.advice, self.rule)
    }
}
