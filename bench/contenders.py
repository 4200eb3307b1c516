"""Everybody else's ways of moving a file or a tree."""

import os
import pwd
import shutil
import socket

from harness import nodes, peers
from harness.lab import START_TIMEOUT_S, free_port, wait_until
from scenarios import NAME, Scenario
from work import FILE, TREE

PUBLISH_TIMEOUT_S = 300
TRANSFERS = 4  # as many files at a time as rclone takes by itself


def absent(*programs):
    """Which of the programs are not there, as a sentence; or None."""
    missing = [program for program in programs if shutil.which(program) is None]
    return f"{' and '.join(missing)} not installed (scripts/setup --for bench)" if missing else None


class Tcp(Scenario):
    """A server that listens on a TCP port."""

    def home(self):
        """A directory for its configuration."""
        return self.ground.server.path(f"{type(self).__name__}/config").parent

    def started(self, label, argv, env=None):
        """Starts the server and waits until it accepts connections."""
        daemon = self.ground.server.start(label, argv, env)
        wait_until(self._accepts, f"{label} to listen", START_TIMEOUT_S, daemon)
        self.daemons = [daemon]

    def _accepts(self):
        address = (self.ground.server_address, self.port)
        try:
            if hasattr(self.ground.client, "entered"):
                with self.ground.client.entered():
                    socket.create_connection(address, 1).close()
            else:
                socket.create_connection(address, 1).close()
            return True
        except OSError:
            return False

    def authority(self):
        """host:port"""
        return f"{self.ground.server_address}:{self.port}"


class Xrootd(Tcp):
    """xrdcp from xrootd over TCP, as installed: with checksums per page (pgread)."""

    title = "xrdcp"

    @staticmethod
    def missing():
        return absent("xrootd", "xrdcp")

    def version(self):
        return "xrootd " + self.first_line(["xrdcp", "--version"]).split()[0]

    def start(self):
        self.port = free_port()
        home = self.home()
        config = home / "xrootd.cfg"
        config.write_text("\n".join((
            f"xrd.port {self.port}",
            f"oss.localroot {self.work.directory}",
            "all.export /",
            f"all.adminpath {home}/admin",
            f"all.pidpath {home}",
        )) + "\n")
        argv = ["xrootd", "-c", config]
        if os.geteuid() == 0:
            argv += ["-R", self._unprivileged(home)]
        self.started("xrootd", argv)

    def _unprivileged(self, home):
        """xrootd refuses to run as root: it becomes nobody, who has to reach the files."""
        nobody = pwd.getpwnam("nobody")
        os.chown(home, nobody.pw_uid, nobody.pw_gid)
        lab = getattr(self.ground.server, "lab", self.ground.server)
        lab.dir.chmod(0o755)
        return "nobody"

    def clean(self):
        super().clean()
        if self.work.is_tree:
            self.out.mkdir()  # a directory is copied into one that is there

    def result(self):
        return self.out / TREE if self.work.is_tree else self.out

    def client(self):
        url = f"root://{self.authority()}//"
        if self.work.is_tree:
            return ["xrdcp", "-s", "-r", "-f", url + TREE, self.out]
        return ["xrdcp", "-s", "-f", url + FILE, self.out]


class XrootdPlainRead(Xrootd):
    """The same with plain reads, without checksums."""

    title = "xrdcp, plain reads"

    def start(self):
        super().start()
        self.env = {"XRD_CPUSEPGWRTRD": "0"}


class XrootdParallel(Xrootd):
    """Several files at a time."""

    title = f"xrdcp -r --parallel {TRANSFERS}"

    def client(self):
        return [*super().client()[:1], "--parallel", TRANSFERS, *super().client()[1:]]


class Nginx(Tcp):
    """nginx with sendfile, curl."""

    title = "nginx + curl"

    @staticmethod
    def missing():
        return absent("nginx", "curl")

    def version(self):
        return self.first_line(["nginx", "-v"]).replace("nginx version: ", "")

    def start(self):
        self.port = free_port()
        home = self.home()
        config = home / "nginx.conf"
        config.write_text(
            f"daemon off; master_process off; pid {home}/pid; error_log {home}/error.log;\n"
            "events {}\n"
            "http { access_log off; sendfile on; tcp_nopush on;\n"
            f"  server {{ listen {self.authority()}; root {self.work.directory}; }} }}\n")
        self.started("nginx", ["nginx", "-p", home, "-c", config])

    def client(self):
        return ["curl", "-s", "-f", "-o", self.out, f"http://{self.authority()}/{FILE}"]


class Rsync(Tcp):
    """An rsync daemon and its client, whole files, no compression."""

    title = "rsync daemon"

    @staticmethod
    def missing():
        return absent("rsync")

    def version(self):
        return " ".join(self.first_line(["rsync", "--version"]).split()[:3])

    def start(self):
        self.port = free_port()
        home = self.home()
        config = home / "rsyncd.conf"
        config.write_text(f"use chroot = no\npid file = {home}/pid\nuid = {os.getuid()}\n"
                          f"gid = {os.getgid()}\n"
                          f"[bench]\npath = {self.work.directory}\nread only = yes\n")
        self.started("rsyncd", ["rsync", "--daemon", "--no-detach", f"--config={config}",
                                f"--port={self.port}", f"--address={self.ground.server_address}"])

    def client(self):
        what = f"{TREE}/" if self.work.is_tree else FILE
        source = f"rsync://{self.authority()}/bench/{what}"
        return ["rsync", "-rt", "--whole-file", source, self.out]


class Rclone(Tcp):
    """`rclone serve webdav` and `rclone copy`."""

    title = "rclone"
    rounds_max = 1

    @staticmethod
    def missing():
        return absent("rclone")

    def version(self):
        return self.first_line(["rclone", "version"])

    def start(self):
        self.port = free_port()
        self.started("rclone-serve", ["rclone", "serve", "webdav", self.work.directory,
                                      "--addr", self.authority(), "--read-only"])

    def client(self):
        if self.work.is_tree:
            source, verb = f":webdav:{TREE}", "copy"
        else:
            source, verb = f":webdav:{FILE}", "copyto"
        return ["rclone", verb, source, self.out, "--webdav-url", f"http://{self.authority()}",
                "--transfers", TRANSFERS]


class Cp(Scenario):
    """Reading and writing on one machine, nothing in between."""

    title = "cp"

    def version(self):
        return self.first_line(["cp", "--version"])

    def client(self):
        if self.work.is_tree:
            return ["cp", "-rT", self.work.path, self.out]
        # A reflink or copy_file_range would not move a byte.
        return ["cp", "--reflink=never", self.work.path, self.out]


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
        hub = nodes.NdndForwarder(self.ground.server)
        self.env = {"NDN_CLIENT_TRANSPORT": hub.uri()}
        with open(self.work.path, "rb") as content:
            put = self.ground.server.start("ndnd-put", [peers.NDND, "put", f"{NAME}/{FILE}"],
                                           self.env, content)
        put.wait_for_log("Registered route", PUBLISH_TIMEOUT_S)
        self.daemons = [hub.daemon, put]

    def client(self):
        return [peers.NDND, "cat", f"{NAME}/{FILE}"]
