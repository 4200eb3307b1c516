"""Clients write as the users whom a door's table makes of Kerberos, tokens and certificates."""

import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from harness import kdc, xrootd  # noqa: E402  (the path above must come first)
from harness.lab import wait_until  # noqa: E402
from identities import Identities  # noqa: E402
from site_door import NOT_AUTHORIZED, SITE, SiteDoorCase  # noqa: E402

SERVICE = "host/localhost"
KDC_PORT = 8888
# eve is authenticated by all means, and nobody by each table.
PEOPLE = ("anna", "bert", "carl", "eve")


class AsUsers:
    """What holds however somebody is known, for a case of `SiteDoorCase`."""

    def assert_acts_as_users(self):
        """The table's users write and read what they may, and nobody else does."""
        file, out = self.local(300_000), self.lab.path("back")

        def get(user, path):
            out.unlink(missing_ok=True)
            return xrootd.xrdcp(self.server, path, out, env=self.of(user))

        self.assert_ok(self.put("anna", file, "/data/a"))
        stat = self.stat("data/a")
        self.assertEqual((stat["owner"], stat["size"]), ("anna", 300_000))
        self.assert_ok(get("bert", "/data/a"))
        self.assert_same(out, file)
        self.assert_ok(self.put("anna", file, "/shut/a"))
        # A list of the site counts for whom the table says that this is.
        self.assert_error(self.put("bert", file, "/shut/b"), NOT_AUTHORIZED)
        self.assert_error(get("bert", "/shut/a"), NOT_AUTHORIZED)
        # Nobody by the table, and somebody for whom the door may not act.
        for user in ("eve", "carl"):
            self.assert_error(self.put(user, file, f"/data/{user}"), NOT_AUTHORIZED)
            self.assert_error(self.fs(user, "mkdir", f"/data/{user}"), NOT_AUTHORIZED)
            self.assert_error(get(user, "/data/a"), NOT_AUTHORIZED)
            self.assert_error(self.fs(user, "ls", "/data"), NOT_AUTHORIZED)
        self.assertEqual(self.names("data"), ["a"])
        self.assertIn('"door":"xrd1"', self.op("site", "audit"))

    def assert_stranger_refused(self, env):
        """Who proves nothing does not come as far as the door's table."""
        refused = xrootd.xrdfs(self.server, "mkdir", "/data/d", env=env)
        self.assertNotEqual(refused.code, 0, str(refused))
        self.assertIn("Auth failed", refused.stderr)


class Kerberos(AsUsers, SiteDoorCase, Identities):
    """XRootD names who has a ticket without the realm: as local users are called."""

    TABLE = """
[[map]]
method = "krb5"
name = "eve"
deny = true

[[map]]
method = "krb5"
name = "*"
user = "$1"
"""

    def authentication(self):
        if why := kdc.missing():
            self._missing(why)
        self.realm = kdc.Realm(self.node, KDC_PORT)
        self.keys = self.realm.start(*PEOPLE, "anna/admin", SERVICE)
        service = self.give(self.keys[SERVICE], "krb5.keytab")
        lines = [f"sec.protocol krb5 {service} {SERVICE}@{kdc.NAME}", "sec.protbind * only krb5"]
        return lines, {"env": self.realm.env}

    def of(self, user):
        own = {"KRB5CCNAME": f"FILE:{self.lab.path('ticket-' + user.replace('/', '-'))}",
               "XrdSecPROTOCOL": "krb5"}
        wait_until(lambda: self.realm.has_ticket(self.keys[user], user, own), "a ticket")
        return {**self.realm.env, **own}

    def test_principals_are_users_of_the_site(self):
        none = {**self.realm.env, "KRB5CCNAME": f"FILE:{self.lab.path('none')}",
                "XrdSecPROTOCOL": "krb5"}
        self.assert_stranger_refused(none)
        self.assert_acts_as_users()
        # A name of several parts is no local user's: XRootD itself refuses it.
        self.assert_stranger_refused(self.of("anna/admin"))


