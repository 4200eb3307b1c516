"""YARN with Kerberos on: what containers write with a delegation token alone is the submitter's.

The submitter has a ticket, and the key of a user of the site; machines have neither, and containers
only the token that Hadoop or Spark has fetched for them when the job was submitted. The site is the
cluster's own file system as well, with the staging directories.

Hadoop's jobs have maps alone: with Kerberos on its shuffle wants Hadoop's own native library, which
Maven does not have. Spark brings a shuffle of its own.
"""

import collections
import pathlib

from harness import kdc, nodes, peers, yarn
from harness.case import Case
from harness.lab import free_port, wait_until

# The user of the site, and, since staging directories have to be of the submitter, of Kerberos.
USER = "op"
SHELL = "org.apache.hadoop.fs.FsShell"
EXAMPLES = "org.apache.hadoop.examples.ExampleDriver"
LINES, RECORDS = 2000, 20_000
JOB = pathlib.Path(__file__).resolve().parent / "spark_on_yarn.py"
JOB_S = 480
# Of spark_on_yarn.py.
COUNTS = "0,6667\n1,6667\n2,6666\n"
WORDS = {"of": 5000, "many": 5000, **{f"word{at}": 5000 // 7 + (at < 5000 % 7) for at in range(7)}}


class Yarn(Case):
    """Not in CI: its daemons are large."""

    needs = ("spark", "hdfs", "hadoop-versions")
    limit_s = 1500

    def setUp(self):
        built = pathlib.Path(nodes.byname_binary() or "").parent / "java/maven"
        jars = sorted(built.glob("byname-hadoop-*.jar"))
        if not jars:
            self._missing("the file system for Hadoop is not built (scripts/build-java)")
        if why := kdc.missing():
            self._missing(why)
        super().setUp()
        self.jar = jars[-1]
        examples = (peers.HADOOP / "3.4.2/classpath").read_text().strip().split(":")
        self.examples = next(jar for jar in examples if "mapreduce-examples" in jar)

    def begin(self):
        """A site, a realm and a cluster; a ticket for the user."""
        self.site = nodes.byname_site_up(self.lab, "/lab", disks=2, replicas=2)
        self.realm = kdc.Realm(self.lab, free_port())
        keys = self.realm.start(USER, "rm/localhost", "nm/localhost")
        ticket = {"KRB5CCNAME": f"FILE:{self.lab.path('ticket')}"}
        wait_until(lambda: self.realm.has_ticket(keys[USER], USER, ticket), "a ticket")
        link = f"{self.site.link}"
        properties = {
            "fs.defaultFS": "ndn://lab", "fs.ndn.link.lab": link.replace("&", "&amp;"),
            "fs.ndn.impl": "byname.hadoop.NdnFileSystem",
            "fs.AbstractFileSystem.ndn.impl": "byname.hadoop.NdnFs"}
        self.cluster = yarn.Cluster(self.lab, self.realm, keys, [self.jar, self.examples],
                                    properties)
        # The key, and the ticket, of who submits: by environment, which no container has.
        self.own = {**self.realm.env, **ticket, **self.site.env}

    def program(self, main, *words, env=None, fails=False):
        """Runs a program of Hadoop's to its end; what it printed."""
        done = self.lab.run(self.cluster.command(main, *words), env or self.own, timeout_s=JOB_S)
        self.assertEqual(done.code != 0, fails, f"{done}\n{self.cluster.container_logs()}")
        return done.stdout.decode()

    def text(self, pattern):
        return self.program(SHELL, "-cat", f"ndn://lab/{pattern}")

    def owners(self, path):
        """Who has what is in a directory."""
        lines = self.program(SHELL, "-ls", f"ndn://lab/{path}").splitlines()
        return {line.split()[2] for line in lines if "ndn://lab/" in line}

    def test_maps_of_hadoop_s_jobs_read_and_write_with_the_token_that_was_fetched(self):
        self.begin()
        file = self.lab.path("text")
        file.write_text("one two three\n" * LINES)
        self.program(SHELL, "-put", file, "ndn://lab/text")
        # Without ticket and key nobody writes, where the token is not.
        nobody = {**self.realm.env, "KRB5CCNAME": "FILE:/nonexistent"}
        self.program(SHELL, "-put", file, "ndn://lab/none", env=nobody, fails=True)

        self.program(EXAMPLES, "teragen", RECORDS, "ndn://lab/generated")
        generated = self.program(SHELL, "-du", "-s", "ndn://lab/generated")
        self.assertEqual(int(generated.split()[0]), 100 * RECORDS)
        self.program(EXAMPLES, "wordcount", "-Dmapreduce.job.reduces=0", "ndn://lab/text",
                     "ndn://lab/words")
        words = collections.Counter(self.text("words/part-m-*").splitlines())
        self.assertEqual(words, {f"{word}\t1": LINES for word in ("one", "two", "three")})
        for path in ("generated", "words"):
            self.assertEqual(self.owners(path), {USER}, path)

    def test_spark_s_driver_and_executors_do_so_too(self):
        """The driver is a container as well, and then a program of the submitter's."""
        self.begin()
        for mode in ("cluster", "client"):
            self.submit(mode)
            base = f"spark-{mode}"
            self.assertEqual(self.text(f"{base}/counts/part-*"), COUNTS, mode)
            pairs = [line.split() for line in self.text(f"{base}/words/part-*").splitlines()]
            self.assertEqual({word: int(count) for word, count in pairs}, WORDS, mode)
            for path in (base, f"{base}/events", f"{base}/events/run=1", f"{base}/words"):
                self.assertEqual(self.owners(path), {USER}, path)

    def submit(self, mode):
        """Spark's program on YARN, the driver here or in a container."""
        spark = peers.SPARK_PYTHON.parent
        jars = sorted(spark.parent.glob("lib/*/site-packages/pyspark/jars"))[-1]
        options = self.cluster.java_options
        conf = {
            "spark.yarn.jars": f"local:{jars}/*",
            # What starts a driver or an executor on YARN reads from the site already, as who
            # submits one writes to it already, for whom --jars count.
            "spark.driver.extraClassPath": self.jar,
            "spark.executor.extraClassPath": self.jar,
            "spark.kerberos.access.hadoopFileSystems": "ndn://lab",
            "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "1",
            "spark.driver.extraJavaOptions": options,
            "spark.executor.extraJavaOptions": options,
            "spark.yarn.am.extraJavaOptions": options,
            "spark.executorEnv.PYSPARK_PYTHON": peers.SPARK_PYTHON,
            "spark.yarn.appMasterEnv.PYSPARK_PYTHON": peers.SPARK_PYTHON,
            "spark.yarn.populateHadoopClasspath": "false",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
        }
        argv = [spark / "spark-submit", "--master", "yarn", "--deploy-mode", mode,
                "--jars", self.jar, "--driver-memory", "512m", "--executor-memory", "512m",
                "--num-executors", "2"]
        for key, value in conf.items():
            argv += ["--conf", f"{key}={value}"]
        env = {**self.own, "HADOOP_CONF_DIR": str(self.cluster.settings),
               "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": str(peers.SPARK_PYTHON),
               "SPARK_SUBMIT_OPTS": options}
        done = self.lab.run([*argv, JOB, f"ndn://lab/spark-{mode}"], env, timeout_s=JOB_S)
        self.assertEqual(done.code, 0, f"{done}\n{self.cluster.container_logs()}")
