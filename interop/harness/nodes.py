"""Forwarders, producers and consumers, byname's and everybody else's, behind one interface each.

A consumer is a function (lab, uri, name, out) -> Result that writes `out` when it succeeds and
leaves no `out` when it does not, whatever the tool itself does.
"""

import dataclasses
import json
import os
import re
import shutil
import socket

from . import peers, wire
from .lab import START_TIMEOUT_S, free_port, wait_until

FETCH_TIMEOUT_S = 120
WEBSOCKET_PORT = 9696


def byname_binary():
    """The binary under test, or None."""
    chosen = os.environ.get("BYNAME_BIN")
    candidates = [chosen] if chosen else [
        peers.REPO / "target/release/byname",
        peers.REPO / "target/debug/byname",
    ]
    return next((str(c) for c in candidates if os.access(c, os.X_OK)), None)


def tampering_relay():
    """The relay that flips bits, built beside the binary under test, or None."""
    relay = os.path.join(os.path.dirname(byname_binary()), "examples/tampering_relay")
    return relay if os.access(relay, os.X_OK) else None


class Forwarder:
    """A running forwarder that listens on a Unix socket, one TCP and UDP port, and a WebSocket.

    On a node of a topology all addresses and the usual port are free: host "*", port 6363.
    """

    def __init__(self, lab, label, host="127.0.0.1", port=None):
        self.lab = lab
        self.host = host
        self.label = label
        self.socket_path = str(lab.path(f"{label}.sock"))
        self.port = port or free_port()
        self.websocket_port = free_port() if port is None else WEBSOCKET_PORT
        self.daemon = self._start()
        wait_until(self._accepts, f"{label} to listen", START_TIMEOUT_S, self.daemon)

    def uri(self, scheme="unix"):
        """Where to connect."""
        if scheme == "unix":
            return "unix://" + self.socket_path
        port = self.websocket_port if scheme == "ws" else self.port
        return f"{scheme}://{self.host}:{port}"

    def _accepts(self):
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(self.socket_path)
                return True
            except OSError:
                return False


class BynameForwarder(Forwarder):
    """`byname forward`. It takes loopback links to carry whole packets, others 1420 octets."""

    def __init__(self, lab, label="byname-forward", routes=(), host="127.0.0.1", port=None,
                 listens=(), flags=()):
        self.routes = routes
        self.listens = listens
        self.flags = flags
        super().__init__(lab, label, host, port)

    def _start(self):
        argv = [byname_binary(), "forward", "--allow-register-loopback", *self.flags]
        for scheme in ("unix", "tcp", "udp", "ws"):
            argv += ["--listen", self.uri(scheme)]
        for uri in self.listens:
            argv += ["--listen", uri]
        for prefix, uri in self.routes:
            argv += ["--route", f"{prefix}={uri}"]
        home = self.lab.path(f"{self.label}/home")
        return self.lab.start(self.label, argv, {"BYNAME_HOME": str(home)})


class NdndForwarder(Forwarder):
    """`ndnd fw run`."""

    def __init__(self, lab, label="ndnd-fw", routes=(), host="127.0.0.1", port=None,
                 multicast=False):
        self.multicast = multicast
        super().__init__(lab, label, host, port)
        for prefix, uri in routes:
            self.add_route(prefix, uri)

    def _start(self):
        config = {
            "core": {"log_level": "WARN"},
            "mgmt": {"allow_localhop": True},  # `ndnd put` over TCP registers there
            "faces": {
                "udp": {"enabled_multicast": self.multicast, "port_unicast": self.port},
                "tcp": {"port_unicast": self.port},
                "unix": {"socket_path": self.socket_path},
                "websocket": {"enabled": True, "port": self.websocket_port},
                "http3": {"enabled": False},
            },
            "fw": {"threads": 2},
        }
        file = self.lab.path(f"{self.label}.yml")
        file.write_text(json.dumps(config))  # JSON is YAML
        return self.lab.start(self.label, [peers.NDND, "fw", "run", file])

    def add_route(self, prefix, uri):
        """Routes a prefix to another forwarder, making the face."""
        scheme, _, address = uri.partition("://")
        argv = [peers.NDND, "fw", "route-add", f"prefix={prefix}", f"face={scheme}4://{address}"]
        result = self.lab.run(argv, {"NDN_CLIENT_TRANSPORT": self.uri()})
        assert result.code == 0, f"route-add failed: {result}"


