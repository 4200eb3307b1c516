"""A producer made of bytes: registers a prefix and answers with whatever packet a test wants."""

import hashlib
import os
import time

from . import wire

APPLICATION_PARAMETERS, INTEREST_SIGNATURE_INFO, INTEREST_SIGNATURE_VALUE = 36, 44, 46
SIGNATURE_NONCE, SIGNATURE_TIME, SIGNATURE_VALUE = 38, 40, 23
CONTROL_PARAMETERS, CONTROL_RESPONSE, STATUS_CODE = 104, 101, 102
DIGEST_SHA256 = b"\x00"
OK = 200


def register_interest(prefix, scope="localhost"):
    """The signed Interest of `rib/register` for this face, NDN packet format v0.3, DigestSha256."""
    return command_interest("rib/register", wire.encode_name(prefix), scope)


def command_interest(command, fields, scope="localhost"):
    """The signed Interest of any command; `fields` are the elements of its ControlParameters."""
    parameters = wire.tlv(CONTROL_PARAMETERS, fields)
    name = wire.read_tlv(wire.encode_name(f"/{scope}/nfd/{command}"))[1]
    name += wire.tlv(wire.GENERIC, parameters)
    info = wire.tlv(INTEREST_SIGNATURE_INFO, b"".join((
        wire.tlv(wire.SIGNATURE_TYPE, DIGEST_SHA256),
        wire.tlv(SIGNATURE_NONCE, os.urandom(8)),
        wire.tlv(SIGNATURE_TIME, wire.nni(int(time.time() * 1000))),
    )))
    signed = wire.tlv(APPLICATION_PARAMETERS) + info
    signature = hashlib.sha256(name + signed).digest()
    tail = signed + wire.tlv(INTEREST_SIGNATURE_VALUE, signature)
    name += wire.tlv(wire.PARAMETERS_DIGEST, hashlib.sha256(tail).digest())
    body = wire.tlv(wire.NAME, name) + wire.tlv(wire.MUST_BE_FRESH)
    body += wire.tlv(wire.NONCE, os.urandom(4)) + wire.tlv(wire.LIFETIME, wire.nni(1000))
    return wire.tlv(wire.INTEREST, body + tail)


def status_of(frame):
    """The status code in the answer to a command; None if it is no Data, or none came."""
    packet = frame and wire.unwrap(frame)[1]
    if not packet or packet[0] != wire.DATA:
        return None
    content = wire.first(wire.read_tlv(packet)[1], wire.CONTENT)
    return int.from_bytes(wire.first(wire.read_tlv(content)[1], STATUS_CODE), "big")


def data(name_value, content, freshness_ms=1000, final=None):
    """A Data packet with a DigestSha256 signature; `name_value` is the value of its Name."""
    meta = wire.tlv(wire.FRESHNESS, wire.nni(freshness_ms))
    if final is not None:
        meta += wire.tlv(wire.FINAL_BLOCK_ID, wire.tlv(wire.SEGMENT, wire.nni(final)))
    body = wire.tlv(wire.NAME, name_value) + wire.tlv(wire.META_INFO, meta)
    body += wire.tlv(wire.CONTENT, content)
    body += wire.tlv(wire.SIGNATURE_INFO, wire.tlv(wire.SIGNATURE_TYPE, DIGEST_SHA256))
    return wire.tlv(wire.DATA, body + wire.tlv(SIGNATURE_VALUE, hashlib.sha256(body).digest()))


def data_of_size(name_value, size):
    """A Data packet of exactly this many bytes."""
    length = size
    while True:
        packet = data(name_value, b"x" * length)
        if len(packet) == size:
            return packet
        assert len(packet) > size or length < size, f"no Data of exactly {size} bytes"
        length -= len(packet) - size


class Producer(wire.Connection):
    """A face that has registered a prefix."""

    def __init__(self, uri, prefix):
        super().__init__(uri)
        response = self.ask(register_interest(prefix))
        assert status_of(response) == OK, f"registration refused: {response}"

    def next_interest(self, timeout_s=5):
        """(LP fields, value of the Name) of the next Interest, or None."""
        frame = self.receive(timeout_s)
        if frame is None:
            return None
        fields, packet = wire.unwrap(frame)
        kind, body, _ = wire.read_tlv(packet)
        assert kind == wire.INTEREST, f"not an Interest: {frame.hex()}"
        return fields, wire.first(body, wire.NAME)

    def answer(self, fields, packet):
        """Sends Data back with the PIT token of its Interest."""
        token = fields.get(wire.LP_PIT_TOKEN)
        self.send(packet if token is None else wire.lp(packet, token))
