//! The engine: stands, what is known at them, and what happens when the server does not answer.
//!
//! Threads share it; each that has to ask the server takes a connection of its own, four at most.
//! What is known is behind one lock, which nobody keeps while he waits for the server.

mod pool;
mod presence;
mod rows;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use byname_catalog::engine::{Engine, EngineError, Rows, Transaction};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row as SqlRow};

use crate::address::Address;
use crate::cache::{At, Cache, Stand};
use crate::changes::{self, Change};
use crate::error::PostgresError;
use crate::sql::{CHANGES_KEPT, CHANGES_MAX, Statements};
use pool::{Pool, RETRY_PAUSE};
use presence::{Presence, Use};
use rows::{PostgresRows, PostgresTransaction};

/// Octets of rows that are kept in memory.
const CACHE_BYTES: usize = 256 << 20;
/// Time after which the server is asked what others committed.
const FRESH: Duration = Duration::from_millis(50);
/// Time for which what is known is read while the server does not answer.
const STALE_MAX: Duration = Duration::from_secs(5);
/// Time that a commit waits for one.
const COMMIT_PATIENCE: Duration = Duration::from_secs(10);
/// Pause after a server did not answer in which it is not asked again what others committed.
const AILING_PAUSE: Duration = Duration::from_secs(1);

/// Rows in a PostgreSQL database.
pub struct PostgresEngine {
    links: Pool,
    state: Mutex<State>,
    presence: Mutex<Presence>,
}

struct State {
    cache: Cache,
    /// When the stand was the server's.
    fresh_at: Instant,
    /// When the server is asked again after it did not answer.
    ask_from: Instant,
    /// Times that the server had an earlier state than before, or may have had.
    setbacks: u64,
    /// The server says that its state may be an earlier one.
    is_in_doubt: bool,
}

impl State {
    /// Goes on to what was seen, change by change, or forgets everything where changes are missing.
    fn follow(&mut self, known: Stand, seen: Seen) {
        let Seen { stand, later, is_in_doubt } = seen;
        if self.cache.stand() != known {
            // What others saw meanwhile is later than this.
            return;
        }
        let is_earlier = stand != known && stand.generation <= known.generation;
        if is_earlier || is_in_doubt && !self.is_in_doubt {
            tracing::warn!("the database has an earlier state than before, or may have");
            self.setbacks += 1;
        }
        self.is_in_doubt = is_in_doubt;
        let mut later = later.into_iter();
        let mut is_whole = later.next().is_some_and(|(first, _)| first == known);
        for (next, octets) in later {
            let follows = next.generation == self.cache.stand().generation + 1;
            match changes::decode(&octets).filter(|_| is_whole && follows) {
                Some(changes) => self.cache.apply(next, changes),
                None => is_whole = false,
            }
        }
        if self.cache.stand() != stand {
            self.cache.reset(stand);
        }
    }
}

impl fmt::Debug for PostgresEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresEngine").finish_non_exhaustive()
    }
}

impl PostgresEngine {
    /// Opens the database that a text leads to, `host=/run/postgresql dbname=lab` or a URL, and
    /// makes the tables if they are missing.
    ///
    /// # Errors
    /// [`PostgresError`] if it is no such text, the server cannot be reached, or the tables are
    /// those of a later program.
    pub fn open(text: &str) -> Result<Self, PostgresError> {
        Self::open_with(Address::parse(text)?, CACHE_BYTES)
    }

