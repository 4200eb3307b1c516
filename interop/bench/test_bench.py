"""Benchmarks on a machine that lacks the peers: they are said to be missing, the rest goes on."""

import os
import pathlib
import sys

from harness import nodes, peers
from harness.case import Case

FOREIGN = {"xrdcp", "xrootd", "nginx", "curl", "rsync", "rclone"}


class MissingPeers(Case):
    """`make bench` is these two, one behind the other."""

    def run_without_peers(self, *argv):
        """Runs a benchmark; its page and what it said meanwhile."""
        programs = self.lab.path("programs/.keep").parent
        for folder in map(pathlib.Path, ("/usr/sbin", "/usr/bin")):
            for program in folder.iterdir():
                link = programs / program.name
                if program.name not in FOREIGN and not link.is_symlink():
                    link.symlink_to(program)
        (programs / "python3").unlink(missing_ok=True)
        (programs / "python3").symlink_to(sys.executable)
        env = {"PATH": str(programs), "BYNAME_PEERS": str(self.lab.path("none")),
               "BYNAME_BIN": os.path.realpath(nodes.byname_binary())}
        done = self.lab.run([sys.executable, *argv], env, timeout_s=200)
        self.assertEqual(done.code, 0, str(done))
        return done.stdout.decode(), done.stderr

    def test_transfers_are_measured_without_xrootd_and_rsync(self):
        """The suite of small files has most peers."""
        page, said = self.run_without_peers(peers.REPO / "bench/run", "--suite", "files",
                                            "--files", "20", "--rounds", "1", "--size", "1M")
        for title, program in (("xrdcp", "xrootd and xrdcp"), ("rsync daemon", "rsync")):
            self.assertIn(f"{title}: not measured: {program} not installed", said)
            self.assertIn(f"Not measured: {title}: {program} not installed", page)
        self.assertIn("| byname get |", page)

    def test_forwarders_are_measured_without_ndnd(self):
        """Only NDNd's forwarder is another's."""
        page, _ = self.run_without_peers(peers.REPO / "bench/forwarder", "--quick", "--rounds", "1",
                                         "--seconds", "0.1", "--only", "fib: unix")
        self.assertIn("Not measured: NDNd, unix: ndnd is not installed", page)
        self.assertIn("byname", page)
