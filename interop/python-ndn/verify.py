"""Reads one published file with python-ndn and checks the signature of every packet.

usage: verify.py NAME OUT [key=SHA256:...] [secret=FILE]
Signatures by a key are followed from certificate to certificate up to the given key; HMACs need
the secret, digests nothing, and Null proves nothing. Prints one JSON object: the signature types
of metadata and segments with how many packets proved themselves, and whether a segment in which
one bit was flipped was refused. Exit code 1 if a packet does not prove itself.
"""

import asyncio
import base64
import collections
import hashlib
import json
import pathlib
import sys

from ndn import encoding
from ndn.app_support import security_v2
from ndn.appv2 import NDNApp, pass_all
from ndn.security.validator import known_key_validator, sha256_digest_checker
from ndn.types import InterestNack, InterestTimeout, ValidResult, ValidationFailure

KIND = encoding.SignatureType
KEYED = {
    KIND.SHA256_WITH_RSA: known_key_validator.RsaChecker,
    KIND.SHA256_WITH_ECDSA: known_key_validator.EccChecker,
    KIND.ED25519: known_key_validator.Ed25519Checker,
}
TITLES = {KIND.DIGEST_SHA256: "digest", KIND.SHA256_WITH_RSA: "rsa", KIND.ED25519: "ed25519",
          KIND.SHA256_WITH_ECDSA: "ecdsa", KIND.HMAC_WITH_SHA256: "hmac", KIND.NULL: "null"}
CHAIN_MAX = 4
AT_ONCE = 16
LIFETIME_MS = 2000
TRIES = 3


class Proofs:
    """What is trusted, what was fetched to get there, and what was proved."""

    def __init__(self, app, options):
        self.app = app
        self.anchor = options.get("key")
        self.secret = pathlib.Path(options["secret"]).read_bytes() if "secret" in options else None
        self.certificates = {}
        self.counts = collections.Counter()

    async def validator(self, name, sig, _context):
        """Counts what proves itself."""
        if not await self.holds(name, sig):
            return ValidResult.FAIL
        self.counts[TITLES[sig.signature_info.signature_type]] += 1
        return ValidResult.PASS

    async def holds(self, name, sig, depth=0):
        """Whether the signature is what it should be, by a key that leads to the anchor."""
        info = sig.signature_info
        if info.signature_type == KIND.NULL:
            return True  # there is nothing to check, and it is counted as that
        if info.signature_type == KIND.DIGEST_SHA256:
            return await sha256_digest_checker(name, sig)
        if info.signature_type == KIND.HMAC_WITH_SHA256:
            return self.secret is not None and known_key_validator.verify_hmac(self.secret, sig)
        certificate = await self.certificate(info.key_locator.name, depth)
        if certificate is None:
            return False
        checker = KEYED[info.signature_type].from_cert(certificate)
        return await checker(name, sig)

    async def certificate(self, name, depth):
        """A certificate that leads to the anchor, or None."""
        shown = encoding.Name.to_str(name)
        if shown not in self.certificates:
            self.certificates[shown] = asyncio.ensure_future(self.fetch(name, depth))
        return await self.certificates[shown]

    async def fetch(self, name, depth):
        """Asks for a certificate and follows it up."""
        packet, sig = await self.ask(name, pass_all, True)
        wire = bytes(packet["raw_packet"])
        public_key = bytes(security_v2.parse_certificate(wire).content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(public_key).digest()).rstrip(b"=")
        if "SHA256:" + digest.decode() == self.anchor:
            return wire
        locator = sig.signature_info.key_locator
        is_signed = locator is not None and locator.name is not None
        # Whoever signs for himself and is not the anchor leads nowhere.
        if not is_signed or encoding.Name.is_prefix(locator.name, name) or depth >= CHAIN_MAX:
            return None
        return wire if await self.holds(name, sig, depth + 1) else None

    async def ask(self, name, validator, is_prefix=False):
        """(context of the packet, its signature)"""
        for attempt in range(TRIES):
            try:
                _, _, context = await self.app.express(
                    name, validator, can_be_prefix=is_prefix, lifetime=LIFETIME_MS,
                    must_be_fresh=is_prefix and validator is not pass_all)
                return context, context["sig_ptrs"]
            except (InterestNack, InterestTimeout):
                if attempt == TRIES - 1:
                    raise

    async def segment(self, versioned, number):
        """(content, last segment, the packet)"""
        name = versioned + [encoding.Component.from_segment(number)]
        context, _ = await self.ask(name, self.validator)
        wire = bytes(context["raw_packet"])
        _, meta_info, content, _ = encoding.parse_data(wire)
        last = encoding.Component.to_number(meta_info.final_block_id)
        return bytes(content or b""), last, wire


async def flipped_is_refused(proofs, wire):
    """The counterpart: whether a packet with one bit of its content changed is refused."""
    damaged = bytearray(wire)
    damaged[len(wire) // 2] ^= 1
    name, _, _, sig = encoding.parse_data(bytes(damaged))
    return not await proofs.holds(name, sig)


async def read(app, arguments):
    """Discovery, then all segments, a few at a time."""
    uri, out, *options = arguments
    proofs = Proofs(app, dict(option.split("=", 1) for option in options))
    metadata, sig = await proofs.ask(encoding.Name.from_str(uri + "/32=metadata"),
                                     proofs.validator, True)
    _, _, content, _ = encoding.parse_data(bytes(metadata["raw_packet"]))
    versioned = encoding.Name.from_bytes(content)
    described = TITLES[sig.signature_info.signature_type]
    proofs.counts.clear()
    first, last, wire = await proofs.segment(versioned, 0)
    pieces = [first]
    for start in range(1, last + 1, AT_ONCE):
        numbers = range(start, min(start + AT_ONCE, last + 1))
        found = await asyncio.gather(*(proofs.segment(versioned, n) for n in numbers))
        pieces += [content for content, _, _ in found]
    counts = dict(proofs.counts)
    pathlib.Path(out).write_bytes(b"".join(pieces))
    print(json.dumps({"metadata": described, "segments": counts,
                      "flipped": await flipped_is_refused(proofs, wire)}))


def main(arguments):
    app = NDNApp()
    codes = []

    async def after_start():
        try:
            await read(app, arguments)
        except (InterestNack, InterestTimeout, ValidationFailure) as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            codes.append(1)
        finally:
            app.shutdown()

    app.run_forever(after_start())
    return codes[0] if codes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
