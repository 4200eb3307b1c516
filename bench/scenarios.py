"""What is measured: a way of moving something from a server to local memory, and byname's own ways.

Each has its servers and its client command; `contenders.py` has everybody else's. A scenario stands
on a ground (`ground.py`) and moves a work (`work.py`).
"""

import os
import shutil

import measure
from harness import nodes
from harness.lab import START_TIMEOUT_S, free_port, wait_until

NAME = "/bench"


class Scenario:
    """Subclasses start their servers in `start` and name the client command in `client`."""

    title = ""
    client_stdout_is_result = False
    # What takes minutes is not run as often as the rest.
    rounds_max = None

    def __init__(self, ground, work, out):
        self.ground = ground
        self.work = work
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
        """Starts the servers and publishes the work."""

    def client(self):
        """The command that fetches the work."""
        raise NotImplementedError

    def publish_cpu_s(self):
        """What the servers have spent so far; read once, before the first fetch."""
        return sum(measure.process_cpu_s(d.process.pid) for d in self.daemons)

    def clean(self):
        """Removes what the last run fetched."""
        if os.path.isdir(self.out):
            shutil.rmtree(self.out)
        elif os.path.exists(self.out):
            os.unlink(self.out)

    def result(self):
        """Where the copy is after a run."""
        return self.out

    def place(self, name):
        """A path of this scenario's own."""
        return self.ground.server.path(f"{type(self).__name__}/{name}")

    def fetch(self):
        """One run."""
        return self.run_client(self.out if self.client_stdout_is_result else None)

    def run_client(self, stdout):
        """One run of the client command, measured."""
        self.clean()
        servers = {daemon.label: daemon.process.pid for daemon in self.daemons}
        argv = self.ground.inside(self.ground.client, self.client())
        before = self.ground.sent_bytes()
        sample = measure.run(argv, self.ground.client.env(self.env), servers, stdout)
        if before is not None:
            sample.wire_bytes = self.ground.sent_bytes() - before
        return sample

    def first_line(self, argv):
        """What a program says first, such as its version."""
        result = self.ground.client.run(argv)
        said = (result.stdout.decode(errors="replace") + result.stderr).strip()
        return said.splitlines()[0] if said else "unknown version"

    def stop(self):
        """Ends the servers."""
        for daemon in reversed(self.daemons):
            daemon.stop()
        self.daemons = []


class Byname(Scenario):
    """serve + forward + get, every byte verified. The reader shares the publisher's home: its keys
    are anchors there."""

    title = "byname get"
    # Where each process listens and connects; None lets the program choose, as it does for users.
    link = "memif"

    @staticmethod
    def missing():
        return None if nodes.byname_binary() else "there is no byname binary"

    def version(self):
        return self.first_line([nodes.byname_binary(), "--version"])

    def start(self):
        self.env = {"BYNAME_HOME": str(self.place("home/.keep").parent)}
        binary = nodes.byname_binary()
        socket_path = self.place("sock")
        socket_path.unlink(missing_ok=True)
        self.uri = self.links()[0]
        argv = [binary, "forward", "--allow-register-loopback",
                "--listen", f"unix://{socket_path}"]
        for uri in dict.fromkeys(self.links()):
            argv += [] if uri.startswith("unix:") else ["--listen", uri]
        forward = self.ground.server.start("forward", argv, {
            "BYNAME_HOME": str(self.place("forward/.keep").parent)})
        wait_until(socket_path.exists, "byname forward to listen", START_TIMEOUT_S, forward)
        argv = [binary, "serve", self.work.directory, "--name", NAME, "--connect", self.links()[1]]
        serve = self.ground.server.start("serve", argv, self.env)
        nodes.wait_published(f"unix://{socket_path}", NAME, serve)
        self.daemons = [forward, serve]

    def client_env(self):
        """For a reader that trusts the publisher."""
        return self.ground.client.env(self.env)

    def links(self):
        """(the client's, the server's) way to the forwarder"""
        if self.link == "memif":
            return [f"memif://{self.place('memif.sock')}"] * 2
        return [f"unix://{self.place('sock')}"] * 2

    def client(self):
        argv = [nodes.byname_binary(), "get", self.work.under(NAME), "--connect", self.uri,
                "-o", self.out]
        return argv + (["-r"] if self.work.is_tree else [])


class BynameUnix(Byname):
    """The same over Unix sockets."""

    title = "byname get, Unix"
    link = "unix"


class BynameTcp(Byname):
    """The reader reaches the forwarder over TCP; the server is beside it."""

    title = "byname get, TCP"

    def start(self):
        self.port = free_port()
        super().start()

    def links(self):
        return [f"tcp://{self.ground.server_address}:{self.port}",
                f"memif://{self.place('memif.sock')}"]


class BynameDirect(Byname):
    """No forwarder: the reader connects to the server."""

    title = "byname get, direct"
    link = "unix"

    def start(self):
        self.env = {"BYNAME_HOME": str(self.place("home/.keep").parent)}
        socket_path = self.place("direct.sock")
        socket_path.unlink(missing_ok=True)
        self.uri = self.listen(socket_path)
        argv = [nodes.byname_binary(), "serve", self.work.directory, "--name", NAME,
                "--listen", self.uri, "--listen", f"unix://{socket_path}"]
        serve = self.ground.server.start("serve", list(dict.fromkeys(argv[:6])) + argv[6:],
                                         self.env)
        wait_until(socket_path.exists, "byname serve to listen", START_TIMEOUT_S, serve)
        nodes.wait_published(f"unix://{socket_path}", NAME, serve)
        self.daemons = [serve]

    def listen(self, _socket_path):
        """Where the server listens for the reader."""
        return f"memif://{self.place('direct-memif.sock')}"


class BynameUdp(Byname):
    """Both links UDP, each process on a machine of its own."""

    title = "byname get, UDP both links"

    def start(self):
        self.env = {"BYNAME_HOME": str(self.place("home/.keep").parent)}
        binary, port = nodes.byname_binary(), free_port()
        ground, socket_path = self.ground, self.place("direct.sock")
        socket_path.unlink(missing_ok=True)
        far = f"udp://{ground.server_address}:{port}"
        argv = [binary, "serve", self.work.directory, "--name", NAME, "--listen", far,
                "--listen", f"unix://{socket_path}"]
        serve = ground.server.start("serve", argv, self.env)
        wait_until(socket_path.exists, "byname serve to listen", START_TIMEOUT_S, serve)
        nodes.wait_published(f"unix://{socket_path}", NAME, serve)
        self.uri = f"udp://{ground.middle_address}:{port}"
        forward = ground.middle.start("forward", [
            binary, "forward", "--listen", self.uri, "--route", f"{NAME}={far}"],
            {"BYNAME_HOME": str(self.place("forward/.keep").parent)})
        forward.wait_for_log("listening")
        self.daemons = [forward, serve]
