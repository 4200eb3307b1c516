"""What a discovery Interest is answered with (docs/protocol.md, sections 3.3 and 3.4)."""

from . import attributes
from .attributes import BINDING, LINK_TARGET
from .tlv import Name, accept, nni, number_octets, reject, seg, tlv, version
from .tree import blake3

FINAL, SEGMENT_SIZE, SIZE, MODE, CTIME, MTIME = 0x1A, 0xF500, 0xF502, 0xF504, 0xF50A, 0xF50C
ROOT, PENDING, LISTING_SIZE, LISTING_SEGMENT_SIZE = 0xF540, 0xF542, 0xF544, 0xF546
BEING_WRITTEN, ERROR_CODE, ENCRYPTED = 0xF548, 0xF54A, 0xF54C
BEING_LISTED = 0xF5C0
ATIME, UNKNOWN, UNKNOWN_ODD = 0xF506, 0xF5FE, 0xF5FF
HINT = 0xF564
ROOT_OCTETS = bytes(range(32))

FILE = Name(b"f") + version(5)
DIRECTORY = Name(b"d") + (32, b"ls") + version(7)
MANIFEST = Name(b"d") + (32, b"manifest") + version(7)


def fixed(kind, number, width):
    return tlv(kind, number.to_bytes(width, "big"))


def final(number):
    return tlv(FINAL, tlv(*seg(number)))


def shown(name, last=None, segment=None, size=None, mode=None, **more):
    """Every field a decoder shows."""
    fields = {"name": name.uri(), "last_segment": last, "segment_size": segment, "size": size,
              "mode": mode, "ctime_ns": None, "mtime_ns": None, "root": "absent",
              "listing_size": None, "listing_segment_size": None, "is_directory": False,
              "content_id": None, "attributes": {}, "forwarding_hint": []}
    return {**fields, **more}


TIMES = fixed(CTIME, 6, 8) + fixed(MTIME, 5, 8)
PLAIN = fixed(SEGMENT_SIZE, 8192, 2) + fixed(SIZE, 8193, 8) + fixed(MODE, 0o100644, 2)
WHOLE = shown(FILE, 1, 8192, 8193, 0o100644, ctime_ns=6, mtime_ns=5)


def accepted():
    head = FILE.tlv() + final(1) + PLAIN + TIMES
    known = {**WHOLE, "root": ROOT_OCTETS.hex()}
    yield "a file", head + tlv(ROOT, ROOT_OCTETS), known
    yield "a file whose root is being computed", head + tlv(PENDING), {**WHOLE, "root": "pending"}
    yield "a file without a root", head, WHOLE
    yield "an empty file", (
        FILE.tlv() + final(0) + fixed(SEGMENT_SIZE, 8192, 2) + fixed(SIZE, 0, 8)
        + fixed(MODE, 0o100600, 2) + TIMES + tlv(ROOT, ROOT_OCTETS)
    ), {**known, "last_segment": 0, "size": 0, "mode": 0o100600}
    largest = (1 << 64) - 1
    yield "the largest numbers", (
        FILE.tlv() + final(largest) + fixed(SEGMENT_SIZE, 0xFFFF, 2) + fixed(SIZE, largest, 8)
        + fixed(MODE, 0xFFFF, 2) + fixed(CTIME, largest, 8) + fixed(MTIME, largest, 8)
    ), shown(FILE, largest, 0xFFFF, largest, 0xFFFF, ctime_ns=largest, mtime_ns=largest)
    yield "a directory", (
        DIRECTORY.tlv() + fixed(MODE, 0o040755, 2) + TIMES + tlv(ROOT, ROOT_OCTETS)
        + nni(LISTING_SIZE, 300) + nni(LISTING_SEGMENT_SIZE, 8192)
    ), shown(DIRECTORY, mode=0o040755, ctime_ns=6, mtime_ns=5, root=ROOT_OCTETS.hex(),
             listing_size=300, listing_segment_size=8192, is_directory=True)
    yield "a manifest", (
        MANIFEST.tlv() + fixed(MODE, 0o040755, 2) + TIMES + tlv(ROOT, ROOT_OCTETS)
        + nni(LISTING_SIZE, 9) + nni(LISTING_SEGMENT_SIZE, 4096)
    ), shown(MANIFEST, mode=0o040755, ctime_ns=6, mtime_ns=5, root=ROOT_OCTETS.hex(),
             listing_size=9, listing_segment_size=4096, is_directory=True)
    yield "nothing but a name", FILE.tlv(), shown(FILE)
    yield "a directory told by its name", DIRECTORY.tlv(), shown(DIRECTORY, is_directory=True)


