"""An administrator with NDNts' @ndn/nfdmgmt, which was made against NFD.

What NDNd lacks (channels, announcements, erasing, flags of faces) is asked of byname only.
"""

import json

from harness import admin, nodes, samples
from harness.case import Case, grid
from harness.lab import wait_until
from harness.matrix import FORWARDERS

MULTICAST = "/localhost/nfd/strategy/multicast"
ORIGIN_CLIENT, ORIGIN_ANNOUNCED, ORIGIN_STATIC = 65, 129, 255
PERMANENT = 2
LOCAL_FIELDS, RELIABILITY, CONGESTION_MARKING = 1, 2, 4
CS_ADMIT, CS_SERVE = 1, 2


class Nfdmgmt(Case):
    needs = ("ndnts", "ndnd")

    def start(self, forwarder):
        """A forwarder under test and the URI of a neighbour."""
        self.hub, self.far = admin.pair(self.lab, forwarder)
        return f"udp4://127.0.0.1:{self.far.port}"

    def steps(self, *steps):
        """The results of some steps, in one session."""
        result = nodes.ndnts_run(self.lab, "nfdmgmt.mjs", self.hub.uri(), json.dumps(steps))
        self.assertEqual(result.code, 0, str(result))
        return [json.loads(line)["result"] for line in result.stdout.splitlines()]

    def invoke(self, command, status=200, **parameters):
        """The parameters in the response to one command."""
        response = self.steps(["invoke", command, parameters])[0]
        self.assertEqual(response["statusCode"], status, str(response))
        return response["parameters"]

    def faces(self):
        """{face: its status}"""
        return {face["faceId"]: face for face in self.steps(["list", "FaceStatus"])[0]}

    def routes(self, prefix):
        """The routes of a prefix in the RIB."""
        entries = self.steps(["list", "RibEntry"])[0]
        return [route for entry in entries if entry["name"] == prefix for route in entry["route"]]

    @grid(forwarder=FORWARDERS)
    def check_general_status(self, forwarder):
        self.start(forwarder)
        first, second = self.steps(["list", "GeneralStatus"], ["list", "GeneralStatus"])
        self.assertEqual(len(first), 1)
        self.assertTrue(first[0]["nfdVersion"])
        self.assertLess(first[0]["startTimestamp"], first[0]["currentTimestamp"])
        self.assertGreater(first[0]["nInInterests"], 0)
        self.assertGreaterEqual(second[0]["nInInterests"], first[0]["nInInterests"])

    @grid(forwarder=FORWARDERS)
    def check_routes(self, forwarder):
        """Flags, origins and expiry of routes; a route for oneself needs no face."""
        uri = self.start(forwarder)
        face = self.invoke("faces/create", uri=uri)["faceId"]
        answer = self.invoke("rib/register", name="/x", faceId=face, origin=ORIGIN_STATIC, cost=7,
                             flags=2, expirationPeriod=60_000)
        self.assertEqual(answer, {"name": "/x", "faceId": face, "origin": ORIGIN_STATIC,
                                  "cost": 7, "flags": 2, "expirationPeriod": 60_000})
        route, = self.routes("/x")
        self.assertEqual((route["faceId"], route["cost"], route["flags"]), (face, 7, 2))
        self.assertLessEqual(route["expirationPeriod"], 60_000)
        self.invoke("rib/unregister", name="/x", faceId=face, origin=ORIGIN_STATIC)
        self.assertEqual(self.routes("/x"), [])
        own = self.invoke("rib/register", name="/y", origin=ORIGIN_CLIENT)
        self.assertEqual((own["cost"], own["flags"]), (0, 1))
        self.assertNotEqual(own["faceId"], face)

    def test_expired_route_is_gone(self):
        uri = self.start("byname")
        face = self.invoke("faces/create", uri=uri)["faceId"]
        self.invoke("rib/register", name="/x", faceId=face, expirationPeriod=6000)
        self.assertEqual(len(self.routes("/x")), 1)
        wait_until(lambda: not self.routes("/x"), "the route to expire")

    def test_face_of_byname(self):
        """Everything about a face that NFD lets one choose; a second one is refused with it."""
        uri = self.start("byname")
        wanted = {"uri": uri, "facePersistency": PERMANENT, "mtu": 1300,
                  "flags": RELIABILITY, "mask": RELIABILITY,
                  "baseCongestionMarkingInterval": 50_000_000, "defaultCongestionThreshold": 32768}
        made = self.invoke("faces/create", **wanted)
        face = made["faceId"]
        for key in ("uri", "facePersistency", "mtu", "baseCongestionMarkingInterval",
                    "defaultCongestionThreshold"):
            self.assertEqual(made[key], wanted[key], key)
        self.assertEqual(made["flags"] & RELIABILITY, RELIABILITY)
        same = self.invoke("faces/create", status=409, uri=uri)
        self.assertEqual(same["faceId"], face)
        listed = self.faces()[face]
        self.assertEqual(listed["localUri"], made["localUri"])
        self.assertEqual(listed["mtu"], 1300)
        self.assertEqual(listed["flags"] & RELIABILITY, RELIABILITY)

    def test_update_of_a_face(self):
        uri = self.start("byname")
        face = self.invoke("faces/create", uri=uri)["faceId"]
        changed = self.invoke("faces/update", faceId=face, facePersistency=PERMANENT, flags=0,
                              mask=CONGESTION_MARKING)
        self.assertEqual((changed["faceId"], changed["facePersistency"]), (face, PERMANENT))
        listed = self.faces()[face]
        self.assertEqual(listed["facePersistency"], PERMANENT)
        self.assertEqual(listed["flags"] & CONGESTION_MARKING, 0)
        self.invoke("faces/update", status=404, faceId=face + 1000, flags=0,
                    mask=CONGESTION_MARKING)
        self.invoke("faces/update", status=400, faceId=face, flags=1)
        # Fields of this machine are for its own clients.
        self.invoke("faces/update", status=409, faceId=face, flags=LOCAL_FIELDS,
                    mask=LOCAL_FIELDS)

    def test_query_and_channels(self):
        uri = self.start("byname")
        face = self.invoke("faces/create", uri=uri)["faceId"]
        found = self.steps(["query", {"uriScheme": "udp4"}], ["query", {"uri": uri}],
                           ["query", {"faceId": face}], ["query", {"faceScope": 1}],
                           ["query", {"faceId": face, "facePersistency": PERMANENT}])
        numbers = [[each["faceId"] for each in faces] for faces in found]
        self.assertEqual(numbers[:3], [[face]] * 3)
        self.assertNotIn(face, numbers[3])
        self.assertGreater(len(numbers[3]), 0, "the tool's own face is local")
        self.assertEqual(numbers[4], [])
        channels = [each["localUri"] for each in self.steps(["list", "ChannelStatus"])[0]]
        self.assertIn(f"unix://{self.hub.socket_path}", channels)
        for scheme in ("tcp4", "udp4"):
            self.assertIn(f"{scheme}://127.0.0.1:{self.hub.port}", channels)

    @grid(forwarder=FORWARDERS)
    def check_strategy(self, forwarder):
        self.start(forwarder)
        answer = self.invoke("strategy-choice/set", name="/x", strategy=MULTICAST)
        self.assertEqual(answer["name"], "/x")
        self.assertRegex(answer["strategy"], rf"^{MULTICAST}/v=\d+$")
        chosen = {each["name"]: each["strategy"] for each in
                  self.steps(["list", "StrategyChoice"])[0]}
        self.assertEqual(chosen["/x"], answer["strategy"])
        self.invoke("strategy-choice/unset", name="/x")
        left = {each["name"] for each in self.steps(["list", "StrategyChoice"])[0]}
        self.assertEqual(left, set(chosen) - {"/x"})

    def test_content_store(self):
        """Resized, switched off, and emptied under a name."""
        self.start("byname")
        nodes.ndnd_put(self.lab, self.hub, samples.directory() / "many-segments.bin", "/pub/f")
        out = self.lab.path("out/f")
        nodes.ndnd_cat(self.lab, self.hub.uri(), "/pub/f", out)
        before = self.steps(["list", "CsInfo"])[0][0]
        self.assertGreater(before["nCsEntries"], 300)
        erased, after = self.steps(["erase", "/pub"], ["list", "CsInfo"])
        self.assertGreater(erased, 300)
        self.assertLess(after[0]["nCsEntries"], 10)
        answer = self.invoke("cs/config", capacity=100, flags=CS_SERVE, mask=CS_ADMIT | CS_SERVE)
        self.assertEqual(answer, {"capacity": 100, "flags": CS_SERVE})
        nodes.ndnd_cat(self.lab, self.hub.uri(), "/pub/f", out)
        self.assertIsNone(samples.difference(out, "many-segments.bin"))
        now = self.steps(["list", "CsInfo"])[0][0]
        self.assertEqual((now["capacity"], now["flags"]), (100, CS_SERVE))
        self.assertLessEqual(now["nCsEntries"], after[0]["nCsEntries"])

    def test_announcement(self):
        """A route by a signed announcement, with the origin that says so."""
        self.start("byname")
        announced, entries = self.steps(["announce", "/q", 60_000], ["list", "RibEntry"])
        self.assertEqual(announced["statusCode"], 200, str(announced))
        parameters = announced["parameters"]
        self.assertEqual((parameters["name"], parameters["origin"]), ("/q", ORIGIN_ANNOUNCED))
        origins = [route["origin"] for entry in entries if entry["name"] == "/q"
                   for route in entry["route"]]
        self.assertEqual(origins, [ORIGIN_ANNOUNCED])
