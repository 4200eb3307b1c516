"""NDNd: `ndnd cat` reads byname, byname reads `ndnd put`, and the two forwarders link up."""

import json

from harness import nodes, samples
from harness.case import Case, grid
from harness.matrix import FORWARDERS, IsReadByByname, NAME, ReadsFromByname


class CatReadsByname(ReadsFromByname):
    needs = ("ndnd",)
    consumer = nodes.ndnd_cat

    @grid(forwarder=FORWARDERS, scheme=("unix", "tcp"))
    def check_small_files(self, forwarder, scheme):
        self.check_reads_over(forwarder, scheme)

    @grid(forwarder=FORWARDERS)
    def check_large_file(self, forwarder):
        self.check_reads(forwarder, "unix", [samples.LARGE])

    @grid(forwarder=FORWARDERS)
    def check_absent_file(self, forwarder):
        result = self.check_absent(forwarder, NAME + "/absent")
        self.assertNotEqual(result.code, 0, str(result))
        self.assertNotIn("panic", result.stderr)

    def test_unroutable_name(self):
        """Our forwarder says so with a Nack; the client must understand it."""
        result = self.check_absent("byname", "/nowhere/f")
        self.assertNotEqual(result.code, 0, str(result))


class PutIsReadByByname(IsReadByByname):
    needs = ("ndnd",)

    def publish(self, hub, relative, name):
        nodes.ndnd_put(self.lab, hub, samples.directory() / relative, name)

    @grid(forwarder=FORWARDERS)
    def check_published_over_tcp(self, forwarder):
        """A producer that registers its prefix over TCP."""
        hub = nodes.FORWARDERS[forwarder](self.lab)
        sample = samples.directory() / "many-segments.bin"
        nodes.ndnd_put(self.lab, hub, sample, "/pub/f", "tcp")
        out = self.lab.path("out/f")
        result = nodes.byname_get_insecure(self.lab, hub.uri(), "/pub/f", out)
        self.assertEqual(result.code, 0, str(result))
        self.assertIsNone(samples.difference(out, "many-segments.bin"))

    @grid(forwarder=FORWARDERS)
    def check_empty_object(self, forwarder):
        self.check_read(forwarder, "unix", "empty")


class BynameThroughNdnd(Case):
    """byname at both ends, NDNd's forwarder in between."""

    needs = ("ndnd",)

    @grid(serve_scheme=("unix", "tcp", "ws"), get_scheme=("unix", "tcp", "udp", "ws"))
    def check_verified_read(self, serve_scheme, get_scheme):
        """The reader has the publisher's home, whose own keys are anchors, so all is verified."""
        hub = nodes.NdndForwarder(self.lab)
        nodes.byname_serve(self.lab, hub, samples.directory(), NAME, serve_scheme)
        out = self.lab.path("out/f")
        argv = [nodes.byname_binary(), "get", NAME + "/many-segments.bin",
                "--connect", hub.uri(get_scheme), "-o", out]
        env = {"BYNAME_HOME": str(self.lab.path("publisher/home"))}
        result = self.lab.run(argv, env)
        self.assertEqual(result.code, 0, str(result))
        self.assertIsNone(samples.difference(out, "many-segments.bin"))

    def test_unknown_key_is_refused(self):
        hub = nodes.NdndForwarder(self.lab)
        nodes.byname_serve(self.lab, hub, samples.directory(), NAME)
        out = self.lab.path("out/f")
        result = nodes.byname_get(self.lab, hub.uri(), NAME + "/many-segments.bin", out)
        self.assertEqual(result.code, 6, str(result))
        self.assertEqual(list(out.parent.iterdir()), [], f"something was left behind: {result}")

    def test_absent_file(self):
        hub = nodes.NdndForwarder(self.lab)
        nodes.byname_serve(self.lab, hub, samples.directory(), NAME)
        out = self.lab.path("out/f")
        result = nodes.byname_get_insecure(self.lab, hub.uri(), NAME + "/absent", out)
        self.assertEqual(result.code, 3, str(result))
        self.assertFalse(out.exists())

    def test_silent_forwarder(self):
        """NDNd drops an Interest without a route and says nothing: 4, within the time-out."""
        hub = nodes.NdndForwarder(self.lab)
        out = self.lab.path("out/f")
        result = nodes.byname_get(self.lab, hub.uri(), "/nowhere/f", out, "--timeout", "3")
        self.assertEqual(result.code, 4, str(result))
        self.assertFalse(out.exists())


