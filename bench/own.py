"""byname's ways of reading that have no counterpart, and reading over a long way.

The kernel here may lack netem, so a long way is a relay that holds every byte back for half the
round trip (`crates/traffic/examples/faults.rs`); the peers go through one as well.
"""

import contenders
import ground
import scenarios
from harness import nodes, peers
from harness.lab import free_port

FAULTS = peers.REPO / "target/release/examples/faults"


class InProcess(scenarios.Scenario):
    """Server and reader in one process, no forwarder: `byname bench transfer`."""

    title = "byname, in process"

    missing = scenarios.Byname.missing
    version = scenarios.Byname.version

    def start(self):
        self.env = {"BYNAME_HOME": str(self.ground.server.path("in-process/.keep").parent)}

    def client(self):
        return [nodes.byname_binary(), "bench", "transfer", self.work.path, "--link", "in-process",
                "-o", self.out]


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
