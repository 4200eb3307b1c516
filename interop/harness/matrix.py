"""The test families that every peer goes through.

A peer's folder names its tools and the links they can use.
"""

import time

from . import nodes, samples
from .case import Case, grid

NAME = "/lab"
FORWARDERS = ("byname", "ndnd")
GIVE_UP_S = 20  # node starts in 1 s; without a route NDNts asks for 11 s, whatever it is told


class ReadsFromByname(Case):
    """An independent client reads what `byname serve` publishes. Subclasses set `consumer`."""

    consumer = None

    def fetch_all(self, uri, prefix, names):
        """Fetches each sample and returns the sentences about those that differ."""
        problems = []
        for number, relative in enumerate(names):
            out = self.lab.path(f"out/{number}")
            result = type(self).consumer(self.lab, uri, samples.uri(prefix, relative), out)
            problem = samples.difference(out, relative)
            if problem:
                problems.append(f"{problem}\n{result}")
        return problems

    def check_reads_over(self, forwarder, scheme):
        """All samples over the Unix socket, some over other links."""
        self.check_reads(forwarder, scheme, samples.SMALL if scheme == "unix" else samples.SOME)

    def check_reads(self, forwarder, scheme, names):
        """Publishes the samples at a forwarder and fetches some of them."""
        hub = nodes.FORWARDERS[forwarder](self.lab)
        nodes.byname_serve(self.lab, hub, samples.directory(), NAME)
        problems = self.fetch_all(hub.uri(scheme), NAME, names)
        self.assertFalse(problems, "\n".join(problems))

    def check_absent(self, forwarder, name):
        """A name that is not there must end in a refusal, soon."""
        hub = nodes.FORWARDERS[forwarder](self.lab)
        nodes.byname_serve(self.lab, hub, samples.directory(), NAME)
        out = self.lab.path("out/absent")
        started = time.monotonic()
        result = type(self).consumer(self.lab, hub.uri(), name, out)
        self.assertFalse(out.exists(), f"something was written: {result}")
        self.assertFalse(result.timed_out, f"the client never gave up: {result}")
        self.assertLess(time.monotonic() - started, GIVE_UP_S)
        return result


class IsReadByByname(Case):
    """`byname get` reads what an independent producer publishes. Subclasses implement `publish`."""

    def publish(self, hub, relative, name):
        """Publishes one sample under a name."""
        raise NotImplementedError

    def check_read(self, forwarder, scheme, relative):
        """Reads one sample without authentication."""
        hub = nodes.FORWARDERS[forwarder](self.lab)
        self.publish(hub, relative, "/pub/f")
        out = self.lab.path("out/f")
        result = nodes.byname_get_insecure(self.lab, hub.uri(scheme), "/pub/f", out)
        self.assertEqual(result.code, 0, str(result))
        self.assertIsNone(samples.difference(out, relative))

    @grid(forwarder=FORWARDERS, scheme=("unix", "tcp", "udp", "ws"))
    def check_many_segments(self, forwarder, scheme):
        self.check_read(forwarder, scheme, "many-segments.bin")

    @grid(forwarder=FORWARDERS)
    def check_large_file(self, forwarder):
        self.check_read(forwarder, "unix", samples.LARGE)

    @grid(forwarder=FORWARDERS)
    def check_one_segment(self, forwarder):
        self.check_read(forwarder, "unix", "one byte.bin")

    @grid(forwarder=FORWARDERS)
    def check_refused_without_insecure(self, forwarder):
        """What no trusted key has signed is refused: 5 does not verify, or 6 unknown key."""
        hub = nodes.FORWARDERS[forwarder](self.lab)
        self.publish(hub, "one-segment.bin", "/pub/f")
        out = self.lab.path("out/f")
        result = nodes.byname_get(self.lab, hub.uri(), "/pub/f", out)
        self.assertIn(result.code, (5, 6), str(result))
        self.assertEqual(list(out.parent.iterdir()), [], f"something was left behind: {result}")
