"""All that clients do with files that are there: the same through every kind of server."""

import hashlib
import re
import zlib

from door import SIZES, escaped, files_below, parts_of
from harness import xrootd

LONG = "many-segments.bin"
SEGMENT = "8193.bin"
# Lines of a server's configuration that these checks need.
CHECKSUM_LINES = ("xrootd.chksum max 4 adler32 crc32c md5", "ofs.ckslib * $PLUGIN")


class Serving:
    """Checks for a case with DoorCase's methods: a server, what `content` has published there, and
    the environment that clients need."""

    def assert_copies(self, server, folder, env=None):
        """xrdcp: every file, several streams, a tree, with checksums."""
        out = self.lab.path("copies/out")
        for relative in files_below(folder):
            self.assert_ok(xrootd.xrdcp(server, "/" + relative, out, "-f", env=env))
            self.assert_same(out, folder / relative)
        plain = {**(env or {}), "XRD_CPUSEPGWRTRD": "0"}
        for flags, chosen in ((("-S", "4"), env), ((), plain),
                              (("--cksum", "adler32:source"), env),
                              (("--cksum", "crc32c:source"), env)):
            self.assert_ok(xrootd.xrdcp(server, "/" + LONG, out, "-f", *flags, env=chosen))
            self.assert_same(out, folder / LONG)
        # It makes the directory itself only if there is one to make it in.
        tree = self.lab.path("copies/tree/.keep").parent
        self.assert_ok(xrootd.xrdcp(server, "/sub", tree, "-r", "-f", env=env))
        self.assertEqual(files_below(tree / "sub"), files_below(folder / "sub"))
        for relative in files_below(tree):
            self.assert_same(tree / relative, folder / relative)
        self.assert_error(xrootd.xrdcp(server, "/nothing", out, "-f", env=env), 3011)

    def assert_namespace(self, server, folder, env=None):
        """xrdfs: status, listings, content, checksums."""
        def ask(*arguments):
            return self.assert_ok(xrootd.xrdfs(server, *arguments, env=env))

        for relative in files_below(folder):
            size = (folder / relative).stat().st_size
            self.assertRegex(ask("stat", "/" + relative), rf"Size: +{size}\n")
        self.assertIn("IsDir", ask("stat", "/sub"))
        long = ask("ls", "-l", "/")
        for path in folder.iterdir():
            if path.is_file():
                self.assertRegex(long, rf"{path.stat().st_size} .*/{re.escape(path.name)}\n")
        everything = ask("ls", "-R", "/")
        for relative in files_below(folder):
            self.assertIn(f"{relative}\n", everything)
        content = (folder / LONG).read_bytes()
        self.assertEqual(xrootd.xrdfs(server, "cat", "/" + LONG, env=env).stdout, content)
        tail = xrootd.xrdfs(server, "tail", "-c", "9000", "/" + LONG, env=env)
        self.assertEqual(tail.stdout, content[-9000:])
        self.assertIn("Server Read", ask("locate", "/" + LONG))
        for algorithm, wanted in (("adler32", f"{zlib.adler32(content):08x}"),
                                  ("md5", hashlib.md5(content).hexdigest())):
            said = ask("query", "checksum", f"/{LONG}?cks.type={algorithm}")
            self.assertEqual(said.split(), [algorithm, wanted])
        self.assertIn("oss.free=", ask("query", "space", "/"))
        self.assert_error(xrootd.xrdfs(server, "stat", "/nothing", env=env), 3011)

    def assert_vectors(self, server, folder, env=None):
        """Vector reads of many shapes, and beyond the end."""
        for relative in (LONG, SEGMENT, "one byte.bin"):
            self.assert_ok(xrootd.client(server, "vector", "/" + relative, folder / relative, "7",
                                         env=env))
        said = self.assert_ok(xrootd.client(server, "beyond", "/" + SEGMENT, env=env))
        self.assertIn('"ok": false', said)
        self.assertIn('"errno": 3005', said)

    def assert_serves(self, server, folder, env=None):
        """Everything of XRootD's own protocol."""
        for size in SIZES.values():
            self.assertIn(size, [path.stat().st_size for path in folder.iterdir()])
        self.assert_copies(server, folder, env)
        self.assert_namespace(server, folder, env)
        self.assert_vectors(server, folder, env)

    def assert_http(self, server, folder, *flags, at, relatives=None):
        """HTTP below the address `at`: whole files (all unless told), ranges, properties, digests.
        """
        def get(path, *more):
            got = xrootd.curl(server, path, *flags, *more, at=at)
            self.assertEqual(got.code, 0, f"{path}: {got}")
            return got.stdout

        for relative in relatives or files_below(folder):
            self.assertEqual(get(escaped(relative), "--fail"), (folder / relative).read_bytes(),
                             relative)
        content = (folder / LONG).read_bytes()
        self.assertEqual(get("/" + LONG, "--range", "8190-8300", "--fail"), content[8190:8301])
        ranges = [(0, 0), (8191, 20_000), (5, 7), (len(content) - 1, len(content) - 1)]
        text = ",".join(f"{first}-{last}" for first, last in ranges)
        head = self.lab.path("head")
        body = get("/" + LONG, "--range", text, "--dump-header", head)
        kind = re.search(r"(?i)content-type: (multipart.*)", head.read_text()).group(1)
        self.assertEqual(sorted(parts_of(body, kind)),
                         sorted((first, content[first:last + 1]) for first, last in ranges))
        listing = get("/", "--request", "PROPFIND", "--header", "Depth: 1", "--fail").decode()
        for path in folder.iterdir():
            if path.is_file():
                self.assertIn(f"getcontentlength>{path.stat().st_size}<", listing)
        self.assertIn("8193.bin", listing)
        digest = get("/" + LONG, "--head", "--fail", "--header", "Want-Digest: adler32").decode()
        self.assertIn(f"Digest: adler32={zlib.adler32(content):08x}", digest)
        missing = get("/nothing", "--write-out", "%{http_code}")
        self.assertTrue(missing.endswith(b"404"), missing)
