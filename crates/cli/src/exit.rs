//! Failures of commands: one line of cause, one line of advice, and a code scripts can rely on.
//!
//! The codes are part of the interface (docs/cli.md); a new kind of failure takes an existing code
//! unless a script would want to tell it apart.

use std::fmt::Display;

/// Exit codes of every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    Other = 1,
    Usage = 2,
    NotFound = 3,
    NoRoute = 4,
    NotVerified = 5,
    UnknownKey = 6,
    LocalDisk = 7,
    SomeFailed = 8,
    Interrupted = 130,
}

/// A failed command.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// The result of a command.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(code: Code, message: impl Display) -> Self {
        Self { code, message: message.to_string(), hint: None }
    }

    pub(crate) fn usage(message: impl Display) -> Self {
        Self::new(Code::Usage, message)
    }

    pub(crate) fn hint(mut self, hint: impl Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// A local path that could not be read or written.
    pub(crate) fn disk(path: &std::path::Path, error: impl std::error::Error) -> Self {
        Self::new(Code::LocalDisk, format!("{}: {}", path.display(), chain(&error)))
    }
}

/// An error with its causes, in one line, each once.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
