"""Reads random ranges of a file with one XRootD vector read a round; a JSON object per round.

Run by the Python that Debian's python3-xrootd belongs to. usage: URL COUNT BYTES ALIGN ROUNDS
"""

import json
import random
import sys
import time

from XRootD import client
from XRootD.client.flags import OpenFlags


def main():
    url, (count, length, align, rounds) = sys.argv[1], map(int, sys.argv[2:6])
    file = client.File()
    status, _ = file.open(url, OpenFlags.READ)
    assert status.ok, status.message
    status, stat = file.stat()
    assert status.ok, status.message
    places = (stat.size - length) // align + 1
    chosen = random.Random(1)
    for number in range(rounds):
        # XRootD's client takes no range twice ("Invalid response").
        ranges = [(place * align, length) for place in chosen.sample(range(places), count)]
        started = time.monotonic()
        status, answer = file.vector_read(chunks=ranges)
        seconds = time.monotonic() - started
        assert status.ok, status.message
        assert answer.size == count * length, "not everything was read"
        print(json.dumps({"round": number, "read_us": seconds * 1e6}))


main()
