"""byname's ways of reading that have no counterpart, reading over a long path, and files that are
larger than what memory can hold twice.

The kernel here may lack netem, so a long path is a relay that holds every byte back for half the
round trip (`crates/traffic/examples/faults.rs`); the peers go through one as well.
"""

import dataclasses
import json

import contenders
import ground
import scenarios
from harness import nodes, peers
from harness.lab import free_port

FAULTS = peers.REPO / "target/release/examples/faults"


class InProcess(scenarios.Scenario):
    """Server and reader in one process, no forwarder: `byname bench transfer`. It hashes and reads
    the file once before it measures, so what it says of itself is taken, not what it cost."""

    title = "byname, in process"

    missing = scenarios.Byname.missing
    version = scenarios.Byname.version

    def start(self):
        self.env = {"BYNAME_HOME": str(self.ground.server.path("in-process/.keep").parent)}

    def client(self):
        return [nodes.byname_binary(), "bench", "transfer", self.work.path, "--link", "in-process",
                "-o", self.out, "--json"]

    def fetch(self):
        said = self.place("said.json")
        sample = self.run_client(said)
        if sample.code == 0:
            cost = json.loads(said.read_text(encoding="utf-8"))
            cpu_s = cost["cpu_s_per_gib"] * cost["bytes"] / (1 << 30)
            sample = dataclasses.replace(sample, wall_s=cost["seconds"], client_cpu_s=cpu_s)
        return sample


class Delayed(ground.OneMachine):
    """One machine whose clients reach servers through a relay."""

    def __init__(self, lab, round_trip_ms):
        super().__init__(lab)
        self.round_trip_ms = round_trip_ms

    def relay(self, port):
        """Starts a relay to a TCP port here; its own port."""
        listen = free_port()
        daemon = self.server.start("faults", [
            FAULTS, "tcp", f"127.0.0.1:{listen}", f"127.0.0.1:{port}",
            f"delay={self.round_trip_ms // 2}"])
        daemon.wait_for_log("listening")
        return listen


def delayed(round_trip_ms):
    """Makes the ground."""
    return lambda lab: Delayed(lab, round_trip_ms)


def no_relay():
    """Why there is no relay, or None."""
    return None if FAULTS.exists() else \
        "no relay: cargo build --release -p byname-traffic --example faults"


class BynameDelayed(scenarios.BynameTcp):
    """The reader is far from the forwarder."""

    title = "byname get, TCP, far"

    @staticmethod
    def missing():
        return no_relay() or scenarios.Byname.missing()

    def start(self):
        super().start()
        self.uri = f"tcp://127.0.0.1:{self.ground.relay(self.port)}"


class Far:
    """What makes a TCP client go through the relay."""

    def start(self):
        """Starts the server, then the relay in front of it."""
        super().start()
        self.port = self.ground.relay(self.port)


class XrootdDelayed(Far, contenders.Xrootd):
    """The reader is far from the server."""

    title = "xrdcp, far"


class NginxDelayed(Far, contenders.Nginx):
    """The reader is far from the server."""

    title = "nginx + curl, far"


class Discarded:
    """What makes a client write to standard output and nothing keep it, but for the first fetch,
    which is compared on its way: for files of which memory holds no second copy."""

    is_first = True
    is_compared = False

    def fetch(self):
        self.is_compared = self.is_first
        self.is_first = False
        return self.run_client(None)

    def client(self):
        argv = self.to_stdout()
        if not self.is_compared:
            return argv
        script = 'same=$1; shift; set -o pipefail; "$@" | cmp - "$same"'
        return ["bash", "-c", script, "bash", self.work.path, *argv]

    def result(self):
        """cmp has looked; from then on the exit code has to do."""
        return self.work.path


class BynameDiscarded(Discarded, scenarios.Byname):
    """`byname cat`, every byte verified and in order."""

    title = "byname cat"

    def to_stdout(self):
        """The command."""
        return [nodes.byname_binary(), "cat", self.work.under(scenarios.NAME), "--connect",
                self.uri]


class XrootdDiscarded(Discarded, contenders.Xrootd):
    """xrdcp to standard output."""

    def to_stdout(self):
        """The command."""
        return ["xrdcp", "-s", f"root://{self.authority()}//{contenders.FILE}", "-"]


class XrootdPlainDiscarded(Discarded, contenders.XrootdPlainRead):
    """The same with plain reads."""

    to_stdout = XrootdDiscarded.to_stdout


class NginxDiscarded(Discarded, contenders.Nginx):
    """curl to standard output."""

    def to_stdout(self):
        """The command."""
        return ["curl", "-s", "-f", f"http://{self.authority()}/{contenders.FILE}"]


class Cat(Discarded, contenders.Cp):
    """Reading from the page cache, and nothing else."""

    title = "dd"

    def version(self):
        return self.first_line(["dd", "--version"])

    def to_stdout(self):
        """The command; a copy_file_range to /dev/null would not read a byte."""
        return ["dd", f"if={self.work.path}", "bs=128K", "status=none"]
