"""What is kept with a copy (docs/protocol.md, section 8.2): packets one after the other."""

from .metadata import FILE
from .tlv import Name, nni, reject, sha256, tlv, version

CONTENT = 0x15
CERTIFICATES_MAX = 8


def data(name, content):
    """A Data packet with a digest for a signature."""
    signed = name.tlv() + tlv(20, nni(25, 1000)) + tlv(CONTENT, content) + tlv(22, nni(27, 0))
    return tlv(6, signed, tlv(23, sha256(signed)))


METADATA = data(Name(b"f") + (32, b"metadata") + version(9) + (50, b"\0"), FILE.tlv())
CERTIFICATES = [
    data(Name(b"KEY") + bytes([number]) + b"self" + version(1), b"not a key") for number in range(9)
]
LISTING = b"a\0b/\0"


def kept(label, octets, payload=None, certificates=(), **more):
    expect = {"packet": METADATA.hex(), "payload": None if payload is None else payload.hex(),
              "certificates": [wire.hex() for wire in certificates]}
    return {"name": label, "accept": True, **more, "hex": octets.hex(), "expect": expect}


def vectors():
    first, second = CERTIFICATES[:2]
    content = tlv(CONTENT, LISTING)
    return [
        kept("a file's packet alone", METADATA),
        kept("with the certificates", METADATA + first + second, None, (first, second)),
        kept("a directory's, with its payload", METADATA + first + content, LISTING, (first,)),
        kept("an empty payload", METADATA + tlv(CONTENT), b""),
        kept("the payload first", content + METADATA, LISTING),
        kept("the first payload counts", METADATA + content + tlv(CONTENT, b"c\0"), LISTING),
        kept("unknown elements", tlv(0xF5FE, b"?") + METADATA + tlv(0xF5FE) + first, None,
             (first,)),
        kept("more certificates than are kept", METADATA + b"".join(CERTIFICATES), None,
             CERTIFICATES[:CERTIFICATES_MAX]),
        reject("nothing", b"", "missing"),
        reject("a payload without a packet", content, "missing"),
        reject("a packet cut short", METADATA[:-1], "truncated"),
        reject("a certificate cut short", METADATA + first[:-1], "truncated"),
        reject("no packet in the packet", tlv(6, b"") + first, "missing"),
    ]
