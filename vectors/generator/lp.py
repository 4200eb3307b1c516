"""NDNLPv2: every field, order, repeats, unknown fields, fragments, idle packets."""

from .data import CONTENT, NAME, NULL, data
from .interest import A, NONCE, interest
from .tlv import accept, nni, reject, tlv

INTEREST = interest(A.tlv(), NONCE)
DATA = data(NAME.tlv(), CONTENT, NULL)
FRAGMENT = tlv(80, INTEREST)


def lp(*fields):
    return tlv(100, *fields)


def sequence(number):
    return tlv(81, number.to_bytes(8, "big"))


def shown(**fields):
    """What a decoder shows."""
    default = {
        "fragment": None,
        "sequence": None,
        "frag_index": 0,
        "frag_count": 1,
        "pit_token": None,
        "nack": None,
        "incoming_face_id": None,
        "next_hop_face_id": None,
        "cache_policy": None,
        "congestion_mark": None,
        "acks": [],
        "tx_sequence": None,
        "non_discovery": False,
        "prefix_announcement": None,
        "address_token": None,
        "returned_token": None,
        "path_trace": None,
        "not_fresh": False,
    }
    unknown = set(fields) - set(default)
    assert not unknown, unknown
    return {**default, **fields}


def good(title, fields, canonical=False, **expect):
    """`fields` in front of a fragment that holds an Interest."""
    more = {"canonical": True} if canonical else {}
    return accept(title, lp(*fields, FRAGMENT), shown(fragment=INTEREST.hex(), **expect), **more)


def fields():
    yield accept("bare Interest", INTEREST, shown(fragment=INTEREST.hex()), canonical=True)
    yield accept("bare Data", DATA, shown(fragment=DATA.hex()), canonical=True)
    yield good("fragment only", [])
    for octets in (1, 4, 6, 8, 32):
        token = bytes(range(octets))
        yield good(f"token of {octets} octets", [tlv(98, token)], True, pit_token=token.hex())
    yield good("Nack without reason", [tlv(800)], True, nack=0)
    yield good("Nack with reason 0", [tlv(800, nni(801, 0))], nack=0)
    for reason in (50, 100, 150, 1000):
        yield good(f"Nack {reason}", [tlv(800, nni(801, reason))], True, nack=reason)
    yield good("Nack with an ignorable field", [tlv(800, nni(801, 50), tlv(804))], nack=50)
    for title, kind in (
        ("incoming_face_id", 812),
        ("next_hop_face_id", 816),
        ("congestion_mark", 832),
    ):
        for number in (0, 255, 256, 2**64 - 1):
            yield good(f"{title} {number}", [nni(kind, number)], True, **{title: number})
    yield good("do not cache", [tlv(820, nni(821, 1))], True, cache_policy=1)
    yield good("unknown cache policy", [tlv(820, nni(821, 9))], True, cache_policy=9)
    yield good("not for discovery", [tlv(844)], True, non_discovery=True)
    yield good("announcement", [tlv(848, DATA)], True, prefix_announcement=DATA.hex())
    ack = lambda number: tlv(836, number.to_bytes(8, "big"))
    yield good("acknowledgement", [ack(5)], True, acks=[5])
    yield good("acknowledgements may repeat", [ack(9), ack(5), ack(5)], True, acks=[9, 5, 5])
    yield good("reliability sequence", [tlv(840, bytes(7) + b"\x07")], True, tx_sequence=7)
    every = [
        sequence(2**63),
        nni(82, 1),
        nni(83, 300),
        tlv(98, b"token"),
        tlv(800, nni(801, 150)),
        nni(812, 300),
        nni(816, 1),
        tlv(820, nni(821, 1)),
        nni(832, 1),
        ack(1),
        ack(2**64 - 1),
        tlv(840, b"\xff" * 8),
        tlv(844),
        tlv(848, DATA),
    ]
    yield good(
        "every field",
        every,
        True,
        sequence=2**63,
        frag_index=1,
        frag_count=300,
        pit_token=b"token".hex(),
        nack=150,
        incoming_face_id=300,
        next_hop_face_id=1,
        cache_policy=1,
        congestion_mark=1,
        acks=[1, 2**64 - 1],
        tx_sequence=2**64 - 1,
        non_discovery=True,
        prefix_announcement=DATA.hex(),
    )


