"""Which Data answers which Interest, and what a forwarder changes in an Interest."""

from .data import CONTENT, NULL, data
from .interest import A, FRESH, HOPS, NONCE, PREFIX, interest
from .tlv import Name, nni, seg, sha256, tlv


def match(title, asked, answer, matches):
    return {"name": title, "interest": asked.hex(), "data": answer.hex(), "matches": matches}


def matching():
    ab = Name(b"a", b"b")
    answer = data(ab.tlv(), CONTENT, NULL)
    digest = (1, sha256(answer))
    ask = lambda name, *flags: interest(name.tlv(), *flags)
    return [
        match("same name", ask(ab), answer, True),
        match("same name, prefix allowed", ask(ab, PREFIX), answer, True),
        match("freshness is not matched", ask(ab, FRESH), answer, True),
        match("prefix, allowed", ask(Name(b"a"), PREFIX), answer, True),
        match("prefix, not allowed", ask(Name(b"a")), answer, False),
        match("half a component is no prefix", ask(Name(b"a", b""), PREFIX), answer, False),
        match("longer name", ask(ab + b"c", PREFIX), answer, False),
        match("another name", ask(Name(b"a", b"c"), PREFIX), answer, False),
        match("another TYPE", ask(Name(b"a", (32, b"b"))), answer, False),
        match("full name", ask(ab + digest), answer, True),
        match("full name, prefix allowed", ask(ab + digest, PREFIX), answer, True),
        match("wrong digest", ask(ab + (1, bytes(32))), answer, False),
        match("digest as a generic component", ask(ab + digest[1]), answer, False),
        match("digest in the middle", ask(ab + digest + b"c"), answer, False),
        match("digest behind a prefix only", ask(Name(b"a") + digest, PREFIX), answer, False),
    ]


def forward(title, elements, hop_limit, forwarded):
    return {
        "name": title,
        "hex": interest(*elements).hex(),
        "nonce": "0a0b0c0d",
        "hop_limit": hop_limit,
        "forwarded": interest(*forwarded).hex(),
    }


def forwarded():
    name, new, life = A.tlv(), tlv(10, b"\x0a\x0b\x0c\x0d"), nni(12, 1000)
    hint = tlv(30, Name(b"s").tlv())
    ignorable = tlv(240, b"x")
    fewer = tlv(34, b"\x08")
    long_name = Name(b"x" * 245, seg(1)).tlv()
    tail = tlv(36, b"p")
    command = Name(b"A", (2, sha256(tail))).tlv()
    odd = Name(b"A", (2, sha256(tail, HOPS))).tlv()
    return [
        forward("nothing to change", [name, NONCE], None, [name, NONCE]),
        forward("nonce is added", [name], None, [name, new]),
        forward(
            "nonce is added in its place",
            [name, PREFIX, FRESH, hint, life],
            None,
            [name, PREFIX, FRESH, hint, new, life],
        ),
        forward(
            "nonce before an unknown element",
            [name, PREFIX, ignorable, life],
            None,
            [name, PREFIX, new, ignorable, life],
        ),
        forward("nonce of the consumer stays", [name, NONCE, HOPS], 8, [name, NONCE, fewer]),
        forward("nonce and hops", [name, HOPS], 8, [name, new, fewer]),
        forward("no hop limit, none added", [name, NONCE], 8, [name, NONCE]),
        forward(
            "second hop limit stays as it is",
            [name, NONCE, HOPS, HOPS],
            8,
            [name, NONCE, fewer, HOPS],
        ),
        forward("length grows over 252", [long_name], None, [long_name, new]),
        forward(
            "parameters stay as they are", [command, HOPS, tail], 8, [command, new, fewer, tail]
        ),
        forward(
            "hop limit behind the parameters stays", [odd, tail, HOPS], 8, [odd, new, tail, HOPS]
        ),
    ]
