"""What the attacks have in common: the servers they are played against, an honest reader beside
them, what the kernel says of a process, and how a script tells what it found.

A script is `bench/attacks/NAME [--byname PROGRAM] [--only VICTIM]`. It prints one figure a line,
`victim | figure | value`, and ends with `ok`, or with `not ok: WHY` and exit code 1.
"""

import argparse
import os
import pathlib
import resource
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent / "interop")]

from harness import nodes, wire  # noqa: E402  (the path above must come first)
from harness.lab import Lab, end_cleanly_on_sigterm, free_port, wait_until  # noqa: E402

NAME = "/lab"
FILE = "f"
FILE_BYTES = 1 << 20
SEGMENT_BYTES = 8192
READ_LIMIT_S = 60
MIB = 1 << 20


class Victim:
    """`byname up` or `byname serve` with one published directory, and readers of it."""

    def __init__(self, kind, lab, listens=("tcp",), host="127.0.0.1", limit=None, flags=(), env=()):
        self.kind, self.lab, self.port = kind, lab, free_port()
        self.dir = lab.path("published/.keep").parent
        self.write(FILE, os.urandom(FILE_BYTES))
        self.host = host
        self.env = {"BYNAME_HOME": str(lab.path("publisher/home")), **dict(env)}
        self.socket = f"unix://{lab.path('victim.sock')}"
        argv = [nodes.byname_binary(), kind, self.dir, "--name", NAME, "--listen", self.socket]
        for scheme in listens:
            argv += ["--listen", self.uri(scheme)]
        argv += flags
        if limit:
            # The hard one as well, so that nobody can raise it.
            words = " ".join(f"'{word}'" for word in argv)
            argv = ["bash", "-c", f"ulimit -n {limit} && exec {words}"]
        self.daemon = lab.start(kind, argv, self.env)
        wait_until(lambda: self.read(self.socket).code == 0, f"{kind} to serve", 30, self.daemon)

    def uri(self, scheme="tcp"):
        return f"{scheme}://{self.host}:{self.port}"

    def write(self, name, content):
        (self.dir / name).write_bytes(content)

    def read(self, uri=None, name=FILE, limit_s=READ_LIMIT_S, flags=()):
        """An honest reader's `get`, by a process of its own; `seconds` is how long it took."""
        out = self.lab.path("out/f")
        out.unlink(missing_ok=True)
        argv = [nodes.byname_binary(), "get", f"{NAME}/{name}", "--via", uri or self.uri(),
                "-o", out, "--no-keep", "-q", *flags]
        return self.lab.run(argv, self.env, limit_s)

    def delay_s(self, uri=None, times=5):
        """How long an honest reader takes: the median of some runs, and the longest."""
        runs = [self.read(uri) for _ in range(times)]
        took = [run.seconds if run.code == 0 else float("inf") for run in runs]
        return statistics.median(took), max(took)

    def memory_mib(self, field="VmRSS"):
        """What the kernel says of its memory now."""
        status = pathlib.Path(f"/proc/{self.daemon.process.pid}/status").read_text()
        row = next(line for line in status.splitlines() if line.startswith(field))
        return int(row.split()[1]) / 1024

    def forget_peak(self):
        """Lets VmHWM begin anew."""
        pathlib.Path(f"/proc/{self.daemon.process.pid}/clear_refs").write_text("5")

    def is_alive(self):
        return self.daemon.process.poll() is None

    def version(self):
        """The versioned name of the file, as the server says it now."""
        with wire.Connection(self.socket) as face:
            frame = face.ask(wire.discovery(f"{NAME}/{FILE}"))
        packet = wire.read_tlv(wire.unwrap(frame)[1])[1]
        content = wire.first(packet, wire.CONTENT)
        return wire.name_uri(wire.first(content, wire.NAME))

    def segment_requests(self, count):
        """Interests for the file's segments, again and again, and where their nonces stand."""
        version, segments = self.version(), FILE_BYTES // SEGMENT_BYTES
        packets = [wire.interest(f"{version}/seg={i}") for i in range(segments)]
        blob, nonces = bytearray(), []
        for i in range(count):
            packet = packets[i % segments]
            nonce = packet.index(bytes([wire.NONCE, 4]), len(packet) - 10)
            nonces.append(len(blob) + nonce + 2)
            blob += packet
        return blob, nonces


class Report:
    """Figures as they come, and what was wrong."""

    def __init__(self):
        self.faults = []

    def figure(self, victim, name, value, unit=""):
        if isinstance(value, float):
            value = f"{value:.2f}" if value < 100 else f"{value:.0f}"
        print(f"{victim} | {name} | {value}{' ' + unit if unit else ''}", flush=True)

    def check(self, holds, what):
        if not holds:
            self.faults.append(what)

    def end(self):
        print("not ok: " + "; ".join(self.faults) if self.faults else "ok")
        sys.exit(1 if self.faults else 0)


def play(description, victims, scene):
    """Plays `scene(victim's name, lab, report)` against each."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--byname", help="the program to attack")
    parser.add_argument("--only", choices=victims, help="this victim alone")
    chosen = parser.parse_args()
    if chosen.byname:
        os.environ["BYNAME_BIN"] = chosen.byname
    if not nodes.byname_binary():
        sys.exit("there is no byname: cargo build --release -p byname")
    end_cleanly_on_sigterm()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    report = Report()
    for victim in victims:
        if chosen.only in (None, victim):
            lab = Lab()
            try:
                scene(victim, lab, report)
            except AssertionError as error:
                report.check(False, f"{victim}: {error}")
            finally:
                lab.close()
    report.end()


def settle(seconds):
    time.sleep(seconds)