FORWARDERS = {"byname": BynameForwarder, "ndnd": NdndForwarder}


def wait_published(uri, name, daemon):
    """Waits until the metadata of a name can be fetched through the forwarder."""

    def answered():
        with wire.Connection(uri) as face:
            frame = face.ask(wire.discovery(name, lifetime_ms=300), timeout_s=0.5)
            return frame is not None and wire.unwrap(frame)[1][0] == wire.DATA

    wait_until(answered, f"{name} to be published", START_TIMEOUT_S, daemon)


def byname_serve(lab, forwarder, directory, name, scheme="unix", flags=()):
    """Publishes a directory with `byname serve`."""
    argv = [byname_binary(), "serve", directory, "--name", name,
            "--connect", forwarder.uri(scheme), *flags]
    daemon = lab.start("byname-serve", argv, {"BYNAME_HOME": str(lab.path("publisher/home"))})
    wait_published(forwarder.uri(), name, daemon)
    return daemon


def byname_site(lab, forwarder, name, files, disks=1):
    """Starts a site with disks on servers of their own, and puts files onto all of them."""
    env = {"BYNAME_HOME": str(lab.path("site/home"))}
    catalog = str(lab.path("site/catalog"))
    at = ["--connect", forwarder.uri()]

    def run(*argv):
        result = lab.run([byname_binary(), *argv], env)
        assert result.code == 0, f"{argv}: {result}"

    run("site", "init", name, "--operator", "op", "--dir", catalog)
    head = lab.start("byname-catalog", [byname_binary(), "catalog", "--dir", catalog, *at], env)
    wait_published(forwarder.uri(), name, head)
    for number in range(disks):
        disk = str(lab.path(f"site/disk{number}"))
        os.makedirs(disk, exist_ok=True)
        run("site", "disk", "add", disk, "--server", f"server{number}", "--capacity", "1G", *at)
        daemon = lab.start(f"byname-disk{number}", [byname_binary(), "disk", disk, *at], env)
        daemon.wait_for_log("serving")
    for file in files:
        run("put", str(file), f"{name}/{file.name}", "--replicas", str(disks), *at)


@dataclasses.dataclass(frozen=True)
class RunningSite:
    """A site whose forwarder, head and first disks are one process."""

    daemon: object
    env: dict
    uri: str
    link: str


def byname_site_up(lab, name, disks, replicas):
    """Makes and starts a site; its operator's key is in its home."""
    env = {"BYNAME_HOME": str(lab.path("site/home")), "USER": "op"}
    uri = f"unix://{lab.path('site.sock')}"
    directories = [str(lab.path(f"site/disk{at}")) for at in range(disks)]
    for directory in directories:
        os.makedirs(directory)
    daemon = lab.start("byname-site", [
        byname_binary(), "site", "up", *directories, "--name", name,
        "--dir", str(lab.path("site/catalog")), "--capacity", "2G",
        "--replicas", str(replicas), "--listen", uri], env)
    daemon.wait_for_log("key=SHA256:")
    link = f"byname:{name}?via={uri}&key={printed_key(daemon)}"
    return RunningSite(daemon, env, uri, link)


def byname_site_disk(lab, site, server):
    """Starts one more disk of a running site, on a server of its own."""
    directory, at = str(lab.path(f"site/{server}")), ["--connect", site.uri]
    os.makedirs(directory)
    added = lab.run([byname_binary(), "site", "disk", "add", directory, "--server", server,
                     "--capacity", "2G", *at], site.env)
    assert added.code == 0, str(added)
    daemon = lab.start(f"byname-disk-{server}", [byname_binary(), "disk", directory, *at],
                       site.env)
    daemon.wait_for_log("serving")
    return daemon


def ndnd_put(lab, forwarder, file, name, scheme="unix", flags=()):
    """Publishes one file with `ndnd put`."""
    with open(file, "rb") as content:
        daemon = lab.start("ndnd-put", [peers.NDND, "put", *flags, name],
                           {"NDN_CLIENT_TRANSPORT": forwarder.uri(scheme)}, content)
    wait_published(forwarder.uri(), name, daemon)
    return daemon


