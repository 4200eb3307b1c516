"""Segments with the Null signature (the default), digests, and signatures by keys, both ways.

Readers that can check signatures check every one, up to the publisher's key; each shows that it
would have refused a segment in which one bit was flipped.
"""

import json

from harness import nodes, samples
from harness.case import Case, grid
from harness.matrix import FORWARDERS, NAME

KINDS = ("null", "digest", "ed25519", "ecdsa", "rsa", "hmac")
KEYED = ("ed25519", "ecdsa", "rsa")
SAMPLE = "many-segments.bin"
SEGMENTS = 301
SECRET = b"a secret that both ends know"
# What looks at no signature, and so reads everything.
INDIFFERENT = {"cat": nodes.ndnd_cat, "catchunks": nodes.python_cat, "ndnts": nodes.ndnts_get}
CHECKING = {"python-ndn": nodes.python_verify, "ndnts": nodes.ndnts_verify}


class SignedByByname(Case):
    """`byname serve --segment-signature KIND`, read by everybody else."""

    needs = ("ndnts", "ndnd", "python-ndn")

    def serve(self, forwarder, kind):
        """(forwarder, what a reader needs to check signatures)"""
        hub = nodes.FORWARDERS[forwarder](self.lab)
        secret = self.lab.path("secret")
        secret.write_bytes(SECRET)
        flags = ["--segment-signature", kind] if kind != "null" else []
        flags += ["--segment-secret", secret] if kind == "hmac" else []
        daemon = nodes.byname_serve(self.lab, hub, samples.directory(), NAME, flags=flags)
        return hub, [f"key={nodes.printed_key(daemon)}", f"secret={secret}"]

    @grid(forwarder=FORWARDERS, kind=KINDS)
    def check_read(self, forwarder, kind):
        """Who checks nothing reads every kind; who checks finds each packet proved."""
        hub, proofs = self.serve(forwarder, kind)
        name = samples.uri(NAME, SAMPLE)
        for title, reader in INDIFFERENT.items():
            out = self.lab.path(f"out/{title}")
            result = reader(self.lab, hub.uri(), name, out)
            self.assertIsNone(samples.difference(out, SAMPLE), f"{title}: {result}")
        for title, reader in CHECKING.items():
            out = self.lab.path(f"out/{title}-checking")
            result = reader(self.lab, hub.uri(), name, out, *proofs)
            self.assertEqual(result.code, 0, f"{title}: {result}")
            self.assertIsNone(samples.difference(out, SAMPLE), f"{title}: {result}")
            seen = json.loads(result.stdout)
            self.assertEqual(seen["metadata"], "ed25519", title)
            self.assertEqual(seen["segments"], {kind: SEGMENTS}, title)
            self.assertEqual(seen["flipped"], kind != "null", title)

    @grid(kind=("ed25519", "rsa", "hmac"), reader=tuple(CHECKING))
    def check_refused_with_another_key(self, kind, reader):
        """The counterpart: with another anchor, or another secret, nothing is proved."""
        hub, (key, _) = self.serve("byname", kind)
        other = self.lab.path("other")
        other.write_bytes(SECRET[::-1])
        proofs = [key if kind == "hmac" else f"key=SHA256:{'A' * 43}", f"secret={other}"]
        out = self.lab.path("out/f")
        name = samples.uri(NAME, SAMPLE)
        result = CHECKING[reader](self.lab, hub.uri(), name, out, *proofs)
        self.assertEqual(result.code, 1, str(result))
        self.assertFalse(out.exists())


class ReadsSignedSegments(Case):
    """`byname get` of files that have no root, by the signature of every segment."""

    needs = ("ndnts", "ndnd", "python-ndn")

    def publish(self, peer, hub, kind):
        """(name of the file, the peer)"""
        sample = samples.directory() / SAMPLE
        if peer == "python-ndn":
            secret = self.lab.path("secret")
            secret.write_bytes(SECRET)
            daemon = nodes.python_serve(self.lab, hub, sample, "/pub/f", kind, secret)
            return "/pub/f", daemon
        options = ("6144", {"digest": "sha256"}.get(kind, kind))
        options += ("certified",) if kind in KEYED else ()
        daemon = nodes.ndnts_serve(self.lab, hub, samples.directory(), NAME, options=options)
        return f"{NAME}/{SAMPLE}", daemon

    def read(self, hub, link, *flags):
        """(result, file)"""
        out = self.lab.path("out/f")
        return nodes.byname_get(self.lab, hub.uri(), link, out, *flags), out

    @grid(forwarder=FORWARDERS, peer=tuple(CHECKING), kind=KEYED)
    def check_proved_by_its_key(self, forwarder, peer, kind):
        """With the publisher's key, and without --insecure; another key is refused."""
        hub = nodes.FORWARDERS[forwarder](self.lab)
        name, daemon = self.publish(peer, hub, kind)
        result, out = self.read(hub, f"byname:{name}?key=SHA256:{'A' * 43}")
        self.assertEqual(result.code, 6, str(result))
        self.assertFalse(out.exists())
        result, out = self.read(hub, f"byname:{name}?key={nodes.printed_key(daemon)}")
        self.assertEqual(result.code, 0, str(result))
        self.assertIsNone(samples.difference(out, SAMPLE))

    @grid(peer=tuple(CHECKING), kind=("null", "digest", "hmac"))
    def check_without_a_key(self, peer, kind):
        """Nothing that byname can hold against a key: refused, and read with --insecure."""
        hub = nodes.BynameForwarder(self.lab)
        name, _ = self.publish(peer, hub, kind)
        result, out = self.read(hub, name, "--timeout", "3")
        self.assertIn(result.code, (5, 6), str(result))
        self.assertFalse(out.exists())
        result, out = self.read(hub, name, "--insecure")
        self.assertEqual(result.code, 0, str(result))
        self.assertIsNone(samples.difference(out, SAMPLE))
