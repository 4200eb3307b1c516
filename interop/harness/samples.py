"""The files that every peer has to deliver byte for byte.

Made once, read by all tests, changed by none.
"""

import filecmp
import os
import pathlib
import random
import urllib.parse

from . import peers

SEGMENT_BYTES = 8192
LARGE_BYTES = 100 * 1024 * 1024
SEED = 20250307

# Relative path -> size. The sizes stand around the default segment, the names need escaping.
SMALL = {
    "empty": 0,
    "one byte.bin": 1,
    "one-segment.bin": SEGMENT_BYTES,
    "one-segment-and-a-byte.bin": SEGMENT_BYTES + 1,
    "many-segments.bin": 300 * SEGMENT_BYTES + 17,
    "name with  two spaces.txt": 1000,
    "naïve Ünïcode 日本語 🎲.dat": 20000,
    "100% sure & #1?.txt": 3000,
    "sub/directory/v=7": 9000,
}
# Few enough segments that no burst of them overruns a socket's buffer.
SHORT = {name: size for name, size in SMALL.items() if size < 10 * SEGMENT_BYTES}
# For tests that are about the link: what comes in one, two and many segments, or in none.
SOME = ("empty", "one-segment.bin", "one-segment-and-a-byte.bin", "many-segments.bin")
LARGE = "large.bin"


def directory():
    """The published directory, with all of SMALL and LARGE in it."""
    root = peers.ROOT / "samples"
    for name, size in {**SMALL, LARGE: LARGE_BYTES}.items():
        path = root / name
        if path.exists() and path.stat().st_size == size:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(path.name + ".unfinished")
        unfinished.write_bytes(random.Random(f"{SEED} {name}").randbytes(size))
        unfinished.rename(path)
    return root


def uri(prefix, relative):
    """NDN URI of a published file: generic components, everything unusual percent-encoded."""
    parts = pathlib.PurePosixPath(relative).parts
    return prefix + "".join("/" + urllib.parse.quote(part, safe="") for part in parts)


def difference(got, relative):
    """None if `got` equals the sample, else a sentence."""
    if not os.path.exists(got):
        return f"{relative}: nothing was written"
    if filecmp.cmp(got, directory() / relative, shallow=False):
        return None
    return f"{relative}: differs ({os.path.getsize(got)} bytes written)"
