"""What is said while a root is being computed (docs/protocol.md, section 6.1)."""

import hashlib
import hmac

from .tlv import Name, nni, tlv

SECRET = b"sixteen octets at least"
VERSIONED = Name(b"f") + (54, b"\x05")
NODE = VERSIONED + (32, b"tree-1") + (50, b"\x00")
VALUES = bytes(range(64))


def fixed(kind, number, width):
    return tlv(kind, number.to_bytes(width, "big"))


def metadata():
    """A file of 8193 octets, as in section 3.3, without its root."""
    return b"".join([
        tlv(7, VERSIONED.value()),
        tlv(0x1A, tlv(50, b"\x01")),
        fixed(0xF500, 8192, 2), fixed(0xF502, 8193, 8), fixed(0xF504, 0o100644, 2),
        fixed(0xF50A, 6, 8), fixed(0xF50C, 5, 8),
        tlv(0xF542),
    ])


def node():
    locator = tlv(28, tlv(7, (Name(b"KEY") + b"1").value()))
    signed = b"".join([
        tlv(7, NODE.value()),
        tlv(20, nni(25, 3_600_000), tlv(26, tlv(50, b"\x00"))),
        tlv(21, VALUES),
        tlv(22, nni(27, 4), locator),
    ])
    return tlv(6, signed, tlv(23, hmac.new(SECRET, signed, hashlib.sha256).digest()))


def vectors():
    return [
        {"name": "metadata without the root", "hex": metadata().hex()},
        {"name": "a level-1 segment signed with HMAC", "hex": node().hex(),
         "values": VALUES.hex(), "secret": SECRET.hex()},
    ]
