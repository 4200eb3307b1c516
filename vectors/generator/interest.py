"""Interests: every element, their order, what is ignored and what refuses the packet."""

from .signature import KEY, info
from .tlv import Name, accept, keyword, nni, reject, seg, sha256, tlv, version

A = Name(b"A")
PREFIX, FRESH = tlv(33), tlv(18)
NONCE = tlv(10, b"\x01\x02\x03\x04")
HOPS = tlv(34, b"\x09")
HINT = tlv(30, Name(b"site", b"1").tlv(), Name(b"site", b"2").tlv())
DIGEST_INFO = tlv(44, nni(27, 0))


def interest(*elements):
    return tlv(5, *elements)


def shown(name, **fields):
    """What a decoder shows."""
    default = {
        "name": name.uri(),
        "can_be_prefix": False,
        "must_be_fresh": False,
        "forwarding_hint": None,
        "nonce": None,
        "lifetime_ms": None,
        "hop_limit": None,
        "application_parameters": None,
        "signature_info": None,
        "signature_value": None,
        "signed_portion": None,
    }
    unknown = set(fields) - set(default)
    assert not unknown, unknown
    return {**default, **fields}


def plain():
    name = Name(b"lab", keyword(b"metadata"), version(1), seg(300))
    yield accept("name only", interest(A.tlv()), shown(A), canonical=True)
    yield accept("typed components", interest(name.tlv()), shown(name), canonical=True)
    full = interest(name.tlv(), PREFIX, FRESH, HINT, NONCE, nni(12, 1500), HOPS)
    fields = {
        "can_be_prefix": True,
        "must_be_fresh": True,
        "forwarding_hint": ["/site/1", "/site/2"],
        "nonce": "01020304",
        "lifetime_ms": 1500,
        "hop_limit": 9,
    }
    yield accept("every element", full, shown(name, **fields), canonical=True)
    for number in (0, 255, 256, 65536, 2**32, 2**64 - 1):
        yield accept(
            f"lifetime {number}",
            interest(A.tlv(), nni(12, number)),
            shown(A, lifetime_ms=number),
            canonical=True,
        )
    yield accept(
        "lifetime in more octets than needed",
        interest(A.tlv(), tlv(12, b"\x00\x00\x0f\xa0")),
        shown(A, lifetime_ms=4000),
    )
    for hops in (0, 255):
        octets = interest(A.tlv(), tlv(34, bytes([hops])))
        yield accept(f"hop limit {hops}", octets, shown(A, hop_limit=hops), canonical=True)
    long_name = Name(b"x" * 300)
    yield accept(
        "value above 252 octets", interest(long_name.tlv()), shown(long_name), canonical=True
    )
    digest = Name(b"A", (1, bytes(32)))
    yield accept("implicit digest", interest(digest.tlv()), shown(digest), canonical=True)


def lenient():
    ignorable = tlv(240, b"x")
    octets = interest(A.tlv(), ignorable, PREFIX, tlv(1000), NONCE, ignorable, HOPS, ignorable)
    fields = {"can_be_prefix": True, "nonce": "01020304", "hop_limit": 9}
    yield accept(
        "unknown non-critical elements anywhere behind the name", octets, shown(A, **fields)
    )
    yield accept(
        "second hop limit is ignored",
        interest(A.tlv(), HOPS, tlv(34, b"\x01")),
        shown(A, hop_limit=9),
    )
    yield accept("empty forwarding hint is none", interest(A.tlv(), tlv(30)), shown(A))
    yield accept(
        "forwarding hint with an ignorable element",
        interest(A.tlv(), tlv(30, tlv(240), Name(b"s").tlv())),
        shown(A, forwarding_hint=["/s"]),
    )
    legacy = tlv(31, nni(30, 10), Name(b"site").tlv())
    yield accept(
        "forwarding hint in the old form with preferences",
        interest(A.tlv(), tlv(30, legacy)),
        shown(A, forwarding_hint=["/site"]),
    )


def with_parameters(name, tail):
    """The name with the digest of `tail` in place of None."""
    digest = (2, sha256(tail))
    return Name(*[digest if c is None else c for c in name])


