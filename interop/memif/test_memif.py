"""DPDK's memif driver, as it comes in testpmd: frames and files through it, in both roles.

testpmd needs no hugepages, no network card and no privileges for this. It forwards what it reads
from one port to the other, or back if there is only one.
"""

import itertools
import json
import os
import shutil
import signal
import subprocess

from harness import nodes, peers, samples
from harness.case import Case, grid
from harness.lab import wait_until

TESTPMD = "dpdk-testpmd"

# Buffers of both sides hold the longest NDN packet and what a link adds. DPDK keeps 128 octets of
# each of its own buffers for itself.
BUFFER_BYTES = 9216
MBUF_BYTES = BUFFER_BYTES + 128

START_TIMEOUT_S = 30
PING_TIMEOUT_S = 120


def example():
    """The program that speaks memif by hand (crates/io/examples/memif.rs), built if need be."""
    chosen = os.environ.get("BYNAME_MEMIF_EXAMPLE")
    if chosen:
        return chosen
    built = [peers.REPO / f"target/{profile}/examples/memif" for profile in ("release", "debug")]
    found = next((str(path) for path in built if os.access(path, os.X_OK)), None)
    if found is None:
        build = ["cargo", "build", "-q", "-p", "byname-io", "--example", "memif"]
        subprocess.run(build, cwd=peers.REPO, check=True)
        found = str(built[1])
    return found


class Testpmd:
    """testpmd with memif ports; each port is (role, socket, further arguments)."""

    numbers = itertools.count()

    def __init__(self, lab, *ports, ring_log2=10, eal=()):
        # Its log would otherwise come in blocks, too late to wait for a line.
        argv = ["stdbuf", "-oL", TESTPMD, "--no-huge", "-m", "256", "--no-pci", "--no-telemetry",
                f"--file-prefix={lab.dir.name}-{next(self.numbers)}",
                f"--lcores=(0-1)@(0-{os.cpu_count() - 1})", *eal]
        for number, (role, path, more) in enumerate(ports):
            argv.append(f"--vdev=net_memif{number},role={role},id={number},bsize={BUFFER_BYTES},"
                        f"rsize={ring_log2},socket={path},socket-abstract=no{more}")
        # What comes before it begins to forward would be thrown away.
        argv += ["--", "-i", "--auto-start", "--forward-mode=io", f"--mbuf-size={MBUF_BYTES}",
                 "--total-num-mbufs=4096", "--disable-link-check", "--no-flush-rx"]
        self.daemon = lab.start("testpmd", argv, stdin=subprocess.PIPE)

    def wait_until_ready(self):
        """Waits until it forwards."""
        self.daemon.wait_for_log("io packet forwarding - ports=", START_TIMEOUT_S)

    def wait_for_socket(self, path):
        """Waits until a port with the server role can be connected to."""
        wait_until(lambda: os.path.exists(path), f"{path} to appear", START_TIMEOUT_S, self.daemon)
        self.wait_until_ready()


class MemifCase(Case):
    """A test that needs testpmd."""

    needs_byname = False

    def setUp(self):
        super().setUp()
        if shutil.which(TESTPMD) is None:
            self._missing(f"{TESTPMD} is not installed (Debian: dpdk-dev, Ubuntu: dpdk)")

    def ping(self, side, uri, **options):
        """Sends frames and expects them back; returns what the example counted."""
        words = [f"{key}={value}" for key, value in options.items()]
        return self.lab.run([example(), "ping", side, uri, *words], timeout_s=PING_TIMEOUT_S)

    def assert_all_came_back(self, result, count):
        self.assertEqual(result.code, 0, str(result))
        found = json.loads(result.stdout)
        for key in ("lost", "wrong", "malformed"):
            self.assertEqual(found[key], 0, str(result))
        self.assertEqual(found["received"], count, str(result))

    def listen(self, mode, path):
        """The example with the server role, in the background."""
        daemon = self.lab.start(mode, [example(), mode, "listen", f"memif://{path}"])
        wait_until(lambda: os.path.exists(path), f"{mode} to listen", daemon=daemon)
        return daemon


