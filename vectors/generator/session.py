"""Keys of a session (docs/protocol.md, 11.7): agreed upon by two, and packets under them."""

import hashlib
import hmac

from .site import DONE, EPOCH, PLACE
from .tlv import Name, nni, number_octets, sha256, tlv

P = 2**255 - 19
SITE = Name(b"cern", b"cms")
KEY_SHARE, EXPIRES, COMMAND, MODE = 0xF6C0, 0xF65E, 0xF608, 0xF504
BASE_POINT = (9).to_bytes(32, "little")


def x25519(private, point):
    """RFC 7748, section 5."""
    scalar = bytearray(private)
    scalar[0] &= 248
    scalar[31] = scalar[31] & 127 | 64
    scalar = int.from_bytes(scalar, "little")
    x1 = int.from_bytes(point, "little") % 2**255
    x2, z2, x3, z3, swap = 1, 0, x1, 1, 0
    for bit in reversed(range(255)):
        now = scalar >> bit & 1
        if swap != now:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swap = now
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        aa, bb, da, cb = a * a, b * b, d * a, c * b
        e = aa - bb
        x3, z3 = (da + cb) ** 2 % P, x1 * (da - cb) ** 2 % P
        x2, z2 = aa * bb % P, e * (aa + 121665 * e) % P
    if swap:
        x2, z2 = x3, z3
    return (x2 * pow(z2, P - 2, P) % P).to_bytes(32, "little")


def code(key, *parts):
    return hmac.new(key, b"".join(parts), hashlib.sha256).digest()


def derive(secret, salt, label):
    """HKDF (RFC 5869) for 32 octets."""
    return code(code(salt, secret), label, b"\x01")


class Agreement:
    """What both ends know in the end."""

    def __init__(self, user, head, content_of):
        self.user, self.head = user, head
        self.user_share, self.head_share = x25519(user, BASE_POINT), x25519(head, BASE_POINT)
        # The digest of a signed Interest, which is not made here.
        self.name = SITE + (32, b"catalog") + b"agree" + (2, bytes(range(32)))
        self.content = content_of(self.head_share)
        secret = x25519(user, self.head_share)
        assert secret == x25519(head, self.user_share)
        salt = sha256(self.name.value(), self.content)
        self.commands = derive(secret, salt, b"byname session commands")
        self.answers = derive(secret, salt, b"byname session answers")
        key_id = derive(secret, salt, b"byname session key id")[:8]
        self.locator = SITE + (32, b"session") + (58, number_octets(77)) + key_id

    def info(self, kind, *more):
        return tlv(kind, nni(0x1B, 4), tlv(0x1C, self.locator.tlv()), *more)

    def command(self, key, number=258, cut=32):
        """`mkdir a` under a key."""
        parameters = tlv(0x24, tlv(COMMAND, tlv(PLACE, nni(0xF60C, 1), tlv(8, b"a")),
                                   tlv(MODE, b"\x01\xed")))
        more = [] if number is None else [nni(0x2A, number)]
        parameters += self.info(0x2C, *more)
        name = SITE + (32, b"catalog") + b"mkdir"
        parameters += tlv(0x2E, code(key, name.value(), parameters)[:cut])
        name = name + (2, sha256(parameters))
        return tlv(5, name.tlv(), tlv(0x12), nni(0x0C, 4000), parameters)

    def answer(self, key, cut=32):
        """Done, to nobody in particular."""
        name = SITE + (32, b"catalog") + b"mkdir" + (2, bytes(32))
        signed = (name.tlv() + tlv(0x14, nni(0x19, 10_000)) + tlv(0x15, nni(EPOCH, 5) + tlv(DONE))
                  + self.info(0x16))
        return tlv(6, signed, tlv(0x17, code(key, signed)[:cut]))


def content_of(share):
    return nni(EPOCH, 5) + tlv(DONE, tlv(KEY_SHARE, share), nni(EXPIRES, 1_800_000_000_000_000_000))


def vectors():
    """One agreement, and packets that count or do not."""
    made = Agreement(bytes(range(1, 33)), bytes(range(33, 65)), content_of)
    other = Agreement(bytes(range(1, 33)), bytes(range(65, 97)), content_of)
    other.locator = made.locator
    agreement = {
        "user": made.user.hex(), "head": made.head.hex(),
        "user_share": made.user_share.hex(), "head_share": made.head_share.hex(),
        "session": 77, "name": made.name.value().hex(), "content": made.content.hex(),
        "locator": made.locator.value().hex(),
    }
    packets = [
        ("command: under the key of commands", made.command(made.commands), True),
        ("command: under the key of answers", made.command(made.answers), False),
        ("command: under another key", made.command(other.commands), False),
        ("command: with half of the code", made.command(made.commands, cut=16), False),
        ("command: without a number", made.command(made.commands, number=None), False),
        ("answer: under the key of answers", made.answer(made.answers), True),
        ("answer: under the key of commands", made.answer(made.commands), False),
        ("answer: under another key", made.answer(other.answers), False),
        ("answer: with half of the code", made.answer(made.answers, cut=16), False),
    ]
    yield {"name": "agreement: of a user and a head", "accept": True, "expect": agreement}
    for label, wire, accept in packets:
        yield {"name": label, "accept": accept, "hex": wire.hex()}
