"""The control that ends a benchmark: data that changed behind byname's back must be refused.

A store through a shared mapping to a page that is dirty already leaves size, mtime and ctime as
they are (in memory, where nothing is written back), so only the content can show it.
"""

import mmap
import os
import pathlib
import shutil
import tempfile

from harness import nodes
from harness.lab import Lab
from scenarios import FILE, Byname

SIZE_BYTES = 8 << 20
FLIPPED_AT = SIZE_BYTES // 2 + 12345
MEMORY = "/dev/shm"
DOES_NOT_VERIFY = 5


def one_flipped_bit():
    """(passed, sentence)"""
    if nodes.byname_binary() is None:
        return True, "not run, there is no byname binary"
    directory = pathlib.Path(tempfile.mkdtemp(prefix="byname-control-", dir=MEMORY))
    lab = Lab()
    try:
        return flip_and_read(lab, directory)
    finally:
        lab.close()
        shutil.rmtree(directory, ignore_errors=True)


def flip_and_read(lab, directory):
    """Publishes, reads, flips a bit, reads again through processes that have nothing cached."""
    published = directory / "published"
    published.mkdir()
    file = published / FILE
    file.write_bytes(os.urandom(SIZE_BYTES))
    out = directory / "out"
    with open(file, "r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapping:
        mapping[FLIPPED_AT] = mapping[FLIPPED_AT]
        before = identity(file)
        scenario = Byname(lab, published, out)
        scenario.start()
        sample = scenario.fetch()
        if sample.code != 0:
            return False, f"the untouched file could not be read: {sample.stderr.strip()}"
        stop(scenario)
        mapping[FLIPPED_AT] ^= 1
        if identity(file) != before:
            return False, "the flip shows in stat here, so the control proves nothing"
        scenario.start()
        sample = scenario.fetch()
        stop(scenario)
    left = sorted(path.name for path in directory.iterdir() if path != published)
    if sample.code == 0:
        return False, "one bit flipped after publication was ACCEPTED"
    if sample.code != DOES_NOT_VERIFY or "out" in left:
        return False, f"one bit flipped: exit code {sample.code}, left behind {left}"
    return True, f"one bit flipped after publication, refused with exit code {sample.code}"


def identity(file):
    """What a server can see of a file without reading it."""
    status = file.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def stop(scenario):
    """Ends the servers; the published state stays in the home."""
    for daemon in reversed(scenario.daemons):
        daemon.stop()
    scenario.lab.path("byname/sock").unlink(missing_ok=True)
