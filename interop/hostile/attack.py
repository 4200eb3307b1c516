#!/usr/bin/env python3
"""A hostile neighbour of a forwarder, for tests: sends what one may fear, at a bounded rate.

usage: attack.py KIND URI [PREFIX]      until it is killed; URI: udp://host:port or tcp://host:port
KIND: interests   for names that nobody serves, all different, pending as long as possible
      hints       for one name, each with another forwarding hint, pending as long as possible
      tokens      for few names, with PIT tokens of all lengths and many nonces
      fragments   first fragments of messages that never become whole, with absurd counts
      garbage     packets cut short, lengths that lie, unknown types, noise
A stream that the forwarder closes is opened again.
"""

import os
import pathlib
import random
import socket
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from harness import wire  # noqa: E402  (the path above must come first)

PACKETS_PER_S = 20_000
BURST = 100
REPORT_EVERY = 20_000
LIFETIME_MS = 60_000
LP_SEQUENCE, LP_FRAG_INDEX = 81, 82
SEED = 7


def interests(prefix, number):
    """An Interest like no other."""
    return wire.interest(f"{prefix}/{number:x}", lifetime_ms=LIFETIME_MS)


def hints(prefix, number):
    """An Interest for always the same name, by another way."""
    return wire.interest(f"{prefix}/one", lifetime_ms=LIFETIME_MS, hint=f"{prefix}/{number:x}")


def tokens(prefix, number):
    """One of a thousand names, with another nonce and a token of 0 to 40 octets."""
    packet = wire.interest(f"{prefix}/{number % 1000}", lifetime_ms=LIFETIME_MS)
    return wire.lp(packet, os.urandom(number % 41))


def fragments(_, number):
    """The beginning of a message."""
    count = random.choice((2, 16, 400, 1 << 20, (1 << 63) - 1))
    index = random.choice((0, 1, count - 1))
    return wire.tlv(wire.LP_PACKET, b"".join((
        wire.tlv(LP_SEQUENCE, (number * 1000).to_bytes(8, "big")),
        wire.tlv(LP_FRAG_INDEX, wire.nni(index)),
        wire.tlv(wire.LP_FRAG_COUNT, wire.nni(count)),
        wire.tlv(wire.LP_FRAGMENT, os.urandom(random.choice((0, 1, 1300)))),
    )))


def garbage(prefix, number):
    """Something that is no packet."""
    whole = bytearray(wire.lp(wire.interest(f"{prefix}/{number}"), b"token"))
    kind = number % 4
    if kind == 0:
        return bytes(whole[:random.randrange(1, len(whole))])
    if kind == 1:
        whole[random.randrange(len(whole))] = random.randrange(256)
        return bytes(whole)
    if kind == 2:
        lying = random.choice((1 << 16, 1 << 31, (1 << 64) - 1))
        return bytes([random.choice((wire.INTEREST, wire.DATA, wire.LP_PACKET))]) + (
            b"\xff" + lying.to_bytes(8, "big") + b"x" * 50)
    return os.urandom(random.randrange(1, 1400))


KINDS = {"interests": interests, "hints": hints, "tokens": tokens, "fragments": fragments,
         "garbage": garbage}


def connect(uri):
    """A socket to the victim."""
    scheme, _, address = uri.partition("://")
    host, _, port = address.partition(":")
    kind = socket.SOCK_DGRAM if scheme == "udp" else socket.SOCK_STREAM
    link = socket.socket(socket.AF_INET, kind)
    link.connect((host, int(port)))
    return link


def send(link, packets):
    """Sends a burst; False when the link is of no use any more."""
    try:
        if link.type == socket.SOCK_STREAM:
            link.sendall(b"".join(packets))
        else:
            for packet in packets:
                link.send(packet)
    except ConnectionError:
        return False
    return True


def main(kind, uri, prefix="/nobody"):
    random.seed(SEED)
    link = connect(uri)
    number = 0
    started = time.monotonic()
    while True:
        burst = [KINDS[kind](prefix, number + at) for at in range(BURST)]
        number += BURST
        if not send(link, burst):
            link.close()
            link = connect(uri)
        if number % REPORT_EVERY == 0:
            print(f"sent {number}", flush=True)
        time.sleep(max(0, started + number / PACKETS_PER_S - time.monotonic()))


if __name__ == "__main__":
    main(*sys.argv[1:])
