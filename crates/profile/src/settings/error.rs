//! Mistakes in the configuration, with their place.

use std::fmt;
use std::path::PathBuf;

use rustix::io::Errno;
use thiserror::Error;

use super::{FILE_BYTES_MAX, Kind};

/// A configuration that cannot be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file is longer than a configuration.
    #[error("{} is longer than {FILE_BYTES_MAX} bytes", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// A file is no text.
    #[error("{} is not UTF-8 text", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// A file is no TOML.
    #[error("{}:{line}: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// The message of the parser.
        message: String,
    },
    /// An option stands before the first section.
    #[error("{}:{line}: option {key:?} stands outside a [section]", path.display())]
    OutsideSection {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// The option.
        key: String,
    },
    /// There is no such option.
    #[error("{}:{line}: unknown option {key}", path.display())]
    UnknownOption {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// `section.name`.
        key: String,
    },
    /// A value in a file is of the wrong kind.
    #[error("{}:{line}: {wrong}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// The fault.
        wrong: WrongValue,
    },
    /// A value in the environment is of the wrong kind.
    #[error("environment variable {variable}: {wrong}")]
    Variable {
        /// The variable.
        variable: &'static str,
        /// The fault.
        wrong: WrongValue,
    },
}

impl ConfigError {
    /// The errno for programs that know only numbers.
    pub fn errno(&self) -> i32 {
        match self {
            ConfigError::Unreadable { source, .. } => crate::errno::of_io(source),
            ConfigError::TooLong { .. }
            | ConfigError::NotText { .. }
            | ConfigError::Syntax { .. }
            | ConfigError::OutsideSection { .. }
            | ConfigError::UnknownOption { .. }
            | ConfigError::Value { .. }
            | ConfigError::Variable { .. } => Errno::INVAL.raw_os_error(),
        }
    }
}

/// A value that its option does not take.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{key} wants {wanted}, not {found}")]
pub struct WrongValue {
    /// `section.name`.
    pub key: &'static str,
    /// The kind that the option takes.
    pub wanted: Kind,
    /// The text found.
    pub found: String,
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Kind::Text => "a text",
            Kind::Number => "a whole number",
            Kind::Size => "a size (512, 10K, 1.5G)",
            Kind::Switch => "true or false",
            Kind::List => "a list of texts",
        })
    }
}