def parameterised():
    for title, octets in (("", b"hello"), (", empty", b"")):
        tail = tlv(36, octets)
        name = with_parameters([b"A", None], tail)
        fields = {"nonce": "01020304", "application_parameters": octets.hex()}
        yield accept(
            f"parameters{title}",
            interest(name.tlv(), NONCE, tail),
            shown(name, **fields),
            canonical=True,
        )
    tail = tlv(36, b"p")
    name = with_parameters([b"A", None, b"B"], tail)
    yield accept(
        "parameters digest in the middle",
        interest(name.tlv(), tail),
        shown(name, application_parameters="70"),
    )
    tail = tlv(36, b"p") + tlv(240, b"more")
    name = with_parameters([b"A", None], tail)
    yield accept(
        "unknown elements behind the parameters belong to them",
        interest(name.tlv(), tail),
        shown(name, application_parameters="70"),
    )
    tail = tlv(36, b"p") + HOPS
    name = with_parameters([b"A", None], tail)
    yield accept(
        "hop limit behind the parameters is ignored",
        interest(name.tlv(), tail),
        shown(name, application_parameters="70"),
    )
    tail = tlv(36, b"p") + tlv(36, b"q")
    name = with_parameters([b"A", None], tail)
    yield accept(
        "second parameters are ignored, yet in the digest",
        interest(name.tlv(), tail),
        shown(name, application_parameters="70"),
    )


def signed():
    command = [b"localhost", b"nfd", b"rib", b"register", b"x"]
    signature_info = tlv(44, nni(27, 0), tlv(38, b"\x07" * 8), nni(40, 1_700_000_000_000))
    to_sign = tlv(36) + signature_info
    covered = Name(*command).value() + to_sign
    value = sha256(covered)
    tail = to_sign + tlv(46, value)
    name = with_parameters([*command, None], tail)
    fields = {
        "must_be_fresh": True,
        "nonce": "01020304",
        "lifetime_ms": 1000,
        "application_parameters": "",
        "signature_info": info(0, nonce="07" * 8, time_ms=1_700_000_000_000),
        "signature_value": value.hex(),
        "signed_portion": covered.hex(),
    }
    octets = interest(name.tlv(), FRESH, NONCE, nni(12, 1000), tail)
    yield accept("signed command", octets, shown(name, **fields), canonical=True)

    to_sign = tlv(36, b"p") + tlv(240, b"x") + tlv(44, nni(27, 5), tlv(28, KEY.tlv())) + tlv(242)
    tail = to_sign + tlv(46, b"\x55" * 64) + tlv(244, b"y")
    name = with_parameters([b"A", None], tail)
    fields = {
        "application_parameters": "70",
        "signature_info": info(5, key_locator={"name": KEY.uri()}),
        "signature_value": "55" * 64,
        "signed_portion": (A.value() + to_sign).hex(),
    }
    yield accept(
        "signed, with unknown elements between", interest(name.tlv(), tail), shown(name, **fields)
    )


def bad_signatures():
    value = tlv(46, bytes(32))
    cases = [
        ("signature without its value", [b"A", None], tlv(36) + DIGEST_INFO),
        ("signature value without its information", [b"A", None], tlv(36) + value),
        ("signature value first", [b"A", None], tlv(36) + value + DIGEST_INFO),
        ("parameters behind the signature", [b"A", None], DIGEST_INFO + value + tlv(36)),
    ]
    for title, name, tail in cases:
        yield reject(title, interest(with_parameters(name, tail).tlv(), tail), "missing")
    tail = tlv(36) + DIGEST_INFO + value
    name = with_parameters([b"A", None, b"B"], tail)
    yield reject("signed, digest not last", interest(name.tlv(), tail), "bad-value")
    yield reject("signed without parameters", interest(A.tlv(), DIGEST_INFO, value), "missing")
    tail = tlv(36) + tlv(44, nni(27, 0), tlv(241)) + value
    name = with_parameters([b"A", None], tail)
    yield reject(
        "unknown critical element in signature", interest(name.tlv(), tail), "unknown-critical"
    )


