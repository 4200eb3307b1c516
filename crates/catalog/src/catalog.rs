//! A head's catalog: takes the lease, executes commands in batches, one transaction a batch.
//!
//! It keeps nothing between two calls but its term, and sums that rows of attempts say as well
//! ([`crate::reserved`]). What a command finds is what the engine has, so a head that lost the
//! lease, or an answer that was lost, cannot leave anything behind here.

mod loss;

pub(crate) use loss::raise_bindings;

use crate::check::count_spaces;
use crate::command::{Answer, Caller, Command, Request, Submission};
use crate::command::{decode_outcome, encode_outcome};
use crate::engine::{Engine, EngineError, Rows, Table, Transaction, Writes};
use crate::execution::{Execution, MISSING_COUNTERS, Terms};
use crate::id::{InodeId, LeaseEpoch, TransactionNumber, epoch_of, following};
use crate::log::LogRecord;
use crate::name::check_label;
use crate::ops::{self, KEPT_NS, SLOT_COUNT};
use crate::quota::{Account, charge, counts_spaces, judge};
use crate::record::{
    Acls, COUNTERS_KEY, Counters, Detail, Door, Inode, Key, KeyHolder, LEASE_KEY, Lease, Policy,
    SITE_KEY, Session, Site, Slot, SpokenFor, Times, Usage, User, Versions, inode_key, session_key,
    slot_key,
};
use crate::refusal::{Failure, Refusal};
use crate::reserved::{Ledger, RESERVED_PERCENT};
use crate::rights::Credentials;
use crate::view::{View, read};

/// Times that a batch is tried when other transactions come between.
const TRIES_MAX: u32 = 16;

/// What a new site begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// Its name, as on the wire.
    pub site: Vec<u8>,
    /// The first operator, who owns the top directory.
    pub operator: String,
    /// His group.
    pub group: String,
    /// His first key: its name and its certificate.
    pub key: Option<(Vec<u8>, Vec<u8>)>,
    /// Where content goes unless a directory says otherwise.
    pub policy: Policy,
}

/// Failure of a whole call; no command of it has been answered.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// Another head took the lease: this one can do nothing any more.
    #[error("another head has taken the lease")]
    LeaseLost,
    /// Another head has the lease.
    #[error("{head} has the lease")]
    LeaseHeld {
        /// The other head.
        head: String,
        /// Its end in nanoseconds of that head's clock.
        until_ns: u64,
    },
    /// There is no site in this engine.
    #[error("the engine has no site yet")]
    NoSite,
    /// There is a site in this engine.
    #[error("the engine has a site already")]
    SiteExists,
    /// A name of the setup is none, or numbers have run out.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The engine failed. Whether the batch took effect is not known; to repeat it is safe.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<Failure> for CatalogError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(refusal) => Self::Refused(refusal),
            Failure::Engine(error) => Self::Engine(error),
        }
    }
}

/// Makes a site in an empty engine.
pub fn initialise(engine: &dyn Engine, setup: &Setup, now_ns: u64) -> Result<(), CatalogError> {
    [&setup.operator, &setup.group, &setup.policy.space]
        .into_iter()
        .try_for_each(|name| check_label(name))?;
    let transaction = engine.begin()?;
    // The rows of a catalog that was moved away are there still.
    let is_used = read::<Counters>(&*transaction, COUNTERS_KEY)?.is_some();
    if is_used || read::<Site>(&*transaction, SITE_KEY)?.is_some() {
        return Err(CatalogError::SiteExists);
    }
    let mut view = View::new(&*transaction);
    view.set(SITE_KEY.to_vec(), &Site { name: setup.site.clone() });
    let counters = Counters { transaction: 0, issued: InodeId::ROOT.0, former: Vec::new() };
    view.set(COUNTERS_KEY.to_vec(), &counters);
    let root = Inode {
        mode: 0o755,
        owner: setup.operator.clone(),
        group: setup.group.clone(),
        link_count: 2,
        times: Times { created_ns: now_ns, modified_ns: now_ns, changed_ns: now_ns },
        binding: TransactionNumber(0),
        tree: InodeId::ROOT,
        policy: setup.policy.clone(),
        detail: Detail::Directory { parent: InodeId::ROOT },
        acls: Acls::default(),
        versions: Versions::default(),
    };
    view.set(inode_key(InodeId::ROOT), &root);
    let used = Usage { inodes: 1, ..Usage::default() };
    charge(&mut view, &Account::of(&root), used)?;
    let groups = vec![setup.group.clone()];
    let user = User { groups, is_operator: true, session_count: 0, attempt_count: 0 };
    view.set(setup.operator.as_bytes().to_vec(), &user);
    if let Some((name, certificate)) = &setup.key {
        let holder = KeyHolder::User(setup.operator.clone());
        view.set(name.clone(), &Key { holder, certificate: certificate.clone(), loan: None });
    }
    let writes = view.into_writes();
    Ok(transaction.commit(&writes)?)
}

