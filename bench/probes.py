"""Questions of a single moment: how soon the bytes come.

T7: of a thousand small ranges read in one call. T9: after `byname serve` starts on 100 000 files.
T11: of a large file whose tree was not computed, beside the same file with its tree at hand.
"""

import json
import os
import pathlib
import shutil
import subprocess
import time

import contenders
from ground import OneMachine
from harness import nodes, peers, wire
from harness.lab import START_TIMEOUT_S, wait_until
from report import spread
from scenarios import Byname, BynameUnix
from suites import verdict
from work import FILE, File, Tree

NAME = "/bench"
POLL_S = 0.002
HASH_TIMEOUT_S = 300
SMALL_BYTES = 16
COPY_BYTES_MAX = 4 << 30
HERE = pathlib.Path(__file__).resolve().parent
RANGES = peers.REPO / "target/release/examples/ranges"
RANGE_COUNT, RANGE_BYTES = 1000, 4096
# python3-xrootd belongs to it, whatever other Python comes first in PATH.
PYTHON_OF_DEBIAN = "/usr/bin/python3"


class Server:
    """A forwarder that stays, and file servers that come and go."""

    def __init__(self, lab):
        self.lab = lab
        self.socket_path = lab.path("probe/sock")
        self.uri = f"unix://{self.socket_path}"
        self.home = lab.path("probe/home/.keep").parent
        forward = lab.start("forward", [nodes.byname_binary(), "forward", "--listen", self.uri],
                            {"BYNAME_HOME": str(lab.path("probe/forward/.keep").parent)})
        wait_until(self.socket_path.exists, "byname forward to listen", START_TIMEOUT_S, forward)

    def serve(self, directory, name):
        """Starts a file server."""
        argv = [nodes.byname_binary(), "serve", directory, "--name", name, "--connect", self.uri]
        return self.lab.start("serve", argv, {"BYNAME_HOME": str(self.home)})

    def forget(self):
        """Removes what servers computed, but not their keys."""
        shutil.rmtree(self.home / "state", ignore_errors=True)

    def client_env(self):
        """For a reader that trusts the publisher."""
        return self.lab.env({"BYNAME_HOME": str(self.home)})


def ask(face, packet):
    """The Data that answers, or None."""
    frame = face.ask(packet, timeout_s=0.05)
    answer = wire.unwrap(frame)[1] if frame is not None else None
    if answer is None:
        return None
    kind, value, _ = wire.read_tlv(answer)
    return value if kind == wire.DATA else None


def first_byte(server, directory, names, rounds):
    """Seconds from the start of a server to the first octet of a file, per round."""
    seconds = []
    for number in range(rounds + 1):
        prefix = f"{NAME}/t9/{number}"  # nothing of an earlier round is in the forwarder's store
        name = f"{prefix}/{names[number]}"
        started = time.monotonic()
        daemon = server.serve(directory, prefix)
        with wire.Connection(server.uri) as face:
            while (metadata := ask(face, wire.discovery(name, lifetime_ms=40))) is None:
                assert daemon.process.poll() is None, "the server ended"
                assert time.monotonic() - started < START_TIMEOUT_S, "no answer"
                time.sleep(POLL_S)
            content = wire.first(metadata, wire.CONTENT)
            versioned = wire.name_uri(wire.first(content, wire.NAME))
            while ask(face, wire.interest(f"{versioned}/seg=0")) is None:
                pass
        seconds.append(time.monotonic() - started)
        daemon.stop()
    return seconds[1:]


def t9(lab, options, say):
    """Publishing many files."""
    work = Tree(lab.path("t9/.keep").parent, options.published_files, SMALL_BYTES)
    say(f"T9: {work.count} files")
    work.make()
    names = [str(path.relative_to(work.directory)) for path in sorted(work.path.rglob("*.dat"))]
    seconds = spread(first_byte(Server(lab), work.directory, names[::997], options.rounds))
    yield (f"T9 first byte of {work.count} files served within 0.2 s of the server's start",
            f"{seconds['median'] * 1000:.0f} ms ({seconds['min'] * 1000:.0f}–"
            f"{seconds['max'] * 1000:.0f})", verdict(seconds["median"] <= 0.2))


