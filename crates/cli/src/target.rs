//! From what a user types (a name or a link, and flags) to a connected client that trusts what it
//! should.

use crate::commands::daemon::{endpoint, keychain_failure};
use crate::commands::trust::trust_failure;
use crate::exit::{Code, Failure, Outcome, chain};
use crate::output;
use crate::paths::Paths;
use crate::seen;
use crate::settings::Settings;
use byname_client::{Client, ClientConfig, ClientError, Copies, Stop, default_endpoints_with};
use byname_io::Endpoint;
use byname_keychain::{Keychain, TrustStore};
use byname_packet::Name;
use byname_security::link::Link;
use byname_security::trust::{TrustError, TrustPolicy, Trusted, UnknownKeys};
use byname_transfer::congestion::Congestion;
use byname_transfer::error::{ProtocolProblem, ReadError};
use byname_transfer::freshness::Freshness;
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Flags of every command that reads.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ReadArgs {
    /// Forwarder to ask: unix:///path, tcp://host[:port], udp://host[:port].
    #[arg(long, value_name = "URI")]
    connect: Option<String>,
    /// Forwarder or server (`byname serve --listen`) to read from; given again, the next is asked
    /// when one is silent, gone or sends what is not genuine.
    #[arg(long, value_name = "URI", conflicts_with = "connect")]
    via: Vec<String>,
    /// Accept whatever whoever answers sends: nothing is authenticated.
    #[arg(long, conflicts_with = "trust_on_first_use")]
    insecure: bool,
    /// Trust and keep the key of a name met for the first time. For scripts.
    #[arg(long)]
    trust_on_first_use: bool,
    /// Take nothing but what the publisher says now; by default, when it does not answer, the
    /// newest that a cache or mirror has is taken, never older than seen before, and its age told.
    #[arg(long, conflicts_with = "offline")]
    fresh: bool,
    /// Do not ask the publisher: take what a cache or mirror has.
    #[arg(long)]
    offline: bool,
    /// Seconds of silence that count as failure.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,
    /// Retransmissions of one Interest.
    #[arg(long, value_name = "N")]
    retries: Option<u32>,
}

/// What the reader of one command adds to the flags of all.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pace {
    pub(crate) transfers: Option<u64>,
    pub(crate) bytes_per_second: Option<u64>,
    /// Slower than this for a minute is a failure.
    pub(crate) min_bytes_per_second: u64,
    pub(crate) congestion: Congestion,
    /// Keep the publisher's packets with what is fetched.
    pub(crate) keeps_packets: bool,
    /// Much may be read: shared memory is worth its setting up.
    pub(crate) is_bulk: bool,
}

/// A name to read, a client to read it with, and how to make another client once the user has
/// decided about a key.
pub(crate) struct Session<'a> {
    pub(crate) name: Name,
    paths: &'a Paths,
    endpoints: Vec<Endpoint>,
    config: ClientConfig,
    client: Client,
    insecure: bool,
    age_ns: Option<u64>,
}

/// Where to look for a forwarder when neither a flag nor a link says.
pub(crate) fn search(settings: &Settings, paths: &Paths) -> Outcome<Vec<Endpoint>> {
    match settings.text("client.connect") {
        Some(uri) => Ok(vec![endpoint(&uri)?]),
        None => Ok(default_endpoints_with(&paths.socket()?)),
    }
}

/// The same for whoever carries much: a forwarder of this user or of root by shared memory first.
pub(crate) fn search_bulk(settings: &Settings, paths: &Paths) -> Outcome<Vec<Endpoint>> {
    let mut endpoints = search(settings, paths)?;
    let own = Endpoint::Unix(paths.socket()?);
    let memory = paths.memory_socket()?;
    if endpoints.first() == Some(&own) && is_trusted_socket(&memory) {
        endpoints.insert(0, Endpoint::Memif { path: memory, id: 0, role: None });
    }
    Ok(endpoints)
}

/// Whether a socket is there that others cannot have made.
fn is_trusted_socket(path: &Path) -> bool {
    let own_uid = rustix::process::geteuid().as_raw();
    std::fs::symlink_metadata(path).is_ok_and(|found| {
        found.file_type().is_socket() && (found.uid() == own_uid || found.uid() == 0)
    })
}

/// A link, or a name without address and key.
fn parse(target: &str) -> Outcome<Link> {
    if Link::is_link(target) {
        return target.parse().map_err(Failure::usage);
    }
    let name = Name::from_user(target).map_err(Failure::usage)?;
    Ok(Link { name, via: Vec::new(), key: None })
}

