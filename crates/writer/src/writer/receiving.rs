//! What comes in: disks ask, the head answers, disks answer, or nobody does.

use byname_face::{FaceError, random_u64};
use byname_packet::lp::{LpHeader, nack_reason};
use byname_packet::{Data, Interest, InterestBuilder, Name, Packet};
use byname_site::{
    Authentic, Check, DiskName, Identity, InsertAnswer, Outcome, Reply, RequestId, SiteAnswer,
    check_data,
};

use super::{About, MS_NS, Owner, PutEvent, Writer};
use crate::asks::{GivenUp, PATIENCE_NS};
use crate::error::WriterError;

/// A packet that was received: reason of a Nack, PIT token, octets.
type Received = (Option<u64>, Vec<u8>, Vec<u8>);

impl Writer {
    pub(super) fn receive(&mut self) -> Result<(), WriterError> {
        let now_ns = self.clock.now_ns();
        let mut packets: Vec<Received> = Vec::new();
        let status = self.face.receive(now_ns, |received| {
            let token = received.header.pit_token.unwrap_or_default().to_vec();
            packets.push((received.header.nack, token, received.packet.to_vec()));
        })?;
        for (nack, token, wire) in packets {
            match (nack, Packet::decode(&wire)) {
                (Some(reason), Ok(Packet::Interest(interest))) => {
                    let clock = (now_ns, random_u64());
                    self.asks.handle_nack(interest.name, reason, clock);
                }
                (None, Ok(Packet::Interest(interest))) => {
                    self.produce(&interest, &token, now_ns)?
                }
                (None, Ok(Packet::Data(data))) => self.handle_data(&data)?,
                _ => {}
            }
        }
        if status.closed { Err(FaceError::Closed.into()) } else { Ok(()) }
    }

    /// Answers a disk. What there is no room for is lost: the disk asks again.
    fn produce(
        &mut self,
        interest: &Interest<'_>,
        token: &[u8],
        now_ns: u64,
    ) -> Result<(), WriterError> {
        let pit_token = (!token.is_empty()).then_some(token);
        let (wire, nack) = match self.producer.answer(interest) {
            Some(wire) => (wire, None),
            None => (interest.wire().to_vec(), Some(nack_reason::NONE)),
        };
        let header = LpHeader { pit_token, nack, ..LpHeader::default() };
        match self.face.send(&header, &wire, now_ns) {
            Ok(()) | Err(FaceError::Full(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn handle_data(&mut self, data: &Data<'_>) -> Result<(), WriterError> {
        match self.asks.about(data.name).cloned() {
            Some(About::Command { owner, request, .. }) => self.handle_reply(data, owner, request),
            Some(About::Insert { job, disk }) => {
                self.asks.finish(data.name);
                // What cannot be read is as good as nothing; the disk is asked once more.
                let answer = InsertAnswer::decode(data).ok();
                self.handle_disk(job, &disk, answer)
            }
            Some(About::Certificate) | None => {
                self.handle_certificate(data);
                Ok(())
            }
        }
    }

    /// The name of a certificate is longer than that of the Interest.
    fn handle_certificate(&mut self, data: &Data<'_>) {
        let is_asked = self
            .asks
            .any(|name, about| matches!(about, About::Certificate) && name.is_prefix_of(data.name));
        if is_asked && self.validator.add_certificate(data.wire()).is_ok() {
            self.asks.retain(|about| !matches!(about, About::Certificate));
            self.asks.hasten(self.clock.now_ns());
        }
    }

    fn handle_reply(
        &mut self,
        data: &Data<'_>,
        owner: Owner,
        request: Option<RequestId>,
    ) -> Result<(), WriterError> {
        let now_s = self.clock.unix_ns() / 1_000_000_000;
        let site = &self.config.site;
        let answer = match check_data(site, data, &mut self.validator, now_s) {
            Check::Accepted(Authentic { identity: Identity::Site, .. }) => {
                match Reply::decode(site, data).map_err(WriterError::from) {
                    Ok(Reply { outcome: Outcome::Done(answer), .. }) => Ok(*answer),
                    Ok(Reply { outcome: Outcome::Refused(refusal), .. }) => Err(refusal.into()),
                    // Nothing has happened yet: the Interest stays, and is sent again.
                    Ok(Reply { outcome: Outcome::Failed { failure, .. }, .. })
                        if failure.is_retryable() =>
                    {
                        return Ok(());
                    }
                    Ok(Reply { outcome: Outcome::Failed { failure, reason }, .. }) => {
                        Err(WriterError::Head { failure, reason })
                    }
                    Err(error) => Err(error),
                }
            }
            Check::Accepted(_) => Err(byname_site::Untrusted::NoAnchor.into()),
            Check::Refused(error) => Err(error.into()),
            Check::NeedCertificate(name) => {
                self.fetch_certificate(&name);
                return Ok(());
            }
        };
        self.is_head_known |= !matches!(answer, Err(WriterError::Untrusted(_)));
        self.asks.finish(data.name);
        if let (Some(slots), Some(request)) = (&mut self.slots, request) {
            slots.give_back(request);
        }
        self.deliver(owner, answer)
    }

    /// Asks for a certificate; the answer that needs it comes again when it is there.
    fn fetch_certificate(&mut self, name: &Name) {
        let mut wire = Vec::new();
        InterestBuilder::new(name.view())
            .can_be_prefix(true)
            .lifetime_ms(byname_site::COMMAND_LIFETIME_MS)
            .encode(&mut wire);
        if self.asks.about(name.view()).is_none() {
            self.asks.ask(About::Certificate, wire, self.clock.now_ns());
        }
    }

    fn deliver(
        &mut self,
        owner: Owner,
        answer: Result<SiteAnswer, WriterError>,
    ) -> Result<(), WriterError> {
        let number = match owner {
            Owner::Job(number) => number,
            Owner::Nobody => return Ok(()),
            Owner::Caller => {
                self.answer = Some(answer);
                return Ok(());
            }
        };
        if let Some(job) = self.jobs.get_mut(&number) {
            job.handle_answer(answer);
        }
        self.act(number)
    }

    fn handle_disk(
        &mut self,
        number: usize,
        disk: &DiskName,
        answer: Option<InsertAnswer>,
    ) -> Result<(), WriterError> {
        if let Some(job) = self.jobs.get_mut(&number) {
            job.handle_disk(&self.config.site, disk, answer);
            let received_bytes = job.received_bytes();
            self.events.push(PutEvent::Progress { number, received_bytes });
        }
        self.act(number)
    }

    pub(super) fn give_up(&mut self, about: About, why: GivenUp) -> Result<(), WriterError> {
        match about {
            About::Command { owner, what, .. } => {
                let waited_ms = PATIENCE_NS / MS_NS;
                let error = match why {
                    GivenUp::NoRoute => WriterError::NoRoute,
                    GivenUp::Silence => WriterError::NoAnswer { what, waited_ms },
                };
                self.deliver(owner, Err(error))
            }
            About::Insert { job, disk } => self.handle_disk(job, &disk, None),
            About::Certificate => Ok(()),
        }
    }
}