/// The catalog as one head sees it during its term.
#[derive(Debug)]
pub struct Catalog<E> {
    engine: E,
    head: String,
    epoch: LeaseEpoch,
    kept_ns: u64,
    reserved_percent: u8,
    ledger: Ledger,
    /// Setbacks of the engine when the term began. With another one it is over.
    setbacks: u64,
}

impl<E: Engine> Catalog<E> {
    /// Takes the lease for a head: it has none, it is this head's, or it is over.
    pub fn lead(engine: E, head: &str, span_ns: (u64, u64)) -> Result<Self, CatalogError> {
        let (now_ns, until_ns) = span_ns;
        let setbacks = engine.setbacks();
        let transaction = engine.begin()?;
        let counters: Option<Counters> = read(&*transaction, COUNTERS_KEY)?;
        counters.ok_or(CatalogError::NoSite)?;
        let old: Option<Lease> = read(&*transaction, LEASE_KEY)?;
        let epoch = match old {
            None => LeaseEpoch(1),
            Some(lease) if lease.head != head && lease.until_ns > now_ns => {
                let Lease { head, until_ns, .. } = lease;
                return Err(CatalogError::LeaseHeld { head, until_ns });
            }
            Some(lease) => LeaseEpoch(following(lease.epoch.0).ok_or(Refusal::CountersExhausted)?),
        };
        take_lease(transaction, Lease { epoch, head: head.to_owned(), until_ns })?;
        Ok(Self::begun(engine, head, (epoch, setbacks)))
    }

    fn begun(engine: E, head: &str, (epoch, setbacks): (LeaseEpoch, u64)) -> Self {
        Self {
            engine,
            head: head.to_owned(),
            epoch,
            kept_ns: KEPT_NS,
            reserved_percent: RESERVED_PERCENT,
            ledger: Ledger::default(),
            setbacks,
        }
    }

    /// Takes the lease from whoever is seen to have it, whatever its end: the caller knows that it
    /// has not been renewed, or that whoever had it is gone. If it is not as it was seen any more,
    /// that is [`CatalogError::LeaseHeld`].
    pub fn take_over(
        engine: E,
        head: &str,
        seen: Option<&Lease>,
        until_ns: u64,
    ) -> Result<Self, CatalogError> {
        let setbacks = engine.setbacks();
        let transaction = engine.begin()?;
        let counters: Option<Counters> = read(&*transaction, COUNTERS_KEY)?;
        counters.ok_or(CatalogError::NoSite)?;
        let old: Option<Lease> = read(&*transaction, LEASE_KEY)?;
        let epoch = match old {
            Some(lease) if seen != Some(&lease) => {
                let Lease { head, until_ns, .. } = lease;
                return Err(CatalogError::LeaseHeld { head, until_ns });
            }
            Some(lease) => LeaseEpoch(following(lease.epoch.0).ok_or(Refusal::CountersExhausted)?),
            None => LeaseEpoch(1),
        };
        take_lease(transaction, Lease { epoch, head: head.to_owned(), until_ns })?;
        Ok(Self::begun(engine, head, (epoch, setbacks)))
    }

    /// Sets how long versions stay for their readers that nothing leads to any more.
    pub fn keep_versions(&mut self, kept_ns: u64) {
        self.kept_ns = kept_ns;
    }

    /// Sets which share of a space's room one user may reserve, in percent; 100 is all of it.
    pub fn bound_reserved(&mut self, percent: u8) {
        self.reserved_percent = percent;
    }

    /// Keeps the lease until a later time.
    pub fn renew(&self, until_ns: u64) -> Result<(), CatalogError> {
        let transaction = self.engine.begin()?;
        self.check_lease(&*transaction)?;
        let mut view = View::new(&*transaction);
        let lease = Lease { epoch: self.epoch, head: self.head.clone(), until_ns };
        view.set(LEASE_KEY.to_vec(), &lease);
        let writes = view.into_writes();
        Ok(transaction.commit(&writes)?)
    }

    /// The head's term, which its orders to disks carry.
    pub fn epoch(&self) -> LeaseEpoch {
        self.epoch
    }

