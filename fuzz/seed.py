#!/usr/bin/env python3
"""Fills the corpora with inputs to start from, made of the golden packets.

Files are named after their content, as the fuzzer names its own. Nothing is removed: findings that
were put into a corpus stay.
"""

import hashlib
import json
import random
from pathlib import Path

HERE = Path(__file__).resolve().parent
VECTORS = HERE.parent / "vectors"


def golden(file, accepted, step=1):
    """Octets of a file of vectors, every `step`-th of those accepted or refused."""
    vectors = [v for v in json.loads((VECTORS / file).read_text()) if v["accept"] == accepted]
    return [bytes.fromhex(v["hex"]) if "hex" in v else v["name"].encode() for v in vectors[::step]]


def both(file, step=1, refused_step=5):
    return golden(file, True, step) + golden(file, False, refused_step)


def peers(word):
    for path in sorted((VECTORS / "peers").glob(f"*{word}*.hex")):
        lines = path.read_text().splitlines()
        octets = bytes.fromhex("".join(line for line in lines if not line.startswith("#")))
        if len(octets) < 1000:
            yield octets


def value(element):
    """What stands behind TYPE and LENGTH of one octet each, or a LENGTH of three."""
    return element[4:] if element[1] == 253 else element[2:]


def frames(*parts):
    return b"".join(b"\x01" + len(part).to_bytes(2, "big") + part for part in parts)


def reassembly():
    lp = [octets for octets in golden("lp/packet.json", True) if len(octets) < 200]
    fragments = [octets for octets in lp if b"part" in octets]
    yield frames(*fragments)
    yield frames(*reversed(fragments))
    yield frames(*fragments, *fragments)
    for first, second in zip(lp[::6], lp[3::6]):
        yield frames(first, second)


def sending():
    packets = golden("packet/data.json", True, 4) + golden("packet/interest.json", True, 6)
    for index, packet in enumerate(packets):
        yield (128 + index).to_bytes(2, "big") + bytes([index % 33, index % 2]) + packet


def tlv(kind, octets):
    head = bytes([kind]) if kind < 253 else b"\xfd" + kind.to_bytes(2, "big")
    return head + bytes([len(octets)]) + octets


def metadata():
    yield from both("metadata/content.json", 2, 3)
    yield from both("metadata/absence.json", 2, 3)
    name = tlv(7, tlv(8, b"f") + tlv(54, b"\x07"))
    file = tlv(0x1A, tlv(50, b"\x02")) + tlv(0xF500, b"\x20\x00") + tlv(0xF502, bytes(7) + b"\x05")
    times = tlv(0xF504, b"\x81\xa4") + tlv(0xF50A, bytes(8)) + tlv(0xF50C, b"\x01" * 8)
    yield name
    yield name + file + times + tlv(0xF540, b"\x55" * 32)
    yield name + file + times + tlv(0xF542, b"")
    yield tlv(7, tlv(8, b"d") + tlv(32, b"ls") + tlv(54, b"\x07")) + tlv(0xF544, b"\x09")
    yield tlv(0xF548, b"\x64")
    yield tlv(0xF54A, b"\x01")
    version = tlv(8, b"f") + tlv(54, b"\x07")
    yield tlv(8, b"f") + tlv(32, b"metadata")
    yield version + tlv(50, b"\x00")
    yield version + tlv(32, b"tree-1") + tlv(50, b"\x00")
    yield tlv(8, b"d") + tlv(32, b"ls") + tlv(54, b"\x07") + tlv(50, b"\x00")
    yield from peers("metadata")
    yield from peers("absent")


def listings():
    return [b"", b"a\0", b"a\0b/\0", b"\xff\xfe\0", b"../\0", b"a/b\0", b"//\0", b"cut"]


def certificates():
    cases = json.loads((VECTORS / "security/packets.json").read_text())["cases"]
    for octets in (bytes.fromhex(case["wire"]) for case in cases):
        yield octets
    yield golden("packet/data.json", True)[-7]


def links():
    key = "SHA256:" + "A" * 43
    for rest in ("", "?via=tcp://host:6363", f"?via=udp://192.0.2.1&via=unix:///run/x&key={key}"):
        yield f"byname:/lab/run%207{rest}".encode()
    yield b"byname:ndn:/lab/v=1"
    yield "byname:/é x?via=".encode()


def claims():
    unit, node, top = b"\0\0\0\0", b"\1\0\0\0", b"\2\0\0\0"
    for size in (0, 1, 8192, 8193, 40_000, 257 * 8192 - 1):
        yield size.to_bytes(
            3, "big"
        ) + top + node + unit + b"\0\1\0\0" + b"\0\0\0\x11" + b"\1\1\0\0"


