//! What others know of this process while it is connected: that it uses the database, alone or
//! beside others, and that it leads.
//!
//! These are locks of a connection of its own. The server lets them go when the connection ends, as
//! it does at once for a process that was killed; one that was stopped keeps them.

use super::pool::Pool;
use crate::error::PostgresError;
use crate::link::Link;

/// How a database is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// By one process.
    Alone,
    /// By heads, of which one leads.
    Shared,
}

/// Locks that this process has.
#[derive(Default)]
pub(super) struct Presence {
    link: Option<Link>,
    how: Option<Use>,
    is_leading: bool,
}

/// Numbers of the two locks; each schema of a database has its own.
const LOCKS: &str = "SELECT hashtextextended('byname-catalog ' || current_schema(), 0),
    hashtextextended('byname-head ' || current_schema(), 0)";
/// Ends the connections of those who lead.
const END_CLAIM: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_locks
    WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND pid <> pg_backend_pid()
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (classid::bigint << 32 | objid::bigint) = $1";

impl Presence {
    /// Connects, and has the database in this way.
    pub(super) fn be_there(&mut self, links: &Pool, how: Use) -> Result<(), PostgresError> {
        self.how = Some(how);
        if self.is_there() {
            return Ok(());
        }
        (self.link, self.is_leading) = (None, false);
        let mut link = links.connect()?;
        let (of_use, _) = locks(&mut link)?;
        let statement = match how {
            Use::Alone => "SELECT pg_try_advisory_lock($1)",
            Use::Shared => "SELECT pg_try_advisory_lock_shared($1)",
        };
        if !is_locked(&mut link, statement, of_use)? {
            return Err(PostgresError::InUse);
        }
        self.link = Some(link);
        Ok(())
    }

    /// True if nobody else leads who is connected.
    pub(super) fn claim(&mut self, links: &Pool) -> Result<bool, PostgresError> {
        self.be_there(links, self.how.unwrap_or(Use::Shared))?;
        if !self.is_leading
            && let Some(link) = &mut self.link
        {
            let (_, of_head) = locks(link)?;
            self.is_leading = is_locked(link, "SELECT pg_try_advisory_lock($1)", of_head)?;
        }
        Ok(self.is_leading)
    }

    /// Ends the connection by which this process leads, if it does.
    pub(super) fn release_claim(&mut self, links: &Pool) -> Result<(), PostgresError> {
        if !self.is_leading {
            return Ok(());
        }
        (self.link, self.is_leading) = (None, false);
        self.be_there(links, self.how.unwrap_or(Use::Shared))
    }

    /// Ends the connection by which somebody else leads.
    pub(super) fn end_claim(&mut self, links: &Pool) -> Result<(), PostgresError> {
        self.be_there(links, self.how.unwrap_or(Use::Shared))?;
        let Some(link) = &mut self.link else { return Ok(()) };
        let (_, of_head) = locks(link)?;
        link.call(async |client, _| client.query(END_CLAIM, &[&of_head]).await).map(drop)
    }

    /// True if the connection is still there.
    fn is_there(&mut self) -> bool {
        let Some(link) = &mut self.link else { return false };
        link.call(async |client, _| client.batch_execute("").await).is_ok()
    }
}

fn locks(link: &mut Link) -> Result<(i64, i64), PostgresError> {
    let row = link.call(async |client, _| client.query_one(LOCKS, &[]).await)?;
    Ok((row.try_get(0)?, row.try_get(1)?))
}

fn is_locked(link: &mut Link, statement: &str, lock: i64) -> Result<bool, PostgresError> {
    let row = link.call(async |client, _| client.query_one(statement, &[&lock]).await)?;
    Ok(row.try_get(0)?)
}
