"""What tests of doors to a site share: a site, its users, and an xrootd that acts for them."""

import json
import os
import shutil

from door import DoorCase
from harness import nodes, xrootd

SITE = "/lab"
NOT_AUTHORIZED, NOT_FOUND, OVER_QUOTA = 3010, 3011, 3021


class SiteDoorCase(DoorCase):
    """A site with a disk, users anna, bert and carl, and a door that may act for those of
    `physics`, which carl is not. How clients say who they are is `authentication`'s."""

    TABLE = ""

    def setUp(self):
        super().setUp()
        nodes.byname_site(self.node, self.forwarder, SITE, [])
        self.site_env = {"BYNAME_HOME": str(self.node.path("site/home"))}
        self.at = ["--connect", self.forwarder.uri()]
        for user, group in (("anna", "physics"), ("bert", "physics"), ("carl", "cms")):
            self.op("site", "user", "add", user, "--group", group)
        self.op("mkdir", f"{SITE}/data", f"{SITE}/shut", "--mode", "777")
        self.op("setfacl", "-m", "u:bert:-", f"{SITE}/shut")
        # The door's home: that of the server that will run.
        folder = xrootd.own(self.node.path("xrootd/.keep").parent)
        home = xrootd.own(folder / "home")
        self.home = {"BYNAME_HOME": str(home / "byname")}
        certificate = self.node.path("door.cert")
        keys = self.run_ok(["key", "list", "--json"], self.site_env)
        digest = next(key["key"] for key in map(json.loads, keys.splitlines())
                      if key["name"] == SITE)
        self.site_link = f"byname:{SITE}?via={self.forwarder.uri('tcp')}&key={digest}"
        self.run_ok(["trust", "add", self.site_link], self.home)
        certificate.write_text(self.run_ok(["site", "door", "key", "xrd1", "--site", SITE],
                                           self.home))
        self.op("site", "door", "add", "xrd1", "--key", str(certificate),
                "--may-speak-for-group", "physics")
        for path in [home, *home.rglob("*")]:
            shutil.chown(path, xrootd.USER, xrootd.USER)
        table = folder / "who.toml"
        table.write_text(self.TABLE)
        security, options = self.authentication()
        lines = ["xrootd.seclib libXrdSec.so", *security, "byname.door xrd1",
                 f"byname.table {table}", "byname.spool $DIR/admin",
                 "xrootd.chksum max 4 adler32", "ofs.ckslib * $PLUGIN"]
        self.server = self.door(self.site_link, *lines, *self.reading(), **options)

    def authentication(self):
        """Lines of the server about who clients are, and what else it needs."""
        raise NotImplementedError

    def of(self, user):
        """The environment of a client who is this user."""
        raise NotImplementedError

    def reading(self):
        """Lines about who may read."""
        return ["ofs.authorize 1", "ofs.authlib $PLUGIN"]

    def run_ok(self, args, env):
        """A command of byname; what it printed."""
        return self.assert_ok(self.node.run([nodes.byname_binary(), *args], env))

    def op(self, *args):
        """A command of the operator."""
        return self.run_ok([*args, *self.at], self.site_env)

    def fs(self, user, *args):
        """xrdfs."""
        return xrootd.xrdfs(self.server, *args, env=self.of(user))

    def put(self, user, file, path, *flags):
        """An upload with xrdcp."""
        argv = ["xrdcp", "--nopbar", *flags, file, self.server.url(path)]
        return self.node.run(argv, {**xrootd.CLIENT_ENV, **self.of(user)}, 120)

    def stat(self, name):
        """What the site says of a file, with its owner."""
        shown = self.op("stat", f"{SITE}/{name}", "--json", "--fresh")
        lists = self.op("getfacl", f"{SITE}/{name}", "--json")
        return {**json.loads(shown), "owner": json.loads(lists)["owner"]}

    def names(self, directory):
        """What is in a directory."""
        return self.op("ls", f"{SITE}/{directory}", "--fresh").split()

    def local(self, size):
        """A file to write."""
        path = self.node.path("upload")
        path.write_bytes(os.urandom(size))
        return path
