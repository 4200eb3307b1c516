"""The recorded packets of the peers decode with `byname decode`."""

import json

from harness import nodes, peers, wire
from harness.case import Case


class PeerVectors(Case):
    def test_every_recorded_packet_decodes(self):
        """As what they are, with the name that an independent decoder finds."""
        files = sorted((peers.REPO / "vectors/peers").glob("*.hex"))
        self.assertTrue(files)
        problems = []
        for file in files:
            packet = bytes.fromhex(file.read_text().splitlines()[-1])
            binary = self.lab.path(f"packets/{file.stem}.bin")
            binary.write_bytes(packet)
            result = self.lab.run([nodes.byname_binary(), "decode", "--json", binary])
            if result.code != 0 or self.seen(result) != self.expected(packet):
                problems.append(f"{file.name}: {result}")
        self.assertEqual(problems, [], "\n".join(problems))

    @staticmethod
    def seen(result):
        """(kind, name or None) in what `byname decode --json` printed."""
        fields = json.loads(result.stdout)
        kind = next(k for k in ("interest", "data", "fragment") if k in fields)
        return kind, None if kind == "fragment" else fields[kind]["name"]

    @staticmethod
    def expected(frame):
        """The same, read by the tests' own decoder."""
        fields, packet = wire.unwrap(frame)
        if wire.LP_FRAG_COUNT in fields:
            return "fragment", None
        kind, body, _ = wire.read_tlv(packet)
        title = {wire.INTEREST: "interest", wire.DATA: "data"}[kind]
        return title, wire.name_uri(wire.first(body, wire.NAME))

    def test_a_broken_packet_does_not(self):
        """The counterpart: a decoder that accepts everything would pass the test above."""
        file = peers.REPO / "vectors/peers/ndnd-put-metadata.hex"
        packet = bytes.fromhex(file.read_text().splitlines()[-1])
        broken = self.lab.path("packets/broken.bin")
        broken.write_bytes(packet[:-1])
        result = self.lab.run([nodes.byname_binary(), "decode", broken])
        self.assertNotEqual(result.code, 0, str(result))
