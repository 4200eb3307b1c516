"""Where the processes of a scenario stand: all on this machine, or each in its own namespace."""

from harness.netns import Topology

LOOPBACK = "127.0.0.1"


class OneMachine:
    """Everything side by side, connected by Unix sockets, shared memory or loopback."""

    def __init__(self, lab):
        self.server = self.middle = self.client = lab
        self.server_address = self.middle_address = LOOPBACK

    @staticmethod
    def inside(_place, argv):
        """The command as it must be run for a place."""
        return argv

    @staticmethod
    def sent_bytes():
        """Nobody counts what goes through memory and sockets of one machine."""
        return None


class Apart:
    """client - middle - server, or client - server, joined by links with the given MTU."""

    def __init__(self, lab, mtu, has_middle=False):
        names = ["client", "middle", "server"] if has_middle else ["client", "server"]
        links = list(zip(names, names[1:]))
        self.topology = Topology(lab, names, links)
        self.client, self.server = self.topology["client"], self.topology["server"]
        self.middle = self.topology["middle"] if has_middle else self.server
        for one, other in links:
            for near, far in ((one, other), (other, one)):
                self.topology[near].configure(f"link set to-{far} mtu {mtu}")
        before = "middle" if has_middle else "client"
        self.server_address = self.topology.address("server", before)
        self.middle_address = self.topology.address("middle", "client") if has_middle \
            else self.server_address
        self.links = links
        if has_middle:
            self._route()

    def _route(self):
        """Programs that know no forwarder reach the far end through the kernel of the middle."""
        self.middle.run(["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"])
        self.client.configure(f"route add default via {self.middle.addresses['client']}")
        self.server.configure(f"route add default via {self.middle.addresses['server']}")

    @staticmethod
    def inside(place, argv):
        """The command as it must be run for a place."""
        return place.inside(argv)

    def sent_bytes(self):
        """What went over the links so far, both ways, link headers included."""
        return sum(self.topology.sent_bytes(near, far) for one, other in self.links
                   for near, far in ((one, other), (other, one)))
