"""An issuer of tokens: signs them, and serves the key that they are checked with by HTTPS.

    issuer.py PORT CERTIFICATE KEY PUBLIC       serves until it is killed

Files are PEM but for PUBLIC, the DER of the public key. Signatures are ES256, made by openssl(1).
"""

import base64
import http.server
import json
import pathlib
import ssl
import subprocess
import sys
import time

KEY_ID = "lab"
COORDINATE_BYTES = 32


def encoded(octets):
    """base64url as JOSE has it."""
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


def address(port):
    """Who signs."""
    return f"https://localhost:{port}"


def token(port, key, subject, scope, lifetime_s=600):
    """A token with the claims of the WLCG profile, signed with the key in the file."""
    now = int(time.time())
    claims = {"wlcg.ver": "1.0", "iss": address(port), "sub": subject, "scope": scope,
              "aud": "https://wlcg.cern.ch/jwt/v1/any", "jti": f"{subject} {now}",
              "nbf": now - 3600, "iat": now - 3600, "exp": now + lifetime_s}
    header = {"typ": "JWT", "alg": "ES256", "kid": KEY_ID}
    text = ".".join(encoded(json.dumps(part).encode()) for part in (header, claims))
    signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", key], input=text.encode(),
                               capture_output=True, check=True).stdout
    return f"{text}.{encoded(raw_signature(signature))}"


def raw_signature(der):
    """Both numbers of an ECDSA signature with their full length, as JOSE has it."""
    numbers, at = b"", 2
    for _ in range(2):
        length = der[at + 1]
        number = der[at + 2:at + 2 + length].lstrip(b"\0")
        numbers += number.rjust(COORDINATE_BYTES, b"\0")
        at += 2 + length
    return numbers


def documents(port, public):
    """What is served: path -> JSON."""
    # The DER of a P-256 key ends with its point: 4, x, y.
    point = public[-2 * COORDINATE_BYTES:]
    key = {"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": KEY_ID,
           "x": encoded(point[:COORDINATE_BYTES]), "y": encoded(point[COORDINATE_BYTES:])}
    return {"/.well-known/openid-configuration": {"issuer": address(port),
                                                  "jwks_uri": address(port) + "/jwks"},
            "/jwks": {"keys": [key]}}


def serve(port, certificate, key, public):
    """Serves until it is killed."""
    answers = documents(port, pathlib.Path(public).read_bytes())

    class Handler(http.server.BaseHTTPRequestHandler):
        """One request."""

        def do_GET(self):  # pylint: disable=invalid-name
            """Answers."""
            answer = answers.get(self.path)
            body = json.dumps(answer).encode()
            self.send_response(404 if answer is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    print("serving", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve(*sys.argv[1:])
