"""Attributes that metadata and manifest entries share (docs/protocol.md, section 3.5)."""

from .tlv import nni, tlv

LINK_TARGET, OWNER, GROUP, CHECKSUMS, BINDING = 0xF558, 0xF55A, 0xF55C, 0xF55E, 0xF560
ADLER32, CRC32, CRC32C, MD5, SHA256 = 0xF566, 0xF568, 0xF56A, 0xF56C, 0xF56E
MEDIA_TYPE = 0xF572
UNKNOWN, UNKNOWN_ODD = 0xF5FE, 0xF5FF

LENGTHS = {"adler32": (ADLER32, 4), "crc32": (CRC32, 4), "crc32c": (CRC32C, 4), "md5": (MD5, 16),
           "sha256": (SHA256, 32)}


def sums(*kinds):
    """The checksums of these kinds, made up, and how they are shown."""
    found = [(kind, bytes([0x10 * (place + 1)] * LENGTHS[kind][1]))
             for place, kind in enumerate(kinds)]
    wire = tlv(CHECKSUMS, *(tlv(LENGTHS[kind][0], octets) for kind, octets in found))
    return wire, {kind: octets.hex() for kind, octets in found}


ALL_SUMS, ALL_SUMS_SHOWN = sums(*LENGTHS)
OWNED = tlv(OWNER, "Zo\u00eb".encode()) + tlv(GROUP, b"cms")
TYPED = tlv(MEDIA_TYPE, b"text/plain; charset=utf-8")
FULL = OWNED + ALL_SUMS + nni(BINDING, 1 << 40) + TYPED
FULL_SHOWN = {"owner": "Zo\u00eb", "group": "cms", **ALL_SUMS_SHOWN, "binding": 1 << 40,
              "media_type": "text/plain; charset=utf-8"}


def accepted():
    """Attributes of a file, canonical."""
    yield "all attributes", FULL, FULL_SHOWN
    yield "an owner", tlv(OWNER, b"o" * 255), {"owner": "o" * 255}
    yield "a group", tlv(GROUP, b"\x20"), {"group": " "}
    wire, shown = sums("adler32", "crc32c")
    yield "some checksums", wire, shown
    yield "a binding", nni(BINDING, (1 << 64) - 1), {"binding": (1 << 64) - 1}
    longest = "a/" + "b" * 253
    yield "a media type", tlv(MEDIA_TYPE, longest.encode()), {"media_type": longest}


def accepted_leniently():
    wire, shown = sums("md5")
    yield "no checksum", tlv(CHECKSUMS), {}
    yield "a checksum of the future", (
        tlv(CHECKSUMS, tlv(UNKNOWN, b"?"), tlv(MD5, b"\x10" * 16))), shown
    yield "a binding of eight octets", tlv(BINDING, bytes(7) + b"\5"), {"binding": 5}


def refused():
    """Attributes that no reader takes, wherever they stand."""
    yield "an empty owner", tlv(OWNER), "bad-length"
    yield "an owner of 256 octets", tlv(OWNER, b"o" * 256), "bad-length"
    yield "a group of 256 octets", tlv(GROUP, b"o" * 256), "bad-length"
    yield "an owner that is not UTF-8", tlv(OWNER, b"\xff"), "bad-value"
    yield "an owner with a line feed", tlv(OWNER, b"a\nb"), "bad-value"
    yield "a group with a control character of two octets", tlv(GROUP, b"\xc2\x9b"), "bad-value"
    yield "a binding of 0", nni(BINDING, 0), "bad-value"
    yield "a binding of three octets", tlv(BINDING, b"\0\0\1"), "bad-length"
    yield "an empty media type", tlv(MEDIA_TYPE), "bad-length"
    yield "a media type of 256 octets", tlv(MEDIA_TYPE, b"a/" + b"b" * 254), "bad-length"
    for label, octets in (("without a subtype", b"text"), ("that ends with a slash", b"text/"),
                          ("that begins with a slash", b"/plain"),
                          ("with a line feed", b"text/plain\n"),
                          ("that is not ASCII", "te\u00e4t/plain".encode())):
        yield f"a media type {label}", tlv(MEDIA_TYPE, octets), "bad-value"
    for kind, (number, length) in LENGTHS.items():
        short = tlv(CHECKSUMS, tlv(number, bytes(length - 1)))
        yield f"a short {kind}", short, "bad-length"
    adler, crc = tlv(ADLER32, bytes(4)), tlv(CRC32, bytes(4))
    yield "checksums out of order", tlv(CHECKSUMS, crc, adler), "out-of-order"
    yield "a checksum twice", tlv(CHECKSUMS, crc, crc), "out-of-order"
    yield "a checksum that must be known", tlv(CHECKSUMS, tlv(UNKNOWN_ODD)), "unknown-critical"
    yield "a checksum cut short", tlv(CHECKSUMS, adler[:-1]), "truncated"


def refused_targets():
    yield "an empty link target", tlv(LINK_TARGET), "bad-length"
    yield "a link target of 4096 octets", tlv(LINK_TARGET, b"x" * 4096), "bad-length"
    yield "a link target with a NUL", tlv(LINK_TARGET, b"a\0b"), "bad-value"
