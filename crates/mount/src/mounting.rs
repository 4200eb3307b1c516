//! Attaching a tree to a directory, and detaching it.
//!
//! Root mounts by the system call, others by `fusermount3`. A mount point whose process was killed
//! answers ENOTCONN; the next mount replaces it. Detaching is lazy: it works while the tree is in
//! use, and nothing new finds it.

mod table;

use std::fs;
use std::io;
use std::mem::ManuallyDrop;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use byname_client::Stop;
use byname_packet::Name;
use fuser::{Config, INodeNo, MountOption, SessionACL};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount as detach};

use crate::attributes::{Attributes, Kind};
use crate::error::MountError;
use crate::filesystem::{Mounted, OnEnd, READ_BYTES_MAX};
use crate::inodes::Inodes;
use crate::interrupts::Interrupts;
use crate::levels::MountMeter;
use crate::owners::Owners;
use crate::passing::Passing;
use crate::sources::{PublishedTree, Sources, Trees};
use crate::tasks::Tasks;
use crate::tree::{Change, Rules, Tree};

/// Entries that the kernel can be told of and was not yet.
const CHANGES_MAX: usize = 1024;
/// Most threads that take requests from the kernel.
const THREADS_MAX: usize = 8;
/// The kernel's type of these mounts in `/proc/self/mountinfo` and `mount -t`.
const SUBTYPE: &str = "byname";
const HELPER: &str = "fusermount3";

/// Wishes for a mount.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// Age up to which the step from a name to its version counts; `None` for any.
    pub freshness: Option<Duration>,
    /// Other users may look, too, as owners and modes allow.
    pub allow_other: bool,
    /// Nothing there may be executed.
    pub no_exec: bool,
    /// The kernel reads large files that are whole in the site cache by itself, if it can. Each
    /// was verified as a whole since this machine started and was not written to since; what the
    /// disk makes of it afterwards is not seen.
    pub passes_through: bool,
    /// Inodes that the kernel may hold; beyond that it is told to let go of some. Each takes about
    /// 500 octets here, and twice that in the kernel.
    pub inodes_held_max: usize,
}

/// Inodes that the kernel may hold unless told otherwise.
pub const INODES_HELD_MAX: usize = 262_144;

impl Default for MountOptions {
    fn default() -> Self {
        let freshness = Some(Duration::from_secs(1));
        MountOptions {
            freshness,
            allow_other: false,
            no_exec: false,
            passes_through: true,
            inodes_held_max: INODES_HELD_MAX,
        }
    }
}

/// How a mount ends.
pub struct Ending {
    /// The one that the session was opened with: all calls end when it is requested.
    pub stop: Stop,
    /// Called when the tree was unmounted and nobody uses it any more.
    pub on_end: OnEnd,
}

/// A tree that is mounted.
pub struct Mount {
    /// Never dropped: fuser would unmount the path, whatever is mounted there by then.
    session: ManuallyDrop<fuser::BackgroundSession>,
    tree: Arc<Tree>,
    path: PathBuf,
    device: Option<u64>,
    stop: Stop,
}

