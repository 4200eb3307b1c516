"""Spark works on files of a site as on those of the local file system, while a disk dies, and as on
those of HDFS."""

import json
import pathlib
import re
import signal
from xml.etree import ElementTree

from harness import hdfs, lab, nodes, peers
from harness.case import Case

JOB = pathlib.Path(__file__).resolve().parent / "spark_job.py"
JOB_LIMIT_S = 540
DONE = re.compile(r"^(\w+) (\{.*\})$", re.MULTILINE)


class Work(Case):
    """Spark with the file system for Hadoop."""

    # Seven kinds of work, twice, by a Java that has two busy processors to share.
    limit_s = 600

    def setUp(self):
        built = pathlib.Path(nodes.byname_binary() or "").parent / "java/maven"
        jars = sorted(built.glob("byname-hadoop-*.jar"))
        if not jars:
            self._missing("the file system for Hadoop is not built (scripts/build-java)")
        self.jar = jars[-1]
        super().setUp()

    def hadoop_properties(self, env, link):
        """What `byname hadoop-conf` says that a core-site.xml has to have."""
        printed = self.lab.run([nodes.byname_binary(), "hadoop-conf", link], env)
        self.assertEqual(printed.code, 0, str(printed))
        # As strict as Hadoop's own parser.
        found = ElementTree.fromstring(printed.stdout.decode()).findall("property")
        properties = {one.findtext("name"): one.findtext("value") for one in found}
        self.assertIn("fs.ndn.link.lab", properties)
        return properties | {"fs.ndn.home": env["BYNAME_HOME"]}

    def begin(self, label, bases):
        """Starts all kinds of work below two paths, and an answer to what was found by now."""
        # Spark's own place for what it shuffles, and no other machine's address.
        env = {"SPARK_LOCAL_DIRS": str(self.lab.path("spark/.keep").parent),
               "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": str(peers.SPARK_PYTHON)}
        conf = json.dumps(self.hadoop_properties(self.site.env, self.site.link))
        job = self.lab.start(label, [peers.SPARK_PYTHON, JOB, self.jar, conf, *bases], env)
        return job, lambda: dict(DONE.findall(job.log_text()))

    def compare(self, job, found):
        """All kinds of work have found below both paths the same, and something."""
        self.assertEqual(job.process.wait(JOB_LIMIT_S), 0, job.log_text()[-4000:])
        self.assertEqual(len(found()), 7, sorted(found()))
        for name, said in found().items():
            both = json.loads(said)
            self.assertTrue(both["named"], name)
            self.assertEqual(both["named"], both["local"], name)


class Spark(Work):
    needs = ("spark",)

    def test_all_kinds_of_work_find_in_a_site_what_they_find_in_a_directory(self):
        """Two of three disks have each file; the third dies after the first kind of work."""
        self.site = nodes.byname_site_up(self.lab, "/lab", disks=2, replicas=2)
        third = nodes.byname_site_disk(self.lab, self.site, "third")
        local = self.lab.path("local/.keep").parent
        job, found = self.begin("spark", ["ndn://lab", local.as_uri()])
        lab.wait_until(found, "the first work", JOB_LIMIT_S, job)
        third.signal(signal.SIGKILL)
        self.compare(job, found)


class SparkBesideHdfs(Work):
    """Not in CI: HDFS is large."""

    needs = ("spark", "hdfs")

    def test_all_kinds_of_work_find_in_a_site_what_they_find_in_hdfs(self):
        self.site = nodes.byname_site_up(self.lab, "/lab", disks=2, replicas=2)
        job, found = self.begin("spark", ["ndn://lab", f"{hdfs.start(self.lab)}/work"])
        self.compare(job, found)
