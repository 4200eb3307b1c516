"""Components, names, their textual forms and their order."""

from .tlv import Name, accept, component_uri, convention_number, keyword, reject, seg, tlv, version

ONE_DIGEST = bytes(range(32))


def component(name, kind, octets):
    expect = {
        "type": kind,
        "value": octets.hex(),
        "number": convention_number(kind, octets),
        "uri": component_uri(kind, octets),
    }
    return accept(name, tlv(kind, octets), expect)


def components():
    found = [
        component("generic", 8, b"hello"),
        component("generic, empty", 8, b""),
        component("generic, one period", 8, b"."),
        component("generic, three periods", 8, b"..."),
        component("generic, every kind of octet", 8, bytes(range(0, 256, 5))),
        component("generic that looks like a convention", 8, b"seg=5"),
        component("generic, UTF-8", 8, "é/ü".encode()),
        component("generic, legacy segment marker", 8, b"\x00\x05"),
        component("generic, value of 253 octets", 8, b"x" * 253),
        component("keyword", 32, b"metadata"),
        component("keyword, empty", 32, b""),
        component("implicit digest", 1, ONE_DIGEST),
        component("parameters digest", 2, ONE_DIGEST),
        component("TYPE 252, the last of one octet", 252, b"a"),
        component("TYPE 253, the first of three octets", 253, b"a"),
        component("TYPE 65535", 65535, b"a"),
    ]
    for kind in (50, 52, 54, 56, 58):
        for number in (0, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**64 - 1):
            octets = seg(number)[1]
            found.append(component(f"convention {kind}, number {number}", kind, octets))
        found.append(component(f"convention {kind}, two octets for 5", kind, b"\x00\x05"))
        found.append(component(f"convention {kind}, three octets", kind, b"\x01\x02\x03"))
        found.append(component(f"convention {kind}, no octets", kind, b""))
        found.append(component(f"convention {kind}, nine octets", kind, b"\x01" * 9))
    return found + bad_components()


def bad_components():
    digest = ONE_DIGEST
    return [
        reject("nothing", b"", "truncated"),
        reject("TYPE only", b"\x08", "truncated"),
        reject("LENGTH beyond the end", b"\x08\x02a", "truncated"),
        reject("LENGTH 2^60", b"\x08\xff" + (2**60).to_bytes(8, "big"), "truncated"),
        reject("LENGTH 2^64-1", b"\x08\xff" + b"\xff" * 8, "truncated"),
        reject("LENGTH cut", b"\x08\xfd\x01", "truncated"),
        reject("TYPE 0", b"\x00\x00", "invalid-type"),
        reject("TYPE 65536", tlv(65536, b"a"), "invalid-type"),
        reject("TYPE 2^32-1", tlv(2**32 - 1, b"a"), "invalid-type"),
        reject("TYPE 2^32", tlv(2**32, b"a"), "invalid-type"),
        reject("TYPE 8 in three octets", b"\xfd\x00\x08\x00", "not-shortest"),
        reject("TYPE 252 in three octets", b"\xfd\x00\xfc\x00", "not-shortest"),
        reject("TYPE 65535 in five octets", b"\xfe\x00\x00\xff\xff\x00", "not-shortest"),
        reject("TYPE 8 in nine octets", b"\xff" + b"\x00" * 7 + b"\x08\x00", "not-shortest"),
        reject("LENGTH 1 in three octets", b"\x08\xfd\x00\x01a", "not-shortest"),
        reject("LENGTH 1 in five octets", b"\x08\xfe\x00\x00\x00\x01a", "not-shortest"),
        reject("LENGTH 1 in nine octets", b"\x08\xff" + b"\x00" * 7 + b"\x01a", "not-shortest"),
        reject("two components", tlv(8, b"a") + tlv(8, b"b"), "trailing"),
        reject("implicit digest of 31 octets", tlv(1, digest[1:]), "bad-length"),
        reject("implicit digest of 33 octets", tlv(1, digest + b"\x00"), "bad-length"),
        reject("implicit digest of no octets", tlv(1), "bad-length"),
        reject("parameters digest of 31 octets", tlv(2, digest[1:]), "bad-length"),
        reject("parameters digest of 33 octets", tlv(2, digest + b"\x00"), "bad-length"),
    ]


