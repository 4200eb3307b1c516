"""What the stores of a tree of forwarders answer of jobs' Interests, by workload and phase.

Machines that compute have a forwarder each, which leads to that of the hub; there the disks and the
head are. Each computes a part of a job in one Java of its own, all at the same time, as a user of
its own, so that the hub knows where each writes from; what goes by other ways than names in a
cluster (the shuffle, job files) goes by none here. papers/002 has what infinite stores at 16 and
128 machines below a tree could answer (Figures 7 to 9). Stores are of the default size and policy,
and empty at the start.
"""

import contextlib
import json
import re
import subprocess
import sys
import threading
import time

import hdfs
import site_hadoop
import site_hits
from site_puts import PORT, Network, byname_site

SITE = "/lab"


def missing(options):
    """Why this part cannot be measured, or None."""
    return site_hadoop.missing(options)


class Tree:
    """A site, and machines that compute, each with a forwarder below the hub's."""

    def __init__(self, network, site, place, options):
        self.network, self.site, self.place = network, site, place
        self.jar = site_hadoop.jar(options)
        self.machines = network.writers
        head = (place / "head.log").read_text()
        self.link = re.search(r"byname:/lab\S*", head)[0]
        self.settings = [self._machine(name) for name in self.machines]
        site.run("chmod", "777", SITE, *site.connect(""))

    def _machine(self, name):
        """A forwarder, a user with a key, and Hadoop's settings."""
        socket, home = self._socket(name), self.place / f"home-{name}"
        node = self.network.leaf(name)
        self.site.nodes[f"leaf {name}"] = node
        self.site.start(f"leaf {name}", "listening", "forward", "--listen", socket,
                        "--listen", f"tcp://{node.addresses['lan']}:{PORT}",
                        "--route", f"{SITE}={self.site.endpoint}")
        join = subprocess.run([self.site.byname, "site", "join", self.link, "--user", name],
                              env={**self.site.environment, "BYNAME_HOME": str(home)},
                              capture_output=True, check=True)
        certificate = self.place / f"{name}.cert"
        certificate.write_bytes(join.stdout)
        self.site.run("site", "user", "add", name, "--key", certificate, *self.site.connect(""))
        printed = self.site.run("hadoop-conf", self.link, "--authority", "lab").stdout.decode()
        more = {"fs.defaultFS": "ndn://lab", "fs.ndn.connect": socket, "fs.ndn.home": home,
                "fs.ndn.spool.dir": self.place, "hadoop.tmp.dir": self.place / f"tmp-{name}",
                "test.build.data": f"/dfsio-{name}"}
        rows = "".join(f"<property><name>{key}</name><value>{value}</value></property>\n"
                       for key, value in more.items())
        settings = self.place / f"conf-{name}"
        settings.mkdir()
        text = printed.replace("</configuration>", rows + "</configuration>")
        (settings / "core-site.xml").write_text(text)
        hdfs.for_java(settings)
        with open(settings / "log4j.properties", "a", encoding="utf-8") as out:
            out.write(site_hits.LOGGING)
        return settings

    def _socket(self, name):
        return f"unix://{self.place}/{name}.sock"

    def counts(self, name=None):
        """Interests that a machine's store has answered and those that it has not; the hub's."""
        at = self._socket(name) if name else self.site.socket
        shown = json.loads(self.site.run("cs", "show", "--json", "--connect", at).stdout)
        return shown["hits"], shown["misses"]

    def carried(self):
        """Octets that links have carried: those of machines that compute, and those of disks."""
        links = self.network.link_bytes()
        return (sum(links[name] for name in self.machines),
                sum(links[name] for name in self.network.disks))

    def start(self, index, main, *words):
        """Starts a program on one of the machines."""
        argv = hdfs.command(self.settings[index], main, *words, jars=[self.jar])
        inside = self.network.leaf(self.machines[index]).inside([str(word) for word in argv])
        return subprocess.Popen(inside, cwd=self.place, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True,
                                env={**self.site.environment, "HADOOP_USER_NAME": "root"})


