//! One connection to the server, driven by whoever asks: there is no thread of its own.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls};

use crate::address::{Address, PATIENCE};
use crate::error::PostgresError;
use crate::schema;
use crate::sql::{self, Statements};

/// A connection.
pub(crate) struct Link {
    runtime: Runtime,
    client: Client,
    statements: Statements,
}

impl Link {
    /// Connects, and makes the tables if they are missing.
    pub(crate) fn connect(address: &Address) -> Result<Self, PostgresError> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let connecting = async {
            let mut client = reach(address).await.map_err(|source| match source.as_db_error() {
                Some(_) => PostgresError::Server(source),
                None => PostgresError::Unreachable { servers: address.servers(), source },
            })?;
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

/// Connects to the first server that can be written to. The connection goes on whenever somebody
/// waits for an answer.
async fn reach(address: &Address) -> Result<Client, tokio_postgres::Error> {
    match &address.tls {
        None => {
            let (client, connection) = address.config.connect(NoTls).await?;
            tokio::spawn(connection);
            Ok(client)
        }
        Some(tls) => {
            let (client, connection) = address.config.connect(tls.clone()).await?;
            tokio::spawn(connection);
            Ok(client)
        }
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
