//! Connections that are kept for the next who asks.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio_postgres::{Client, Error};

use crate::address::Address;
use crate::error::PostgresError;
use crate::link::Link;
use crate::sql::Statements;

/// Time that a read waits for a server that is started again.
const READ_PATIENCE: Duration = Duration::from_secs(3);
/// Pause between two tries.
pub(super) const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// Connections that are open at a time.
const LINKS_MAX: usize = 4;

#[derive(Default)]
struct Links {
    idle: Vec<Link>,
    taken: usize,
}

/// A few connections.
pub(super) struct Pool {
    address: Address,
    links: Mutex<Links>,
    returned: Condvar,
}

impl Pool {
    pub(super) fn new(address: Address) -> Self {
        Self { address, links: Mutex::default(), returned: Condvar::new() }
    }

    /// A connection of its own.
    pub(super) fn connect(&self) -> Result<Link, PostgresError> {
        Link::connect(&self.address)
    }

    /// Asks once over a connection that is kept, and again over new ones while the server does not
    /// answer but may soon: it is being started, or another takes its place.
    pub(super) fn ask<T>(
        &self,
        work: impl AsyncFn(&Client, &Statements) -> Result<T, Error>,
    ) -> Result<T, PostgresError> {
        patiently(|| self.ask_once(&work))
    }

    /// Asks over a connection that is made for it.
    pub(super) fn ask_anew<T>(
        &self,
        work: impl AsyncFn(&Client, &Statements) -> Result<T, Error>,
    ) -> Result<T, PostgresError> {
        patiently(|| self.connect()?.call(&work))
    }

    /// Asks once: an answer that is lost is not asked for again.
    pub(super) fn ask_once<T>(
        &self,
        work: &impl AsyncFn(&Client, &Statements) -> Result<T, Error>,
    ) -> Result<T, PostgresError> {
        let idle = {
            let mut links = self.lock();
            while links.taken >= LINKS_MAX {
                links = self.returned.wait(links).unwrap_or_else(PoisonError::into_inner);
            }
            links.taken += 1;
            links.idle.pop()
        };
        let link = idle.map_or_else(|| self.connect(), Ok);
        let result = link.and_then(|mut link| {
            let result = link.call(work);
            // What went wrong half-way may leave an answer behind for the next.
            let is_usable = result.as_ref().err().is_none_or(PostgresError::is_final);
            Ok((result?, is_usable.then_some(link)))
        });
        let mut links = self.lock();
        links.taken -= 1;
        self.returned.notify_one();
        if result.as_ref().is_err_and(|error| !error.is_final()) {
            // What ended this one has ended the others: found out one by one they would keep a
            // server that has started again from being heard, for longer than a lease lasts.
            links.idle.clear();
        }
        let (value, link) = result?;
        links.idle.extend(link.filter(Link::is_open));
        Ok(value)
    }

    fn lock(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tries again while the server does not answer but may soon.
fn patiently<T>(mut ask: impl FnMut() -> Result<T, PostgresError>) -> Result<T, PostgresError> {
    let deadline = Instant::now() + READ_PATIENCE;
    loop {
        match ask() {
            Err(error) if !error.is_final() && Instant::now() < deadline => {
                std::thread::sleep(RETRY_PAUSE);
            }
            result => return result,
        }
    }
}
