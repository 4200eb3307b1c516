"""Settings: mistakes stop xrootd with the line and the reason; where files are looked for."""

import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from door import DoorCase  # noqa: E402  (the path above must come first)
from harness import xrootd  # noqa: E402

STACKED = "ofs.osslib ++ $PLUGIN"
LINK = "/lab"


class Mistakes(DoorCase):
    def refused(self, *lines, link=LINK, loader="ofs.osslib $PLUGIN"):
        """What an xrootd says that must not start."""
        self.count = getattr(self, "count", 0) + 1
        server = self.door(link, *lines, loader=loader, label=f"wrong{self.count}", wait=False,
                           port=2000 + self.count)
        return server.config, server.wait_refused()

    def test_a_mistake_stops_xrootd_with_line_and_reason(self):
        for line, reason in (
            ("byname.order sideways", "the order is 'local first', 'name first' or 'name only'"),
            ("byname.order local first", "there is no local storage to look into"),
            ("byname.prefix store", "'store' is no absolute path"),
            ("byname.timeout 4", "'4' is no duration such as 500ms, 4s or 2m"),
            ("byname.lnik /lab", "there is no such parameter"),
        ):
            config, said = self.refused("# a comment", line)
            number = config.read_text().splitlines().index(line) + 1
            self.assertIn(f"{config}:{number}: {line}: {reason}", said)
        _, said = self.refused(link="byname:/lab?via=tcp://x&key=SHA256:short")
        self.assertIn("the session cannot be opened", said)
        _, said = self.refused("byname.openlog /nowhere/opens.json")
        self.assertIn("Unable to open byname.openlog /nowhere/opens.json", said)
        _, said = self.refused(loader="ofs.osslib $PLUGIN pipelinesize 64")
        self.assertIn("parameters behind ofs.osslib are not taken", said)

    def test_lines_of_other_programs_do_not_count(self):
        server = self.door(LINK, "if exec cmsd", "byname.order sideways", "fi",
                           "set where = /elsewhere", "byname.prefix /a $(where) name \\",
                           "  only")
        self.assert_alive_without_names(server)

    def assert_alive_without_names(self, server):
        """It runs, and says that nobody answers."""
        self.assertTrue(server.is_alive())
        self.assert_error(xrootd.xrdfs(server, "stat", "/b"), 3011)


class Orders(DoorCase):
    def setUp(self):
        super().setUp()
        folder = self.node.path("published/.keep").parent
        (folder / "sub").mkdir()
        for name in ("both", "named", "sub/named"):
            (folder / name).write_text(f"by name: {name}")
        self.published = self.publish(folder)

    def stacked(self, *lines, label="stacked", port=xrootd.PORT):
        """A server on top of local storage."""
        server = self.door(self.published, *lines, loader=STACKED, label=label, port=port)
        local = server.dir / "local"
        for name in ("both", "local", "sub/local", "outside/x"):
            target = local / name
            xrootd.own(target.parent)
            target.write_text(f"local: {name}")
            shutil.chown(target, xrootd.USER, xrootd.USER)
        return server

    def cat(self, server, path):
        """What a file says, or the code of the error."""
        result = xrootd.xrdfs(server, "cat", path)
        return result.stdout.decode() if result.code == 0 else result.stderr

    def test_local_files_first(self):
        server = self.stacked()
        self.assertEqual(self.cat(server, "/both"), "local: both")
        self.assertEqual(self.cat(server, "/named"), "by name: named")
        self.assertEqual(self.cat(server, "/local"), "local: local")
        self.assertIn("[3011]", self.cat(server, "/nothing"))
        names = self.assert_ok(xrootd.xrdfs(server, "ls", "/")).split()
        self.assertEqual(sorted(names), ["/both", "/local", "/named", "/outside", "/sub"])
        long = self.assert_ok(xrootd.xrdfs(server, "ls", "-l", "/sub"))
        self.assertRegex(long, r" 16 .*/sub/local\n")
        self.assertRegex(long, r" 18 .*/sub/named\n")
        # Only what is local was read from there.
        log = [json.loads(line) for line in server.opens().splitlines()]
        self.assertEqual([(line["path"], line["from"]) for line in log if "error" not in line
                          and "errno" not in line],
                         [("/both", "local"), ("/named", "name"), ("/local", "local")])

    def test_names_first_and_local_files_when_nobody_answers(self):
        server = self.stacked("byname.order name first", "byname.timeout 1s", "byname.retries 1")
        self.assertEqual(self.cat(server, "/both"), "by name: both")
        self.assertEqual(self.cat(server, "/local"), "local: local")
        self.forwarder.daemon.stop()
        self.assertEqual(self.cat(server, "/both"), "local: both")
        self.assertIn("[3014]", self.cat(server, "/named"))

    def test_prefixes_have_orders_and_names_of_their_own(self):
        server = self.stacked("byname.prefix /data / name only", "byname.prefix /sub")
        self.assertEqual(self.cat(server, "/data/both"), "by name: both")
        self.assertEqual(self.cat(server, "/data/sub/named"), "by name: sub/named")
        self.assertIn("[3011]", self.cat(server, "/data/local"))
        self.assertEqual(self.cat(server, "/sub/named"), "by name: sub/named")
        self.assertEqual(self.cat(server, "/sub/local"), "local: sub/local")
        self.assertIn("[3011]", self.cat(server, "/named"))
        self.assertEqual(self.cat(server, "/both"), "local: both")

    def test_names_are_read_only_and_other_paths_are_not(self):
        server = self.stacked("byname.prefix /data / name only")
        source = self.lab.path("source")
        source.write_text("new")
        argv = ["xrdcp", "--nopbar", "-f", source]
        refused = self.node.run([*argv, server.url("/data/new")], xrootd.CLIENT_ENV)
        self.assert_error(refused, 3025, "read-only file system")
        for arguments in (("rm", "/data/both"), ("mkdir", "/data/d"), ("rmdir", "/data/sub"),
                          ("mv", "/data/both", "/data/c"), ("mv", "/outside/x", "/data/c"),
                          ("chmod", "/data/both", "rwxrwxrwx"), ("truncate", "/data/both", "1")):
            self.assert_error(xrootd.xrdfs(server, *arguments), 3025, "read-only file system")
        self.assert_ok(self.node.run([*argv, server.url("/outside/new")], xrootd.CLIENT_ENV))
        self.assertEqual(self.cat(server, "/outside/new"), "new")
        self.assert_ok(xrootd.xrdfs(server, "rm", "/outside/x"))
