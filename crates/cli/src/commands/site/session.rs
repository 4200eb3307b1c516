//! Commands and queries to the head of a site, one at a time, answered by name.

use super::account::{Account, SiteArgs};
use crate::exchange::{Ask, Exchange, Reply as Packet, Wanted};
use crate::exit::{Code, Failure, Outcome, chain};
use crate::output;
use byname_catalog::id::SessionId;
use byname_catalog::{Answer, Command, Refusal};
use byname_face::random_u64;
use byname_io::Clock;
use byname_keychain::Identity;
use byname_packet::{Data, Interest, InterestBuilder, Name, NameRef, SignatureExtra, Signer};
use byname_profile::Paths;
use byname_security::cert::{Certificate, CertificateRequest};
use byname_security::trust::Validator;
use byname_site::{
    Check, CommandPacket, HeadFailure, Outcome as CommandOutcome, Reply, RequestId, SiteAnswer,
    SiteName, Stamp, check_data,
};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Time that one attempt waits for its answer.
const ATTEMPT: Duration = Duration::from_secs(4);
/// Pause before a command that was refused for the moment is sent again.
const PAUSE: Duration = Duration::from_millis(200);

/// A user at a site.
pub(crate) struct SiteSession {
    exchange: Exchange,
    clock: Clock,
    site: SiteName,
    user: Identity,
    validator: Validator,
    /// Name of the certificate of the key that signs the head's answers.
    signed_by: Option<Name>,
    patience: Duration,
    /// The session and the last sequence of its slot.
    session: Option<(SessionId, u64)>,
}

impl SiteSession {
    /// Connects to a forwarder. Nothing is sent yet.
    pub(crate) fn open(args: &SiteArgs, paths: &Paths) -> Outcome<Self> {
        Self::of(&args.account(paths)?)
    }

    /// The same for an account.
    pub(crate) fn of(account: &Account) -> Outcome<Self> {
        let exchange = Exchange::new(account.connect()?)?;
        Ok(Self {
            exchange,
            clock: Clock::new(),
            site: account.site.clone(),
            user: account.identity.clone(),
            validator: Validator::new(account.trust.clone()),
            signed_by: None,
            patience: account.patience,
            session: None,
        })
    }

    /// The site.
    pub(crate) fn site(&self) -> &SiteName {
        &self.site
    }

    /// Sends a command until it has an outcome.
    pub(crate) fn run(&mut self, command: Command) -> Outcome<SiteAnswer> {
        self.execute(command)?.map_err(refused)
    }

    /// The same for who looks at why it is refused.
    pub(crate) fn execute(&mut self, command: Command) -> Outcome<Result<SiteAnswer, Refusal>> {
        let (session, last) = match self.session {
            Some(session) => session,
            None => (self.open_session()?, 0),
        };
        self.session = Some((session, last + 1));
        let request = RequestId { session, slot: 0, sequence: last + 1 };
        self.outcome(&CommandPacket::new(Some(request), command))
    }

    fn open_session(&mut self) -> Outcome<SessionId> {
        let packet = CommandPacket::new(None, Command::OpenSession);
        match self.outcome(&packet)?.map_err(refused)? {
            SiteAnswer::Plain(Answer::Session { session, .. }) => Ok(session),
            _ => Err(Failure::new(Code::Other, "the head answered something else")),
        }
    }

    /// All lines of a query, in order.
    pub(crate) fn query(&mut self, subject: &str) -> Outcome<Vec<Value>> {
        let (mut lines, mut after) = (Vec::new(), String::new());
        loop {
            let mut more = None;
            for line in self.page(subject, &after)? {
                match line.get("more").and_then(Value::as_str) {
                    Some(next) => more = Some(next.to_owned()),
                    None => lines.push(line),
                }
            }
            match more {
                Some(next) => after = next,
                None => return Ok(lines),
            }
        }
    }

