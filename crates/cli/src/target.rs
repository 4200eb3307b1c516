//! From what a user types (a name or a link, and flags) to a connected client that trusts what it
//! should.

use crate::diagnosis::{self, Fate};
use crate::exit::{Code, Failure, Outcome};
use crate::{failure, output, settings, trace, typed};
use byname_client::{
    AnswerPath, Client, ClientConfig, ClientError, SessionOptions, SourceReport, Stop,
};
use byname_io::Endpoint;
use byname_packet::{Component, Name};
use byname_profile::link::may_be_cut;
use byname_profile::units;
use byname_profile::{Endpoints, Link, OpenOptions, Paths, Profile, SeenVersions, UnknownKey};
use byname_security::trust::{Trusted, UnknownKeys};
use byname_transfer::congestion::Congestion;
use byname_transfer::error::ReadError;
use byname_transfer::freshness::Freshness;
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::time::Duration;

/// Type of a generic component.
const GENERIC: u16 = 8;
/// Octets of the name of a file or directory, at most.
const ENTRY_BYTES_MAX: usize = 255;
/// Components of a name that is asked for, at most: readers take no answer that has more than 255
/// with those behind it.
const DEPTH_MAX: usize = 250;

/// Flags of every command that reads.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ReadArgs {
    /// Forwarder to ask: unix:///path, tcp://host[:port], udp://host[:port].
    #[arg(long, value_name = "URI")]
    connect: Option<String>,
    /// Forwarder or server (`byname serve --listen`) to read from; given again, the next is asked
    /// when one is silent, gone or sends what does not verify.
    #[arg(long, value_name = "URI", conflicts_with = "connect")]
    via: Vec<String>,
    /// Accept whatever whoever answers sends: nothing is authenticated.
    #[arg(long, conflicts_with = "trust_on_first_use")]
    insecure: bool,
    /// Trust and keep the key of a name met for the first time. For scripts.
    #[arg(long)]
    trust_on_first_use: bool,
    /// Take nothing but what the publisher says now; by default, when it does not answer, the
    /// newest that a cache or mirror has is taken, never older than seen before, and its age
    /// reported.
    #[arg(long, conflicts_with = "offline")]
    fresh: bool,
    /// Do not ask the publisher: take what a cache or mirror has.
    #[arg(long)]
    offline: bool,
    /// Silence that counts as failure.
    #[arg(long, value_name = "DURATION", value_parser = units::whole_seconds)]
    timeout: Option<u64>,
    /// Retransmissions of one Interest.
    #[arg(long, value_name = "N")]
    retries: Option<u32>,
}

impl ReadArgs {
    /// Wishes of a writer, who has to know what is there now.
    pub(crate) fn of_writer(connect: Option<String>, timeout_s: u64) -> Self {
        Self {
            connect,
            via: Vec::new(),
            insecure: false,
            trust_on_first_use: false,
            fresh: true,
            offline: false,
            timeout: Some(timeout_s),
            retries: None,
        }
    }

    /// The same wishes for a session that others drive; its `stop` is for the caller to request.
    pub(crate) fn open_options(&self) -> Outcome<OpenOptions> {
        wishes(self, Pace { is_bulk: true, ..Pace::default() }, Stop::default())
    }

    pub(crate) fn is_fresh(&self) -> bool {
        self.fresh
    }

    pub(crate) fn is_offline(&self) -> bool {
        self.offline
    }

    /// The same with at most so many seconds of silence.
    pub(crate) fn with_timeout_at_most(mut self, seconds: u64) -> Self {
        self.timeout = Some(self.timeout.unwrap_or(seconds).min(seconds));
        self
    }

