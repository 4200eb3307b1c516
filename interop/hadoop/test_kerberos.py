"""Hadoop with Kerberos on: its shell at a site, and a token that stands in for the ticket."""

import pathlib

from harness import kdc, nodes, peers
from harness.case import Case
from harness.lab import free_port, wait_until

SHELL = "org.apache.hadoop.fs.FsShell"
TOKENS = "org.apache.hadoop.security.token.DtUtilShell"
# "who is it": the login that a program of Hadoop's has.
LOGIN = "org.apache.hadoop.security.UserGroupInformation"


class Kerberos(Case):
    needs = ("spark",)
    limit_s = 240

    def setUp(self):
        built = pathlib.Path(nodes.byname_binary() or "").parent / "java/maven"
        jars = sorted(built.glob("byname-hadoop-*.jar"))
        if not jars:
            self._missing("the file system for Hadoop is not built (scripts/build-java)")
        if why := kdc.missing():
            self._missing(why)
        super().setUp()
        theirs = sorted(peers.SPARK_PYTHON.parent.parent.glob("lib/*/site-packages/pyspark/jars"))
        self.class_path = f"{jars[-1]}:{theirs[-1]}/*"

    def settings(self, name, site, home, **more):
        """A core-site.xml of what `byname hadoop-conf` says, with security on."""
        printed = self.lab.run([nodes.byname_binary(), "hadoop-conf", site.link, "--authority",
                                "lab"], site.env)
        self.assertEqual(printed.code, 0, str(printed))
        more |= {"hadoop.security.authentication": "kerberos", "fs.ndn.home": home,
                 "fs.permissions.umask-mode": "077"}
        rows = "".join(f"<property><name>{key}</name><value>{value}</value></property>\n"
                       for key, value in more.items())
        file = self.lab.path(f"{name}/core-site.xml")
        text = printed.stdout.decode().replace("</configuration>", rows + "</configuration>")
        file.write_text(text)
        return file.parent

    def program(self, settings, main, *words, env=None, fails=False):
        """Runs a program of Hadoop's to its end; what it printed."""
        argv = ["java", "-Xmx256m", f"-Djava.security.krb5.conf={self.realm.config}", "-cp",
                f"{settings}:{self.class_path}", main, *map(str, words)]
        done = self.lab.run(argv, {**self.realm.env, **self.ticket, **(env or {})}, timeout_s=60)
        self.assertEqual(done.code != 0, fails, str(done))
        return done.stdout.decode()

    def test_a_user_with_a_ticket_gets_a_token_that_acts_for_the_site_s_user(self):
        site = nodes.byname_site_up(self.lab, "/lab", disks=1, replicas=1)
        self.realm = kdc.Realm(self.lab, free_port())
        keys = self.realm.start("alice", "rm/localhost")
        self.ticket = {"KRB5CCNAME": f"FILE:{self.lab.path('ticket')}"}
        own = self.settings("own", site, site.env["BYNAME_HOME"])
        # Security is on: without a ticket Hadoop knows nobody.
        self.assertNotIn("auth:KERBEROS", self.program(own, LOGIN))
        wait_until(lambda: self.realm.has_ticket(keys["alice"], "alice", self.ticket), "a ticket")
        said = self.program(own, LOGIN)
        self.assertIn(f"alice@{kdc.NAME} (auth:KERBEROS)", said)

        text = self.lab.path("text")
        text.write_text("one two three\n" * 2000)
        self.program(own, SHELL, "-put", text, "ndn://lab/text")
        self.assertEqual(self.program(own, SHELL, "-cat", "ndn://lab/text"), text.read_text())
        tokens = self.lab.path("job.tokens")
        self.program(own, TOKENS, "get", "ndn://lab", "-renewer", f"rm/localhost@{kdc.NAME}",
                     tokens)
        self.assertIn("NDN_DELEGATION_TOKEN", self.program(own, TOKENS, "print", tokens))

        # On another machine there is no key: nothing is written, but with the token.
        away = self.settings("away", site, self.lab.path("away-home/.keep").parent)
        self.program(away, SHELL, "-put", text, "ndn://lab/none", fails=True)
        bears = {"HADOOP_TOKEN_FILE_LOCATION": str(tokens), "KRB5CCNAME": "FILE:/nonexistent"}
        self.program(away, SHELL, "-put", text, "ndn://lab/by-token", env=bears)
        owner = r"\s(\S+)\s+\S+\s+28000 .*ndn://lab/"
        for name in ("text", "by-token"):
            listed = self.program(own, SHELL, "-ls", f"ndn://lab/{name}")
            self.assertRegex(listed, owner + name)

        # By who may: he who holds the ticket ends the loan.
        self.program(own, TOKENS, "cancel", "-alias", "ndn://lab", tokens)
        self.program(away, SHELL, "-put", text, "ndn://lab/after", env=bears, fails=True)