    /// Lines of a query behind one of its rows, as many as one answer has.
    pub(crate) fn page(&mut self, subject: &str, after: &str) -> Outcome<Vec<Value>> {
        let name = self.site.command("query");
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
                .encode_signed(&this.user.signer, extra, &mut wire)
                .map_err(|error| Failure::new(Code::Other, chain(&error)))?;
            Ok(wire)
        };
        let answer = self.answered(&mut sign)?;
        let data = Data::decode(&answer).map_err(|error| Failure::new(Code::Other, error))?;
        if let Ok(reply) = Reply::decode(&self.site, &data) {
            return Err(self.failure(reply.outcome));
        }
        let text = String::from_utf8_lossy(data.content).into_owned();
        let lines = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
        lines.map_err(|error| Failure::new(Code::Other, format!("a malformed answer: {error}")))
    }

    /// Sends a command, signed anew each time, until there is an outcome.
    fn outcome(&mut self, packet: &CommandPacket) -> Outcome<Result<SiteAnswer, Refusal>> {
        // What has no request id is the same command only as the same Interest.
        let fixed = match packet.request {
            None => Some(self.sign(packet)?),
            Some(_) => None,
        };
        let mut sign = |this: &Self| match &fixed {
            Some(wire) => with_new_nonce(wire),
            None => this.sign(packet),
        };
        let deadline = Instant::now() + self.patience;
        loop {
            let answer = self.answered(&mut sign)?;
            let data = Data::decode(&answer).map_err(|error| Failure::new(Code::Other, error))?;
            let reply = Reply::decode(&self.site, &data).map_err(|error| {
                Failure::new(Code::Other, format!("a malformed answer: {error}"))
            })?;
            match reply.outcome {
                CommandOutcome::Done(answer) => return Ok(Ok(*answer)),
                CommandOutcome::Refused(refusal) => return Ok(Err(refusal)),
                CommandOutcome::Failed { failure, .. }
                    if failure.is_retryable() && Instant::now() < deadline =>
                {
                    std::thread::sleep(PAUSE);
                }
                other => return Err(self.failure(other)),
            }
        }
    }

    fn sign(&self, packet: &CommandPacket) -> Outcome<Vec<u8>> {
        let signer: &dyn Signer = &self.user.signer;
        packet
            .encode(&self.site, signer, self.stamp())
            .map_err(|error| Failure::new(Code::Other, chain(&error)))
    }

    fn stamp(&self) -> Stamp {
        let time_ms = self.clock.unix_ns() / 1_000_000;
        Stamp { time_ms, nonce: random_u64().to_be_bytes() }
    }

    /// The verified Data that answers an Interest, which is made for each attempt.
    fn answered(&mut self, sign: &mut dyn FnMut(&Self) -> Outcome<Vec<u8>>) -> Outcome<Vec<u8>> {
        let deadline = Instant::now() + self.patience;
        loop {
            let wire = sign(self)?;
            let left = deadline.saturating_duration_since(Instant::now());
            match self.exchange.signed(&wire, ATTEMPT.min(left))? {
                Packet::Data { wire: data, .. } => {
                    self.verify(&data)?;
                    return Ok(data);
                }
                Packet::Nack(_) if Instant::now() < deadline => std::thread::sleep(PAUSE),
                Packet::Silence if Instant::now() < deadline => {}
                Packet::Nack(_) | Packet::Silence => return Err(self.no_answer()),
            }
        }
    }

    fn verify(&mut self, wire: &[u8]) -> Outcome {
        let data = Data::decode(wire).map_err(|error| Failure::new(Code::NotVerified, error))?;
        let now_s = self.clock.unix_ns() / 1_000_000_000;
        loop {
            match check_data(&self.site, &data, &mut self.validator, now_s) {
                Check::Accepted(found) if found.identity == byname_site::Identity::Site => {
                    self.signed_by = Some(found.certificate);
                    return Ok(());
                }
                Check::Accepted(_) => {
                    let text = "the answer is signed by somebody else than the site";
                    return Err(Failure::new(Code::NotVerified, text));
                }
                Check::NeedCertificate(name) => self.fetch_certificate(name.view())?,
                Check::Refused(reason) => {
                    let shown = output::name(self.site.view());
                    return Err(Failure::new(Code::UnknownKey, chain(&reason)).hint(format!(
                        "trust the site's key: byname trust add LINK, or --site LINK ({shown})"
                    )));
                }
            }
        }
    }

    /// The certificate of the key that signs the head's answers, once one was verified.
    pub(super) fn site_certificate(&mut self) -> Outcome<Certificate> {
        let name = self.signed_by.as_ref();
        let certificate = name.and_then(|name| self.validator.certificate(name.view()));
        certificate.cloned().ok_or_else(|| {
            Failure::new(Code::UnknownKey, "the certificate of the site is not known")
        })
    }

    /// A certificate by the user's key for the key of another one, under another name.
    pub(super) fn certify(
        &self,
        key_name: NameRef<'_>,
        other: &Certificate,
    ) -> Outcome<Certificate> {
        let request = CertificateRequest {
            key_name,
            public_key: other.public_key(),
            issuer_id: self.user.certificate.key_component().value,
            version: self.clock.unix_ns() / 1_000_000,
            validity: other.validity(),
        };
        let issued = request.issue(&self.user.signer);
        issued.map_err(|error| Failure::new(Code::Other, chain(&error)))
    }

    fn fetch_certificate(&mut self, name: NameRef<'_>) -> Outcome {
        let ask = Ask::new(name, Wanted::Older, ATTEMPT);
        let missing = || {
            let text = format!("nobody answers with the certificate {}", output::name(name));
            Failure::new(Code::NoRoute, text)
        };
        let Packet::Data { wire, .. } = self.exchange.request(&ask)? else { return Err(missing()) };
        let added = self.validator.add_certificate(&wire);
        let added = added.map_err(|error| Failure::new(Code::NotVerified, chain(&error)))?;
        if name.is_prefix_of(added.view()) { Ok(()) } else { Err(missing()) }
    }

    fn no_answer(&self) -> Failure {
        let shown = output::name(self.site.view());
        Failure::new(Code::NoRoute, format!("the head of {shown} does not answer"))
            .hint(format!("is it running? byname catalog {shown}"))
    }

    fn failure(&self, outcome: CommandOutcome) -> Failure {
        match outcome {
            CommandOutcome::Refused(refusal) => refused(refusal),
            CommandOutcome::Failed { failure, reason } => {
                let code = match failure {
                    HeadFailure::NotAuthentic => Code::UnknownKey,
                    _ => Code::Other,
                };
                Failure::new(code, format!("{failure}: {reason}"))
            }
            CommandOutcome::Done(_) => {
                Failure::new(Code::Other, "the head answered something else")
            }
        }
    }
}

/// A refusal as the end of a command.
pub(crate) fn refused(refusal: Refusal) -> Failure {
    let code = match refusal {
        Refusal::NotFound | Refusal::NoAttribute | Refusal::NoSuchDisk | Refusal::UnknownKey => {
            Code::NotFound
        }
        Refusal::UnknownUser => Code::UnknownKey,
        Refusal::AccessDenied | Refusal::NotOwner | Refusal::NotOperator => Code::LocalDisk,
        _ => Code::Other,
    };
    Failure::new(code, refusal)
}

/// The same Interest, which no forwarder takes for a loop.
fn with_new_nonce(wire: &[u8]) -> Outcome<Vec<u8>> {
    let interest =
        Interest::decode(wire).map_err(|error| Failure::new(Code::Other, chain(&error)))?;
    let mut out = Vec::with_capacity(wire.len());
    interest.encode_forwarded(nonce(), interest.hop_limit, &mut out);
    Ok(out)
}

fn nonce() -> [u8; 4] {
    (random_u64() as u32).to_be_bytes()
}
