//! `byname catalog`: the head of a site, attached to a forwarder.

use super::daemon::Endings;
use super::site::defaults;
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use crate::typed::endpoint;
use crate::{forwarders, notify, settings};
use byname_catalog::RESERVED_PERCENT;
use byname_head::{EngineAddress, Head, HeadServer, LeadConfig, Rates, RepairConfig};
use byname_io::Clock;
use byname_keychain::Keychain;
use byname_profile::{Link, Paths, Profile, units};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Longest time for which content can be asked to stay.
const KEPT_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// Leases that can be asked for.
const LEASES: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(300);
/// The lease where there are no other heads.
pub(crate) const LEASE: Duration = Duration::from_secs(5);

/// Time that a head which is ended waits for another one to lead.
const HANDOVER: Duration = Duration::from_secs(1);

/// Serve a site's catalog: its paths and the commands that change them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname catalog /lab                      the site made by `byname site init /lab`
  byname catalog --dir /var/lib/byname/lab
  byname catalog /lab --connect tcp://forwarder.lab:6363

Names and content of a site can be read by whoever reaches the forwarder; docs/site.md.")]
pub(crate) struct Args {
    /// The site.
    #[arg(required_unless_present = "dir")]
    site: Option<String>,
    /// Its directory.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The engine, if this machine's directory does not say: see `byname site init`.
    #[arg(long, value_name = "ENGINE", env = "BYNAME_ENGINE", hide_env_values = true)]
    engine: Option<EngineAddress>,
    /// Forwarder to attach to.
    #[arg(long, value_name = "URI")]
    connect: Option<String>,
    /// Time for which content stays that nothing leads to any more: 10m, 2h.
    #[arg(long, value_name = "DURATION", value_parser = kept, default_value = "10m")]
    keep_versions: Duration,
    /// Time after which another head of the site leads when this one does not renew its lease: a
    /// second or more. The same for all heads of a site.
    #[arg(long, value_name = "DURATION", value_parser = lease, default_value = "5s")]
    lease: Duration,
    /// Octets a second that replicas may take which are made elsewhere: of disks that are drained,
    /// or gone.
    #[arg(long, value_name = "SIZE", value_parser = units::size, default_value = "100M")]
    repair_rate: u64,
    /// Time for which a disk does not answer, or is off, until its replicas are made elsewhere.
    #[arg(long, value_name = "DURATION", value_parser = kept, default_value = "1h")]
    repair_after: Duration,
    /// Commands and questions that a user may send a second, whatever the connections; more have to
    /// wait. No bound unless it is given.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    user_rate: Option<u64>,
    /// The same for a door, for all its users.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    door_rate: Option<u64>,
    /// Share of a space's room that a user without a quota may have reserved, in percent of what
    /// others have left, for files that are not there yet; 100 is all of it. The same for all heads
    /// of a site.
    #[arg(long, value_name = "PERCENT", default_value_t = RESERVED_PERCENT,
        value_parser = clap::value_parser!(u8).range(1..=100))]
    reserve_max: u8,
    /// Serve metrics for Prometheus at http://ADDRESS/metrics.
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
}

/// Times and bounds of a head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// Time for which content stays that nothing leads to any more.
    pub(crate) keep_versions: Duration,
    /// Time after which another head leads.
    pub(crate) lease: Duration,
    /// Time after which replicas of a disk that is gone are made elsewhere.
    pub(crate) repair_after: Duration,
    /// Octets a second that this may take.
    pub(crate) repair_rate: u64,
    /// Commands and questions that may be sent a second.
    pub(crate) rates: Rates,
    /// Share of a space's room that one user may reserve, in percent.
    pub(crate) reserved_percent: u8,
}

impl Times {
    /// Those of a head on which people did not say much.
    pub(crate) fn keeping(keep_versions: Duration) -> Self {
        let (lease, repair) = (LEASE, RepairConfig::default());
        let repair_after = Duration::from_nanos(repair.after_ns);
        let repair_rate = repair.bytes_per_s;
        let (rates, reserved_percent) = (Rates::default(), RESERVED_PERCENT);
        Self { keep_versions, lease, repair_after, repair_rate, rates, reserved_percent }
    }
}