def name_vector(title, name, user):
    parts = [[kind, octets.hex()] for kind, octets in name.components]
    expect = {"uri": name.uri(), "user": user, "components": parts}
    return accept(title, name.tlv(), expect)


def names():
    file = Name(b"lab", b"run 7.root", version(3), seg(0))
    return [
        name_vector("empty", Name(), "/"),
        name_vector("plain", Name(b"a", b"b"), "/a/b"),
        name_vector("typed", file, "ndn:/lab/run%207.root/v=3/seg=0"),
        name_vector("discovery", Name(b"d", keyword(b"metadata")), "ndn:/d/32=metadata"),
        name_vector("file names as people write them", Name(b"v=1", "é x".encode()), "/v=1/é x"),
        name_vector("slash and percent inside", Name(b"a/b%"), "/a%2Fb%25"),
        name_vector("escape sequence of a terminal", Name(b"\x1b[31m"), "/%1B[31m"),
        name_vector("text that runs backwards", Name("a\u202eb".encode()), "/a%E2%80%AEb"),
        name_vector("not UTF-8", Name(b"\xff\xfea"), "/%FF%FEa"),
        name_vector("empty component", Name(b""), "ndn:/..."),
        name_vector("one period", Name(b"."), "ndn:/...."),
        name_vector("two periods", Name(b"..", b"etc"), "ndn:/...../etc"),
        name_vector("three periods", Name(b"..."), "/..."),
        name_vector(
            "full name", Name(b"a", (1, ONE_DIGEST)), "ndn:" + Name(b"a", (1, ONE_DIGEST)).uri()
        ),
        reject("nothing", b"", "truncated"),
        reject("another element", tlv(8, b"a"), "unexpected"),
        reject("octets behind", Name(b"a").tlv() + b"\x00", "trailing"),
        reject("component cut", tlv(7, b"\x08\x02a"), "truncated"),
        reject("component TYPE 0", tlv(7, b"\x00\x00"), "invalid-type"),
        reject("component TYPE 65536", tlv(7, tlv(65536)), "invalid-type"),
        reject("digest too short", tlv(7, tlv(8, b"a"), tlv(1, b"\x00" * 31)), "bad-length"),
        reject("component LENGTH not shortest", tlv(7, b"\x08\xfd\x00\x01a"), "not-shortest"),
    ]


def uri(text, name, canonical=None):
    expect = {"hex": name.tlv().hex(), "canonical": canonical or text}
    return {"name": text, "accept": True, "expect": expect}


def bad(text, reason):
    return {"name": text, "accept": False, "reason": reason}


