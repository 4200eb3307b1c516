"""NDNd's routing daemon over forwarders of all kinds: five nodes in a ring with a chord.

    a --- b --- c      From a to d: two hops over e, three over b and c or over b and e.
    |     |     |
    +---- e --- d
"""

import os

from harness import nodes, samples
from harness.case import Case, grid
from harness.lab import wait_until
from harness.routing import RoutedNetwork

RING = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "a"), ("b", "e")]
KINDS = {
    "ndnd": dict.fromkeys("abcde", "ndnd"),
    "byname": dict.fromkeys("abcde", "byname"),
    "mixed": {"a": "byname", "b": "ndnd", "c": "byname", "d": "ndnd", "e": "byname"},
}
NAME = "/data/run7"
MIB = 1 << 20
# The file of 100 MiB takes long enough for everything that happens meanwhile.
RATE = "4M"
STEP_BYTES = 6 * MIB
# The routers notice after 3 s; then the reader asks again what it has lost.
RECOVERY_TIMEOUT_S = 40


def written_bytes(path):
    """What a file has; part files have place on the disk where nothing is yet."""
    at, count = 0, 0
    with open(path, "rb") as file:
        while True:
            try:
                start = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                return count
            at = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            count += at - start


class DistanceVector(Case):
    needs = ("ndnd",)
    needs_netns = True

    @grid(forwarders=KINDS)
    def check_transfer_survives(self, forwarders):
        """A cut link, its return, and a forwarder killed in the path of a running transfer."""
        network = RoutedNetwork(self.lab, KINDS[forwarders], RING, is_signed=True)
        network.start_routers()
        network.publish_sites()
        network.wait_until_converged()
        transfer = Transfer(network, reader="a", publisher="d")
        transfer.wait_for_more()
        network.topology.cut("d", "e")
        transfer.wait_for_more()
        network.wait_until_converged()
        network.topology.restore("d", "e")
        transfer.wait_for_way("e", "a")
        network.kill("e")
        transfer.wait_for_more()
        network.wait_until_converged("abcd")
        transfer.finish()
        self.assertIsNone(samples.difference(transfer.out, samples.LARGE))
        self.assertFalse(network.is_reached("a", "e"), "the killed node still answers")

    def test_router_that_comes_late(self):
        """It is told of what was registered before it came."""
        network = RoutedNetwork(self.lab, {"a": "byname"}, [])
        network.publish_sites()
        network.start_routers()
        network.routers["a"].wait_for_log('"Global announce" tag=dv-prefix name=/site/a/f')


class Transfer:
    """`byname get` of a large file that goes on while the network changes."""

    def __init__(self, network, reader, publisher):
        self.topology = network.topology
        at = network.topology[publisher]
        nodes.byname_serve(at, network.forwarders[publisher], samples.directory(), NAME)
        here = network.topology[reader]
        hub = network.forwarders[reader]
        nodes.wait_published(hub.uri(), NAME, hub.daemon)
        self.out = here.path("out/f")
        argv = [nodes.byname_binary(), "get", f"{NAME}/{samples.LARGE}", "--connect", hub.uri(),
                "-o", self.out, "--bwlimit", RATE]
        # The publisher's home, whose own keys are anchors: every byte is verified.
        env = {"BYNAME_HOME": str(at.path("publisher/home"))}
        self.daemon = here.start("byname-get", argv, env)

    def received_bytes(self):
        """What has been written so far, wherever it is at the moment."""
        return sum(written_bytes(file) for file in self.out.parent.iterdir())

    def wait_for_more(self):
        """Waits until more has come, which shows that there is a way."""
        wanted = self.received_bytes() + STEP_BYTES
        assert wanted < samples.LARGE_BYTES, "the transfer was over before the network changed"
        wait_until(lambda: self.received_bytes() >= wanted, "the transfer to go on",
                   RECOVERY_TIMEOUT_S, self.daemon)

    def wait_for_way(self, here, there):
        """Waits until it comes over one link: what happens there then happens to the transfer."""
        before = self.topology.sent_bytes(here, there)
        wait_until(lambda: self.topology.sent_bytes(here, there) - before >= STEP_BYTES,
                   f"the transfer to go from {here} to {there}", RECOVERY_TIMEOUT_S, self.daemon)

    def finish(self):
        """Waits for the end, which must be a good one."""
        wait_until(lambda: self.daemon.process.poll() is not None, "the transfer to end",
                   RECOVERY_TIMEOUT_S)
        assert self.daemon.process.returncode == 0, self.daemon.log_text()