def operations():
    """Lists of operations for the forwarder, see its target for what the octets mean."""
    a, deep, segment = 0x02, 0x12, 0xC2
    interest = lambda face, name, flags, nonce, token=b"": bytes(
        [0, face, name, len(token) << 5 | flags, nonce]
    ) + token + bytes([a])
    data = lambda face, name, flags: bytes([3, face, name, flags])
    route = lambda face, name, cost: bytes([8, face, name, cost])
    strategy = lambda which, name: bytes([10, 0, which, name])
    wait = lambda ms: bytes([7, 0, ms])
    nack = lambda which: bytes([5, 0, which])
    down, up, gone = (lambda face, what=what: bytes([9, face, what]) for what in (2, 1, 0))
    ways = route(2, a, 1) + route(3, a, 5)
    yield ways + interest(0, deep, 0, 0xF1, b"tok") + data(2, deep, 5)
    yield ways + interest(0, a, 1, 0xF1) + interest(1, a, 1, 0xF2, b"t") + data(2, segment, 0x85)
    yield ways + interest(0, deep, 0, 0xF1) + nack(0x30) + nack(0x30) + interest(0, deep, 0, 0xF2)
    yield ways + interest(0, deep, 2, 0xF1) + down(2) + interest(0, deep, 2, 0xF3) + up(2)
    for which in range(6):
        pairs = b"".join(
            interest(number % 2, a | number << 5, 0, 0xF0 | number) + wait(5 + 40 * (number % 3))
            + data(2 + number % 2, a | number << 5, 1)
            for number in range(8)
        )
        yield strategy(which, a) + ways + pairs + wait(255) + pairs
    flood = b"".join(interest(0, n, 1, 0xF0 | n & 15) for n in range(2, 250, 6))
    yield ways + flood + wait(255) * 5
    yield ways + interest(0, deep, 0, 0xF1) + gone(0) + data(2, deep, 5) + gone(2)
    for verb in range(10):
        commands = bytes([6, 0, verb, a, 0xFF]) + bytes([6, 1, verb | 0x80, a, 1])
        yield commands + interest(2, a, 0, 0xF1)
    for seed in range(12):
        yield bytes(random.Random(seed).choices(range(256), k=100 + 40 * seed))


def site():
    """Whole packets; contents behind an octet that says of what, see the target."""
    yield from both("site/packet.json", 1, 2)
    vectors = json.loads((VECTORS / "site/command.json").read_text())
    operations = list(dict.fromkeys(v["operation"] for v in vectors if v["accept"]))
    for vector in vectors[::2] + [v for v in vectors if not v["accept"]]:
        if vector["operation"] in operations:
            kind = operations.index(vector["operation"])
            yield bytes([kind]) + bytes.fromhex(vector["hex"])
    for vector in json.loads((VECTORS / "site/content.json").read_text()):
        kind = 201 if vector["kind"] == "receipt" else 200
        yield bytes([kind]) + bytes.fromhex(vector["hex"])


def shared_memory():
    """Lists of operations for a memif peer, see its target for what the octets mean."""
    send, take, receive = b"\0\x10\0\0", b"\2\0\0\0", b"\3\0\0\0"
    ours = lambda count: b"\5\0\x20\1" * count
    draft = lambda count, kept: bytes([6, count, kept, 0])
    move = lambda ring, by: bytes([7, ring, 128 + by, 0])
    index = lambda ring, edge: bytes([8, ring, edge, 0])
    field = lambda place, which, edge: bytes([9, place, edge, which << 2 | which])
    masked = b"\x0a\0\1\0\x0a\1\1\0"
    for role in (b"\0", b"\1"):
        yield role + (send * 3 + receive + ours(3) + take) * 8
        yield role + send * 9 + receive + ours(20) + take * 3 + receive * 2 + take
        yield role + draft(5, 1) + draft(11, 0) + take + draft(11, 3) + take * 2 + ours(2) + take
        yield role + masked + send + receive + ours(1) + take
        for ring in (0, 1):
            for by in (-1, 1, 8, 9, -8):
                yield role + send * 2 + receive + ours(6) + take + ours(2) + move(ring, by) + (
                    ours(1) + receive
                ) * 3
            for edge in range(16):
                yield role + send * 3 + index(ring, edge) + receive + ours(9) + receive
        for which in range(4):
            for edge in (0, 1, 8, 9, 11, 12, 13, 15):
                yield role + send * 2 + field(0, which, edge) + field(1, which, edge) + (
                    receive + ours(2) + draft(3, 1)
                )
        yield role + send * 4 + b"\3\1\0\0" + receive
        for seed in range(6):
            yield role + bytes(random.Random(seed).choices(range(256), k=160))


def loans():
    """Texts, and texts without the sum that the target adds."""
    for vector in json.loads((VECTORS / "site/loan.json").read_text()):
        yield vector["text"].encode()
        yield vector["text"].rsplit(" ", 1)[0].encode()


SEEDS = {
    "packet": lambda: both("packet/interest.json")
    + both("packet/data.json")
    + [*peers("interest")],
    "lp": lambda: both("lp/packet.json", 2, 8),
    "name_uri": lambda: both("packet/uri.json")
    + [value(n) for n in golden("packet/name.json", True)],
    "mgmt": lambda: both("mgmt/control-parameters.json", 4, 12)
    + [octets for name in MANAGEMENT for octets in both(f"mgmt/{name}.json", 1, 4)],
    "signature_info": lambda: [value(e) for e in both("packet/signature-info.json")],
    "link_reassembly": reassembly,
    "link_send": sending,
    "metadata": metadata,
    "listing": listings,
    "manifest": lambda: both("manifest/payload.json", 1, 2),
    "kept_copy": lambda: [o for o in both("copies/kept.json", 1, 1) if len(o) < 1000],
    "certificate": certificates,
    "byname_link": links,
    "tree_verifier": claims,
    "forwarder": operations,
    "site": site,
    "memif": shared_memory,
    "loan": loans,
}
MANAGEMENT = ["control-response", "general-status", "face-status", "rib", "fib", "cs-info"]


def main():
    for target, seeds in SEEDS.items():
        folder = HERE / "corpus" / target
        folder.mkdir(parents=True, exist_ok=True)
        for octets in seeds():
            (folder / hashlib.sha1(octets).hexdigest()[:16]).write_bytes(octets)
        print(f"{target}: {len(list(folder.iterdir()))} files")


if __name__ == "__main__":
    main()
