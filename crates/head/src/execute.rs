//! Batches of commands at work: verified, executed in one transaction, answered.
//!
//! No I/O but the engine's. The head's thread calls this with what [`crate::Commands`] gives out;
//! the simulator may do the same in virtual time.

use std::collections::BTreeMap;
use std::sync::Arc;

use byname_catalog::engine::{Engine, EngineError};
use byname_catalog::id::{ContentId, LeaseEpoch};
use byname_catalog::{
    Answer, Caller, Catalog, CatalogError, Command, Failure, Reader, Refusal, Submission, Target,
};
use byname_packet::{DecodeError, Interest};
use byname_security::key::PublicKey;
use byname_site::{
    CommandPacket, DiskName, HeadFailure, Origin, Outcome, Reply, SiteAnswer, SiteName, Terms,
    TermsDisk, Ticket,
};
use byname_transfer::server::SharedSigner;

use crate::commands::{CommandAnswer, Waiting};
use crate::keys::{Keys, NotAuthentic, Sender};
use crate::observations::Observations;
use crate::query;

const SECOND_NS: u64 = 1_000_000_000;
const MS_NS: u64 = 1_000_000;
/// Difference between the clocks of a signer and of the head, at most, for commands that have no
/// request id to tell a repetition by.
const CLOCK_MS_MAX: u64 = 120_000;
/// Such commands that are remembered, at most.
const REMEMBERED_MAX: usize = 4096;
/// Rows that one look at what is due takes at a time.
const EXPIRE_ROWS: usize = 256;

/// Executes commands during a head's term.
pub struct Executor {
    catalog: Catalog<Arc<dyn Engine>>,
    site: SiteName,
    signer: SharedSigner,
    /// Commands without request id, by when they were signed and by name: a captured one must not
    /// open session after session.
    remembered: BTreeMap<(u64, Vec<u8>), Remembered>,
    /// What disks said last.
    observations: Observations,
}

/// A command without request id.
struct Remembered {
    caller: Caller,
    answer: CommandAnswer,
}

