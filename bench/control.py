"""The controls that end a benchmark: what is not as it was signed must be refused.

Twice a bit is flipped. In a published file behind the server's back: a store through a shared
mapping to a page that is dirty already leaves size, mtime and ctime as they are (in memory, where
nothing is written back), so only the content can show it. And on the way, by a relay, in every
packet of a kind: data, tree node, metadata.
"""

import mmap
import os
import pathlib
import shutil
import tempfile

from ground import OneMachine
from harness import nodes, wire
from harness.lab import Lab
from harness.tap import Tap
from scenarios import BynameUnix
from work import File

SIZE_BYTES = 8 << 20
FLIPPED_AT = SIZE_BYTES // 2 + 12345
MEMORY = "/dev/shm"
DOES_NOT_VERIFY = 5
KINDS = {
    "data": lambda name: "/32=" not in name and "/seg=" in name and "/KEY/" not in name,
    "a node": lambda name: "/32=tree-" in name,
    "metadata": lambda name: "/32=metadata" in name,
}


def flipped_bits():
    """(passed, sentence)"""
    if nodes.byname_binary() is None:
        return True, "not run, there is no byname binary"
    sentences = []
    for label, run in (("the published file", in_the_file),
                       *((kind, lambda *at, kind=kind: on_the_way(kind, *at)) for kind in KINDS)):
        directory = pathlib.Path(tempfile.mkdtemp(prefix="byname-control-", dir=MEMORY))
        lab = Lab()
        try:
            fault = run(lab, directory)
        finally:
            lab.close()
            shutil.rmtree(directory, ignore_errors=True)
        if fault:
            return False, f"one bit flipped in {label}: {fault}"
        sentences.append(label)
    return True, f"one bit flipped in {', in '.join(sentences)}: refused, exit code " \
                 f"{DOES_NOT_VERIFY}, each alone"


def published(directory):
    """An 8 MiB file in a directory of its own."""
    work = File(directory / "published", SIZE_BYTES)
    work.directory.mkdir()
    work.make()
    return work


def in_the_file(lab, directory):
    """Publishes, reads, flips a bit, reads again through processes that have nothing cached."""
    work = published(directory)
    scenario = BynameUnix(OneMachine(lab), work, directory / "out")
    with open(work.path, "r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapping:
        mapping[FLIPPED_AT] = mapping[FLIPPED_AT]
        before = identity(work.path)
        scenario.start()
        sample = scenario.fetch()
        if sample.code != 0:
            return f"the untouched file could not be read: {sample.stderr.strip()}"
        scenario.clean()
        scenario.stop()
        mapping[FLIPPED_AT] ^= 1
        if identity(work.path) != before:
            return "the flip shows in stat here, so the control proves nothing"
        scenario.start()
        return refusal(scenario)


def on_the_way(kind, lab, directory):
    """Reads through a relay that flips one bit in each packet of a kind."""
    scenario = BynameUnix(OneMachine(lab), published(directory), directory / "out")
    scenario.start()
    flips = []

    def alter(frame):
        altered = flip(frame, KINDS[kind])
        flips.append(altered is not frame)
        return altered

    tap = Tap(lab, scenario.uri.removeprefix("unix://"), alter=alter)
    scenario.uri = tap.uri
    fault = refusal(scenario)
    if fault is None and not any(flips):
        return "no such packet came by, so the control proves nothing"
    return fault


def flip(frame, is_wanted):
    """The frame, with the last bit of its Content flipped if its name is wanted."""
    packet = wire.unwrap(frame)[1]
    kind, value, _ = wire.read_tlv(packet) if packet else (None, b"", 0)
    if kind != wire.DATA:
        return frame
    name = wire.name_uri(wire.first(value, wire.NAME))
    content = wire.first(value, wire.CONTENT)
    if not content or not is_wanted(name):
        return frame
    last = frame.rindex(content) + len(content) - 1
    return frame[:last] + bytes([frame[last] ^ 1]) + frame[last + 1:]


def refusal(scenario):
    """None if the reader refuses as it should, or what it did instead."""
    before = set(pathlib.Path(scenario.out).parent.iterdir())
    sample = scenario.fetch()
    left = [path.name for path in pathlib.Path(scenario.out).parent.iterdir()
            if path not in before and not path.name.endswith(".byname-part")]
    if sample.code == 0:
        return "ACCEPTED"
    if sample.code != DOES_NOT_VERIFY or left:
        return f"exit code {sample.code}, left behind {left}: {sample.stderr.strip()}"
    return None


def identity(file):
    """What a server can see of a file without reading it."""
    status = os.stat(file)
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
