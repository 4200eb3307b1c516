"""A redirector with two servers that load the plug-in, and their cmsd, which load it too."""

import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from door import DoorCase  # noqa: E402  (the path above must come first)
from harness import xrootd  # noqa: E402
from harness.lab import wait_until  # noqa: E402
from serving import CHECKSUM_LINES, Serving  # noqa: E402

MANAGER_PORT = 1213
SERVER_PORTS = (2094, 3094)


# Redirections by HTTP keep the port of XRootD's own protocol, so both are served there.
HTTP = ("if exec xrootd", "xrd.protocol http libXrdHttp.so", "fi")


class Cluster(DoorCase, Serving):
    def test_two_servers_behind_a_redirector(self):
        folder = self.content()
        link = self.publish(folder)
        common = [f"all.manager localhost:{MANAGER_PORT}", "cms.delay startup 5 servers 1 lookup 1",
                  *HTTP]
        manager = xrootd.Server(self.node, ["all.role manager", *common,
                                            "xrootd.chksum max 4 adler32 crc32c md5",
                                            f"xrd.port {MANAGER_PORT} if exec cmsd"],
                                label="manager", with_cmsd=True)
        servers = [self.door(link, "all.role server", *common, *CHECKSUM_LINES,
                             label=f"server{number}", port=port, with_cmsd=True)
                   for number, port in enumerate(SERVER_PORTS, 1)]

        def located():
            said = xrootd.xrdfs(manager, "locate", "-d", "/8193.bin").stdout.decode()
            return [port for port in SERVER_PORTS if f":{port} " in said]

        wait_until(lambda: len(located()) == 2, "both servers to have the file", 90)
        self.assert_serves(manager, folder)
        # XRootD 5.5.3 does not escape the addresses that it redirects to.
        self.assert_http(manager, folder, "--location", at=f"http://localhost:{manager.port}",
                         relatives=("empty", "8193.bin", "sub/directory/v=7"))
        # One of them is gone, and nobody misses it.
        servers[0].daemon.signal(signal.SIGKILL)
        servers[0].cmsd.signal(signal.SIGKILL)
        out = self.lab.path("out")
        self.assert_ok(xrootd.xrdcp(manager, "/8192.bin", out, "-f"))
        self.assert_same(out, folder / "8192.bin")
        self.assertTrue(servers[1].is_alive() and servers[1].cmsd.process.poll() is None)
