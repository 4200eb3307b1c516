//! Batches of commands at work: verified, executed in one transaction, answered.
//!
//! No I/O but the engine's. The head's thread calls this with what [`crate::Commands`] gives out;
//! the simulator may do the same in virtual time.

mod answering;
mod unidentified;
mod verifying;

use answering::Executed;
use unidentified::Remembered;

use std::sync::Arc;

use byname_catalog::engine::Engine;
use byname_catalog::id::LeaseEpoch;
use byname_catalog::{
    Answer, Caller, Catalog, CatalogError, Command, Failure, Reader, Refusal, Submission, TrashWalk,
};
use byname_packet::DecodeError;
use byname_site::{HeadFailure, SeedSource, SessionKeys, SiteName, library_seeds};
use byname_transfer::server::SharedSigner;

use crate::audit::{Audit, AuditFiles};
use crate::commands::{CommandAnswer, Waiting};
use crate::counters::HeadCounters;
use crate::keys::{KnownKeys, NotAuthentic, Sender};
use crate::observations::Observations;
use crate::sessions::SessionTable;
use crate::traffic::Rates;

const SECOND_NS: u64 = 1_000_000_000;
const MS_NS: u64 = 1_000_000;
/// Difference between the clocks of a signer and of the head, at most, for commands that have no
/// request id to tell a repetition by.
const CLOCK_MS_MAX: u64 = 120_000;
/// Rows that one look at what is due takes at a time.
const EXPIRE_ROWS: usize = 256;
/// Entries of directories in the trash that one look measures.
const MEASURE_ENTRIES: usize = 1024;

/// Executes commands during a head's term.
pub struct Executor {
    catalog: Catalog<Arc<dyn Engine>>,
    site: SiteName,
    signer: SharedSigner,
    /// Commands without request id.
    remembered: Remembered,
    /// What disks said last.
    observations: Observations,
    /// Keys of sessions, and what they are made from.
    sessions: SessionTable,
    seeds: SeedSource,
    known: KnownKeys,
    /// Who asked for what since it was last taken; nobody takes it where that is not written.
    audit: Option<Audit>,
    /// Commands and questions that may be sent a second.
    rates: Rates,
    /// A directory in the trash that is being measured.
    walk: Option<TrashWalk>,
    /// Another head has taken the lease.
    is_over: bool,
}

/// A command of a batch, verified.
struct Verified {
    submission: Submission,
    /// The sender, and his key, which a ticket is made out to.
    sender: Sender,
    /// When it was signed, if it has no request id.
    unidentified_ms: Option<u64>,
    /// The keys that it came under, and its answer leaves under.
    sealed: Option<Arc<SessionKeys>>,
}

/// A command on its way to an answer.
enum Step {
    /// It waits for the transaction; this is its place in it.
    Execute(Box<Verified>),
    /// It has its answer.
    Answered(CommandAnswer),
}

/// What a command's Interest is refused for before anything is executed.
#[derive(Clone)]
struct Refused(HeadFailure, String);

impl From<DecodeError> for Refused {
    fn from(error: DecodeError) -> Self {
        Self(HeadFailure::Malformed, error.to_string())
    }
}

impl From<NotAuthentic> for Refused {
    fn from(error: NotAuthentic) -> Self {
        match error {
            NotAuthentic::Catalog(failure) => Self(HeadFailure::Engine, failure.to_string()),
            other => Self(HeadFailure::NotAuthentic, other.to_string()),
        }
    }
}

impl Executor {
    /// Executes commands of a site in its catalog; answers are signed by the site's key.
    pub fn new(catalog: Catalog<Arc<dyn Engine>>, site: SiteName, signer: SharedSigner) -> Self {
        let (remembered, observations, sessions, known) = Default::default();
        let seeds = library_seeds();
        let (audit, rates, walk, is_over) = (None, Rates::default(), None, false);
        Self {
            catalog,
            site,
            signer,
            remembered,
            observations,
            sessions,
            seeds,
            known,
            audit,
            rates,
            walk,
            is_over,
        }
    }