    /// Sets the flag of this name, as `-o` of `mount` has it. False if there is none.
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>) -> Result<bool, &'static str> {
        let number = |least: u64| {
            let number = value.and_then(|value| value.parse().ok()).filter(|it| *it >= least);
            number.ok_or("not a number that fits")
        };
        match (name, value) {
            ("insecure", None) => self.insecure = true,
            ("trust_on_first_use", None) => self.trust_on_first_use = true,
            ("fresh", None) => self.fresh = true,
            ("offline", None) => self.offline = true,
            ("connect", Some(uri)) => self.connect = Some(uri.to_owned()),
            ("via", Some(uri)) => self.via.push(uri.to_owned()),
            ("timeout", Some(_)) => self.timeout = Some(number(1)?),
            ("retries", Some(_)) => {
                let retries = u32::try_from(number(0)?);
                self.retries = Some(retries.map_err(|_| "not a number that fits")?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Options of one command beside the flags of all.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pace {
    pub(crate) transfers: Option<u64>,
    pub(crate) bytes_per_second: Option<u64>,
    /// Slower than this for a minute is a failure.
    pub(crate) min_bytes_per_second: u64,
    pub(crate) congestion: Congestion,
    /// Ask on the path where answers come from.
    pub(crate) traces: bool,
    /// Keep the publisher's packets with what is fetched.
    pub(crate) keeps_packets: bool,
    /// Much may be read: shared memory is worth its setting up.
    pub(crate) is_bulk: bool,
    /// Read through the site cache, whatever is configured.
    pub(crate) is_cached: bool,
}

/// A name to read, a client to read it with, and how to make another client once the user has
/// decided about a key.
pub(crate) struct Session {
    pub(crate) name: Name,
    profile: Profile,
    endpoints: Endpoints,
    config: ClientConfig,
    client: Client,
    seen: SeenVersions,
    insecure: bool,
    age_ns: Option<u64>,
    /// A shell may have cut off the link's key.
    is_cut: bool,
}

impl Session {
    /// Connects for `target`.
    pub(crate) fn open(target: &str, args: &ReadArgs, pace: Pace, paths: &Paths) -> Outcome<Self> {
        let profile = settings::profile(paths)?;
        let link = profile.link(target)?;
        let session = Self::open_link(link, profile, args, pace)?;
        Ok(Self { is_cut: may_be_cut(target), ..session })
    }

    /// Connects for a link.
    pub(crate) fn open_link(
        link: Link,
        profile: Profile,
        args: &ReadArgs,
        pace: Pace,
    ) -> Outcome<Self> {
        if link.name.view().count() > DEPTH_MAX {
            return Err(too_long(&link.name));
        }
        let options = options(args, pace)?;
        let endpoints = profile.endpoints(&link, &options)?;
        let config = profile.client_config(&link, &options)?;
        if args.insecure {
            output::err_line("--insecure: nobody's signature is checked, whoever answers decides");
        }
        let (client, seen) = profile.connect(&endpoints, config.clone())?;
        let (name, insecure, age_ns, is_cut) = (link.name, args.insecure, None, false);
        let mut session =
            Self { name, profile, endpoints, config, client, seen, insecure, age_ns, is_cut };
        if args.trust_on_first_use {
            session.trust_on_first_use()?;
        }
        Ok(session)
    }

    /// Runs a read; if it ends at an unknown key and a person is there, asks once and runs it
    /// again.
    pub(crate) fn run<T>(
        &mut self,
        mut read: impl FnMut(&mut Client, &Name) -> Result<T, ClientError>,
    ) -> Outcome<T> {
        let name = self.name.clone();
        let mut result = read(&mut self.client, &name);
        let unknown = result.as_ref().err().and_then(UnknownKey::of);
        if let Some(UnknownKey { identity, key_id, .. }) = unknown
            && ask(&name, &identity, &key_id.to_string())
        {
            self.profile.trust(&identity, key_id)?;
            self.config.trust.add_anchor(identity, key_id);
            let connected = self.profile.connect(&self.endpoints, self.config.clone())?;
            (self.client, self.seen) = connected;
            result = read(&mut self.client, &name);
        }
        if let Some(age_ns) = self.client.versions_mut().take_age_ns() {
            self.age_ns = self.age_ns.max(Some(age_ns));
            let age = output::duration(age_ns / 1_000_000_000);
            let why = if self.config.freshness == Freshness::Offline {
                "the publisher was not asked"
            } else {
                "the publisher does not answer"
            };
            output::err_line(&format!("as of {age} ago: {why}"));
        }
        if let Err(error) = self.seen.save(self.client.versions_mut()) {
            // What was read is whole all the same, or failed for a reason that matters more.
            tracing::warn!("versions seen will not be remembered: {error}");
        }
        result.map_err(|error| self.failed(error))
    }

    /// A failure with what only the caller of the client knows: who was asked, and how.
    fn failed(&self, error: ClientError) -> Failure {
        let unanswered = match &error {
            ClientError::Read(ReadError::NoRoute { name }) => Some((name.clone(), Fate::Refused)),
            ClientError::Read(ReadError::TimeOut { name }) => Some((name.clone(), Fate::Silence)),
            _ => None,
        };
        let mut failure = Failure::from(error);
        if unanswered.as_ref().is_some_and(|(name, _)| has_long_component(name)) {
            return too_long(&self.name);
        }
        if let Some((name, fate)) = unanswered {
            let endpoint: Option<Endpoint> = self.client.endpoint().parse().ok();
            let cause = endpoint.and_then(|it| diagnosis::of(&it, name.view(), fate));
            failure.message = cause.unwrap_or(failure.message);
            // Of several without a choice between them, one was asked.
            let asked = match self.endpoints.asks_all {
                true => self.endpoints.list.iter().map(ToString::to_string).collect(),
                false => vec![self.client.endpoint().to_owned()],
            };
            failure.message.push_str(&format!(" (asked {})", asked.join(", ")));
        }
        if failure.code == Code::UnknownKey && self.is_cut {
            failure = failure.hint(failure::CUT_HINT);
        }
        failure
    }

    /// The client, on a thread of its own, for who asks many things at once.
    pub(crate) fn into_client(self) -> Outcome<byname_client::Session> {
        Ok(byname_client::Session::start(self.client, SessionOptions::default())?)
    }

    /// The forwarders that may be asked, in order.
    pub(crate) fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints.list
    }

    /// Age of the data read, in milliseconds, if it did not come from the publisher.
    pub(crate) fn age_ms(&self) -> Option<u64> {
        self.age_ns.map(|age_ns| age_ns / 1_000_000)
    }

    /// Transport statistics of the current path.
    pub(crate) fn path(&self) -> Value {
        let path = self.client.path();
        json!({
            "endpoint": path.endpoint,
            "controller": path.controller,
            "window": path.window,
            "rtt_us": path.rtt_ns.map(|rtt_ns| rtt_ns / 1000),
            "bytes_per_s": path.pacing_bytes_per_s,
            "requests": path.request_count,
            "overtaken": path.losses.overtaken,
            "timed_out": path.losses.timed_out,
            "congested": path.losses.refused,
            "marks": path.marked_count,
            "frames_dropped": path.dropped_count,
        })
    }

    /// The paths that answers took, the most taken first.
    pub(crate) fn answer_paths(&self) -> Vec<AnswerPath> {
        self.client.path().answer_paths
    }

    /// Bytes and refusals of each of several sources, if a file came from several at once.
    pub(crate) fn sources(&self) -> Vec<Value> {
        let shown = self.client.sources().iter().map(|source| {
            json!({
                "endpoint": source.endpoint,
                "bytes": source.bytes,
                "refused": source.refused_count,
                "left": source.left,
                "answers": source.answer_paths.iter().map(trace::path_json).collect::<Vec<_>>(),
            })
        });
        shown.collect()
    }

    /// The paths that answers of each of several sources took, in words.
    pub(crate) fn source_paths(&self) -> Vec<String> {
        let of_source = |source: &SourceReport| -> Vec<String> {
            let paths = source.answer_paths.iter();
            paths.map(|path| format!("{}: {}", source.endpoint, trace::path_text(path))).collect()
        };
        self.client.sources().iter().flat_map(of_source).collect()
    }

    /// The site cache, if reads go through it.
    pub(crate) fn cache(&self) -> Option<&byname_cache::Cache> {
        self.config.cache.as_ref()
    }

    /// Packets of publishers that were kept with copies, and those that were not.
    pub(crate) fn kept_counts(&self) -> (u64, u64) {
        let copies = self.config.copies.as_ref();
        copies.map_or((0, 0), |copies| (copies.kept_count(), copies.failed_count()))
    }

    /// True if content is taken without authentication.
    pub(crate) fn is_insecure(&self) -> bool {
        self.insecure
    }

    fn trust_on_first_use(&mut self) -> Outcome {
        let name = self.name.clone();
        let found = self.run(|client, _| client.lookup(&name))?;
        if let Trusted::FirstUse { key, identity } = found.trust {
            self.profile.trust(&identity, key)?;
            let shown = output::name(identity.view());
            output::err_line(&format!("{key} is trusted for {shown} from now on"));
        }
        Ok(())
    }
}

/// True for a name that no file or directory can have: publishers of files do not answer for it.
fn has_long_component(name: &Name) -> bool {
    let is_long = |it: Component<'_>| it.typ == GENERIC && it.value.len() > ENTRY_BYTES_MAX;
    name.view().components().any(is_long)
}

fn too_long(name: &Name) -> Failure {
    let text = format!("{} does not exist: a name is too long", output::name(name.view()));
    Failure::new(Code::NotFound, text).hint(format!(
        "a component has at most {ENTRY_BYTES_MAX} octets, a name at most {DEPTH_MAX} components"
    ))
}

/// The user's wishes, as flags say them; a signal requests to stop.
fn options(args: &ReadArgs, pace: Pace) -> Outcome<OpenOptions> {
    let stop = Stop::default();
    watch_signals(&stop)?;
    wishes(args, pace, stop)
}

fn wishes(args: &ReadArgs, pace: Pace, stop: Stop) -> Outcome<OpenOptions> {
    Ok(OpenOptions {
        connect: args.connect.as_deref().map(typed::endpoint).transpose()?,
        via: typed::endpoints(&args.via)?,
        unknown_keys: match (args.insecure, args.trust_on_first_use) {
            (true, _) => UnknownKeys::Insecure,
            (false, true) => UnknownKeys::TrustOnFirstUse,
            (false, false) => UnknownKeys::Refuse,
        },
        freshness: match (args.fresh, args.offline) {
            (true, _) => Freshness::Required,
            (false, true) => Freshness::Offline,
            (false, false) => Freshness::Preferred,
        },
        timeout: args.timeout.map(Duration::from_secs),
        retries: args.retries,
        transfers: pace.transfers,
        bytes_per_second: pace.bytes_per_second,
        min_bytes_per_second: pace.min_bytes_per_second,
        congestion: pace.congestion,
        traces: pace.traces,
        keeps_packets: pace.keeps_packets,
        is_bulk: pace.is_bulk,
        cache: pace.is_cached.then_some(true),
        stop,
    })
}

/// The first Ctrl-C asks to stop in good order, the second ends the process.
pub(crate) fn watch_signals(stop: &Stop) -> Outcome {
    use signal_hook::consts::{SIGINT, SIGTERM};
    for signal in [SIGINT, SIGTERM] {
        let code = 128 + signal;
        signal_hook::flag::register_conditional_shutdown(signal, code, stop.flag())
            .and_then(|_| signal_hook::flag::register(signal, stop.flag()))
            .map_err(|error| Failure::new(Code::Other, format!("signals: {error}")))?;
    }
    Ok(())
}

/// Asks a person, as ssh does. Without one the answer is no.
fn ask(name: &Name, identity: &Name, key: &str) -> bool {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return false;
    }
    let (name, identity) = (output::name(name.view()), output::name(identity.view()));
    output::err_line(&format!("{name} is signed by a key that is not known here:\n  {key}"));
    output::err_line("Compare it with what the publisher's `byname up` printed.");
    output::err_line(&format!("Trust it for {identity} and all below from now on? [y/N]"));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).is_ok()
        && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}