def accepted_leniently():
    yield "numbers of other widths", (
        FILE.tlv() + final(1) + nni(SEGMENT_SIZE, 200) + nni(SIZE, 201) + fixed(MODE, 0o100644, 4)
        + nni(CTIME, 6) + fixed(MTIME, 5, 4)
    ), shown(FILE, 1, 200, 201, 0o100644, ctime_ns=6, mtime_ns=5)
    yield "another order", (
        tlv(ROOT, ROOT_OCTETS) + TIMES + PLAIN + final(1) + FILE.tlv()
    ), {**WHOLE, "root": ROOT_OCTETS.hex()}
    yield "the first of a kind counts", (
        FILE.tlv() + DIRECTORY.tlv() + final(1) + final(2) + PLAIN + fixed(SIZE, 1, 8) + TIMES
        + tlv(ROOT, ROOT_OCTETS) + tlv(ROOT, ROOT_OCTETS[::-1]) + tlv(PENDING)
    ), {**WHOLE, "root": ROOT_OCTETS.hex()}
    yield "what other servers say", (
        FILE.tlv() + final(1) + PLAIN + fixed(ATIME, 9, 8) + TIMES + tlv(UNKNOWN, b"?")
    ), WHOLE
    yield "ciphertext", FILE.tlv() + final(1) + PLAIN + TIMES + tlv(ENCRYPTED), WHOLE


def content(prefix, number):
    return prefix + (32, b"file") + (58, number_octets(number))


SITE, DISK = Name(b"site"), Name(b"site", (32, b"disk"), b"1")
BOUND = content(SITE, 300) + version(5)


def accepted_with_attributes():
    head = FILE.tlv() + final(1) + PLAIN + TIMES + tlv(ROOT, ROOT_OCTETS)
    known = {**WHOLE, "root": ROOT_OCTETS.hex()}
    hint = tlv(HINT, SITE.tlv(), DISK.tlv())
    names = [SITE.uri(), DISK.uri()]
    yield "a file with all attributes", head + attributes.FULL + hint, {
        **known, "attributes": attributes.FULL_SHOWN, "forwarding_hint": names}
    for label, octets, expect in attributes.accepted():
        yield label, FILE.tlv() + octets, shown(FILE, attributes=expect)
    yield "a directory with an owner", (
        DIRECTORY.tlv() + fixed(MODE, 0o040755, 2) + attributes.OWNED
    ), shown(DIRECTORY, mode=0o040755, is_directory=True,
             attributes={"owner": "Zo\u00eb", "group": "cms"})
    yield "a symbolic link", (
        FILE.tlv() + final(0) + fixed(SEGMENT_SIZE, 8192, 2) + fixed(SIZE, 4, 8)
        + fixed(MODE, 0o100444, 2) + TIMES + tlv(ROOT, ROOT_OCTETS) + tlv(LINK_TARGET, b"../a")
    ), {**known, "last_segment": 0, "size": 4, "mode": 0o100444,
        "attributes": {"link_target": b"../a".hex()}}
    target = b"\xff" * 4095
    yield "the longest link target", FILE.tlv() + tlv(LINK_TARGET, target), shown(
        FILE, attributes={"link_target": target.hex()})
    yield "a content elsewhere", BOUND.tlv() + nni(BINDING, 7), shown(
        BOUND, attributes={"binding": 7}, content_id=300)
    yield "a content below no prefix", (content(Name(), 0) + version(1)).tlv() + nni(BINDING, 7), (
        shown(content(Name(), 0) + version(1), attributes={"binding": 7}, content_id=0))
    many = [SITE + version(number) for number in range(16)]
    yield "16 delegations", FILE.tlv() + tlv(HINT, *(name.tlv() for name in many)), shown(
        FILE, forwarding_hint=[name.uri() for name in many])


def accepted_leniently_with_attributes():
    for label, octets, expect in attributes.accepted_leniently():
        yield label, FILE.tlv() + octets, shown(FILE, attributes=expect)
    yield "the first attribute of a kind counts", (
        FILE.tlv() + nni(BINDING, 1) + nni(BINDING, 2) + tlv(HINT, SITE.tlv())
        + tlv(HINT, DISK.tlv())
    ), shown(FILE, attributes={"binding": 1}, forwarding_hint=[SITE.uri()])
    yield "attributes in another order", (
        tlv(HINT, SITE.tlv()) + nni(BINDING, 1) + attributes.OWNED + FILE.tlv()
    ), shown(FILE, attributes={"owner": "Zo\u00eb", "group": "cms", "binding": 1},
             forwarding_hint=[SITE.uri()])
    yield "a delegation of the future", (
        FILE.tlv() + tlv(HINT, tlv(UNKNOWN, b"?"), SITE.tlv())
    ), shown(FILE, forwarding_hint=[SITE.uri()])
    odd = Name(b"site", (32, b"file"), b"9") + version(5)
    yield "an id that is no sequence number", odd.tlv(), shown(odd)


