//! Mistakes in a table, with their line.

use std::path::PathBuf;

use super::pattern::{PATTERN_BYTES_MAX, STARS_MAX};
use super::{MEMBERSHIPS_MAX, ROWS_MAX, TABLE_BYTES_MAX};

/// A mistake in a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct RowError {
    /// The line, from 1.
    pub line: usize,
    /// The mistake.
    pub what: Mistake,
}

/// See [`RowError`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// It is no TOML.
    #[error("{0}")]
    Syntax(String),
    /// Something else than rows.
    #[error("{0:?} is unknown here: a table has rows, each under [[map]]")]
    NoRow(String),
    /// An option that a row has not.
    #[error("a row has no {0:?}: it has method, name, vo, role, group, user, groups and deny")]
    UnknownKey(String),
    /// A row says nothing of how somebody showed who he is.
    #[error("the row has no method: krb5, token, gsi, unix, sss or host")]
    NoMethod,
    /// There is no such method.
    #[error("there is no method {0:?}: krb5, token, gsi, unix, sss or host")]
    BadMethod(String),
    /// A value is of another kind.
    #[error("{key} is no {wanted}")]
    Kind {
        /// Its key.
        key: String,
        /// The kind that is wanted.
        wanted: &'static str,
    },
    /// A pattern is none.
    #[error(
        "{0} is no pattern: it has 1 to {PATTERN_BYTES_MAX} octets and up to {STARS_MAX} stars"
    )]
    BadPattern(String),
    /// A row says neither whom it makes of somebody nor that it denies him, or both.
    #[error("a row has a user, or deny = true, and not both")]
    NoTarget,
    /// Groups of nobody.
    #[error("groups are a user's: the row denies")]
    GroupsOfNobody,
    /// A template has what the name's pattern does not give.
    #[error("{0:?} asks for a star that the row's name has not")]
    BadTemplate(String),
    /// What a row makes is nobody's name, whoever comes.
    #[error("{0:?} can be no user or group")]
    BadLabel(String),
    /// Too many groups.
    #[error("a row has at most {MEMBERSHIPS_MAX} groups")]
    TooManyGroups,
    /// Too many rows.
    #[error("a table has at most {ROWS_MAX} rows")]
    TooManyRows,
}

/// A table that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MappingError {
    /// It cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// It is longer than a table.
    #[error("{}: a table has at most {TABLE_BYTES_MAX} octets", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// It is no text.
    #[error("{}: it is not UTF-8 text", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// There is a mistake in it.
    #[error("{}: {source}", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// The mistake, with its line.
        source: RowError,
    },
}
