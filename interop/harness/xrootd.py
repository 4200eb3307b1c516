"""xrootd and cmsd with byname's plug-in, and XRootD's own clients.

xrootd refuses to run as root and listens on all addresses: it runs as the user that Debian's
package makes, in the network namespace of a node.
"""

import functools
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import tempfile
from multiprocessing.util import Finalize

from . import nodes, peers
from .lab import START_TIMEOUT_S, wait_until

USER = "xrootd"
PORT = 1094
HTTP_PORT = 8080
PROGRAMS = ("xrootd", "cmsd", "xrdcp", "xrdfs", "curl", "setpriv")
# Debian's python3-xrootd is for Debian's Python.
PYTHON = "/usr/bin/python3"
CLIENT = peers.INTEROP / "xrootd/client.py"
# What libcurl takes for the system's certificates, and a command that puts others there.
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
TRUST = f'mount --bind "$0" {CERTIFICATES}; exec "$@"'
# What clients of XRootD wait for, in place of minutes.
CLIENT_ENV = {
    "XRD_CONNECTIONWINDOW": "5",
    "XRD_CONNECTIONRETRY": "2",
    "XRD_STREAMTIMEOUT": "60",
    "XRD_REQUESTTIMEOUT": "120",
    "XRD_TIMEOUTRESOLUTION": "1",
    "XRD_LOGLEVEL": "Error",
}


def built_plugin():
    """The plug-in that belongs to the binary under test, or None."""
    beside = pathlib.Path(nodes.byname_binary() or "").parent / "xrootd/libXrdByname-5.so"
    path = pathlib.Path(os.environ.get("BYNAME_XROOTD", beside))
    return path if path.exists() else None


def wrapper():
    """A program that is given the command of each server and runs it its own way (another XRootD,
    a sanitizer), or nothing."""
    chosen = os.environ.get("BYNAME_XROOTD_WRAPPER")
    return [chosen] if chosen else []


def patience_s():
    """How long a server may take to start; what watches its memory makes it slow."""
    return START_TIMEOUT_S * (8 if wrapper() else 1)


def unavailable():
    """None, or the reason why there is no xrootd with the plug-in here."""
    absent = [program for program in PROGRAMS if shutil.which(program) is None]
    if absent:
        return f"there is no {absent[0]} (scripts/setup --for test)"
    if built_plugin() is None:
        return "the plug-in is not built (scripts/build-xrootd)"
    try:
        pwd.getpwnam(USER)
    except KeyError:
        return f"there is no user {USER}"
    if not has_python_client():
        return f"{PYTHON} has no XRootD (package python3-xrootd)"
    return None


@functools.cache
def has_python_client():
    """True if XRootD's bindings are installed."""
    return subprocess.run([PYTHON, "-c", "import XRootD.client"], capture_output=True,
                          check=False).returncode == 0


@functools.cache
def plugin():
    """The plug-in and the library that it needs, where every user can read them."""
    built = built_plugin()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="byname-plugin-"))
    # Processes of a pool end without what `atexit` knows.
    Finalize(None, shutil.rmtree, (folder,), {"ignore_errors": True}, exitpriority=1)
    folder.chmod(0o755)
    shutil.copy(built, folder / built.name)
    shutil.copy(built.parent / "libbyname.so.1", folder)
    return folder / "libXrdByname.so"


def own(path):
    """Makes a directory of xrootd's user."""
    path.mkdir(parents=True, exist_ok=True)
    shutil.chown(path, USER, USER)
    return path


