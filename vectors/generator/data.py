"""Data packets: order, signature elements, MetaInfo, and what the signature covers."""

from .signature import KEY, SHOWN, VALID, info
from .tlv import Name, accept, nni, reject, seg, sha256, tlv, version

NAME = Name(b"lab", b"f", version(3), seg(0))
NULL_INFO, NO_VALUE = tlv(22, nni(27, 200)), tlv(23)
NULL = NULL_INFO + NO_VALUE
CONTENT = tlv(21, b"hello")


def data(*elements):
    return tlv(6, *elements)


def shown(octets, signed, name=NAME, **fields):
    """What a decoder shows."""
    default = {
        "name": name.uri(),
        "content_type": 0,
        "freshness_ms": 0,
        "final_block_id": None,
        "content": "",
        "signature_info": info(200),
        "signature_value": "",
        "signed_portion": signed.hex(),
        "implicit_digest": sha256(octets).hex(),
    }
    unknown = set(fields) - set(default)
    assert not unknown, unknown
    return {**default, **fields}


def good(title, elements, value=NO_VALUE, behind=b"", canonical=False, **fields):
    """`elements` are what the signature covers, `behind` follows the signature value."""
    signed = b"".join(elements)
    octets = data(signed, value, behind)
    more = {"canonical": True} if canonical else {}
    return accept(title, octets, shown(octets, signed, **fields), **more)


def accepted():
    name = NAME.tlv()
    meta = tlv(20, nni(24, 3), nni(25, 1000), tlv(26, tlv(*seg(7))))
    all_meta = {"content_type": 3, "freshness_ms": 1000, "final_block_id": "seg=7"}
    yield good("no content element", [name, NULL_INFO])
    yield good("empty content", [name, tlv(21), NULL_INFO], canonical=True)
    yield good("content", [name, CONTENT, NULL_INFO], content=b"hello".hex(), canonical=True)
    yield good("empty name", [Name().tlv(), tlv(21), NULL_INFO], name=Name(), canonical=True)
    yield good("empty MetaInfo", [name, tlv(20), NULL_INFO])
    yield good("every MetaInfo", [name, meta, tlv(21), NULL_INFO], canonical=True, **all_meta)
    for octets in (252, 253, 300):
        content = bytes(i % 251 for i in range(octets))
        elements = [name, tlv(21, content), NULL_INFO]
        yield good(f"content of {octets} octets", elements, content=content.hex(), canonical=True)
    for number in (1, 255, 256, 65536, 2**32, 2**64 - 1):
        elements = [name, tlv(20, nni(25, number)), tlv(21), NULL_INFO]
        yield good(f"freshness {number}", elements, freshness_ms=number, canonical=True)
    last = tlv(20, tlv(26, tlv(8, b"end")))
    yield good(
        "last component is generic",
        [name, last, tlv(21), NULL_INFO],
        final_block_id="end",
        canonical=True,
    )
    digest_info = tlv(22, nni(27, 0))
    value = sha256(name, CONTENT, digest_info)
    yield good(
        "digest",
        [name, CONTENT, digest_info],
        tlv(23, value),
        content=b"hello".hex(),
        signature_info=info(0),
        signature_value=value.hex(),
        canonical=True,
    )
    key = tlv(22, nni(27, 5), tlv(28, KEY.tlv()), nni(40, 1_700_000_000_000))
    yield good(
        "key name and signature time",
        [name, tlv(21), key],
        tlv(23, b"\x55" * 64),
        signature_info=info(5, key_locator={"name": KEY.uri()}, time_ms=1_700_000_000_000),
        signature_value="55" * 64,
        canonical=True,
    )
    yield certificate()


def certificate():
    elements = [
        KEY.tlv(),
        tlv(20, nni(24, 2), nni(25, 3_600_000)),
        tlv(21, b"not really a key"),
        tlv(22, nni(27, 5), tlv(28, KEY.tlv()), VALID),
    ]
    return good(
        "certificate",
        elements,
        tlv(23, b"\x55" * 64),
        name=KEY,
        content_type=2,
        freshness_ms=3_600_000,
        content=b"not really a key".hex(),
        signature_info=info(5, key_locator={"name": KEY.uri()}, validity=SHOWN),
        signature_value="55" * 64,
        canonical=True,
    )


