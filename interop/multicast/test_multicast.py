"""Forwarders on one Ethernet segment that reach each other by UDP multicast, none knowing any."""

from harness import admin, nodes, samples
from harness.case import Case, grid
from harness.netns import Topology

PORT = 6363
GROUP = "udp://224.0.23.170:56363"
GROUP_FACE = "udp4://224.0.23.170:56363"
NAME = "/pub"


class OnOneSegment(Case):
    """`a` reads from `c` while `b` listens."""

    needs = ("ndnd",)
    needs_netns = True

    def start(self, name, kind):
        """A forwarder with a face to the group, and the route of the name to it."""
        node = self.net[name]
        if kind == "ndnd":
            hub = nodes.NdndForwarder(node, host="*", port=PORT, multicast=True)
        else:
            hub = nodes.BynameForwarder(node, host="*", port=PORT, listens=[f"{GROUP}?dev=lan"])
        return hub, admin.NdndTool(node, hub)

    @grid(reader=("byname", "ndnd"), publisher=("byname", "ndnd"))
    def check_read(self, reader, publisher):
        self.net = Topology(self.lab, "abc")
        self.net.lan("abc")
        here, tool = self.start("a", reader)
        self.start("b", publisher)
        there, _ = self.start("c", publisher)
        group = [face for face in tool.lines("face-list") if face["remote"].startswith(GROUP_FACE)]
        self.assertEqual(len(group), 1, f"the face of the group: {tool.lines('face-list')}")
        tool.done("route-add", f"prefix={NAME}", f"face={group[0]['faceid']}")
        sample = samples.directory() / "one-segment.bin"
        nodes.ndnd_put(self.net["c"], there, sample, f"{NAME}/f")
        out = self.net["a"].path("out/f")
        result = nodes.ndnd_cat(self.net["a"], here.uri(), f"{NAME}/f", out)
        self.assertIsNone(samples.difference(out, "one-segment.bin"), str(result))
