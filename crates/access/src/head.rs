//! Commands and queries to the head of a site, one at a time, answered by name.

use std::time::{Duration, Instant};

use byname_catalog::id::SessionId;
use byname_catalog::{Answer, Command, Refusal, SESSION_NS};
use byname_client::Stop;
use byname_face::{Exchange, FaceError, Reply as Packet, random_u64};
use byname_io::Clock;
use byname_packet::{Data, Interest, InterestBuilder, Name, NameRef, SignatureExtra, Signer};
use byname_security::cert::{Certificate, CertificateRequest};
use byname_security::trust::{Anchor, Trusted, Validator};
use byname_site::{
    Authentic, Check, CommandPacket, Outcome, Reply, RequestId, SiteAnswer, SiteName, Stamp,
    check_data,
};
use serde_json::Value;

use crate::account::Account;
use crate::error::AccessError;

/// Time that one attempt waits for its answer.
const ATTEMPT: Duration = Duration::from_secs(4);
/// Age at which another session is opened, well before the head ends this one: so no command is
/// sent again in a session that is over.
const SESSION_AGE: Duration = Duration::from_nanos(SESSION_NS / 2);
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
}

/// A session of the catalog.
struct OpenSession {
    id: SessionId,
    /// Last sequence of its slot.
    sequence: u64,
    opened: Instant,
}

/// An Interest for each attempt.
type Sign<'a> = dyn FnMut(&HeadSession) -> Result<Vec<u8>, AccessError> + 'a;

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
        })
    }

    /// Gives up when this says so.
    #[must_use]
    pub fn stopped_by(self, stop: Stop) -> Self {
        Self { stop, ..self }
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
        let young = self.session.take().filter(|session| session.opened.elapsed() < SESSION_AGE);
        let mut session = match young {
            Some(session) => session,
            None => {
                let (opened, id) = (Instant::now(), self.open_session()?);
                OpenSession { id, sequence: 0, opened }
            }
        };
        session.sequence += 1;
        let request = RequestId { session: session.id, slot: 0, sequence: session.sequence };
        self.session = Some(session);
        self.outcome(&CommandPacket::new(Some(request), command))
    }

    fn open_session(&mut self) -> Result<SessionId, AccessError> {
        let packet = CommandPacket::new(None, Command::OpenSession);
        match self.outcome(&packet)?? {
            SiteAnswer::Plain(Answer::Session { session, .. }) => Ok(session),
            _ => Err(AccessError::OtherAnswer),
        }
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
        let name = self.account.site.command("query");
        let parameters = format!("{subject} {after}");
        let mut sign = |this: &Self| {
            let stamp = this.stamp();
            let extra = SignatureExtra {
                nonce: Some(&stamp.nonce),
                time_ms: Some(stamp.time_ms),
                seq_num: None,
            };
            let mut wire = Vec::new();
            InterestBuilder::new(name.view())
                .must_be_fresh(true)
                .application_parameters(parameters.trim_end().as_bytes())
                .nonce(nonce())
                .encode_signed(&this.account.identity.signer, extra, &mut wire)?;
            Ok(wire)
        };
        let answer = self.answered(&mut sign)?;
        let data = Data::decode(&answer)?;
        if let Ok(reply) = Reply::decode(&self.account.site, &data) {
            return Err(failed(reply.outcome));
        }
        let text = String::from_utf8_lossy(data.content).into_owned();
        Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    }

    /// Sends a command, signed anew each time, until there is an outcome.
    fn outcome(
        &mut self,
        packet: &CommandPacket,
    ) -> Result<Result<SiteAnswer, Refusal>, AccessError> {
        // What has no request id is the same command only as the same Interest.
        let fixed = match packet.request {
            None => Some(self.sign(packet)?),
            Some(_) => None,
        };
        let mut sign = |this: &Self| match &fixed {
            Some(wire) => with_new_nonce(wire),
            None => this.sign(packet),
        };
        let deadline = Instant::now() + self.account.patience;
        loop {
            let answer = self.answered(&mut sign)?;
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
    fn answered(&mut self, sign: &mut Sign<'_>) -> Result<Vec<u8>, AccessError> {
        let deadline = Instant::now() + self.account.patience;
        loop {
            self.check_stop()?;
            let wire = sign(self)?;
            let left = deadline.saturating_duration_since(Instant::now());
            let reply = match self.exchange.ask_one(&wire, false, ATTEMPT.min(left)) {
                Err(error) if Instant::now() < deadline => {
                    self.reconnect(error)?;
                    continue;
                }
                reply => reply?,
            };
            match reply {
                Packet::Data { wire: data, .. } => {
                    self.verify(&data)?;
                    return Ok(data);
                }
                Packet::Nack(_) if Instant::now() < deadline => std::thread::sleep(PAUSE),
                Packet::Silence if Instant::now() < deadline => {}
                Packet::Nack(_) | Packet::Silence => {
                    return Err(AccessError::NoHead { site: self.account.site.clone() });
                }
            }
        }
    }

    /// Connects anew after a failure; whoever has waited does not say so twice.
    fn reconnect(&mut self, failure: FaceError) -> Result<(), AccessError> {
        std::thread::sleep(PAUSE);
        match self.account.connect() {
            Ok(connection) => self.exchange = Exchange::new(connection)?,
            Err(_) => return Err(failure.into()),
        }
        Ok(())
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

fn failed(outcome: Outcome) -> AccessError {
    match outcome {
        Outcome::Refused(refusal) => refusal.into(),
        Outcome::Failed { failure, reason } => AccessError::Head { failure, reason },
        Outcome::Done(_) => AccessError::OtherAnswer,
    }
}

/// The same Interest, which no forwarder takes for a loop.
fn with_new_nonce(wire: &[u8]) -> Result<Vec<u8>, AccessError> {
    let interest = Interest::decode(wire)?;
    let mut out = Vec::with_capacity(wire.len());
    interest.encode_forwarded(nonce(), interest.hop_limit, &mut out);
    Ok(out)
}

fn nonce() -> [u8; 4] {
    (random_u64() as u32).to_be_bytes()
}
