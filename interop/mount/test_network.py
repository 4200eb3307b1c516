"""A mount whose publisher is on another machine, and the link between them."""

import contextlib
import os
import time

from harness import nodes
from harness.case import Case
from harness.lab import wait_until
from harness.netns import Topology

FILE_BYTES = 24 << 20
PORT = 6363
# Silence after which a call fails, and what a busy machine may take besides.
TIMEOUT_S = 2
CALL_S_MAX = 40


class Network(Case):
    needs_netns = True

    def setUp(self):
        if not os.path.exists("/dev/fuse"):
            self._missing("there is no /dev/fuse")
        super().setUp()
        self.net = Topology(self.lab, ["origin", "site"], [("origin", "site")])
        self.source = self.lab.path("source/.keep").parent
        self.source.mkdir(exist_ok=True)
        self.content = os.urandom(FILE_BYTES)
        for name in ("large", "other"):
            (self.source / name).write_bytes(self.content)
        self.mount = self.lab.path("mount/.keep").parent
        self.mount.mkdir(exist_ok=True)
        self.env = {"BYNAME_HOME": str(self.lab.path("reader"))}
        address = self.net.address("origin", seen_from="site")
        self.server = self.net["origin"].start("up", [
            nodes.byname_binary(), "up", self.source, "--name", "/lab/net",
            "--listen", f"tcp://{address}:{PORT}"],
            {"BYNAME_HOME": str(self.lab.path("publisher"))})
        self.server.wait_for_log("byname:/")
        text = self.server.log_text()
        self.link = text[text.index("byname:/"):].split()[0]

    def byname(self, *argv):
        """A command on the reader's machine, which has to succeed."""
        done = self.net["site"].run([nodes.byname_binary(), *argv], self.env)
        self.assertEqual(done.code, 0, str(done))
        return done

    @contextlib.contextmanager
    def opened(self, *flags):
        """A file of a new mount, open; unmounted afterwards."""
        self.byname("mount", self.link, self.mount, "--timeout", TIMEOUT_S, *flags)
        try:
            descriptor = os.open(self.mount / "large", os.O_RDONLY)
            try:
                yield descriptor
            finally:
                os.close(descriptor)
        finally:
            self.lab.run(["umount", "-l", self.mount])

    def read(self, descriptor, offset):
        """The octets at an offset, or None after an error; in a bounded time."""
        began = time.monotonic()
        try:
            found = os.pread(descriptor, 4096, offset)
        except OSError:
            found = None
        self.assertLess(time.monotonic() - began, CALL_S_MAX)
        if found is not None:
            self.assertEqual(found, self.content[offset:offset + 4096])
        return found

    def test_a_cut_is_an_error_and_open_files_go_on_when_it_is_mended(self):
        with self.opened("--no-cache") as descriptor:
            self.assertIsNotNone(self.read(descriptor, 0))
            self.net.cut("origin", "site")
            self.assertIsNone(self.read(descriptor, 20 << 20))
            # What hangs on the mount point alone asks nobody.
            done = self.lab.run(["timeout", CALL_S_MAX, "df", self.mount])
            self.assertEqual(done.code, 0, str(done))
            self.assertTrue(self.mount.is_dir())
            self.net.restore("origin", "site")
            wait_until(lambda: self.read(descriptor, 20 << 20) is not None,
                       "the open file to go on", 60)
            self.assertEqual((self.mount / "other").read_bytes(), self.content)

    def test_what_is_in_the_cache_is_read_while_the_link_is_cut(self):
        self.byname("cache", "warm", self.link)
        with self.opened() as descriptor:
            self.net.cut("origin", "site")
            for offset in range(0, FILE_BYTES, 1 << 20):
                self.assertIsNotNone(self.read(descriptor, offset))

    def test_a_mount_is_taken_away_while_the_link_is_cut(self):
        with self.opened():
            self.net.cut("origin", "site")
            self.byname("umount", self.mount)
            self.assertEqual(list(self.mount.iterdir()), [])
            self.net.restore("origin", "site")
            self.byname("mount", self.link, self.mount)
            self.assertEqual((self.mount / "other").read_bytes(), self.content)
