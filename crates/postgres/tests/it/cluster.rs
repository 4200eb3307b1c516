//! A PostgreSQL server of this test's own, in a temporary directory, on a Unix socket. It ends with
//! the test, also with one that is killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// The user that is the server's, where the tests are run by root: it refuses to be root.
const SERVER_USER: &str = "postgres";
/// Name of a standby at its primary.
const STANDBY: &str = "standby";

/// A server.
pub(crate) struct Cluster {
    directory: tempfile::TempDir,
    /// Ends the server when this process is gone.
    keeper: Child,
}

impl Cluster {
    /// A new server, which runs.
    pub(crate) fn start() -> Self {
        let cluster = Self::empty();
        let mut initdb = as_server(program("initdb"));
        initdb.arg("-D").arg(cluster.data()).args(["-A", "trust", "-U", "byname", "-E", "UTF8"]);
        run(initdb.args(["--locale=C", "--no-sync"]));
        cluster.start_again();
        cluster
    }

    /// A server that follows another one; what is committed there does not wait for it.
    pub(crate) fn standby_of(primary: &Self) -> Self {
        let cluster = Self::empty();
        cluster.follow(primary);
        cluster
    }

    /// Follows another server, with a copy of what that has, in place of what was here.
    pub(crate) fn follow(&self, primary: &Self) {
        if self.data().exists() {
            fs::remove_dir_all(self.data()).unwrap();
        }
        let from = format!(
            "host={} user=byname dbname=postgres application_name={STANDBY}",
            primary.path().display()
        );
        let mut copy = as_server(program("pg_basebackup"));
        copy.args(["-d", &from, "-R", "-X", "stream", "--checkpoint=fast", "--no-sync", "-D"]);
        run(copy.arg(self.data()));
        self.start_again();
    }

    /// Lets commits wait for the standby from now on, and waits until it keeps up.
    pub(crate) fn wait_for_standby(&self) {
        let database = self.own_database();
        let names = format!("ALTER SYSTEM SET synchronous_standby_names = '{STANDBY}'");
        self.psql(&database, &names);
        self.psql(&database, "SELECT pg_reload_conf()");
        let state = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        while self.psql(&database, state) != "1" {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Makes a standby a server that can be written to.
    pub(crate) fn promote(&self) {
        run(as_server(program("pg_ctl")).arg("-D").arg(self.data()).args(["-w", "promote"]));
    }

    /// Ends a standby, so that it does not get what is committed from now on.
    pub(crate) fn stop(&self) {
        let mut stop = as_server(program("pg_ctl"));
        run(stop.arg("-D").arg(self.data()).args(["-w", "-m", "fast", "stop"]));
    }

    fn own_database(&self) -> String {
        format!("host={} user=byname dbname=postgres", self.path().display())
    }

    /// A directory for a server, and who ends that.
    fn empty() -> Self {
        let directory = tempfile::Builder::new().prefix("byname-pg").tempdir().unwrap();
        give_to_server(directory.path());
        let data = directory.path().join("data");
        let stop = format!(
            "read line; '{}' -D '{}' -m immediate stop",
            program("pg_ctl").display(),
            data.display()
        );
        let mut keeper = as_server("sh");
        keeper.args(["-c", &stop]).stdin(Stdio::piped()).stdout(Stdio::null());
        let keeper = keeper.stderr(Stdio::null()).spawn().unwrap();
        Self { directory, keeper }
    }

    /// The one server of the tests that run at this time.
    pub(crate) fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let cluster = Arc::new(Self::start());
            *shared = Arc::downgrade(&cluster);
            cluster
        })
    }

    /// Starts the server that was stopped, and waits until it takes connections.
    pub(crate) fn start_again(&self) {
        self.start_with("-c listen_addresses=");
    }

    /// The same with settings of one's own.
    pub(crate) fn start_with(&self, settings: &str) {
        let mut start = as_server(program("pg_ctl"));
        start.arg("-D").arg(self.data()).arg("-l").arg(self.path().join("log"));
        let options = format!(
            "{settings} -c unix_socket_directories={} -c shared_buffers=32MB \
                -c wal_retrieve_retry_interval=100ms",
            self.path().display()
        );
        run(start.args(["-w", "-o", &options, "start"]));
    }

    /// Kills the server and all that works for it, at once.
    pub(crate) fn kill(&self) {
        let lines = fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        let server: i32 = lines.lines().next().unwrap().parse().unwrap();
        let mut family = children(server);
        family.insert(0, server);
        for pid in &family {
            // One that has just ended by itself is as good.
            let _ = kill_process(Pid::from_raw(*pid).unwrap(), Signal::KILL);
        }
        while family.iter().any(|pid| is_alive(*pid)) {
            std::thread::yield_now();
        }
        // Where nobody asks how a process ended its number stays taken, and the next server would
        // believe that this one still runs.
        for lock in [self.data().join("postmaster.pid"), self.path().join(".s.PGSQL.5432.lock")] {
            fs::remove_file(lock).unwrap();
        }
    }

    /// Says where a new database is.
    pub(crate) fn database(&self) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("site{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut createdb = as_server(program("createdb"));
        run(createdb.arg("-h").arg(self.path()).args(["-U", "byname", "-T", "template0", &name]));
        format!("host={} user=byname dbname={name}", self.path().display())
    }

    /// Asks a database with words of one's own.
    pub(crate) fn psql(&self, database: &str, statement: &str) -> String {
        let mut psql = as_server(program("psql"));
        let output = psql.args(["-Atqc", statement, database]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    fn data(&self) -> PathBuf {
        self.path().join("data")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // The directory goes after the server.
        let _ = self.keeper.wait();
    }
}

/// Makes a file the server's.
pub(crate) fn give_to_server(path: &Path) {
    if rustix::process::getuid().is_root() {
        let chown = Command::new("chown").arg(SERVER_USER).arg(path).status();
        assert!(chown.unwrap().success());
    }
}

/// State and parent of a process, from what follows its title.
fn state_of(pid: i32) -> Option<(String, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut words = stat.rsplit_once(')')?.1.split_whitespace();
    Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
}

fn is_alive(pid: i32) -> bool {
    state_of(pid).is_some_and(|(state, _)| state != "Z")
}

fn children(parent: i32) -> Vec<i32> {
    let all = fs::read_dir("/proc").unwrap();
    let pids = all.filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| state_of(*pid).is_some_and(|(_, of)| of == parent)).collect()
}

/// The latest of this machine's servers.
fn program(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL: scripts/setup has it");
    let mut found: Vec<PathBuf> =
        versions.map(|it| it.unwrap().path().join("bin").join(name)).collect();
    found.retain(|path| path.exists());
    found.sort();
    found.pop().expect("PostgreSQL: scripts/setup has it")
}

fn as_server(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = if rustix::process::getuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", SERVER_USER, "--regid", SERVER_USER, "--init-groups", "--"]);
        command.arg(program);
        command
    } else {
        Command::new(program)
    };
    command.current_dir("/");
    command
}

fn run(command: &mut Command) {
    // Into a file, not a pipe: the server inherits it, and a pipe would not end.
    let output = tempfile::tempfile().unwrap();
    let shown = output.try_clone().unwrap();
    let errors = output.try_clone().unwrap();
    let status = command.stdin(Stdio::null()).stdout(output).stderr(errors).status().unwrap();
    if !status.success() {
        use std::io::{Read, Seek};
        let (mut text, mut shown) = (String::new(), shown);
        shown.rewind().unwrap();
        shown.read_to_string(&mut text).unwrap();
        panic!("{command:?}: {status}\n{text}");
    }
}
