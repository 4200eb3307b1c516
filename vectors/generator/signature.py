"""SignatureInfo: forms of KeyLocator, replay fields, validity, and what must be refused."""

from datetime import datetime, timezone

from .tlv import Name, accept, nni, reject, tlv

KEY = Name(b"lab", b"KEY", b"\x01\x02", b"self", (54, b"\x07"))


def info(signature_type, **fields):
    """What a decoder shows."""
    shown = dict.fromkeys(
        ["key_locator", "nonce", "time_ms", "seq_num", "validity", "additional_description"]
    )
    unknown = set(fields) - set(shown)
    assert not unknown, unknown
    return {"signature_type": signature_type, **shown, **fields}


def kind(number):
    return nni(27, number)


def locator(*inner):
    return tlv(28, *inner)


def unix(text):
    moment = datetime.strptime(text, "%Y%m%dT%H%M%S").replace(tzinfo=timezone.utc)
    return int(moment.timestamp())


def validity(before, after):
    return tlv(253, tlv(254, before.encode()), tlv(255, after.encode()))


BEFORE, AFTER = "20260101T000000", "20280229T235959"
VALID = validity(BEFORE, AFTER)
SHOWN = {"not_before_s": unix(BEFORE), "not_after_s": unix(AFTER)}
DESCRIPTION = tlv(258, tlv(512, tlv(513, b"org"), tlv(514, b"CERN")))


def good():
    by_name = {"name": KEY.uri()}
    yield "digest", kind(0), info(0), {}
    yield "Null signature", kind(200), info(200), {}
    yield "number above 255", kind(1000), info(1000), {}
    yield "number in its longest form", tlv(27, bytes(7) + b"\x03"), info(3), {}
    yield "key name", kind(5) + locator(KEY.tlv()), info(5, key_locator=by_name), {}
    yield "key digest", kind(3) + locator(tlv(29, b"\x07" * 32)), info(
        3, key_locator={"digest": "07" * 32}
    ), {}
    yield "empty KeyLocator", kind(1) + locator(), info(1), {}
    yield "KeyLocator with an ignorable element only", kind(1) + locator(tlv(240)), info(1), {}
    yield "KeyLocator with an ignorable element first", kind(5) + locator(
        tlv(240, b"x"), KEY.tlv()
    ), info(5, key_locator=by_name), {}
    replay = tlv(38, b"\x01" * 8) + nni(40, 1_700_000_000_000) + nni(42, 9)
    shown = {"nonce": "01" * 8, "time_ms": 1_700_000_000_000, "seq_num": 9}
    yield "nonce, time, number", kind(4) + replay, info(4, **shown), {}
    yield "nonce of one octet", kind(0) + tlv(38, b"\x00"), info(0, nonce="00"), {}
    yield "time before nonce", kind(0) + nni(40, 5) + tlv(38, b"\x02"), info(
        0, nonce="02", time_ms=5
    ), {}
    yield "second nonce is ignored", kind(0) + tlv(38, b"\x02") + tlv(38, b"\x03"), info(
        0, nonce="02"
    ), {}
    yield "validity", kind(5) + locator(KEY.tlv()) + VALID, info(
        5, key_locator=by_name, validity=SHOWN
    ), {}
    yield "validity with an ignorable element", kind(5) + tlv(
        253, tlv(254, BEFORE.encode()), tlv(240), tlv(255, AFTER.encode()), tlv(240)
    ), info(5, validity=SHOWN), {}
    yield "description", kind(5) + VALID + DESCRIPTION, info(
        5, validity=SHOWN, additional_description=[["org", "CERN"]]
    ), {}
    yield "ignorable element before KeyLocator", kind(5) + tlv(240) + locator(KEY.tlv()), info(
        5, key_locator=by_name
    ), {}
    yield "ignorable element at the end", kind(5) + tlv(1000, b"x"), info(5), {}


def bad():
    yield "empty", b"", "missing"
    yield "no type", locator(KEY.tlv()), "missing"
    yield "type not first", nni(40, 5) + kind(0), "missing"
    yield "type twice", kind(0) + kind(0), "out-of-order"
    yield "type of three octets", tlv(27, b"\x00\x00\x01"), "bad-length"
    yield "type of no octets", tlv(27), "bad-length"
    yield "KeyLocator twice", kind(5) + locator(KEY.tlv()) + locator(KEY.tlv()), "out-of-order"
    yield "empty KeyLocator, then another", kind(5) + locator() + locator(KEY.tlv()), "out-of-order"
    yield "KeyLocator after time", kind(5) + nni(40, 5) + locator(KEY.tlv()), "out-of-order"
    yield "name and digest", kind(5) + locator(KEY.tlv(), tlv(29, b"\x00")), "out-of-order"
    yield "unknown critical element in KeyLocator", kind(5) + locator(tlv(31)), "unknown-critical"
    yield "KeyLocator cut", kind(5) + locator(b"\x07\x05"), "truncated"
    yield "bad name in KeyLocator", kind(5) + locator(tlv(7, b"\x00\x00")), "invalid-type"
    yield "unknown critical element", kind(5) + tlv(241), "unknown-critical"
    yield "unknown critical element of low TYPE", kind(5) + tlv(16), "unknown-critical"
    yield "nonce of no octets", kind(0) + tlv(38), "bad-length"
    yield "time of five octets", kind(0) + tlv(40, b"\x00" * 5), "bad-length"
    yield "validity twice", kind(5) + VALID + VALID, "out-of-order"
    yield "validity without its start", kind(5) + tlv(253, tlv(255, AFTER.encode())), "missing"
    yield "validity without its end", kind(5) + tlv(253, tlv(254, BEFORE.encode())), "missing"
    yield "validity, end first", kind(5) + tlv(
        253, tlv(255, AFTER.encode()), tlv(254, BEFORE.encode())
    ), "missing"
    yield "validity, end twice", kind(5) + tlv(
        253, VALID[4:], tlv(255, AFTER.encode())
    ), "out-of-order"
    yield "validity, unknown critical element", kind(5) + tlv(253, tlv(251)), "unknown-critical"
    for text in ("20260230T000000", "20261301T000000", "20260101T240000", "20260101T006000"):
        yield f"no such moment: {text}", kind(5) + validity(text, AFTER), "bad-value"
    for text in ("2026-01-01T0000", "20260101 000000", "20260101T00000", "20260101T00000Z", ""):
        yield f"not a moment: {text!r}", kind(5) + validity(BEFORE, text), "bad-value"


def vectors():
    accepted = [accept(name, tlv(22, value), shown, **more) for name, value, shown, more in good()]
    return accepted + [reject(name, tlv(22, value), reason) for name, value, reason in bad()]
