"""HDFS with one data node on this machine's loopback interface."""

from . import peers
from .lab import free_port, wait_until

NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
ADMIN = "org.apache.hadoop.hdfs.tools.DFSAdmin"
START_S = 90
LOGGING = """log4j.rootLogger=WARN,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.SimpleLayout
"""


def start(lab):
    """Starts it; the URI of its root."""
    ports = [free_port() for _ in range(5)]
    uri = f"hdfs://127.0.0.1:{ports[0]}"
    settings = {
        "fs.defaultFS": uri,
        "dfs.replication": 1,
        "dfs.namenode.name.dir": lab.path("hdfs/name").as_uri(),
        "dfs.namenode.http-address": f"127.0.0.1:{ports[1]}",
        "dfs.datanode.data.dir": lab.path("hdfs/data").as_uri(),
        "dfs.datanode.address": f"127.0.0.1:{ports[2]}",
        "dfs.datanode.http.address": f"127.0.0.1:{ports[3]}",
        "dfs.datanode.ipc.address": f"127.0.0.1:{ports[4]}",
        # Whoever Hadoop calls the user may write.
        "dfs.permissions.enabled": "false",
        "hadoop.tmp.dir": lab.path("hdfs/tmp"),
    }
    rows = "".join(f"<property><name>{key}</name><value>{value}</value></property>\n"
                   for key, value in settings.items())
    for file in ("core-site.xml", "hdfs-site.xml"):
        lab.path(f"hdfs/conf/{file}").write_text(f"<configuration>\n{rows}</configuration>\n")
    lab.path("hdfs/conf/log4j.properties").write_text(LOGGING)
    path = f"{lab.path('hdfs/conf')}:{peers.HDFS.read_text().strip()}"

    def java(main, *words):
        return ["java", "-Xmx256m", "-cp", path, main, *words]

    formatted = lab.run(java(NAME_NODE, "-format", "-force"), timeout_s=START_S)
    assert formatted.code == 0, formatted
    lab.start("namenode", java(NAME_NODE))
    node = lab.start("datanode", java(DATA_NODE))
    report = java(ADMIN, "-report")
    wait_until(lambda: b"Live datanodes (1)" in lab.run(report, timeout_s=START_S).stdout,
               "the data node", START_S, node)
    return uri
