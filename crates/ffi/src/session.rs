//! Sessions behind the handles: options, names of paths, calls that run, closing.
//!
//! Invariant: every call holds an [`ActiveCall`], and closing waits until there is none. So nothing
//! of a session runs, and no buffer of a caller is touched, once it is closed.

use std::ffi::CStr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use byname_access::{AccessError, Loan};
use byname_client::{CALLS_MAX, ReadCounters, SessionOptions as Memory, Stop};
use byname_io::Endpoint;
use byname_packet::Name;
use byname_profile::{Environment, Link, OpenOptions, Paths, Profile};
use byname_security::trust::UnknownKeys;
use byname_transfer::freshness::Freshness;

use crate::abi;
use crate::dispatcher::Dispatcher;
use crate::fault::Fault;
use crate::handles::{Kind, Table};

/// The sessions of this process.
pub(crate) static SESSIONS: Table<SessionState> =
    Table::new(Kind::Session, abi::BYNAME_SESSIONS_MAX as usize);

/// Wishes for a session, checked.
#[derive(Debug, Default)]
pub(crate) struct Wishes<'a> {
    pub(crate) link: Option<&'a str>,
    pub(crate) config_file: Option<&'a Path>,
    pub(crate) home: Option<&'a Path>,
    pub(crate) connect: Option<&'a str>,
    pub(crate) unknown_keys: UnknownKeys,
    pub(crate) freshness: Freshness,
    pub(crate) retries: Option<u32>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) memory: Memory,
    pub(crate) is_bulk: bool,
    /// The key that signs, in place of those that are here.
    pub(crate) loan: Option<Loan>,
}

#[derive(Default)]
struct Activity {
    calls: u64,
    is_closing: bool,
}

/// Totals over all files of a session.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) files_opened: AtomicU64,
    pub(crate) files_open: AtomicU64,
    /// Octets of open listings.
    pub(crate) listing_bytes: AtomicU64,
    pub(crate) listings: AtomicU64,
    /// Calls that were started and have not ended.
    pub(crate) started_calls: AtomicU64,
    /// Of files that were closed.
    closed: Mutex<ReadCounters>,
}

/// A session.
pub(crate) struct SessionState {
    pub(crate) session: byname_profile::Session,
    pub(crate) totals: Totals,
    pub(crate) dispatcher: Dispatcher,
    /// What it was opened with, for sites.
    pub(crate) profile: Profile,
    pub(crate) link: Link,
    pub(crate) connect: Option<Endpoint>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) stop: Stop,
    pub(crate) loan: Option<Loan>,
    activity: Mutex<Activity>,
    is_idle: Condvar,
}

/// A call that runs. The session is not closed before it ends.
pub(crate) struct ActiveCall {
    session: Arc<SessionState>,
}

impl std::ops::Deref for ActiveCall {
    type Target = Arc<SessionState>;

    fn deref(&self) -> &Self::Target {
        &self.session
    }
}

impl Drop for ActiveCall {
    fn drop(&mut self) {
        let mut activity = self.session.activity();
        activity.calls -= 1;
        if activity.calls == 0 {
            self.session.is_idle.notify_all();
        }
    }
}

impl SessionState {
    /// Opens a session.
    pub(crate) fn open(wishes: Wishes<'_>) -> Result<Self, Fault> {
        let profile = profile(&wishes)?;
        let mut link = match wishes.link {
            Some(link) => profile.link(link)?,
            None => Link::of_name(Name::new()),
        };
        if let Some(loan) = &wishes.loan {
            check_loan(loan, &link.name)?;
            link.key = link.key.or(Some(loan.site_key));
        }
        let stop = Stop::default();
        let connect = wishes.connect.map(str::parse).transpose().map_err(endpoint)?;
        let options = OpenOptions {
            connect: connect.clone(),
            unknown_keys: wishes.unknown_keys,
            freshness: wishes.freshness,
            timeout: wishes.timeout,
            retries: wishes.retries,
            is_bulk: wishes.is_bulk,
            stop: stop.clone(),
            ..OpenOptions::default()
        };
        let session = profile.open_with(&link, &options, wishes.memory)?;
        Ok(SessionState {
            session,
            totals: Totals::default(),
            dispatcher: Dispatcher::default(),
            profile,
            link,
            connect,
            timeout: wishes.timeout,
            stop,
            loan: wishes.loan,
            activity: Mutex::default(),
            is_idle: Condvar::new(),
        })
    }

    fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a call.
    pub(crate) fn begin(self: &Arc<Self>) -> Result<ActiveCall, Fault> {
        let mut activity = self.activity();
        if activity.is_closing {
            return Err(Fault::Closed { wanted: Kind::Session.noun() });
        }
        activity.calls += 1;
        Ok(ActiveCall { session: Arc::clone(self) })
    }

    /// The name that a path stands for.
    pub(crate) fn name(&self, path: &CStr) -> Result<Name, Fault> {
        let (bytes, max) = (path.count_bytes(), abi::BYNAME_PATH_BYTES_MAX as usize);
        if bytes > max {
            return Err(Fault::TooLong { what: "the path", bytes, max });
        }
        let mut name = self.link.name.clone();
        for part in path.to_bytes().split(|octet| *octet == b'/').filter(|part| !part.is_empty()) {
            if matches!(part, b"." | b"..") {
                let given = String::from_utf8_lossy(part).into_owned();
                return Err(Fault::Dots { given });
            }
            name.push_generic(part);
        }
        Ok(name)
    }

    /// The calls that run.
    pub(crate) fn calls(&self) -> u64 {
        self.activity().calls
    }

    /// Ends all calls and waits for that. The caller holds no call of this session.
    pub(crate) fn close(&self) {
        let mut activity = self.activity();
        activity.is_closing = true;
        // With so many calls there may be no place for one more, and they are what must end.
        let has_room = activity.calls < CALLS_MAX as u64;
        drop(activity);
        if has_room {
            // While the session still answers; there is nobody to tell if the disk refuses.
            let _ = self.session.keep_versions();
        }
        self.stop.request();
        let mut activity = self.activity();
        while activity.calls > 0 {
            activity = self.is_idle.wait(activity).unwrap_or_else(PoisonError::into_inner);
        }
        drop(activity);
        self.dispatcher.end();
    }

    /// A file of this session was closed, which had read so much.
    pub(crate) fn note_closed(&self, counters: ReadCounters) {
        self.totals.files_open.fetch_sub(1, Ordering::Relaxed);
        let mut closed = self.totals.closed.lock().unwrap_or_else(PoisonError::into_inner);
        add(&mut closed, counters);
    }

    /// Counts of the files that were closed.
    pub(crate) fn closed_counters(&self) -> ReadCounters {
        *self.totals.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds the counts of one file to those of others.
pub(crate) fn add(total: &mut ReadCounters, more: ReadCounters) {
    total.asked_bytes += more.asked_bytes;
    total.received_bytes += more.received_bytes;
    total.requests += more.requests;
    total.cached_bytes += more.cached_bytes;
    total.prefetched_bytes += more.prefetched_bytes;
    total.prefetch_useful_bytes += more.prefetch_useful_bytes;
    total.prefetch_wasted_bytes += more.prefetch_wasted_bytes;
}

/// Whether a lent key counts for what a link leads to.
fn check_loan(loan: &Loan, name: &Name) -> Result<(), AccessError> {
    loan.check_time()?;
    match loan.site.view().is_prefix_of(name.view()) {
        true => Ok(()),
        false => Err(AccessError::NotInSite { name: name.clone(), site: loan.site.clone() }),
    }
}

fn endpoint(error: byname_io::EndpointError) -> Fault {
    Fault::Profile(error.into())
}

fn profile(wishes: &Wishes<'_>) -> Result<Profile, Fault> {
    let environment = match wishes.home {
        Some(_) => Environment::default(),
        None => Environment::of_process(),
    };
    let profile = match (wishes.config_file, wishes.home) {
        (None, None) => Profile::load(),
        (None, Some(home)) => Profile::below(home),
        (Some(file), None) => Profile::with_file(Paths::new(&environment), environment, file),
        (Some(file), Some(home)) => Profile::with_file(Paths::below(home), environment, file),
    };
    Ok(profile?)
}