class Server:
    """A running xrootd, alone or with a cmsd.

    `lines` are those of its configuration that are not the same for all. "$DIR" in them is a
    directory of its own, "$PLUGIN" the plug-in. `trusting` is a file of certificates that it finds
    in place of the system's.
    """

    def __init__(self, node, lines, label="xrootd", port=PORT, with_cmsd=False, wait=True,
                 env=None, trusting=None):
        self.node = node
        self.env = env or {}
        self.trusting = trusting
        self.label = label
        self.port = port
        # The lab is its owner's alone; xrootd has to get through.
        node.lab.dir.chmod(0o711)
        node.path(f"{label}/.keep").parent.chmod(0o755)
        node.path(".keep").parent.chmod(0o711)
        self.dir = own(node.path(f"{label}/.keep").parent)
        for name in ("admin", "home", "local"):
            own(self.dir / name)
        self.config = self.dir / "xrootd.cfg"
        text = "\n".join([
            "all.export / r/o" if with_cmsd else "all.export /",
            f"xrd.port {port}",
            "xrd.network nodnr",
            f"all.adminpath {self.dir}/admin",
            f"all.pidpath {self.dir}/admin",
            f"oss.localroot {self.dir}/local",
            *lines,
        ])
        text = text.replace("$DIR", str(self.dir)).replace("$PLUGIN", str(plugin()))
        self.config.write_text(text + "\n")
        self.cmsd = self._run("cmsd") if with_cmsd else None
        self.daemon = self._run("xrootd")
        if wait:
            self.wait()

    def _run(self, program):
        as_user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
        argv = [*as_user, *wrapper(), program, "-c", self.config, "-n", self.label]
        if self.trusting:
            argv = ["unshare", "--mount", "sh", "-ec", TRUST, self.trusting, *argv]
        home = {"HOME": str(self.dir / "home"), "BYNAME_HOME": str(self.dir / "home/byname")}
        return self.node.start(f"{self.label}-{program}", argv, {**home, **self.env})

    def wait(self):
        """Waits until it serves. Its parts say that they are initialized before it does."""
        for daemon, program in ((self.daemon, "xrootd"), (self.cmsd, "cmsd")):
            if daemon is None:
                continue
            said = re.compile(rf"------ {program} \S+ initialization completed")
            wait_until(lambda daemon=daemon, said=said: said.search(daemon.log_text()),
                       f"{daemon.label} to start", patience_s(), daemon)

    def wait_refused(self):
        """Waits until it has ended because of its configuration; what it said."""
        wait_until(lambda: self.daemon.process.poll() is not None, "xrootd to refuse",
                   patience_s())
        return self.daemon.log_text()

    def is_alive(self):
        """True while it runs."""
        return self.daemon.process.poll() is None

    def url(self, path=""):
        """Where clients of the same node find it."""
        return f"root://localhost:{self.port}/{path}"

    def opens(self):
        """The log of opens, as text; "" before the first."""
        log = self.dir / "admin/opens.json"
        return log.read_text() if log.exists() else ""

    def resident_kib(self):
        """Memory that it has now."""
        status = pathlib.Path(f"/proc/{self.daemon.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])

    def times_run(self):
        """How often its threads were given a processor because something had woken them."""
        tasks = pathlib.Path(f"/proc/{self.daemon.process.pid}/task").glob("*/status")
        return sum(int(re.search(r"\nvoluntary_ctxt_switches:\s+(\d+)", task.read_text()).group(1))
                   for task in tasks)

    def descriptors(self):
        """Files and sockets that it has open now."""
        return len(os.listdir(f"/proc/{self.daemon.process.pid}/fd"))


def xrdfs(server, *arguments, env=None):
    """`xrdfs`, with the server's address put in front."""
    return server.node.run(["xrdfs", f"localhost:{server.port}", *arguments],
                           {**CLIENT_ENV, **(env or {})})


def xrdcp(server, path, out, *flags, env=None, timeout_s=120):
    """`xrdcp` of one path to `out`."""
    argv = ["xrdcp", "--nopbar", *flags, server.url(path), out]
    return server.node.run(argv, {**CLIENT_ENV, **(env or {})}, timeout_s)


def client(server, command, *arguments, env=None, timeout_s=120):
    """interop/xrootd/client.py."""
    argv = [PYTHON, CLIENT, server.url(), command, *arguments]
    return server.node.run(argv, {**CLIENT_ENV, **(env or {})}, timeout_s)


def curl(server, path, *flags, at=f"http://localhost:{HTTP_PORT}"):
    """`curl` of a path that is escaped already."""
    return server.node.run(["curl", "--silent", "--show-error", "--path-as-is", *flags,
                            f"{at}{path}"])