def fragments():
    for index in (0, 1, 2):
        octets = lp(sequence(10 + index), nni(82, index), nni(83, 3), tlv(80, b"part"))
        expect = shown(fragment=b"part".hex(), sequence=10 + index, frag_index=index, frag_count=3)
        yield accept(f"fragment {index} of 3", octets, expect, canonical=True)
    yield good("sequence alone", [sequence(5)], True, sequence=5)
    yield good("one fragment of one", [sequence(5), nni(82, 0), nni(83, 1)], sequence=5)
    yield good("one fragment of one, without sequence", [nni(82, 0), nni(83, 1)])
    yield good(
        "first of three, index left out", [sequence(5), nni(83, 3)], sequence=5, frag_count=3
    )
    yield accept("idle, nothing inside", lp(), shown())
    yield accept("idle, empty fragment", lp(tlv(80)), shown())
    ack = tlv(836, bytes(7) + b"\x05")
    yield accept("idle with acknowledgement", lp(ack), shown(acks=[5]), canonical=True)
    yield accept("idle Nack", lp(tlv(800)), shown(nack=0), canonical=True)


def tokens():
    """Ours: an address shows that it receives by returning what was sent to it."""
    token = bytes(range(8))
    number = int.from_bytes(token, "big")
    yield accept("address token", lp(tlv(928, token)), shown(address_token=number))
    yield accept("returned token", lp(tlv(932, token)), shown(returned_token=number))
    yield good("tokens beside a packet", [tlv(928, token), tlv(932, token)],
               address_token=number, returned_token=number)
    for kind in (928, 932):
        for octets in (0, 7, 9):
            wire = lp(tlv(kind, bytes(octets)))
            yield reject(f"token {kind} of {octets} octets", wire, "bad-length")


def traces():
    """Ours: a wish, and what is told. Its hops are looked into only where they are shown."""
    yield good("wish for a trace", [tlv(936)], True, path_trace="")
    hop = tlv(129, tlv(131, b"right"), nni(133, 2), tlv(135, b"tcp4://h:6363"), nni(137, 300))
    yield good("trace of a hop", [tlv(936, hop)], True, path_trace=hop.hex())
    yield good("trace with a mark", [nni(832, 1), tlv(936, hop)], True, congestion_mark=1,
               path_trace=hop.hex())


def freshness():
    """Ours: whoever sends the Data had it for longer than it is fresh."""
    yield good("not fresh", [tlv(940)], True, not_fresh=True)
    yield good("not fresh, not to be kept", [tlv(820, nni(821, 1)), tlv(940)], True,
               cache_policy=1, not_fresh=True)
    yield reject("not fresh, with a value", lp(tlv(940, b"\x00"), FRAGMENT), "bad-length")
    yield reject("not fresh twice", lp(tlv(940), tlv(940), FRAGMENT), "out-of-order")


def unknown():
    for kind in (804, 808, 852, 956):
        yield good(f"ignorable field {kind}", [tlv(kind, b"x")])
    yield good(
        "ignorable field between others",
        [tlv(98, b"t"), tlv(804), tlv(844)],
        pit_token="74",
        non_discovery=True,
    )
    for kind in (1, 79, 84, 97, 99, 799, 802, 805, 806, 807, 957, 960, 964, 65536, 2**32 - 1):
        yield reject(f"unknown field {kind}", lp(tlv(kind, b"x")), "unknown-critical")
    yield reject("a name as a field", lp(A.tlv()), "unknown-critical")


