//! `byname disk`: a disk of a site, attached to a forwarder.

use super::daemon::{Endings, state_name};
use crate::exit::{Code, Failure, Outcome, chain};
use crate::typed::endpoint;
use crate::{forwarders, notify, output, settings};
use byname_disk::{
    DiskError, DiskServer, DiskServerConfig, DiskServerError, OpenDisk, Removed, ScrubConfig,
};
use byname_io::Endpoint;
use byname_keychain::Keychain;
use byname_profile::{Paths, units};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Serve a disk of a site: its contents, and the orders of writers and of the head.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname disk /disks/1                     made by `byname site disk add /disks/1`
  byname disk /disks/1 --connect tcp://forwarder.lab:6363
  byname disk /disks/1 --scrub-rate 50M --scrub-every 14d

What is on a disk can be read by whoever reaches the forwarder; docs/site.md.")]
pub(crate) struct Args {
    /// Its directory.
    dir: PathBuf,
    /// Forwarder to attach to, and to pull from writers by.
    #[arg(long, value_name = "URI")]
    connect: Option<String>,
    /// Octets a second at which all that is stored is read anew, at most; 0 for never.
    #[arg(long, value_name = "SIZE", default_value = "20M", value_parser = units::size)]
    scrub_rate: u64,
    /// Time from the beginning of one reading of all to that of the next. It is read as slowly as
    /// that allows.
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = units::age)]
    scrub_every: Duration,
    /// Serve metrics for Prometheus at http://ADDRESS/metrics.
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let profile = settings::profile(paths)?;
    let endpoints = match &args.connect {
        Some(uri) => vec![endpoint(uri)?],
        None => profile.forwarders(true)?,
    };
    let scrub = ScrubConfig { bytes_per_s: args.scrub_rate, every: args.scrub_every };
    let Opened { server: DiskServer { server, reports }, ready, allow } =
        open(&args.dir, (endpoints.clone(), scrub), paths)?;
    let endings = Endings::watch_signals()?;
    let announce = move || {
        output::out_line(&ready);
        notify::ready(&ready);
    };
    let connect = move || forwarders::connect_any(&endpoints);
    let (handle, thread) = endings.spawn_server((server, allow), connect, announce);
    if let Some(address) = args.metrics {
        super::server_metrics::serve_disk(address, handle.clone(), reports)?;
    }
    let outcome = endings.wait();
    notify::stopping();
    handle.stop();
    // One that panicked has said so.
    let _ = thread.join();
    outcome
}

/// A disk's server, the line that says that it serves, and the flags that let it in elsewhere.
pub(crate) struct Opened {
    pub(crate) server: DiskServer,
    pub(crate) ready: String,
    pub(crate) allow: String,
}

/// Opens a disk with its key.
pub(crate) fn open(
    dir: &Path,
    (endpoints, scrub): (Vec<Endpoint>, ScrubConfig),
    paths: &Paths,
) -> Outcome<Opened> {
    notify::preparing("waiting until what is on the file system is durable, looking at all of it");
    let disk = OpenDisk::open(dir.to_owned())?;
    if disk.is_read_only() {
        output::err_line(&format!(
            "{} is on a read-only file system: what it has is served, nothing new is taken",
            dir.display()
        ));
    }
    for quarantined in disk.quarantined() {
        let fate = match quarantined.is_moved {
            true => "put into quarantine",
            false => "not served, and not put into quarantine",
        };
        let (path, why) = (quarantined.path.display(), quarantined.why);
        output::err_line(&format!("{fate}: {path}: {why}"));
    }
    show_removed(disk.removed());
    let prefix = disk.site().disk(disk.name());
    let shown = output::name(prefix.view());
    let keychain = Keychain::open(&paths.keys)?;
    let identity = keychain.identity(prefix.view())?.ok_or_else(|| {
        let message = format!("the key of {shown} is not in {}", keychain.dir().display());
        Failure::new(Code::UnknownKey, message).hint(format!(
            "who made the disk has it; it is taken along with `byname key export '{shown}' \
                 --format safebag` there and `byname key import` here"
        ))
    })?;
    let certificates = keychain.certificates_to_serve(prefix.view())?;
    let allow = format!("--allow-register '{shown}={}'", identity.certificate.key_id());
    let contents = output::count(disk.stored() as u64, "content");
    let ready = format!("serving {} as {shown}: {contents}", dir.display());
    let config = DiskServerConfig {
        signer: Arc::new(identity.signer),
        certificates: certificates.iter().map(|it| it.wire().to_vec()).collect(),
        endpoints,
        other_state: paths.state.join("disk").join(state_name(&prefix)),
        scrub,
    };
    Ok(Opened { server: disk.serve(config)?, ready, allow })
}

/// What a crash has left, or somebody who changed the directory.
fn show_removed(removed: &Removed) {
    for (path, why) in &removed.named {
        output::err_line(&format!("removed: {}: {why}", path.display()));
    }
    if removed.more > 0 {
        output::err_line(&format!("removed: {}", output::count(removed.more as u64, "more file")));
    }
}

impl From<DiskError> for Failure {
    fn from(error: DiskError) -> Self {
        let failure = Self::new(Code::LocalDisk, chain(&error));
        match error {
            DiskError::NoLabel { .. } => {
                failure.hint("`byname site disk add DIR` makes a disk of an empty directory")
            }
            DiskError::Locked { .. } => failure.hint("is another `byname disk` running?"),
            _ => failure,
        }
    }
}

impl From<DiskServerError> for Failure {
    fn from(error: DiskServerError) -> Self {
        match error {
            DiskServerError::Disk(error) => error.into(),
            DiskServerError::Store(error) => error.into(),
            other => Self::new(Code::LocalDisk, chain(&other)),
        }
    }
}
