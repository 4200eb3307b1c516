"""Directory manifests (docs/protocol.md, section 5.1)."""

from . import attributes
from .attributes import BINDING, LINK_TARGET, OWNER
from .metadata import SITE, content
from .tlv import nni, tlv

ENTRY, HEADER, COUNT, VERSION = 0xF550, 0xF552, 0xF554, 0xF556
CONTENT_NAME = 0xF562
SEGMENT_SIZE, SIZE, MODE, MTIME, ROOT = 0xF500, 0xF502, 0xF504, 0xF50C, 0xF540
ROOT_OCTETS = bytes(range(32))


def header(count, *more):
    return tlv(HEADER, nni(COUNT, count), *more)


def mode(bits):
    return tlv(MODE, bits.to_bytes(2, "big"))


def entry(name, *fields):
    return tlv(ENTRY, tlv(8, name), *fields)


def small(name):
    return entry(name, mode(0o100644), nni(MTIME, 4), nni(SIZE, 300), nni(VERSION, 5),
                 tlv(ROOT, ROOT_OCTETS))


def shown(name, bits, mtime=None, size=None, version=None, segment=None, root=None):
    return {"name": name.hex(), "mode": bits, "mtime_ns": mtime, "size": size,
            "version": version, "segment_bytes": segment, "root": root, "content_name": None,
            "attributes": {}}


SMALL = {"mtime": 4, "size": 300, "version": 5, "segment": 8192, "root": ROOT_OCTETS.hex()}


def accepted():
    yield "an empty directory", header(0), []
    yield "a small file", header(1) + small(b"a"), [shown(b"a", 0o100644, **SMALL)]
    yield "a directory", header(1) + entry(b"d", mode(0o040755), nni(MTIME, 1 << 60)), [
        shown(b"d", 0o040755, 1 << 60)]
    yield "a file that is being written", (
        header(1) + entry(b"f", mode(0o100600), nni(MTIME, 0), nni(SIZE, 0))
    ), [shown(b"f", 0o100600, 0, 0)]
    yield "a file of which only the kind is known", (
        header(1) + entry(b"f", mode(0o100000))), [shown(b"f", 0o100000)]
    yield "a large file without a root", (
        header(1) + entry(b"f", mode(0o100644), nni(MTIME, 9), nni(SIZE, 1 << 40), nni(VERSION, 9))
    ), [shown(b"f", 0o100644, 9, 1 << 40, 9, 8192)]
    yield "a segment size of its own", (
        header(1) + entry(b"f", mode(0o100644), nni(SIZE, 1), nni(VERSION, 1),
                          nni(SEGMENT_SIZE, 4096), tlv(ROOT, ROOT_OCTETS))
    ), [shown(b"f", 0o100644, None, 1, 1, 4096, ROOT_OCTETS.hex())]
    yield "names in the order of their octets", (
        header(4) + small(b"B") + small(b"a") + small(b"a!") + small(b"\xc3\xa9")
    ), [shown(name, 0o100644, **SMALL) for name in (b"B", b"a", b"a!", b"\xc3\xa9")]


def bound(name, place, *more):
    return entry(name, mode(0o100644), nni(SIZE, 300), nni(VERSION, 5), tlv(ROOT, ROOT_OCTETS),
                 nni(BINDING, 7), tlv(CONTENT_NAME, place.value()), *more)


def accepted_with_attributes():
    for label, octets, expect in attributes.accepted():
        yield label, header(1) + entry(b"f", mode(0o100644), octets), [
            {**shown(b"f", 0o100644), "attributes": expect}]
    yield "a small file with all attributes", (
        header(1) + entry(b"a", mode(0o100644), nni(MTIME, 4), nni(SIZE, 300), nni(VERSION, 5),
                          tlv(ROOT, ROOT_OCTETS), attributes.FULL)
    ), [{**shown(b"a", 0o100644, **SMALL), "attributes": attributes.FULL_SHOWN}]
    yield "a directory with an owner", (
        header(1) + entry(b"d", mode(0o040755), attributes.OWNED)
    ), [{**shown(b"d", 0o040755), "attributes": {"owner": "Zo\u00eb", "group": "cms"}}]
    yield "a symbolic link", (
        header(1) + entry(b"l", mode(0o100444), nni(MTIME, 4), tlv(LINK_TARGET, b"../a"))
    ), [{**shown(b"l", 0o100444, 4), "attributes": {"link_target": b"../a".hex()}}]
    place = content(SITE, 300)
    yield "a content elsewhere", header(1) + bound(b"f", place), [
        {**shown(b"f", 0o100644, None, 300, 5, 8192, ROOT_OCTETS.hex()),
         "content_name": place.uri(), "attributes": {"binding": 7}}]


def accepted_leniently_with_attributes():
    for label, octets, expect in attributes.accepted_leniently():
        yield label, header(1) + entry(b"f", mode(0o100644), octets), [
            {**shown(b"f", 0o100644), "attributes": expect}]
    yield "an unknown element between attributes", (
        header(1) + entry(b"f", mode(0o100644), tlv(OWNER, b"o"), tlv(0xF5FE), nni(BINDING, 1))
    ), [{**shown(b"f", 0o100644), "attributes": {"owner": "o", "binding": 1}}]


