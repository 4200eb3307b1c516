//! Answers: outcomes of commands, tickets and what was asked, signed by the site or under the keys
//! of a session.

use byname_catalog::engine::EngineError;
use byname_catalog::id::ContentId;
use byname_catalog::{Answer, Caller, Command, Failure, Reader, Target};
use byname_packet::{Interest, Signer};
use byname_site::{
    DiskName, HeadFailure, Origin, Outcome, Reply, SessionKeys, SiteAnswer, SpeaksFor, Terms,
    TermsDisk, Ticket,
};

use super::verifying::{not_lent, parameters, signed_ms};
use super::{Executor, Refused, SECOND_NS, Verified, unreadable};
use crate::commands::CommandAnswer;
use crate::query;
use crate::sessions::Opened;

/// What came of a command, unless nothing did.
pub(super) type Executed = Result<Result<Answer, Failure>, Refused>;

/// The state after the batch, and the time.
pub(super) type After<'a> = (Result<&'a Reader<'a>, &'a Refused>, u64);

impl Executor {
    pub(super) fn answer(
        &mut self,
        wire: &[u8],
        (verified, outcome): (&Verified, Executed),
        at: After<'_>,
    ) -> CommandAnswer {
        let Ok(interest) = Interest::decode(wire) else { return CommandAnswer::Nack };
        let outcome = match outcome {
            Ok(Ok(Answer::Ticket(ticket))) => self.issue(&ticket, verified, at),
            Ok(Ok(answer)) => Outcome::Done(Box::new(SiteAnswer::Plain(answer))),
            Ok(Err(Failure::Refused(refusal))) => Outcome::Refused(refusal),
            Ok(Err(Failure::Engine(error))) => engine_failed(&error),
            Err(Refused(failure, reason)) => Outcome::Failed { failure, reason },
        };
        if let (Outcome::Done(_), Command::EndSession) = (&outcome, &verified.submission.command) {
            let request = verified.submission.request.as_ref();
            request.into_iter().for_each(|request| self.sessions.forget(request.session));
        }
        let is_outcome = !matches!(outcome, Outcome::Failed { .. });
        let answer = self.reply(&interest, outcome, verified.sealed.as_deref());
        if let Some(signed_ms) = verified.unidentified_ms.filter(|_| is_outcome) {
            let name = interest.name.value().to_vec();
            let who = verified.sender.who.clone();
            self.remembered.insert((signed_ms, name), who, answer.clone());
        }
        answer
    }

    /// A ticket for the sender's key. A repeated command gets another packet with the same terms.
    fn issue(
        &self,
        ticket: &byname_catalog::Ticket,
        verified: &Verified,
        (reader, unix_ns): After<'_>,
    ) -> Outcome {
        let terms = reader.map_err(Clone::clone).and_then(|reader| self.terms(ticket, reader));
        let issued = terms.and_then(|terms| {
            let now_s = unix_ns / SECOND_NS;
            let issued =
                Ticket::issue(&self.site, terms, &verified.sender.key, now_s, &*self.signer);
            issued.map_err(|error| Refused(HeadFailure::Engine, error.to_string()))
        });
        match issued {
            Ok(ticket) => Outcome::Done(Box::new(SiteAnswer::Ticket(ticket))),
            Err(Refused(failure, reason)) => Outcome::Failed { failure, reason },
        }
    }

    fn terms(
        &self,
        ticket: &byname_catalog::Ticket,
        reader: &Reader<'_>,
    ) -> Result<Terms, Refused> {
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
            origin: origin(reader, ticket.content),
        })
    }

    /// Answers a question. Under keys a question counts once; a signed one for a while.
    pub(super) fn answer_query(
        &mut self,
        interest: &Interest<'_>,
        (caller, is_lent, opened): (&Caller, bool, Option<Opened>),
        unix_ns: u64,
    ) -> Result<CommandAnswer, Refused> {
        let (_, question) = SpeaksFor::split(parameters(interest))?;
        if is_lent && query::is_duty(question) {
            return Err(not_lent());
        }
        match &opened {
            Some(opened) if opened.is_repeated => {
                let reason = "it was asked before under this number".to_owned();
                return Err(Refused(HeadFailure::Replayed, reason));
            }
            Some(_) => {}
            None => drop(signed_ms(interest, unix_ns)?),
        }
        let keys = opened.as_ref().map(|opened| &*opened.keys);
        let by = (&self.site, caller);
        let (engine, observations) = (self.catalog.engine(), &self.observations);
        let known = query::Known { engine, observations, unix_ns };
        let answered = query::answer(known, by, question);
        let subject = query::subject(question);
        self.observations.traffic.note(caller, &subject, answered.is_err());
        if let Some(audit) = self.audit.as_mut().filter(|_| query::is_duty(question)) {
            audit.asked((self.catalog.epoch(), unix_ns), (caller, question), &answered);
        }
        match answered {
            Ok(content) => {
                let keys = keys.filter(|_| !query::is_for_others(interest));
                Ok(query::packet(interest, &content, self.signer_of(keys)))
            }
            Err(Failure::Refused(refusal)) => {
                Ok(self.reply(interest, Outcome::Refused(refusal), keys))
            }
            Err(failure) => Err(unreadable(failure)),
        }
    }

    fn signer_of<'a>(&'a self, keys: Option<&'a SessionKeys>) -> &'a dyn Signer {
        keys.map_or(&*self.signer as &dyn Signer, SessionKeys::answers)
    }

    /// An answer, under the keys of the session that asked, or signed by the site.
    pub(super) fn reply(
        &self,
        interest: &Interest<'_>,
        outcome: Outcome,
        keys: Option<&SessionKeys>,
    ) -> CommandAnswer {
        let reply = Reply { epoch: self.catalog.epoch(), outcome };
        match reply.encode(interest.name, self.signer_of(keys)) {
            Ok(data) => CommandAnswer::Data(data),
            Err(error) => {
                tracing::warn!(%error, "cannot sign an answer");
                CommandAnswer::Nack
            }
        }
    }
}

/// Where the file that is written lies, for a catalog that has to be rebuilt from its disks.
fn origin(reader: &Reader<'_>, content: ContentId) -> Option<Origin> {
    let attempt = reader.attempt(content).ok()?;
    let Target::NewFile { directory, name, mode } = attempt.target else { return None };
    Some(Origin { directory, name, owner: attempt.owner, group: attempt.group, mode })
}

fn engine_failed(error: &EngineError) -> Outcome {
    tracing::warn!(%error, "the catalog's engine failed");
    Outcome::Failed { failure: HeadFailure::Engine, reason: error.to_string() }
}
