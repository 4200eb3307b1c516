"""NDNts: its libraries read files, ranges and directories from byname.

byname reads a file server made of them.
"""

import json

from harness import admin, nodes, samples
from harness.case import Case, grid
from harness.lab import wait_until
from harness.matrix import FORWARDERS, IsReadByByname, NAME, ReadsFromByname

ENTRY_COUNT = 3000
# How the face of a client is called.
FACE_SCHEMES = {"udp": "udp4://", "ws": "wsclient://"}


class ClientReadsByname(ReadsFromByname):
    needs = ("ndnts", "ndnd")
    consumer = nodes.ndnts_get

    @grid(forwarder=FORWARDERS, scheme=("unix", "tcp", "udp", "ws"))
    def check_small_files(self, forwarder, scheme):
        self.check_reads_over(forwarder, scheme)

    def test_fragments_of_byname(self):
        """Data larger than the MTU of the link between forwarder and client."""
        hub = nodes.BynameForwarder(self.lab, host=self.outside_address())
        nodes.byname_serve(self.lab, hub, samples.directory(), NAME)
        problems = self.fetch_all(hub.uri("udp"), NAME, ["many-segments.bin"])
        self.assertEqual(problems, [], "\n".join(problems))

    @grid(forwarder=FORWARDERS, scheme=("unix", "ws"))
    def check_large_file(self, forwarder, scheme):
        self.check_reads(forwarder, scheme, [samples.LARGE])

    @grid(forwarder=FORWARDERS)
    def check_absent_file(self, forwarder):
        result = self.check_absent(forwarder, NAME + "/absent")
        self.assertEqual(result.code, 3, f"no application Nack: {result}")

    def test_unroutable_name(self):
        result = self.check_absent("byname", "/nowhere/f")
        self.assertNotEqual(result.code, 0, str(result))

    def test_metadata_describes_the_file(self):
        """Size, segment size, mode and modification time, as @ndn/fileserver's client sees them."""
        hub = nodes.BynameForwarder(self.lab)
        nodes.byname_serve(self.lab, hub, samples.directory(), NAME)
        out = self.lab.path("out/f")
        name = samples.uri(NAME, "many-segments.bin")
        seen = json.loads(nodes.ndnts_get(self.lab, hub.uri(), name, out).stdout)
        status = (samples.directory() / "many-segments.bin").stat()
        self.assertEqual(seen["size"], status.st_size)
        self.assertEqual(seen["segmentSize"], samples.SEGMENT_BYTES)
        self.assertEqual(seen["lastSegment"], 300)
        self.assertEqual(seen["mode"], status.st_mode)
        self.assertEqual(seen["mtimeMs"], status.st_mtime_ns // 1_000_000)

    @grid(offset=(0, 8191, 100_000), length=(1, 2, 50_000))
    def check_byte_range(self, offset, length):
        hub = nodes.BynameForwarder(self.lab)
        nodes.byname_serve(self.lab, hub, samples.directory(), NAME)
        result = nodes.ndnts_run(self.lab, "range.mjs", hub.uri(), NAME, "many-segments.bin",
                                 offset, length)
        whole = (samples.directory() / "many-segments.bin").read_bytes()
        self.assertEqual(result.stdout, whole[offset:offset + length], str(result)[:500])


class ClientListsByname(Case):
    """Directory listings as the file-server client of @ndn/fileserver reads them."""

    needs = ("ndnts", "ndnd")

    def list_tree(self, hub, *out):
        """{path: size, or None for a directory}"""
        result = nodes.ndnts_run(self.lab, "tree.mjs", hub.uri(), NAME, *out)
        self.assertEqual(result.code, 0, str(result))
        entries = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual(len(entries), len({entry["path"] for entry in entries}))
        return {entry["path"]: entry.get("size") for entry in entries}

    @grid(forwarder=FORWARDERS)
    def check_recursive_download(self, forwarder):
        hub = nodes.FORWARDERS[forwarder](self.lab)
        nodes.byname_serve(self.lab, hub, samples.directory(), NAME)
        out = self.lab.path("out/tree")
        found = self.list_tree(hub, out)
        wanted = {**samples.SMALL, samples.LARGE: samples.LARGE_BYTES, "sub": None,
                  "sub/directory": None}
        self.assertEqual(found, wanted)
        problems = [samples.difference(out / name, name) for name in samples.SMALL]
        self.assertFalse([p for p in problems if p])

    def test_empty_directory(self):
        hub = nodes.BynameForwarder(self.lab)
        directory = self.lab.path("published/empty/.").parent / "empty"
        directory.mkdir(exist_ok=True)
        nodes.byname_serve(self.lab, hub, directory.parent, NAME)
        self.assertEqual(self.list_tree(hub), {"empty": None})

    def test_listing_of_many_segments(self):
        hub = nodes.BynameForwarder(self.lab)
        names = [f"entry number {number:06d} of a long listing" for number in range(ENTRY_COUNT)]
        for name in names:
            self.lab.path(f"published/{name}").touch()
        nodes.byname_serve(self.lab, hub, self.lab.path("published"), NAME)
        out = self.lab.path("out/ls")
        result = nodes.ndnts_get(self.lab, hub.uri(), NAME + "/32=ls", out)
        self.assertTrue(out.exists(), str(result))
        listed = out.read_bytes().decode().split("\0")
        self.assertEqual(listed, sorted(names) + [""])


class FileServerIsReadByByname(IsReadByByname):
    needs = ("ndnts", "ndnd")
    options = ("6144", "sha256")

    def publish(self, hub, relative, name):
        published = self.lab.path("published/f")
        published.symlink_to(samples.directory() / relative)
        parent = name.rpartition("/")[0]
        nodes.ndnts_serve(self.lab, hub, published.parent, parent, options=self.options)

    def serve_samples(self, forwarder):
        """Publishes all samples at a forwarder."""
        hub = nodes.FORWARDERS[forwarder](self.lab)
        nodes.ndnts_serve(self.lab, hub, samples.directory(), NAME, options=self.options)
        return hub

    def byname(self, hub, *arguments):
        """Runs byname as a reader that has never seen the publisher."""
        argv = [nodes.byname_binary(), *arguments, "--connect", hub.uri(), "--insecure"]
        return self.lab.run(argv, {"BYNAME_HOME": str(self.lab.path("reader/home"))})

    @grid(forwarder=FORWARDERS)
    def check_recursive_get(self, forwarder):
        hub = self.serve_samples(forwarder)
        out = self.lab.path("out/tree")
        result = self.byname(hub, "get", "-r", NAME, "-o", out)
        self.assertEqual(result.code, 0, str(result))
        problems = [samples.difference(out / name, name) for name in samples.SMALL]
        self.assertFalse([p for p in problems if p])

    def test_published_over_tcp(self):
        """A producer on a loopback TCP face may register for itself."""
        hub = nodes.BynameForwarder(self.lab)
        nodes.ndnts_serve(self.lab, hub, samples.directory(), NAME, "tcp", self.options)
        self.check_gets(hub)

    @grid(scheme=("udp", "ws"))
    def check_published_over(self, scheme):
        """Who is not local may not register; the administrator gives the face its route."""
        hub = nodes.BynameForwarder(self.lab)
        tool = admin.NdndTool(self.lab, hub)
        before = self.faces_over(tool, scheme)
        nodes.ndnts_serve(self.lab, hub, samples.directory(), NAME, scheme, self.options,
                          wait=False)
        wait_until(lambda: self.faces_over(tool, scheme) - before, f"a face on {scheme}")
        face, = self.faces_over(tool, scheme) - before
        self.assertEqual(tool.routes(NAME), {}, "it has registered without authority")
        tool.done("route-add", f"prefix={NAME}", f"face={face}")
        self.check_gets(hub)

    @staticmethod
    def faces_over(tool, scheme):
        """The faces that others have opened over a kind of link."""
        return {face["faceid"] for face in tool.lines("face-list")
                if face["remote"].startswith(FACE_SCHEMES[scheme])}

    def check_gets(self, hub):
        """byname reads a file that is served."""
        out = self.lab.path("out/f")
        result = self.byname(hub, "get", NAME + "/many-segments.bin", "-o", out)
        self.assertEqual(result.code, 0, str(result))
        self.assertIsNone(samples.difference(out, "many-segments.bin"))

    def test_names_with_spaces_and_utf8(self):
        """An argument that begins with a slash is a path: spaces and UTF-8 as they are."""
        hub = self.serve_samples("byname")
        for number, relative in enumerate(samples.SMALL):
            out = self.lab.path(f"out/{number}")
            path = f"{NAME}/{relative}".replace("%", "%25")
            result = self.byname(hub, "get", path, "-o", out)
            self.assertIsNone(samples.difference(out, relative), str(result))

    def test_list(self):
        hub = self.serve_samples("byname")
        result = self.byname(hub, "ls", "--json", NAME)
        self.assertEqual(result.code, 0, str(result))
        listed = [json.loads(line) for line in result.stdout.splitlines()]
        found = {entry["name"]: entry["type"] for entry in listed}
        files = [name for name in (*samples.SMALL, samples.LARGE) if "/" not in name]
        wanted = {f"{NAME}/{name.replace('%', '%25')}": "file" for name in files}
        self.assertEqual(found, wanted | {f"{NAME}/sub": "directory"})
        self.assertEqual(len(listed), len(found))

    def test_absent_file(self):
        hub = self.serve_samples("byname")
        out = self.lab.path("out/f")
        result = self.byname(hub, "get", NAME + "/absent", "-o", out)
        self.assertEqual(result.code, 3, str(result))
        self.assertFalse(out.exists())


class EcdsaFileServer(Case):
    """Segments of 8192 bytes, signed with a key that exists but that nobody trusts."""

    needs = ("ndnts", "ndnd")

    def serve(self, forwarder):
        """Publishes all samples at a forwarder."""
        hub = nodes.FORWARDERS[forwarder](self.lab)
        nodes.ndnts_serve(self.lab, hub, samples.directory(), NAME, options=("8192", "ecdsa"))
        return hub

    @grid(forwarder=FORWARDERS)
    def check_insecure_get(self, forwarder):
        hub = self.serve(forwarder)
        out = self.lab.path("out/f")
        result = nodes.byname_get_insecure(self.lab, hub.uri(), NAME + "/many-segments.bin", out)
        self.assertEqual(result.code, 0, str(result))
        self.assertIsNone(samples.difference(out, "many-segments.bin"))

    @grid(forwarder=FORWARDERS)
    def check_refused_without_insecure(self, forwarder):
        hub = self.serve(forwarder)
        out = self.lab.path("out/f")
        name = NAME + "/many-segments.bin"
        result = nodes.byname_get(self.lab, hub.uri(), name, out, "--timeout", "3")
        self.assertIn(result.code, (5, 6), str(result))
        self.assertEqual(list(out.parent.iterdir()), [], f"something was left behind: {result}")
