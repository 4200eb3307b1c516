//! `byname mount`: a published tree as a read-only directory.
//!
//! In the background the program starts itself a second time, in the foreground and without a
//! terminal; that one reports through its standard output when the mount answers, or why it does
//! not. Forking instead would leave threads behind.

mod background;
mod metrics;
mod options;
mod room;
mod trees;

use crate::exit::{Code, Failure, Outcome};
use crate::notify;
use crate::settings;
use crate::target::ReadArgs;
use byname_mount::{Ending, Mount, MountError, MountOptions, PublishedTree, Trees};
use byname_profile::{OpenOptions, Paths, Profile, units};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use trees::Wanted;

/// Seconds for which the step from a name to its version counts unless told otherwise.
const FRESHNESS_S: f64 = 1.0;
/// Pause between two times at which the versions seen are kept.
const KEEP_PAUSE: Duration = Duration::from_secs(60);

/// Mount a published tree as a read-only directory; every byte read from it is verified.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "Examples:
  byname mount /lab/run7 ~/run7              returns when it answers
  byname mount 'byname:/lab?via=…&key=…' /mnt/lab -o allow_other
  byname umount ~/run7

Several trees: mount LINK=seven LINK=eight DIR makes DIR/seven and DIR/eight.
Options for -o, as in /etc/fstab: table, allow_other, noexec, no_cache, no_passthrough, fresh,
offline, insecure, freshness=SECONDS, timeout=SECONDS, retries=N, connect=URI, via=URI, inodes=N,
metrics=ADDRESS:PORT; what mount(8) knows itself is passed over.
docs/mount.md has the rest.")]
pub(crate) struct Args {
    /// Name or link of a directory. Of several, each with =DIRECTORY behind it: its place in the
    /// mount.
    #[arg(required = true, value_name = "TARGET")]
    targets: Vec<String>,
    /// The mount point: a directory.
    directory: PathBuf,
    /// TARGET is a file with a line for each tree: its directory in the mount, and its link.
    #[arg(long)]
    table: bool,
    /// Stay in the foreground.
    #[arg(long)]
    foreground: bool,
    /// Let other users in, as far as owners and modes allow; for who is not root, /etc/fuse.conf
    /// has to say user_allow_other.
    #[arg(long)]
    allow_other: bool,
    /// Time for which the step from a name to its version counts before it is asked again: 500ms,
    /// 3s; a number alone means seconds.
    #[arg(long, value_name = "DURATION", value_parser = units::seconds)]
    freshness: Option<Duration>,
    /// Read nothing from the site cache and keep nothing in it.
    #[arg(long)]
    no_cache: bool,
    /// Read every byte through the verifier, also of large files that are whole in the site cache.
    #[arg(long)]
    no_passthrough: bool,
    /// Names that the system may hold in memory; beyond that it is told to let go of some.
    #[arg(long, value_name = "N", default_value_t = byname_mount::INODES_HELD_MAX)]
    inodes: usize,
    /// Serve metrics for Prometheus at http://ADDRESS/metrics.
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    /// Options as /etc/fstab has them, separated by commas.
    #[arg(short, value_name = "OPTIONS")]
    options: Vec<String>,
    /// Says on standard output how it stands; for the program itself.
    #[arg(long, hide = true, requires = "foreground")]
    report: bool,
    #[command(flatten)]
    read: ReadArgs,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let mut merged = args.clone();
    options::apply(&mut merged)?;
    if !merged.foreground {
        return background::run(&merged, paths);
    }
    if !merged.report {
        return foreground(&merged, paths, &|mount| {
            let shown = mount.path().display();
            crate::output::err_line(&format!("{} is mounted at {shown}", merged.shown()));
        });
    }
    // Signals of the terminal are not for it. It is no group leader, so this does not fail.
    let _ = rustix::process::setsid();
    let outcome = foreground(&merged, paths, &|_| background::report_ready());
    outcome.map_err(|failure| background::report_failure(&failure))
}