    /// The same with another bound of what is kept in memory.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub fn open_bounded(text: &str, cache_bytes: usize) -> Result<Self, PostgresError> {
        Self::open_with(Address::parse(text)?, cache_bytes)
    }

    fn open_with(address: Address, cache_bytes: usize) -> Result<Self, PostgresError> {
        let links = Pool::new(address);
        let nowhere = Stand { generation: -1, id: [0; 16] };
        let asked = links.ask(async |client, sql| look(client, sql, nowhere).await)?;
        let now = Instant::now();
        let cache = Cache::new(asked.stand, cache_bytes);
        let is_in_doubt = asked.is_in_doubt;
        let setbacks = u64::from(is_in_doubt);
        let state = State { cache, fresh_at: now, ask_from: now, setbacks, is_in_doubt };
        Ok(Self { links, state: Mutex::new(state), presence: Mutex::default() })
    }

    /// Keeps all others from the database, until this process ends or the connection breaks.
    ///
    /// # Errors
    /// [`PostgresError::InUse`] if another process uses it.
    pub fn use_alone(&self) -> Result<(), PostgresError> {
        self.presence().be_there(&self.links, Use::Alone)
    }

    /// Uses the database beside others who do so. A connection that breaks is made again.
    ///
    /// # Errors
    /// [`PostgresError::InUse`] if another process uses it alone.
    pub fn use_shared(&self) -> Result<(), PostgresError> {
        self.presence().be_there(&self.links, Use::Shared)
    }

    fn presence(&self) -> MutexGuard<'_, Presence> {
        self.presence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stand to read at: the server's of a moment ago, or the last that is known while the
    /// server does not answer.
    fn at(&self) -> Result<At, PostgresError> {
        let now = Instant::now();
        let is_patient = {
            let state = self.state();
            let age = now.saturating_duration_since(state.fresh_at);
            if age < FRESH || now < state.ask_from && age < STALE_MAX {
                return Ok(state.cache.now());
            }
            age >= STALE_MAX
        };
        // Nobody waits for a server while there is something to go on with.
        let looked = self.catch_up_with(is_patient);
        let mut state = self.state();
        match looked {
            Err(error) if error.is_final() || state.fresh_at.elapsed() >= STALE_MAX => Err(error),
            Err(error) => {
                tracing::warn!(%error, "reading what was known a moment ago");
                state.ask_from = Instant::now() + AILING_PAUSE;
                Ok(state.cache.now())
            }
            Ok(()) => Ok(state.cache.now()),
        }
    }

    /// Brings what is known to the server's stand.
    fn catch_up(&self) -> Result<(), PostgresError> {
        self.catch_up_with(true)
    }

    fn catch_up_with(&self, is_patient: bool) -> Result<(), PostgresError> {
        let asked_at = Instant::now();
        let known = self.state().cache.stand();
        let work = async |client: &Client, sql: &Statements| look(client, sql, known).await;
        let seen = if is_patient { self.links.ask(work) } else { self.links.ask_once(&work) }?;
        let mut state = self.state();
        state.fresh_at = state.fresh_at.max(asked_at);
        state.follow(known, seen);
        Ok(())
    }

    /// Commits changes that were made at a stand; false if the stand is not the server's any more.
    /// A commit whose answer was lost is sent again: it names the stand, so it cannot happen twice.
    fn commit(&self, base: Base, changes: Vec<Change>) -> Result<bool, PostgresError> {
        let Base { stand: base, is_in_doubt } = base;
        let next = Stand { generation: base.generation + 1, id: new_id()? };
        let commit = Commit { is_in_doubt, ..Commit::new(base, next, &changes) };
        let deadline = Instant::now() + COMMIT_PATIENCE;
        let mut is_doubtful = false;
        loop {
            let sent = self.links.ask_once(&async |client: &Client, sql: &Statements| {
                commit.send(client, sql).await
            });
            match sent {
                Ok(true) => break,
                Ok(false) if is_doubtful && self.has_happened(base, next)? => break,
                Ok(false) => return Ok(false),
                Err(error) if error.is_conflict() => return Ok(false),
                Err(error) if error.is_final() || Instant::now() >= deadline => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, "a commit is sent again");
                    is_doubtful = true;
                    std::thread::sleep(RETRY_PAUSE);
                }
            }
        }
        let mut state = self.state();
        state.fresh_at = Instant::now();
        state.is_in_doubt = false;
        // Somebody else's look may have brought the changes here already.
        if state.cache.stand() == base {
            state.cache.apply(next, changes);
        }
        Ok(true)
    }

    /// True if a commit whose answer was lost has happened. A server that gave up waiting for its
    /// standby shows a commit that only it has; making a connection waits for that.
    fn has_happened(&self, base: Stand, next: Stand) -> Result<bool, PostgresError> {
        let seen = self.links.ask_anew(async |client, sql| look(client, sql, base).await)?;
        Ok(seen.stand == next || seen.later.iter().any(|(stand, _)| *stand == next))
    }
}

