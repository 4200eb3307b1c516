"""Ways for XRootD's clients to a file: xrootd with the file on its disk, xrootd far away, XCache in
front of it, and our plug-in with a forwarder in front of a publisher far away.

Each has its servers in one namespace. A long path is a relay (`crates/traffic/examples/faults`)
between the site and the origin. A cold fetch takes a name that nobody has asked for; all names are
links to one file, so the origin has it in memory and knows its root.
"""

import os
import shutil
import socket

import own
from harness import nodes, xrootd
from harness.lab import START_TIMEOUT_S, wait_until

NAME = "/bench"
WARM = "warm.bin"
START_PORT = 3000
MIB = 1 << 20


class Site:
    """The namespace, the published files, and what stands between the site and the origin."""

    def __init__(self, node, file, delay_ms, cold_names):
        self.node = node
        self.file = file
        self.delay_ms = delay_ms
        self.folder = node.path("published/.keep").parent
        self.next_port = START_PORT
        # All of them now: one more link is a change of the file, which then has a new version.
        self.cold_names = [f"cold-{number}.bin" for number in range(cold_names)]
        for name in (WARM, *self.cold_names):
            os.link(file, self.folder / name)

    def new_name(self):
        """A name that nobody has asked for."""
        return self.cold_names.pop()

    def port(self):
        """One that nobody has."""
        self.next_port += 1
        return self.next_port

    def far(self, port):
        """The port by which the site reaches one of the origin."""
        if self.delay_ms == 0:
            return port
        listen = self.port()
        daemon = self.node.start(f"relay-{port}", [
            own.FAULTS, "tcp", f"127.0.0.1:{listen}", f"127.0.0.1:{port}",
            f"delay={self.delay_ms // 2}"])
        daemon.wait_for_log("listening")
        return listen

    def xrootd(self, label, *lines):
        """An xrootd. Its label is its directory's name, too."""
        return xrootd.Server(self.node, lines, label=label, port=self.port())

    def xrootd_with_files(self, label):
        """An xrootd that has the published files on its disk."""
        server = self.xrootd(label)
        folder = server.dir / "local"
        shutil.rmtree(folder)
        folder.symlink_to(self.folder)
        return server


class Way:
    """Subclasses start their servers in `start` and set `door`, the one that clients ask."""

    title = ""
    is_cold = False
    # Reads from a disk of its own: the delay says nothing.
    is_local = False

    def __init__(self, site):
        self.site = site
        self.daemons = {}
        self.start()

    def start(self):
        """Starts the servers."""
        raise NotImplementedError

    @staticmethod
    def missing():
        """Why it cannot be measured here, or None."""
        return None

    def name(self):
        """The file to be fetched now."""
        return self.site.new_name() if self.is_cold else WARM

    def url(self, name):
        """Where clients find it."""
        return self.door.url("/" + name)


class Local(Way):
    """The yardstick."""

    title = "xrootd, local files"
    is_local = True

    def start(self):
        self.door = self.site.xrootd_with_files("local")
        self.daemons = {"xrootd": self.door.daemon}


class Far(Way):
    """Clients ask the origin themselves."""

    title = "xrootd, far"

    def start(self):
        origin = self.site.xrootd_with_files("far")
        self.daemons = {"origin": origin.daemon}
        self.door = origin
        self.port = self.site.far(origin.port)

    def url(self, name):
        return f"root://localhost:{self.port}//{name}"


class XCacheCold(Way):
    """XRootD's cache in front of an xrootd far away. With asynchronous reads, its default, a copy
    over several streams stands still for a minute (5.5.3)."""

    title = "XCache, cold"
    is_cold = True

    def start(self):
        label = type(self).__name__.lower()
        origin = self.site.xrootd_with_files(f"{label}-origin")
        self.door = self.site.xrootd(
            label, "ofs.osslib libXrdPss.so", "pss.cachelib libXrdFileCache.so",
            f"pss.origin localhost:{self.site.far(origin.port)}", "pfc.ram 1g",
            "xrootd.async off")
        self.daemons = {"origin": origin.daemon, "XCache": self.door.daemon}


class XCacheWarm(XCacheCold):
    """The file is on its disk."""

    title = "XCache, warm"
    is_cold = False


class BynameCold(Way):
    """The plug-in, a forwarder beside it, the publisher far away."""

    title = "byname, cold"
    is_cold = True
    # As it comes.
    store_mib = None

    @staticmethod
    def missing():
        return xrootd.unavailable()

    def start(self):
        node, label = self.site.node, type(self).__name__.lower()
        binary, port = nodes.byname_binary(), self.site.port()
        home = {"BYNAME_HOME": str(node.path(f"{label}/publisher/.keep").parent)}
        serve = node.start(f"{label}-serve", [
            binary, "serve", self.site.folder, "--name", NAME,
            "--listen", f"tcp://127.0.0.1:{port}"], home)
        serve.wait_for_log("key=")
        key = nodes.printed_key(serve)
        uri = f"unix://{node.path(label)}/forward.sock"
        forward = self.forward(label, uri, self.site.far(port))
        self.door = self.site.xrootd(f"{label}-door", "ofs.osslib $PLUGIN",
                                     f"byname.link byname:{NAME}?via={uri}&key={key}",
                                     *self.lines(label))
        self.daemons = {"serve": serve, "forward": forward, "xrootd": self.door.daemon}

    def lines(self, _label):
        """Further lines of the door's configuration."""
        return []

    def forward(self, label, uri, origin_port):
        """The site's forwarder; xrootd's user may use it."""
        node = self.site.node
        argv = [nodes.byname_binary(), "forward", "--listen", uri,
                "--route", f"{NAME}=tcp://127.0.0.1:{origin_port}"]
        env = {"BYNAME_HOME": str(node.path(f"{label}/forward/.keep").parent)}
        if self.store_mib is not None:
            env["BYNAME_CONTENT_STORE_MIB"] = str(self.store_mib(self.site))
        daemon = node.start(f"{label}-forward", argv, env)
        path = uri.removeprefix("unix://")

        def accepts():
            with socket.socket(socket.AF_UNIX) as probe:
                return os.path.exists(path) and probe.connect_ex(path) == 0

        wait_until(accepts, "byname forward to listen", START_TIMEOUT_S, daemon)
        node.path(label).chmod(0o711)
        os.chmod(path, 0o666)
        return daemon


class BynameWarm(BynameCold):
    """The file is in the forwarder's store."""

    title = "byname, warm"
    is_cold = False

    @staticmethod
    def store_mib(site):
        """Room for the file, its tree and what stands around packets."""
        return 2 * os.path.getsize(site.file) // MIB + 64


class BynameDisk(BynameCold):
    """The file is in the door's site cache, on its disk."""

    title = "byname, on disk"
    is_cold = False

    def lines(self, label):
        cache = xrootd.own(self.site.node.path(f"{label}-cache"))
        cache.chmod(0o700)
        config = self.site.node.path(f"{label}.toml")
        config.write_text(f'[cache]\nenabled = true\ndirectory = "{cache}"\nfree_mib = 0\n')
        config.chmod(0o644)
        return [f"byname.config {config}"]


ALL = (Local, Far, XCacheCold, XCacheWarm, BynameCold, BynameWarm, BynameDisk)
