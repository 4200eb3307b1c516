"""The recorded packets of the peers decode with `byname decode`."""

from harness import nodes, peers
from harness.case import Case


class PeerVectors(Case):
    def test_every_recorded_packet_decodes(self):
        files = sorted((peers.REPO / "vectors/peers").glob("*.hex"))
        self.assertTrue(files)
        problems = []
        for file in files:
            packet = bytes.fromhex(file.read_text().splitlines()[-1])
            binary = self.lab.path(f"packets/{file.stem}.bin")
            binary.write_bytes(packet)
            result = self.lab.run([nodes.byname_binary(), "decode", binary])
            if result.code != 0:
                problems.append(f"{file.name}: {result}")
        self.assertFalse(problems, "\n".join(problems))

    def test_a_broken_packet_does_not(self):
        """The counterpart: a decoder that accepts everything would pass the test above."""
        file = peers.REPO / "vectors/peers/ndnd-put-metadata.hex"
        packet = bytes.fromhex(file.read_text().splitlines()[-1])
        broken = self.lab.path("packets/broken.bin")
        broken.write_bytes(packet[:-1])
        result = self.lab.run([nodes.byname_binary(), "decode", broken])
        self.assertNotEqual(result.code, 0, str(result))
