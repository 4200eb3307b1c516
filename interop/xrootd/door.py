"""What the tests of the plug-in share: a publisher, a forwarder and an xrootd on one node."""

import filecmp
import os
import re
import shutil
import time
import urllib.parse

from harness import nodes, samples, xrootd
from harness.case import Case
from harness.lab import wait_until
from harness.netns import Topology

NAME = "/lab"
FORWARDER_PORT = 6363
# Besides those of the samples whose names XRootD can say: what follows a "?" is for servers.
SIZES = {"8191.bin": 8191, "8192.bin": 8192, "8193.bin": 8193, "100% sure & #1.txt": 3000}


class DoorCase(Case):
    needs_netns = True

    def setUp(self):
        super().setUp()
        reason = xrootd.unavailable()
        if reason:
            self._missing(reason)
        self.net = Topology(self.lab, ["door"])
        self.node = self.net["door"]
        self.forwarder = nodes.BynameForwarder(self.node, port=FORWARDER_PORT)

    def publish(self, directory, name=NAME, flags=()):
        """Publishes a directory; the link to it."""
        self.publisher = nodes.byname_serve(self.node, self.forwarder, directory, name,
                                            flags=flags)
        self.key = nodes.printed_key(self.publisher)
        return self.link(name)

    def link(self, name=NAME, key=None):
        """The link to what is published."""
        return f"byname:{name}?via={self.forwarder.uri('tcp')}&key={key or self.key}"

    def content(self):
        """A directory with small files of all kinds."""
        folder = self.node.path("published/.keep").parent
        for relative in samples.SMALL:
            if "?" in relative:
                continue
            target = folder / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(samples.directory() / relative, target)
        for relative, size in SIZES.items():
            (folder / relative).write_bytes(os.urandom(size))
        return folder

    def door(self, link, *lines, loader="ofs.osslib $PLUGIN", **options):
        """Starts an xrootd with the plug-in."""
        both = [loader, f"byname.link {link}", "byname.openlog $DIR/admin/opens.json", *lines]
        return xrootd.Server(self.node, both, **options)

    def figure(self, door, name):
        """One of the door's counters, not older than this call; it has to write them to
        "$DIR/admin/metrics" every second."""
        metrics, asked = door.dir / "admin/metrics", time.time()
        wait_until(lambda: metrics.exists() and metrics.stat().st_mtime > asked, "the counters")
        return int(re.search(rf"(?m)^byname_xrootd_{name} (\d+)$", metrics.read_text()).group(1))

    def assert_same(self, got, wanted):
        """Compares two files octet by octet."""
        self.assertTrue(os.path.exists(got), f"{got}: nothing was written")
        self.assertTrue(filecmp.cmp(got, wanted, shallow=False), f"{got} differs from {wanted}")

    def assert_ok(self, result):
        """The command ended well; its output as text."""
        self.assertEqual(result.code, 0, str(result))
        return result.stdout.decode(errors="replace")

    def assert_error(self, result, code, text=""):
        """The command failed with this error of XRootD."""
        self.assertNotEqual(result.code, 0, str(result))
        self.assertFalse(result.timed_out, str(result))
        said = result.stderr + result.stdout.decode(errors="replace")
        self.assertIn(f"[{code}]", said)
        self.assertIn(text, said)

    def assert_alive(self, server):
        """The server runs and serves."""
        self.assertTrue(server.is_alive(), server.daemon.log_text()[-2000:])
        self.assert_ok(xrootd.xrdfs(server, "stat", "/"))


def files_below(folder):
    """Paths of all files, relative."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def escaped(path):
    """The path as a part of an address."""
    return urllib.parse.quote("/" + path)


def parts_of(body, content_type):
    """The ranges of a multipart answer: (first octet, content)."""
    boundary = re.search(r'boundary="?([^";\r\n]+)', content_type).group(1).encode()
    found = []
    for piece in body.split(b"--" + boundary)[1:-1]:
        head, _, rest = piece.partition(b"\r\n\r\n")
        first, last = map(int, re.search(rb"bytes (\d+)-(\d+)", head).groups())
        found.append((first, rest[:last - first + 1]))
    return found
