"""Files written with 1, 2 and 3 replicas, beside HDFS and XRootD, on machines of namespaces.

A writer, three machines with a disk each and a hub are joined by links to the hub, which routes for
all: with byname it has the forwarder and the head, with HDFS the name node. Links have the MTU of
--mtu and count octets with their headers; what a link shows is the sum of both ways. All disks are
directories of one file system of this machine: that of --dir.

byname syncs what it acknowledges; HDFS and xrootd, as they come, do not.
"""

import contextlib
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import hdfs
from harness import xrootd
from harness.lab import Lab, wait_until
from harness.netns import Topology
from measure import process_cpu_s
from site_rig import Site

DISKS = 3
PORT = 6363
ROOT_PORT = 1094


class Network:
    """The machines, and what their links have carried."""

    def __init__(self, mtu, directory, disks=DISKS, writers=("writer",)):
        # What servers write lies where the sites' disks lie.
        tempfile.tempdir = str(directory)
        self.lab = Lab()
        self.disks = [f"disk{index}" for index in range(disks)]
        self.writers = list(writers)
        self.leaves = leaves = [*writers, *self.disks]
        self.topology = Topology(self.lab, ["hub", *leaves], [("hub", leaf) for leaf in leaves])
        hub = self.hub
        # Without sysctl(8), in the hub's namespace.
        hub.run(["sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"])
        for leaf in leaves:
            gateway = self.topology.address("hub", leaf)
            node = self.topology[leaf]
            # Of Ethernet's own length each frame is counted, as on a wire.
            segments = "gso_max_segs 1" if mtu <= 1500 else ""
            node.configure(f"link set to-hub mtu {mtu} {segments}",
                           f"route add default via {gateway}")
            hub.configure(f"link set to-{leaf} mtu {mtu} {segments}")
            node.addresses["lan"] = node.addresses["hub"]
        hub.addresses["lan"] = hub.addresses[self.writers[0]]

    @property
    def hub(self):
        """The machine in the middle."""
        return self.topology["hub"]

    def leaf(self, name):
        """A machine at the edge."""
        return self.topology[name]

    def link_bytes(self):
        """Octets that each link has carried, both ways."""
        shown = {one["ifname"]: one["stats64"] for one in self.hub.ask("-s", "link", "show")}
        both = {leaf: shown[f"to-{leaf}"] for leaf in self.leaves}
        return {leaf: one["tx"]["bytes"] + one["rx"]["bytes"] for leaf, one in both.items()}


