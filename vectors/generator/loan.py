"""Lent keys as texts (docs/protocol.md, 11): a certificate and a key, and whose they are.

Ed25519 is written here from RFC 8032, without care for time or secrets.
"""

import base64
import hashlib

from .tlv import number_octets as number, tlv

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def add(one, two):
    (x1, y1), (x2, y2) = one, two
    share = D * x1 * x2 * y1 * y2 % P
    x = (x1 * y2 + x2 * y1) * pow(1 + share, P - 2, P) % P
    y = (y1 * y2 + x1 * x2) * pow(1 - share, P - 2, P) % P
    return x, y


def times(scalar, point):
    result = (0, 1)
    while scalar:
        if scalar & 1:
            result = add(result, point)
        point, scalar = add(point, point), scalar >> 1
    return result


def base_point():
    y = 4 * pow(5, P - 2, P) % P
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    return (P - x if x & 1 else x), y


def packed(point):
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


class Key:
    def __init__(self, seed):
        self.seed = seed
        digest = hashlib.sha512(seed).digest()
        scalar = int.from_bytes(digest[:32], "little")
        self.scalar = scalar & ((1 << 254) - 8) | 1 << 254
        self.prefix = digest[32:]
        self.public = packed(times(self.scalar, base_point()))

    def sign(self, octets):
        def hashed(*parts):
            digest = hashlib.sha512(b"".join(parts)).digest()
            return int.from_bytes(digest, "little") % ORDER

        nonce = hashed(self.prefix, octets)
        point = packed(times(nonce, base_point()))
        challenge = hashed(point, self.public, octets)
        return point + ((nonce + challenge * self.scalar) % ORDER).to_bytes(32, "little")

    def spki(self):
        return bytes.fromhex("302a300506032b6570032100") + self.public

    def pkcs8(self):
        """As RFC 8410 has it, without the public key."""
        return bytes.fromhex("302e020100300506032b657004220420") + self.seed

    def digest(self):
        return hashlib.sha256(self.spki()).digest()


def text_of(octets):
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


def component(octets, kind=8):
    return tlv(kind, octets)


def certificate(identity, key, issuer, locator, issuer_id, version=1):
    """A certificate of `key`, signed by `issuer`; `locator` is None for its own name."""
    name = identity + component(b"KEY") + component(b"\x07" * 8)
    name += component(issuer_id) + component(number(version), 54)
    period = tlv(0xFE, b"20260101T000000"), tlv(0xFF, b"20360101T000000")
    information = tlv(0x1B, number(5)) + tlv(0x1C, tlv(7, name if locator is None else locator))
    information += tlv(0xFD, b"".join(period))
    signed = tlv(7, name) + tlv(0x14, tlv(0x18, number(2)) + tlv(0x19, number(3_600_000)))
    signed += tlv(0x15, key.spki()) + tlv(0x16, information)
    return tlv(6, signed + tlv(0x17, issuer.sign(signed)))


def loan(site, site_key, until, wire, key, word="byname-loan 1"):
    said = f"{word} {site} {site_key} {until} {text_of(wire)} {text_of(key)}"
    return f"{said} {text_of(hashlib.sha256(said.encode()).digest()[:16])}"


def vectors():
    anna, lent, other = Key(b"\x01" * 32), Key(b"\x02" * 32), Key(b"\x03" * 32)
    user = component(b"lab") + component(b"user", 32) + component(b"anna")
    lender = user + component(b"KEY") + component(b"\x01" * 8) + component(b"self")
    lender += component(number(1), 54)
    site_key = "SHA256:" + text_of(b"\x07" * 32)
    until = 1_800_000_000_000_000_000
    issued = certificate(user, lent, anna, lender, b"\x01" * 8)
    own = certificate(user, lent, lent, None, b"self")
    nobody = certificate(component(b"lab") + component(b"anna"), lent, anna, lender, b"\x01" * 8)
    good = loan("/lab", site_key, until, issued, lent.pkcs8())
    expect = {
        "site": "/lab", "site_key": site_key, "user": "anna", "until_ns": until,
        "key": "SHA256:" + text_of(lent.digest()),
    }
    forged = bytearray(own)
    forged[-1] ^= 1

    def accepted(name, text):
        return {"name": name, "accept": True, "text": text, "expect": expect}

    def refused(name, text, reason):
        return {"name": name, "accept": False, "text": text, "reason": reason}

    return [
        accepted("a key whose certificate the lender's key has signed", good),
        accepted("a key with a certificate of its own",
                 loan("/lab", site_key, until, own, lent.pkcs8())),
        accepted("a line's end behind it", good + "\n"),
        refused("something else", "byname:/lab", "not-loan"),
        refused("a later version",
                loan("/lab", site_key, until, issued, lent.pkcs8(), "byname-loan 2"), "version"),
        refused("cut", good[:-1], "altered"),
        refused("another end", good.replace(str(until), str(until + 1)), "altered"),
        refused("a key that is not the certificate's",
                loan("/lab", site_key, until, issued, other.pkcs8()), "mismatch"),
        refused("a certificate of its own that something else has signed",
                loan("/lab", site_key, until, bytes(forged), lent.pkcs8()), "mismatch"),
        refused("a user of another site",
                loan("/far", site_key, until, issued, lent.pkcs8()), "mismatch"),
        refused("nobody's key", loan("/lab", site_key, until, nobody, lent.pkcs8()), "mismatch"),
        refused("no time", loan("/lab", site_key, "soon", issued, lent.pkcs8()), "mismatch"),
    ]
