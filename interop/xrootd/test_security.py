"""Authentication stays XRootD's; who it is stands in the log of opens."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from door import DoorCase  # noqa: E402  (the path above must come first)
from harness import kdc, xrootd  # noqa: E402
from harness.lab import wait_until  # noqa: E402
from identities import Identities  # noqa: E402
from serving import CHECKSUM_LINES, Serving  # noqa: E402

SECURE = ("xrootd.seclib libXrdSec.so", *CHECKSUM_LINES)
SERVICE = "host/localhost"
KDC_PORT = 8888


class Security(DoorCase, Identities, Serving):
    """A door for those who say who they are."""

    def assert_refused(self, door, env):
        """Nobody without proof gets a byte."""
        out = self.lab.path("refused")
        refused = xrootd.xrdcp(door, "/8193.bin", out, env=env)
        self.assertNotEqual(refused.code, 0, str(refused))
        self.assertIn("Auth failed", refused.stderr)
        self.assertFalse(out.exists())

    def assert_served_to(self, door, env, protocol, name):
        """Everything works; the log of opens has who that was, and nobody else."""
        self.assert_serves(door, self.folder, env)
        lines = [json.loads(line) for line in door.opens().splitlines()]
        self.assertEqual({(line["client"]["protocol"], line["client"]["name"]) for line in lines},
                         {(protocol, name)})
        self.assertIn("/8193.bin", {line["path"] for line in lines})


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
        door = self.door(self.publish(self.folder), *SECURE,
                         f"sec.protocol sss -s {self.give(mine, 'server')}",
                         "sec.protbind * only sss")
        self.assert_refused(door, {})
        self.assert_refused(door, {"XrdSecSSSKT": str(strange), "XrdSecPROTOCOL": "sss"})
        self.assert_served_to(door, {"XrdSecSSSKT": str(mine), "XrdSecPROTOCOL": "sss"}, "sss",
                              "alice")


class Kerberos(Security):
    """A key distribution centre of the test's own."""

    def setUp(self):
        super().setUp()
        if why := kdc.missing():
            self._missing(why)

    def test_with_a_ticket_and_without(self):
        self.folder = self.content()
        realm = kdc.Realm(self.node, KDC_PORT)
        keys = realm.start("alice", SERVICE)
        service = self.give(keys[SERVICE], "krb5.keytab")
        door = self.door(self.publish(self.folder), *SECURE,
                         f"sec.protocol krb5 {service} {SERVICE}@{kdc.NAME}",
                         "sec.protbind * only krb5", env=realm.env)
        own = {"KRB5CCNAME": f"FILE:{self.lab.path('ticket')}", "XrdSecPROTOCOL": "krb5"}
        ticket = {**realm.env, **own}
        self.assert_refused(door, ticket)
        wait_until(lambda: realm.has_ticket(keys["alice"], "alice", own), "a ticket")
        self.assert_served_to(door, ticket, "krb5", "alice")


class Tokens(Security):
    """An authority and an issuer of the test's own; XRootD's plug-in for SciTokens."""

    def setUp(self):
        super().setUp()
        if not any(pathlib.Path("/usr/lib").glob("*/libXrdAccSciTokens-5.so")):
            self._missing("there is no libXrdAccSciTokens-5.so (scripts/setup --for test)")

    def start(self):
        """The issuer and the door."""
        lines, options = self.token_server()
        return self.door(self.publish(self.folder), *SECURE, *lines, "ofs.authorize 1",
                         f"ofs.authlib libXrdAccSciTokens.so config={self.tokens_conf}",
                         f"xrd.protocol http:{xrootd.HTTP_PORT} libXrdHttp.so",
                         "http.header2cgi Authorization authz", **options)

    def test_with_a_token_and_without(self):
        self.folder = self.content()
        door = self.start()
        signing, authority = self.signing, self.folder_of_authority / "ca.pem"
        self.assert_refused(door, self.without_token())
        strange = self.folder_of_authority / "strange.pem"
        self.openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", strange)
        for name, key, claims in (("expired", signing, ("mallory", "storage.read:/", -60)),
                                  ("forged", strange, ("mallory", "storage.read:/")),
                                  ("narrow", signing, ("mallory", "storage.read:/sub"))):
            out = self.lab.path("refused")
            refused = xrootd.xrdcp(door, "/8193.bin", out, env=self.bearer(key, name, *claims))
            self.assertNotEqual(refused.code, 0, f"{name}: {refused}")
            self.assertFalse(out.exists())
        self.assertEqual(door.opens(), "")
        alice = self.bearer(signing, "alice", "alice", "storage.read:/")
        self.assert_served_to(door, alice, "ztn", "alice")
        # The same token by HTTP, and none.
        at = f"https://localhost:{xrootd.HTTP_PORT}"
        text = pathlib.Path(alice["BEARER_TOKEN_FILE"]).read_text()
        self.assert_http(door, self.folder, "--cacert", authority, "--header",
                         f"Authorization: Bearer {text}", at=at)
        nobody = xrootd.curl(door, "/8193.bin", "--cacert", authority, "--write-out",
                             "%{http_code}", at=at)
        self.assertTrue(nobody.stdout.endswith(b"403"), str(nobody))
