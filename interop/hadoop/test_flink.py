"""Flink SQL finds below a path of a site what it finds in a directory."""

import pathlib
import re

from harness import nodes, peers
from harness.case import Case

WORDS = pathlib.Path(__file__).resolve().parent / "flink/Words.java"
OPENS = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ("lang", "util")]


class Flink(Case):
    needs = ("flink",)

    def setUp(self):
        built = pathlib.Path(nodes.byname_binary() or "").parent / "java/maven"
        jars = sorted(built.glob("byname-hadoop-*.jar"))
        if not jars:
            self._missing("the file system for Hadoop is not built (scripts/build-java)")
        self.jar = jars[-1]
        super().setUp()

    def test_tables_are_written_overwritten_and_read(self):
        site = nodes.byname_site_up(self.lab, "/lab", disks=2, replicas=2)
        printed = self.lab.run([nodes.byname_binary(), "hadoop-conf", site.link, "--authority",
                                "lab"], site.env)
        self.assertEqual(printed.code, 0, str(printed))
        # Flink flushes to readers whatever it writes.
        home = site.env["BYNAME_HOME"]
        rows = f"<property><name>fs.ndn.home</name><value>{home}</value></property>\n"
        settings = self.lab.path("conf/core-site.xml")
        settings.write_text(printed.stdout.decode().replace(
            "</configuration>", rows + "</configuration>"))
        path = f"{settings.parent}:{self.jar}:{peers.FLINK.read_text().strip()}"
        found = []
        for base in (self.lab.path("local").as_uri(), "ndn://lab/flink"):
            argv = ["java", *OPENS, "-Xmx768m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
                    "-cp", path, WORDS, base]
            env = site.env | {"HADOOP_CONF_DIR": str(settings.parent)}
            done = self.lab.run(argv, env, timeout_s=110)
            self.assertEqual(done.code, 0, str(done))
            found.append(re.findall(r"^row (.*)$", done.stdout.decode(), re.MULTILINE))
        self.assertEqual(found[0], ["+I[%, 1]", "+I[a b, 1]", "+I[one, 1]", "+I[two, 2]"])
        self.assertEqual(found[1], found[0])