def ndnts_serve(lab, forwarder, directory, name, scheme="unix", options=("6144", "sha256"),
                wait=True):
    """Publishes a directory with interop/ndnts/serve.mjs; options: segment size, signature."""
    argv = ["node", _script("serve.mjs"), forwarder.uri(scheme), name, directory, *options]
    daemon = lab.start("ndnts-serve", argv)
    if wait:
        wait_published(forwarder.uri(), name, daemon)
    return daemon


def python_put(lab, forwarder, file, name, scheme="unix"):
    """Publishes one file with `pyndntools putchunks`."""
    daemon = lab.start("putchunks", [peers.PYNDNTOOLS, "putchunks", name, file],
                       {"NDN_CLIENT_TRANSPORT": forwarder.uri(scheme)})
    wait_published(forwarder.uri(), name, daemon)
    return daemon


def python_serve(lab, forwarder, file, name, *signing):
    """Publishes one file with interop/python-ndn/serve.py; signing: kind, file of the secret."""
    argv = [peers.PYTHON, peers.INTEROP / "python-ndn/serve.py", name, file, *signing]
    daemon = lab.start("python-serve", argv, {"NDN_CLIENT_TRANSPORT": forwarder.uri()})
    wait_published(forwarder.uri(), name, daemon)
    return daemon


def printed_key(daemon):
    """The key that a publisher printed, `SHA256:...`, in a link or on a line of its own."""
    return re.search(r"SHA256:[A-Za-z0-9_-]{43}", daemon.log_text()).group()


def byname_get(lab, uri, name, out, *flags):
    """`byname get`, from a home that has never seen the publisher."""
    argv = [byname_binary(), "get", name, "--connect", uri, "-o", out, *flags]
    return lab.run(argv, {"BYNAME_HOME": str(lab.path("reader/home"))}, FETCH_TIMEOUT_S)


def byname_get_insecure(lab, uri, name, out):
    """`byname get --insecure`: for publishers that do not sign with a key."""
    return byname_get(lab, uri, name, out, "--insecure")


def ndnd_cat(lab, uri, name, out):
    """`ndnd cat`; a shell redirection would leave an empty file on failure, we do not."""
    result = lab.run([peers.NDND, "cat", name], {"NDN_CLIENT_TRANSPORT": uri}, FETCH_TIMEOUT_S,
                     stdout=out)
    if result.code != 0:
        os.unlink(out)
    return result


def python_cat(lab, uri, name, out):
    """`pyndntools catchunks`; it does not append 32=metadata itself and always exits with 0."""
    argv = [peers.PYNDNTOOLS, "catchunks", "-r", "4", "-f", "-o", out, name + "/32=metadata"]
    return lab.run(argv, {"NDN_CLIENT_TRANSPORT": uri}, FETCH_TIMEOUT_S)


def python_verify(lab, uri, name, out, *proofs):
    """interop/python-ndn/verify.py."""
    argv = [peers.PYTHON, peers.INTEROP / "python-ndn/verify.py", name, out, *proofs]
    return lab.run(argv, {"NDN_CLIENT_TRANSPORT": uri}, FETCH_TIMEOUT_S)


def ndnts_verify(lab, uri, name, out, *proofs):
    """interop/ndnts/verify.mjs."""
    return ndnts_run(lab, "verify.mjs", uri, name, out, *proofs)


def ndnts_get(lab, uri, name, out):
    """interop/ndnts/get.mjs."""
    return lab.run(["node", _script("get.mjs"), uri, name, out], None, FETCH_TIMEOUT_S)


def ndnts_run(lab, script, *arguments):
    """Any other script of interop/ndnts."""
    return lab.run(["node", _script(script), *arguments], None, FETCH_TIMEOUT_S)


def _script(name):
    """Node resolves imports from the script's folder, so it runs a copy beside node_modules."""
    for source in (peers.INTEROP / "ndnts").glob("*.mjs"):
        target = peers.NDNTS / source.name
        if not target.exists() or target.read_bytes() != source.read_bytes():
            shutil.copy(source, target)
    return peers.NDNTS / name
