"""An administrator with python-ndn's `pynfdc`: every command, and what it changes.

Its lists are signed Interests, which NDNd's forwarder does not answer: there is no control here.
"""

from harness import admin, nodes, samples, wire
from harness.case import Case

INHERIT = "RouteFlags.CHILD_INHERIT"


class PynfdcOnByname(Case):
    needs = ("python-ndn", "ndnd")

    def setUp(self):
        super().setUp()
        near, self.far = admin.pair(self.lab, "byname")
        self.tool = admin.Pynfdc(self.lab, near)
        self.uri = f"udp4://127.0.0.1:{self.far.port}"

    def make_face(self):
        """A face to the neighbour."""
        self.assertEqual(self.tool.code("nf", self.uri), 200)
        return self.tool.faces()[self.uri]

    def test_status(self):
        before = self.tool.status()
        self.assertIn("byname", before["version"])
        nodes.ndnd_put(self.lab, self.tool.hub, samples.directory() / "one-segment.bin", "/pub/f")
        after = self.tool.status()
        for counter in ("nFibEntries", "nCsEntries", "nInInterests", "nInData", "nOutData",
                        "nSatisfiedInterests"):
            self.assertGreater(int(after[counter]), int(before[counter]), counter)
        self.assertGreater(after["upTime"], before["upTime"])
        self.assertEqual(after["startTime"], before["startTime"])

    def test_face(self):
        face = self.make_face()
        self.assertEqual(self.tool.code("nf", self.uri), 409)
        by_number, by_uri = self.tool.face(face), self.tool.face(self.uri)
        for described in (by_number, by_uri):
            self.assertEqual(described["Face ID"], face)
            self.assertEqual(described["Remote URI"], self.uri)
            self.assertEqual(described["Scope"], "NON_LOCAL")
            self.assertEqual(described["Persistency"], "PERSISTENT")
            self.assertEqual(described["Link Type"], "POINT_TO_POINT")
        with wire.Connection(self.tool.hub.uri()):
            all_faces = [self.tool.face(number) for number in self.tool.faces().values()]
        self.assertIn("LOCAL", [described.get("Scope") for described in all_faces])
        self.assertEqual(self.tool.code("rf", face), 200)
        self.assertNotIn(self.uri, self.tool.faces())
        self.make_face()
        self.assertEqual(self.tool.code("rf", self.uri), 200)
        self.assertNotIn(self.uri, self.tool.faces())
        self.assertIn("No face is found", self.tool.text("face", self.uri))

    def test_address_without_scheme_and_port(self):
        self.assertEqual(self.tool.code("nf", "127.0.0.77"), 200)
        self.assertIn("udp4://127.0.0.77:6363", self.tool.faces())

    def test_route(self):
        """Added, listed in both tables, used, removed."""
        nodes.ndnd_put(self.lab, self.far, samples.directory() / "one-segment.bin", "/pub/f")
        face = self.make_face()
        self.assertEqual(self.tool.code("nr", "/pub", face), 200)
        fib, rib = self.tool.routes("/pub")
        self.assertEqual(fib, [{"FaceID": face, "Cost": "0"}])
        self.assertEqual(rib, [{"FaceID": face, "Cost": "0", "Origin": "0", "Flags": INHERIT}])
        out = self.lab.path("out/f")
        result = nodes.python_cat(self.lab, self.tool.hub.uri(), "/pub/f", out)
        self.assertIsNone(samples.difference(out, "one-segment.bin"), str(result))
        self.assertEqual(self.tool.code("rr", "/pub", face), 200)
        self.assertEqual(self.tool.routes("/pub"), ([], []))

    def test_strategy(self):
        before = self.tool.strategies()
        self.assertTrue(before["/"].startswith("/localhost/nfd/strategy/best-route/v="))
        for short in ("multicast", "asf", "best-route"):
            self.assertEqual(self.tool.code("ss", "/x", short), 200)
            full = self.tool.strategies()["/x"]
            self.assertTrue(full.startswith(f"/localhost/nfd/strategy/{short}/v="), full)
        self.assertEqual(self.tool.code("ss", "/x", "/no/such/strategy"), 404)
        self.assertEqual(self.tool.code("rs", "/x"), 200)
        self.assertEqual(self.tool.strategies(), before)
