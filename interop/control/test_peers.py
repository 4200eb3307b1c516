"""The peers among themselves, without byname: if these fail, the harness or a peer is at fault."""

from harness import nodes, samples
from harness.case import Case, grid

CONSUMERS = {
    "cat": (nodes.ndnd_cat, ("unix", "tcp")),
    "catchunks": (nodes.python_cat, ("unix", "tcp")),
    "ndnts": (nodes.ndnts_get, ("unix", "tcp", "udp")),
}

# NDNts leaves the Content element out when it is empty; catchunks then joins None and dies.
KNOWN_FAILURES = {("catchunks", "empty")}


class Control(Case):
    needs = ("ndnd", "ndnts", "python-ndn")
    needs_byname = False

    def fetch(self, consumer, hub, name, relative):
        """Fetches over every link that the consumer can use."""
        function, schemes = CONSUMERS[consumer]
        for scheme in schemes:
            out = self.lab.path(f"out/{scheme}")
            result = function(self.lab, hub.uri(scheme), name, out)
            self.assertIsNone(samples.difference(out, relative), f"{scheme}: {result}")

    @grid(consumer=tuple(CONSUMERS))
    def check_ndnd_put(self, consumer):
        hub = nodes.NdndForwarder(self.lab)
        nodes.ndnd_put(self.lab, hub, samples.directory() / "many-segments.bin", "/pub/f")
        self.fetch(consumer, hub, "/pub/f", "many-segments.bin")

    @grid(consumer=tuple(CONSUMERS))
    def check_ndnts_file_server(self, consumer):
        hub = nodes.NdndForwarder(self.lab)
        nodes.ndnts_serve(self.lab, hub, samples.directory(), "/lab", options=("8192", "null"))
        function, _ = CONSUMERS[consumer]
        for number, relative in enumerate(samples.SMALL):
            if (consumer, relative) in KNOWN_FAILURES:
                continue
            out = self.lab.path(f"out/{number}")
            result = function(self.lab, hub.uri(), samples.uri("/lab", relative), out)
            self.assertIsNone(samples.difference(out, relative), str(result))

    def test_large_file(self):
        """The other clients read their large files from byname only: this one is for all."""
        hub = nodes.NdndForwarder(self.lab)
        nodes.ndnts_serve(self.lab, hub, samples.directory(), "/lab", options=("8192", "null"))
        out = self.lab.path("out/large")
        result = nodes.ndnts_get(self.lab, hub.uri(), "/lab/large.bin", out)
        self.assertIsNone(samples.difference(out, samples.LARGE), str(result))

    def test_tree_of_ndnts_file_server(self):
        hub = nodes.NdndForwarder(self.lab)
        nodes.ndnts_serve(self.lab, hub, samples.directory() / "sub", "/lab/sub")
        result = nodes.ndnts_run(self.lab, "tree.mjs", hub.uri(), "/lab/sub", self.lab.path("out"))
        self.assertEqual(result.code, 0, str(result))
        got = self.lab.path("out") / "directory/v=7"
        self.assertIsNone(samples.difference(got, "sub/directory/v=7"))
