"""An administrator with `ndnd fw`: every command, and what it changes.

The same run on NDNd's own forwarder shows that the tool is understood.
"""

from harness import admin, nodes, samples
from harness.case import Case, grid
from harness.matrix import FORWARDERS

MULTICAST = "/localhost/nfd/strategy/multicast"
BEST_ROUTE = "/localhost/nfd/strategy/best-route"
COUNTERS = ("nFibEntries", "nPitEntries", "nCsEntries", "nInInterests", "nOutInterests", "nInData",
            "nOutData", "nInNacks", "nOutNacks", "nSatisfiedInterests", "nUnsatisfiedInterests")


class NdndFw(Case):
    needs = ("ndnd",)

    def tool(self, forwarder):
        """The tool for a forwarder that has a neighbour, and the neighbour."""
        near, far = admin.pair(self.lab, forwarder)
        return admin.NdndTool(self.lab, near), far

    @grid(forwarder=FORWARDERS)
    def check_status(self, forwarder):
        tool, _ = self.tool(forwarder)
        sample = samples.directory() / "one-segment.bin"
        nodes.ndnd_put(self.lab, tool.hub, sample, "/pub/f")
        status = tool.values("status")
        self.assertTrue(status["version"], str(status))
        for counter in COUNTERS:
            self.assertGreaterEqual(int(status[counter]), 0, counter)
        for counter in ("nFibEntries", "nInInterests", "nInData", "nSatisfiedInterests"):
            self.assertGreater(int(status[counter]), 0, counter)

    @grid(forwarder=FORWARDERS)
    def check_face(self, forwarder):
        """Made, refused a second time, listed, and ended, by number and by URI."""
        tool, far = self.tool(forwarder)
        uri = f"udp4://127.0.0.1:{far.port}"
        made = tool.done("face-create", f"remote={uri}")
        self.assertEqual(made["Uri"], uri)
        self.assertEqual(made["FacePersistency"].lower(), "persistent")
        again, same = tool.command("face-create", f"remote={uri}")
        self.assertEqual(again, 409)
        self.assertEqual(same["FaceId"], made["FaceId"])
        listed = tool.face_to(uri)
        self.assertEqual(listed["faceid"], made["FaceId"])
        self.assertTrue(listed["local"].startswith("udp4://127.0.0.1:"), str(listed))
        tool.done("face-destroy", f"face={made['FaceId']}")
        self.assertIsNone(tool.face_to(uri))
        tool.done("face-create", f"remote={uri}", "persistency=permanent", "mtu=1300")
        listed = tool.face_to(uri)
        self.assertIn("permanent", listed["flags"])
        if forwarder == "byname":  # NDNd takes the MTU and does not list it
            self.assertEqual(listed["mtu"], "1300B")
        tool.done("face-destroy", f"face={uri}")
        self.assertIsNone(tool.face_to(uri))

    @grid(forwarder=FORWARDERS, scheme=("udp", "tcp"))
    def check_face_by_host_name(self, forwarder, scheme):
        """The forwarder resolves what the tool sends as it was typed."""
        tool, far = self.tool(forwarder)
        made = tool.done("face-create", f"remote={scheme}://localhost:{far.port}")
        self.assertRegex(made["Uri"], rf"^{scheme}[46]://(127\.0\.0\.1|\[::1\]):{far.port}$")
        self.assertIsNotNone(tool.face_to(made["Uri"]))

    @grid(forwarder=FORWARDERS)
    def check_refused(self, forwarder):
        tool, _ = self.tool(forwarder)
        code, _ = tool.command("strategy-set", "prefix=/x", "strategy=/no/such/strategy")
        self.assertIn(code, (400, 404))
        self.assertNotIn("/x", tool.strategies())

    @grid(forwarder=FORWARDERS, scheme=("udp", "tcp"))
    def check_route_carries_data(self, forwarder, scheme):
        """A route to a face made on the way; what is published behind it can be read."""
        tool, far = self.tool(forwarder)
        nodes.ndnd_put(self.lab, far, samples.directory() / "one-segment.bin", "/pub/f")
        uri = f"{scheme}4://127.0.0.1:{far.port}"
        tool.done("route-add", "prefix=/pub", "persistency=permanent", f"face={uri}", "cost=7",
                  "origin=65")
        face = tool.face_to(uri)["faceid"]
        self.assertEqual(tool.routes("/pub"), {(face, "client"): 7})
        self.assertEqual(tool.next_hops("/pub"), {face: 7})
        out = self.lab.path("out/f")
        result = nodes.ndnd_cat(self.lab, tool.hub.uri(), "/pub/f", out)
        self.assertIsNone(samples.difference(out, "one-segment.bin"), str(result))
        tool.done("route-remove", "prefix=/pub", f"face={face}", "origin=65")
        self.assertEqual(tool.routes("/pub"), {})
        self.assertEqual(tool.next_hops("/pub"), {})

    @grid(forwarder=FORWARDERS)
    def check_routes_of_two_origins(self, forwarder):
        """The cheaper one counts, and the other is still there when it goes; so do faces."""
        tool, far = self.tool(forwarder)
        made = tool.done("face-create", f"remote=udp4://127.0.0.1:{far.port}")
        face = made["FaceId"]
        tool.done("route-add", "prefix=/x/y", f"face={face}", "cost=10")
        tool.done("route-add", "prefix=/x/y", f"face={face}", "cost=3", "origin=128")
        self.assertEqual(tool.routes("/x/y"), {(face, "static"): 10, (face, "nlsr"): 3})
        self.assertEqual(tool.next_hops("/x/y"), {face: 3})
        tool.done("route-remove", "prefix=/x/y", f"face={face}", "origin=128")
        self.assertEqual(tool.next_hops("/x/y"), {face: 10})
        tool.done("face-destroy", f"face={face}")
        self.assertEqual(tool.routes("/x/y"), {})
        self.assertEqual(tool.next_hops("/x/y"), {})

    @grid(forwarder=FORWARDERS)
    def check_strategy(self, forwarder):
        """With and without a version; the answer and the list have the full name."""
        tool, _ = self.tool(forwarder)
        self.assertTrue(tool.strategies()["/"].startswith(BEST_ROUTE + "/v="))
        tool.done("strategy-set", "prefix=/x", f"strategy={MULTICAST}")
        self.assertTrue(tool.strategies()["/x"].startswith(MULTICAST + "/v="))
        tool.done("strategy-set", "prefix=/x", f"strategy={BEST_ROUTE}/v=1")
        self.assertTrue(tool.strategies()["/x"].startswith(BEST_ROUTE + "/v="))
        tool.done("strategy-unset", "prefix=/x")
        self.assertNotIn("/x", tool.strategies())

    @grid(forwarder=FORWARDERS)
    def check_content_store(self, forwarder):
        """A second reader is answered from the cache, and that is counted."""
        tool, _ = self.tool(forwarder)
        before = tool.values("cs-info")
        self.assertEqual((before["admit"], before["serve"]), ("true", "true"))
        self.assertGreater(int(before["capacity"]), 0)
        nodes.ndnd_put(self.lab, tool.hub, samples.directory() / "many-segments.bin", "/pub/f")
        for _ in range(2):
            out = self.lab.path("out/f")
            nodes.ndnd_cat(self.lab, tool.hub.uri(), "/pub/f", out)
            self.assertIsNone(samples.difference(out, "many-segments.bin"))
        after = tool.values("cs-info")
        self.assertGreater(int(after["nEntries"]), 300)
        self.assertGreater(int(after["nHits"]), 300)
        self.assertGreater(int(after["nMisses"]), 300)
