//! One connection to the server, driven by whoever asks: there is no thread of its own.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::{Client, Config, NoTls};

use crate::error::PostgresError;
use crate::schema;
use crate::sql::{self, Statements};

/// Time that a server has to take a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(2);
/// Time that a statement has.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reads where a database is. Of several servers the one that can be written to is taken.
pub(crate) fn config(text: &str) -> Result<Config, PostgresError> {
    let malformed = |source| PostgresError::Malformed { text: text.to_owned(), source };
    let mut config: Config = text.parse().map_err(malformed)?;
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_PATIENCE);
    }
    config.keepalives_idle(Duration::from_secs(5));
    config.tcp_user_timeout(PATIENCE);
    Ok(config)
}

/// A connection.
pub(crate) struct Link {
    runtime: Runtime,
    client: Client,
    statements: Statements,
}

impl Link {
    /// Connects, and makes the tables if they are missing.
    pub(crate) fn connect(config: &Config) -> Result<Self, PostgresError> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let connecting = async {
            let (mut client, connection) = config.connect(NoTls).await?;
            // It goes on whenever somebody waits for an answer.
            tokio::spawn(connection);
            sql::begin_session(&client).await?;
            schema::prepare(&mut client).await?;
            let statements = Statements::prepare(&client).await?;
            Ok::<_, PostgresError>((client, statements))
        };
        let (client, statements) = within(&runtime, 2 * PATIENCE, connecting)?;
        Ok(Self { runtime, client, statements })
    }

    /// Waits for what the work asks the server.
    pub(crate) fn call<T>(
        &mut self,
        work: impl AsyncFnOnce(&Client, &Statements) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, PostgresError> {
        let asking = async { Ok(work(&self.client, &self.statements).await?) };
        within(&self.runtime, PATIENCE, asking)
    }

    /// False once the connection is known to be gone.
    pub(crate) fn is_open(&self) -> bool {
        !self.client.is_closed()
    }
}

fn within<T>(
    runtime: &Runtime,
    patience: Duration,
    work: impl Future<Output = Result<T, PostgresError>>,
) -> Result<T, PostgresError> {
    let waited = runtime.block_on(async { tokio::time::timeout(patience, work).await });
    waited.unwrap_or(Err(PostgresError::Silent(patience)))
}
