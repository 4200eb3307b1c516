"""A network whose routes are found by NDNd's routing daemon `ndnd dv run`, one per node.

Every node has a forwarder, the daemon on top of it, and a site: the name /site/<node>, published
with the origin that the forwarder must hand on to the daemon (readvertise).
"""

import json

from . import nodes, peers, samples, wire
from .admin import NdndTool
from .lab import wait_until
from .netns import Topology

NETWORK = "/interop"
PORT = 6363
# The daemon's smallest period; a neighbour that is silent three times is dead.
ADVERTISE_MS, DEAD_MS = 1000, 3000
CONVERGE_TIMEOUT_S = 45
SITE_FILE = "one-segment.bin"
READVERTISE_TO = "/localhost/nlsr"
# Here each router says which prefixes it has.
PREFIXES_OF = f"{NETWORK}/32=DV/32=PFS"


class RoutedNetwork:
    """`kinds` gives each node's forwarder; `is_signed` makes routers prove who they are."""

    def __init__(self, lab, kinds, links, is_signed=False):
        self.lab = lab
        self.topology = Topology(lab, kinds, links)
        self.trust = Trust(lab) if is_signed else None
        self.forwarders = {
            name: nodes.FORWARDERS[kind](self.topology[name], host="*", port=PORT)
            for name, kind in kinds.items()
        }
        self.routers = {}

    def start_routers(self):
        """Starts the daemons, and waits until each has routes to all others.

        What is published before may be known to others only with the next of the messages that
        routers send each other every 30 s.
        """
        self.routers = {name: self._start_router(name) for name in self.forwarders}
        for name, router in self.routers.items():
            wait_until(lambda at=name: self._knows_all(at), f"the router of {name} to know all",
                       CONVERGE_TIMEOUT_S, router)

    def _knows_all(self, name):
        tool = NdndTool(self.topology[name], self.forwarders[name])
        prefixes = [line["prefix"] for line in tool.lines("route-list")]
        others = {f"{PREFIXES_OF}{NETWORK}/{other}" for other in self.routers if other != name}
        return READVERTISE_TO in prefixes and others.issubset(prefixes)

    def _start_router(self, name):
        node = self.topology[name]
        keys = self.trust.router_keys(node) if self.trust else None
        neighbours = [f"udp4://{self.topology.address(other, name)}:{PORT}"
                      for other in self.topology.neighbours(name)]
        config = {
            "network": NETWORK,
            "router": f"{NETWORK}/{name}",
            "keychain": f"dir://{keys}" if keys else "insecure",
            "trust_anchors": [self.trust.anchor] if keys else [],
            "neighbors": [{"uri": uri} for uri in neighbours],
            "advertise_interval": ADVERTISE_MS,
            "router_dead_interval": DEAD_MS,
        }
        file = node.path("dv.yml")
        file.write_text(json.dumps({"dv": config}))  # JSON is YAML
        return node.start("dv", [peers.NDND, "dv", "run", file], self._client(name))

    def _client(self, name):
        return {"NDN_CLIENT_TRANSPORT": self.forwarders[name].uri()}

    def publish_sites(self):
        """A short file at every node, as /site/<node>/f."""
        for name, node in self.topology.nodes.items():
            sample = samples.directory() / SITE_FILE
            nodes.ndnd_put(node, self.forwarders[name], sample, f"/site/{name}/f",
                           flags=["--expose"])

    def is_reached(self, here, there):
        """True if a node can fetch what is published at another."""
        with wire.Connection(self.forwarders[here].uri()) as face:
            frame = face.ask(wire.discovery(f"/site/{there}/f", lifetime_ms=500), timeout_s=0.7)
        packet = frame and wire.unwrap(frame)[1]
        return bool(packet) and packet[0] == wire.DATA

    def wait_until_converged(self, names=None):
        """Waits until each of the nodes (default: all) reaches each other one."""
        names = list(names or self.forwarders)
        missing = [(here, there) for here in names for there in names if here != there]

        def none_is_missing():
            missing[:] = [pair for pair in missing if not self.is_reached(*pair)]
            return not missing

        try:
            wait_until(none_is_missing, "all nodes to reach each other", CONVERGE_TIMEOUT_S)
        except AssertionError as error:
            pairs = ", ".join("->".join(pair) for pair in missing)
            raise AssertionError(f"{error}; not reached: {pairs}") from None

    def kill(self, name):
        """Ends a forwarder without a word, and with it the router and the site of the node."""
        self.forwarders[name].daemon.process.kill()
        self.routers[name].process.kill()


class Trust:
    """A key of the network, which signs the key of each router."""

    def __init__(self, lab):
        self.root = lab.path("trust/root.key")
        self._keygen(lab, NETWORK, self.root)
        self.certificate = self.root.with_suffix(".cert")
        self._sign(lab, self.root, self.certificate)
        name = next(line for line in self.certificate.read_text().splitlines()
                    if line.startswith("Name:"))
        self.anchor = name.split()[1]

    def router_keys(self, node):
        """A directory with the key of a router and the certificates up to the anchor."""
        directory = node.path("keys/router.key").parent
        key = directory / "router.key"
        self._keygen(node.lab, f"{NETWORK}/{node.name}/32=DV", key)
        self._sign(node.lab, key, directory / "router.cert")
        (directory / "root.cert").write_bytes(self.certificate.read_bytes())
        return directory

    @staticmethod
    def _keygen(lab, name, out):
        result = lab.run([peers.NDND, "sec", "keygen", name, "ed25519"], stdout=out)
        assert result.code == 0, f"no key: {result}"

    def _sign(self, lab, key, out):
        result = lab.run([peers.NDND, "sec", "sign-cert", self.root], stdin=key, stdout=out)
        assert result.code == 0, f"no certificate: {result}"
