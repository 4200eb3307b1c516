"""A third party: another xrootd pulls a file from the door by HTTP, as FTS has it done."""

import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from door import DoorCase  # noqa: E402  (the path above must come first)
from harness import xrootd  # noqa: E402

LONGER_BYTES = (16 << 20) + 1
OTHER_PORT = 2094
OTHER_HTTP_PORT = 8081


class Pulls(DoorCase):
    def tls(self):
        """Lines for TLS with a key of its own: xrootd 5.5 takes orders over nothing else."""
        folder = xrootd.own(self.node.path("tls/.keep").parent)
        key, certificate = folder / "key.pem", folder / "cert.pem"
        self.assert_ok(self.node.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes",
                                      "-subj", "/CN=localhost", "-days", "2", "-keyout", key,
                                      "-out", certificate]))
        key.chmod(0o400)
        shutil.chown(key, xrootd.USER, xrootd.USER)
        return [f"xrd.tls {certificate} {key}", f"xrd.tlsca certfile {certificate}"]

    def order(self, other, source):
        """Has the other server copy from `source`; what it says in the end."""
        target = f"https://localhost:{OTHER_HTTP_PORT}/{pathlib.Path(source).name}"
        return self.assert_ok(other.node.run([
            "curl", "--silent", "--show-error", "--insecure", "--request", "COPY",
            "--header", f"Source: {source}", target]))

    def test_http_pull_into_another_xrootd(self):
        folder = self.content()
        (folder / "longer.bin").write_bytes(os.urandom(LONGER_BYTES))
        door = self.door(self.publish(folder),
                         f"xrd.protocol http:{xrootd.HTTP_PORT} libXrdHttp.so")
        other = xrootd.Server(self.node, [f"xrd.protocol http:{OTHER_HTTP_PORT} libXrdHttp.so",
                                          "http.exthandler xrdtpc libXrdHttpTPC.so",
                                          # XRootD from 5.9 on takes nothing from this machine.
                                          "tpc.allow local", *self.tls()],
                              label="other", port=OTHER_PORT)
        source = f"http://localhost:{xrootd.HTTP_PORT}"
        for relative in ("many-segments.bin", "longer.bin"):
            self.assertIn("success: Created", self.order(other, f"{source}/{relative}"))
            self.assert_same(other.dir / "local" / relative, folder / relative)
        self.assertRegex(self.order(other, f"{source}/nothing"),
                         "no such file or directory|404 Not Found")
        self.assert_alive(door)