class FramesThroughTestpmd(MemifCase):
    """One port, which sends back what comes."""

    @grid(bytes_=(12, 1000, 8800), window=(1, 200))
    def check_testpmd_as_server(self, bytes_, window):
        path = self.lab.path("server.sock")
        testpmd = Testpmd(self.lab, ("server", path, ""))
        testpmd.wait_for_socket(path)
        count = 300 if window == 1 else 20000
        result = self.ping("connect", f"memif://{path}", count=count, bytes=bytes_, window=window)
        self.assert_all_came_back(result, count)

    @grid(bytes_=(12, 1000, 8800), window=(1, 200))
    def check_testpmd_as_client(self, bytes_, window):
        count = 300 if window == 1 else 20000
        self.check_client("", (), count=count, bytes=bytes_, window=window)

    def test_testpmd_as_client_without_copies(self):
        """Its packet memory itself is what we map: many regions, not sealed."""
        eal = ("--single-file-segments",)
        self.check_client(",zero-copy=yes", eal, count=20000, bytes=8800, window=200)

    def check_client(self, more, eal, **options):
        path = self.lab.path("client.sock")
        words = [f"{key}={value}" for key, value in options.items()]
        ping = self.lab.start("ping", [example(), "ping", "listen", f"memif://{path}", *words])
        wait_until(lambda: os.path.exists(path), "ping to listen", daemon=ping)
        Testpmd(self.lab, ("client", path, more), eal=eal)
        ping.process.wait(PING_TIMEOUT_S)
        found = json.loads(ping.log_text().splitlines()[-1])
        for key in ("lost", "wrong", "malformed"):
            self.assertEqual(found[key], 0, str(found))
        self.assertEqual(found["received"], options["count"])

    @grid(ring_log2=(1, 5, 14))
    def check_ring_size(self, ring_log2):
        """The client's rings are as large as it wants; the server's say is an upper limit."""
        path = self.lab.path("server.sock")
        testpmd = Testpmd(self.lab, ("server", path, ""), ring_log2=ring_log2)
        testpmd.wait_for_socket(path)
        result = self.ping("connect", f"memif://{path}", count=5000, bytes=1000, window=2)
        self.assert_all_came_back(result, 5000)

    def test_one_after_the_other(self):
        path = self.lab.path("server.sock")
        testpmd = Testpmd(self.lab, ("server", path, ""))
        testpmd.wait_for_socket(path)
        for _ in range(3):
            result = self.ping("connect", f"memif://{path}", count=1000, bytes=1000, window=32)
            self.assert_all_came_back(result, 1000)

    def test_an_id_that_the_server_does_not_have(self):
        path = self.lab.path("server.sock")
        testpmd = Testpmd(self.lab, ("server", path, ""))
        testpmd.wait_for_socket(path)
        result = self.ping("connect", f"memif://{path}?id=77", count=1, bytes=100, window=1)
        self.assertEqual(result.code, 1, str(result))
        self.assertIn("ID not found", result.stderr)

    @grid(how=("quit", "kill"))
    def check_testpmd_leaves(self, how):
        """Its end is noticed, announced or not."""
        path = self.lab.path("client.sock")
        echo = self.listen("echo", path)
        testpmd = Testpmd(self.lab, ("client", path, ""))
        echo.wait_for_log("connected", START_TIMEOUT_S)
        if how == "kill":
            testpmd.daemon.signal(signal.SIGKILL)
        else:
            testpmd.daemon.process.stdin.write(b"quit\n")
            testpmd.daemon.process.stdin.flush()
        self.assertEqual(echo.process.wait(30), 0, echo.log_text())
        self.assertEqual(json.loads(echo.log_text().splitlines()[-1])["frames"], 0)


class Strangers(Case):
    """Our two ends as different users: neither trusts the other's memory."""

    needs_byname = False

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            self.skipTest("only root can become somebody else")

    @grid(stranger=("client", "server"), bytes_=(100, 8800))
    def check_frames_come_back(self, stranger, bytes_):
        self.lab.dir.chmod(0o755)
        directory = self.lab.path("theirs/memif.sock").parent
        directory.chmod(0o777)
        path = directory / "memif.sock"
        program = shutil.copy(example(), self.lab.path("memif"))
        become = {"client": (), "server": ()}
        become[stranger] = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        echo = self.lab.start("echo", [*become["server"], program, "echo", "listen",
                                       f"memif://{path}"])
        wait_until(path.exists, "echo to listen", daemon=echo)
        path.chmod(0o666)
        result = self.lab.run([*become["client"], program, "ping", "connect", f"memif://{path}",
                               "count=20000", f"bytes={bytes_}", "window=300"])
        self.assertEqual(result.code, 0, str(result))
        found = json.loads(result.stdout)
        self.assertEqual((found["received"], found["wrong"]), (20000, 0), str(result))
        self.assertEqual(echo.process.wait(10), 0, echo.log_text())


class FilesThroughTestpmd(MemifCase):
    """byname at both ends of two memif links with testpmd in between, which has both roles."""

    needs_byname = True

    @grid(name=samples.SOME)
    def check_verified_read(self, name):
        forwarder_path = self.lab.path("forwarder.sock")
        reader_path = self.lab.path("reader.sock")
        hub = nodes.BynameForwarder(self.lab, listens=(f"memif://{forwarder_path}",))
        nodes.byname_serve(self.lab, hub, samples.directory(), "/lab")
        testpmd = Testpmd(self.lab, ("client", forwarder_path, ""), ("server", reader_path, ""))
        testpmd.wait_for_socket(reader_path)
        out = self.lab.path("out/f")
        argv = [nodes.byname_binary(), "get", samples.uri("/lab", name),
                "--connect", f"memif://{reader_path}?id=1", "-o", out]
        # The publisher's own keys are trusted in its home, so all is verified.
        result = self.lab.run(argv, {"BYNAME_HOME": str(self.lab.path("publisher/home"))})
        self.assertEqual(result.code, 0, str(result))
        self.assertIsNone(samples.difference(out, name))
