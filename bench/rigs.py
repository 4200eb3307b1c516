"""What stands between a consumer and a producer: a forwarder, or a relay that only carries bytes.

A rig is one such process with the producer behind it. The consumer and the producer are the same
for all (`byname bench traffic`), so what differs between two rigs is what is between.
"""

import json
import os
import socket
import subprocess

import measure
from harness import nodes, peers
from harness.lab import START_TIMEOUT_S, free_port, wait_until

PREFIX = "/bench/traffic"
HIT_RANGE = 500
RELAY = peers.REPO / "target/release/examples/relay"
REGISTER_TIMEOUT_S = 120
UDP_MTU = 8800
# The default limit of routes, and room for those of the forwarder itself.
ROUTES_MAX, SPARE_ROUTES = 60_000, 1_000
CORES = {"middle": "0", "end": "1"}


class Rig:
    """Subclasses say how the process in the middle is started."""

    title = ""

    def __init__(self, lab, cell):
        self.lab = lab
        self.cell = cell
        self.label = type(self).__name__.lower()
        self.socket_path = lab.path(f"{self.label}.sock")
        self.port = free_port()
        self.middle = self.producer = None

    @staticmethod
    def missing(_cell):
        """Why it cannot take part in a cell, or None."""
        return None

    def version(self):
        """Of the software that is measured."""
        raise NotImplementedError

    def middle_argv(self):
        """The command of the process in the middle, and its environment."""
        raise NotImplementedError

    def start(self):
        """Starts the middle, then the producer, and waits until it is registered."""
        argv, env = self.middle_argv()
        self.middle = self.lab.start(self.label, [*self.pin("middle"), *argv], env)
        wait_until(self._accepts, f"{self.label} to listen", START_TIMEOUT_S, self.middle)
        argv = [*self.pin("end"), *self.producer_argv()]
        self.producer = self.lab.start(f"{self.label}-producer", argv)
        self.producer.wait_for_log('"ready"', REGISTER_TIMEOUT_S)

    def producer_argv(self):
        """The command of the producer."""
        return [nodes.byname_binary(), "bench", "traffic", "produce", "--json",
                "--prefix", PREFIX, "--size", self.cell.payload, *self.producer_flags()]

    def pin(self, role):
        """What goes before a command of this cell."""
        if self.cell.is_pinned:
            return ("taskset", "-c", CORES["middle"])
        return ("taskset", "-c", CORES[role]) if self.cell.is_split else ()

    def uri(self):
        """Where consumer and producer connect."""
        if self.cell.link == "unix":
            return f"unix://{self.socket_path}"
        if self.cell.link == "memif":
            return f"memif://{self.lab.path(f'{self.label}.memif')}"
        return f"{self.cell.link}://127.0.0.1:{self.port}"

    def producer_flags(self):
        """How the producer connects and registers."""
        flags = ["--connect", self.uri()]
        if self.cell.routes > 1:
            flags += ["--spread", self.cell.routes]
        return flags

    def consumer_flags(self):
        """How the consumer connects."""
        flags = ["--connect", self.uri()]
        if self.cell.routes > 1:
            flags += ["--spread", self.cell.routes]
        return flags

    def consumer_argv(self, seconds, count=None, size=None):
        """The command of a run of the consumer."""
        cell = self.cell
        argv = [nodes.byname_binary(), "bench", "traffic", "consume", "--json",
                "--mix", PREFIX, "--size", size or cell.payload, "--window", cell.window,
                "--duration", seconds, "--lifetime", 250, *self.consumer_flags()]
        if cell.store == "hit":
            argv += ["--range", HIT_RANGE]
        if count is not None:
            argv += ["--count", count]
        return argv

    def consume(self, seconds, count=None, size=None):
        """One run of the consumer; every answer is compared with what it must be."""
        argv = [*self.pin("end"), *self.consumer_argv(seconds, count, size)]
        pids = {"middle": self.middle.process.pid, "producer": self.producer.process.pid}
        before = {label: measure.process_cpu_ns(pid) for label, pid in pids.items()}
        waits = measure.process_waits(pids["middle"])
        result = self.lab.run(argv)
        after = {label: measure.process_cpu_ns(pid) for label, pid in pids.items()}
        if result.code != 0:
            return result.code, result
        found = json.loads(result.stdout)
        data = found["data"]
        found["middle_us"] = (after["middle"] - before["middle"]) / 1e3 / data
        found["producer_us"] = (after["producer"] - before["producer"]) / 1e3 / data
        found["waits"] = (measure.process_waits(pids["middle"]) - waits) / data
        found["rss_bytes"] = measure.process_rss_bytes(pids["middle"])
        return 0, found

    def answers(self):
        """How many Interests the producer has answered; ends it."""
        self.producer.process.terminate()
        self.producer.process.wait(START_TIMEOUT_S)
        lines = [json.loads(line) for line in self.producer.log_text().splitlines()
                 if line.startswith("{")]
        return next((line["data"] for line in lines if line.get("kind") == "producer"), None)

    def registering_s(self):
        """How long the registration of all routes took."""
        for line in self.producer.log_text().splitlines():
            if '"ready"' in line:
                return json.loads(line)["seconds"]
        return None

    def _accepts(self):
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(self.socket_path))
                return True
            except OSError:
                return False


