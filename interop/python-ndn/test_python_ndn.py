"""python-ndn: `pyndntools catchunks` reads byname, byname reads `pyndntools putchunks`.

catchunks asks for one segment after the other; 100 MiB take it about 15 s.
"""

from harness import nodes, samples
from harness.case import Case, grid
from harness.matrix import FORWARDERS, NAME, ReadsFromByname


class CatchunksReadsByname(ReadsFromByname):
    needs = ("python-ndn", "ndnd")
    consumer = nodes.python_cat

    @grid(forwarder=FORWARDERS, scheme=("unix", "tcp"))
    def check_small_files(self, forwarder, scheme):
        self.check_reads_over(forwarder, scheme)

    def test_small_files_over_udp(self):
        """python-ndn puts nothing together; on loopback links byname takes nothing apart."""
        self.check_reads_over("byname", "udp")

    @grid(forwarder=FORWARDERS)
    def check_large_file(self, forwarder):
        self.check_reads(forwarder, "unix", [samples.LARGE])

    @grid(forwarder=FORWARDERS)
    def check_absent_file(self, forwarder):
        self.check_absent(forwarder, NAME + "/absent")

    def test_unroutable_name(self):
        result = self.check_absent("byname", "/nowhere/f")
        self.assertIn(b"Nacked", result.stdout, str(result))


class PutchunksIsReadByByname(Case):
    needs = ("python-ndn", "ndnd")

    @grid(forwarder=FORWARDERS, scheme=("unix", "tcp"))
    def check_many_segments(self, forwarder, scheme):
        """Registers with a signed Interest and serves segments of 8000 bytes without a size."""
        hub = nodes.FORWARDERS[forwarder](self.lab)
        sample = samples.directory() / "many-segments.bin"
        nodes.python_put(self.lab, hub, sample, "/pub/f", scheme)
        out = self.lab.path("out/f")
        result = nodes.byname_get_insecure(self.lab, hub.uri(), "/pub/f", out)
        self.assertEqual(result.code, 0, str(result))
        self.assertIsNone(samples.difference(out, "many-segments.bin"))
