"""The package byname-xrootd: installed into a root of its own, used, removed without a trace."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from door import DoorCase  # noqa: E402  (the path above must come first)
from harness import xrootd  # noqa: E402

EXAMPLE = "etc/xrootd/xrootd-byname.cfg.example"
STATE = "var/lib/byname-xrootd"


class Package(DoorCase):
    def setUp(self):
        super().setUp()
        self.lab.dir.chmod(0o711)
        self.root = self.lab.path("root/var/lib/dpkg/.keep").parents[3]
        self.root.chmod(0o755)

    def dpkg(self, *arguments):
        """dpkg on that root; its scripts run outside and are told of it."""
        return self.assert_ok(self.lab.run(["dpkg", f"--root={self.root}", "--force-depends",
                                            "--force-script-chrootless", *arguments]))

    def left(self):
        """Files that are not dpkg's own."""
        own = (self.root / "var/lib/dpkg", self.root / "var/log")
        return [path for path in self.root.rglob("*")
                if not path.is_dir() and not any(path.is_relative_to(folder) for folder in own)]

    def test_installed_used_and_removed(self):
        build = xrootd.built_plugin().parent
        self.assert_ok(self.lab.run(["cpack", "--config", build / "CPackConfig.cmake", "-B",
                                     self.lab.path("made/.keep").parent], timeout_s=120))
        package, = self.lab.path("made/.keep").parent.glob("byname-xrootd_*.deb")
        self.dpkg("--install", package)
        plugin, = self.root.glob("usr/lib/*/libXrdByname-5.so")
        self.assertEqual((self.root / STATE).owner(), xrootd.USER)
        # The example needs a link and a place to write to, nothing else.
        folder = self.content()
        link = self.publish(folder)
        example = (self.root / EXAMPLE).read_text()
        lines = [line for line in example.splitlines()
                 if not line.startswith(("byname.link", "byname.openlog", "all.", "xrd.port"))]
        text = "\n".join(lines).replace("libXrdByname.so", str(plugin.parent / "libXrdByname.so"))
        text = text.replace("/" + STATE, str(self.root / STATE))
        door = self.door(link, *text.splitlines(), loader="")
        out = self.lab.path("out")
        self.assert_ok(xrootd.xrdcp(door, "/8193.bin", out, "--cksum", "adler32:source"))
        self.assert_same(out, folder / "8193.bin")
        door.daemon.stop()
        self.dpkg("--purge", "byname-xrootd")
        self.assertEqual(self.left(), [])
        self.assertFalse((self.root / STATE).exists())
