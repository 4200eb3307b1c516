//! What comes in: disks ask, the head answers, disks answer, or nobody does.

use std::sync::Arc;

use byname_packet::lp::nack_reason;
use byname_packet::{Data, Interest, InterestBuilder, Name, Packet};
use byname_site::{
    Authentic, Check, CommandPacket, DiskName, HeadFailure, Identity, InsertAnswer, Outcome, Reply,
    SealedBy, SiteAnswer, check_data, sealed_by,
};

use super::{About, MS_NS, Now, Outgoing, Owner, WriterCore};
use crate::asks::{GivenUp, Heard, PATIENCE_NS};
use crate::error::WriterError;
use crate::put::PutEvent;

impl WriterCore {
    /// Takes a packet, with the reason if it is a Nack, and its token.
    ///
    /// # Errors
    /// What ends all files.
    pub fn handle_packet(
        &mut self,
        (nack, pit_token): (Option<u64>, Option<&[u8]>),
        wire: &[u8],
        now: Now,
    ) -> Result<(), WriterError> {
        match (nack, Packet::decode(wire)) {
            (Some(reason), Ok(Packet::Interest(interest))) => {
                let clock = (now.now_ns, (self.random)());
                self.asks.handle_nack(interest.name, reason, clock);
            }
            (None, Ok(Packet::Interest(interest))) => self.produce(&interest, pit_token),
            (None, Ok(Packet::Data(data))) => self.handle_data(&data, now)?,
            _ => {}
        }
        Ok(())
    }

    /// Answers a disk.
    fn produce(&mut self, interest: &Interest<'_>, pit_token: Option<&[u8]>) {
        let (wire, nack) = match self.producer.answer(interest) {
            Some(wire) => (wire, None),
            None => (interest.wire().to_vec(), Some(nack_reason::NONE)),
        };
        let pit_token = pit_token.map(<[u8]>::to_vec);
        self.replies.push_back(Outgoing { wire, pit_token, nack });
    }

    fn handle_data(&mut self, data: &Data<'_>, now: Now) -> Result<(), WriterError> {
        match self.asks.about(data.name).cloned() {
            Some(About::Command { owner, packet, sealed }) => {
                self.handle_reply(data, (owner, &packet, sealed), now)
            }
            Some(About::Question { number, question, sealed }) => {
                self.handle_told(data, (number, &question, sealed), now)
            }
            Some(About::Agree) => {
                self.handle_agreement(data, now);
                Ok(())
            }
            Some(About::Insert { job, disk }) => {
                self.asks.finish(data.name);
                // What cannot be read is as good as nothing; the disk is asked once more.
                let answer = InsertAnswer::decode(data).ok();
                self.handle_disk((job, &disk), answer, now)
            }
            Some(About::Certificate) | None => {
                self.handle_certificate(data, now);
                Ok(())
            }
        }
    }

    /// The name of a certificate is longer than that of the Interest.
    fn handle_certificate(&mut self, data: &Data<'_>, now: Now) {
        let is_asked = self
            .asks
            .any(|name, about| matches!(about, About::Certificate) && name.is_prefix_of(data.name));
        if is_asked && self.validator.add_certificate(data.wire()).is_ok() {
            self.asks.retain(|about| !matches!(about, About::Certificate));
            self.asks.hasten(now.now_ns);
        }
    }

    fn handle_reply(
        &mut self,
        data: &Data<'_>,
        (owner, packet, sealed): (Owner, &Arc<CommandPacket>, Option<u64>),
        now: Now,
    ) -> Result<(), WriterError> {
        let reply = match sealed_by(data) {
            // Whoever has not the keys has answered nothing: the Interest stays.
            SealedBy::Keys(_) if !self.keyring.is_answer(data, sealed) => {
                self.asks.note_heard(data.name, Heard::OtherKeys);
                return Ok(());
            }
            SealedBy::Keys(_) => Ok(Reply::decode(&self.config.site, data)?),
            SealedBy::Signature => match self.verified(data, now) {
                Some(reply) => reply,
                None => {
                    self.asks.note_heard(data.name, Heard::NoCertificate);
                    return Ok(());
                }
            },
        };
        let answer = match reply {
            Ok(Reply { outcome: Outcome::Done(answer), .. }) => Ok(*answer),
            Ok(Reply { outcome: Outcome::Refused(refusal), .. }) => Err(refusal.into()),
            // Nothing has happened yet: the Interest stays, and is sent again.
            Ok(Reply { outcome: Outcome::Failed { failure, reason }, .. })
                if failure.is_retryable() =>
            {
                self.asks.note_heard(data.name, Heard::Failure(failure, reason));
                return Ok(());
            }
            // Nothing has happened: the same command is signed.
            Ok(Reply { outcome: Outcome::Failed { failure, .. }, .. })
                if matches!(failure, HeadFailure::NoKeys | HeadFailure::Replayed)
                    && sealed.is_some() =>
            {
                sealed.into_iter().for_each(|keys| self.keyring.lost(keys, now.now_ns));
                self.asks.finish(data.name);
                return self.express(owner, Arc::clone(packet), now);
            }
            Ok(Reply { outcome: Outcome::Failed { failure, reason }, .. }) => {
                Err(WriterError::Head { failure, reason })
            }
            Err(error) => Err(error),
        };
        self.is_head_known |= !matches!(answer, Err(WriterError::Untrusted(_)));
        self.asks.finish(data.name);
        if let (Some(slots), Some(request)) = (&mut self.slots, packet.request) {
            slots.give_back(request);
        }
        self.deliver(owner, answer, now)
    }

