//! Homes, daemons and commands for the tests. Everything is killed and removed when dropped.

use std::ffi::OsStr;
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The program of this revision.
pub(crate) const THIS: &str = env!("CARGO_BIN_EXE_byname");

/// Longer than any pause of the product: a head leaves a disk that refused alone for 30 s.
const WAIT: Duration = Duration::from_secs(60);
/// The longest that one look and the pause behind it count for.
const STEP_MAX: Duration = Duration::from_secs(20);

/// A user's home: keys, trust and state of its own.
pub(crate) struct Home {
    dir: tempfile::TempDir,
    /// What its commands are executed by.
    program: Mutex<PathBuf>,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self::with_program(Path::new(THIS))
    }

    /// A home of who uses another program, an older one for instance.
    pub(crate) fn with_program(program: &Path) -> Self {
        Self { dir: tempfile::tempdir().unwrap(), program: Mutex::new(program.to_owned()) }
    }

    /// Has the next commands executed by another program.
    pub(crate) fn upgrade(&self, program: &Path) {
        *self.program.lock().unwrap() = program.to_owned();
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A directory beside the state, for what is published or fetched.
    pub(crate) fn work(&self, name: &str) -> PathBuf {
        let dir = self.dir.path().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    /// `byname` with this home and nothing else of the environment that could matter.
    pub(crate) fn byname(&self) -> Command {
        self.byname_of(&self.program.lock().unwrap())
    }

    /// The same by a program of one's own choice.
    pub(crate) fn byname_of(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        for (key, _) in std::env::vars_os() {
            let key = key.to_string_lossy().into_owned();
            if key.starts_with("BYNAME_") || key.starts_with("NDN_") || key.starts_with("XDG_") {
                command.env_remove(key);
            }
        }
        command
            .env("BYNAME_HOME", self.dir.path().join("home"))
            .env("HOME", self.dir.path())
            .current_dir(self.dir.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Finished {
        let output = self.byname().args(args).output().unwrap();
        Finished { output }
    }

    /// Starts a daemon and waits until `ready` shows in its output.
    pub(crate) fn start<S: AsRef<OsStr>>(&self, args: &[S], ready: &str) -> Daemon {
        let mut command = self.byname();
        command.args(args);
        self.start_command(command, ready)
    }

    /// The same with at most so many descriptors, and peers that are silent after a second.
    pub(crate) fn start_limited(&self, descriptors: &str, args: &[&str], ready: &str) -> Daemon {
        let byname = self.byname();
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n \"$0\" && exec \"$@\"", descriptors]);
        command.arg(byname.get_program()).args(args).current_dir(self.dir.path());
        for (key, value) in byname.get_envs() {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        command.env("BYNAME_SILENT_FACE_S", "1").env("BYNAME_SILENT_PEER_S", "1");
        command.stdin(Stdio::null());
        self.start_command(command, ready)
    }

    pub(crate) fn start_command(&self, mut command: Command, ready: &str) -> Daemon {
        let log = self.dir.path().join(format!("daemon-{}.log", unique()));
        let file = std::fs::File::create(&log).unwrap();
        command.stdout(file.try_clone().unwrap()).stderr(file).process_group(0);
        let daemon = Daemon { child: command.spawn().unwrap(), log };
        daemon.await_line(ready);
        daemon
    }

    /// `byname up DIR` on a port of its own; the daemon and its link.
    pub(crate) fn up(&self, dir: &Path, name: &str) -> Up {
        self.up_with(dir, name, &[])
    }

    pub(crate) fn up_with(&self, dir: &Path, name: &str, extra: &[&str]) -> Up {
        let port = free_port();
        let listen = format!("tcp://127.0.0.1:{port}");
        let mut args = vec!["up", dir.to_str().unwrap(), "--name", name, "--listen", &listen];
        args.extend_from_slice(extra);
        let daemon = self.start(&args, "byname:/");
        let link = daemon.line_with("byname:/");
        Up { daemon, link, port }
    }
}

/// The link to something below the name of a printed one.
pub(crate) fn below(link: &str, path: &str) -> String {
    let end = link.find("?via=").or_else(|| link.find(",via=")).expect("a printed link");
    format!("{}/{path}{}", &link[..end], &link[end..])
}

fn unique() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A port that nobody listens on, over TCP or UDP: below those that the kernel gives to outgoing
/// sockets of tests beside this one, and each once.
pub(crate) fn free_port() -> u16 {
    const RANGE: std::ops::Range<u64> = 28_000..32_000;
    loop {
        let place = u64::from(std::process::id()) * 211 + unique();
        let port = u16::try_from(RANGE.start + place % (RANGE.end - RANGE.start)).unwrap();
        let address = ("127.0.0.1", port);
        if TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
            return port;
        }
    }
}

/// A running `up` with what a reader needs.
pub(crate) struct Up {
    pub(crate) daemon: Daemon,
    pub(crate) link: String,
    pub(crate) port: u16,
}

impl Up {
    /// The link to something below the published name.
    pub(crate) fn link_to(&self, path: &str) -> String {
        below(&self.link, path)
    }

    pub(crate) fn uri(&self) -> String {
        format!("tcp://127.0.0.1:{}", self.port)
    }
}

/// A background process.
pub(crate) struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn await_line(&self, needle: &str) {
        wait_for(&format!("{needle:?} in the log"), || self.log().contains(needle), || self.log());
    }

    pub(crate) fn line_with(&self, needle: &str) -> String {
        let log = self.log();
        let line = log.lines().find(|line| line.contains(needle)).expect("line in the log");
        let start = line.find(needle).unwrap();
        line[start..].split_whitespace().next().unwrap().to_owned()
    }

    /// The link that it has printed.
    pub(crate) fn link(&self) -> String {
        self.line_with("byname:/")
    }

    /// The link to something below the published name.
    pub(crate) fn link_to(&self, path: &str) -> String {
        below(&self.link(), path)
    }

    /// Ends it as a power cut would.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Ends it as a service manager would and returns its exit code.
    pub(crate) fn terminate(&mut self) -> Option<i32> {
        signal(self.pid(), "TERM");
        self.child.wait().unwrap().code()
    }

    /// Ends it as Ctrl-C would and returns its exit code.
    pub(crate) fn interrupt(&mut self) -> Option<i32> {
        signal(self.pid(), "INT");
        self.child.wait().unwrap().code()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends a signal by name.
pub(crate) fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(status.unwrap().success());
}

/// Waits for a condition or panics with what `context` says.
pub(crate) fn wait_for(what: &str, mut done: impl FnMut() -> bool, context: impl Fn() -> String) {
    let (mut waited, mut began) = (Duration::ZERO, Instant::now());
    while !done() {
        assert!(waited < WAIT, "no {what} within {WAIT:?}:\n{}", context());
        std::thread::sleep(Duration::from_millis(10));
        // Time in which this program was stopped, as by a debugger, is nobody's delay.
        waited += began.elapsed().min(STEP_MAX);
        began = Instant::now();
    }
}

/// A command that ended.
pub(crate) struct Finished {
    pub(crate) output: Output,
}

impl Finished {
    pub(crate) fn of(output: Output) -> Self {
        Self { output }
    }

    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.output.stdout
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// Panics unless it succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        self.fails_with(0, "")
    }

    /// Panics unless it ended with `code` and said `words` on stderr.
    #[track_caller]
    pub(crate) fn fails_with(self, code: i32, words: &str) -> Self {
        let (stdout, stderr) = (self.stdout(), self.stderr());
        let shown: String = stdout.chars().take(2000).collect();
        assert_eq!(self.output.status.code(), Some(code), "stdout:\n{shown}\nstderr:\n{stderr}");
        assert!(stderr.contains(words), "no {words:?} in:\n{stderr}");
        self
    }
}

/// `len` octets that look random and are the same every time.
pub(crate) fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
    out.truncate(len);
    out
}

/// Writes a file that was quiet for long.
pub(crate) fn write(path: &Path, content: &[u8]) {
    std::fs::write(path, content).unwrap();
}

/// Names in a directory, sorted, except one's own state.
pub(crate) fn entries(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Starts a relay in front of `up` that flips a bit of one kind of Data; its address.
pub(crate) fn tampering(up: &Up, kind: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let target = format!("127.0.0.1:{}", up.port);
    std::thread::spawn(move || crate::relay::serve(&listener, &target, kind));
    address
}

/// Reads everything a child writes to stdout until it ends.
pub(crate) fn drain(child: &mut Child) -> Vec<u8> {
    let mut out = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
    out
}