    /// Setbacks of the engine when the term began.
    pub fn setbacks(&self) -> u64 {
        self.setbacks
    }

    /// The engine.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// Executes commands one after the other in one transaction. When this returns, all that is
    /// answered is durable. A command that fails changes nothing, and holds up no other.
    pub fn execute(
        &self,
        now_ns: u64,
        submissions: &[Submission],
    ) -> Result<Vec<Result<Answer, Failure>>, CatalogError> {
        let mut tries = 0;
        loop {
            let transaction = self.engine.begin()?;
            self.check_lease(&*transaction)?;
            let mut batch = View::new(&*transaction);
            let outcomes: Vec<_> = submissions
                .iter()
                .map(|submission| self.execute_one(&mut batch, submission, now_ns))
                .collect();
            tries += 1;
            if outcomes.iter().any(is_conflict) && tries < TRIES_MAX {
                continue;
            }
            let reserved = self.ledger.changes(&batch)?;
            let writes = batch.into_writes();
            // What is refused on the word of rows is refused on that of the last ones: a head that
            // was followed by another, and does not know it yet, would find gaps in sessions.
            let ended = match writes.is_empty() {
                true => transaction.confirm(),
                false => transaction.commit(&writes),
            };
            match ended {
                Ok(()) => {
                    self.ledger.commit(reserved);
                    return Ok(outcomes);
                }
                Err(EngineError::Conflict) if tries < TRIES_MAX => {}
                Err(error) => {
                    self.ledger.forget();
                    return Err(error.into());
                }
            }
        }
    }

    fn check_lease(&self, rows: &dyn Rows) -> Result<(), CatalogError> {
        let lease: Option<Lease> = read(rows, LEASE_KEY)?;
        match lease {
            // Numbers of a lost state may not be given out again.
            _ if self.engine.setbacks() != self.setbacks => Err(CatalogError::LeaseLost),
            Some(lease) if lease.epoch == self.epoch => Ok(()),
            _ => Err(CatalogError::LeaseLost),
        }
    }

    fn execute_one(
        &self,
        batch: &mut View<'_>,
        submission: &Submission,
        now_ns: u64,
    ) -> Result<Answer, Failure> {
        let credentials = match credentials(batch, &submission.caller) {
            Err(Failure::Refused(refusal)) => return Err(unspoken(batch, submission, refusal)),
            credentials => credentials?,
        };
        if let Some(request) = &submission.request
            && let Some(first) = first_answer(batch, &credentials, request)?
        {
            return first.map_err(Failure::Refused);
        }
        let terms = Terms {
            kept_ns: self.kept_ns,
            reserved_percent: self.reserved_percent,
            ledger: &self.ledger,
            batch,
        };
        let mut execution = Execution::new(credentials, now_ns, terms)?;
        let request = submission.request.as_ref();
        execution.session = request.map(|request| request.session);
        let outcome = ops::run(&mut execution, &submission.caller, request, &submission.command);
        let outcome =
            outcome.and_then(|answer| judge(&mut execution.view, now_ns).map(|()| answer));
        let outcome = match outcome {
            Ok(answer) => Ok((answer, self.sealed(execution, &submission.command))),
            Err(Failure::Refused(refusal)) => Err(refusal),
            Err(error) => return Err(error),
        };
        let outcome = outcome.map(|(answer, writes)| {
            batch.absorb(writes);
            answer
        });
        // A session that has ended keeps no answers: whoever asks again is told that it is over.
        let has_ended = outcome.is_ok() && matches!(submission.command, Command::EndSession);
        if let Some(Request { session, slot, sequence, digest }) = submission.request
            && !has_ended
        {
            let answer = encode_outcome(&outcome);
            batch.set(slot_key(session, slot), &Slot { sequence, digest, answer });
        }
        Ok(outcome?)
    }

    /// The writes of a command, with its number and its record in the log.
    fn sealed(&self, execution: Execution<'_>, command: &Command) -> Writes {
        let Execution { mut view, caller, now_ns, number, counters, .. } = execution;
        if !view.writes().iter().any(|(table, _, _)| LogRecord::covers(table)) {
            return view.into_writes();
        }
        let counters = Counters { transaction: number.0, ..counters };
        view.set(COUNTERS_KEY.to_vec(), &counters);
        let record = LogRecord {
            number,
            epoch: self.epoch,
            at_ns: now_ns,
            user: caller.user,
            command: command.name().to_owned(),
            writes: view.writes().clone(),
        };
        view.set(crate::codec::key([number.0]), &record);
        view.into_writes()
    }
}