    /// What the site has signed; `None` while its certificate is being fetched.
    fn verified(&mut self, data: &Data<'_>, now: Now) -> Option<Result<Reply, WriterError>> {
        let checked = self.checked(data, now)?;
        Some(checked.and_then(|()| Ok(Reply::decode(&self.config.site, data)?)))
    }

    /// True of what the site has signed; `None` while its certificate is being fetched.
    pub(super) fn checked(&mut self, data: &Data<'_>, now: Now) -> Option<Result<(), WriterError>> {
        let now_s = now.unix_ns / 1_000_000_000;
        match check_data(&self.config.site, data, &mut self.validator, now_s) {
            Check::Accepted(Authentic { identity: Identity::Site, .. }) => Some(Ok(())),
            Check::Accepted(_) => Some(Err(byname_site::Untrusted::NoAnchor.into())),
            Check::Refused(error) => Some(Err(error.into())),
            Check::NeedCertificate(name) => {
                self.fetch_certificate(&name, now);
                None
            }
        }
    }

    /// The head has agreed upon keys, or not.
    fn handle_agreement(&mut self, data: &Data<'_>, now: Now) {
        let Some(reply) = self.verified(data, now) else { return };
        match reply {
            Ok(Reply { outcome: Outcome::Done(answer), .. }) => {
                self.keyring.agreed(&self.config.site, (data, &answer), now.now_ns);
            }
            Ok(Reply { outcome: Outcome::Failed { failure, .. }, .. })
                if failure.is_retryable() =>
            {
                return;
            }
            _ => self.keyring.refused(now.now_ns),
        }
        self.asks.finish(data.name);
    }

    /// Asks for a certificate; the answer that needs it comes again when it is there.
    fn fetch_certificate(&mut self, name: &Name, now: Now) {
        let mut wire = Vec::new();
        InterestBuilder::new(name.view()).can_be_prefix(true).encode(&mut wire);
        if self.asks.about(name.view()).is_none() {
            self.asks.ask(About::Certificate, wire, now.now_ns);
        }
    }

    fn deliver(
        &mut self,
        owner: Owner,
        answer: Result<SiteAnswer, WriterError>,
        now: Now,
    ) -> Result<(), WriterError> {
        let number = match owner {
            Owner::Job(number) => number,
            Owner::Nobody => return Ok(()),
            Owner::Caller(number) => {
                self.answers.push_back((number, answer));
                return Ok(());
            }
        };
        if let Some(job) = self.jobs.get_mut(&number) {
            job.handle_answer(answer);
        }
        self.act(number, now)
    }

    fn handle_disk(
        &mut self,
        (number, disk): (usize, &DiskName),
        answer: Option<InsertAnswer>,
        now: Now,
    ) -> Result<(), WriterError> {
        if let Some(job) = self.jobs.get_mut(&number) {
            job.handle_disk(&self.config.site, disk, answer);
            let received_bytes = job.received_bytes();
            self.events.push_back(PutEvent::Progress { number, received_bytes });
        }
        self.act(number, now)
    }

    pub(super) fn give_up(
        &mut self,
        about: About,
        why: GivenUp,
        now: Now,
    ) -> Result<(), WriterError> {
        match about {
            About::Command { owner, packet, .. } => {
                let what = packet.command.name();
                let waited_ms = PATIENCE_NS / MS_NS;
                let error = match why {
                    GivenUp::NoRoute => WriterError::NoRoute,
                    GivenUp::Silence(heard) => WriterError::NoAnswer { what, waited_ms, heard },
                };
                self.deliver(owner, Err(error), now)
            }
            About::Question { number, .. } => {
                let error = match why {
                    GivenUp::NoRoute => WriterError::NoRoute,
                    GivenUp::Silence(heard) => {
                        let waited_ms = PATIENCE_NS / MS_NS;
                        WriterError::NoAnswer { what: "query", waited_ms, heard }
                    }
                };
                self.told.push_back((number, Err(error)));
                Ok(())
            }
            About::Insert { job, disk } => self.handle_disk((job, &disk), None, now),
            About::Agree => {
                self.keyring.refused(now.now_ns);
                Ok(())
            }
            About::Certificate => Ok(()),
        }
    }
}
