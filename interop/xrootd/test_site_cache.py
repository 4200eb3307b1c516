"""The door as the cache of a site: what it has read once is on its disk, also for the next door."""

import json
import os
import pathlib
import shutil
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from door import DoorCase  # noqa: E402  (the path above must come first)
from harness import xrootd  # noqa: E402
from harness.lab import wait_until  # noqa: E402

FILE_BYTES = 24 << 20


class SiteCache(DoorCase):
    def setUp(self):
        super().setUp()
        self.folder = self.node.path("published/.keep").parent
        self.file = self.folder / "large.bin"
        self.file.write_bytes(os.urandom(FILE_BYTES))

    def caching_door(self, link, label="caching", port=xrootd.PORT):
        """A door with a cache of 1 GiB on its disk, as docs/xrootd.md configures it."""
        config = self.node.path("byname.toml")
        cache = xrootd.own(self.node.path("site-cache"))
        cache.chmod(0o700)
        config.write_text(f'[cache]\nenabled = true\ndirectory = "{cache}"\nsize_mib = 1024\n'
                          "free_mib = 0\n")
        config.chmod(0o644)
        lines = (f"byname.config {config}", "byname.cache 1m")
        return self.door(link, *lines, label=label, port=port)

    def copy(self, door):
        """Copies the file, and compares it; what the open of it received over the network."""
        out = self.lab.path("out")
        self.assert_ok(xrootd.xrdcp(door, "/large.bin", out, "-f"))
        self.assert_same(out, self.file)
        opens = [json.loads(line) for line in door.opens().splitlines()]
        return opens[-1]["received_bytes"]

    def fill(self, door):
        """Copies until nothing has to be received, and all of it is noted: the disk is behind the
        readers."""
        self.assertGreaterEqual(self.copy(door), FILE_BYTES)
        wait_until(lambda: self.copy(door) == 0, "a copy from the disk", 30)
        tree = self.node.path("site-cache") / "tree"
        wait_until(lambda: any(tree.rglob("large.bin")), "the whole file in the cache's tree", 30)

    def test_a_door_finds_on_the_disk_what_another_has_read(self):
        link = self.publish(self.folder)
        door = self.caching_door(link)
        self.fill(door)
        door.daemon.signal(signal.SIGKILL)
        # The kernel may keep the first one's port for a while.
        again = self.caching_door(link, label="again", port=xrootd.PORT + 1)
        self.assertEqual(self.copy(again), 0)

    def test_a_cache_that_is_taken_away_is_missed_by_nobody(self):
        door = self.caching_door(self.publish(self.folder))
        self.fill(door)
        shutil.rmtree(self.node.path("site-cache") / "entries")
        self.copy(door)
        self.assert_alive(door)
