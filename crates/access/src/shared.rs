//! A user at a site, for many threads at once.
//!
//! Each call takes a connection of its own while it runs; those that are idle wait for the next
//! call. There are few: who comes when all are busy waits for one.

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use byname_catalog::id::ContentId;
use byname_catalog::{Command, Create, PolicyChanges, Publish, Refusal};
use byname_client::Stop;
use byname_packet::Name;
use byname_site::Ticket;
use byname_writer::{Source, Writer};

use crate::account::Account;
use crate::edges::Edges;
use crate::error::AccessError;
use crate::place::place;
use crate::tree::Tree;

/// Connections for commands and queries.
const TREES_MAX: usize = 8;
/// Connections over which files are written.
const WRITERS_MAX: usize = 8;
/// Time after which a writer is asked whether it is still connected, before it is used.
const WRITER_IDLE: Duration = Duration::from_secs(1);
/// Age at which a writer is left for another, well before the head ends its session.
const WRITER_AGE: Duration = Duration::from_secs(240);
/// Pause before what could not be reached is tried again.
const PAUSE: Duration = Duration::from_millis(200);
/// How often who waits looks whether it shall stop.
const STOP_CHECK: Duration = Duration::from_millis(200);

/// How a file is written.
#[derive(Debug, Clone, Default)]
pub struct PutOptions {
    /// Permission bits of a new file.
    pub mode: u16,
    /// Fail if there is something of this name.
    pub is_exclusive: bool,
    /// How its policy differs from the one it would have.
    pub policy: PolicyChanges,
    /// The version that it takes the place of: whatever else is there by now stays.
    pub base: Option<u64>,
    /// Since this local file was put the last time, octets were only added at its end: only those
    /// are read.
    pub is_grown: bool,
}

/// A user at a site. See the module.
pub struct SharedSite {
    account: Account,
    stop: Stop,
    trees: Pool<Tree>,
    writers: Pool<Connected>,
    edges: Edges,
}

/// A writer, and when it was connected and used last.
struct Connected {
    writer: Writer,
    since: Instant,
    used: Instant,
}

impl SharedSite {
    /// Nothing is connected yet. Whoever makes this has reached a forwarder: one that is away is
    /// waited for from the first call on. What runs gives up when `stop` says so.
    pub fn new(account: Account, stop: Stop) -> Self {
        let (trees, writers) = (Pool::new(TREES_MAX), Pool::new(WRITERS_MAX));
        Self { account, stop, trees, writers, edges: Edges::default() }
    }

    /// Who acts.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Does something with files and directories.
    ///
    /// # Errors
    /// What `act` says, and [`AccessError::NoForwarder`].
    pub fn with<T>(
        &self,
        act: impl FnOnce(&mut Tree) -> Result<T, AccessError>,
    ) -> Result<T, AccessError> {
        let mut taken = self.trees.take(&self.stop)?;
        let mut tree = match taken.take() {
            Some(tree) => tree,
            None => self.reach(|| Tree::open(self.account.clone()))?.stopped_by(&self.stop),
        };
        let outcome = act(&mut tree);
        // A connection that failed is of no further use, and neither is a session whose command has
        // no outcome.
        if outcome.as_ref().err().is_none_or(|error| error.refusal().is_some()) {
            taken.put_back(tree);
        }
        outcome
    }

    /// Writes a local file, whose octets are those that it has now. It is there whole, on as many
    /// disks as the site asks for, or not at all. Returns its version.
    ///
    /// # Errors
    /// [`AccessError`]; `BaseChanged` if the version is not there that it shall take the place of.
    pub fn put(&self, name: &Name, file: File, options: &PutOptions) -> Result<u64, AccessError> {
        let is_stopped = || self.stop.is_requested();
        let place = place(&self.account.site, name.view())?;
        let path = Path::new("the local file");
        let source = match options.is_grown {
            true => self.edges.grown(path, file, &is_stopped),
            false => self.edges.whole(path, file, &is_stopped),
        };
        let source = source.map_err(|source| AccessError::write(name, source))?;
        let source = Arc::new(source.made_now(options.mode));
        let create = Create {
            place,
            mode: options.mode,
            size_max: source.size(),
            publish: Publish::AtCommit,
            exclusive: options.is_exclusive,
            policy: options.policy.clone(),
        };
        let mut failed_at: Option<Instant> = None;
        loop {
            let ticket = self.with(|tree| match options.base {
                None => tree.begin(name, create.clone()),
                Some(base) => tree.begin_after(name, create.clone(), base),
            })?;
            let content = ticket.terms().content;
            let Err(error) = self.put_under(name, ticket, Arc::clone(&source)) else {
                return Ok(content.version.0);
            };
            let outage = failed_at.get_or_insert_with(Instant::now).elapsed();
            if !error.is_outage() || outage >= self.account.patience {
                return Err(error);
            }
            match self.settled(name, content)? {
                Some(true) => return Ok(content.version.0),
                // It came through and was replaced, or it was given up: only the writer knows.
                None if !error.was_given_up() => return Err(error),
                Some(false) | None => {}
            }
        }
    }