impl<'a> Session<'a> {
    /// Connects for `target`.
    pub(crate) fn open(
        target: &str,
        args: &ReadArgs,
        pace: Pace,
        paths: &'a Paths,
    ) -> Outcome<Self> {
        let settings = Settings::load(paths)?;
        let link = parse(target)?;
        let endpoints = match &args.connect {
            Some(uri) => vec![endpoint(uri)?],
            None if !args.via.is_empty() => {
                args.via.iter().map(|uri| endpoint(uri)).collect::<Outcome<_>>()?
            }
            None if !link.via.is_empty() => {
                link.via.iter().map(|uri| endpoint(uri)).collect::<Outcome<_>>()?
            }
            None if pace.is_bulk => search_bulk(&settings, paths)?,
            None => search(&settings, paths)?,
        };
        let mut config = config(args, pace, &link, &settings, paths)?;
        config.asks_all = args.connect.is_none() && !(args.via.is_empty() && link.via.is_empty());
        if args.insecure {
            output::err_line("--insecure: nobody's signature is checked, whoever answers decides");
        }
        let client = connect(&endpoints, &config, paths)?;
        let name = link.name;
        let mut session =
            Self { name, paths, endpoints, config, client, insecure: args.insecure, age_ns: None };
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
        if let Err(ClientError::Read(ReadError::Trust(TrustError::UnknownKey {
            key_id,
            identity,
            ..
        }))) = &result
            && ask(&name, identity, &key_id.to_string())
        {
            let mut store = TrustStore::open(&self.paths.trust).map_err(|e| trust_failure(&e))?;
            store.add_anchor(identity.clone(), *key_id).map_err(|e| trust_failure(&e))?;
            self.config.trust.add_anchor(identity.clone(), *key_id);
            self.client = connect(&self.endpoints, &self.config, self.paths)?;
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
        if let Err(unsaved) = seen::save(self.paths, self.client.versions_mut()) {
            // What was read is whole all the same, or failed for a reason that matters more.
            tracing::warn!("versions seen will not be remembered: {}", unsaved.message);
        }
        result.map_err(|error| failure(&error))
    }

    /// The forwarders that may be asked, in order.
    pub(crate) fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// How old what was read is, in milliseconds, if it did not come from the publisher.
    pub(crate) fn age_ms(&self) -> Option<u64> {
        self.age_ns.map(|age_ns| age_ns / 1_000_000)
    }

    /// What the reading has shown about the way to whoever was asked.
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

    /// What each of several sources has brought, if a file came from several at once.
    pub(crate) fn sources(&self) -> Vec<Value> {
        let shown = self.client.sources().iter().map(|source| {
            json!({
                "endpoint": source.endpoint,
                "bytes": source.bytes,
                "refused": source.refused_count,
                "left": source.left,
            })
        });
        shown.collect()
    }

    /// Packets of publishers that were kept with copies, and those that were not.
    pub(crate) fn kept_counts(&self) -> (u64, u64) {
        let copies = self.config.copies.as_ref();
        copies.map_or((0, 0), |copies| (copies.kept_count(), copies.failed_count()))
    }

    /// Whether content is taken without authentication.
    pub(crate) fn is_insecure(&self) -> bool {
        self.insecure
    }

    fn trust_on_first_use(&mut self) -> Outcome {
        let name = self.name.clone();
        let found = self.run(|client, _| client.stat(&name))?;
        if let Trusted::FirstUse { key, identity } = found.trust {
            let mut store = TrustStore::open(&self.paths.trust).map_err(|e| trust_failure(&e))?;
            store.add_anchor(identity.clone(), key).map_err(|e| trust_failure(&e))?;
            let shown = output::name(identity.view());
            output::err_line(&format!("{key} is trusted for {shown} from now on"));
        }
        Ok(())
    }
}

fn config(
    args: &ReadArgs,
    pace: Pace,
    link: &Link,
    settings: &Settings,
    paths: &Paths,
) -> Outcome<ClientConfig> {
    let unknown_keys = match (args.insecure, args.trust_on_first_use) {
        (true, _) => UnknownKeys::Insecure,
        (false, true) => UnknownKeys::TrustOnFirstUse,
        (false, false) => UnknownKeys::Refuse,
    };
    let mut trust = policy(paths, unknown_keys)?;
    if let Some(key) = link.key {
        trust.add_anchor(link.name.clone(), key);
    }
    let bytes_per_second =
        pace.bytes_per_second.unwrap_or_else(|| settings.number("client.bwlimit"));
    let transfers = pace.transfers.unwrap_or_else(|| settings.number("client.transfers"));
    let timeout_s = args.timeout.unwrap_or_else(|| settings.number("client.timeout_s"));
    let retries = settings.number("client.retries");
    let stop = Stop::default();
    watch_signals(&stop)?;
    Ok(ClientConfig {
        trust,
        timeout: Duration::from_secs(timeout_s.max(1)),
        retries: args.retries.unwrap_or(u32::try_from(retries).unwrap_or(u32::MAX)),
        transfers: usize::try_from(transfers).unwrap_or(1).max(1),
        bytes_per_second: (bytes_per_second > 0).then_some(bytes_per_second),
        min_bytes_per_second: pace.min_bytes_per_second,
        congestion: pace.congestion,
        freshness: match (args.fresh, args.offline) {
            (true, _) => Freshness::Required,
            (false, true) => Freshness::Offline,
            (false, false) => Freshness::Preferred,
        },
        copies: pace.keeps_packets.then(|| Arc::new(Copies::new(paths.copies.clone()))),
        stop,
        ..ClientConfig::default()
    })
}

/// Whom to believe. A reader needs no state of its own: it may run where it cannot write.
fn policy(paths: &Paths, unknown_keys: UnknownKeys) -> Outcome<TrustPolicy> {
    let is_absent = |dir: &std::path::Path| matches!(dir.try_exists(), Ok(false));
    if is_absent(&paths.keys) && is_absent(&paths.trust) {
        return Ok(TrustPolicy { unknown_keys, ..TrustPolicy::default() });
    }
    let keychain = Keychain::open(&paths.keys).map_err(|error| keychain_failure(&error))?;
    let store = TrustStore::open(&paths.trust).map_err(|error| trust_failure(&error))?;
    keychain.trust_policy(&store, unknown_keys).map_err(|error| keychain_failure(&error))
}

/// The first Ctrl-C asks to stop in good order, the second ends the process.
fn watch_signals(stop: &Stop) -> Outcome {
    use signal_hook::consts::{SIGINT, SIGTERM};
    for signal in [SIGINT, SIGTERM] {
        let code = 128 + signal;
        signal_hook::flag::register_conditional_shutdown(signal, code, stop.flag())
            .and_then(|_| signal_hook::flag::register(signal, stop.flag()))
            .map_err(|error| Failure::new(Code::Other, format!("signals: {error}")))?;
    }
    Ok(())
}

fn connect(endpoints: &[Endpoint], config: &ClientConfig, paths: &Paths) -> Outcome<Client> {
    let mut client = Client::connect(endpoints, config.clone()).map_err(|e| failure(&e))?;
    seen::load(paths, client.versions_mut())?;
    Ok(client)
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

/// Whether a directory was asked for and a file is there.
pub(crate) fn is_a_file(error: &ClientError) -> bool {
    let ClientError::Read(ReadError::Protocol { problem, .. }) = error else { return false };
    *problem == ProtocolProblem::Kind { is_directory: false }
}

/// The exit code and the advice for an error of the client.
pub(crate) fn failure(error: &ClientError) -> Failure {
    let text = chain(error);
    match error {
        ClientError::Read(error) => read_failure(error, text),
        ClientError::NoForwarder { .. }
        | ClientError::NoEndpoint { .. }
        | ClientError::Unreachable { .. } => Failure::new(Code::NoRoute, text)
            .hint("is the publisher's `byname up` running? --connect URI names another forwarder"),
        ClientError::Disconnected { .. } => Failure::new(Code::NoRoute, text)
            .hint("run the same command again to go on where it stopped"),
        ClientError::NoProgress { .. } => Failure::new(Code::NoRoute, text),
        ClientError::LocalDisk { .. } | ClientError::InTheWay { .. } => {
            Failure::new(Code::LocalDisk, text)
        }
        ClientError::Exists { .. } => Failure::new(Code::LocalDisk, text),
        ClientError::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            Failure::new(Code::Other, "")
        }
        ClientError::Output(_) => Failure::new(Code::LocalDisk, text),
        ClientError::Interrupted => Failure::new(Code::Interrupted, "interrupted")
            .hint("run the same command again to go on where it stopped"),
        _ => Failure::new(Code::Other, text),
    }
}

fn read_failure(error: &ReadError, text: String) -> Failure {
    match error {
        ReadError::NotFound { .. } => Failure::new(Code::NotFound, text),
        ReadError::NoRoute { .. } => Failure::new(Code::NoRoute, text)
            .hint("is the name right, and is its publisher running?"),
        ReadError::TimeOut { .. } | ReadError::RootPending { .. } | ReadError::NotFresh { .. } => {
            Failure::new(Code::NoRoute, text)
        }
        ReadError::NoPermission { .. } => Failure::new(Code::LocalDisk, text),
        ReadError::RolledBack { name, .. } => {
            let name = output::name(name.view());
            Failure::new(Code::NotVerified, text)
                .hint(format!("to accept the older version: byname trust forget '{name}'"))
        }
        ReadError::Trust(TrustError::NoCertificate { .. }) => Failure::new(Code::UnknownKey, text),
        ReadError::Trust(error) if error.is_unknown_key() => Failure::new(Code::UnknownKey, text),
        ReadError::Trust(_) | ReadError::BadUnit { .. } | ReadError::BadNode { .. } => {
            Failure::new(Code::NotVerified, text)
        }
        ReadError::Protocol { problem: ProtocolProblem::Kind { is_directory }, .. } => {
            let hint = if *is_directory { "to fetch a directory: byname get -r" } else { "" };
            let failure = Failure::new(Code::Other, text);
            if hint.is_empty() { failure } else { failure.hint(hint) }
        }
        ReadError::Protocol { .. } => Failure::new(Code::NotVerified, text),
        ReadError::VersionGone { .. }
        | ReadError::BeingWritten { .. }
        | ReadError::Unservable { .. } => Failure::new(Code::Other, text),
    }
}
