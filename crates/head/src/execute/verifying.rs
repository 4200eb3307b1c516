//! Who sent a command, and whether it may be executed: by a signature, or by keys of a session.

use std::sync::Arc;

use byname_catalog::{Caller, Command, Reader, Refusal, Submission};
use byname_packet::Interest;
use byname_security::exchange::Exchange;
use byname_site::{
    Agree, CommandPacket, HeadFailure, Outcome, Reply, SessionKeys, SiteAnswer, SpeaksFor,
    Transcript,
};

use super::{
    CLOCK_MS_MAX, Executor, MS_NS, Refused, SECOND_NS, Step, Verified, refused, unreadable,
};
use crate::commands::{CommandAnswer, Waiting};
use crate::keys::{Keys, NotAuthentic, Sender, Who};
use crate::query;
use crate::sessions::{Agreement, Holder, LIFE_NS, NotOpened, Opened, is_sealed};
use crate::traffic::Asker;

/// One committed state, and the time.
pub(super) type At<'a> = (&'a Reader<'a>, u64);

impl Executor {
    pub(super) fn verify(&mut self, wire: &[u8], at: At<'_>) -> Step {
        let Ok(interest) = Interest::decode(wire) else {
            return Step::Answered(CommandAnswer::Nack);
        };
        let opened = match is_sealed(&interest) {
            true => self.open(&interest, at).map(Some),
            false => Ok(None),
        };
        let (opened, keys) = match opened {
            Ok(opened) => {
                let keys = opened.as_ref().map(|opened| Arc::clone(&opened.keys));
                (Ok(opened), keys)
            }
            Err(refused) => (Err(refused), None),
        };
        let step = opened.and_then(|opened| self.verified(&interest, opened, at));
        step.unwrap_or_else(|Refused(failure, reason)| {
            let (epoch, name) = (self.catalog.epoch(), &interest.name);
            if let Some(audit) = &mut self.audit {
                audit.unknown((epoch, at.1), name.to_string(), (failure, &reason));
            }
            let outcome = Outcome::Failed { failure, reason };
            Step::Answered(self.reply(&interest, outcome, keys.as_deref()))
        })
    }

    /// Answers when nothing can be read.
    pub(super) fn none_verified(&self, batch: &[Waiting], why: &Refused) -> Vec<Step> {
        let Refused(failure, reason) = why;
        let answer = |waiting: &Waiting| match Interest::decode(&waiting.wire) {
            Ok(interest) => {
                let outcome = Outcome::Failed { failure: *failure, reason: reason.clone() };
                self.reply(&interest, outcome, None)
            }
            Err(_) => CommandAnswer::Nack,
        };
        batch.iter().map(|waiting| Step::Answered(answer(waiting))).collect()
    }

    fn open(&mut self, interest: &Interest<'_>, at: At<'_>) -> Result<Opened, Refused> {
        let opened = self.sessions.open(&self.site, interest, at);
        opened.map_err(NotAuthentic::from)?.map_err(|why| match why {
            NotOpened::Unknown | NotOpened::Revoked => {
                Refused(HeadFailure::NoKeys, why.to_string())
            }
            NotOpened::Number => Refused(HeadFailure::Replayed, why.to_string()),
        })
    }