def refused_with_attributes():
    for label, octets, reason in [*attributes.refused(), *attributes.refused_targets()]:
        yield label, header(1) + entry(b"f", mode(0o100644), octets), reason

    def one(*fields):
        return header(1) + entry(b"a", *fields)

    yield "an owner twice", one(mode(0o100644), tlv(OWNER, b"o") * 2), "out-of-order"
    yield "a binding before an owner", (
        one(mode(0o100644), nni(BINDING, 1), tlv(OWNER, b"o"))), "out-of-order"
    yield "an owner before the size", (
        one(mode(0o100644), tlv(OWNER, b"o"), nni(SIZE, 1))), "out-of-order"
    target = tlv(LINK_TARGET, b"a")
    yield "a link with the mode of one", one(mode(0o120777), target), "bad-value"
    yield "a link that is a directory", one(mode(0o040755), target), "bad-value"
    yield "a link with a size", one(mode(0o100444), nni(SIZE, 1), target), "bad-value"
    yield "a link with a version", (
        one(mode(0o100444), nni(SIZE, 1), nni(VERSION, 1), target)), "bad-value"
    place = content(SITE, 300)
    named = tlv(CONTENT_NAME, place.value())
    yield "a content name without a version", (
        one(mode(0o100644), nni(SIZE, 1), nni(BINDING, 7), named)), "bad-value"
    yield "a content name without a binding", (
        one(mode(0o100644), nni(SIZE, 1), nni(VERSION, 1), named)), "bad-value"
    yield "a content name of a directory", (
        one(mode(0o040755), nni(BINDING, 7), named)), "bad-value"
    yield "a content name before the binding", (
        one(mode(0o100644), nni(SIZE, 1), nni(VERSION, 1), named, nni(BINDING, 7))
    ), "out-of-order"
    for label, wrong in (("an empty", b""), ("a plain", SITE.value()),
                         ("a versioned", (place + (54, b"\5")).value())):
        yield f"{label} content name", header(1) + entry(
            b"f", mode(0o100644), nni(SIZE, 1), nni(VERSION, 1), nni(BINDING, 7),
            tlv(CONTENT_NAME, wrong)), "bad-value"


def accepted_leniently():
    unknown = tlv(0xF5FE, b"?")
    yield "unknown elements that may be ignored", (
        header(1, unknown) + unknown
        + entry(b"f", unknown, mode(0o100644), unknown, nni(SIZE, 1), unknown) + unknown
    ), [shown(b"f", 0o100644, None, 1)]


def refused():
    yield "nothing", b"", "missing"
    yield "an entry before the header", small(b"a") + header(1), "missing"
    yield "a header without a count", tlv(HEADER) + small(b"a"), "missing"
    yield "an entry too few", header(2) + small(b"a"), "count"
    yield "an entry too many", header(1) + small(b"a") + small(b"b"), "count"
    yield "a count that cannot be", header((1 << 64) - 1), "count"
    yield "a second header", header(1) + header(1) + small(b"a"), "out-of-order"
    yield "names out of order", header(2) + small(b"b") + small(b"a"), "order"
    yield "a name twice", header(2) + small(b"a") + small(b"a"), "order"
    for label, name in (("empty", b""), ("dot", b"."), ("dot dot", b".."), ("a slash", b"a/b"),
                        ("a NUL", b"a\0"), ("256 octets", b"x" * 256)):
        yield "a name that makes no path: " + label, header(1) + small(name), "name"
    yield "an entry without a name", (
        header(1) + tlv(ENTRY, mode(0o100644), nni(SIZE, 1 << 40))), "missing"
    yield "an entry without a mode", header(1) + entry(b"abc", nni(SIZE, 1)), "missing"
    yield "a mode of one octet", header(1) + entry(b"abc", tlv(MODE, b"\x81")), "bad-length"
    yield "the mode of a symbolic link", header(1) + entry(b"a", mode(0o120777)), "bad-value"
    yield "a directory with a size", (
        header(1) + entry(b"a", mode(0o040755), nni(SIZE, 1))), "bad-value"
    yield "a version without a size", (
        header(1) + entry(b"a", mode(0o100644), nni(VERSION, 1))), "bad-value"
    yield "a root without a version", (
        header(1) + entry(b"a", mode(0o100644), nni(SIZE, 1), tlv(ROOT, ROOT_OCTETS))
    ), "out-of-order"
    yield "a root of 31 octets", (
        header(1) + entry(b"a", mode(0o100644), nni(SIZE, 1), nni(VERSION, 1),
                          tlv(ROOT, ROOT_OCTETS[1:]))), "bad-length"
    yield "size before mode", (
        header(1) + entry(b"a", nni(SIZE, 1), mode(0o100644))), "missing"
    yield "an unknown element that must be known", header(1) + small(b"a") + tlv(0xF5FF), (
        "unknown-critical")
    yield "an entry cut short", header(1) + small(b"a")[:-1], "truncated"


def vectors():
    found = []
    for label, octets, expect in [*accepted(), *accepted_with_attributes()]:
        found.append({"name": label, "accept": True, "canonical": True, "hex": octets.hex(),
                      "expect": expect})
    for label, octets, expect in [*accepted_leniently(), *accepted_leniently_with_attributes()]:
        found.append({"name": label, "accept": True, "hex": octets.hex(), "expect": expect})
    for label, octets, reason in [*refused(), *refused_with_attributes()]:
        found.append({"name": label, "accept": False, "reason": reason, "hex": octets.hex()})
    return found
