"""A realm of Kerberos with a key distribution centre of the test's own."""

import os

KDC, ADMIN, DATABASE = (f"/usr/sbin/{name}" for name in ("krb5kdc", "kadmin.local", "kdb5_util"))
NAME = "LAB.TEST"
CLIENT_CONF = """[libdefaults]
default_realm = {realm}
dns_lookup_kdc = false
dns_lookup_realm = false
dns_canonicalize_hostname = false
rdns = false
udp_preference_limit = 1
[realms]
{realm} = {{
 kdc = 127.0.0.1:{port}
}}
[domain_realm]
localhost = {realm}
"""
SERVER_CONF = """[kdcdefaults]
kdc_listen = 127.0.0.1:{port}
kdc_tcp_listen = 127.0.0.1:{port}
[realms]
{realm} = {{
 database_name = {folder}/principal
 key_stash_file = {folder}/stash
 acl_file = {folder}/acl
}}
"""


def missing():
    """A program that is not installed, or None."""
    absent = [path for path in (KDC, ADMIN, DATABASE) if not os.access(path, os.X_OK)]
    return f"there is no {absent[0]} (scripts/setup --for test)" if absent else None


class Realm:
    """Runs on `node`, whatever can run commands and start daemons, at a port of its loopback."""

    def __init__(self, node, port):
        self.node = node
        self.folder = node.path("kdc/.keep").parent
        self.folder.chmod(0o711)
        client, server = self.folder / "krb5.conf", self.folder / "kdc.conf"
        client.write_text(CLIENT_CONF.format(realm=NAME, port=port))
        server.write_text(SERVER_CONF.format(realm=NAME, port=port, folder=self.folder))
        client.chmod(0o644)
        self.config = client
        self.env = {"KRB5_CONFIG": str(client), "KRB5_KDC_PROFILE": str(server)}

    def run(self, *argv, env=None):
        """A command that has to succeed."""
        done = self.node.run(argv, {**self.env, **(env or {})})
        assert done.code == 0, str(done)

    def start(self, *principals):
        """Makes the realm with these in it, and starts it; files with their keys, by name."""
        self.run(DATABASE, "create", "-s", "-r", NAME, "-P", "secret")
        keys = {}
        for name in principals:
            keys[name] = self.folder / f"{name.replace('/', '-')}.keytab"
            self.run(ADMIN, "-r", NAME, "-q", f"addprinc -randkey {name}")
            self.run(ADMIN, "-r", NAME, "-q", f"ktadd -k {keys[name]} {name}")
        self.node.start("kdc", [KDC, "-n", "-r", NAME], self.env)
        return keys

    def has_ticket(self, keys, name, env):
        """Asks for a ticket; false if nobody answers yet."""
        return self.node.run(["kinit", "-k", "-t", keys, name], {**self.env, **env}).code == 0
