"""Sites: clients that know nothing of replicas read files whose content lies on a disk.

They follow the name of the content to the head, which asks a disk in their place.
"""

from harness import nodes, samples
from harness.matrix import NAME, ReadsFromByname

READ = ["many-segments.bin", "one-segment.bin", "empty"]


class SiteReads(ReadsFromByname):
    """One client reads a file of many segments, one of one, and an empty one."""

    needs = ("ndnd",)

    def check_site(self, consumer, forwarder):
        type(self).consumer = staticmethod(consumer)
        hub = nodes.FORWARDERS[forwarder](self.lab)
        nodes.byname_site(self.lab, hub, NAME, [samples.directory() / name for name in READ])
        problems = self.fetch_all(hub.uri(), NAME, READ)
        self.assertFalse(problems, "\n".join(problems))


class NdndReadsSite(SiteReads):
    def test_behind_byname(self):
        self.check_site(nodes.ndnd_cat, "byname")


class PythonReadsSite(SiteReads):
    needs = ("ndnd", "python-ndn")

    def test_behind_byname(self):
        self.check_site(nodes.python_cat, "byname")


class NdntsReadsSite(SiteReads):
    needs = ("ndnd", "ndnts")

    def test_behind_byname(self):
        self.check_site(nodes.ndnts_get, "byname")