class PathTraces(Case):
    """A forwarder that knows nothing of path traces, in the middle, first and last."""

    needs = ("ndnd",)
    UNKNOWN = "does not report where it has it from"

    def told(self, forwarder):
        """What `get -v` and `explain` say of a path, and the hops of the content."""
        name = NAME + "/many-segments.bin"
        env = {"BYNAME_HOME": str(self.lab.path("publisher/home"))}
        out = self.lab.path("out/f")
        at = ["--connect", forwarder.uri()]
        got = self.lab.run([nodes.byname_binary(), "get", "-v", name, *at, "-o", out], env)
        self.assertEqual(got.code, 0, str(got))
        self.assertIsNone(samples.difference(out, "many-segments.bin"))
        shown = self.lab.run([nodes.byname_binary(), "explain", name, *at], env)
        self.assertEqual(shown.code, 0, str(shown))
        steps = self.lab.run([nodes.byname_binary(), "explain", name, *at, "--json"], env)
        self.assertEqual(steps.code, 0, str(steps))
        hops = [step["hops"] for step in map(json.loads, steps.stdout.splitlines())
                if step["step"] == "content"]
        return got.stderr, shown.stdout.decode(), hops[0]

    def test_behind_ours_the_rest_is_said_to_be_unknown(self):
        far = nodes.NdndForwarder(self.lab, host=self.outside_address())
        nodes.byname_serve(self.lab, far, samples.directory(), NAME)
        near = nodes.BynameForwarder(self.lab, routes=[(NAME, far.uri("tcp"))],
                                     flags=("--cs-entries", "0"))
        got, shown, hops = self.told(near)
        self.assertIn(self.UNKNOWN, got)
        self.assertIn(self.UNKNOWN, shown)
        self.assertEqual([hop["origin"] for hop in hops], ["neighbour"], hops)

    def test_in_front_of_ours_nobody_reports(self):
        far = nodes.BynameForwarder(self.lab)
        nodes.byname_serve(self.lab, far, samples.directory(), NAME)
        near = nodes.NdndForwarder(self.lab, routes=[(NAME, far.uri("tcp"))])
        got, _, hops = self.told(near)
        self.assertIn("nobody on the path reports", got)
        self.assertEqual(hops, [])


class TwoForwarders(ReadsFromByname):
    """NDNd's forwarder and byname's in a row, over TCP and over UDP with its fragmentation."""

    needs = ("ndnd",)
    consumer = nodes.ndnd_cat

    @grid(scheme=("tcp", "udp"))
    def check_cat_at_ndnd_serve_at_byname(self, scheme):
        far = nodes.BynameForwarder(self.lab)
        near = nodes.NdndForwarder(self.lab, routes=[(NAME, far.uri(scheme))])
        nodes.byname_serve(self.lab, far, samples.directory(), NAME)
        names = samples.SHORT if scheme == "udp" else samples.SMALL
        problems = self.fetch_all(near.uri(), NAME, names)
        self.assertEqual(problems, [], "\n".join(problems))

    def test_ndnd_reassembles_what_byname_fragments(self):
        far = nodes.BynameForwarder(self.lab, host=self.outside_address())
        near = nodes.NdndForwarder(self.lab, routes=[(NAME, far.uri("udp"))])
        nodes.byname_serve(self.lab, far, samples.directory(), NAME)
        problems = self.fetch_all(near.uri(), NAME, samples.SHORT)
        self.assertEqual(problems, [], "\n".join(problems))

    @grid(scheme=("tcp", "udp", "ws"))
    def check_get_at_byname_put_at_ndnd(self, scheme):
        far = nodes.NdndForwarder(self.lab)
        sample = samples.directory() / "many-segments.bin"
        nodes.ndnd_put(self.lab, far, sample, "/pub/f")
        near = nodes.BynameForwarder(self.lab, routes=[("/pub", far.uri(scheme))])
        out = self.lab.path("out/f")
        result = nodes.byname_get_insecure(self.lab, near.uri(), "/pub/f", out)
        self.assertEqual(result.code, 0, str(result))
        self.assertIsNone(samples.difference(out, "many-segments.bin"))