class Tokens(AsUsers, SiteDoorCase, Identities):
    """XRootD's plug-in for SciTokens says what a token is for, and the site what its user may."""

    TABLE = """
[[map]]
method = "token"
name = "sub-*"
user = "$1"
"""
    SCOPE = "storage.read:/ storage.modify:/ storage.create:/"

    def authentication(self):
        if not any(pathlib.Path("/usr/lib").glob("*/libXrdAccSciTokens-5.so")):
            self._missing("there is no libXrdAccSciTokens-5.so (scripts/setup --for test)")
        return self.token_server()

    def reading(self):
        return ["ofs.authorize 1",
                f"ofs.authlib libXrdAccSciTokens.so config={self.tokens_conf}",
                "ofs.authlib ++ $PLUGIN",
                f"xrd.protocol http:{xrootd.HTTP_PORT} libXrdHttp.so",
                "http.header2cgi Authorization authz"]

    def of(self, user, scope=SCOPE):
        subject = user if user == "eve" else f"sub-{user}"
        return self.bearer(self.signing, f"{user}-{len(scope)}", subject, scope)

    def test_subjects_are_users_of_the_site(self):
        self.assert_stranger_refused(self.without_token())
        self.assert_acts_as_users()

    def http(self, path, env, *flags):
        """A request by HTTP with a token, or without one; its status."""
        token = env and pathlib.Path(env["BEARER_TOKEN_FILE"]).read_text()
        header = ["--header", f"Authorization: Bearer {token}"] if env else []
        asked = xrootd.curl(self.server, path, *header, "--cacert",
                            self.folder_of_authority / "ca.pem", "--write-out", "%{http_code}",
                            *flags, at=f"https://localhost:{xrootd.HTTP_PORT}")
        return asked.stdout[-3:].decode(), asked.stdout[:-3]

    def test_subjects_are_users_by_http(self):
        file = self.local(120_000)
        content = file.read_bytes()
        self.assert_ok(self.put("anna", file, "/data/a"))
        self.assert_ok(self.put("anna", file, "/shut/a"))
        anna, bert, carl, eve = map(self.of, ("anna", "bert", "carl", "eve"))
        self.assertEqual(self.http("/data/a", bert), ("200", content))
        self.assertEqual(self.http("/shut/a", bert)[0], "403")
        for path, env in (("/data/d", anna), ("/data/e", bert)):
            self.assertEqual(self.http(path, env, "--request", "MKCOL")[0], "201")
        self.assertEqual([self.stat_owner(f"data/{name}") for name in "de"], ["anna", "bert"])
        self.assertNotEqual(self.http("/shut/d", bert, "--request", "MKCOL")[0], "201")
        for env in (carl, eve, None):
            self.assertEqual(self.http("/data/a", env)[0], "403")
            self.assertNotEqual(self.http("/data/f", env, "--request", "MKCOL")[0], "201")
            self.assertNotEqual(self.http("/data/g", env, "--upload-file", file)[0], "201")
        self.assertEqual(self.names("data"), ["a", "d/", "e/"])
        # Where XRootD does not hand on the size of an upload it has no name at its end.
        put = self.http("/data/b", anna, "--upload-file", file)[0]
        if put == "201":
            self.assertEqual(self.stat("data/b")["owner"], "anna")
        else:
            self.assertNotIn("b", self.names("data"))

    def test_by_http_the_token_of_each_request_counts(self):
        self.assert_ok(self.put("anna", self.local(50_000), "/shut/a"))
        url = f"https://localhost:{xrootd.HTTP_PORT}/shut/a"
        authority = self.folder_of_authority / "ca.pem"
        requests = []
        for user in ("anna", "bert", "anna", "eve", None):
            env = user and self.of(user)
            token = env and pathlib.Path(env["BEARER_TOKEN_FILE"]).read_text()
            header = f'header = "Authorization: Bearer {token}"\n' if token else ""
            requests.append(f'url = {url}\n{header}output = /dev/null\ncacert = {authority}\n'
                            'write-out = "%{http_code}\\n"\n')
        script = self.node.path("requests")
        script.write_text("next\n".join(requests))
        said = self.assert_ok(self.node.run(["curl", "--silent", "--config", script]))
        self.assertEqual(said.split(), ["200", "403", "200", "403", "403"])

    def stat_owner(self, name):
        """Whose a directory is."""
        return json.loads(self.op("getfacl", f"{SITE}/{name}", "--json"))["owner"]

    def test_a_token_of_a_part_writes_there_alone(self):
        self.op("mkdir", f"{SITE}/data/mine", f"{SITE}/data/other", "--mode", "777")
        scope = "storage.read:/data/mine storage.modify:/data/mine storage.create:/data/mine"
        narrow, file = self.of("anna", scope), self.local(50_000)

        def put(path, env):
            argv = ["xrdcp", "--nopbar", file, self.server.url(path)]
            return self.node.run(argv, {**xrootd.CLIENT_ENV, **env}, 120)

        self.assert_ok(put("/data/mine/a", narrow))
        self.assertEqual(self.stat("data/mine/a")["owner"], "anna")
        self.assert_error(put("/data/other/a", narrow), NOT_AUTHORIZED)
        self.assert_error(put("/data/mine/b", self.of("anna", "storage.read:/")), NOT_AUTHORIZED)
        # What the token grants, the site does not.
        self.op("setfacl", "-m", "u:bert:-", f"{SITE}/data/mine")
        self.assert_error(put("/data/mine/b", self.of("bert", scope)), NOT_AUTHORIZED)
        self.assertEqual(self.names("data/other"), [])


