//! Commands and queries to the head of a site, one at a time, answered by name.

use super::defaults::own_user;
use crate::exchange::{Ask, Exchange, Reply as Packet, Wanted};
use crate::exit::{Code, Failure, Outcome, chain};
use crate::{forwarders, output, settings};
use byname_catalog::id::SessionId;
use byname_catalog::{Answer, Command, Refusal};
use byname_face::random_u64;
use byname_io::{Clock, Endpoint};
use byname_keychain::{Identity, Keychain};
use byname_packet::{Data, Interest, InterestBuilder, Name, NameRef, SignatureExtra, Signer};
use byname_profile::{Link, Paths, Profile};
use byname_security::trust::{UnknownKeys, Validator};
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

/// Whose command, and to which site.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SiteArgs {
    /// Name or link of the site. Default: the one site that one's keys are for.
    #[arg(long, value_name = "NAME|LINK", env = "BYNAME_SITE")]
    site: Option<String>,
    /// User of the site to act as. Default: the one whose key is here.
    #[arg(long, value_name = "USER", env = "BYNAME_USER")]
    user: Option<String>,
    /// Forwarder to ask.
    #[arg(long, value_name = "URI")]
    connect: Option<String>,
    /// Give up after so many seconds without an answer.
    #[arg(long, value_name = "SECONDS", default_value_t = 15)]
    timeout: u64,
}

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

impl SiteArgs {
    /// The site, and the link that says how to reach it.
    fn link(&self, profile: &Profile, keychain: &Keychain) -> Outcome<(SiteName, Link)> {
        let link = match &self.site {
            Some(text) => profile.link(text)?,
            None => Link::of_name(only_site(keychain)?.view().to_name()),
        };
        let site = SiteName::new(link.name.clone());
        let shown = output::name(link.name.view());
        let site = site.ok_or_else(|| Failure::usage(format!("{shown} is no name of a site")))?;
        Ok((site, link))
    }

    /// The site alone.
    pub(super) fn site(&self, paths: &Paths) -> Outcome<SiteName> {
        let profile = settings::profile(paths)?;
        Ok(self.link(&profile, &Keychain::open(&paths.keys)?)?.0)
    }

    /// The user's name, as far as it is given or can be told from the keys.
    pub(super) fn user(&self, site: &SiteName, keychain: &Keychain) -> Outcome<String> {
        if let Some(user) = &self.user {
            return Ok(user.clone());
        }
        let mut users = Vec::new();
        for info in keychain.list()? {
            match site.identity(info.identity.view()) {
                Some(byname_site::Identity::User(user)) if !users.contains(&user) => {
                    users.push(user);
                }
                _ => {}
            }
        }
        match users.as_slice() {
            [user] => Ok(user.clone()),
            [] => Ok(own_user()),
            _ => Err(Failure::usage(format!("which user? --user {}", users.join(" or --user ")))),
        }
    }
}

/// The site that one's keys as a user are for.
fn only_site(keychain: &Keychain) -> Outcome<SiteName> {
    let mut sites: Vec<SiteName> = Vec::new();
    for info in keychain.list()? {
        let of_user = info.identity.view();
        let site = SiteName::new(of_user.without_last(2).to_name());
        let site = site
            .filter(|site| matches!(site.identity(of_user), Some(byname_site::Identity::User(_))));
        sites.extend(site.filter(|site| !sites.contains(site)));
    }
    match sites.as_slice() {
        [site] => Ok(site.clone()),
        [] => Err(Failure::usage("which site? --site NAME, or --site LINK")),
        _ => Err(Failure::usage("which site? There are keys for several: --site NAME")),
    }
}

impl SiteSession {
    /// Connects to a forwarder. Nothing is sent yet.
    pub(crate) fn open(args: &SiteArgs, paths: &Paths) -> Outcome<Self> {
        let profile = settings::profile(paths)?;
        let keychain = Keychain::open(&paths.keys)?;
        let (site, link) = args.link(&profile, &keychain)?;
        let user = args.user(&site, &keychain)?;
        let name = site.user(&user);
        let identity = keychain.identity(name.view())?.ok_or_else(|| {
            let shown = output::name(site.view());
            Failure::new(Code::UnknownKey, format!("there is no key of {user} at {shown} here"))
                .hint(format!(
                    "make one: byname site user key --site {shown} --user {user}, and have an \
                     operator add it"
                ))
        })?;
        let mut policy = profile.trust_policy(UnknownKeys::Refuse)?;
        if let Some(key) = link.key {
            policy.add_anchor(site.view().to_name(), key);
        }
        let endpoints = endpoints(args, &link, &profile)?;
        let (connection, _) = forwarders::connect_first(&endpoints).map_err(forwarders::failure)?;
        Ok(Self {
            exchange: Exchange::new(connection)?,
            clock: Clock::new(),
            site,
            user: identity,
            validator: Validator::new(policy),
            signed_by: None,
            patience: Duration::from_secs(args.timeout.max(1)),
            session: None,
        })
    }

    /// The site.
    pub(crate) fn site(&self) -> &SiteName {
        &self.site
    }

    /// Sends a command until it has an outcome.
    pub(crate) fn run(&mut self, command: Command) -> Outcome<SiteAnswer> {
        let (session, last) = match self.session {
            Some(session) => session,
            None => (self.open_session()?, 0),
        };
        self.session = Some((session, last + 1));
        let request = RequestId { session, slot: 0, sequence: last + 1 };
        self.outcome(&CommandPacket::new(Some(request), command))
    }

    fn open_session(&mut self) -> Outcome<SessionId> {
        match self.outcome(&CommandPacket::new(None, Command::OpenSession))? {
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
    fn outcome(&mut self, packet: &CommandPacket) -> Outcome<SiteAnswer> {
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
                CommandOutcome::Done(answer) => return Ok(*answer),
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
                Packet::Data(data) => {
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
    pub(super) fn site_certificate(&mut self) -> Option<Vec<u8>> {
        let name = self.signed_by.as_ref()?;
        Some(self.validator.certificate(name.view())?.wire().to_vec())
    }

    fn fetch_certificate(&mut self, name: NameRef<'_>) -> Outcome {
        let ask = Ask { name, wanted: Wanted::Older, timeout: ATTEMPT };
        let missing = || {
            let text = format!("nobody answers with the certificate {}", output::name(name));
            Failure::new(Code::NoRoute, text)
        };
        let Packet::Data(wire) = self.exchange.request(&ask)? else { return Err(missing()) };
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

fn refused(refusal: Refusal) -> Failure {
    let code = match refusal {
        Refusal::NotFound | Refusal::NoSuchDisk | Refusal::UnknownKey => Code::NotFound,
        Refusal::UnknownUser => Code::UnknownKey,
        Refusal::AccessDenied | Refusal::NotOwner | Refusal::NotOperator => Code::LocalDisk,
        _ => Code::Other,
    };
    Failure::new(code, refusal)
}

fn endpoints(args: &SiteArgs, link: &Link, profile: &Profile) -> Outcome<Vec<Endpoint>> {
    match &args.connect {
        Some(uri) => Ok(vec![crate::typed::endpoint(uri)?]),
        None if !link.via.is_empty() => crate::typed::endpoints(&link.via),
        None => Ok(profile.forwarders(false)?),
    }
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