def bad_parameters():
    tail = tlv(36, b"p")
    digest = (2, sha256(tail))
    wrong = (2, bytes(32))
    yield reject("parameters without digest", interest(A.tlv(), tail), "missing")
    yield reject("digest without parameters", interest((A + digest).tlv()), "missing")
    yield reject("two digests", interest((A + digest + digest).tlv(), tail), "bad-value")
    yield reject("wrong digest", interest((A + wrong).tlv(), tail), "parameters-digest")
    yield reject(
        "digest of the value instead of the element",
        interest((A + (2, sha256(b"p"))).tlv(), tail),
        "parameters-digest",
    )
    yield reject(
        "digest that leaves out what follows the parameters",
        interest((A + digest).tlv(), tail, tlv(240)),
        "parameters-digest",
    )


def bad():
    yield reject("nothing", b"", "truncated")
    yield reject("another packet", tlv(6, A.tlv()), "unexpected")
    yield reject("octets behind", interest(A.tlv()) + b"\x00", "trailing")
    yield reject("length too long", b"\x05\x06" + A.tlv(), "truncated")
    yield reject("length 2^60", b"\x05\xff" + (2**60).to_bytes(8, "big"), "truncated")
    yield reject("length not shortest", b"\x05\xfd\x00\x05" + A.tlv(), "not-shortest")
    yield reject("empty", interest(), "missing")
    yield reject("no name", interest(NONCE), "missing")
    yield reject("empty name", interest(Name().tlv()), "bad-length")
    yield reject("something before the name", interest(tlv(240), A.tlv()), "missing")
    yield reject("name twice", interest(A.tlv(), A.tlv()), "out-of-order")
    yield reject("bad component", interest(tlv(7, tlv(1, b"\x00"))), "bad-length")
    yield reject("unknown critical element", interest(A.tlv(), tlv(241)), "unknown-critical")
    yield reject(
        "unknown critical element of low TYPE", interest(A.tlv(), tlv(16)), "unknown-critical"
    )
    yield reject("a Data's element", interest(A.tlv(), tlv(21)), "unknown-critical")
    yield reject("TYPE 2^32", interest(A.tlv(), tlv(2**32)), "invalid-type")
    yield reject("element cut", interest(A.tlv(), b"\x0a\x04\x01"), "truncated")
    for title, first, second in (
        ("CanBePrefix twice", PREFIX, PREFIX),
        ("MustBeFresh twice", FRESH, FRESH),
        ("nonce twice", NONCE, NONCE),
        ("lifetime twice", nni(12, 1), nni(12, 1)),
        ("forwarding hint twice", HINT, HINT),
        ("MustBeFresh before CanBePrefix", FRESH, PREFIX),
        ("forwarding hint before MustBeFresh", HINT, FRESH),
        ("nonce before forwarding hint", NONCE, HINT),
        ("lifetime before nonce", nni(12, 1), NONCE),
        ("hop limit before lifetime", HOPS, nni(12, 1)),
    ):
        yield reject(title, interest(A.tlv(), first, second), "out-of-order")
    for octets in (0, 3, 5, 8):
        yield reject(
            f"nonce of {octets} octets", interest(A.tlv(), tlv(10, bytes(octets))), "bad-length"
        )
    for octets in (0, 3, 5, 9):
        element = tlv(12, bytes(octets))
        yield reject(f"lifetime of {octets} octets", interest(A.tlv(), element), "bad-length")
    for octets in (0, 2):
        element = tlv(34, bytes(octets))
        yield reject(f"hop limit of {octets} octets", interest(A.tlv(), element), "bad-length")
    yield reject("CanBePrefix with a value", interest(A.tlv(), tlv(33, b"\x01")), "bad-length")
    yield reject("MustBeFresh with a value", interest(A.tlv(), tlv(18, b"\x01")), "bad-length")
    yield reject(
        "hint with an unknown critical element",
        interest(A.tlv(), tlv(30, tlv(241))),
        "unknown-critical",
    )
    yield reject(
        "old hint without a name", interest(A.tlv(), tlv(30, tlv(31, nni(30, 1)))), "missing"
    )
    yield reject(
        "bad name in hint", interest(A.tlv(), tlv(30, tlv(7, b"\x00\x00"))), "invalid-type"
    )


def vectors():
    accepted = [*plain(), *lenient(), *parameterised(), *signed()]
    return accepted + [*bad(), *bad_parameters(), *bad_signatures()]
