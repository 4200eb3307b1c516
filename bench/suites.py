"""The questions that bench/run answers: who moves what over which links, and what is demanded.

A suite has a work, a ground, contenders that are measured in turn, and targets: rows of (target,
what was measured, verdict), made from the summaries of its contenders.
"""

import dataclasses
from collections.abc import Callable

import contenders
import ground
import own
import scenarios
import work
from harness import netns


@dataclasses.dataclass
class Suite:
    """See the module's documentation."""

    key: str
    title: str
    contenders: tuple
    reference: str
    make_work: Callable
    make_ground: Callable = ground.OneMachine
    targets: Callable = lambda find: ()
    note: str = ""

    def missing(self):
        """Why the suite cannot run here, or None."""
        return None if self.make_ground is ground.OneMachine else netns.unavailable()


def verdict(holds):
    """As a word."""
    return "met" if holds else "**missed**"


def at_most(text, measured, limit, unit=""):
    """A row for a figure that must not exceed its limit."""
    return text, f"{measured:.2f}{unit}", verdict(measured <= limit)


def ratio_rows(find, own_title, wanted):
    """Rows for ratios of medians: wanted is [(label, key, peer, limit)]."""
    mine = find(own_title)
    for label, key, peer, limit in wanted:
        other = find(peer)
        if mine and other:
            ratio = mine[key]["median"] / other[key]["median"]
            yield at_most(f"{label}: {own_title} ≤ {limit} × {peer}", ratio, limit, " ×")


CPU, WALL = "cpu_s_per_unit", "wall_s_per_unit"


def t3(find):
    """One file between three processes of one machine."""
    yield from ratio_rows(find, scenarios.Byname.title, (
        ("T3 CPU", CPU, "xrdcp", 0.30), ("T3 CPU", CPU, "xrdcp, plain reads", 1.1),
        ("T3 CPU", CPU, "nginx + curl", 1.1), ("T3 wall", WALL, "xrdcp", 0.4)))
    yield from t10(find, (scenarios.Byname.title, scenarios.BynameUnix.title))
    unix = find(scenarios.BynameUnix.title)
    if unix:
        yield at_most("T4b both links Unix: ≤ 1.7 CPU-s/GiB", unix[CPU]["median"], 1.7)
    yield from ratio_rows(find, own.InProcess.title, (("T5 wall", WALL, "cp", 2.2),))
    for title in (own.InProcess.title, scenarios.BynameDirect.title):
        if find(title):
            yield at_most(f"T5 {title}: ≤ 0.9 CPU-s/GiB", find(title)[CPU]["median"], 0.9)


# What each process may need, MiB; the forwarder besides its store, which is 64 MiB by default.
MEMORY_MAX = {"serve": 128, "forward": 64 + 64}


def t10(find, titles):
    """Memory of the reader and of the servers."""
    for title in filter(find, titles):
        summary = find(title)
        yield at_most(f"T10 {title}: the reader needs ≤ 64 MiB",
                      summary["client_rss_bytes_max"] / (1 << 20), 64, " MiB")
        for label, rss in summary["servers_rss_bytes_max"].items():
            limit = MEMORY_MAX[label]
            yield at_most(f"T10 {title}: {label} needs ≤ {limit} MiB", rss / (1 << 20), limit,
                          " MiB")


def t4(find):
    """One file over TCP between machines."""
    yield from ratio_rows(find, scenarios.BynameTcp.title, (
        ("T4 CPU", CPU, "xrdcp", 0.5), ("T4 wall", WALL, "xrdcp", 1.0)))


def t4b(limit):
    """One file over UDP between machines."""
    def rows(find):
        mine = find(scenarios.BynameUdp.title)
        if mine:
            yield at_most(f"T4b both links UDP: ≤ {limit} CPU-s/GiB", mine[CPU]["median"], limit)
    return rows


