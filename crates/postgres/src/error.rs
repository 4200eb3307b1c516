//! Failures to use a database, and what they say about asking again.

use std::time::Duration;

use byname_catalog::engine::EngineError;
use tokio_postgres::error::SqlState;

/// Failure to use a database.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// The text does not say where a database is.
    #[error("{text:?} does not say where a database is: host=/run/postgresql dbname=byname")]
    Malformed {
        /// The text.
        text: String,
        /// Why.
        source: tokio_postgres::Error,
    },
    /// The tables are those of a later program.
    #[error("the tables are of version {found}, this program knows {known}: use a later one")]
    LaterSchema {
        /// Version of the tables.
        found: i32,
        /// The latest that is known.
        known: i32,
    },
    /// Another process has the catalog.
    #[error("another process has this catalog open")]
    InUse,
    /// The server did not answer in time.
    #[error("the database did not answer within {} s", .0.as_secs())]
    Silent(Duration),
    /// The server refused, or the connection broke.
    #[error("{}", said(.0))]
    Server(#[from] tokio_postgres::Error),
    /// There can be no connection from here.
    #[error("no connection can be made: {0}")]
    Local(#[from] std::io::Error),
}

impl PostgresError {
    /// True if the server has answered, and asking again would be answered so again.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Malformed { .. } | Self::LaterSchema { .. } | Self::InUse => true,
            Self::Silent(_) | Self::Local(_) => false,
            // Classes 08, 53, 57 and 58: connection, resources, operator, system.
            Self::Server(error) => error.code().is_some_and(|code| {
                !["08", "53", "57", "58"].iter().any(|class| code.code().starts_with(class))
                    && *code != SqlState::READ_ONLY_SQL_TRANSACTION
            }),
        }
    }

    /// True if another transaction came between.
    pub(crate) fn is_conflict(&self) -> bool {
        let Self::Server(error) = self else { return false };
        let conflicts = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
        error.code().is_some_and(|code| conflicts.contains(code))
    }
}

impl From<PostgresError> for EngineError {
    fn from(error: PostgresError) -> Self {
        Self::Failed(Box::new(error))
    }
}

/// The server's own words, which the library leaves to the source.
fn said(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("the database says: {}", said.message()),
        None => {
            let mut text = format!("the database cannot be used: {error}");
            let mut source = std::error::Error::source(error);
            while let Some(cause) = source {
                text = format!("{text}: {cause}");
                source = cause.source();
            }
            text
        }
    }
}