class Run:
    """A workload of which every machine does a part, and what was counted when phases began.

    A phase begins at the hub when the first of the machines begins it.
    """

    def __init__(self, tree, workload, phases):
        self.tree, self.workload, self.phases = tree, workload, phases
        self.lock = threading.Lock()
        self.at_hub, self.at_leaves = {}, {}

    def to_end(self, program):
        """`program(index)` says what each machine runs; rows of what was counted."""
        threads = [threading.Thread(target=self._one, args=(index, program(index)))
                   for index in range(len(self.tree.machines))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.at_hub["end"] = (time.monotonic(), self.tree.counts(), self.tree.carried())
        if len(self.at_leaves) != len(self.tree.machines):
            sys.exit(f"{self.workload}: not every machine has ended well")
        return list(self._rows())

    def _one(self, index, words):
        """One machine's part."""
        marks = {}
        self._mark(index, marks, self.phases[0][0])
        left, said = list(self.phases[1:]), []
        job = self.tree.start(index, *words)
        for line in job.stderr:
            said.append(line)
            if left and left[0][1].search(line):
                self._mark(index, marks, left.pop(0)[0])
        if job.wait():
            print(f"{self.workload}, {index}: {''.join(said)[-3000:]}", file=sys.stderr)
            return
        marks["end"] = self.tree.counts(self.tree.machines[index])
        with self.lock:
            self.at_leaves[index] = marks

    def _mark(self, index, marks, phase):
        marks[phase] = self.tree.counts(self.tree.machines[index])
        with self.lock:
            if phase not in self.at_hub:
                self.at_hub[phase] = (time.monotonic(), self.tree.counts(), self.tree.carried())

    def _rows(self):
        names = [name for name, _ in self.phases if name in self.at_hub] + ["end"]
        for phase, after in zip(names, names[1:]):
            leaves = [self._leaf(marks, phase) for marks in self.at_leaves.values()]
            (began, top, links), (ended, top_end, links_end) = (self.at_hub[phase],
                                                               self.at_hub[after])
            yield {"part": "tree", "workload": self.workload, "phase": phase,
                   "s": ended - began, "leaves": [sum(column) for column in zip(*leaves)],
                   "each": leaves, "top": [now - then for now, then in zip(top_end, top)],
                   "links": [now - then for now, then in zip(links_end, links)]}

    def _leaf(self, marks, phase):
        """Of one machine's store: hits and misses of a phase, none if it had no such phase."""
        if phase not in marks:
            return [0, 0]
        names = list(marks)
        after = marks[names[names.index(phase) + 1]]
        return [now - then for now, then in zip(after, marks[phase])]


ALL = [("all", re.compile(r""))]


def workloads(tree, options):
    """Everything in turn; what one writes the next one reads."""
    count = len(tree.machines)
    each = options.size // 4 // count
    flags = (site_hits.PROGRESS, site_hits.MAPS, site_hits.SPLIT)
    examples = site_hits.EXAMPLES
    tera, rows = f"{examples}.terasort", each // site_hits.RECORD
    for index in range(count):
        # Each has words of its own, or all would have one content.
        text = tree.place / f"text{index}"
        site_hits.text_file(text, each)
        text.write_text(f"machine{index}\n" + text.read_text())

    def words(of, to):
        return lambda index: (f"{examples}.WordCount", *flags, of(index), f"/{to}-{index}")

    def files(what):
        return lambda index: (hdfs.FILES_BENCHMARK, f"-{what}", "-nrFiles", site_hadoop.FILES,
                              "-size", f"{max((each >> 20) // site_hadoop.FILES, 1)}MB",
                              "-resFile", tree.place / f"dfsio-{what}-{index}")

    phases = site_hits.PHASES
    yield ("put of texts", ALL, lambda index: (
        hdfs.SHELL, "-put", tree.place / f"text{index}", f"/text-{index}"))
    yield "WordCount, each its own", phases, words(lambda index: f"/text-{index}", "own")
    yield ("WordCount, each the next one's", phases,
           words(lambda index: f"/text-{(index + 1) % count}", "next"))
    yield "WordCount, all the same", phases, words(lambda index: "/text-0", "same")
    yield "TeraGen", phases, lambda index: (
        f"{tera}.TeraGen", *flags, "-Dmapreduce.job.maps=4", rows, f"/gen-{index}")
    yield "TeraSort", phases, lambda index: (
        f"{tera}.TeraSort", *flags, "-Dmapreduce.job.reduces=2", f"/gen-{index}",
        f"/sorted-{index}")
    yield ("TeraValidate, each the next one's", phases, lambda index: (
        f"{tera}.TeraValidate", *flags, f"/sorted-{(index + 1) % count}", f"/report-{index}"))
    for what in ("write", "read"):
        yield f"TestDFSIO {what}", ALL, files(what)


@contextlib.contextmanager
def tree_of(options, network, place, replicas):
    """A site with machines below it."""
    routes = []
    for name in network.writers:
        to = f"tcp://{network.leaf(name).addresses['lan']}:{PORT}"
        routes += ["--route", f"ndn:{SITE}/32=user/{name}={to}"]
    with byname_site(options, network, place, replicas, routes) as site:
        yield Tree(network, site, place, options)


def measure(directory, options):
    """All workloads at one site for each number of replicas."""
    writers = [f"node{index}" for index in range(options.machines)]
    network = Network(options.mtu, directory, max(3, *options.replicas), writers)
    try:
        for replicas in options.replicas:
            place = directory / f"tree{replicas}"
            place.mkdir()
            with tree_of(options, network, place, replicas) as tree:
                for workload, phases, program in workloads(tree, options):
                    for row in Run(tree, workload, phases).to_end(program):
                        yield dict(row, replicas=replicas)
    finally:
        network.lab.close()


def share(counts):
    """The part that a store answered."""
    return f"{counts[0] / sum(counts):.2f}" if sum(counts) else "–"


def show(found, options):
    """A table."""
    print(f"\nWhat stores answered, {options.machines} machines with a forwarder each below the "
          f"hub's, {options.size // 4} octets a workload, {options.transport}, MTU {options.mtu}")
    print("| workload | phase | R | s | Interests at leaves | from their stores | at the top "
          "| from its store | machines' links MB | disks' links MB |\n"
          "|---|---|---|---|---|---|---|---|---|---|")
    for one in found:
        if one["part"] == "tree":
            machines, disks = (octets / 1e6 for octets in one["links"])
            print(f"| {one['workload']} | {one['phase']} | {one['replicas']} | {one['s']:.1f} "
                  f"| {sum(one['leaves'])} | {share(one['leaves'])} | {sum(one['top'])} "
                  f"| {share(one['top'])} | {machines:.1f} | {disks:.1f} |")
