"""Every way in which XRootD's clients read, byte for byte."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from door import DoorCase, NAME, files_below  # noqa: E402  (the path above must come first)
from harness import nodes, samples, xrootd  # noqa: E402
from harness.lab import wait_until  # noqa: E402
from serving import CHECKSUM_LINES, Serving  # noqa: E402

SPARSE_BYTES = 4 * 2**30 + 1
LINKS = 400


class Everything(DoorCase, Serving):
    def test_of_one_server(self):
        folder = self.content()
        door = self.door(self.publish(folder), *CHECKSUM_LINES)
        self.assert_serves(door, folder)
        self.assert_alive(door)


class Copies(DoorCase):
    def test_a_tree(self):
        folder = self.content()
        # xrdcp copies no root: its path would be empty.
        door = self.door(self.publish(folder), "byname.prefix /run7 /")
        out = self.lab.path("out/.keep").parent
        self.assert_ok(xrootd.xrdcp(door, "/run7", out, "-r"))
        self.assertEqual(files_below(out / "run7"), files_below(folder))
        for relative in files_below(folder):
            self.assert_same(out / "run7" / relative, folder / relative)

    def test_a_large_file_over_several_streams(self):
        door = self.door(self.publish(samples.directory()))
        wanted = samples.directory() / samples.LARGE
        for number, (flags, env) in enumerate(((("-S", "4"), {}), ((), {}),
                                               ((), {"XRD_CPUSEPGWRTRD": "0"}))):
            out = self.lab.path(f"out/{number}")
            self.assert_ok(xrootd.xrdcp(door, "/" + samples.LARGE, out, *flags, env=env))
            self.assert_same(out, wanted)

    def test_more_than_four_gibibytes(self):
        folder = self.node.path("published/.keep").parent
        with open(folder / "sparse.bin", "wb") as sparse:
            for offset in (0, 2**31 - 1, 2**32 - 2, SPARSE_BYTES - 1):
                sparse.seek(offset)
                sparse.write(b"\x2a")
        door = self.door(self.publish(folder))
        stat = self.assert_ok(xrootd.xrdfs(door, "stat", "/sparse.bin"))
        self.assertRegex(stat, rf"Size: +{SPARSE_BYTES}\n")
        # Both as they come, without a copy on disk.
        argv = self.node.inside(["xrdcp", "--nopbar", "--silent", door.url("/sparse.bin"), "-"])
        copy = subprocess.Popen(argv, stdout=subprocess.PIPE, env=self.lab.env(xrootd.CLIENT_ENV))
        with copy, open(folder / "sparse.bin", "rb") as wanted:
            self.assertIsNone(_difference(copy.stdout, wanted))
        self.assertEqual(copy.returncode, 0)


def _difference(one, other, piece=1 << 20):
    """None if two streams are the same, otherwise where they differ."""
    at = 0
    while True:
        left, right = one.read(piece), other.read(piece)
        if left != right:
            return f"they differ between {at} and {at + piece}"
        if not left:
            return None
        at += len(left)


class Namespace(DoorCase):
    def test_what_xrdfs_asks(self):
        folder = self.content()
        door = self.door(self.publish(folder))
        for relative in files_below(folder):
            path = folder / relative
            stat = self.assert_ok(xrootd.xrdfs(door, "stat", "/" + relative))
            self.assertRegex(stat, rf"Size: +{path.stat().st_size}\n")
            self.assertRegex(stat, r"Flags: +\d+ \(IsReadable\)")
        self.assertIn("IsDir", self.assert_ok(xrootd.xrdfs(door, "stat", "/sub")))
        names = self.assert_ok(xrootd.xrdfs(door, "ls", "/")).splitlines()
        self.assertEqual(sorted(names), sorted(f"/{path.name}" for path in folder.iterdir()))
        long = self.assert_ok(xrootd.xrdfs(door, "ls", "-l", "/"))
        for path in folder.iterdir():
            if path.is_file():
                self.assertRegex(long, rf"{path.stat().st_size} .*/{re.escape(path.name)}\n")
        self.assertRegex(long, r"(?m)^d.* /sub$")
        everything = self.assert_ok(xrootd.xrdfs(door, "ls", "-R", "/"))
        for relative in files_below(folder):
            self.assertIn(f"{relative}\n", everything)
        cat = xrootd.xrdfs(door, "cat", "/many-segments.bin")
        self.assertEqual(cat.stdout, (folder / "many-segments.bin").read_bytes())
        tail = xrootd.xrdfs(door, "tail", "-c", "9000", "/many-segments.bin")
        self.assertEqual(tail.stdout, (folder / "many-segments.bin").read_bytes()[-9000:])
        self.assertIn(f":{door.port} Server Read",
                      self.assert_ok(xrootd.xrdfs(door, "locate", "/8192.bin")))
        space = self.assert_ok(xrootd.xrdfs(door, "query", "space", "/"))
        self.assertIn("oss.free=0", space)
        self.assertIn("oss.type=f&oss.used=8193",
                      self.assert_ok(xrootd.xrdfs(door, "query", "xattr", "/8193.bin")))
        self.assertIn("Nodes with RW space", self.assert_ok(xrootd.xrdfs(door, "statvfs", "/")))

    def test_a_directory_of_many_files(self):
        folder = self.node.path("published/.keep").parent
        names = [f"{index:04}" for index in range(3000)]
        for name in names:
            (folder / name).write_text(name)
        door = self.door(self.publish(folder))
        long = self.assert_ok(xrootd.xrdfs(door, "ls", "-l", "/")).splitlines()
        self.assertEqual(sorted(line.split("/")[-1] for line in long), names)
        self.assertTrue(all(" 4 " in line for line in long), long[:3])

    def test_a_directory_of_links_is_one_listing(self):
        folder = self.node.path("published/.keep").parent
        (folder / "pool").mkdir()
        (folder / "run7").mkdir()
        for index in range(LINKS):
            (folder / f"run7/v1-{index}").write_text("x" * (index + 1))
            (folder / f"run7/{index}").symlink_to(f"v1-{index}")
        (folder / "pool/elsewhere").write_text("x" * 5000)
        (folder / "run7/elsewhere").symlink_to("../pool/elsewhere")
        (folder / "run7/folder").symlink_to("../pool")
        door = self.door(self.publish(folder), "byname.metrics $DIR/admin/metrics 1")
        long = self.assert_ok(xrootd.xrdfs(door, "ls", "-l", "/run7"))
        for index in range(LINKS):
            for name in (index, f"v1-{index}"):
                self.assertRegex(long, rf"(?m)^-.* {index + 1} .*/run7/{name}$")
        self.assertRegex(long, r"(?m)^-.* 5000 .*/run7/elsewhere$")
        self.assertRegex(long, r"(?m)^d.*/run7/folder$")
        self.assertLess(self.figure(door, "requests_total"), LINKS // 2)


class Checksums(DoorCase):
    LINES = ("xrootd.chksum max 4 adler32 crc32c md5",)

    def check(self, door, folder):
        """Sums of a file, as a query and while copying."""
        content = (folder / "many-segments.bin").read_bytes()
        for algorithm, wanted in (("adler32", f"{zlib.adler32(content):08x}"),
                                  ("md5", hashlib.md5(content).hexdigest())):
            for _ in range(2):
                path = f"/many-segments.bin?cks.type={algorithm}"
                said = self.assert_ok(xrootd.xrdfs(door, "query", "checksum", path))
                self.assertEqual(said.split(), [algorithm, wanted])
        out = self.lab.path("out")
        for algorithm in ("adler32", "crc32c"):
            self.assert_ok(xrootd.xrdcp(door, "/many-segments.bin", out, "-f", "--cksum",
                                        f"{algorithm}:source"))
            self.assert_same(out, folder / "many-segments.bin")
        missing = xrootd.xrdfs(door, "query", "checksum", "/nothing")
        self.assert_error(missing, 3011)

    def test_of_names(self):
        folder = self.content()
        door = self.door(self.publish(folder), *self.LINES, "ofs.ckslib * $PLUGIN")
        self.check(door, folder)

    def test_that_the_publisher_has_signed(self):
        folder = self.node.path("published/.keep").parent
        content = os.urandom(5_000_000)
        (folder / "signed.bin").write_bytes(content)
        link = self.publish(folder, flags=("--checksums", "adler32,crc32c,md5"))

        def is_signed():
            """They come a moment after the root."""
            stat = self.node.run([nodes.byname_binary(), "stat", "--json", "--insecure",
                                  "--via", self.forwarder.uri(), f"{NAME}/signed.bin"],
                                 {"BYNAME_HOME": str(self.lab.path("reader/home"))})
            return "md5" in json.loads(self.assert_ok(stat))

        wait_until(is_signed, "checksums to be signed")
        door = self.door(link, *self.LINES, "ofs.ckslib * $PLUGIN",
                         "byname.metrics $DIR/admin/metrics 1")
        for algorithm, wanted in (("adler32", f"{zlib.adler32(content):08x}"),
                                  ("md5", hashlib.md5(content).hexdigest())):
            path = f"/signed.bin?cks.type={algorithm}"
            said = self.assert_ok(xrootd.xrdfs(door, "query", "checksum", path))
            self.assertEqual(said.split(), [algorithm, wanted])
        self.assertEqual(self.figure(door, "session_open"), 1)
        self.assertEqual(self.figure(door, "asked_bytes_total"), 0, "nothing was read for them")
        self.assertLess(self.figure(door, "received_bytes_total"), 100_000)
        out = self.lab.path("out")
        for algorithm in ("adler32", "crc32c"):
            self.assert_ok(xrootd.xrdcp(door, "/signed.bin", out, "-f", "--cksum",
                                        f"{algorithm}:source"))
            self.assert_same(out, folder / "signed.bin")

    def test_of_names_and_local_files(self):
        folder = self.content()
        door = self.door(self.publish(folder), *self.LINES, "ofs.ckslib ++ $PLUGIN",
                         loader="ofs.osslib ++ $PLUGIN")
        self.check(door, folder)
        local = door.dir / "local/local"
        local.write_bytes(b"local")
        shutil.chown(local, xrootd.USER, xrootd.USER)
        said = self.assert_ok(xrootd.xrdfs(door, "query", "checksum", "/local"))
        self.assertEqual(said.split(), ["adler32", f"{zlib.adler32(b'local'):08x}"])


class Http(DoorCase, Serving):
    def test_get_ranges_properties_and_digests(self):
        folder = self.content()
        door = self.door(self.publish(folder), *CHECKSUM_LINES,
                         f"xrd.protocol http:{xrootd.HTTP_PORT} libXrdHttp.so")
        self.assert_http(door, folder, at=f"http://localhost:{xrootd.HTTP_PORT}")
        self.assert_alive(door)
