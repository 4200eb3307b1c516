"""Reads ranges of a file with one XRootD vector read, as often as asked; a JSON object on one line.

Run by the Python that Debian's python3-xrootd belongs to. usage: URL RANGES_FILE TIMES
"""

import hashlib
import json
import resource
import sys
import time

from XRootD import client
from XRootD.client.flags import OpenFlags


def main():
    url, ranges_file, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with open(ranges_file, encoding="ascii") as lines:
        ranges = [tuple(map(int, line.split())) for line in lines]
    file = client.File()
    status, _ = file.open(url, OpenFlags.READ)
    assert status.ok, status.message
    seconds, digest = [], None
    cpu_before = time.process_time()
    for _ in range(times):
        started = time.monotonic()
        status, answer = file.vector_read(chunks=ranges)
        seconds.append(time.monotonic() - started)
        assert status.ok, status.message
        digest = hashlib.sha256(b"".join(chunk.buffer for chunk in answer.chunks)).hexdigest()
    print(json.dumps({"seconds": seconds, "sha256": digest,
                      "cpu_s": time.process_time() - cpu_before,
                      "rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


main()