    fn verified(
        &mut self,
        interest: &Interest<'_>,
        opened: Option<Opened>,
        (reader, unix_ns): At<'_>,
    ) -> Result<Step, Refused> {
        let keys = Keys::new(&self.site, reader, unix_ns / SECOND_NS).with_known(&self.known);
        let sender = match &opened {
            Some(opened) => opened.sender.clone(),
            None => keys.sender(interest)?,
        };
        let is_question = query::is_query(&self.site, interest.name);
        if Agree::is_named(&self.site, interest.name) {
            self.admit(&sender.who, None, (reader, is_question, unix_ns))?;
            let holder = holder(sender, opened.as_ref(), &keys, interest)?;
            return self.agree(interest, holder, (reader, unix_ns)).map(Step::Answered);
        }
        let (speaks_for, _) = SpeaksFor::split(parameters(interest))?;
        let caller = match sender.who.caller(speaks_for) {
            Ok(caller) => caller,
            Err(refusal) => {
                self.admit(&sender.who, None, (reader, is_question, unix_ns))?;
                return Ok(self.refuse(interest, refusal, (opened, unix_ns)));
            }
        };
        self.admit(&sender.who, Some(&caller), (reader, is_question, unix_ns))?;
        if is_question {
            let by = (&caller, sender.is_lent, opened);
            return self.answer_query(interest, by, unix_ns).map(Step::Answered);
        }
        let packet = CommandPacket::decode(&self.site, interest)?;
        if !sender.may(&packet.command) {
            // Not executed, so the session goes on with the same number.
            return Err(not_lent());
        }
        let request = packet.catalog_request();
        if let Some(opened) = &opened
            && request.as_ref().map(|request| request.session) != Some(opened.session)
        {
            let reason = "the keys are those of another session".to_owned();
            return Err(Refused(HeadFailure::NotAuthentic, reason));
        }
        let mut unidentified_ms = None;
        if request.is_none() && matches!(packet.command, Command::OpenSession) {
            let signed_ms = signed_ms(interest, unix_ns)?;
            if let Some(answer) = self.remembered.get(signed_ms, interest.name.value()) {
                return Ok(Step::Answered(answer.clone()));
            }
            if !self.remembered.has_room_for(&sender.who) {
                let reason = "too many sessions are being opened".to_owned();
                return Err(Refused(HeadFailure::Busy, reason));
            }
            unidentified_ms = Some(signed_ms);
        }
        let mut command = packet.command;
        if let Command::Commit(commit) = &mut command {
            let receipts = packet.receipts.iter().map(|receipt| keys.receipt(receipt));
            commit.receipts = receipts.collect::<Result<_, _>>()?;
        }
        if let Command::LendKey(lend) = &mut command {
            lend.lender = sender.key_name.clone();
        }
        let submission = Submission { caller, request, command };
        let sealed = opened.map(|opened| opened.keys);
        Ok(Step::Execute(Box::new(Verified { submission, sender, unidentified_ms, sealed })))
    }

