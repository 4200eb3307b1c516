"""HDFS as Maven has it: its programs, a cluster on nodes of a topology, its own benchmark.

Maven fetches Hadoop once (bench/hadoop/pom.xml); without Maven, Java or the network it is left out.
"""

import functools
import pathlib
import re
import shutil
import socket
import subprocess
import sys

from harness.lab import wait_until

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parent / "target/hdfs"
JAVA = ("java", "-Xmx1g", "-XX:+UseParallelGC")
# Files that `-put` copies side by side; it does one after the other unless it is told.
PUT_THREADS = 16
NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
BENCHMARK = "org.apache.hadoop.hdfs.server.namenode.NNThroughputBenchmark"
SHELL = "org.apache.hadoop.fs.FsShell"
FILES_BENCHMARK = "org.apache.hadoop.fs.TestDFSIO"
PORT = 8020
START_S = 90
LOGGING = """log4j.rootLogger=WARN,console
log4j.logger.org.apache.hadoop.hdfs.server.namenode.NNThroughputBenchmark=INFO
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%m%n
"""


@functools.cache
def class_path():
    """Hadoop's jars, or None."""
    if not shutil.which("java"):
        return None
    path, project = BUILD / "classpath", HERE / "hadoop/pom.xml"
    is_old = not path.exists() or path.stat().st_mtime < project.stat().st_mtime
    if is_old and shutil.which("mvn"):
        subprocess.run(["mvn", "--quiet", "--batch-mode", "--no-transfer-progress",
                        "--file", str(project), f"-Dbench.build={BUILD}",
                        "dependency:build-classpath"], stdout=sys.stderr, check=False)
    return path.read_text().strip() if path.exists() else None


def configuration(directory, name_node, settings):
    """A directory with Hadoop's settings."""
    directory.mkdir(parents=True, exist_ok=True)
    rows = {"fs.defaultFS": f"hdfs://{name_node}:{PORT}", **settings}
    properties = "".join(f"<property><name>{key}</name><value>{value}</value></property>\n"
                         for key, value in rows.items())
    text = f"<configuration>\n{properties}</configuration>\n"
    (directory / "core-site.xml").write_text(text)
    (directory / "hdfs-site.xml").write_text(text)
    return for_java(directory)


def for_java(directory):
    """What Java needs in a directory of settings."""
    (directory / "log4j.properties").write_text(LOGGING)
    # In place of the machine's resolver, which no namespace reaches: each unknown name costs 10 s.
    (directory / "hosts").write_text(f"127.0.0.1 localhost {socket.gethostname()}\n")
    return directory


def command(settings, main, *words, jars=()):
    """The command of a Java program of Hadoop's."""
    hosts = f"-Djdk.net.hosts.file={settings}/hosts"
    path = ":".join(map(str, [settings, *jars, class_path()]))
    return [*JAVA, hosts, "-cp", path, main, *map(str, words)]


class Cluster:
    """A name node and data nodes, each on a node of a topology."""

    def __init__(self, hub, leaves, replicas, settings=None):
        self.daemons = {}
        directory = hub.lab.dir / f"hdfs-{replicas}"
        self.directory = directory
        shared = {
            "dfs.replication": replicas,
            "dfs.namenode.name.dir": f"file://{directory}/name",
            "dfs.namenode.rpc-bind-host": "0.0.0.0",
            "dfs.namenode.http-address": "0.0.0.0:0",
            "dfs.namenode.datanode.registration.ip-hostname-check": "false",
            "dfs.namenode.redundancy.considerLoad": "false",
            "dfs.namenode.fs-limits.min-block-size": 0,
            "dfs.datanode.address": "0.0.0.0:9866",
            "dfs.datanode.http.address": "0.0.0.0:9864",
            "dfs.datanode.ipc.address": "0.0.0.0:9867",
            **(settings or {}),
        }
        name_node = hub.addresses["lan"]
        conf = configuration(directory / "hub", name_node, shared)
        formatted = hub.run(command(conf, NAME_NODE, "-format", "-force"), timeout_s=START_S)
        assert formatted.code == 0, formatted
        self.daemons["name node"] = hub.start("namenode", command(conf, NAME_NODE))
        with hub.entered():
            wait_until(lambda: accepts(name_node), "the name node", START_S)
        for leaf in leaves:
            own = {**shared, "dfs.datanode.data.dir": f"file://{directory}/{leaf.name}/data",
                   "dfs.datanode.hostname": leaf.addresses["lan"]}
            conf = configuration(directory / leaf.name, name_node, own)
            daemon = leaf.start("datanode", command(conf, DATA_NODE))
            self.daemons[f"data node {leaf.name}"] = daemon
        self.settings = directory / "hub"
        report = command(self.settings, "org.apache.hadoop.hdfs.tools.DFSAdmin", "-report")
        live = f"Live datanodes ({len(leaves)})".encode()
        wait_until(lambda: live in hub.run(report).stdout, "the data nodes", START_S)

    def put(self, local, name):
        """The command that writes a file or a tree."""
        return command(self.settings, SHELL, "-put", "-t", PUT_THREADS, local, name)

    def nothing(self):
        """A command that does next to nothing: what starting one takes."""
        return command(self.settings, SHELL, "-test", "-e", "/")

    def stop(self):
        """Ends it and removes what it has."""
        for daemon in self.daemons.values():
            daemon.stop()
        shutil.rmtree(self.directory, ignore_errors=True)


def accepts(address):
    """Whether the name node listens."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((address, PORT)) == 0


def rates(directory, count, threads):
    """Operations in a second of NNThroughputBenchmark, a name node without network."""
    settings = configuration(directory / "throughput", "127.0.0.1", {
        "dfs.namenode.name.dir": f"file://{directory}/throughput/name",
        "dfs.namenode.http-address": "127.0.0.1:0",
        "dfs.namenode.fs-limits.min-block-size": 0,
        "hadoop.tmp.dir": f"{directory}/throughput/tmp",
    })
    subprocess.run(command(settings, NAME_NODE, "-format", "-force"), capture_output=True,
                   check=True)
    found = {}
    names = {"create": "create", "fileStatus": "stat", "rename": "rename", "delete": "remove"}
    for operation, phase in names.items():
        argv = command(settings, BENCHMARK, "-fs", "file:///", "-op", operation,
                       "-threads", threads, "-files", count, "-filesPerDir", 1000)
        done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False,
                              cwd=directory)
        rate = re.search(r"Ops per sec: ([0-9.]+)", done.stderr + done.stdout)
        if not rate:
            sys.exit(f"NNThroughputBenchmark {operation}:\n{(done.stdout + done.stderr)[-3000:]}")
        found[phase] = float(rate.group(1))
    shutil.rmtree(directory / "throughput", ignore_errors=True)
    return found
