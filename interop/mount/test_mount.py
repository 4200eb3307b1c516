"""Programs that analyse data on a mounted tree: they find what they find in the published one."""

import json
import os
import pathlib
import shutil

from harness import nodes, peers
from harness.case import Case

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs.py"


class Mount(Case):
    needs = ("analysis",)

    def setUp(self):
        if not os.path.exists("/dev/fuse"):
            self._missing("there is no /dev/fuse")
        if os.geteuid() != 0 and shutil.which("fusermount3") is None:
            self._missing("only root mounts without fusermount3")
        super().setUp()

    def programs(self, verb, directory):
        """Runs all programs on a directory; what they printed."""
        done = self.lab.run([peers.ANALYSIS_PYTHON, PROGRAMS, verb, directory], timeout_s=120)
        self.assertEqual(done.code, 0, str(done))
        return done.stdout

    def test_programs_find_in_a_mount_what_was_published(self):
        """Twice: over the network, and from the site cache by a new mount."""
        source, mount = self.lab.path("source/.keep").parent, self.lab.path("mount/.keep").parent
        source.mkdir(exist_ok=True), mount.mkdir(exist_ok=True)
        self.programs("make", source)
        forwarder = nodes.BynameForwarder(self.lab)
        server = nodes.byname_serve(self.lab, forwarder, source, "/lab/analysis")
        key = nodes.printed_key(server)
        expected = json.loads(self.programs("read", source))
        self.assertEqual(sorted(expected), ["bam", "hdf5", "parquet", "root"])
        link = f"byname:/lab/analysis?via={forwarder.uri()}&key={key}"
        env = {"BYNAME_HOME": str(self.lab.path("reader"))}
        byname = nodes.byname_binary()
        for _ in range(2):
            mounted = self.lab.run([byname, "mount", link, mount], env)
            self.assertEqual(mounted.code, 0, str(mounted))
            try:
                self.assertEqual(json.loads(self.programs("read", mount)), expected)
            finally:
                self.lab.run([byname, "umount", mount], env)