impl Mount {
    /// Mounts trees at a directory.
    ///
    /// # Errors
    /// [`MountError`]: the tree does not answer, the mount point does not fit, or the system
    /// refuses.
    pub fn start(
        trees: Trees,
        mount_point: &Path,
        options: &MountOptions,
        ending: Ending,
    ) -> Result<Self, MountError> {
        check_system()?;
        let Ending { stop, on_end } = ending;
        let path = clear(mount_point)?;
        let sources = Sources::new(trees)?;
        let (name, attributes) = root(&sources)?;
        let config = config(&sources, options);
        let (sender, receiver) = mpsc::sync_channel(CHANGES_MAX);
        let owners =
            Owners::new(rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        let inodes = Inodes::new(name, Arc::new(attributes), 0);
        let tasks = Tasks::start().map_err(MountError::Thread)?;
        let (passing, interrupts) = (Passing::new(tasks.timers()), Interrupts::new(tasks.timers()));
        let MountOptions { freshness, inodes_held_max, .. } = *options;
        let rules = Rules { freshness, passing, interrupts, inodes_held_max };
        let tree = Arc::new(Tree::new(sources, inodes, owners, rules, sender));
        let refused = |source| MountError::Refused { path: path.clone(), source };
        let mounted = Mounted {
            tree: Arc::clone(&tree),
            tasks,
            passes_through: options.passes_through,
            on_end: Some(on_end),
        };
        let session = fuser::Session::new(mounted, &path, &config);
        let session = session.map_err(refused)?.spawn().map_err(refused)?;
        let session = ManuallyDrop::new(session);
        let device = fs::metadata(&path).ok().map(|metadata| metadata.dev());
        let mount = Mount { session, tree, path, device, stop };
        if let Err(error) = mount.begin(receiver) {
            mount.end()?;
            return Err(MountError::Thread(error));
        }
        Ok(mount)
    }

    fn begin(&self, changes: mpsc::Receiver<Change>) -> io::Result<()> {
        if let Some(device) = self.device {
            raise_readahead(device);
        }
        tell_kernel(self.session.notifier(), changes)
    }

    /// The directory, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps the versions seen so far, so that a later run is not given older ones. A program that
    /// runs for long calls this now and then.
    pub fn keep_versions(&self) {
        self.tree.keep_versions();
    }

    /// Reads its numbers.
    pub fn meter(&self) -> MountMeter {
        MountMeter(Arc::clone(&self.tree))
    }

    /// Unmounts and ends. Calls that wait end with EIO, and so does what is open.
    ///
    /// # Errors
    /// [`MountError::Busy`] if the system refuses.
    pub fn end(self) -> Result<(), MountError> {
        self.keep_versions();
        self.stop.request();
        // Somebody may have unmounted it, and mounted something else.
        match self.device.is_some() && table::device_at(&self.path) == self.device {
            true => detach_now(&self.path),
            false => Ok(()),
        }
    }
}

fn check_system() -> Result<(), MountError> {
    if !Path::new("/dev/fuse").exists() {
        return Err(MountError::NoDevice);
    }
    let is_helped = rustix::process::geteuid().is_root() || helper_exists();
    if is_helped { Ok(()) } else { Err(MountError::NoHelper) }
}

fn helper_exists() -> bool {
    Command::new(HELPER).arg("--version").output().is_ok()
}

/// The mount point, free for use: a dead mount that is there is taken away.
fn clear(mount_point: &Path) -> Result<PathBuf, MountError> {
    let error = |source| MountError::MountPoint { path: mount_point.to_owned(), source };
    // Attributes may come from the kernel's memory; this does not.
    if let Err(Errno::NOTCONN) = rustix::fs::statvfs(mount_point) {
        let path = std::path::absolute(mount_point).map_err(error)?;
        tracing::info!(path = %path.display(), "a mount whose process is gone is replaced");
        detach_now(&path)?;
    }
    let path = fs::canonicalize(mount_point).map_err(error)?;
    if !fs::metadata(&path).map_err(error)?.is_dir() {
        return Err(MountError::NotADirectory { path });
    }
    match table::is_ours(&path) {
        true => Err(MountError::Mounted { path }),
        false => Ok(path),
    }
}

/// Name and attributes of the directory at the mount point, once all trees have answered.
fn root(sources: &Sources) -> Result<(Name, Attributes), MountError> {
    let mut only = None;
    for PublishedTree { session, name, .. } in sources.trees() {
        let attributes = Attributes::of_stat(&session.stat(name)?);
        if attributes.kind != Kind::Directory {
            return Err(MountError::TreeIsNoDirectory);
        }
        only = Some((name.clone(), attributes));
    }
    if let (None, Some(only)) = (sources.top(), only) {
        return Ok(only);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mtime_ns = u64::try_from(now.as_nanos()).unwrap_or(0);
    Ok((Name::default(), Attributes { mtime_ns, ..Attributes::undescribed(Kind::Directory) }))
}

fn config(sources: &Sources, options: &MountOptions) -> Config {
    let names = sources.trees().iter().map(|tree| tree.name.view().to_user());
    // A comma would begin another option.
    let shown = names.collect::<Vec<_>>().join("+").replace(',', "%2C");
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(shown),
        MountOption::CUSTOM(format!("subtype={SUBTYPE}")),
        MountOption::RO,
        MountOption::DefaultPermissions,
        MountOption::NoSuid,
        MountOption::NoDev,
    ];
    if options.no_exec {
        config.mount_options.push(MountOption::NoExec);
    }
    if options.allow_other {
        config.acl = SessionACL::All;
    }
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    config.n_threads = Some(processors.clamp(2, THREADS_MAX));
    config.clone_fd = true;
    config
}

/// Tells the kernel of entries that changed, on a thread of its own: the kernel may wait for a
/// lookup in the same directory to end.
fn tell_kernel(notifier: fuser::Notifier, changes: mpsc::Receiver<Change>) -> io::Result<()> {
    let thread = std::thread::Builder::new().name("byname-changes".to_owned());
    thread.spawn(move || {
        for (directory, name) in changes {
            let name = std::os::unix::ffi::OsStrExt::from_bytes(name.as_slice());
            if let Err(error) = notifier.inval_entry(INodeNo(directory), name) {
                tracing::debug!(%error, "the kernel was not told of a change");
            }
        }
    })?;
    Ok(())
}

/// Lets the kernel read ahead as much as it asks for at once; by itself it stops at 128 KiB. Only
/// root may, others have the session's readahead.
fn raise_readahead(device: u64) {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let setting = format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb");
    if let Err(error) = fs::write(setting, format!("{}", READ_BYTES_MAX >> 10)) {
        tracing::debug!(%error, "the kernel's readahead stays as it is");
    }
}

/// Unmounts the tree at a directory, also while it is in use.
///
/// # Errors
/// [`MountError::NotMounted`], or [`MountError::Busy`] if the system refuses.
pub fn unmount(mount_point: &Path) -> Result<(), MountError> {
    let error = |source| MountError::MountPoint { path: mount_point.to_owned(), source };
    // Not canonical: that would look at the mount, which may be dead.
    let path = std::path::absolute(mount_point).map_err(error)?;
    let path = match table::is_ours(&path) {
        true => path,
        false => fs::canonicalize(&path).map_err(error)?,
    };
    if !table::is_ours(&path) {
        return Err(MountError::NotMounted { path });
    }
    detach_now(&path)
}

fn detach_now(path: &Path) -> Result<(), MountError> {
    let busy = |source| MountError::Busy { path: path.to_owned(), source };
    match detach(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
        Ok(()) => Ok(()),
        Err(Errno::PERM) => {
            let output = Command::new(HELPER).args(["-u", "-z", "--"]).arg(path).output();
            let output = output.map_err(busy)?;
            if output.status.success() {
                return Ok(());
            }
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(busy(io::Error::other(said)))
        }
        Err(error) => Err(busy(error.into())),
    }
}