    /// Notes who asks for what, for these files: whoever executes has to write what is noted.
    pub(crate) fn audit_in(&mut self, files: Arc<AuditFiles>) {
        self.audit = Some(Audit::default());
        self.observations.audit = Some(files);
    }

    /// Lets others see what is counted during this term.
    pub(crate) fn report_in(&mut self, counters: &HeadCounters) {
        self.observations.queue = counters.queue();
        counters.set_term(Some(self.observations.clone()));
    }

    /// What was noted since.
    pub(crate) fn take_audit(&mut self) -> Vec<serde_json::Value> {
        self.audit.as_mut().map(Audit::take).unwrap_or_default()
    }

    /// Lets no user and no door send more commands and questions a second.
    pub fn limit_rates(&mut self, rates: Rates) {
        self.rates = rates;
    }

    /// What was executed since the last call took so long, for whom it may concern.
    pub fn end_batch(&self, took_ns: u64) {
        self.observations.traffic.end_batch(took_ns);
    }

    /// Draws private numbers of sessions from somewhere else.
    pub fn draw_seeds_from(&mut self, seeds: SeedSource) {
        self.seeds = seeds;
    }

    /// Where it is noted what disks say.
    pub(crate) fn observations(&self) -> Observations {
        self.observations.clone()
    }

    /// Answers a batch, in its order. When this returns, what is answered is durable.
    pub fn execute(&mut self, batch: &[Waiting], unix_ns: u64) -> Vec<CommandAnswer> {
        self.remembered.forget_before(horizon_ms(unix_ns));
        let engine = Arc::clone(self.catalog.engine());
        let steps: Vec<Step> = match Reader::new(&*engine, &Caller::Head) {
            Ok(reader) => {
                let at = (&reader, unix_ns);
                batch.iter().map(|waiting| self.verify(&waiting.wire, at)).collect()
            }
            Err(failure) => self.none_verified(batch, &unreadable(failure)),
        };
        let submissions: Vec<Submission> = steps.iter().filter_map(submission).cloned().collect();
        let outcomes = match submissions.is_empty() {
            true => Ok(Vec::new()),
            false => self.catalog.execute(unix_ns, &submissions),
        };
        let mut outcomes = match outcomes {
            Ok(outcomes) => outcomes.into_iter().map(Ok).collect::<Vec<_>>(),
            Err(error) => {
                if self.ends_term(&error) {
                    // Forwarders ask the next head.
                    return batch.iter().map(|_| CommandAnswer::Nack).collect();
                }
                let reason = failed(&error);
                submissions.iter().map(|_| Err(reason.clone())).collect()
            }
        }
        .into_iter();
        let reader = Reader::new(&*engine, &Caller::Head).map_err(unreadable);
        let mut answers = Vec::with_capacity(steps.len());
        for (waiting, step) in batch.iter().zip(steps) {
            answers.push(match step {
                Step::Answered(answer) => answer,
                Step::Execute(verified) => match outcomes.next() {
                    Some(outcome) => {
                        self.note(&verified.submission, &outcome, unix_ns);
                        let at = (reader.as_ref(), unix_ns);
                        self.answer(&waiting.wire, (&verified, outcome), at)
                    }
                    None => CommandAnswer::Nack,
                },
            });
        }
        answers
    }

    fn note(&mut self, submission: &Submission, outcome: &Executed, at_ns: u64) {
        let epoch = self.catalog.epoch();
        let has_failed = !matches!(outcome, Ok(Ok(_)));
        let Submission { caller, command, .. } = submission;
        self.observations.traffic.note(caller, command.name(), has_failed);
        if let (Command::ReplaceDisk { disk, .. }, false) = (command, has_failed) {
            self.observations.count(*disk, |tally| tally.errors.replaced += 1);
        }
        if let Some(audit) = &mut self.audit {
            let outcome = outcome.as_ref().map_err(|Refused(_, reason)| reason.as_str());
            audit.executed((&self.site, epoch, at_ns), submission, outcome);
        }
    }