/// A command of a batch, verified.
struct Verified {
    submission: Submission,
    /// The sender's key, which a ticket is made out to.
    key: PublicKey,
    /// When it was signed, if it has no request id.
    unidentified_ms: Option<u64>,
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
        let (remembered, observations) = Default::default();
        Self { catalog, site, signer, remembered, observations }
    }

    /// Where it is noted what disks say.
    pub(crate) fn observations(&self) -> Observations {
        self.observations.clone()
    }

    /// Answers a batch, in its order. When this returns, what is answered is durable.
    pub fn execute(&mut self, batch: &[Waiting], unix_ns: u64) -> Vec<CommandAnswer> {
        self.remembered = self.remembered.split_off(&(horizon_ms(unix_ns), Vec::new()));
        let steps: Vec<Step> =
            batch.iter().map(|waiting| self.verify(&waiting.wire, unix_ns)).collect();
        let submissions: Vec<Submission> = steps.iter().filter_map(submission).cloned().collect();
        let outcomes = match submissions.is_empty() {
            true => Ok(Vec::new()),
            false => self.catalog.execute(unix_ns, &submissions),
        };
        let mut outcomes = match outcomes {
            Ok(outcomes) => outcomes.into_iter().map(Ok).collect::<Vec<_>>(),
            Err(error) => {
                let reason = failed(&error);
                submissions.iter().map(|_| Err(reason.clone())).collect()
            }
        }
        .into_iter();
        let mut answers = Vec::with_capacity(steps.len());
        for (waiting, step) in batch.iter().zip(steps) {
            answers.push(match step {
                Step::Answered(answer) => answer,
                Step::Execute(verified) => match outcomes.next() {
                    Some(outcome) => self.answer(&waiting.wire, &verified, outcome, unix_ns),
                    None => CommandAnswer::Nack,
                },
            });
        }
        answers
    }

    /// Ends what is due; true if more is.
    ///
    /// # Errors
    /// [`CatalogError`]; nothing ended then.
    pub fn expire(&mut self, unix_ns: u64) -> Result<bool, CatalogError> {
        let command = Command::Expire { limit: EXPIRE_ROWS };
        let submission = Submission { caller: Caller::Head, request: None, command };
        let outcomes = self.catalog.execute(unix_ns, &[submission])?;
        match outcomes.into_iter().next() {
            Some(Ok(Answer::Count(count))) => Ok(count >= EXPIRE_ROWS),
            Some(Err(Failure::Engine(error))) => Err(error.into()),
            _ => Ok(false),
        }
    }

    /// Executes commands of the head's own.
    pub fn carry_out(&mut self, commands: Vec<Command>, unix_ns: u64) -> Result<(), CatalogError> {
        let submissions: Vec<Submission> = commands
            .into_iter()
            .map(|command| Submission { caller: Caller::Head, request: None, command })
            .collect();
        for outcome in self.catalog.execute(unix_ns, &submissions)? {
            if let Err(failure) = outcome {
                tracing::warn!(%failure, "a command of the head's own was refused");
            }
        }
        Ok(())
    }

    /// The head's term.
    pub fn epoch(&self) -> LeaseEpoch {
        self.catalog.epoch()
    }

    fn verify(&self, wire: &[u8], unix_ns: u64) -> Step {
        let Ok(interest) = Interest::decode(wire) else {
            return Step::Answered(CommandAnswer::Nack);
        };
        if query::is_query(&self.site, interest.name) {
            return Step::Answered(self.answer_query(&interest, unix_ns));
        }
        match self.verified(&interest, unix_ns) {
            Ok(step) => step,
            Err(Refused(failure, reason)) => {
                Step::Answered(self.reply(&interest, Outcome::Failed { failure, reason }))
            }
        }
    }

    fn verified(&self, interest: &Interest<'_>, unix_ns: u64) -> Result<Step, Refused> {
        let engine = self.catalog.engine();
        let reader = Reader::new(engine, &Caller::Head).map_err(NotAuthentic::from)?;
        let keys = Keys::new(&self.site, &reader, unix_ns / SECOND_NS);
        let Sender { caller, key } = keys.sender(interest)?;
        let packet = CommandPacket::decode(&self.site, interest)?;
        let request = packet.catalog_request();
        let mut unidentified_ms = None;
        if request.is_none() && matches!(packet.command, Command::OpenSession) {
            let signed_ms = signed_ms(interest, unix_ns)?;
            let name = interest.name.value().to_vec();
            if let Some(remembered) = self.remembered.get(&(signed_ms, name)) {
                return Ok(Step::Answered(remembered.answer.clone()));
            }
            if !self.may_open(&caller) {
                let reason = "too many sessions are being opened".to_owned();
                return Err(Refused(HeadFailure::Busy, reason));
            }
            unidentified_ms = Some(signed_ms);
        }
        let mut command = packet.command;
        if let Command::Commit(commit) = &mut command {
            commit.receipts = packet
                .receipts
                .iter()
                .map(|receipt| keys.receipt(receipt))
                .collect::<Result<_, _>>()?;
        }
        let submission = Submission { caller, request, command };
        Ok(Step::Execute(Box::new(Verified { submission, key, unidentified_ms })))
    }

    /// Nobody has more than is free, so whoever comes next finds room.
    fn may_open(&self, caller: &Caller) -> bool {
        let has = self.remembered.values().filter(|of| of.caller == *caller).count();
        has < REMEMBERED_MAX.saturating_sub(self.remembered.len())
    }

    fn answer(
        &mut self,
        wire: &[u8],
        verified: &Verified,
        outcome: Result<Result<Answer, Failure>, Refused>,
        unix_ns: u64,
    ) -> CommandAnswer {
        let Ok(interest) = Interest::decode(wire) else { return CommandAnswer::Nack };
        let outcome = match outcome {
            Ok(Ok(Answer::Ticket(ticket))) => self.issue(&ticket, verified, unix_ns),
            Ok(Ok(answer)) => Outcome::Done(Box::new(SiteAnswer::Plain(answer))),
            Ok(Err(Failure::Refused(refusal))) => Outcome::Refused(refusal),
            Ok(Err(Failure::Engine(error))) => engine_failed(&error),
            Err(Refused(failure, reason)) => Outcome::Failed { failure, reason },
        };
        let is_outcome = !matches!(outcome, Outcome::Failed { .. });
        let answer = self.reply(&interest, outcome);
        if let Some(signed_ms) = verified.unidentified_ms.filter(|_| is_outcome) {
            let name = interest.name.value().to_vec();
            let caller = verified.submission.caller.clone();
            let remembered = Remembered { caller, answer: answer.clone() };
            self.remembered.insert((signed_ms, name), remembered);
        }
        answer
    }

    /// A ticket for the sender's key. A repeated command gets another packet with the same terms.
    fn issue(&self, ticket: &byname_catalog::Ticket, verified: &Verified, unix_ns: u64) -> Outcome {
        let issued = self.terms(ticket).and_then(|terms| {
            let now_s = unix_ns / SECOND_NS;
            let issued = Ticket::issue(&self.site, terms, &verified.key, now_s, &*self.signer);
            issued.map_err(|error| Refused(HeadFailure::Engine, error.to_string()))
        });
        match issued {
            Ok(ticket) => Outcome::Done(Box::new(SiteAnswer::Ticket(ticket))),
            Err(Refused(failure, reason)) => Outcome::Failed { failure, reason },
        }
    }

    fn terms(&self, ticket: &byname_catalog::Ticket) -> Result<Terms, Refused> {
        let reader = Reader::new(self.catalog.engine(), &Caller::Head).map_err(unreadable)?;
        let mut disks = Vec::with_capacity(ticket.disks.len());
        for asked in &ticket.disks {
            let disk = reader.disk(asked.disk).map_err(unreadable)?;
            let name = DiskName { place: disk.label, id: asked.disk };
            disks.push(TermsDisk { name, generation: asked.generation });
        }
        Ok(Terms {
            content: ticket.content,
            epoch: self.catalog.epoch(),
            size_max: ticket.size_max,
            receipt_count: ticket.receipt_count,
            expires_ns: ticket.expires_ns,
            disks,
            origin: origin(&reader, ticket.content),
        })
    }

    fn answer_query(&self, interest: &Interest<'_>, unix_ns: u64) -> CommandAnswer {
        let engine = self.catalog.engine();
        let found = Reader::new(engine, &Caller::Head).map_err(unreadable).and_then(|reader| {
            let keys = Keys::new(&self.site, &reader, unix_ns / SECOND_NS);
            signed_ms(interest, unix_ns)?;
            let caller = keys.sender(interest)?.caller;
            let by = (&self.site, &caller);
            match query::answer((engine, &self.observations), by, interest) {
                Err(Failure::Refused(refusal)) => Ok(Err(refusal)),
                other => other.map(Ok).map_err(unreadable),
            }
        });
        match found {
            Ok(Ok(content)) => query::packet(interest, &content, &*self.signer),
            Ok(Err(refusal)) => self.reply(interest, Outcome::Refused(refusal)),
            Err(Refused(failure, reason)) => {
                self.reply(interest, Outcome::Failed { failure, reason })
            }
        }
    }

    fn reply(&self, interest: &Interest<'_>, outcome: Outcome) -> CommandAnswer {
        let reply = Reply { epoch: self.catalog.epoch(), outcome };
        match reply.encode(interest.name, &*self.signer) {
            Ok(data) => CommandAnswer::Data(data),
            Err(error) => {
                tracing::warn!(%error, "cannot sign an answer");
                CommandAnswer::Nack
            }
        }
    }
}

