"""One test's own little world: directories, ports, processes and their logs.

Nothing is shared between two labs and nothing outlives one: `close` ends every process group that
the lab started and keeps the tail of each log for the report. Every wait is bounded.
"""

import atexit
import dataclasses
import itertools
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import weakref

START_TIMEOUT_S = 15
RUN_TIMEOUT_S = 60
STOP_TIMEOUT_S = 5
LOG_TAIL_LINES = 20
LOG_LINE_CHARS_MAX = 300
POLL_S = 0.02
# Below the ports that the kernel gives to outgoing connections.
PORT_MIN = 12000
PORT_COUNT = 2000
PORT_RANGES = 8

_ports = None


@dataclasses.dataclass
class Result:
    """What a finished command left behind."""

    code: int
    stdout: bytes
    stderr: str
    seconds: float
    timed_out: bool = False

    def __str__(self):
        how = "timed out" if self.timed_out else f"exit code {self.code}"
        text = self.stdout[:2000].decode(errors="replace")
        return f"{how} after {self.seconds:.1f} s\nstdout: {text}\nstderr: {self.stderr[-4000:]}"


class Daemon:
    """A process that runs until the lab ends, with its output in a file."""

    def __init__(self, label, process, log):
        self.label = label
        self.process = process
        self.log = log

    def log_text(self):
        """Everything the process printed so far."""
        return self.log.read_text(errors="replace")

    def wait_for_log(self, needle, timeout_s=START_TIMEOUT_S):
        """Waits until the process prints `needle`."""
        wait_until(lambda: needle in self.log_text(), f"{self.label} to print {needle!r}",
                   timeout_s, self)

    def signal(self, number):
        """Sends a signal to the process and to everything it started."""
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def freeze(self):
        """Stops the process for a while (SIGCONT wakes it), and waits until no thread of it runs:
        on a busy machine that is long after the signal."""
        self.signal(signal.SIGSTOP)
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task")

        def is_frozen():
            states = [(task / "stat").read_text().rpartition(") ")[2][0]
                      for task in tasks.iterdir()]
            return set(states) == {"T"}

        wait_until(is_frozen, f"{self.label} to stop", daemon=self)

    def stop(self):
        """Ends the process and everything it started."""
        stop_all([self])


def stop_all(daemons):
    """Ends daemons, those that hang as well, and waits for them together."""
    for daemon in daemons:
        daemon.signal(signal.SIGTERM)
    deadline = time.monotonic() + STOP_TIMEOUT_S
    for daemon in daemons:
        try:
            daemon.process.wait(max(0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            daemon.signal(signal.SIGKILL)
            daemon.process.wait(STOP_TIMEOUT_S)


def wait_until(condition, what, timeout_s=START_TIMEOUT_S, daemon=None):
    """Polls until the condition holds; fails early if the daemon it depends on dies."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if daemon is not None and daemon.process.poll() is not None:
            code = daemon.process.returncode
            raise AssertionError(f"{daemon.label} ended with code {code} while waiting for {what}")
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s} s in vain for {what}")
        time.sleep(POLL_S)


def outside_address():
    """An address of this machine that is not a loopback one, or None when it has none."""
    with socket.socket(type=socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))  # documentation address; nothing is sent
        except OSError:
            return None
        return probe.getsockname()[0]


def take_ports(number):
    """Chooses the ports of this process, the number-th of those that run tests side by side."""
    global _ports
    first = PORT_MIN + number % PORT_RANGES * PORT_COUNT
    _ports = itertools.cycle(random.sample(range(first, first + PORT_COUNT), PORT_COUNT))


def free_port():
    """A port that is free for TCP and UDP on the loopback interface, and that no test beside this
    one chooses meanwhile."""
    if _ports is None:
        take_ports(0)
    for port in itertools.islice(_ports, PORT_COUNT):
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            try:
                tcp.bind(("127.0.0.1", port))
                udp.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError(f"none of {PORT_COUNT} ports is free")


def end_cleanly_on_sigterm():
    """Turns SIGTERM into what Ctrl-C is, so that all labs are closed; for programs with one lab at
    a time, such as benchmarks."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


class Lab:
    """Owns a temporary directory and all processes of one test."""

    _open = weakref.WeakSet()

    def __init__(self):
        Lab._open.add(self)
        # Unix socket paths are limited to 107 bytes, so the directory stays short.
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="byname-"))
        self.daemons = []
        self.notes = []

    def path(self, name):
        """A path inside the lab, with its parent made."""
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def env(self, extra=None):
        """An environment in which no program finds the user's own state."""
        keep = ("PATH", "LANG", "LC_ALL", "TMPDIR", "RUST_BACKTRACE")
        env = {key: os.environ[key] for key in keep if key in os.environ}
        home = self.path("home/.keep").parent
        env.update(HOME=str(home), XDG_RUNTIME_DIR=str(home), BYNAME_HOME=str(home / "byname"))
        env.update(extra or {})
        return env

    def start(self, label, argv, env=None, stdin=None):
        """Starts a daemon."""
        log = self.path(f"logs/{len(self.daemons)}-{label}.log")
        with open(log, "wb") as output:
            process = subprocess.Popen(
                [str(a) for a in argv],
                stdin=stdin or subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self.env(env),
                cwd=self.dir,
                start_new_session=True,
            )
        daemon = Daemon(label, process, log)
        self.daemons.append(daemon)
        self.notes.append("$ " + " ".join(str(a) for a in argv))
        return daemon

    def run(self, argv, env=None, timeout_s=RUN_TIMEOUT_S, stdout=None, stdin=os.devnull):
        """Runs a command to its end; standard output may go to a file instead of memory."""
        started = time.monotonic()
        target = open(stdout, "wb") if stdout else subprocess.PIPE
        source = open(stdin, "rb")
        process = subprocess.Popen(
            [str(a) for a in argv],
            stdin=source,
            stdout=target,
            stderr=subprocess.PIPE,
            env=self.env(env),
            cwd=self.dir,
            start_new_session=True,
        )
        timed_out = False
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            timed_out = True
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
        except BaseException:  # an interruption, or the limit of the whole test
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        finally:
            source.close()
            if stdout:
                target.close()
        seconds = time.monotonic() - started
        result = Result(process.returncode, out or b"", err.decode(errors="replace"), seconds,
                        timed_out)
        self.notes.append("$ " + " ".join(str(a) for a in argv) + f"\n{result}")
        return result

    @staticmethod
    @atexit.register
    def close_all():
        """What an interrupted program left open."""
        for lab in list(Lab._open):
            lab.close()

    def close(self):
        """Ends everything and returns the report shown when the test failed; once."""
        if self not in Lab._open:
            return ""
        Lab._open.discard(self)
        stop_all(self.daemons[::-1])
        lines = list(self.notes)
        for daemon in self.daemons:
            tail = [line[:LOG_LINE_CHARS_MAX] for line in daemon.log_text().splitlines()]
            tail = tail[-LOG_TAIL_LINES:]
            lines.append(f"--- log of {daemon.label} ({daemon.process.returncode})")
            lines.extend(tail)
        shutil.rmtree(self.dir, ignore_errors=True)
        return "\n".join(lines)