    /// Ends what is due and collects what was removed; true if there is more.
    ///
    /// # Errors
    /// [`CatalogError`]; nothing ended then, or nothing was collected.
    pub fn expire(&mut self, unix_ns: u64) -> Result<bool, CatalogError> {
        let limit = EXPIRE_ROWS;
        let duties =
            [Command::Expire { limit }, Command::ExpireTrash { limit }, Command::Collect { limit }];
        let submissions =
            duties.map(|command| Submission { caller: Caller::Head, request: None, command });
        let mut is_more = false;
        let outcomes = self.catalog.execute(unix_ns, &submissions);
        let mut counts = [0; 3];
        for (outcome, ended) in self.noticed(outcomes)?.into_iter().zip(&mut counts) {
            match outcome {
                Ok(Answer::Count(count)) => {
                    is_more |= count >= EXPIRE_ROWS;
                    *ended = count as u64;
                }
                Err(Failure::Engine(error)) => return Err(error.into()),
                _ => {}
            }
        }
        is_more |= self.measure_trash(unix_ns)?;
        self.observations.count_duties(|duties| {
            duties.expired += counts[0];
            duties.purged += counts[1];
            duties.collected += counts[2];
            duties.is_behind = is_more;
        });
        Ok(is_more)
    }

    /// Measures what is in the trash, so many entries at a time; true if there is more.
    fn measure_trash(&mut self, unix_ns: u64) -> Result<bool, CatalogError> {
        let reader = Reader::new(self.catalog.engine(), &Caller::Head)?;
        let walk = match self.walk.take() {
            Some(walk) => Some(walk),
            None => reader.unmeasured()?,
        };
        let Some(mut walk) = walk else { return Ok(false) };
        let Some(measured) = walk.step(&reader, MEASURE_ENTRIES)? else {
            self.walk = Some(walk);
            return Ok(true);
        };
        drop(reader);
        self.carry_out(vec![Command::MeasuredTrash(measured)], unix_ns)?;
        Ok(true)
    }

    /// Executes commands of the head's own.
    pub fn carry_out(&mut self, commands: Vec<Command>, unix_ns: u64) -> Result<(), CatalogError> {
        let submissions: Vec<Submission> = commands
            .into_iter()
            .map(|command| Submission { caller: Caller::Head, request: None, command })
            .collect();
        let outcomes = self.catalog.execute(unix_ns, &submissions);
        for outcome in self.noticed(outcomes)? {
            if let Err(failure) = outcome {
                tracing::warn!(%failure, "a command of the head's own was refused");
            }
        }
        Ok(())
    }

    /// Keeps the lease until a later time.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub fn renew(&mut self, until_ns: u64) -> Result<(), CatalogError> {
        let renewed = self.catalog.renew(until_ns);
        self.noticed(renewed)
    }

    /// True once it was seen that another head has taken the lease.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    fn noticed<T>(&mut self, result: Result<T, CatalogError>) -> Result<T, CatalogError> {
        if let Err(error) = &result {
            self.ends_term(error);
        }
        result
    }

    fn ends_term(&mut self, error: &CatalogError) -> bool {
        let is_lost = matches!(error, CatalogError::LeaseLost);
        self.is_over |= is_lost;
        is_lost
    }

    /// The head's term.
    pub fn epoch(&self) -> LeaseEpoch {
        self.catalog.epoch()
    }
}

fn submission(step: &Step) -> Option<&Submission> {
    match step {
        Step::Execute(verified) => Some(&verified.submission),
        Step::Answered(_) => None,
    }
}

/// What was signed before this is refused for its time.
fn horizon_ms(unix_ns: u64) -> u64 {
    (unix_ns / MS_NS).saturating_sub(CLOCK_MS_MAX)
}

fn unreadable(failure: Failure) -> Refused {
    match failure {
        Failure::Refused(refusal) => refused(refusal),
        Failure::Engine(error) => Refused(HeadFailure::Engine, error.to_string()),
    }
}

fn refused(refusal: Refusal) -> Refused {
    Refused(HeadFailure::NotAuthentic, refusal.to_string())
}

fn failed(error: &CatalogError) -> Refused {
    tracing::warn!(%error, "a batch of commands failed");
    let failure = match error {
        CatalogError::LeaseLost | CatalogError::LeaseHeld { .. } => HeadFailure::NotLeading,
        _ => HeadFailure::Engine,
    };
    Refused(failure, error.to_string())
}