def uris():
    digest = ONE_DIGEST.hex()
    return [
        uri("/", Name()),
        uri("ndn:/", Name(), "/"),
        uri("/a", Name(b"a")),
        uri("ndn:/a/b", Name(b"a", b"b"), "/a/b"),
        uri("/a/b/", Name(b"a", b"b"), "/a/b"),
        uri("/A%20b%2fc", Name(b"A b/c"), "/A%20b%2Fc"),
        uri("/%41", Name(b"A"), "/A"),
        uri("/a b+c", Name(b"a b+c"), "/a%20b%2Bc"),
        uri("/é", Name("é".encode()), "/%C3%A9"),
        uri("/...", Name(b"")),
        uri("/....", Name(b".")),
        uri("/.....", Name(b"..")),
        uri("/......", Name(b"...")),
        uri("/%2E", Name(b"."), "/...."),
        uri("/.a", Name(b".a")),
        uri("/a%3Db", Name(b"a=b")),
        uri("/8=a", Name(b"a"), "/a"),
        uri("/seg=0", Name(seg(0))),
        uri("/seg=256", Name(seg(256))),
        uri("/off=65536", Name((52, bytes([0, 1, 0, 0])))),
        uri("/v=18446744073709551615", Name(version(2**64 - 1))),
        uri("/t=4294967296", Name((56, (2**32).to_bytes(8, "big")))),
        uri("/seq=9", Name((58, b"\x09"))),
        uri("/50=%05", Name(seg(5)), "/seg=5"),
        uri("/50=%00%05", Name((50, b"\x00\x05"))),
        uri("/54=...", Name((54, b""))),
        uri("/32=metadata", Name(keyword(b"metadata"))),
        uri("/32=...", Name(keyword(b""))),
        uri("/65535=x", Name((65535, b"x"))),
        uri(f"/sha256digest={digest}", Name((1, ONE_DIGEST))),
        uri(f"/sha256digest={digest.upper()}", Name((1, ONE_DIGEST)), f"/sha256digest={digest}"),
        uri(f"/params-sha256={digest}", Name((2, ONE_DIGEST))),
        bad("", "no-slash"),
        bad("a", "no-slash"),
        bad("ndn:a", "no-slash"),
        bad("/a//b", "empty-component"),
        bad("//", "empty-component"),
        bad("/.", "dot-component"),
        bad("/a/..", "dot-component"),
        bad("/32=..", "dot-component"),
        bad("/%", "bad-escape"),
        bad("/%4", "bad-escape"),
        bad("/%4g", "bad-escape"),
        bad("/%+4", "bad-escape"),
        bad("/0=a", "bad-type"),
        bad("/65536=a", "bad-type"),
        bad("/08=a", "bad-type"),
        bad("/+8=a", "bad-type"),
        bad("/-8=a", "bad-type"),
        bad("/=a", "bad-type"),
        bad("/colour=red", "bad-type"),
        bad("/seg=", "bad-value"),
        bad("/seg=-1", "bad-value"),
        bad("/seg=+1", "bad-value"),
        bad("/seg=01", "bad-value"),
        bad("/seg=1x", "bad-value"),
        bad("/seg=18446744073709551616", "bad-value"),
        bad("/sha256digest=00", "bad-value"),
        bad(f"/sha256digest={digest}00", "bad-value"),
        bad(f"/sha256digest={digest[:-1]}g", "bad-value"),
        bad("/1=short", "bad-value"),
        bad("/2=short", "bad-value"),
    ]


def paths():
    return [
        uri("/", Name()),
        uri("/lab/run 7.root", Name(b"lab", b"run 7.root")),
        uri("//lab///x/", Name(b"lab", b"x"), "/lab/x"),
        uri("/v=1/seg=2/32=metadata", Name(b"v=1", b"seg=2", b"32=metadata")),
        uri("/a%2Fb", Name(b"a/b")),
        uri("/a%20b", Name(b"a b"), "/a b"),
        uri("/100%25", Name(b"100%")),
        uri("/...", Name(b"...")),
        uri("/é", Name("é".encode())),
        bad("lab/x", "no-slash"),
        bad("", "no-slash"),
        bad("/a/../b", "dot-component"),
        bad("/./a", "dot-component"),
        bad("/%2e%2E/a", "dot-component"),
        bad("/100%", "bad-escape"),
    ]


def order():
    """The canonical order: by TYPE, then by length, then by octets; a prefix comes first."""
    ascending = [
        Name(),
        Name((1, bytes(32))),
        Name((1, bytes(31) + b"\x01")),
        Name((2, bytes(32))),
        Name(b""),
        Name(b"", b"a"),
        Name(b"a"),
        Name(b"a", b"zz"),
        Name(b"a", seg(0)),
        Name(b"b"),
        Name(b"\xff"),
        Name(b"aa"),
        Name(b"a" * 252),
        Name(b"a" * 253),
        Name(keyword(b"a")),
        Name(seg(255)),
        Name(seg(256)),
        Name((252, b"a")),
        Name((253, b"a")),
        Name((65535, b"")),
    ]
    pairs = zip(ascending, ascending[1:])
    return [
        {"name": f"pair {i}", "less": a.tlv().hex(), "greater": b.tlv().hex()}
        for i, (a, b) in enumerate(pairs)
    ]
