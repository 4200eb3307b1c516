"""TYPE-LENGTH-VALUE and names, encoded and spelled out independently of the Rust crates."""

import hashlib

CONVENTIONS = {50: "seg", 52: "off", 54: "v", 56: "t", 58: "seq"}
DIGESTS = {1: "sha256digest", 2: "params-sha256"}
UNRESERVED = set(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")


def var(number):
    """A TYPE or LENGTH in its shortest form."""
    if number < 253:
        return bytes([number])
    for first, width in ((253, 2), (254, 4), (255, 8)):
        if number < 1 << 8 * width:
            return bytes([first]) + number.to_bytes(width, "big")
    raise ValueError(number)


def tlv(kind, *values):
    value = b"".join(values)
    return var(kind) + var(len(value)) + value


def number_octets(number):
    """A NonNegativeInteger in its shortest form."""
    width = next(w for w in (1, 2, 4, 8) if number < 1 << 8 * w)
    return number.to_bytes(width, "big")


def nni(kind, number):
    return tlv(kind, number_octets(number))


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


class Name:
    """A name as a list of (TYPE, octets)."""

    def __init__(self, *components):
        self.components = [(8, c) if isinstance(c, bytes) else c for c in components]

    def __add__(self, component):
        return Name(*self.components, component)

    def value(self):
        return b"".join(tlv(kind, octets) for kind, octets in self.components)

    def tlv(self):
        return tlv(7, self.value())

    def uri(self):
        return "/" + "/".join(component_uri(*c) for c in self.components)


def convention_number(kind, octets):
    """The number of a component that follows a naming convention; None when it does not."""
    if kind not in CONVENTIONS or len(octets) not in (1, 2, 4, 8):
        return None
    number = int.from_bytes(octets, "big")
    return number if number_octets(number) == octets else None


def component_uri(kind, octets):
    if kind in DIGESTS:
        return f"{DIGESTS[kind]}={octets.hex()}"
    number = convention_number(kind, octets)
    if number is not None:
        return f"{CONVENTIONS[kind]}={number}"
    text = "".join(chr(o) if o in UNRESERVED else f"%{o:02X}" for o in octets)
    if set(text) <= {"."}:
        text += "..."
    return text if kind == 8 else f"{kind}={text}"


def seg(number):
    return (50, number_octets(number))


def version(number):
    return (54, number_octets(number))


def keyword(word):
    return (32, word)


def accept(name, octets, expect, **more):
    return {"name": name, "hex": octets.hex(), "accept": True, **more, "expect": expect}


def reject(name, octets, reason):
    return {"name": name, "hex": octets.hex(), "accept": False, "reason": reason}
