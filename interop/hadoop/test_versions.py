"""One jar with the releases of Hadoop that users have: its shell and its jobs at a site."""

import pathlib
import re

from harness import nodes, peers
from harness.case import Case, grid

PREFIX = "org.apache.hadoop.examples"
RECORDS = 20_000


class Versions(Case):
    needs = ("hadoop-versions",)
    limit_s = 480

    def setUp(self):
        built = pathlib.Path(nodes.byname_binary() or "").parent / "java/maven"
        jars = sorted(built.glob("byname-hadoop-*.jar"))
        if not jars:
            self._missing("the file system for Hadoop is not built (scripts/build-java)")
        self.jar = jars[-1]
        super().setUp()

    def program(self, main, *words, fails=False):
        """Runs a program of Hadoop's to its end; what it printed."""
        java = peers.JAVA_25 if self.version == "3.5.0" else "java"
        path = ":".join([str(self.settings), str(self.jar), self.class_path])
        argv = [java, "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", path,
                main, *map(str, words)]
        done = self.lab.run(argv, self.env, timeout_s=120)
        self.assertEqual(done.code != 0, fails, str(done))
        return done.stdout.decode()

    def shell(self, *words, fails=False):
        return self.program("org.apache.hadoop.fs.FsShell", *words, fails=fails)

    def begin(self, version):
        site = nodes.byname_site_up(self.lab, "/lab", disks=2, replicas=2)
        self.version, self.env = version, site.env
        self.class_path = (peers.HADOOP / version / "classpath").read_text().strip()
        printed = self.lab.run([nodes.byname_binary(), "hadoop-conf", site.link, "--authority",
                                "lab"], site.env)
        self.assertEqual(printed.code, 0, str(printed))
        more = {"fs.defaultFS": "ndn://lab", "fs.ndn.home": site.env["BYNAME_HOME"],
                "hadoop.tmp.dir": self.lab.path("tmp"), "mapreduce.job.reduces": 2,
                "mapreduce.job.maps": 2}
        rows = "".join(f"<property><name>{key}</name><value>{value}</value></property>\n"
                       for key, value in more.items())
        file = self.lab.path("conf/core-site.xml")
        text = printed.stdout.decode().replace("</configuration>", rows + "</configuration>")
        file.write_text(text)
        self.settings = file.parent

    @grid(version=peers.HADOOP_VERSIONS)
    def check_shell_and_jobs(self, version):
        self.begin(version)
        text = self.lab.path("text")
        text.write_text("one two\ntwo three\nthree two\n" * 2000)
        self.shell("-mkdir", "-p", "/text", "/away")
        self.shell("-put", text, "/text/a file")
        self.assertEqual(self.shell("-cat", "/text/a file"), text.read_text())
        self.shell("-mv", "/text/a file", "/text/b")
        self.assertRegex(self.shell("-ls", "/text"), r"\s56000 .*\s/text/b\n")
        self.shell("-cat", "/text/a file", fails=True)
        self.shell("-setfacl", "-m", "user:bert:r-x", "/text/b")
        self.assertIn("user:bert:r-x", self.shell("-getfacl", "/text/b"))
        self.program(f"{PREFIX}.WordCount", "/text", "/counted")
        counted = self.shell("-cat", "/counted/part-r-*")
        self.assertEqual(sorted(counted.split("\n")), ["", "one\t2000", "three\t4000", "two\t6000"])
        self.program(f"{PREFIX}.terasort.TeraGen", RECORDS, "/generated")
        self.program(f"{PREFIX}.terasort.TeraSort", "/generated", "/sorted")
        self.program(f"{PREFIX}.terasort.TeraValidate", "/sorted", "/report")
        self.assertTrue(re.search(r"checksum\s+\w+", self.shell("-cat", "/report/part-*")))
        self.shell("-rm", "-r", "-skipTrash", "/generated", "/sorted", "/away")
        self.shell("-test", "-e", "/generated", fails=True)
