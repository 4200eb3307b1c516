"""Publishes one file with python-ndn, every packet signed in one way, and its certificate.

usage: serve.py NAME FILE digest|ecdsa|rsa|ed25519|hmac|null [SECRET_FILE]
Prints `key SHA256:...` when there is one, then `serving`. The certificate is self-signed.
"""

import base64
import hashlib
import pathlib
import sys

from Cryptodome.PublicKey import ECC, RSA
from ndn import encoding
from ndn.app_support import security_v2
from ndn.appv2 import NDNApp
from ndn.security import signer as signers
from ndn.utils import timestamp

SEGMENT_BYTES = 7000
FRESHNESS_MS = 60_000
METADATA = encoding.Component.from_str("32=metadata")
MAKERS = {
    "ecdsa": (lambda: ECC.generate(curve="P-256"), signers.Sha256WithEcdsaSigner),
    "ed25519": (lambda: ECC.generate(curve="ed25519"), signers.Ed25519Signer),
    "rsa": (lambda: RSA.generate(2048), signers.Sha256WithRsaSigner),
}


def public_der(key):
    """SubjectPublicKeyInfo."""
    public = key.public_key()
    return public.export_key(format="DER")


def private_der(key):
    """What the signers of python-ndn take."""
    return key.export_key(format="DER")


def make_signer(name, kind, secret):
    """(signer, {certificate name: packet})"""
    if kind == "null":
        return signers.NullSigner(), {}
    if kind == "digest":
        return signers.DigestSha256Signer(), {}
    if kind == "hmac":
        locator = encoding.Name.from_str(name + "/KEY/hmac")
        return signers.HmacSha256Signer(locator, pathlib.Path(secret).read_bytes()), {}
    generate, signer_of = MAKERS[kind]
    key = generate()
    spki = public_der(key)
    key_name = encoding.Name.from_str(f"{name}/KEY/{kind}")
    certificate_name, certificate = security_v2.self_sign(
        key_name, spki, signer_of(key_name, private_der(key)))
    digest = base64.urlsafe_b64encode(hashlib.sha256(spki).digest()).rstrip(b"=").decode()
    print(f"key SHA256:{digest}", flush=True)
    return signer_of(certificate_name, private_der(key)), {
        encoding.Name.to_str(certificate_name): bytes(certificate)}


def packets(app, name, content, signer):
    """(metadata packet, {name: segment})"""
    versioned = encoding.Name.from_str(name) + [encoding.Component.from_version(timestamp())]
    count = max(1, -(-len(content) // SEGMENT_BYTES))
    last = encoding.Component.from_segment(count - 1)
    found = {}
    for number in range(count):
        segment = versioned + [encoding.Component.from_segment(number)]
        piece = content[number * SEGMENT_BYTES:(number + 1) * SEGMENT_BYTES]
        found[encoding.Name.to_str(segment)] = bytes(app.make_data(
            segment, piece, signer=signer, freshness_period=FRESHNESS_MS, final_block_id=last))
    described = encoding.Name.from_str(name) + [
        METADATA, encoding.Component.from_version(timestamp()), encoding.Component.from_segment(0)]
    metadata = app.make_data(described, encoding.Name.to_bytes(versioned), signer=signer,
                             freshness_period=1000,
                             final_block_id=encoding.Component.from_segment(0))
    return bytes(metadata), found


def main(name, file, kind, secret=None):
    app = NDNApp()
    signer, certificates = make_signer(name, kind, secret)
    content = pathlib.Path(file).read_bytes()
    metadata, segments = packets(app, name, content, signer)
    everything = {**segments, **certificates}

    @app.route(name)
    def on_interest(asked, _parameters, reply, _context):
        uri = encoding.Name.to_str(asked)
        if bytes(METADATA) in (bytes(component) for component in asked):
            reply(metadata)
        elif uri in everything:
            reply(everything[uri])

    print("serving", flush=True)
    app.run_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