fn take_lease(transaction: Box<dyn Transaction + '_>, lease: Lease) -> Result<(), CatalogError> {
    let mut view = View::new(&*transaction);
    view.set(LEASE_KEY.to_vec(), &lease);
    if !counts_spaces(&view)? {
        count_spaces(&mut view)?;
    }
    let writes = view.into_writes();
    Ok(transaction.commit(&writes)?)
}

/// True if a command met rows that another transaction has changed since the batch began.
fn is_conflict(outcome: &Result<Answer, Failure>) -> bool {
    matches!(outcome, Err(Failure::Engine(EngineError::Conflict)))
}

/// The names that somebody acts under.
pub(crate) fn credentials(rows: &dyn Rows, caller: &Caller) -> Result<Credentials, Failure> {
    match caller {
        Caller::User(name) => {
            let user: Option<User> = read(rows, name.as_bytes())?;
            let User { groups, is_operator, .. } = user.ok_or(Refusal::UnknownUser)?;
            Ok(Credentials { user: name.clone(), door: None, groups, is_operator })
        }
        Caller::Door(spoken) => spoken_for(rows, spoken),
        Caller::Disk(_) => Ok(Credentials::default()),
        Caller::Head => Ok(Credentials { is_operator: true, ..Credentials::default() }),
    }
}

/// The names of a user for whom a door speaks, if it may.
fn spoken_for(rows: &dyn Rows, spoken: &SpokenFor) -> Result<Credentials, Failure> {
    let door: Option<Door> = read(rows, spoken.door.as_bytes())?;
    let Door { grant } = door.ok_or(Refusal::UnknownDoor)?;
    let user: Option<User> = read(rows, spoken.user.as_bytes())?;
    let user = user.ok_or(Refusal::UnknownUser)?;
    grant.check(spoken, &user)?;
    let groups = if spoken.groups.is_empty() { user.groups } else { spoken.groups.clone() };
    let door = Some(spoken.door.clone());
    Ok(Credentials { user: spoken.user.clone(), door, groups, is_operator: user.is_operator })
}

/// The refusal of what is under no rights. It is the answer to a door's command, so that what the
/// door sends next in the session is no gap.
fn unspoken(batch: &mut View<'_>, submission: &Submission, refusal: Refusal) -> Failure {
    let (Caller::Door(spoken), Some(request)) = (&submission.caller, &submission.request) else {
        return refusal.into();
    };
    let (user, door) = (spoken.user.clone(), Some(spoken.door.clone()));
    let names = Credentials { user, door, ..Credentials::default() };
    if let Ok(None) = first_answer(batch, &names, request) {
        let Request { session, slot, sequence, digest } = *request;
        let answer = encode_outcome(&Err(refusal));
        batch.set(slot_key(session, slot), &Slot { sequence, digest, answer });
    }
    refusal.into()
}

/// The first answer to a command that was executed already; none if it is the next of its slot.
fn first_answer(
    batch: &View<'_>,
    caller: &Credentials,
    request: &Request,
) -> Result<Option<Result<Answer, Refusal>>, Failure> {
    let session: Option<Session> = batch.record(&session_key(request.session))?;
    let session = session.ok_or(Refusal::UnknownSession)?;
    let counters: Counters = batch.record(COUNTERS_KEY)?.ok_or(MISSING_COUNTERS)?;
    // Answers of an epoch that ended by a restored state may be missing: nothing of it is repeated.
    if epoch_of(request.session.0) != epoch_of(counters.issued) {
        return Err(Refusal::UnknownSession.into());
    }
    if session.user != caller.user || session.door != caller.door {
        return Err(Refusal::NotYourSession.into());
    }
    if request.slot >= SLOT_COUNT {
        return Err(Refusal::BadSlot.into());
    }
    let slot: Option<Slot> = batch.record(&slot_key(request.session, request.slot))?;
    let last = slot.as_ref().map_or(0, |slot| slot.sequence);
    match slot {
        Some(slot) if slot.sequence == request.sequence => {
            if slot.digest != request.digest {
                return Err(Refusal::RequestReused.into());
            }
            let corrupt = EngineError::Corrupt { table: Table::Slot, what: "a malformed answer" };
            Ok(Some(decode_outcome(&slot.answer).map_err(|_| corrupt)?))
        }
        _ if request.sequence <= last => Err(Refusal::OldRequest.into()),
        _ if request.sequence - last > 1 => Err(Refusal::SkippedRequest.into()),
        _ => Ok(None),
    }
}