def bad():
    yield "nothing", b"", "truncated"
    yield "another element", A.tlv(), "unexpected"
    yield "octets behind", lp(FRAGMENT) + b"\x00", "trailing"
    yield "octets behind a bare packet", INTEREST + b"\x00", "trailing"
    yield "bare packet cut", INTEREST[:-1], "truncated"
    yield "length 2^60", b"\x64\xff" + (2**60).to_bytes(8, "big"), "truncated"
    yield "bare packet of length 2^60", b"\x06\xff" + (2**60).to_bytes(8, "big"), "truncated"
    yield "field cut", lp(b"\x62\x05\x01"), "truncated"
    yield "TYPE not shortest", lp(b"\xfd\x00\x50\x00"), "not-shortest"
    yield "TYPE 0", lp(b"\x00\x00"), "invalid-type"
    yield "TYPE 2^32", lp(tlv(2**32)), "invalid-type"
    for octets in (0, 33, 255):
        yield f"token of {octets} octets", lp(tlv(98, bytes(octets)), FRAGMENT), "bad-length"
    for title, kind in (("sequence", 81), ("acknowledgement", 836), ("reliability sequence", 840)):
        for octets in (0, 1, 4, 7, 9):
            yield f"{title} of {octets} octets", lp(
                tlv(kind, bytes(octets)), FRAGMENT
            ), "bad-length"
    for title, kind in (
        ("fragment index", 82),
        ("fragment count", 83),
        ("face", 812),
        ("next hop", 816),
        ("mark", 832),
    ):
        for octets in (0, 3, 9):
            yield f"{title} of {octets} octets", lp(
                tlv(kind, bytes(octets)), FRAGMENT
            ), "bad-length"
    yield "flag with a value", lp(tlv(844, b"\x00"), FRAGMENT), "bad-length"
    yield "announcement that is no Data", lp(tlv(848, INTEREST), FRAGMENT), "unexpected"
    yield "announcement with octets behind", lp(tlv(848, DATA, b"\x00"), FRAGMENT), "trailing"
    yield "empty announcement", lp(tlv(848), FRAGMENT), "truncated"
    yield "cache policy without type", lp(tlv(820), FRAGMENT), "missing"
    yield "cache policy, unknown field", lp(
        tlv(820, nni(821, 1), tlv(822)), FRAGMENT
    ), "unknown-critical"
    yield "reason twice", lp(tlv(800, nni(801, 50), nni(801, 50)), FRAGMENT), "out-of-order"
    yield "Nack, unknown field", lp(tlv(800, tlv(802)), FRAGMENT), "unknown-critical"
    yield "reason of three octets", lp(tlv(800, tlv(801, bytes(3))), FRAGMENT), "bad-length"
    yield "count 0", lp(nni(82, 0), nni(83, 0), FRAGMENT), "bad-value"
    yield "index equals count", lp(sequence(1), nni(82, 3), nni(83, 3), FRAGMENT), "bad-value"
    yield "index without count", lp(sequence(1), nni(82, 1), FRAGMENT), "bad-value"
    yield "fragments without sequence", lp(nni(82, 0), nni(83, 2), FRAGMENT), "missing"


def disorder():
    ordered = [
        ("sequence", sequence(1)),
        ("index", nni(82, 0)),
        ("count", nni(83, 1)),
        ("token", tlv(98, b"t")),
        ("Nack", tlv(800)),
        ("face", nni(812, 1)),
        ("next hop", nni(816, 1)),
        ("cache policy", tlv(820, nni(821, 1))),
        ("mark", nni(832, 1)),
        ("acknowledgement", tlv(836, bytes(8))),
        ("reliability sequence", tlv(840, bytes(8))),
        ("not for discovery", tlv(844)),
        ("announcement", tlv(848, DATA)),
        ("fragment", FRAGMENT),
    ]
    for title, field in ordered:
        if title != "acknowledgement":
            yield reject(f"{title} twice", lp(field, field), "out-of-order")
    for (first, low), (second, high) in zip(ordered, ordered[1:]):
        yield reject(f"{second} before {first}", lp(high, low), "out-of-order")
    yield reject(
        "acknowledgements with something between",
        lp(tlv(836, bytes(8)), tlv(844), tlv(836, bytes(8))),
        "out-of-order",
    )
    yield reject("ignorable field behind the fragment", lp(FRAGMENT, tlv(804)), "out-of-order")
    yield reject("ignorable field twice", lp(tlv(804), tlv(804), FRAGMENT), "out-of-order")


def vectors():
    accepted = [*fields(), *fragments(), *tokens(), *traces(), *freshness(), *unknown()]
    return accepted + [reject(*case) for case in bad()] + [*disorder()]
