//! The statements, prepared once a connection. Each is a transaction of its own.

use tokio_postgres::{Client, Error, Statement};

/// Transactions whose changes are kept for others.
pub(crate) const CHANGES_KEPT: i64 = 1024;

/// Transactions that one look at the changes brings, at most; who is further behind begins anew.
pub(crate) const CHANGES_MAX: i64 = 256;

/// The stand, and the transactions from the one that is known here on. The last column says that
/// the stand may be an earlier one than was acknowledged: another server took the place of the one
/// that wrote it (its history has another number), and that one waited for no standby.
const CHANGES: &str = "
    SELECT s.generation, s.id, c.generation, c.id, c.changes,
        NOT s.is_synchronous AND s.timeline IS DISTINCT FROM byname_timeline()
    FROM byname_stand s LEFT JOIN byname_change c
        ON c.generation >= $1 AND c.generation <= s.generation
        AND s.generation > $1 AND s.generation - $1 <= $2
    ORDER BY c.generation";

/// A row, and the stand that it is of.
const POINT: &str = "
    SELECT s.generation, s.id, r.value
    FROM byname_stand s LEFT JOIN byname_row r ON r.key = $1";

/// Rows of a span, and the stand that they are of.
const RANGE: &str = "
    SELECT s.generation, s.id, r.key, r.value
    FROM byname_stand s LEFT JOIN (
        SELECT key, value FROM byname_row WHERE key >= $1 AND key < $2 ORDER BY key LIMIT $3
    ) r ON true
    ORDER BY r.key";

/// A whole transaction: nothing of it happens unless the stand is the one that it was read at. The
/// update of the stand waits for others that are at it, and looks again when they are done. Nor
/// does anything happen while the stand may be an earlier one (see [`CHANGES`]) and the caller does
/// not know it ($9).
const COMMIT: &str = "
    WITH moved AS (
        UPDATE byname_stand SET generation = $1 + 1, id = $3, timeline = byname_timeline(),
            is_synchronous = current_setting('synchronous_standby_names') <> ''
        WHERE generation = $1 AND id = $2
            AND (is_synchronous OR timeline IS NOT DISTINCT FROM byname_timeline() OR $9)
        RETURNING generation
    ), gone AS (
        DELETE FROM byname_row WHERE key = ANY($4) AND EXISTS (SELECT FROM moved)
    ), put AS (
        INSERT INTO byname_row (key, value)
        SELECT * FROM unnest($5::bytea[], $6::bytea[]) WHERE EXISTS (SELECT FROM moved)
        ON CONFLICT (key) DO UPDATE SET value = excluded.value
    ), told AS (
        INSERT INTO byname_change (generation, id, changes)
        SELECT generation, $3, $7 FROM moved
        ON CONFLICT (generation) DO UPDATE SET id = excluded.id, changes = excluded.changes
    ), forgotten AS (
        DELETE FROM byname_change WHERE generation <= $1 - $8 AND EXISTS (SELECT FROM moved)
    )
    SELECT count(*) FROM moved";

/// An acknowledged transaction is on stable storage, and where there is a synchronous standby, on
/// its too, whatever the database's default is. A server that waits for a lock notices a client
/// that went away.
const SESSION: &str = "
    SELECT set_config('synchronous_commit', 'on', false)
        WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write');
    SET client_connection_check_interval = '1s';
    SET default_transaction_isolation = 'read committed';
    SET application_name = 'byname catalog'";

/// The statements of one connection.
pub(crate) struct Statements {
    pub(crate) changes: Statement,
    pub(crate) point: Statement,
    pub(crate) range: Statement,
    pub(crate) commit: Statement,
}

impl Statements {
    pub(crate) async fn prepare(client: &Client) -> Result<Self, Error> {
        Ok(Self {
            changes: client.prepare(CHANGES).await?,
            point: client.prepare(POINT).await?,
            range: client.prepare(RANGE).await?,
            commit: client.prepare(COMMIT).await?,
        })
    }
}

/// Makes a new connection what the engine relies on.
pub(crate) async fn begin_session(client: &Client) -> Result<(), Error> {
    client.batch_execute(SESSION).await
}
