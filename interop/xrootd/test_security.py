"""Authentication stays XRootD's; who it is stands in the log of opens."""

import json
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from door import DoorCase  # noqa: E402  (the path above must come first)
from harness import xrootd  # noqa: E402
from harness.lab import wait_until  # noqa: E402

KDC, KADMIN, KDB = (f"/usr/sbin/{name}" for name in ("krb5kdc", "kadmin.local", "kdb5_util"))
REALM = "LAB.TEST"
SERVICE = "host/localhost"
KDC_PORT = 8888
CLIENT_CONF = f"""[libdefaults]
default_realm = {REALM}
dns_lookup_kdc = false
dns_lookup_realm = false
dns_canonicalize_hostname = false
rdns = false
[realms]
{REALM} = {{
 kdc = 127.0.0.1:{KDC_PORT}
}}
[domain_realm]
localhost = {REALM}
"""
KDC_CONF = f"""[kdcdefaults]
kdc_listen = 127.0.0.1:{KDC_PORT}
kdc_tcp_listen = 127.0.0.1:{KDC_PORT}
[realms]
{REALM} = {{{{
 database_name = {{folder}}/principal
 key_stash_file = {{folder}}/stash
 acl_file = {{folder}}/acl
}}}}
"""


class Security(DoorCase):
    """A door for those who say who they are."""

    def assert_refused(self, door, env):
        """Nobody without proof gets a byte."""
        out = self.lab.path("refused")
        refused = xrootd.xrdcp(door, "/8193.bin", out, env=env)
        self.assertNotEqual(refused.code, 0, str(refused))
        self.assertIn("Auth failed", refused.stderr)
        self.assertFalse(out.exists())

    def assert_read_by(self, door, env, protocol, name):
        """Reads a file; the log of opens has who that was, and nobody else."""
        out = self.lab.path("out")
        self.assert_ok(xrootd.xrdcp(door, "/8193.bin", out, env=env))
        self.assert_same(out, self.folder / "8193.bin")
        lines = [json.loads(line) for line in door.opens().splitlines()]
        self.assertEqual([(line["path"], line["client"]["protocol"], line["client"]["name"])
                          for line in lines], [("/8193.bin", protocol, name)])

    def give(self, path, name):
        """A copy of a secret for xrootd's user."""
        theirs = self.node.path(f"keys/{name}")
        shutil.copy(path, theirs)
        theirs.parent.chmod(0o711)
        theirs.chmod(0o600)
        shutil.chown(theirs, xrootd.USER, xrootd.USER)
        return theirs


class SharedSecrets(Security):
    """XRootD's "simple shared secret": both sides have a key, the key says who."""

    def keytab(self, name, user, group):
        """A key file for clients, and another one for xrootd's user."""
        path = self.lab.path(f"keys/{name}")
        self.assert_ok(self.node.run(["xrdsssadmin", "-k", "lab", "-u", user, "-g", group,
                                      "add", path]))
        return path

    def test_with_the_key_and_without(self):
        self.folder = self.content()
        mine = self.keytab("client", "alice", "cms")
        strange = self.keytab("strange", "mallory", "cms")
        door = self.door(self.publish(self.folder), "xrootd.seclib libXrdSec.so",
                         f"sec.protocol sss -s {self.give(mine, 'server')}",
                         "sec.protbind * only sss")
        self.assert_refused(door, {})
        self.assert_refused(door, {"XrdSecSSSKT": str(strange), "XrdSecPROTOCOL": "sss"})
        self.assert_read_by(door, {"XrdSecSSSKT": str(mine), "XrdSecPROTOCOL": "sss"}, "sss",
                            "alice")


class Kerberos(Security):
    """A key distribution centre of the test's own."""

    def setUp(self):
        super().setUp()
        absent = [path for path in (KDC, KADMIN, KDB) if not os.access(path, os.X_OK)]
        if absent:
            self._missing(f"there is no {absent[0]} (scripts/setup --for test)")

    def configure(self):
        """The files that say where everything is."""
        folder = self.node.path("kdc/.keep").parent
        folder.chmod(0o711)
        client, server = folder / "krb5.conf", folder / "kdc.conf"
        client.write_text(CLIENT_CONF)
        server.write_text(KDC_CONF.format(folder=folder))
        client.chmod(0o644)
        self.env = {"KRB5_CONFIG": str(client), "KRB5_KDC_PROFILE": str(server)}
        return folder

    def run_ok(self, *argv, env=None):
        """A command that has to succeed."""
        self.assert_ok(self.node.run(argv, {**self.env, **(env or {})}))

    def start(self):
        """A realm with alice and the door's service in it; their keys."""
        folder = self.configure()
        self.run_ok(KDB, "create", "-s", "-r", REALM, "-P", "secret")
        keys = {}
        for name in ("alice", SERVICE):
            keys[name] = folder / f"{name.replace('/', '-')}.keytab"
            self.run_ok(KADMIN, "-r", REALM, "-q", f"addprinc -randkey {name}")
            self.run_ok(KADMIN, "-r", REALM, "-q", f"ktadd -k {keys[name]} {name}")
        self.node.start("kdc", [KDC, "-n", "-r", REALM], self.env)
        return keys

    def test_with_a_ticket_and_without(self):
        self.folder = self.content()
        keys = self.start()
        service = self.give(keys[SERVICE], "krb5.keytab")
        door = self.door(self.publish(self.folder), "xrootd.seclib libXrdSec.so",
                         f"sec.protocol krb5 {service} {SERVICE}@{REALM}",
                         "sec.protbind * only krb5", env=self.env)
        ticket = {**self.env, "KRB5CCNAME": f"FILE:{self.lab.path('ticket')}",
                  "XrdSecPROTOCOL": "krb5"}
        self.assert_refused(door, ticket)

        def has_ticket():
            argv = ["kinit", "-k", "-t", keys["alice"], "alice"]
            return self.node.run(argv, ticket).code == 0

        wait_until(has_ticket, "a ticket")
        self.assert_read_by(door, ticket, "krb5", "alice")