    /// Counts what somebody asks for.
    fn admit(
        &self,
        who: &Who,
        caller: Option<&Caller>,
        (reader, is_question, unix_ns): (&Reader<'_>, bool, u64),
    ) -> Result<(), Refused> {
        let asker = match (who, caller) {
            (Who::User(user), _) => Asker::User(user),
            (Who::Disk(disk), _) => Asker::Disk(*disk),
            (Who::Door(door), Some(caller @ Caller::Door(spoken))) => {
                // Whether it may is decided in the transaction. This is only about whose share it
                // takes.
                let may = reader.knows(caller).is_ok();
                Asker::Door(door, may.then_some(spoken.user.as_str()))
            }
            (Who::Door(door), _) => Asker::Door(door, None),
        };
        if self.observations.traffic.admit(asker, (is_question, self.rates), unix_ns) {
            return Ok(());
        }
        let reason = match who {
            Who::Door(_) => "the door or its user asks for more than the head does for one",
            _ => "you ask for more than the head does for one user",
        };
        Err(Refused(HeadFailure::Busy, reason.to_owned()))
    }

    /// Refuses what is under no rights at all.
    fn refuse(
        &mut self,
        interest: &Interest<'_>,
        refusal: Refusal,
        (opened, unix_ns): (Option<Opened>, u64),
    ) -> Step {
        if let Some(audit) = &mut self.audit {
            let (at, name) = ((self.catalog.epoch(), unix_ns), interest.name.to_string());
            audit.unknown(at, name, (HeadFailure::NotAuthentic, &refusal.to_string()));
        }
        let keys = opened.as_ref().map(|opened| &*opened.keys);
        Step::Answered(self.reply(interest, Outcome::Refused(refusal), keys))
    }

    /// Agrees upon keys of a session with its user.
    fn agree(
        &mut self,
        interest: &Interest<'_>,
        holder: Holder,
        (reader, unix_ns): At<'_>,
    ) -> Result<CommandAnswer, Refused> {
        let Agree { session, share } = Agree::decode(&self.site, interest)?;
        let signed_ms = signed_ms(interest, unix_ns)?;
        if let Some(answer) = self.sessions.repeated(session, interest.name) {
            return Ok(answer);
        }
        let row = reader.session(session).map_err(unreadable)?;
        if !row.is_some_and(|row| holder.who.has_opened(&row)) {
            let refused = Outcome::Refused(Refusal::UnknownSession);
            return Ok(self.reply(interest, refused, None));
        }
        if !self.sessions.is_latest(session, signed_ms) {
            let reason = "keys were agreed upon later than this".to_owned();
            return Err(Refused(HeadFailure::Replayed, reason));
        }
        let own = self.exchange()?;
        let expires_ns = unix_ns.saturating_add(LIFE_NS);
        let agreed = SiteAnswer::Agreed { share: *own.share(), expires_ns };
        let reply = Reply { epoch: self.catalog.epoch(), outcome: Outcome::Done(Box::new(agreed)) };
        let content = reply.content();
        let transcript = Transcript { name: interest.name, content: &content };
        let keys = SessionKeys::derive(&self.site, session, own, &share, transcript);
        let malformed = || Refused(HeadFailure::Malformed, "the share is none".to_owned());
        let keys = keys.ok_or_else(malformed)?;
        let answer = self.reply(interest, reply.outcome, None);
        let name = interest.name.value().to_vec();
        let agreement = Agreement { keys, holder, signed_ms, name, answer: answer.clone() };
        self.sessions.insert(session, agreement, unix_ns);
        Ok(answer)
    }

    fn exchange(&mut self) -> Result<Exchange, Refused> {
        let seed = (self.seeds)();
        let own = seed.and_then(|seed| Exchange::from_seed(&seed).ok());
        own.ok_or_else(|| Refused(HeadFailure::Engine, "there are no random numbers".to_owned()))
    }
}

/// The refusal of what a lent key may not have done.
pub(super) fn not_lent() -> Refused {
    let reason = "a lent key neither administers the site nor ends other loans".to_owned();
    Refused(HeadFailure::NotAuthentic, reason)
}

/// Whoever signs for himself, and by which certificate. Keys of a session vouch for no others.
fn holder(
    sender: Sender,
    opened: Option<&Opened>,
    keys: &Keys<'_>,
    interest: &Interest<'_>,
) -> Result<Holder, Refused> {
    if matches!(sender.who, Who::Disk(_)) {
        return Err(refused(Refusal::NeedsSession));
    }
    if opened.is_some() {
        let reason = "keys are agreed upon under a signature".to_owned();
        return Err(Refused(HeadFailure::NotAuthentic, reason));
    }
    let (who, is_lent) = (sender.who, sender.is_lent);
    Ok(Holder { who, certificate: keys.certificate(interest)?, is_lent })
}

/// Parameters of an Interest.
pub(super) fn parameters<'a>(interest: &Interest<'a>) -> &'a [u8] {
    interest.application_parameters.unwrap_or_default()
}

/// When an Interest was signed, if that is near to now.
pub(super) fn signed_ms(interest: &Interest<'_>, unix_ns: u64) -> Result<u64, Refused> {
    let signed_ms = interest.signature_info.as_ref().and_then(|info| info.time_ms);
    let signed_ms =
        signed_ms.ok_or_else(|| Refused(HeadFailure::Clock, "it has no time".to_owned()))?;
    if signed_ms.abs_diff(unix_ns / MS_NS) > CLOCK_MS_MAX {
        let reason = format!("it was signed at {signed_ms} ms by another clock");
        return Err(Refused(HeadFailure::Clock, reason));
    }
    Ok(signed_ms)
}