def t6(find):
    """Many small files."""
    mine = find(scenarios.Byname.title)
    for peer, least in (("xrdcp", 5.0), ("rsync daemon", 1.0), ("rclone", 1.0)):
        other = find(peer)
        if mine and other:
            ratio = other[WALL]["median"] / mine[WALL]["median"]
            yield (f"T6 files per second: ≥ {least:g} × {peer}", f"{ratio:.2f} ×",
                   verdict(ratio >= least))


def large(find):
    """A file of which memory has no second copy."""
    yield from ratio_rows(find, own.BynameDiscarded.title, (
        ("T3 CPU", CPU, "xrdcp", 0.30), ("T3 CPU", CPU, "xrdcp, plain reads", 1.1),
        ("T3 CPU", CPU, "nginx + curl", 1.1), ("T3 wall", WALL, "xrdcp", 0.4)))
    yield from t10(find, (own.BynameDiscarded.title,))


def t12(find):
    """One file over a long path."""
    yield from ratio_rows(find, own.BynameDelayed.title, (
        ("T12 wall", WALL, own.XrootdDelayed.title, 0.6),
        ("T12 wall", WALL, own.NginxDelayed.title, 1.2)))


def apart(mtu, has_middle=False):
    """A ground of namespaces."""
    return lambda lab: ground.Apart(lab, mtu, has_middle)


def one_file(directory, options):
    """A file of --size."""
    return work.File(directory, options.size)


def large_file(directory, options):
    """A file of --large-size."""
    return work.File(directory, options.large_size)


def small_files(directory, options):
    """--files files of 4 KiB."""
    return work.Tree(directory, options.files, 4096)


LOCAL = (scenarios.Byname, scenarios.BynameUnix, scenarios.BynameDirect, own.InProcess,
         contenders.Xrootd, contenders.XrootdPlainRead, contenders.Nginx, contenders.Rsync,
         contenders.Ndnd, contenders.Cp)
OVER_TCP = (scenarios.BynameTcp, contenders.Xrootd, contenders.XrootdPlainRead, contenders.Nginx)
SMALL = (scenarios.Byname, scenarios.BynameUnix, contenders.Xrootd, contenders.XrootdParallel,
         contenders.Rsync, contenders.Rclone, contenders.Cp)
LARGE = (own.BynameDiscarded, own.XrootdDiscarded, own.XrootdPlainDiscarded, own.NginxDiscarded,
         own.Cat)
DELAYED = (own.BynameDelayed, own.XrootdDelayed, own.NginxDelayed)

ALL = (
    Suite("local", "One file on one machine", LOCAL, "xrdcp", one_file, targets=t3),
    Suite("tcp9000", "One file over TCP between machines, MTU 9000", OVER_TCP, "xrdcp", one_file,
          apart(9000), t4),
    Suite("tcp1500", "One file over TCP between machines, MTU 1500", OVER_TCP, "xrdcp", one_file,
          apart(1500), t4),
    Suite("udp9000", "One file over two UDP links, three machines, MTU 9000",
          (scenarios.BynameUdp, contenders.Xrootd), "xrdcp", one_file, apart(9000, True), t4b(1.7),
          "The peers' client and server stand on neighbouring machines."),
    Suite("udp1500", "One file over two UDP links, three machines, MTU 1500",
          (scenarios.BynameUdp, contenders.Xrootd), "xrdcp", one_file, apart(1500, True), t4b(2.2),
          "The peers' client and server stand on neighbouring machines."),
    Suite("files", "Many files of 4 KiB", SMALL, "xrdcp", small_files, targets=t6),
    Suite("large", "One large file to standard output, which is thrown away", LARGE, "xrdcp",
          large_file, targets=large,
          note="The first fetch, untimed, is compared; `cat` hands out bytes in order."),
    Suite("delay20", "One file, 20 ms round trip", DELAYED, own.XrootdDelayed.title, one_file,
          own.delayed(20), t12),
    Suite("delay100", "One file, 100 ms round trip", DELAYED, own.XrootdDelayed.title, one_file,
          own.delayed(100), t12),
)