class Byname(Rig):
    """`byname forward`."""

    title = "byname"
    shards = 1

    @staticmethod
    def binary():
        """The program of the forwarder."""
        return nodes.byname_binary()

    @classmethod
    def missing(cls, cell):
        if nodes.byname_binary() is None:
            return "there is no byname binary"
        help_text = _forward_help()
        if cls.shards > 1 and "--shards" not in help_text:
            return "byname forward has no --shards"
        if cell.link == "memif" and "memif://" not in help_text:
            return "byname forward has no memif"
        return None

    def version(self):
        return self.lab.run([self.binary(), "--version"]).stdout.decode().splitlines()[0]

    def middle_argv(self):
        argv = [self.binary(), "forward", "--allow-register-loopback",
                "--listen", f"unix://{self.socket_path}"]
        if self.cell.link != "unix":
            argv += ["--listen", self.uri()]
        if self.shards > 1:
            argv += ["--shards", self.shards]
        if self.cell.routes > ROUTES_MAX:
            file = self.lab.path(f"{self.label}.toml")
            file.write_text(f"[forwarder]\nroutes_max = {self.cell.routes + SPARE_ROUTES}\n")
            argv += ["--config", file]
        env = {"BYNAME_HOME": str(self.lab.path(f"{self.label}/home"))}
        if self.cell.store == "off":
            env["BYNAME_CONTENT_STORE_MIB"] = "0"
        return argv, env

    def producer_flags(self):
        flags = super().producer_flags()
        if self.cell.link == "udp":  # byname takes no commands over UDP
            flags += ["--manage", f"unix://{self.socket_path}"]
        return flags


class BynameShards(Byname):
    """The same with two shards."""

    title = "byname, 2 shards"
    shards = 2


class Ndnd(Rig):
    """NDNd's forwarder with one forwarding thread, otherwise as it comes."""

    title = "NDNd"

    @staticmethod
    def missing(cell):
        if not peers.PEERS["ndnd"].is_installed():
            return "ndnd is not installed (interop/setup ndnd)"
        return "NDNd has no memif" if cell.link == "memif" else None

    def version(self):
        return "NDNd " + peers.PEERS["ndnd"].version

    def middle_argv(self):
        keeps = self.cell.store != "off"
        config = {
            "core": {"log_level": "WARN"},
            "faces": {
                "udp": {"enabled_multicast": False, "port_unicast": self.port,
                        "default_mtu": UDP_MTU},
                "tcp": {"port_unicast": self.port},
                "unix": {"socket_path": str(self.socket_path)},
                "websocket": {"enabled": False},
                "http3": {"enabled": False},
            },
            "fw": {"threads": 1},
            "tables": {"content_store": {"admit": keeps, "serve": keeps}},
        }
        file = self.lab.path(f"{self.label}.yml")
        file.write_text(json.dumps(config))  # JSON is YAML
        return [peers.NDND, "fw", "run", file], {}


class Relay(Rig):
    """Bytes from one socket to the other, with blocking calls: the least that can be."""

    title = "bare relay"

    @staticmethod
    def missing(_cell):
        if os.access(RELAY, os.X_OK):
            return None
        return "not built: cargo build --release -p byname-traffic --example relay"

    def version(self):
        return ""

    def middle_argv(self):
        return [RELAY, self.socket_path, self.lab.path("relay-producer.sock")], {}

    def _accepts(self):
        # It takes connections in turn, so a probe would be taken for the consumer.
        return self.lab.path("relay-producer.sock").exists()

    def producer_flags(self):
        return ["--connect", f"unix://{self.lab.path('relay-producer.sock')}", "--no-register"]


RIGS = {rig.title: rig for rig in (Byname, BynameShards, Ndnd, Relay)}


def _forward_help():
    argv = [nodes.byname_binary(), "forward", "--help"]
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout
