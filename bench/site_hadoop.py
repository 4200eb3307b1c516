"""Hadoop's programs on files of a site and of HDFS, on the machines of bench/site_puts.py.

`hadoop fs -put` and `-cat` of one file, by a machine that has no disk, and TestDFSIO, which writes
and reads several files in one Java with a local runner. Both file systems are asked in the same way
by the same programs: with ndn:// octets are verified against the site's signature, with hdfs://
against checksums.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from xml.etree import ElementTree

import hdfs
from measure import process_cpu_s
from site_puts import Network, byname_site, middle, timed

HERE = pathlib.Path(__file__).resolve().parent
FILES = 4
RATE = re.compile(r"Throughput mb/sec: *([0-9.]+)")
# Calls of a name node or a head, in a Java that runs already.
CALLS_BENCHMARK = "org.apache.hadoop.hdfs.NNBench"
# Names that were renamed are not found to be deleted: they are made twice.
CALLS = (("create_write", True), ("open_read", True), ("delete", True), ("create_write", False),
         ("rename", True))
CALLS_RESULT = "NNBench_results.log"
CALL_MS = re.compile(r"Avg exec time \(ms\): *([A-Za-z/]+): *([0-9.]+)", re.IGNORECASE)
CALL_FILES = 400
# Of a file that it could not begin with it says nothing more.
COUNT = re.compile(r"Number of files: *([0-9]+)")


def jar(options):
    """The file system for Hadoop of the same build, or None."""
    found = sorted(options.byname.parent.glob("java/maven/byname-hadoop-*.jar"))
    return found[-1] if found else None


def missing(options):
    """Why this part cannot be measured, or None."""
    if not options.hdfs:
        return "hadoop: HDFS is not here"
    return None if jar(options) else "hadoop: its jar is not built (scripts/build-java)"


class Programs:
    """Hadoop's programs with one file system for their own."""

    def __init__(self, network, directory, settings, jars, env, cpu_s, store=None):
        self.network, self.settings, self.jars, self.cpu_s = network, settings, jars, cpu_s
        self.store = store or (lambda: (0, 0))
        self.env = {**env, "HADOOP_USER_NAME": "root"}
        self.directory = directory

    def timed(self, what, main, *words, stdout_to=None, machine="writer"):
        """One program to its end, on the machine without a disk unless it is told, and what the
        forwarder's store answered meanwhile."""
        before = self.store()
        found = self._timed(what, machine, (main, *words), stdout_to)
        hits, misses = (now - then for now, then in zip(self.store(), before))
        return dict(found, store_hits=hits, store_misses=misses)

    def argv(self, machine, main, *words):
        """The command of a program on one of the machines."""
        argv = hdfs.command(self.settings, main, *words, jars=self.jars)
        return self.network.leaf(machine).inside(argv)

    def _timed(self, what, machine, words, stdout_to):
        argv = self.argv(machine, *words)
        if stdout_to is None:
            return timed(self.network, argv, self.cpu_s, what, cwd=self.directory, env=self.env)
        line = 'to=$1; shift; exec "$@" >"$to"'
        return timed(self.network, ["sh", "-c", line, "sh", stdout_to, *argv], self.cpu_s, what,
                     cwd=self.directory, env=self.env)

    def everything(self, local, options):
        """Put, cat and TestDFSIO, each compared or checked."""
        yield self.timed("start", hdfs.SHELL, "-test", "-e", "/")
        yield self.timed("put", hdfs.SHELL, "-put", local, "/large")
        copy = self.directory / "copy"
        got = self.timed("cat, kept", hdfs.SHELL, "-cat", "/large", stdout_to=copy)
        if subprocess.run(["cmp", local, copy], check=False).returncode:
            sys.exit("what was read is not what was put")
        copy.unlink()
        yield got
        yield self.timed("cat", hdfs.SHELL, "-cat", "/large", stdout_to="/dev/null")
        yield self.timed("cat, beside a disk", hdfs.SHELL, "-cat", "/large",
                         stdout_to="/dev/null", machine=self.network.disks[0])
        for call, is_shown in CALLS:
            found = self.timed(f"NNBench {call}", CALLS_BENCHMARK, "-operation", call, "-maps", 1,
                               "-reduces", 1, "-numberOfFiles", CALL_FILES, "-bytesToWrite", 0,
                               "-readFileAfterOpen", "false", "-blockSize", 1 << 20,
                               "-bytesPerChecksum", 512, "-baseDir", "/nnbench",
                               "-replicationFactorPerFile", 1, "-startTime", int(time.time()))
            result = self.directory / CALLS_RESULT
            said = CALL_MS.search(result.read_text())
            if not said:
                sys.exit(f"NNBench {call}: {result.read_text()}")
            result.unlink()
            if is_shown:
                yield dict(found, call_ms=float(said[2]))
        each = max(options.size // FILES >> 20, 1)
        for what in ("write", "read"):
            log = self.directory / f"dfsio-{what}"
            found = self.timed(f"TestDFSIO {what}", hdfs.FILES_BENCHMARK, f"-{what}", "-nrFiles",
                               FILES, "-size", f"{each}MB", "-resFile", log)
            rate, count = RATE.search(log.read_text()), COUNT.search(log.read_text())
            if not rate or int(count[1]) != FILES:
                sys.exit(f"TestDFSIO {what}: not {FILES} files: {log.read_text()}")
            yield dict(found, mb_s=float(rate[1]))


def store_counts(site):
    """Interests that the forwarder's store has answered so far, and those that it has not."""
    shown = json.loads(site.run("cs", "show", "--json", *site.connect("")).stdout)
    return shown["hits"], shown["misses"]


@contextlib.contextmanager
def site(network, place, replicas, options):
    """A site, and Hadoop's programs on it with the properties that they have."""
    with byname_site(options, network, place, replicas) as running:
        head = (place / "head.log").read_text()
        link = re.search(r"byname:/lab\S*", head)[0]
        printed = running.run("hadoop-conf", link, "--authority", "lab").stdout.decode()
        more = {"fs.defaultFS": "ndn://lab", "fs.ndn.connect": running.endpoint,
                "fs.ndn.home": running.environment["BYNAME_HOME"],
                "fs.ndn.spool.dir": str(place), "hadoop.tmp.dir": str(place / "tmp")}
        rows = "".join(f"<property><name>{key}</name><value>{value}</value></property>\n"
                       for key, value in more.items())
        settings = place / "conf"
        settings.mkdir()
        text = printed.replace("</configuration>", rows + "</configuration>")
        (settings / "core-site.xml").write_text(text)
        hdfs.for_java(settings)
        programs = Programs(network, place, settings, [jar(options)], running.environment,
                            running.cpu_s, lambda: store_counts(running))
        found = ElementTree.fromstring(printed).findall("property")
        yield programs, more | {one.findtext("name"): one.findtext("value") for one in found}


def by_name(network, directory, local, replicas, options):
    """ndn://"""
    place = directory / f"hadoop-site{replicas}"
    place.mkdir()
    with site(network, place, replicas, options) as (programs, _):
        for found in programs.everything(local, options):
            yield dict(found, program="ndn", replicas=replicas)
    shutil.rmtree(place)


def by_hdfs(network, directory, local, replicas, options):
    """hdfs://"""
    place = directory / f"hadoop-hdfs{replicas}"
    place.mkdir()
    cluster = hdfs.Cluster(network.hub, [network.leaf(name) for name in network.disks], replicas,
                           {"dfs.datanode.synconclose": str(options.sync).lower(),
                            "hadoop.tmp.dir": str(place / "tmp")})

    def cpu_s():
        return {name: process_cpu_s(daemon.process.pid)
                for name, daemon in cluster.daemons.items()}

    try:
        env = {"PATH": os.environ["PATH"], "HOME": str(place)}
        programs = Programs(network, place, cluster.settings, [], env, cpu_s)
        for found in programs.everything(local, options):
            yield dict(found, program="hdfs", replicas=replicas)
    finally:
        cluster.stop()
        shutil.rmtree(place, ignore_errors=True)


def measure(directory, options):
    """One in turn with the other, by replicas, round by round."""
    local = directory / "hadoop-large"
    with open(local, "wb") as out:
        for _ in range(options.size >> 20):
            out.write(os.urandom(1 << 20))
    network = Network(options.mtu, directory, max(3, *options.replicas))
    try:
        for _ in range(options.rounds):
            for replicas in options.replicas:
                for program in (by_name, by_hdfs):
                    for found in program(network, directory, local, replicas, options):
                        yield dict(found, part="hadoop")
    finally:
        network.lab.close()


def share(cell):
    """The part of Interests that the forwarder's store answered."""
    return f"{cell['hits'] / cell['asked']:.2f}" if cell["asked"] else "–"


def show(found, options):
    """A table: medians of all rounds, and ratios to HDFS."""
    ones = [one for one in found if one["part"] == "hadoop"]
    print(f"\nHadoop's programs, {options.size} octets, {options.transport}, MTU {options.mtu}, "
          f"HDFS {'with' if options.sync else 'without'} dfs.datanode.synconclose")
    print("| what | replicas | file system | wall s | CPU s, all | of HDFS: wall | CPU "
          "| disks' links, of R x octets | all links, of octets | of Interests, from the store |\n"
          "|---|---|---|---|---|---|---|---|---|---|")
    keys = dict.fromkeys((one["what"], one["replicas"]) for one in ones)
    for what, replicas in keys:
        cells = {}
        for program in ("ndn", "hdfs"):
            these = [one for one in ones if (one["what"], one["replicas"], one["program"]) ==
                     (what, replicas, program)]
            if these:
                cells[program] = {
                    "wall": middle(one["wall_s"] for one in these),
                    "cpu": middle(one["cpu_s"] + sum(one["servers_cpu_s"].values())
                                  for one in these),
                    "disks": middle(one["hosts_bytes"] - one["links"]["writer"] for one in these),
                    "all": middle(one["hosts_bytes"] for one in these),
                    "hits": sum(one["store_hits"] for one in these),
                    "asked": sum(one["store_hits"] + one["store_misses"] for one in these)}
        for program, cell in cells.items():
            beside = cells.get("hdfs", cell)
            print(f"| {what} | {replicas} | {program} | {cell['wall']:.2f} | {cell['cpu']:.2f} "
                  f"| {cell['wall'] / beside['wall']:.2f} | {cell['cpu'] / beside['cpu']:.2f} "
                  f"| {cell['disks'] / replicas / options.size:.3f} "
                  f"| {cell['all'] / options.size:.3f} | {share(cell)} |")
    show_calls(ones)


def show_calls(ones):
    """A table of what one call takes: create and close, open, rename, delete."""
    calls = {}
    for one in ones:
        if "call_ms" in one:
            key = (one["what"], one["replicas"])
            calls.setdefault(key, {}).setdefault(one["program"], []).append(one["call_ms"])
    if not calls:
        return
    print("\n| call | replicas | ndn ms | hdfs ms | ratio |\n|---|---|---|---|---|")
    for (what, replicas), by in calls.items():
        ndn, rpc = (middle(by[program]) if program in by else None for program in ("ndn", "hdfs"))
        ratio = f"{ndn / rpc:.2f}" if ndn and rpc else "–"
        print(f"| {what} | {replicas} | {ndn} | {rpc} | {ratio} |")