def timed(network, argv, cpu_s, what, **options):
    """Wall time and processor time of a program and its servers, and what links have carried."""
    links, servers = network.link_bytes(), cpu_s()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    done = subprocess.run([str(word) for word in argv], check=False, capture_output=True, **options)
    wall_s = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{argv}: {done.stderr.decode(errors='replace')[-3000:]}")
    spent = {name: round(used - servers[name], 3) for name, used in cpu_s().items()}
    carried = {leaf: octets - links[leaf] for leaf, octets in network.link_bytes().items()}
    return {"part": "puts", "what": what, "wall_s": wall_s, "servers_cpu_s": spent,
            "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            "links": carried, "hosts_bytes": sum(carried.values())}


def make_input(directory, options):
    """A large file, and a tree of small ones."""
    large, small = directory / "large", directory / "small"
    with open(large, "wb") as out:
        left = options.size
        while left:
            piece = os.urandom(min(left, 1 << 20))
            out.write(piece)
            left -= len(piece)
    for number in range(options.files):
        below = small / f"d{number % 100}"
        below.mkdir(parents=True, exist_ok=True)
        (below / f"f{number}").write_bytes(os.urandom(options.file_size))
    return [("large", large), ("small", small)]


def allow(site):
    """Flags by which the forwarder takes names from other machines: of all keys there are here."""
    keys = site.run("key", "list", "--json").stdout.decode().splitlines()
    keys = [json.loads(line) for line in keys]
    return [word for key in keys
            for word in ("--allow-register", f"{key['name']}={key['key']}")]


@contextlib.contextmanager
def byname_site(options, network, place, replicas, routes=()):
    """A site on the machines; `routes` are flags of its forwarder."""
    hub = network.hub
    nodes = {"forwarder": hub, "head": hub, "command": network.leaf(network.writers[0])}
    disks = range(len(network.disks))
    nodes |= {f"disk {index}": network.leaf(f"disk{index}") for index in disks}
    # The head and the forwarder share a machine.
    # One address of the hub, by which all reach it: over UDP an answer has to come from there.
    reached_by = f"{options.transport}://{hub.addresses['lan']}:{PORT}"
    site = Site(options.byname, place, nodes, reached_by)
    site.nodes.pop("head")
    site.run("site", "init", "/lab", "--operator", "op", "--dir", "site",
             "--replicas", str(replicas))
    try:
        site.start_forwarder()
        site.start_head()
        for index in disks:
            site.run("site", "disk", "add", f"d{index}", "--server", f"s{index}",
                     *site.connect(""))
        site.stop()
        site.start_forwarder("--listen", reached_by, *allow(site), *routes)
        site.start_head()
        for index in disks:
            name = f"disk {index}"
            site.start(name, f"serving d{index}", "disk", f"d{index}", *site.connect(name))
        wait_until(lambda: is_well(site), "the site to be well", 60)
        yield site
    finally:
        site.stop()


def is_well(site):
    """Whether all disks are seen by the head."""
    argv = site.command("site", "status", *site.connect(""), name="")
    done = subprocess.run(argv, cwd=site.directory, env=site.environment, capture_output=True,
                          check=False)
    return done.returncode == 0


def put_by_name(options, network, directory, inputs, replicas):
    """`byname put`, and how soon the first octet is there for another reader."""
    place = directory / f"site{replicas}"
    place.mkdir()
    with byname_site(options, network, place, replicas) as site:
        for what, local in inputs:
            recursive = ["-r"] if local.is_dir() else []
            stored = site.stored_bytes()
            argv = site.command("-q", "put", *recursive, local, f"/lab/{what}", *site.connect())
            found = timed(network, argv, site.cpu_s, what, cwd=place, env=site.environment)
            found.update(program="byname put", replicas=replicas,
                         stored_bytes=site.stored_bytes() - stored)
            yield found
            first = first_octet(site) if what == "large" else None
            if first:
                yield dict(first, replicas=replicas)
            compare(site, what, local)
    shutil.rmtree(place)


def first_octet(site):
    """Time from a commit to the first octet for a reader elsewhere: a small file is put, and read
    by a program that is started when `put` has ended."""
    local = site.directory / "first"
    times = []
    for number in range(5):
        local.write_bytes(os.urandom(4096))
        name = f"/lab/first{number}"
        put = site.command("-q", "put", local, name, *site.connect())
        subprocess.run(put, cwd=site.directory, env=site.environment, check=True,
                       capture_output=True)
        argv = site.command("cat", name, *site.connect("disk 0"), name="disk 0")
        began = time.monotonic()
        with subprocess.Popen(argv, cwd=site.directory, env=site.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as reader:
            first = reader.stdout.read(1)
            times.append(time.monotonic() - began)
            if first + reader.stdout.read() != local.read_bytes():
                sys.exit(f"{name} is not what was put")
    return {"part": "first", "wall_s": sorted(times)[len(times) // 2], "program": "byname cat"}


def compare(site, what, local):
    """What was put is read back, outside the timing; other octets end the program."""
    got = site.directory / "got"
    recursive = ["-r"] if local.is_dir() else []
    site.run("get", *recursive, f"/lab/{what}", "-o", str(got), "--fresh", "--no-keep",
             *site.connect(""))
    if subprocess.run(["diff", "-rq", local, got], check=False).returncode:
        sys.exit(f"/lab/{what} is not what was put")
    shutil.rmtree(got) if got.is_dir() else got.unlink()


def put_by_hdfs(network, inputs, replicas):
    """`hdfs dfs -put`; its start alone is told, too."""
    leaves = [network.leaf(name) for name in network.disks]
    cluster = hdfs.Cluster(network.hub, leaves, replicas)
    writer = network.leaf("writer")

    def cpu_s():
        return {name: process_cpu_s(daemon.process.pid)
                for name, daemon in cluster.daemons.items()}

    try:
        empty = timed(network, writer.inside(cluster.nothing()), cpu_s, "nothing")
        yield dict(empty, program="hdfs dfs -test", replicas=replicas)
        for what, local in inputs:
            found = timed(network, writer.inside(cluster.put(local, f"/{what}")), cpu_s, what)
            yield dict(found, program="hdfs dfs -put", replicas=replicas)
    finally:
        cluster.stop()


def put_by_xrootd(network, inputs):
    """`xrdcp` to a server with local files: one replica."""
    node = network.leaf("disk0")
    # They are their owner's alone; xrootd has to get through.
    for above in (network.lab.dir, network.lab.dir.parent):
        above.chmod(0o711)
    place = xrootd.own(node.lab.dir / "xrootd")
    for name in ("admin", "local", "local/trees"):
        xrootd.own(place / name)
    config = place / "xrootd.cfg"
    config.write_text(f"all.export /\nxrd.port {ROOT_PORT}\nxrd.network nodnr\n"
                      f"all.adminpath {place}/admin\nall.pidpath {place}/admin\n"
                      f"oss.localroot {place}/local\n")
    as_user = ["setpriv", f"--reuid={xrootd.USER}", f"--regid={xrootd.USER}", "--clear-groups"]
    daemon = node.start("xrootd", [*as_user, "xrootd", "-c", config, "-n", "bench"],
                        {"HOME": str(place)})
    daemon.wait_for_log("initialization completed", 30)
    url = f"root://{node.addresses['lan']}:{ROOT_PORT}/"
    try:
        for what, local in inputs:
            recursive = ["-r"] if local.is_dir() else []
            # A tree goes below a directory that is there.
            target = f"{url}/trees/" if local.is_dir() else f"{url}/{what}"
            argv = ["xrdcp", "--nopbar", "--silent", *recursive, local, target]
            found = timed(network, network.leaf("writer").inside(argv),
                          lambda: {"xrootd": process_cpu_s(daemon.process.pid)}, what,
                          env={**os.environ, **xrootd.CLIENT_ENV})
            yield dict(found, program="xrdcp", replicas=1)
    finally:
        daemon.stop()
        shutil.rmtree(place, ignore_errors=True)


def copied(network, inputs, directory):
    """The same by `cp` on this machine, with a sync of the file system at the end."""
    to = directory / "copy"
    for what, local in inputs:
        script = 'cp -r "$1" "$2" && sync -f "$2"'
        found = timed(network, ["sh", "-c", script, "sh", local, to], dict, what)
        shutil.rmtree(to) if to.is_dir() else to.unlink()
        yield dict(found, program="cp, sync", replicas=1)


def measure(directory, options):
    """Everything in turn, round by round."""
    inputs = make_input(directory, options)
    network = Network(options.mtu, directory)
    try:
        for _ in range(options.rounds):
            if "cp" in options.programs:
                yield from copied(network, inputs, directory)
            if "xrdcp" in options.programs and xrootd_is_here():
                yield from put_by_xrootd(network, inputs)
            for replicas in options.replicas:
                if "byname" in options.programs:
                    yield from put_by_name(options, network, directory, inputs, replicas)
                if "hdfs" in options.programs and options.hdfs:
                    yield from put_by_hdfs(network, inputs, replicas)
    finally:
        network.lab.close()


def xrootd_is_here():
    """Whether there is a server, its client, and the user that it runs as."""
    return all(shutil.which(program) for program in ("xrootd", "xrdcp")) and \
        pathlib.Path("/usr/bin/setpriv").exists()


def show(found, options):
    """A table: medians of all rounds, and what the links carried."""
    puts = [one for one in found if one["part"] == "puts"]
    sizes = {"large": options.size, "small": options.files * options.file_size}
    print(f"\nlarge: {options.size} octets; small: {options.files} files of {options.file_size}; "
          f"{options.rounds} rounds, {options.transport}, MTU {options.mtu}")
    print("| what | program | replicas | wall s (all) | CPU s | servers' CPU s | links carry, of "
          "what is put: all | the writer's |\n|---|---|---|---|---|---|---|---|")
    keys = dict.fromkeys((one["what"], one["program"], one["replicas"]) for one in puts)
    for what, program, replicas in keys:
        ones = [one for one in puts
                if (one["what"], one["program"], one["replicas"]) == (what, program, replicas)]
        walls = " ".join(f"{wall:.2f}" for wall in sorted(one["wall_s"] for one in ones))
        cpu = middle(one["cpu_s"] for one in ones)
        servers = middle(sum(one["servers_cpu_s"].values()) for one in ones)
        size = sizes.get(what)
        share = [f"{middle(octets) / size:.3f}" if size else f"{middle(octets):.0f} octets"
                 for octets in ([one["hosts_bytes"] for one in ones],
                                [one["links"]["writer"] for one in ones])]
        print(f"| {what} | {program} | {replicas} | {walls} | {cpu:.2f} | {servers:.2f} "
              f"| {share[0]} | {share[1]} |")
    firsts = [one["wall_s"] for one in found if one["part"] == "first"]
    if firsts:
        print(f"first octet after a commit, by a new reader elsewhere, its start included: "
              f"{middle(firsts) * 1e3:.1f} ms (median)")


def middle(values):
    """The median, of an even number the higher."""
    values = sorted(values)
    return values[len(values) // 2]