    /// Writes the content of an attempt.
    fn put_under(
        &self,
        name: &Name,
        ticket: Ticket,
        source: Arc<Source>,
    ) -> Result<(), AccessError> {
        let is_stopped = || self.stop.is_requested();
        let mut taken = self.writers.take(&self.stop)?;
        let mut connected = self.connected(taken.take(), name)?;
        let outcome = connected.writer.put_into(ticket, source, &is_stopped);
        connected.used = Instant::now();
        if outcome.as_ref().err().is_none_or(|error| !error.ends_all()) {
            taken.put_back(connected);
        }
        outcome.map(drop).map_err(|source| AccessError::write(name, source))
    }

    /// Gives up an attempt whose outcome was not seen. True if its commit came through and is the
    /// file's version now; none if it has ended and is not.
    fn settled(&self, name: &Name, content: ContentId) -> Result<Option<bool>, AccessError> {
        let aborted = self.with(|tree| tree.abort(name, content));
        match aborted.as_ref().map_err(AccessError::refusal) {
            Ok(()) => return Ok(Some(false)),
            Err(Some(Refusal::AttemptEnded)) => {}
            Err(_) => return aborted.map(|()| None),
        }
        match self.with(|tree| tree.describe(name)) {
            Ok(there) => {
                let is_it = (there.inode, there.version()) == (content.inode.0, content.version.0);
                Ok(is_it.then_some(true))
            }
            Err(error) if error.refusal() == Some(Refusal::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Connects. Who does not listen is waited for, as for an answer.
    fn reach<T>(&self, connect: impl Fn() -> Result<T, AccessError>) -> Result<T, AccessError> {
        let began = Instant::now();
        loop {
            match connect() {
                Ok(connected) => return Ok(connected),
                Err(error) => {
                    let is_over = began.elapsed() >= self.account.patience;
                    if is_over || !error.is_outage() {
                        return Err(error);
                    }
                }
            }
            if self.stop.is_requested() {
                return Err(AccessError::Stopped);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// A writer that is connected: the idle one, if it still is.
    fn connected(&self, idle: Option<Connected>, name: &Name) -> Result<Connected, AccessError> {
        let is_stopped = || self.stop.is_requested();
        if let Some(mut connected) = idle.filter(|idle| idle.since.elapsed() < WRITER_AGE) {
            let is_fresh = connected.used.elapsed() < WRITER_IDLE;
            let mut answers =
                || connected.writer.execute(Command::RenewSession, &is_stopped).is_ok();
            if is_fresh || answers() {
                return Ok(connected);
            }
        }
        let writer = self.reach(|| self.account.writer(name, &is_stopped))?;
        Ok(Connected { writer, since: Instant::now(), used: Instant::now() })
    }
}

/// Connections that are not in use, and how many there are.
struct Pool<T> {
    max: usize,
    state: Mutex<PoolState<T>>,
    is_free: Condvar,
}

struct PoolState<T> {
    idle: Vec<T>,
    in_use: usize,
}

/// A place in a pool, and what was idle there.
struct Taken<'a, T> {
    pool: &'a Pool<T>,
    idle: Option<T>,
}

impl<T> Pool<T> {
    fn new(max: usize) -> Self {
        let state = Mutex::new(PoolState { idle: Vec::new(), in_use: 0 });
        Self { max, state, is_free: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, PoolState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, stop: &Stop) -> Result<Taken<'_, T>, AccessError> {
        let mut state = self.state();
        while state.in_use >= self.max {
            if stop.is_requested() {
                return Err(AccessError::Stopped);
            }
            let waited = self.is_free.wait_timeout(state, STOP_CHECK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.in_use += 1;
        let idle = state.idle.pop();
        Ok(Taken { pool: self, idle })
    }
}

impl<T> Taken<'_, T> {
    fn take(&mut self) -> Option<T> {
        self.idle.take()
    }

    fn put_back(mut self, used: T) {
        self.idle = Some(used);
    }
}

impl<T> Drop for Taken<'_, T> {
    fn drop(&mut self) {
        let mut state = self.pool.state();
        state.in_use -= 1;
        state.idle.extend(self.idle.take());
        drop(state);
        self.pool.is_free.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_lends_what_is_idle_and_makes_others_wait() {
        let (pool, stop) = (Pool::<u8>::new(1), Stop::default());
        let mut first = pool.take(&stop).unwrap();
        assert_eq!(first.take(), None);
        first.put_back(7);
        let mut again = pool.take(&stop).unwrap();
        assert_eq!(again.take(), Some(7));
        stop.request();
        assert!(matches!(pool.take(&stop), Err(AccessError::Stopped)));
        drop(again);
        assert_eq!(pool.take(&stop).unwrap().take(), None, "what failed does not come back");
    }
}
