"""Who clients of an xrootd are, by means of the tests' own: certificates, tokens, secrets.

`Identities` is for cases with a node and a lab. Files for xrootd's user are copies of its own.
"""

import pathlib
import shutil
import sys

from harness import xrootd
from issuer import address, token

ISSUER = pathlib.Path(__file__).resolve().parent / "issuer.py"
ISSUER_PORT = 8443
VOMS_HOST = "voms.example.org"
TOKENS_CONF = f"""[Global]
audience = https://wlcg.cern.ch/jwt/v1/any
[Issuer Lab]
issuer = {address(ISSUER_PORT)}
base_path = /
map_subject = true
"""


class Identities:
    """An authority, certificates that it has signed, an issuer of tokens."""

    def give(self, path, name):
        """A copy of a secret for xrootd's user."""
        theirs = self.node.path(f"keys/{name}")
        shutil.copy(path, theirs)
        theirs.parent.chmod(0o711)
        theirs.chmod(0o600)
        shutil.chown(theirs, xrootd.USER, xrootd.USER)
        return theirs

    def openssl(self, *arguments):
        """openssl(1)."""
        self.assert_ok(self.node.run(["openssl", *arguments]))

    def authority(self):
        """An authority, in a folder of its own; its certificate."""
        self.folder_of_authority = self.node.path("authority/.keep").parent
        self.folder_of_authority.chmod(0o711)
        certificate = self.folder_of_authority / "ca.pem"
        self._certify(certificate, "/CN=lab authority", "ca.key")
        certificate.chmod(0o644)
        # XRootD looks for authorities in a directory, by their hash.
        self.trusted = self.lab.path("trusted/ca.pem").parent
        shutil.copy(certificate, self.trusted)
        self.openssl("rehash", self.trusted)
        return certificate

    def certificate(self, name, subject, *flags):
        """A certificate of the authority and its key."""
        folder = self.folder_of_authority
        certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
        # `usr_cert` of the configuration of OpenSSL: that of no authority.
        self._certify(certificate, subject, key.name, *flags, "-extensions", "usr_cert", "-CA",
                      folder / "ca.pem", "-CAkey", folder / "ca.key")
        return certificate, key

    def _certify(self, certificate, subject, key, *flags):
        self.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                     subject, "-keyout", certificate.parent / key, "-out", certificate, *flags)

    def host_certificate(self):
        """A certificate for localhost, and its key."""
        return self.certificate("host", "/CN=localhost", "-addext",
                                "subjectAltName=DNS:localhost")

    def host(self):
        """Certificate and key of this server, for xrootd's user, and the line of gsi."""
        self.authority()
        certificate, key = self.host_certificate()
        host = (self.give(certificate, "host.pem"), self.give(key, "host.key"))
        # The server looks for the authority, too.
        self.trusted.chmod(0o755)
        return (f"sec.protocol gsi -certdir:{self.trusted} -cert:{host[0]} -key:{host[1]} "
                "-gmapopt:10 -crl:0")

    def without_proxy(self):
        """The environment of who has no proxy of a certificate."""
        nothing = str(self.lab.path("none"))
        return {"X509_CERT_DIR": str(self.trusted), "XrdSecPROTOCOL": "gsi",
                "X509_USER_PROXY": nothing, "X509_USER_CERT": nothing, "X509_USER_KEY": nothing}

    def attributes_of(self, vo, signer):
        """Lets certificates of this subject say who is in a VO; where VOMS looks for that."""
        folder = self.lab.path("vomsdir/.keep").parent
        list_of = folder / vo / f"{VOMS_HOST}.lsc"
        list_of.parent.mkdir()
        list_of.write_text(f"{signer}\n/CN=lab authority\n")
        return folder

    def voms_proxy(self, own, signer, attributes):
        """A proxy of one's certificate and key with attributes of a VO, as its server would have
        signed them, whose certificate and key these are."""
        vo = attributes[0].split("/")[1]
        proxy = self.lab.path(f"voms-{len(list(self.lab.path('.').glob('voms-*')))}")
        named = [flag for attribute in attributes for flag in ("-fqan", attribute)]
        self.assert_ok(self.node.run([
            "voms-proxy-fake", "-rfc", "-cert", own[0], "-key", own[1], "-certdir", self.trusted,
            "-hostcert", signer[0], "-hostkey", signer[1], "-voms", vo, "-uri",
            f"{VOMS_HOST}:15000", "-bits", "2048", "-out", proxy, *named]))
        return {**self.without_proxy(), "X509_USER_PROXY": str(proxy)}

    def issuer(self, certificate, key):
        """Starts an issuer of tokens; the key that it signs with."""
        folder = self.folder_of_authority
        signing, public = folder / "issuer.pem", folder / "issuer.der"
        self.openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", signing)
        self.openssl("ec", "-in", signing, "-pubout", "-outform", "DER", "-out", public)
        issuer = self.node.start("issuer", [sys.executable, ISSUER, str(ISSUER_PORT), certificate,
                                            key, public])
        issuer.wait_for_log("serving")
        return signing

    def token_server(self):
        """Authority and issuer of tokens; lines and options of a server that takes them. Its
        authorization is left to the caller, who finds its configuration in `tokens.cfg`."""
        authority = self.authority()
        certificate, key = self.host_certificate()
        self.signing = self.issuer(certificate, key)
        self.tokens_conf = self.folder_of_authority / "tokens.cfg"
        self.tokens_conf.write_text(TOKENS_CONF)
        self.tokens_conf.chmod(0o644)
        # Otherwise keys are kept in the home of xrootd's user.
        cache = xrootd.own(self.folder_of_authority / "cache")
        tls = (self.give(certificate, "cert.pem"), self.give(key, "key.pem"))
        lines = [f"xrd.tls {tls[0]} {tls[1]}", f"xrd.tlsca certfile {authority}",
                 "sec.protocol ztn", "sec.protbind * only ztn"]
        return lines, {"trusting": authority, "env": {"XDG_CACHE_HOME": str(cache)}}

    def without_token(self):
        """The environment of who has none."""
        return {"X509_CERT_DIR": str(self.trusted), "XrdSecPROTOCOL": "ztn"}

    def bearer(self, key, name, *claims):
        """The environment of who has this token."""
        path = self.lab.path(f"tokens/{name}")
        path.write_text(token(ISSUER_PORT, key, *claims))
        path.chmod(0o600)
        return {**self.without_token(), "BEARER_TOKEN_FILE": str(path)}
