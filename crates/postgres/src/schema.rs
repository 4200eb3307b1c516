//! The tables, by versions: each is made of the one before by one migration, in one transaction.
//!
//! A database of a later version than this program knows is refused. Tables are those of the
//! connection's schema (`search_path`), so that several sites can have one database.

use tokio_postgres::Client;

use crate::error::PostgresError;

/// Migrations in their order; the version of the tables is how many have been made.
const MIGRATIONS: [&str; 2] = [
    // Rows; the stand; the changes of late transactions, which nobody misses after a crash.
    "CREATE TABLE byname_row (
        key bytea PRIMARY KEY,
        value bytea NOT NULL
    ) WITH (fillfactor = 90);
    CREATE TABLE byname_stand (
        is_stand boolean PRIMARY KEY DEFAULT true CHECK (is_stand),
        generation bigint NOT NULL,
        id bytea NOT NULL
    ) WITH (fillfactor = 50);
    INSERT INTO byname_stand (generation, id)
        VALUES (0, uuid_send(gen_random_uuid()));
    CREATE UNLOGGED TABLE byname_change (
        generation bigint PRIMARY KEY,
        id bytea NOT NULL,
        changes bytea NOT NULL
    );",
    // Which server's history a stand is of, and whether its commit waited for a standby. A server
    // that is promoted begins a history of a higher number.
    "CREATE FUNCTION byname_timeline() RETURNS text LANGUAGE sql VOLATILE AS
        'SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)';
    ALTER TABLE byname_stand
        ADD COLUMN timeline text,
        ADD COLUMN is_synchronous boolean NOT NULL DEFAULT false;
    UPDATE byname_stand SET timeline = byname_timeline();",
];

/// Makes the tables what this program knows.
pub(crate) async fn prepare(client: &mut Client) -> Result<(), PostgresError> {
    let known = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
    let transaction = client.transaction().await?;
    // One at a time, also where the table is not there yet.
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended('byname-schema', 0))";
    transaction.batch_execute(lock).await?;
    let is_there = "SELECT to_regclass('byname_schema') IS NOT NULL";
    if !transaction.query_one(is_there, &[]).await?.get::<_, bool>(0) {
        let make = "CREATE TABLE byname_schema (version integer NOT NULL);
            INSERT INTO byname_schema VALUES (0)";
        transaction.batch_execute(make).await?;
    }
    let found: i32 = transaction.query_one("SELECT version FROM byname_schema", &[]).await?.get(0);
    if found > known {
        return Err(PostgresError::LaterSchema { found, known });
    }
    let done = usize::try_from(found).unwrap_or(0);
    for migration in &MIGRATIONS[done.min(MIGRATIONS.len())..] {
        transaction.batch_execute(migration).await?;
    }
    // Also where nothing has changed: what this connection sees is on stable storage then, and on
    // the standby, even what another one committed that broke before it could say so.
    transaction.execute("UPDATE byname_schema SET version = $1", &[&known]).await?;
    Ok(transaction.commit().await?)
}
