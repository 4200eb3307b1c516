//! Commands and queries to the head of a site, one at a time, answered by name: each is signed, or
//! under keys of the session once there were many.

mod session;

use std::time::{Duration, Instant};

use byname_catalog::{Command, Refusal};
use byname_client::Stop;
use byname_face::{Exchange, FaceError, Reply as Packet, random_u64};
use byname_io::Clock;
use byname_packet::{Data, InterestBuilder, Name, NameRef, Signer};
use byname_security::cert::{Certificate, CertificateRequest};
use byname_security::trust::{Anchor, Trusted, Validator};
use byname_site::{
    Authentic, Check, CommandPacket, HeadFailure, Keyring, Outcome, Reply, RequestId, SealedBy,
    SiteAnswer, SiteName, Stamp, check_data, library_seeds, sealed_by, sign_question,
};
use serde_json::Value;

use crate::account::Account;
use crate::error::AccessError;

use session::OpenSession;

/// Time that one attempt waits for its answer.
const ATTEMPT: Duration = Duration::from_secs(4);
/// Time after which its Interest is sent again: another head may have come. One that is at work on
/// it takes the repetition for what it is.
const SILENCE: Duration = Duration::from_secs(1);
/// Pause before a command that was refused for the moment is sent again.
const PAUSE: Duration = Duration::from_millis(200);

/// A user at a site.
pub struct HeadSession {
    account: Account,
    exchange: Exchange,
    clock: Clock,
    validator: Validator,
    /// The key that signs the head's answers.
    signed_by: Option<Authentic>,
    stop: Stop,
    session: Option<OpenSession>,
    keyring: Keyring,
}

/// An Interest, and which keys of the session it is under, unless it is signed.
type Made = (Vec<u8>, Option<u64>);
/// Makes an Interest for each attempt.
type Make<'a> = dyn FnMut(&mut HeadSession) -> Result<Made, AccessError> + 'a;

/// What a packet says that came as an answer.
enum Verdict {
    Answer,
    /// Nothing: it is under other keys than what was asked.
    Nothing,
    /// The head does not take these keys.
    NoKeys(u64),
}

impl HeadSession {
    /// Connects to a forwarder. Nothing is sent yet.
    ///
    /// # Errors
    /// [`AccessError::NoForwarder`].
    pub fn open(account: &Account) -> Result<Self, AccessError> {
        let exchange = Exchange::new(account.connect()?)?;
        Ok(Self {
            account: account.clone(),
            exchange,
            clock: Clock::new(),
            validator: Validator::new(account.trust.clone()),
            signed_by: None,
            stop: Stop::default(),
            session: None,
            keyring: Keyring::new(library_seeds()),
        })
    }

    /// Gives up when this says so.
    #[must_use]
    pub fn stopped_by(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// The site.
    pub fn site(&self) -> &SiteName {
        &self.account.site
    }

    /// Sends a command until it has an outcome.
    ///
    /// # Errors
    /// [`AccessError`]; [`AccessError::Refused`] if the catalog says no.
    pub fn run(&mut self, command: Command) -> Result<SiteAnswer, AccessError> {
        Ok(self.execute(command)??)
    }

    /// The same for who looks at why it is refused.
    ///
    /// # Errors
    /// [`AccessError`] of what is no outcome.
    pub fn execute(
        &mut self,
        command: Command,
    ) -> Result<Result<SiteAnswer, Refusal>, AccessError> {
        self.agree_in_time()?;
        let request = self.next_request()?;
        self.outcome(&self.packet(Some(request), command))
    }

    /// A command of the user, be it through a door.
    fn packet(&self, request: Option<RequestId>, command: Command) -> CommandPacket {
        CommandPacket::new(request, command).spoken_for(self.account.speaks_for.clone())
    }

    /// All lines of a query, in order.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn query(&mut self, subject: &str) -> Result<Vec<Value>, AccessError> {
        let (mut lines, mut after) = (Vec::new(), String::new());
        loop {
            let (page, more) = self.query_after(subject, &after)?;
            lines.extend(page);
            match more {
                Some(next) => after = next,
                None => return Ok(lines),
            }
        }
    }

