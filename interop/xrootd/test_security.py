"""Authentication stays XRootD's; who it is stands in the log of opens."""

import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from door import DoorCase  # noqa: E402  (the path above must come first)
from harness import xrootd  # noqa: E402


class SharedSecrets(DoorCase):
    """XRootD's "simple shared secret": both sides have a key, the key says who."""

    def keytab(self, name, user, group):
        """A key file for clients, and another one for xrootd's user."""
        path = self.lab.path(f"keys/{name}")
        self.assert_ok(self.node.run(["xrdsssadmin", "-k", "lab", "-u", user, "-g", group,
                                      "add", path]))
        return path

    def test_with_the_key_and_without(self):
        folder = self.content()
        mine = self.keytab("client", "alice", "cms")
        strange = self.keytab("strange", "mallory", "cms")
        theirs = self.node.path("keys/server")
        shutil.copy(mine, theirs)
        theirs.parent.chmod(0o711)
        theirs.chmod(0o600)
        shutil.chown(theirs, xrootd.USER, xrootd.USER)
        door = self.door(self.publish(folder), "xrootd.seclib libXrdSec.so",
                         f"sec.protocol sss -s {theirs}", "sec.protbind * only sss")
        out = self.lab.path("out")
        for env in ({}, {"XrdSecSSSKT": str(strange), "XrdSecPROTOCOL": "sss"}):
            refused = xrootd.xrdcp(door, "/8193.bin", out, env=env)
            self.assertNotEqual(refused.code, 0, str(refused))
            self.assertIn("Auth failed", refused.stderr)
            self.assertFalse(out.exists())
        with_key = {"XrdSecSSSKT": str(mine), "XrdSecPROTOCOL": "sss"}
        self.assert_ok(xrootd.xrdcp(door, "/8193.bin", out, env=with_key))
        self.assert_same(out, folder / "8193.bin")
        lines = [json.loads(line) for line in door.opens().splitlines()]
        self.assertEqual([(line["path"], line["client"]["protocol"], line["client"]["name"])
                          for line in lines], [("/8193.bin", "sss", "alice")])