fn submission(step: &Step) -> Option<&Submission> {
    match step {
        Step::Execute(verified) => Some(&verified.submission),
        Step::Answered(_) => None,
    }
}

/// Where the file that is written lies, for a catalog that has to be rebuilt from its disks.
fn origin(reader: &Reader<'_>, content: ContentId) -> Option<Origin> {
    let attempt = reader.attempt(content).ok()?;
    let Target::NewFile { directory, name, mode } = attempt.target else { return None };
    Some(Origin { directory, name, owner: attempt.owner, group: attempt.group, mode })
}

/// When an Interest was signed, if that is near to now.
fn signed_ms(interest: &Interest<'_>, unix_ns: u64) -> Result<u64, Refused> {
    let signed_ms = interest.signature_info.as_ref().and_then(|info| info.time_ms);
    let signed_ms =
        signed_ms.ok_or_else(|| Refused(HeadFailure::Clock, "it has no time".to_owned()))?;
    if signed_ms.abs_diff(unix_ns / MS_NS) > CLOCK_MS_MAX {
        let reason = format!("it was signed at {signed_ms} ms by another clock");
        return Err(Refused(HeadFailure::Clock, reason));
    }
    Ok(signed_ms)
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

fn engine_failed(error: &EngineError) -> Outcome {
    tracing::warn!(%error, "the catalog's engine failed");
    Outcome::Failed { failure: HeadFailure::Engine, reason: error.to_string() }
}

fn failed(error: &CatalogError) -> Refused {
    tracing::warn!(%error, "a batch of commands failed");
    let failure = match error {
        CatalogError::LeaseLost | CatalogError::LeaseHeld { .. } => HeadFailure::NotLeading,
        _ => HeadFailure::Engine,
    };
    Refused(failure, error.to_string())
}
