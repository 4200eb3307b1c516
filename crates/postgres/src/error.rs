//! Failures to use a database, and what they say about asking again.

use std::path::PathBuf;
use std::time::Duration;

use byname_catalog::engine::EngineError;
use tokio_postgres::error::SqlState;

/// Failure to use a database.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// The text does not say where a database is.
    #[error(
        "the text does not say where a database is, as host=/run/postgresql dbname=byname does: {}",
        said(source)
    )]
    Malformed {
        /// Why. The text itself may have a password in it.
        source: tokio_postgres::Error,
    },
    /// A mode of TLS in which nobody knows who answers.
    #[error(
        "sslmode={mode} does not say who answers: verify-full does, and disable is for networks \
        that others neither read nor write"
    )]
    TlsMode {
        /// The mode.
        mode: String,
    },
    /// PostgreSQL has no TLS on Unix sockets.
    #[error("of these servers one is a Unix socket, which has no TLS: give all by network or none")]
    SocketWithTls,
    /// Certificates, or a key, cannot be read.
    #[error("{}: {source}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rustls::pki_types::pem::Error,
    },
    /// A certificate without its key, or the other way round.
    #[error("{}: sslcert and sslkey go together", path.display())]
    HalfAnIdentity {
        /// The one that is there.
        path: PathBuf,
    },
    /// A certificate or key is of no use.
    #[error("TLS cannot be used: {source}")]
    Tls {
        /// Why.
        source: rustls::Error,
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
    /// No server takes a connection.
    #[error("no connection to {servers}: {}", said(source))]
    Unreachable {
        /// The database, and where it may be.
        servers: String,
        /// Why not.
        source: tokio_postgres::Error,
    },
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
            Self::Silent(_) | Self::Local(_) | Self::Unreachable { .. } => false,
            // Classes 08, 53, 57 and 58: connection, resources, operator, system.
            Self::Server(error) => error.code().is_some_and(|code| {
                !["08", "53", "57", "58"].iter().any(|class| code.code().starts_with(class))
                    && *code != SqlState::READ_ONLY_SQL_TRANSACTION
            }),
            _ => true,
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
            let mut text = error.to_string();
            let mut source = std::error::Error::source(error);
            while let Some(cause) = source {
                text = format!("{text}: {cause}");
                source = cause.source();
            }
            text
        }
    }
}
