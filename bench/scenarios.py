"""The ways of moving one file from a local server to local memory.

Each has its servers and its client command.
"""

import os
import pathlib
import pwd
import shutil
import socket

import measure
from harness import nodes, peers
from harness.lab import START_TIMEOUT_S, free_port, wait_until

FILE = "file.bin"
NAME = "/bench"
PUBLISH_TIMEOUT_S = 300


class Scenario:
    """Subclasses start their servers in `start` and name the client command in `client`."""

    title = ""
    client_stdout_is_result = False

    def __init__(self, lab, directory, out):
        self.lab = lab
        self.directory = pathlib.Path(directory)
        self.out = out
        self.daemons = []
        self.env = {}

    @staticmethod
    def missing():
        """Why the scenario cannot run here, or None."""
        return None

    def version(self):
        """Version of the software that is measured."""
        raise NotImplementedError

    def start(self):
        """Starts the servers and publishes the file."""
        raise NotImplementedError

    def client(self):
        """The command that fetches the file."""
        raise NotImplementedError

    def publish_cpu_s(self):
        """What the servers have spent so far; read once, before the first fetch."""
        return sum(measure.process_cpu_s(d.process.pid) for d in self.daemons)

    def fetch(self):
        """One run."""
        if os.path.exists(self.out):
            os.unlink(self.out)
        stdout = self.out if self.client_stdout_is_result else None
        servers = {daemon.label: daemon.process.pid for daemon in self.daemons}
        return measure.run(self.client(), self.lab.env(self.env), servers, stdout)


class Byname(Scenario):
    """serve + forward + get over a Unix socket, every byte verified."""

    title = "byname get"

    @staticmethod
    def missing():
        return None if nodes.byname_binary() else "there is no byname binary"

    def version(self):
        return self.lab.run([nodes.byname_binary(), "--version"]).stdout.decode().splitlines()[0]

    def start(self):
        # The reader shares the publisher's home: its keys are anchors there, so all is verified.
        self.env = {"BYNAME_HOME": str(self.lab.path("byname/home"))}
        socket_path = self.lab.path("byname/sock")
        self.uri = f"unix://{socket_path}"
        binary = nodes.byname_binary()
        forward = self.lab.start("byname-forward", [binary, "forward", "--listen", self.uri],
                                 {"BYNAME_HOME": str(self.lab.path("byname/forward"))})
        wait_until(socket_path.exists, "byname forward to listen", START_TIMEOUT_S, forward)
        argv = [binary, "serve", self.directory, "--name", NAME, "--connect", self.uri]
        serve = self.lab.start("byname-serve", argv, self.env)
        nodes.wait_published(self.uri, NAME, serve)
        self.daemons = [forward, serve]


    def client(self):
        return [nodes.byname_binary(), "get", f"{NAME}/{FILE}", "--connect", self.uri,
                "-o", self.out]


class Ndnd(Scenario):
    """`ndnd put`, NDNd's forwarder and `ndnd cat`, over a Unix socket; cat verifies nothing."""

    title = "ndnd cat"
    client_stdout_is_result = True

    @staticmethod
    def missing():
        return None if peers.PEERS["ndnd"].is_installed() else "ndnd is not installed"

    def version(self):
        return "ndnd " + peers.PEERS["ndnd"].version

    def start(self):
        hub = nodes.NdndForwarder(self.lab)
        self.env = {"NDN_CLIENT_TRANSPORT": hub.uri()}
        with open(self.directory / FILE, "rb") as content:
            put = self.lab.start("ndnd-put", [peers.NDND, "put", f"{NAME}/{FILE}"], self.env,
                                 content)
        put.wait_for_log("Registered route", PUBLISH_TIMEOUT_S)
        self.daemons = [hub.daemon, put]

    def client(self):
        return [peers.NDND, "cat", f"{NAME}/{FILE}"]


class Xrootd(Scenario):
    """xrdcp from a local xrootd over TCP, as installed: with checksums per page (pgread)."""

    title = "xrdcp"

    @staticmethod
    def missing():
        absent = [p for p in ("xrootd", "xrdcp") if shutil.which(p) is None]
        if not absent:
            return None
        return f"{' and '.join(absent)} not installed (scripts/setup --for bench)"

    def version(self):
        result = self.lab.run(["xrdcp", "--version"])
        return "xrootd " + (result.stdout.decode() + result.stderr).split()[0]

    def start(self):
        self.port = free_port()
        home = self.lab.path(f"{type(self).__name__}/config").parent
        config = home / "xrootd.cfg"
        config.write_text("\n".join((
            f"xrd.port {self.port}",
            f"oss.localroot {self.directory}",
            "all.export /",
            f"all.adminpath {home}/admin",
            f"all.pidpath {home}",
        )) + "\n")
        argv = ["xrootd", "-c", config]
        if os.geteuid() == 0:
            argv += ["-R", self._unprivileged(home)]
        daemon = self.lab.start("xrootd", argv)
        wait_until(self._accepts, "xrootd to listen", START_TIMEOUT_S, daemon)
        self.daemons = [daemon]

    def _unprivileged(self, home):
        """xrootd refuses to run as root: it becomes nobody, who has to reach the files."""
        nobody = pwd.getpwnam("nobody")
        os.chown(home, nobody.pw_uid, nobody.pw_gid)
        self.lab.dir.chmod(0o755)
        return "nobody"

    def _accepts(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def client(self):
        return ["xrdcp", "-s", "-f", f"root://127.0.0.1:{self.port}//{FILE}", self.out]


class XrootdPlainRead(Xrootd):
    """The same with plain reads, without checksums."""

    title = "xrdcp, plain reads"

    def start(self):
        super().start()
        self.env = {"XRD_CPUSEPGWRTRD": "0"}


ALL = (Byname, Ndnd, Xrootd, XrootdPlainRead)
REFERENCE = Xrootd.title