/// Mounts and waits for the end.
fn foreground(args: &Args, paths: &Paths, on_ready: &dyn Fn(&Mount)) -> Outcome {
    let (sender, ends) = mpsc::channel();
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| Failure::new(Code::Other, format!("signals: {error}")))?;
    let signalled = sender.clone();
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            let _ = signalled.send(());
        }
        // Whoever asks a second time does not want to wait for the system.
        if signals.forever().next().is_some() {
            std::process::exit(i32::from(Code::Interrupted as u8));
        }
    });
    let profile = settings::profile(paths)?;
    let open = OpenOptions { cache: Some(!args.no_cache), ..args.read.open_options()? };
    let trees = open_trees(args, &profile, &open)?;
    let options = mount_options(args);
    let on_end = Box::new(move || {
        let _ = sender.send(());
    });
    let ending = Ending { stop: open.stop, on_end };
    let mount = Mount::start(trees, &args.directory, &options, ending).map_err(not_mounted)?;
    if let Some(address) = args.metrics
        && let Err(failure) = metrics::serve(address, mount.meter())
    {
        mount.end()?;
        return Err(failure);
    }
    on_ready(&mount);
    notify::ready(&format!("{} at {}", args.shown(), mount.path().display()));
    // Until a signal comes, or the end of the mount.
    while let Err(RecvTimeoutError::Timeout) = ends.recv_timeout(KEEP_PAUSE) {
        mount.keep_versions();
    }
    notify::stopping();
    Ok(mount.end()?)
}

/// Why there is no mount; a directory that is missing is easily made.
fn not_mounted(error: MountError) -> Failure {
    match &error {
        MountError::MountPoint { path, source } if source.kind() == ErrorKind::NotFound => {
            let hint = format!("mkdir -p {}", path.display());
            Failure::from(error).hint(hint)
        }
        _ => error.into(),
    }
}

/// A session for each tree.
fn open_trees(args: &Args, profile: &Profile, open: &OpenOptions) -> Outcome<Trees> {
    let mut several = Vec::new();
    for Wanted { place, target } in trees::wanted(&args.targets, args.table)? {
        let link = profile.link(&target)?;
        let session = profile.open_with(&link, open, byname_client::SessionOptions::default())?;
        let ask_room = match args.read.is_offline() {
            true => None,
            false => room::asker(&link, open, profile),
        };
        let tree = PublishedTree { session, name: link.name, ask_room };
        match place {
            Some(place) => several.push((place, tree)),
            None => return Ok(Trees::One(tree)),
        }
    }
    Ok(Trees::Several(several))
}

impl Args {
    /// What is mounted, for messages.
    fn shown(&self) -> String {
        self.targets.join(" ")
    }
}

fn mount_options(args: &Args) -> MountOptions {
    let default = Duration::from_secs_f64(FRESHNESS_S);
    let freshness = match () {
        () if args.read.is_offline() => None,
        () if args.read.is_fresh() => Some(Duration::ZERO),
        () => Some(args.freshness.unwrap_or(default)),
    };
    MountOptions {
        freshness,
        allow_other: args.allow_other,
        no_exec: options::has(args, "noexec"),
        passes_through: !args.no_passthrough,
        inodes_held_max: args.inodes,
    }
}

impl From<MountError> for Failure {
    fn from(error: MountError) -> Self {
        let text = crate::exit::chain(&error);
        match error {
            MountError::Client(error) => error.into(),
            MountError::NoDevice => Failure::new(Code::LocalDisk, text).hint(
                "load the kernel's module: modprobe fuse; in a container: --device /dev/fuse",
            ),
            MountError::NoHelper => Failure::new(Code::LocalDisk, text)
                .hint("install it (Debian and Fedora: package fuse3), or mount as root"),
            MountError::MountPoint { .. } | MountError::NotADirectory { .. } => {
                Failure::new(Code::LocalDisk, text)
            }
            MountError::Mounted { ref path } => Failure::new(Code::LocalDisk, &text)
                .hint(format!("byname umount {}", path.display())),
            MountError::Refused { .. } => Failure::new(Code::LocalDisk, text).hint(
                "--allow-other needs user_allow_other in /etc/fuse.conf, unless you are root",
            ),
            MountError::NotMounted { .. } | MountError::Busy { .. } => {
                Failure::new(Code::LocalDisk, text)
            }
            MountError::Count { .. } | MountError::Place { .. } | MountError::Overlap { .. } => {
                Failure::usage(text)
            }
            MountError::TreeIsNoDirectory | MountError::Thread(_) => {
                Failure::new(Code::Other, text)
            }
        }
    }
}