def first_verified(server, name):
    """Seconds until `byname cat` hands out the first octet."""
    argv = [nodes.byname_binary(), "cat", name, "--connect", server.uri]
    started = time.monotonic()
    with subprocess.Popen(argv, env=server.client_env(), stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as process:
        octet = process.stdout.read(1)
        seconds = time.monotonic() - started
        process.kill()
    assert octet, "cat ended without a byte"
    return seconds


def whole(server, name, out):
    """Seconds that `byname get` takes; without `out`, `byname cat` to nowhere."""
    argv = ["cat", name] if out is None else ["get", name, "-o", out, "-q"]
    started = time.monotonic()
    subprocess.run([nodes.byname_binary(), *argv, "--connect", server.uri],
                   env=server.client_env(), check=True, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - started
    if out is not None:
        os.unlink(out)
    return seconds


def t11(lab, options, say):
    """The first use of a large file."""
    work = File(lab.path("t11/.keep").parent, options.first_use_size)
    say(f"T11: {work.units:g} GiB")
    work.make()
    server = Server(lab)
    # Memory has to hold the file, and may have no room for a second one.
    out = None if options.first_use_size > COPY_BYTES_MAX else pathlib.Path(options.memory) / "t11"
    samples = {"cold": [], "warm": [], "cold get": [], "warm get": []}
    for number in range(options.rounds + 1):
        for fetch, suffix in ((first_verified, ""), (lambda *at: whole(*at, out), " get")):
            server.forget()
            prefix = f"{NAME}/t11/{number}{suffix.strip()}"
            name = work.under(prefix)
            daemon = server.serve(work.directory, prefix)
            nodes.wait_published(server.uri, f"{prefix}", daemon)
            samples["cold" + suffix].append(fetch(server, name))
            wait_prepared(server, name)
            samples["warm" + suffix].append(fetch(server, name))
            daemon.stop()
    kept = {key: spread(values[1:]) for key, values in samples.items()}
    late_ms = (kept["cold"]["median"] - kept["warm"]["median"]) * 1000
    ratio = kept["cold get"]["median"] / kept["warm get"]["median"]
    yield (f"T11 first use of {work.units:g} GiB: first verified byte within 2 ms of the same "
           "server with the tree at hand",
           f"{kept['cold']['median'] * 1000:.1f} ms against {kept['warm']['median'] * 1000:.1f} ms:"
           f" {late_ms:.1f} ms later", verdict(late_ms <= 2))
    yield (f"T11 first use of {work.units:g} GiB, whole: ≤ 1.1 × with the tree at hand",
           f"{ratio:.2f} ×", verdict(ratio <= 1.1))


def wait_prepared(server, name):
    """Waits until the root is announced."""
    argv = [nodes.byname_binary(), "stat", name, "--connect", server.uri, "--json"]

    def is_announced():
        said = subprocess.run(argv, env=server.client_env(), check=True, stdout=subprocess.PIPE)
        return json.loads(said.stdout).get("root") is not None

    wait_until(is_announced, f"the root of {name}", HASH_TIMEOUT_S)


def t7(lab, options, say):
    """Many small ranges of a large file in one call.

    XRootD's client has the file open, and so has ours. The first call of ours has to fetch and
    prove tree nodes; in later ones most are at hand. XRootD proves nothing, so its calls are alike.
    """
    reason = contenders.Xrootd.missing()
    if not RANGES.exists():
        reason = "no reader: cargo build --release -p byname-profile --example ranges"
    if reason:
        say(f"T7: not run: {reason}")
        return
    work = File(lab.path("t7/.keep").parent, options.size)
    say(f"T7: {work.units:g} GiB, {RANGE_COUNT} ranges of {RANGE_BYTES} octets")
    work.make()
    stage = OneMachine(lab)
    ways = {"memif": Byname(stage, work, None), "Unix": BynameUnix(stage, work, None)}
    for way in ways.values():
        way.start()
        wait_prepared(way, work.under(NAME))
    peer = contenders.Xrootd(stage, work, None)
    peer.start()
    for align, where, most in ((4096, "4 KiB-aligned", 3.0), (1, "at random octets", 4.3)):
        theirs = median_us(lab.run([
            PYTHON_OF_DEBIAN, HERE / "vector_read.py", f"root://{peer.authority()}//{FILE}",
            RANGE_COUNT, RANGE_BYTES, align, options.rounds + 1]))
        for label, way in ways.items():
            argv = [RANGES, link_to(way, work), "--connect", way.uri, "--json", "--align", align,
                    "--count", RANGE_COUNT, "--bytes", RANGE_BYTES, "--rounds", options.rounds + 1]
            opened = lab.run(argv, way.env)
            for when, result in (("first call", opened),
                                 ("later calls", lab.run([*argv, "--keep-open"], way.env))):
                ours, limit = median_us(result), {"memif": 1.0, "Unix": 3.0}[label]
                yield (f"T7 {where}, over {label}, {when} of an open file: time ≤ {limit:g} × "
                       "XRootD's vector read",
                       f"{ours / 1000:.1f} ms against {theirs / 1000:.1f} ms: "
                       f"{ours / theirs:.2f} ×", verdict(ours <= limit * theirs))
        ratio = max(json.loads(line)["ratio"] for line in opened.stdout.splitlines())
        yield (f"T7 {where}, first call: octets on the wire ≤ {most} × asked", f"{ratio:.2f} ×",
               verdict(ratio <= most))


def link_to(way, work):
    """The link that a server printed, for the file."""
    way.daemons[-1].wait_for_log("key=")
    key = way.daemons[-1].log_text().partition("&key=")[2].split()[0]
    return f"byname:{work.under(NAME)}?key={key}"


def median_us(result):
    """Of the rounds but the first."""
    assert result.code == 0, result
    rounds = [json.loads(line)["read_us"] for line in result.stdout.splitlines()]
    return spread(rounds[1:])["median"]


ALL = {"publish": t9, "first-use": t11, "ranges": t7}
