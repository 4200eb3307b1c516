"""A client of XRootD's own library, for what its programs cannot do. Run by Debian's Python.

    client.py URL vector PATH REFERENCE SEED    vector reads of many shapes, compared
    client.py URL beyond PATH                   a vector read beyond the end: prints the error
    client.py URL hold PATH                     opens, prints a line, then for each line of input
                                                "OFFSET BYTES" reads and prints the octets in hex
    client.py URL opens PATH COUNT              COUNT opens at the same time, one byte read of each
    client.py URL whole PATH COUNT              opens, prints the open file's size and its first
                                                COUNT octets in hex
    client.py URL idle PATH COUNT               COUNT connections open the file and do nothing
"""

import json
import random
import sys
import threading

from XRootD import client
from XRootD.client.flags import OpenFlags

RANGES_MAX = 1024
RANGE_BYTES_MAX = 2097136
CONNECTIONS = 50


def fail(status, what):
    """Ends with the error of a call."""
    print(json.dumps({"code": status.code, "errno": status.errno, "message": status.message}))
    sys.exit(f"{what}: {status.message}")


def opened(url, path):
    """The file, open for reading."""
    file = client.File()
    status, _ = file.open(f"{url}{path}", OpenFlags.READ)
    if not status.ok:
        fail(status, "open")
    return file


def shapes(size, choose):
    """Lists of ranges: (offset, bytes)."""
    def anywhere(bytes_max):
        offset = choose.randrange(size)
        return offset, choose.randint(1, min(bytes_max, size - offset))

    yield [(0, 1)]
    yield [(size - 1, 1)]
    yield [(0, min(size, RANGE_BYTES_MAX))]
    yield [(max(0, size - 8193), min(8193, size))]
    pages = [(offset, 4096) for offset in range(0, min(size, 64 * 4096) - 4096, 4096)]
    yield pages[::-1]
    # Around each border of the first units.
    yield [(offset, 2) for unit in (1, 2, 3) for offset in (unit * 8192 - 2, unit * 8192 - 1,
                                                            unit * 8192) if offset + 2 <= size]
    for count in (2, 17, 100, RANGES_MAX):
        yield [anywhere(20_000) for _ in range(count)]
    # Overlapping.
    offset, length = anywhere(50_000)
    yield [(offset, length - less) for less in range(min(5, length))] + [(offset + length - 1, 1)]


def vector(url, path, reference, seed):
    """Compares vector reads of many shapes with a file."""
    with open(reference, "rb") as source:
        wanted = source.read()
    file = opened(url, path)
    count = 0
    for shape in shapes(len(wanted), random.Random(seed)):
        # XRootD's client takes no range twice.
        ranges = list(dict.fromkeys(shape))
        if not ranges:
            continue
        status, answer = file.vector_read(chunks=ranges)
        if not status.ok:
            fail(status, f"vector read of {len(ranges)} ranges")
        for (offset, length), chunk in zip(ranges, answer.chunks):
            if chunk.buffer != wanted[offset:offset + length]:
                sys.exit(f"{length} octets at {offset} differ")
        count += len(ranges)
    print(f"{count} ranges are the same")


def beyond(url, path):
    """Reads beyond the end: a plain read ends there, a vector read is refused."""
    file = opened(url, path)
    _, info = file.stat()
    status, data = file.read(offset=info.size - 3, size=100)
    if not status.ok or len(data) != 3:
        fail(status, f"read across the end: {len(data or b'')} octets")
    status, data = file.read(offset=info.size + 10, size=100)
    if not status.ok or data:
        fail(status, "read beyond the end")
    status, _ = file.vector_read(chunks=[(0, 1), (info.size - 1, 2)])
    print(json.dumps({"ok": status.ok, "errno": status.errno, "message": status.message}))


def hold(url, path):
    """Keeps a file open and reads what it is told."""
    file = opened(url, path)
    print("open", flush=True)
    for line in sys.stdin:
        offset, length = map(int, line.split())
        status, data = None, None
        if not file.is_open():
            # The library lets nobody read on after an error.
            file = client.File()
            status, _ = file.open(f"{url}{path}", OpenFlags.READ)
        if status is None or status.ok:
            status, data = file.read(offset=offset, size=length)
        print(data.hex() if status.ok else f"error {status.errno} {status.message}".strip(),
              flush=True)
        if not status.ok and file.is_open():
            file.close()


def opens(url, path, count):
    """Opens the same directory's files many times at once."""
    bad = []

    def one(index):
        file = client.File()
        # A server takes one request after the other of each connection, and users have their own.
        whose = url.replace("root://", f"root://user{index % CONNECTIONS}@")
        status, _ = file.open(f"{whose}{path}{index}", OpenFlags.READ)
        if status.ok:
            status, data = file.read(offset=0, size=16)
            if status.ok and int(data) != index:
                bad.append(f"{index}: {data!r}")
        if not status.ok:
            bad.append(f"{index}: {status.message}")
        file.close()

    threads = [threading.Thread(target=one, args=(index,)) for index in range(int(count))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if bad:
        sys.exit(f"{len(bad)} failed: {bad[:3]}")
    print(f"{count} opens")


def whole(url, path, count):
    """Size and begin of a file as its handle has them: nothing is asked of the path."""
    file = opened(url, path)
    status, data = file.read(offset=0, size=int(count))
    if not status.ok:
        fail(status, "read")
    status, info = file.stat()
    if not status.ok:
        fail(status, "stat")
    print(json.dumps({"size": info.size, "begins": data.hex()}))


def idle(url, path, count):
    """Keeps connections with the file open until input ends."""
    files = [opened(url.replace("root://", f"root://user{index}@"), path)
             for index in range(int(count))]
    print("open", flush=True)
    sys.stdin.read()
    for file in files:
        file.close()


if __name__ == "__main__":
    {"vector": vector, "beyond": beyond, "hold": hold, "opens": opens, "whole": whole,
     "idle": idle}[sys.argv[2]](sys.argv[1], *sys.argv[3:])