def lenient():
    name = NAME.tlv()
    ignorable = tlv(240, b"x")
    yield good("unknown element behind the name is signed", [name, ignorable, NULL_INFO])
    yield good(
        "unknown element behind the signature information is signed", [name, NULL_INFO, ignorable]
    )
    yield good(
        "cross schema behind the signature is not signed", [name, NULL_INFO], behind=tlv(600, b"x")
    )
    yield good(
        "unknown element in MetaInfo",
        [name, tlv(20, ignorable, nni(25, 5)), NULL_INFO],
        freshness_ms=5,
    )
    yield good(
        "freshness in its longest form",
        [name, tlv(20, tlv(25, bytes(7) + b"\x05")), NULL_INFO],
        freshness_ms=5,
    )
    yield good("empty KeyLocator", [name, tlv(22, nni(27, 1), tlv(28))], signature_info=info(1))


def rejected():
    name = NAME.tlv()
    yield "nothing", b"", "truncated"
    yield "another packet", tlv(5, name), "unexpected"
    yield "octets behind", data(name, NULL) + b"\x00", "trailing"
    yield "length too long", data(name, NULL)[:-1], "truncated"
    yield "length 2^60", b"\x06\xff" + (2**60).to_bytes(8, "big"), "truncated"
    yield "element cut", data(name, NULL_INFO, b"\x17\x05"), "truncated"
    yield "empty", data(), "missing"
    yield "no name", data(NULL), "missing"
    yield "something before the name", data(tlv(240), name, NULL), "missing"
    yield "MetaInfo before the name", data(tlv(20), name, NULL), "missing"
    yield "no signature information", data(name, NO_VALUE), "missing"
    yield "no signature value", data(name, NULL_INFO), "missing"
    yield "no signature at all", data(name, CONTENT), "missing"
    yield "value before information", data(name, NO_VALUE, NULL_INFO), "out-of-order"
    yield "content before MetaInfo", data(name, CONTENT, tlv(20), NULL), "out-of-order"
    yield "content behind the signature", data(name, NULL, CONTENT), "out-of-order"
    yield "name twice", data(name, name, NULL), "out-of-order"
    yield "MetaInfo twice", data(name, tlv(20), tlv(20), NULL), "out-of-order"
    yield "content twice", data(name, CONTENT, CONTENT, NULL), "out-of-order"
    yield "signature information twice", data(name, NULL_INFO, NULL), "out-of-order"
    yield "signature value twice", data(name, NULL, NO_VALUE), "out-of-order"
    yield "unknown critical element", data(name, tlv(241), NULL), "unknown-critical"
    yield "unknown critical element behind", data(name, NULL, tlv(601)), "unknown-critical"
    yield "unknown critical element of low TYPE", data(name, tlv(16), NULL), "unknown-critical"
    yield "TYPE 0", data(name, b"\x00\x00", NULL), "invalid-type"
    yield "bad component", data(tlv(7, tlv(2, b"\x00")), NULL), "bad-length"
    yield "empty signature information", data(name, tlv(22), NO_VALUE), "missing"
    for title, value, reason in (
        ("content type twice", nni(24, 1) + nni(24, 1), "out-of-order"),
        ("freshness before content type", nni(25, 1) + nni(24, 1), "out-of-order"),
        ("last component before freshness", tlv(26, tlv(8)) + nni(25, 1), "out-of-order"),
        ("content type of three octets", tlv(24, b"\x00\x00\x01"), "bad-length"),
        ("freshness of no octets", tlv(25), "bad-length"),
        ("unknown critical element", tlv(27, b"\x00"), "unknown-critical"),
        ("last component absent", tlv(26), "truncated"),
        ("last component cut", tlv(26, b"\x08\x05"), "truncated"),
        ("two last components", tlv(26, tlv(8, b"a"), tlv(8, b"b")), "trailing"),
        ("last component of TYPE 65536", tlv(26, tlv(65536)), "invalid-type"),
        ("last component is a short digest", tlv(26, tlv(1, b"\x00")), "bad-length"),
    ):
        yield f"MetaInfo: {title}", data(name, tlv(20, value), NULL), reason


def vectors():
    return [*accepted(), *lenient()] + [reject(*case) for case in rejected()]
