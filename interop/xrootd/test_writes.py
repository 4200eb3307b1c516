"""Clients of XRootD change a site through a door: as the users whom its table makes of them."""

import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from harness import xrootd  # noqa: E402  (the path above must come first)
from harness.lab import wait_until  # noqa: E402
from site_door import (  # noqa: E402
    NOT_AUTHORIZED, NOT_FOUND, OVER_QUOTA, SITE, SiteDoorCase,
)

TABLE = """
[[map]]
method = "sss"
name = "mallory"
deny = true

[[map]]
method = "sss"
name = "liar"
user = "op"

[[map]]
method = "sss"
name = "*"
user = "$1"
"""


class Writes(SiteDoorCase):
    """Users whom xrootd knows by shared secrets."""

    TABLE = TABLE

    def authentication(self):
        keys = self.node.path("keys/.keep").parent
        keys.chmod(0o711)
        self.secrets = self.make_secrets(keys)
        return [f"sec.protocol sss -s {keys / 'server'}", "sec.protbind * only sss"], {}

    def make_secrets(self, folder):
        """A secret for each user by which the server knows him. Keys of one file have numbers of
        their own."""
        server, secrets = folder / "server", {}
        for user in ("anna", "bert", "carl", "mallory", "liar"):
            self.assert_ok(self.node.run(["xrdsssadmin", "-k", user, "-u", user, "-g", "x", "add",
                                          server]))
        for line in server.read_text().splitlines(keepends=True):
            user = line.split(" u:")[1].split()[0]
            secrets[user] = folder / user
            secrets[user].write_text(line)
            secrets[user].chmod(0o600)
        shutil.chown(server, xrootd.USER, xrootd.USER)
        return secrets

    def of(self, user):
        return {"XrdSecSSSKT": str(self.secrets[user]), "XrdSecPROTOCOL": "sss"}

    def space(self, user):
        """Numbers of octets, as the door tells a user."""
        told = self.assert_ok(self.fs(user, "query", "space", "/data")).strip()
        pairs = [pair.split("=") for pair in told.split("&")]
        return {key: int(value) for key, value in pairs if key != "oss.cgroup"}

    def test_users_write_what_they_may(self):
        file = self.local(3_000_000)
        self.assert_ok(self.put("anna", file, "/data/a"))
        stat = self.stat("data/a")
        self.assertEqual((stat["owner"], stat["size"]), ("anna", 3_000_000))
        out = self.lab.path("back")
        self.assert_ok(xrootd.xrdcp(self.server, "/data/a", out, env=self.of("bert")))
        self.assert_same(out, file)
        again = self.put("anna", file, "/data/a")
        self.assertNotEqual(again.code, 0)
        self.assertIn("file exists", again.stderr)
        file = self.local(200_000)
        self.assert_ok(self.put("anna", file, "/data/a", "--force"))
        wait_until(lambda: self.stat("data/a")["size"] == 200_000, "the other version")
        self.assert_ok(self.put("anna", file, "/data/deep/er/b", "--path"))
        self.assert_ok(self.fs("anna", "mkdir", "-p", "/data/x/y"))
        self.assert_ok(self.fs("anna", "mv", "/data/a", "/data/x/a"))
        self.assert_ok(self.fs("anna", "chmod", "/data/x/a", "rw-r-----"))
        self.assertEqual(self.stat("data/x/a")["mode"], "640")
        self.assert_ok(self.fs("anna", "truncate", "/data/x/a", "0"))
        # Others may be answered with what was true a second ago.
        wait_until(lambda: self.stat("data/x/a")["size"] == 0, "the empty file")
        self.assertNotEqual(self.fs("anna", "rmdir", "/data/x").code, 0)
        self.assert_ok(self.fs("anna", "rm", "/data/x/a"))
        self.assert_ok(self.fs("anna", "rmdir", "/data/x/y"))
        self.assert_ok(self.fs("anna", "rmdir", "/data/x"))
        self.assert_error(self.fs("anna", "rm", "/data/none"), NOT_FOUND)
        self.assertEqual(self.names("data"), ["deep/"])

    def test_who_may_not_is_told_so(self):
        file = self.local(50_000)
        # A list denies half of the tree.
        self.assert_ok(self.put("anna", file, "/shut/a"))
        self.assert_error(self.put("bert", file, "/shut/b"), NOT_AUTHORIZED)
        self.assert_error(self.fs("bert", "mkdir", "/shut/d"), NOT_AUTHORIZED)
        self.assert_ok(self.put("bert", file, "/data/b"))
        # Nobody by the table; somebody for whom the door may not act; a door that lies.
        for user in ("mallory", "carl", "liar"):
            self.assert_error(self.put(user, file, "/data/c"), NOT_AUTHORIZED)
            self.assert_error(self.fs(user, "mkdir", "/data/d"), NOT_AUTHORIZED)
        # A group that is taken away while the server has a session of his.
        self.op("site", "user", "group", "bert", "cms")
        self.assert_error(self.fs("bert", "mkdir", "/data/d"), NOT_AUTHORIZED)
        self.op("site", "user", "group", "bert", "physics")
        self.assert_ok(self.fs("bert", "mkdir", "/data/d"))
        self.op("site", "quota", "set", "user:bert", "--bytes", "60K")
        self.assert_error(self.put("bert", file, "/data/e"), OVER_QUOTA)
        self.assertEqual(self.names("data"), ["b", "d/"])
        # Room is one's own, and there is none for whom the table makes nobody of.
        own, other = self.space("bert"), self.space("anna")
        self.assertEqual((own["oss.space"], own["oss.quota"]), (60 * 1024, 60 * 1024))
        self.assertEqual(own["oss.free"], 60 * 1024 - own["oss.used"])
        self.assertEqual(other["oss.quota"], -1)
        self.assertGreater(other["oss.free"], 1 << 20)
        shown = self.assert_ok(self.fs("anna", "statvfs", "/data"))
        self.assertRegex(shown, r"Nodes with RW space:\s+1\b")
        self.assertRegex(shown, r"Size of largest RW space \(MB\):\s+[1-9]")
        refused = self.fs("mallory", "query", "space", "/data")
        self.assertTrue(refused.code != 0 or "oss.free=0&" in refused.stdout, refused.stdout)
        audit = self.op("site", "audit")
        self.assertIn('"door":"xrd1"', audit)

    def test_who_may_not_read_is_told_so(self):
        file, out = self.local(50_000), self.lab.path("back")

        def get(user, path):
            out.unlink(missing_ok=True)
            return xrootd.xrdcp(self.server, path, out, env=self.of(user))

        # Half of the tree is not bert's.
        self.assert_ok(self.put("anna", file, "/shut/a"))
        self.assert_ok(self.put("anna", file, "/data/a"))
        self.op("ln", "-s", f"{SITE}/shut/a", f"{SITE}/data/link")
        self.assert_ok(get("anna", "/shut/a"))
        self.assert_same(out, file)
        self.assert_ok(get("bert", "/data/a"))
        self.assert_error(get("bert", "/shut/a"), NOT_AUTHORIZED)
        for args in (("stat", "/shut/a"), ("ls", "/shut"), ("ls", "-l", "/shut"),
                     ("query", "checksum", "/shut/a"), ("cat", "/shut/a")):
            self.assert_ok(self.fs("anna", *args))
            self.assert_error(self.fs("bert", *args), NOT_AUTHORIZED)
        self.assertEqual(self.assert_ok(self.fs("bert", "ls", "/")).split(), ["/data", "/shut"])
        # A link is not a way there.
        self.assert_error(get("bert", "/data/link"), NOT_AUTHORIZED)
        self.assertNotEqual(self.fs("bert", "query", "checksum", "/data/link").code, 0)
        # Nobody by the table; somebody for whom the door may not act.
        for user in ("mallory", "carl", "liar"):
            self.assert_error(get(user, "/data/a"), NOT_AUTHORIZED)
            self.assert_error(self.fs(user, "ls", "/data"), NOT_AUTHORIZED)
            self.assert_error(self.fs(user, "stat", "/data/a"), NOT_AUTHORIZED)
        # What is not there is still not there.
        self.assert_error(get("anna", "/data/none"), NOT_FOUND)
        self.assert_error(get("bert", "/shut/none"), NOT_AUTHORIZED)
        # A file's own list, and what a user had is taken back.
        self.op("setfacl", "-m", "u:bert:-", f"{SITE}/data/a")
        self.assert_error(get("bert", "/data/a"), NOT_AUTHORIZED)
        self.assert_error(self.fs("bert", "query", "checksum", "/data/a"), NOT_AUTHORIZED)
        self.assert_ok(self.fs("bert", "stat", "/data/a"))
        self.assert_ok(get("anna", "/data/a"))

    def test_an_open_file_is_not_shared_with_who_may_not(self):
        file = self.local(50_000)
        self.assert_ok(self.put("anna", file, "/data/a"))
        self.op("setfacl", "-m", "u:bert:-", f"{SITE}/data/a")
        script = self.node.path("hold.py")
        script.write_text("import sys, time\n"
                          "from XRootD import client\n"
                          "file = client.File()\n"
                          "assert file.open(sys.argv[1])[0].ok\n"
                          "print('open', flush=True)\n"
                          "time.sleep(60)\n")
        argv = [xrootd.PYTHON, script, self.server.url("/data/a")]
        holder = self.node.start("hold", argv, {**xrootd.CLIENT_ENV, **self.of("anna")})
        wait_until(lambda: "open" in holder.log_text(), "the open file")
        out = self.lab.path("back")
        refused = xrootd.xrdcp(self.server, "/data/a", out, env=self.of("bert"))
        self.assert_error(refused, NOT_AUTHORIZED)
        self.assertIsNone(holder.process.poll(), "it is no longer held open")

    def test_what_is_broken_off_has_no_name(self):
        script = self.node.path("cut.py")
        script.write_text("import os, sys\n"
                          "from XRootD import client\n"
                          "from XRootD.client.flags import OpenFlags\n"
                          "file = client.File()\n"
                          "url, how = sys.argv[1], sys.argv[2]\n"
                          "opened = file.open(url, OpenFlags.NEW)[0]\n"
                          "assert opened.ok, opened\n"
                          "assert file.write(b'x' * 100000, 0)[0].ok\n"
                          "if how == 'killed':\n"
                          "    os.kill(os.getpid(), 9)\n"
                          "if how == 'synced':\n"
                          "    assert file.sync()[0].ok\n"
                          "sys.exit(0 if file.close()[0].ok else 3)\n")

        def write(name, how, told=""):
            argv = [xrootd.PYTHON, script, self.server.url(f"/data/{name}{told}"), how]
            return self.node.run(argv, {**xrootd.CLIENT_ENV, **self.of("anna")}, 60).code

        self.assertNotEqual(write("killed", "killed"), 0)
        self.assertNotEqual(write("half", "closed", "?oss.asize=200000"), 0)
        self.assertNotEqual(write("untold", "closed"), 0, "nobody said that it is whole")
        self.assertEqual(write("whole", "closed", "?oss.asize=100000"), 0)
        self.assertEqual(write("synced", "synced"), 0)
        self.assertEqual(self.names("data"), ["synced", "whole"])
        self.assert_alive_for("anna")

    def assert_alive_for(self, user):
        self.assertTrue(self.server.is_alive(), self.server.daemon.log_text()[-2000:])
        self.assert_ok(self.fs(user, "stat", "/data"))
