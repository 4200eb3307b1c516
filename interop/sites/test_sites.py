"""Sites: clients that know nothing of replicas read files whose content lies on a disk, and sites
whose forwarder is another project's.

The clients follow the name of the content to the head, which asks a disk in their place.
"""

import os

from harness import nodes, samples
from harness.admin import NdndTool
from harness.case import Case
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


class WritesThroughNdnd(Case):
    """Head, disks, writer and reader are byname's; the forwarder between them is NDNd's."""

    needs = ("ndnd",)
    DISKS = 3

    def test_put_and_get(self):
        hub = nodes.NdndForwarder(self.lab)
        files = [samples.directory() / name for name in READ]
        nodes.byname_site(self.lab, hub, NAME, files, self.DISKS)
        # Without Nacks, what goes to the head in place of a disk is lost.
        table = NdndTool(self.lab, hub).run("fib-list").stdout.decode()
        disks = [line for line in table.splitlines() if "/32=disk/" in line]
        self.assertEqual(len(disks), self.DISKS, table)
        self.assertTrue(all(line.count("faceid=") == 1 for line in disks), table)
        os.makedirs(self.lab.path("out"), exist_ok=True)
        for name in READ:
            out = self.lab.path(f"out/{name}")
            argv = [nodes.byname_binary(), "get", f"{NAME}/{name}", "--connect", hub.uri(),
                    "-o", out]
            result = self.lab.run(argv, {"BYNAME_HOME": str(self.lab.path("site/home"))})
            self.assertEqual(result.code, 0, str(result))
            self.assertIsNone(samples.difference(out, name))
