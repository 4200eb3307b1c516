"""Just enough of the NDN packet format to ask one question and to read the answer.

It is written for the tests alone and shares no code with byname, so that the two can disagree.
"""

import os
import socket
import urllib.parse

INTEREST, DATA, LP_PACKET, NAME = 5, 6, 100, 7
CAN_BE_PREFIX, MUST_BE_FRESH, FORWARDING_HINT, NONCE, LIFETIME = 33, 18, 30, 10, 12
META_INFO, CONTENT, SIGNATURE_INFO = 20, 21, 22
CONTENT_TYPE, FRESHNESS, FINAL_BLOCK_ID, SIGNATURE_TYPE, KEY_LOCATOR = 24, 25, 26, 27, 28
LP_FRAGMENT, LP_FRAG_COUNT, LP_PIT_TOKEN, LP_NACK = 80, 83, 98, 800
PARAMETERS_DIGEST, GENERIC, KEYWORD, SEGMENT, VERSION = 2, 8, 32, 50, 54
PACKET_BYTES_MAX = 8800
CONVENTIONS = {"seg": SEGMENT, "v": VERSION}


def var_number(value):
    """A TLV type or length in its shortest form."""
    if value < 253:
        return bytes([value])
    if value < 1 << 16:
        return b"\xfd" + value.to_bytes(2, "big")
    return b"\xfe" + value.to_bytes(4, "big")


def tlv(kind, value=b""):
    """One TLV element."""
    return var_number(kind) + var_number(len(value)) + value


def nni(value):
    """A NonNegativeInteger in its shortest form."""
    size = next(s for s in (1, 2, 4, 8) if value < 1 << (8 * s))
    return value.to_bytes(size, "big")


def read_var_number(buffer, at):
    """(value, next position)."""
    first = buffer[at]
    if first < 253:
        return first, at + 1
    size = {253: 2, 254: 4, 255: 8}[first]
    if at + 1 + size > len(buffer):
        raise IndexError("truncated number")
    return int.from_bytes(buffer[at + 1:at + 1 + size], "big"), at + 1 + size


def read_tlv(buffer, at=0):
    """(type, value, position after it); IndexError if the buffer ends too early."""
    kind, value_at = read_var_number(buffer, at)
    length, value_at = read_var_number(buffer, value_at)
    if value_at + length > len(buffer):
        raise IndexError("truncated element")
    return kind, buffer[value_at:value_at + length], value_at + length


def elements(buffer):
    """All (type, value) pairs of a concatenation."""
    found, at = [], 0
    while at < len(buffer):
        kind, value, at = read_tlv(buffer, at)
        found.append((kind, value))
    return found


def first(buffer, kind):
    """The value of the first element of this type, or None."""
    return next((value for found, value in elements(buffer) if found == kind), None)


def encode_name(uri):
    """Name TLV of a URI with generic, typed and conventional components."""
    components = b""
    for part in uri.strip("/").split("/"):
        prefix, equals, rest = part.partition("=")
        if equals and prefix in CONVENTIONS:
            components += tlv(CONVENTIONS[prefix], nni(int(rest)))
        elif equals and prefix.isdigit():
            components += tlv(int(prefix), urllib.parse.unquote_to_bytes(rest))
        else:
            components += tlv(GENERIC, urllib.parse.unquote_to_bytes(part))
    return tlv(NAME, components)


def name_uri(name_value):
    """URI of the value of a Name TLV."""
    parts = []
    for kind, value in elements(name_value):
        if kind in (SEGMENT, VERSION):
            text = {SEGMENT: "seg=", VERSION: "v="}[kind] + str(int.from_bytes(value, "big"))
        elif kind == PARAMETERS_DIGEST:
            text = "params-sha256=" + value.hex()
        else:
            text = ("" if kind == GENERIC else f"{kind}=") + urllib.parse.quote(value, safe="")
        parts.append(text)
    return "/" + "/".join(parts)


def interest(uri, can_be_prefix=False, must_be_fresh=False, lifetime_ms=1000, hint=None):
    """An Interest packet; `hint` is the name of its only delegation."""
    body = encode_name(uri)
    body += tlv(CAN_BE_PREFIX) if can_be_prefix else b""
    body += tlv(MUST_BE_FRESH) if must_be_fresh else b""
    body += tlv(FORWARDING_HINT, encode_name(hint)) if hint else b""
    body += tlv(NONCE, os.urandom(4)) + tlv(LIFETIME, nni(lifetime_ms))
    return tlv(INTEREST, body)


def discovery(uri, lifetime_ms=1000):
    """The Interest that asks for the metadata of a name."""
    return interest(uri + "/32=metadata", True, True, lifetime_ms)


def lp(packet, token=None):
    """An LpPacket around a packet."""
    header = tlv(LP_PIT_TOKEN, token) if token is not None else b""
    return tlv(LP_PACKET, header + tlv(LP_FRAGMENT, packet))


def unwrap(frame):
    """(LP header fields as a dictionary, network-layer packet or None) of a frame."""
    kind, value, _ = read_tlv(frame)
    if kind != LP_PACKET:
        return {}, frame
    fields = dict(elements(value))
    return fields, fields.pop(LP_FRAGMENT, None)


class Connection:
    """A face of a test to a forwarder, over a Unix or TCP stream or over UDP."""

    def __init__(self, uri, timeout_s=5):
        scheme, _, rest = uri.partition("://")
        self.is_stream = scheme != "udp"
        if scheme == "unix":
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(timeout_s)
            self.socket.connect(rest)
        else:
            host, _, port = rest.partition(":")
            kind = socket.SOCK_STREAM if self.is_stream else socket.SOCK_DGRAM
            self.socket = socket.socket(socket.AF_INET, kind)
            self.socket.settimeout(timeout_s)
            self.socket.connect((host, int(port)))
        self.pending = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, frame):
        """Sends one frame."""
        self.socket.sendall(frame)

    def receive(self, timeout_s=5):
        """The next frame with a packet, or None after the time-out or when the peer has closed."""
        self.socket.settimeout(timeout_s)
        while True:
            try:
                end = read_tlv(self.pending)[2]
                frame, self.pending = self.pending[:end], self.pending[end:]
                if unwrap(frame)[1] is not None:
                    return frame
                continue
            except IndexError:
                pass
            try:
                more = self.socket.recv(65536)
            except (TimeoutError, socket.timeout, ConnectionError):
                return None
            if not more:
                return None
            self.pending = self.pending + more if self.is_stream else more

    def ask(self, frame, timeout_s=5):
        """Sends an Interest and returns the next frame."""
        self.send(frame)
        return self.receive(timeout_s)