    /// Lines of a query behind one of its rows, as many as one answer has, and where the next
    /// answer begins if there is one.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn query_after(
        &mut self,
        subject: &str,
        after: &str,
    ) -> Result<(Vec<Value>, Option<String>), AccessError> {
        let mut lines = self.page(subject, after)?;
        let more = lines.last().and_then(|line| line.get("more")?.as_str()).map(str::to_owned);
        if more.is_some() {
            lines.pop();
        }
        Ok((lines, more))
    }

    /// The lines of one answer to a query as they are.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn page(&mut self, subject: &str, after: &str) -> Result<Vec<Value>, AccessError> {
        let answer = self.answer_to(subject, after)?;
        let text = String::from_utf8_lossy(Data::decode(&answer)?.content).into_owned();
        Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    }

    /// The packet that answers a query.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn answer_to(&mut self, subject: &str, after: &str) -> Result<Vec<u8>, AccessError> {
        self.agree_in_time()?;
        let question = format!("{subject} {after}");
        let question = question.trim_end().as_bytes();
        let question = match &self.account.speaks_for {
            Some(speaks_for) => &*speaks_for.asking(question),
            None => question,
        };
        let deadline = Instant::now() + self.account.patience;
        loop {
            let answer = self.answered(&mut |this| this.make_question(question))?;
            let data = Data::decode(&answer)?;
            match Reply::decode(&self.account.site, &data).map(|reply| reply.outcome) {
                Ok(Outcome::Failed { failure, .. })
                    if failure.is_retryable() && Instant::now() < deadline =>
                {
                    self.check_stop()?;
                    std::thread::sleep(PAUSE);
                }
                Ok(outcome) => return Err(failed(outcome)),
                Err(_) => return Ok(answer),
            }
        }
    }

    /// Sends a command, signed anew each time, until there is an outcome.
    fn outcome(
        &mut self,
        packet: &CommandPacket,
    ) -> Result<Result<SiteAnswer, Refusal>, AccessError> {
        // What has no request id is the same command only as the same Interest.
        let fixed = match packet.request {
            None => Some((self.sign(packet)?, None)),
            Some(_) => None,
        };
        let mut make = |this: &mut Self| match &fixed {
            Some(made) => Ok(made.clone()),
            None => this.make(packet),
        };
        let deadline = Instant::now() + self.account.patience;
        loop {
            let answer = self.answered(&mut make)?;
            let reply = Reply::decode(&self.account.site, &Data::decode(&answer)?)?;
            match reply.outcome {
                Outcome::Done(answer) => return Ok(Ok(*answer)),
                Outcome::Refused(refusal) => return Ok(Err(refusal)),
                Outcome::Failed { failure, .. }
                    if failure.is_retryable() && Instant::now() < deadline =>
                {
                    self.check_stop()?;
                    std::thread::sleep(PAUSE);
                }
                other => return Err(failed(other)),
            }
        }
    }

    /// A command under the session's keys, or signed.
    fn make(&mut self, packet: &CommandPacket) -> Result<Made, AccessError> {
        match self.keyring.seal(&self.account.site, packet).transpose()? {
            Some((wire, keys)) => Ok((wire, Some(keys))),
            None => Ok((self.sign(packet)?, None)),
        }
    }

    /// A question under the session's keys, or signed.
    fn make_question(&mut self, question: &[u8]) -> Result<Made, AccessError> {
        let site = &self.account.site;
        if let Some((wire, keys)) = self.keyring.seal_question(site, question).transpose()? {
            return Ok((wire, Some(keys)));
        }
        let signer: &dyn Signer = &self.account.identity.signer;
        Ok((sign_question(site, question, signer, self.stamp())?, None))
    }

    fn sign(&self, packet: &CommandPacket) -> Result<Vec<u8>, AccessError> {
        let signer: &dyn Signer = &self.account.identity.signer;
        Ok(packet.encode(&self.account.site, signer, self.stamp())?)
    }

    fn stamp(&self) -> Stamp {
        let time_ms = self.clock.unix_ns() / 1_000_000;
        Stamp { time_ms, nonce: random_u64().to_be_bytes() }
    }

    fn check_stop(&self) -> Result<(), AccessError> {
        if self.stop.is_requested() { Err(AccessError::Stopped) } else { Ok(()) }
    }

    /// The verified Data that answers an Interest, which is made for each attempt.
    fn answered(&mut self, make: &mut Make<'_>) -> Result<Vec<u8>, AccessError> {
        let deadline = Instant::now() + self.account.patience;
        loop {
            self.check_stop()?;
            let (wire, keys) = make(self)?;
            let left = deadline.saturating_duration_since(Instant::now());
            // Under keys a question counts once, also if its answer was lost.
            let pause = if keys.is_some() { ATTEMPT } else { SILENCE };
            let reply = match ask(&mut self.exchange, &wire, (ATTEMPT.min(left), pause)) {
                Err(error) if Instant::now() < deadline => {
                    self.reconnect(error, deadline)?;
                    continue;
                }
                reply => reply?,
            };
            match reply {
                Packet::Data { wire: data, .. } => match self.judge(&data, keys)? {
                    Verdict::Answer => return Ok(data),
                    Verdict::NoKeys(keys) => self.keyring.lost(keys, self.clock.now_ns()),
                    Verdict::Nothing if Instant::now() < deadline => std::thread::sleep(PAUSE),
                    Verdict::Nothing => return Err(AccessError::OtherSigner),
                },
                Packet::Nack(_) if Instant::now() < deadline => std::thread::sleep(PAUSE),
                Packet::Silence if Instant::now() < deadline => {}
                Packet::Nack(_) | Packet::Silence => {
                    return Err(AccessError::NoHead { site: self.account.site.clone() });
                }
            }
        }
    }

    /// Connects anew after a failure: a forwarder that starts again is waited for, as for an
    /// answer.
    fn reconnect(&mut self, failure: FaceError, deadline: Instant) -> Result<(), AccessError> {
        loop {
            std::thread::sleep(PAUSE);
            self.check_stop()?;
            match self.account.connect() {
                Ok(connection) => {
                    self.exchange = Exchange::new(connection)?;
                    return Ok(());
                }
                Err(_) if Instant::now() < deadline => {}
                Err(_) => return Err(failure.into()),
            }
        }
    }

    /// Looks at who vouches for an answer: the site, or whoever has the keys it was asked under.
    fn judge(&mut self, wire: &[u8], keys: Option<u64>) -> Result<Verdict, AccessError> {
        let data = Data::decode(wire)?;
        if let SealedBy::Keys(_) = sealed_by(&data) {
            let is_answer = self.keyring.is_answer(&data, keys);
            return Ok(if is_answer { Verdict::Answer } else { Verdict::Nothing });
        }
        self.verify(wire)?;
        let Some(keys) = keys else { return Ok(Verdict::Answer) };
        Ok(match Reply::decode(&self.account.site, &data).map(|reply| reply.outcome) {
            Ok(Outcome::Failed {
                failure: HeadFailure::NoKeys | HeadFailure::Replayed, ..
            }) => Verdict::NoKeys(keys),
            _ => Verdict::Answer,
        })
    }

    fn verify(&mut self, wire: &[u8]) -> Result<(), AccessError> {
        let data = Data::decode(wire)?;
        let now_s = self.clock.unix_ns() / 1_000_000_000;
        loop {
            match check_data(&self.account.site, &data, &mut self.validator, now_s) {
                Check::Accepted(found) if found.identity == byname_site::Identity::Site => {
                    self.signed_by = Some(found);
                    return Ok(());
                }
                Check::Accepted(_) => return Err(AccessError::OtherSigner),
                Check::NeedCertificate(name) => self.fetch_certificate(name.view())?,
                Check::Refused(source) => {
                    let (site, source) = (self.account.site.clone(), Box::new(source));
                    return Err(AccessError::Untrusted { site, source });
                }
            }
        }
    }

    /// The certificate of the key that signs the head's answers, once one was verified.
    ///
    /// # Errors
    /// [`AccessError::NoAnswerYet`].
    pub fn site_certificate(&mut self) -> Result<Certificate, AccessError> {
        let name = self.signed_by.as_ref().map(|signer| signer.certificate.view());
        let certificate = name.and_then(|name| self.validator.certificate(name));
        certificate.cloned().ok_or(AccessError::NoAnswerYet)
    }

    /// Why answers count, once one was verified.
    pub(crate) fn trusted(&self) -> Result<Trusted, AccessError> {
        let signer = self.signed_by.as_ref().ok_or(AccessError::NoAnswerYet)?;
        let key = signer.key_id();
        Ok(Trusted::Anchored {
            key,
            anchor: Anchor { prefix: self.account.site.view().to_name(), key },
        })
    }

    /// A certificate by the user's key for the key of another one, under another name.
    ///
    /// # Errors
    /// [`AccessError::Issue`].
    pub fn certify(
        &self,
        key_name: NameRef<'_>,
        other: &Certificate,
    ) -> Result<Certificate, AccessError> {
        let request = CertificateRequest {
            key_name,
            public_key: other.public_key(),
            issuer_id: self.account.identity.certificate.key_component().value,
            version: self.clock.unix_ns() / 1_000_000,
            validity: other.validity(),
        };
        Ok(request.issue(&self.account.identity.signer)?)
    }

    fn fetch_certificate(&mut self, name: NameRef<'_>) -> Result<(), AccessError> {
        let missing = || AccessError::NoCertificate { name: name.to_name() };
        let mut wire = Vec::new();
        InterestBuilder::new(name)
            .can_be_prefix(true)
            .nonce(nonce())
            .lifetime_ms(ATTEMPT.as_millis() as u64)
            .encode(&mut wire);
        let reply = self.exchange.ask_one(&wire, false, ATTEMPT)?;
        let Packet::Data { wire, .. } = reply else { return Err(missing()) };
        let added: Name = self.validator.add_certificate(&wire)?;
        if name.is_prefix_of(added.view()) { Ok(()) } else { Err(missing()) }
    }
}

/// Sends an Interest, and again while it is not answered.
fn ask(
    exchange: &mut Exchange,
    wire: &[u8],
    (patience, pause): (Duration, Duration),
) -> Result<Packet, FaceError> {
    let deadline = Instant::now() + patience;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let reply = exchange.ask_one(wire, false, pause.min(left))?;
        if reply != Packet::Silence || Instant::now() >= deadline {
            return Ok(reply);
        }
    }
}

fn failed(outcome: Outcome) -> AccessError {
    match outcome {
        Outcome::Refused(refusal) => refusal.into(),
        Outcome::Failed { failure, reason } => AccessError::Head { failure, reason },
        Outcome::Done(_) => AccessError::OtherAnswer,
    }
}

fn nonce() -> [u8; 4] {
    (random_u64() as u32).to_be_bytes()
}