def refused_with_attributes():
    for label, octets, reason in [*attributes.refused(), *attributes.refused_targets()]:
        yield label, FILE.tlv() + octets, reason
    yield "an unknown element that must be known", FILE.tlv() + tlv(UNKNOWN_ODD), (
        "unknown-critical")
    yield "an unknown element of a small number", FILE.tlv() + tlv(30), "unknown-critical"
    yield "a link that is a directory", (
        FILE.tlv() + fixed(MODE, 0o040755, 2) + tlv(LINK_TARGET, b"a")), "bad-value"
    yield "a link that is a listing", DIRECTORY.tlv() + tlv(LINK_TARGET, b"a"), "bad-value"
    yield "a link of another length", (
        FILE.tlv() + fixed(SIZE, 2, 8) + tlv(LINK_TARGET, b"a")), "bad-value"
    yield "a content elsewhere without a binding", BOUND.tlv(), "missing"
    yield "no delegation", FILE.tlv() + tlv(HINT), "missing"
    yield "17 delegations", (
        FILE.tlv() + tlv(HINT, *((SITE + version(n)).tlv() for n in range(17)))), "bad-length"
    for label, name in (("an empty", Name()), ("a local", Name(b"localhost")),
                        ("a link-local", Name(b"localhop", b"a"))):
        wire = tlv(HINT, SITE.tlv(), tlv(7, name.value()))
        yield f"{label} delegation", FILE.tlv() + wire, "bad-value"
    yield "an unknown element in a hint", (
        FILE.tlv() + tlv(HINT, SITE.tlv(), tlv(UNKNOWN_ODD))), "unknown-critical"
    yield "a bad name in a hint", FILE.tlv() + tlv(HINT, tlv(7, b"\0\0")), "invalid-type"


def delegations():
    """Which of `count` delegations the first Interest for a segment names (section 3.6)."""
    found = []
    for number, segment, count in ((0, 0, 1), (1, 0, 3), (1, 2047, 3), (1, 2048, 3), (2, 0, 3),
                                   (300, 1 << 20, 2), (300, 1 << 20, 16), (1 << 63, 4096, 5),
                                   ((1 << 64) - 1, (1 << 64) - 1, 7), (7, 7, 0)):
        octets = number.to_bytes(8, "big") + (segment // 2048).to_bytes(8, "big")
        first = int.from_bytes(blake3(octets)[:8], "big")
        found.append({"name": f"id {number}, segment {segment}, {count} delegations",
                      "id": number, "segment": segment, "count": count,
                      "index": first % count if count else None})
    return found


def refused():
    yield "nothing", b"", "missing"
    yield "no name", final(1) + PLAIN, "missing"
    yield "a name cut short", FILE.tlv()[:-1], "truncated"
    yield "an element cut short", FILE.tlv() + PLAIN[:-1], "truncated"
    yield "a size of three octets", FILE.tlv() + fixed(SIZE, 1, 3), "bad-length"
    yield "an empty size", FILE.tlv() + tlv(SIZE), "bad-length"
    yield "a mode of three octets", FILE.tlv() + fixed(MODE, 1, 3), "bad-length"
    yield "a root of 31 octets", FILE.tlv() + tlv(ROOT, ROOT_OCTETS[1:]), "bad-length"
    yield "a root of 33 octets", FILE.tlv() + tlv(ROOT, ROOT_OCTETS + b"!"), "bad-length"


def contents():
    canonical = [*accepted(), *accepted_with_attributes()]
    lenient = [*accepted_leniently(), *accepted_leniently_with_attributes()]
    wrong = [*refused(), *refused_with_attributes()]
    found = [accept(label, octets, expect, canonical=True) for label, octets, expect in canonical]
    found += [accept(label, octets, expect) for label, octets, expect in lenient]
    return found + [reject(label, octets, reason) for label, octets, reason in wrong]


def absences():
    def canonical(label, octets, expect):
        return accept(label, octets, expect, canonical=True)

    return [
        canonical("nothing is there", b"", "not-found"),
        accept("something unknown", tlv(UNKNOWN, b"?"), "not-found"),
        canonical("it is being written", nni(BEING_WRITTEN, 300), "being-written 300"),
        canonical("its list is being made", tlv(BEING_LISTED) + nni(BEING_WRITTEN, 500),
                  "being-listed 500"),
        accept("a list in the making without a time", tlv(BEING_LISTED), "not-found"),
        canonical("no permission", nni(ERROR_CODE, 1), "no-permission"),
        canonical("too many entries", nni(ERROR_CODE, 2), "listing-too-large"),
        canonical("the name is too long", nni(ERROR_CODE, 3), "name-too-long"),
        canonical("it cannot be read", nni(ERROR_CODE, 4), "unreadable 4"),
        canonical("a code of the future", nni(ERROR_CODE, 1 << 40), f"unreadable {1 << 40}"),
        accept("unknown, then a code", tlv(UNKNOWN) + nni(ERROR_CODE, 1), "no-permission"),
        reject("a code without a number", tlv(ERROR_CODE), "bad-length"),
        reject("a time of three octets", tlv(BEING_WRITTEN, b"\0\0\1"), "bad-length"),
        reject("a code cut short", nni(ERROR_CODE, 1)[:-1], "truncated"),
    ]
