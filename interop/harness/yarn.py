"""YARN with Kerberos on: a resource and a node manager on this machine's loopback interface.

What machines know of a site is its link; no key is in their configuration or environment.
"""

from . import kdc, peers
from .lab import free_port, wait_until

RESOURCE_MANAGER = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
NODE_MANAGER = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
FIFO = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler"
SHUFFLE = "org.apache.hadoop.mapred.ShuffleHandler"
START_S = 120
LOG_FILES_MAX, LOG_CHARS_MAX = 6, 3000
# What Hadoop 3.4's own scripts say to Java 17.
OPENS = "--add-opens=java.base/java.lang=ALL-UNNAMED"
LOGGING = """log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.SimpleLayout
"""


class Cluster:
    """Its daemons are `rm` and `nm` of the realm."""

    def __init__(self, lab, realm, keys, jars, properties):
        """`jars` are in every class path beside Hadoop's; `properties` are of every machine."""
        self.lab, self.realm = lab, realm
        self.class_path = ":".join([*map(str, jars), peers.HDFS.read_text().strip()])
        self.java_options = f"{OPENS} -Djava.security.krb5.conf={realm.config}"
        self.settings = self._write("yarn/machines", self._properties(keys) | properties)
        manager = self._daemon("rm", RESOURCE_MANAGER)
        manager.wait_for_log("Transitioned to active state", START_S)
        node = self._daemon("nm", NODE_MANAGER)
        node.wait_for_log("Registered with ResourceManager as", START_S)

    def _properties(self, keys):
        own = {
            "hadoop.security.authentication": "kerberos",
            "hadoop.tmp.dir": self.lab.path("yarn/tmp"),
            "fs.permissions.umask-mode": "077",
            "yarn.resourcemanager.scheduler.class": FIFO,
            "yarn.nodemanager.hostname": "localhost",
            "yarn.nodemanager.local-dirs": self.lab.path("yarn/local"),
            "yarn.nodemanager.log-dirs": self.lab.path("yarn/logs"),
            "yarn.nodemanager.resource.memory-mb": 4096,
            "yarn.nodemanager.resource.cpu-vcores": 4,
            "yarn.scheduler.minimum-allocation-mb": 256,
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": 99,
            "yarn.nodemanager.aux-services": "mapreduce_shuffle",
            "yarn.nodemanager.aux-services.mapreduce_shuffle.class": SHUFFLE,
            "mapreduce.shuffle.port": free_port(),
            "mapreduce.framework.name": "yarn",
            # There is no server for the history of jobs.
            "mapreduce.jobhistory.address": "",
            "mapreduce.map.memory.mb": 512,
            "mapreduce.reduce.memory.mb": 512,
            "yarn.app.mapreduce.am.resource.mb": 768,
            "mapreduce.task.io.sort.mb": 32,
            "mapreduce.job.maps": 2,
            "yarn.app.mapreduce.am.command-opts": f"-Xmx384m {self.java_options}",
            "mapreduce.map.java.opts": f"-Xmx256m {self.java_options}",
            "mapreduce.reduce.java.opts": f"-Xmx256m {self.java_options}",
            "yarn.application.classpath": self._in_containers(),
            "mapreduce.application.classpath": self._in_containers(),
        }
        for role, whole in (("rm", "resourcemanager"), ("nm", "nodemanager")):
            own[f"yarn.{whole}.principal"] = f"{role}/localhost@{kdc.NAME}"
            own[f"yarn.{whole}.keytab"] = keys[f"{role}/localhost"]
        for name in ("resourcemanager.address", "resourcemanager.scheduler.address",
                     "resourcemanager.resource-tracker.address", "resourcemanager.admin.address",
                     "resourcemanager.webapp.address", "nodemanager.address",
                     "nodemanager.localizer.address", "nodemanager.webapp.address"):
            own[f"yarn.{name}"] = f"localhost:{free_port()}"
        return own

    def _in_containers(self):
        return ",".join([str(self.lab.path("yarn/machines")), *self.class_path.split(":")])

    def _write(self, folder, properties):
        rows = "".join(f"<property><name>{key}</name><value>{value}</value></property>\n"
                       for key, value in properties.items())
        for file in ("core-site.xml", "yarn-site.xml", "mapred-site.xml"):
            to = self.lab.path(f"{folder}/{file}")
            to.write_text(f"<configuration>\n{rows}</configuration>\n")
        self.lab.path(f"{folder}/log4j.properties").write_text(LOGGING)
        return self.lab.path(folder)

    def command(self, main, *words):
        """The command of a program on one of the machines."""
        return ["java", "-Xmx384m", *self.java_options.split(), "-cp",
                f"{self.settings}:{self.class_path}", main, *map(str, words)]

    def _daemon(self, name, main):
        return self.lab.start(name, self.command(main), self.realm.env)

    def container_logs(self):
        """The end of what the containers printed that wrote last."""
        files = [file for file in self.lab.path("yarn/logs").rglob("*") if file.is_file()]
        files.sort(key=lambda file: file.stat().st_mtime)
        return "\n".join(f"--- {file.parent.name}/{file.name}\n"
                         f"{file.read_text(errors='replace')[-LOG_CHARS_MAX:]}"
                         for file in files[-LOG_FILES_MAX:])