class Certificates(AsUsers, SiteDoorCase, Identities):
    """Proxies of certificates (gsi), which XRootD names by their subject if it is told to."""

    TABLE = """
[[map]]
method = "gsi"
name = "/DC=test/CN=eve"
deny = true

[[map]]
method = "gsi"
name = "/DC=test/CN=*"
user = "$1"
"""

    def authentication(self):
        if not any(pathlib.Path("/usr/lib").glob("*/libXrdSecgsi-5.so")):
            self._missing("there is no libXrdSecgsi-5.so (scripts/setup --for test)")
        self.proxies = {}
        return [self.host(), "sec.protbind * only gsi"], {}

    def of(self, user):
        if user not in self.proxies:
            certificate, key = self.certificate(user, f"/DC=test/CN={user}")
            key.chmod(0o400)
            proxy = self.lab.path(f"proxy-{user}")
            self.assert_ok(self.node.run(["xrdgsiproxy", "init", "-cert", certificate, "-key", key,
                                          "-certdir", self.trusted, "-out", proxy, "-bits",
                                          "2048"]))
            self.proxies[user] = proxy
        return {**self.without_proxy(), "X509_USER_PROXY": str(self.proxies[user])}

    def test_subjects_are_users_of_the_site(self):
        self.assert_stranger_refused(self.without_proxy())
        self.assert_acts_as_users()


class VirtualOrganisations(AsUsers, SiteDoorCase, Identities):
    """Attributes of a VO (VOMS) in proxies: XRootD's plug-in for them checks who signed them, and
    the table says what a role or a group in the VO is here. Nobody is known by his subject."""

    TABLE = """
[[map]]
method = "gsi"
vo = "cms"
role = "production"
user = "anna"

[[map]]
method = "gsi"
vo = "cms"
group = "/cms/muons"
user = "bert"

[[map]]
method = "gsi"
vo = "cms"
user = "carl"
"""
    ATTRIBUTES = {
        "anna": ["/cms/Role=production", "/cms"],
        "bert": ["/cms/muons", "/cms"],
        "carl": ["/cms"],
        # The same of another VO, which the server knows, too.
        "eve": ["/atlas/Role=production", "/atlas/muons", "/atlas"],
    }
    SIGNER = "/DC=test/CN=voms"

    def authentication(self):
        for library in ("libXrdSecgsi-5.so", "libXrdVoms-5.so"):
            if not any(pathlib.Path("/usr/lib").glob(f"*/{library}")):
                self._missing(f"there is no {library} (scripts/setup --for test)")
        if not shutil.which("voms-proxy-fake"):
            self._missing("there is no voms-proxy-fake (scripts/setup --for test)")
        line = self.host()
        self.own = self.certificate("somebody", "/DC=test/CN=somebody")
        self.signer = self.certificate("voms", self.SIGNER)
        for key in (self.own[1], self.signer[1]):
            key.chmod(0o400)
        known = [self.attributes_of(vo, self.SIGNER) for vo in ("cms", "atlas")][0]
        self.proxies = {}
        lines = [f"{line} -vomsat:extract -vomsfun:libXrdVoms.so", "sec.protbind * only gsi"]
        return lines, {"env": {"X509_VOMS_DIR": str(known), "X509_CERT_DIR": str(self.trusted)}}

    def of(self, user):
        if user not in self.proxies:
            self.proxies[user] = self.voms_proxy(self.own, self.signer, self.ATTRIBUTES[user])
        return self.proxies[user]

    def assert_is_nobody(self, env):
        """Who comes so neither writes nor reads."""
        file, out = self.local(1000), self.lab.path("taken")
        argv = ["xrdcp", "--nopbar", file, self.server.url("/data/x")]
        put = self.node.run(argv, {**xrootd.CLIENT_ENV, **env}, 120)
        self.assertNotEqual(put.code, 0, str(put))
        self.assertNotEqual(xrootd.xrdcp(self.server, "/data/a", out, env=env).code, 0)
        self.assertFalse(out.exists())
        self.assertEqual(self.names("data"), ["a"])

    def test_roles_and_groups_of_a_vo_are_users_of_the_site(self):
        self.assert_stranger_refused(self.without_proxy())
        self.assert_acts_as_users()

    def test_attributes_count_that_the_server_of_the_vo_has_signed(self):
        self.assert_ok(self.put("anna", self.local(1000), "/data/a"))
        attributes = self.ATTRIBUTES["anna"]
        forger = self.certificate("forger", "/DC=test/CN=forger")
        forger[1].chmod(0o400)
        self.assert_is_nobody(self.voms_proxy(self.own, forger, attributes))
        # A VO of which nobody has said who may sign for it.
        foreign = self.voms_proxy(self.own, self.signer, ["/lhcb/Role=production"])
        self.assert_is_nobody(foreign)
