"""`byname face`, `route`, `strategy`, `status` on a forwarder of others, as its administrator.

The same run on ours. What a person types has no canonical FaceUri: it is made so before it is sent,
because NFD takes nothing else (`crates/cli/src/face_uri.rs` has its rule).
"""

import json

from harness import nodes, samples
from harness.case import Case, grid
from harness.matrix import FORWARDERS

ANSWER_TIMEOUT_S = 15


class Byname(Case):
    needs = ("ndnd",)

    def pair(self, forwarder):
        """A forwarder to be commanded, and its neighbour."""
        self.near = nodes.FORWARDERS[forwarder](self.lab, "near")
        return nodes.NdndForwarder(self.lab, "far")

    def lines(self, *arguments):
        """The objects that a command prints."""
        argv = [nodes.byname_binary(), *arguments, "--connect", self.near.uri(), "--json"]
        result = self.lab.run(argv, {"BYNAME_HOME": str(self.lab.path("admin"))}, ANSWER_TIMEOUT_S)
        self.assertEqual(result.code, 0, str(result))
        return [json.loads(line) for line in result.stdout.decode().splitlines()]

    def face_to(self, uri):
        """The face with this remote URI, or None."""
        return next((face for face in self.lines("face", "list") if face["remote"] == uri), None)

    @grid(forwarder=FORWARDERS, typed=("udp4://127.0.0.1", "udp://localhost", "tcp4://localhost"))
    def check_face(self, forwarder, typed):
        """Made, reported a second time, listed in canonical form, and ended."""
        far = self.pair(forwarder)
        uri = f"{typed[:3]}4://127.0.0.1:{far.port}"
        made = self.lines("face", "create", f"{typed}:{far.port}")[0]
        self.assertEqual(made["remote"], uri)
        self.assertEqual(self.lines("face", "create", uri)[0]["face"], made["face"])
        self.assertEqual(self.face_to(uri)["face"], made["face"])
        self.lines("face", "destroy", uri)
        self.assertIsNone(self.face_to(uri))

    @grid(forwarder=FORWARDERS)
    def check_route_carries_data(self, forwarder):
        """A route to a face made on the way; what is published behind it can be read."""
        far = self.pair(forwarder)
        nodes.ndnd_put(self.lab, far, samples.directory() / "one-segment.bin", "/pub/f")
        uri = f"udp4://localhost:{far.port}"
        self.lines("route", "add", "/pub", uri, "--cost", "7")
        face = self.face_to(f"udp4://127.0.0.1:{far.port}")["face"]
        routes = [route for route in self.lines("route", "list") if route["prefix"] == "/pub"]
        self.assertEqual([(route["face"], route["cost"]) for route in routes], [(face, 7)])
        out = self.lab.path("out/f")
        result = nodes.ndnd_cat(self.lab, self.near.uri(), "/pub/f", out)
        self.assertIsNone(samples.difference(out, "one-segment.bin"), str(result))
        self.lines("route", "remove", "/pub", str(face))
        self.assertNotIn("/pub", [route["prefix"] for route in self.lines("route", "list")])

    @grid(forwarder=FORWARDERS)
    def check_strategy_and_status(self, forwarder):
        self.pair(forwarder)
        self.lines("strategy", "set", "/x", "multicast")
        strategies = {row["prefix"]: row["strategy"] for row in self.lines("strategy", "list")}
        self.assertIn("/multicast/v=", strategies["/x"])
        self.lines("strategy", "unset", "/x")
        self.assertNotIn("/x", [row["prefix"] for row in self.lines("strategy", "list")])
        self.assertGreater(len(self.lines("status")), 0)