impl Engine for PostgresEngine {
    /// The last state that this process knows of: its own commits, and those of others of 50 ms
    /// ago, or of 5 s ago while the server does not answer.
    fn snapshot(&self) -> Result<Box<dyn Rows + '_>, EngineError> {
        Ok(Box::new(PostgresRows { engine: self, at: self.at()? }))
    }

    fn begin(&self) -> Result<Box<dyn Transaction + '_>, EngineError> {
        self.at()?;
        let (at, base) = {
            let state = self.state();
            let base = Base { stand: state.cache.stand(), is_in_doubt: state.is_in_doubt };
            (state.cache.now(), base)
        };
        let rows = PostgresRows { engine: self, at };
        Ok(Box::new(PostgresTransaction { rows, base }))
    }

    fn claim(&self) -> Result<bool, EngineError> {
        Ok(self.presence().claim(&self.links)?)
    }

    fn end_claim(&self) -> Result<(), EngineError> {
        Ok(self.presence().end_claim(&self.links)?)
    }

    fn release_claim(&self) -> Result<(), EngineError> {
        Ok(self.presence().release_claim(&self.links)?)
    }

    fn setbacks(&self) -> u64 {
        self.state().setbacks
    }
}

/// What a transaction begins from.
#[derive(Debug, Clone, Copy)]
struct Base {
    stand: Stand,
    /// It is known that the stand may be an earlier one.
    is_in_doubt: bool,
}

/// The server's stand, and the transactions that led there from one that is known.
struct Seen {
    stand: Stand,
    later: Vec<(Stand, Vec<u8>)>,
    /// The stand may be an earlier one than was acknowledged.
    is_in_doubt: bool,
}

async fn look(
    client: &Client,
    sql: &Statements,
    known: Stand,
) -> Result<Seen, tokio_postgres::Error> {
    let rows = client.query(&sql.changes, &[&known.generation, &CHANGES_MAX]).await?;
    let mut seen = Seen { stand: known, later: Vec::new(), is_in_doubt: false };
    for row in &rows {
        seen.stand = stand(row, 0)?;
        seen.is_in_doubt = row.try_get(5)?;
        if row.try_get::<_, Option<i64>>(2)?.is_some() {
            seen.later.push((stand(row, 2)?, row.try_get(4)?));
        }
    }
    Ok(seen)
}

/// Reads a stand from two columns.
fn stand(row: &SqlRow, first: usize) -> Result<Stand, tokio_postgres::Error> {
    let id: &[u8] = row.try_get(first + 1)?;
    let id = id.try_into().unwrap_or_default();
    Ok(Stand { generation: row.try_get(first)?, id })
}

/// What a commit sends.
struct Commit<'a> {
    base: Stand,
    next: Stand,
    gone: Vec<&'a [u8]>,
    keys: Vec<&'a [u8]>,
    values: Vec<&'a [u8]>,
    changes: Vec<u8>,
    is_in_doubt: bool,
}

impl<'a> Commit<'a> {
    fn new(base: Stand, next: Stand, changes: &'a [Change]) -> Self {
        let (gone, keys, values) = Default::default();
        let encoded = changes::encode(changes);
        let mut commit =
            Self { base, next, gone, keys, values, changes: encoded, is_in_doubt: false };
        for (key, value) in changes {
            match value {
                Some(value) => {
                    commit.keys.push(key);
                    commit.values.push(value);
                }
                None => commit.gone.push(key),
            }
        }
        commit
    }

    async fn send(&self, client: &Client, sql: &Statements) -> Result<bool, tokio_postgres::Error> {
        let Self { base, next, gone, keys, values, changes, is_in_doubt } = self;
        let (base_id, next_id) = (base.id.as_slice(), next.id.as_slice());
        let values: [&(dyn ToSql + Sync); 9] = [
            &base.generation,
            &base_id,
            &next_id,
            gone,
            keys,
            values,
            changes,
            &CHANGES_KEPT,
            is_in_doubt,
        ];
        let row = client.query_one(&sql.commit, &values).await?;
        Ok(row.try_get::<_, i64>(0)? == 1)
    }
}

/// An id that no other transaction has.
fn new_id() -> Result<[u8; 16], PostgresError> {
    let mut id = [0; 16];
    // So few octets come whole once the kernel's generator is seeded.
    rustix::rand::getrandom(&mut id, rustix::rand::GetRandomFlags::empty())
        .map_err(std::io::Error::from)?;
    Ok(id)
}