impl Args {
    fn times(&self) -> Times {
        let Self { keep_versions, lease, repair_after, repair_rate, .. } = *self;
        let rates = Rates { user: self.user_rate, door: self.door_rate };
        let reserved_percent = self.reserve_max;
        Times { keep_versions, lease, repair_after, repair_rate, rates, reserved_percent }
    }
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let profile = settings::profile(paths)?;
    let directory = defaults::directory(args.site.as_deref(), args.dir.as_deref(), paths)?;
    let head = Head::open_to_serve(&directory, args.engine.as_ref())?;
    let (server, link) = open(&profile, head, args.times())?;
    let allow = allow_flag(&link);
    let HeadServer { server, counters, watch, rest, handover } = server;
    let candidates = match &args.connect {
        Some(uri) => vec![endpoint(uri)?],
        None => profile.forwarders(true)?,
    };
    let endings = Endings::watch_signals()?;
    let announce = move || {
        output::out_line(&link.to_string());
        notify::ready("serving the catalog");
    };
    let (to_disks, to_forwarder) = (candidates.clone(), candidates);
    let connect = move || forwarders::connect_any(&to_forwarder);
    let (handle, thread) = endings.spawn_server((server, allow), connect, announce);
    let watched = watch.start(move || forwarders::connect_any(&to_disks));
    watched.map_err(|error| Failure::new(Code::Other, format!("no thread: {error}")))?;
    if let Some(address) = args.metrics {
        super::server_metrics::serve_head(address, handle.clone(), counters)?;
    }
    let outcome = endings.wait();
    notify::stopping();
    if let Some(handover) = handover.filter(|_| outcome.is_ok()) {
        handover.wait(HANDOVER);
    }
    handle.stop();
    // One that panicked has said so.
    let _ = thread.join();
    rest.begin();
    outcome
}

/// The head's server, with the link that readers and users give.
pub(crate) fn open(profile: &Profile, head: Head, times: Times) -> Outcome<(HeadServer, Link)> {
    let name = head.site().view().to_name();
    let keychain = Keychain::open(&profile.paths().keys)?;
    let shown = output::name(name.view());
    let identity = keychain.identity(name.view())?.ok_or_else(|| {
        let message = format!("the key of {shown} is not in {}", keychain.dir().display());
        Failure::new(Code::UnknownKey, message)
            .hint("`byname site init` made it for the user who ran it")
    })?;
    let certificates = keychain.certificates_to_serve(name.view())?;
    let certificates = certificates.iter().map(|it| it.wire().to_vec()).collect();
    let key = Some(identity.certificate.key_id());
    let link = Link { key, ..Link::of_name(name) };
    let nanoseconds = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    let Times { rates, reserved_percent, .. } = times;
    let (kept_ns, lease_ns) = (nanoseconds(times.keep_versions), nanoseconds(times.lease));
    let on_role = Box::new(|leads: bool| {
        output::err_line(if leads {
            "this head leads"
        } else {
            "this head does not lead any more"
        });
    });
    let after_ns = nanoseconds(times.repair_after);
    let repair = RepairConfig { bytes_per_s: times.repair_rate, after_ns };
    let unix_ns = Clock::new().unix_ns();
    let config =
        LeadConfig { unix_ns, kept_ns, reserved_percent, lease_ns, repair, rates, on_role };
    let server = head.lead(Arc::new(identity.signer), certificates, config)?;
    Ok((server, link))
}

/// The flag with which a forwarder elsewhere lets a head register the site.
fn allow_flag(link: &Link) -> String {
    let name = output::name(link.name.view());
    link.key.map(|key| format!("--allow-register '{name}={key}'")).unwrap_or_default()
}

/// Reads how long a lease is.
fn lease(text: &str) -> Result<Duration, BadDuration> {
    let is_fit = |span: &Duration| LEASES.contains(span);
    units::age(text).ok().filter(is_fit).ok_or(BadDuration("a duration of 1s to 5m"))
}

/// Reads how long content is kept.
pub(crate) fn kept(text: &str) -> Result<Duration, BadDuration> {
    units::age(text)
        .ok()
        .filter(|span| *span <= KEPT_MAX)
        .ok_or(BadDuration("a duration up to 30d"))
}

/// A text that is no duration.
#[derive(Debug, thiserror::Error)]
#[error("{0} is wanted, such as 10m or 30s")]
pub(crate) struct BadDuration(&'static str);
