//! A publisher, a mount of what it publishes, and helpers to look at both.

use crate::harness::{Home, Up};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// True if this machine can mount; otherwise says that a test is skipped.
pub(crate) fn can_mount(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    let has_helper = Command::new("fusermount3").arg("--version").output().is_ok();
    if Path::new("/dev/fuse").exists() && (is_root || has_helper) {
        return true;
    }
    let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: /dev/fuse and root or fusermount3");
    false
}

/// True for root; otherwise says that a test is skipped.
pub(crate) fn is_root(test: &str) -> bool {
    if rustix::process::geteuid().is_root() {
        return true;
    }
    let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: only root may do this");
    false
}

/// A published directory that is mounted.
pub(crate) struct Scene {
    pub(crate) publisher: Home,
    pub(crate) reader: Home,
    pub(crate) source: PathBuf,
    pub(crate) mount: PathBuf,
    pub(crate) up: Up,
}

impl Scene {
    /// Publishes what `fill` makes, and mounts it.
    pub(crate) fn new(fill: impl FnOnce(&Path)) -> Self {
        Self::with(&[], &[], fill)
    }

    /// The same with more options for `up` and for `mount`.
    pub(crate) fn with(up: &[&str], mount: &[&str], fill: impl FnOnce(&Path)) -> Self {
        let scene = Self::unmounted(up, fill);
        scene.mount(mount);
        scene
    }

    pub(crate) fn unmounted(up: &[&str], fill: impl FnOnce(&Path)) -> Self {
        let (publisher, reader) = (Home::new(), Home::new());
        let source = publisher.work("source");
        fill(&source);
        age(&source);
        let up = publisher.up_with(&source, "/lab/tree", up);
        let mount = reader.work("mnt");
        Scene { publisher, reader, source, mount, up }
    }

    /// `byname mount`, which returns when the mount answers.
    pub(crate) fn mount(&self, extra: &[&str]) {
        self.mount_command(extra).ok();
    }

    pub(crate) fn mount_command(&self, extra: &[&str]) -> crate::harness::Finished {
        let mut args = vec!["mount", &self.up.link, self.mount.to_str().unwrap()];
        args.extend_from_slice(extra);
        self.reader.run(&args)
    }

    pub(crate) fn umount(&self) {
        self.reader.run(&["umount", self.mount.to_str().unwrap()]).ok();
    }

    /// The process behind the mount.
    pub(crate) fn mount_pid(&self) -> u32 {
        let wanted = self.mount.as_os_str().as_encoded_bytes();
        let is_ours = |entry: &std::fs::DirEntry| {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let words: Vec<&[u8]> = line.split(|octet| *octet == 0).collect();
            words.contains(&wanted) && words.contains(&b"--report".as_slice())
        };
        let found = std::fs::read_dir("/proc").unwrap().flatten().find(is_ours);
        let found = found.expect("a process of the mount");
        found.file_name().to_string_lossy().parse().unwrap()
    }

    /// Kills the process behind the mount, and waits until nobody answers.
    pub(crate) fn kill_mount(&self) {
        crate::harness::signal(self.mount_pid(), "KILL");
        let gone = rustix::io::Errno::NOTCONN;
        let is_dead = || rustix::fs::statvfs(&self.mount).is_err_and(|error| error == gone);
        crate::harness::wait_for("end of the mount", is_dead, || self.log());
    }

    /// Stops the publisher without ending it, and waits until no thread of it runs: the signal
    /// itself only asks one thread to stop the others.
    pub(crate) fn stop_publisher(&self) {
        let pid = self.up.daemon.pid();
        crate::harness::signal(pid, "STOP");
        let is_stopped = |task: std::io::Result<std::fs::DirEntry>| {
            let line = std::fs::read_to_string(task.unwrap().path().join("stat"));
            line.is_ok_and(|line| line.rsplit(')').next().unwrap().starts_with(" T"))
        };
        let tasks = || std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        crate::harness::wait_for("stop", || tasks().all(is_stopped), || self.log());
    }

    /// The log of the mount.
    pub(crate) fn log(&self) -> String {
        let directory = self.reader.path().join("home/state/mounts");
        let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
        files.map(|file| std::fs::read_to_string(file.path()).unwrap_or_default()).collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("log of the mount:\n{}", self.log());
        }
        let _ = self.reader.byname().arg("umount").arg(&self.mount).output();
    }
}

/// Makes all files below old enough to be published at once.
pub(crate) fn age(directory: &Path) {
    sh("find \"$1\" -type f -exec touch -d '1 hour ago' {} +", &[directory]);
}

/// Runs a shell line with `$1`, `$2`, … and returns what it printed; panics unless it succeeded.
#[track_caller]
pub(crate) fn sh(line: &str, arguments: &[&Path]) -> String {
    let output = try_sh(line, arguments);
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{line}\n{out}\n{err}");
    out.into_owned()
}

pub(crate) fn try_sh(line: &str, arguments: &[&Path]) -> Output {
    let mut command = Command::new("sh");
    command.args(["-ec", line, "sh"]).args(arguments);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    command.output().unwrap()
}

/// The number of the error of something that has to fail.
#[track_caller]
pub(crate) fn errno<T: std::fmt::Debug>(result: std::io::Result<T>) -> i32 {
    result.unwrap_err().raw_os_error().expect("an error of the system")
}
