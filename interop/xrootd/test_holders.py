"""Several holders of one name behind the door: one dies in mid-file, and nobody notices."""

import json
import pathlib
import random
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from door import DoorCase, NAME  # noqa: E402  (the path above must come first)
from harness import nodes, xrootd  # noqa: E402
from harness.lab import START_TIMEOUT_S, wait_until  # noqa: E402

BYTES = 160 << 20
# As much as that of the file is there when a holder dies.
PART_BYTES = 4 << 20
# At least so much is then missing. What has been asked of the door by then is less than half of
# that: xrdcp has four chunks of 8 MiB under way, behind the one that is there, and the door reads
# ahead of those.
MISSING_BYTES = 128 << 20
RATE = "30m"
LOOK_S = 0.02
TIMEOUT_S = 120
PORTS = {"origin": 7001, "mirror": 7002}


class Holders(DoorCase):
    def mirror(self, folder):
        """A copy of what is published, with what its publisher signed."""
        home = {"BYNAME_HOME": str(self.lab.path("mirror/home"))}
        copy = self.lab.path("mirror/copy")
        got = self.node.run([nodes.byname_binary(), "get", "-r", self.link(), "-o", copy], home)
        self.assert_ok(got)
        self.assertEqual((copy / "large.bin").read_bytes(), (folder / "large.bin").read_bytes())
        argv = [nodes.byname_binary(), "serve", "--mirror", copy, "--name", NAME, "--json"]
        return argv, home

    def published(self):
        """A file that takes a while."""
        folder = self.node.path("published/.keep").parent
        content = random.Random(3).randbytes(BYTES)
        (folder / "large.bin").write_bytes(content)
        return folder

    def copy_while(self, door, kill):
        """Copies the file, calls `kill` in its middle; the longest time without progress."""
        out = self.lab.path("out/large.bin")
        argv = ["xrdcp", "--nopbar", "--xrate", RATE, door.url("/large.bin"), out]
        copying = self.node.start("xrdcp", argv, xrootd.CLIENT_ENV).process

        def have():
            return out.stat().st_size if out.exists() else 0

        wait_until(lambda: have() >= PART_BYTES, "the first part", START_TIMEOUT_S)
        kill()
        self.assertLess(have(), BYTES - MISSING_BYTES, "there was no middle left")
        killed = last = time.monotonic()
        longest, before = 0.0, have()
        while copying.poll() is None:
            now, size = time.monotonic(), have()
            self.assertLess(now - killed, TIMEOUT_S, "the copy does not end")
            longest = max(longest, now - last)
            if size != before:
                last, before = now, size
            time.sleep(LOOK_S)
        self.assertEqual(copying.returncode, 0)
        return out, longest

    def assert_mirror_served(self, mirror):
        """The mirror ends, and tells that it has sent some of the file."""
        mirror.stop()
        told = [json.loads(line) for line in mirror.log_text().splitlines()
                if line.startswith("{")]
        self.assertGreaterEqual(told[-1]["segments"], MISSING_BYTES // 2 // 8192)

    def report_pause(self, what, pause_s):
        """Figures are shown, not judged: the machine decides."""
        print(f"     {what}: xrdcp stood still for at most {pause_s:.2f} s", flush=True)

    def test_one_of_two_behind_a_forwarder_dies_in_mid_file(self):
        folder = self.published()
        link = self.publish(folder)
        argv, home = self.mirror(folder)
        # Copying has left the file in the forwarder's store.
        self.assert_ok(self.node.run([nodes.byname_binary(), "cs", "erase", NAME, "--connect",
                                      self.forwarder.uri()], home))
        mirror = self.node.start("mirror", [*argv, "--connect", self.forwarder.uri()], home)
        mirror.wait_for_log(f"byname:{NAME}")
        door = self.door(link)
        out, pause_s = self.copy_while(
            door, lambda: self.publisher.signal(signal.SIGKILL))
        self.assert_same(out, folder / "large.bin")
        self.report_pause("origin killed behind a forwarder", pause_s)
        self.assert_mirror_served(mirror)
        self.assertTrue(door.is_alive())

    def test_one_of_two_that_the_link_names_dies_in_mid_file(self):
        folder = self.published()
        self.publish(folder)
        argv, home = self.mirror(folder)
        self.publisher.stop()
        holders = {}
        origin = [nodes.byname_binary(), "serve", folder, "--name", NAME]
        for label, command, own in (("origin", origin, "publisher/home"),
                                    ("mirror", argv, "mirror/home")):
            listen = f"tcp://127.0.0.1:{PORTS[label]}"
            home = {"BYNAME_HOME": str((self.node if label == "origin" else self.lab).path(own))}
            holders[label] = self.node.start(label, [*command, "--listen", listen], home)
            holders[label].wait_for_log(f"byname:{NAME}")
        via = "&".join(f"via=tcp://127.0.0.1:{port}" for port in PORTS.values())
        door = self.door(f"byname:{NAME}?{via}&key={self.key}")
        out, pause_s = self.copy_while(
            door, lambda: holders["origin"].signal(signal.SIGKILL))
        self.assert_same(out, folder / "large.bin")
        self.report_pause("first source of the link killed", pause_s)
        self.assert_mirror_served(holders["mirror"])
        self.assertTrue(door.is_alive())
