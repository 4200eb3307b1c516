"""Neighbours that mean harm, over real links, while others use the same forwarder.

    x ---- f ---- y      x and y attack; z takes what it is sent and never answers; the publisher
          / \\            is on f itself.
         r   z
"""

import json
import pathlib
import socket
import sys
import time
import urllib.request

from harness import nodes, raw, samples, wire
from harness.case import Case, grid
from harness.netns import Topology

ATTACK = pathlib.Path(__file__).resolve().parent / "attack.py"
PORT = 6363
NAME = "/data"
SILENT = "/silent"
# The limits of its tables and of its content store, and the program itself.
MEMORY_KIB_MAX = 256 * 1024
TRANSFER_TIMEOUT_S = 60
PIT_ENTRIES_MAX = 131_072
METRICS = "127.0.0.1:9100"
UNSATISFIED = "byname_forwarder_unsatisfied_interests_total"
NO_ROOM = 'byname_forwarder_drops_total{reason="pit_full"}'
SHED = 'byname_forwarder_drops_total{reason="pit_shed"}'
# Of one name, and whatever else is going on.
HINTS_PENDING_MAX = 1000
UNVALIDATED = 'byname_udp_dropped_total{reason="unvalidated"}'
# What SECURITY.md advises: octets a second.
UNVALIDATED_RATE = 1 << 20
FORGED, FORGED_SEGMENTS = 4000, 64
# Of Linux, for the tests' superuser: more than `net.core.rmem_max` allows.
SO_RCVBUFFORCE = 33
RECEIVE_BUFFER = 32 << 20
# Together more than the table takes.
MANY_INTERESTS = "sent 80000"
MANY_PACKETS = "sent 20000"


def drain(link):
    """Octets that have come."""
    link.setblocking(False)
    octets = 0
    try:
        while True:
            octets += len(link.recv(65536))
    except BlockingIOError:
        return octets
    finally:
        link.setblocking(True)


class UnderAttack(Case):
    needs_netns = True

    def setUp(self):
        super().setUp()
        self.net = Topology(self.lab, "fxyrz", [("f", name) for name in "xyrz"])
        # The neighbour that keeps silent: a socket that nobody reads.
        self.net["z"].start("silence", [sys.executable, "-c", SILENCE])
        routes = [(SILENT, f"udp://{self.net.address('z', 'f')}:{PORT}")]
        config = self.net["f"].path("forward.toml")
        config.write_text(f"[forwarder]\nudp_unvalidated_kib_s = {UNVALIDATED_RATE >> 10}\n")
        self.hub = nodes.BynameForwarder(self.net["f"], host="*", port=PORT, routes=routes,
                                         flags=["--metrics", METRICS, "--config", config])
        nodes.byname_serve(self.net["f"], self.hub, samples.directory(), NAME)

    def attack(self, attacker, kind, scheme, prefix):
        """Begins an attack from one of the neighbours."""
        uri = f"{scheme}://{self.net.address('f', attacker)}:{PORT}"
        return self.net[attacker].start(f"attack-{kind}", [sys.executable, ATTACK, kind, uri,
                                                           prefix])

    def status(self):
        """What the forwarder says of itself, faces by their remote URI."""
        argv = [nodes.byname_binary(), "status", "--json", "--connect", self.hub.uri()]
        result = self.lab.run(argv)
        self.assertEqual(result.code, 0, str(result))
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        whole = next(row for row in rows if row["kind"] == "forwarder")
        return whole, {row["remote"]: row for row in rows if row["kind"] == "face"}

    def metric(self, name):
        """One of the forwarder's metrics, as Prometheus would read it."""
        with self.net["f"].entered(), urllib.request.urlopen(f"http://{METRICS}/metrics") as page:
            lines = page.read().decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))

    def peak_memory_kib(self):
        """The most memory that the forwarder ever had."""
        file = pathlib.Path(f"/proc/{self.hub.daemon.process.pid}/status")
        row = next(line for line in file.read_text().splitlines() if line.startswith("VmHWM"))
        return int(row.split()[1])

    def check_transfer(self, scheme):
        """A reader gets a large file, verified, as if nothing were going on."""
        reader = self.net["r"]
        out = reader.path("out/f")
        uri = f"{scheme}://{self.net.address('f', 'r')}:{PORT}"
        argv = [nodes.byname_binary(), "get", f"{NAME}/{samples.LARGE}", "--connect", uri,
                "-o", out]
        # The publisher's home, whose own keys are anchors: every byte is verified.
        env = {"BYNAME_HOME": str(self.net["f"].path("publisher/home"))}
        result = reader.run(argv, env, TRANSFER_TIMEOUT_S)
        self.assertEqual(result.code, 0, str(result))
        self.assertIsNone(samples.difference(out, samples.LARGE))

    def check_bounded(self, *attackers):
        """The forwarder lives, within its memory, and has not lost count of the attackers."""
        self.assertIsNone(self.hub.daemon.process.poll(), "the forwarder has ended")
        self.assertTrue(all(each.process.poll() is None for each in attackers),
                        "an attacker has given up")
        self.assertLess(self.peak_memory_kib(), MEMORY_KIB_MAX)
        return self.status()

    @grid(scheme=("udp", "tcp"))
    def check_flood_of_interests(self, scheme):
        """Two neighbours fill the PIT with what nobody answers; a third reads a file."""
        attackers = [self.attack("x", "interests", scheme, SILENT),
                     self.attack("y", "interests", scheme, SILENT + "/other")]
        for attacker in attackers:
            attacker.wait_for_log(MANY_INTERESTS)
        self.check_transfer(scheme)
        whole, faces = self.check_bounded(*attackers)
        for name in "xy":
            address = self.net.address(name, "f")
            received = [row["in_interests"] for uri, row in faces.items() if address in uri]
            self.assertGreater(sum(received), 1000, f"the flood of {name} is not counted: {faces}")
        self.assertGreater(whole["pending"], PIT_ENTRIES_MAX // 4)
        self.assertLessEqual(whole["pending"], PIT_ENTRIES_MAX)
        # An attacker's own old Interests make room for its new ones, or these are dropped.
        shed = self.metric(UNSATISFIED) + self.metric(NO_ROOM)
        self.assertGreater(shed, 1000, "what had no room is not counted")

    @grid(scheme=("udp", "tcp"))
    def check_flood_of_hints(self, scheme):
        """Two neighbours ask for one name by many ways; these do not pile up under the name."""
        attackers = [self.attack("x", "hints", scheme, SILENT),
                     self.attack("y", "hints", scheme, SILENT)]
        for attacker in attackers:
            attacker.wait_for_log(MANY_PACKETS)
        self.check_transfer(scheme)
        whole, _ = self.check_bounded(*attackers)
        self.assertGreater(self.metric(SHED), 1000, "the flood did not arrive")
        self.assertLess(whole["pending"], HINTS_PENDING_MAX)

    @grid(kind=("tokens", "fragments", "garbage"), scheme=("udp", "tcp"))
    def check_bad_packets(self, kind, scheme):
        attackers = [self.attack("x", kind, scheme, SILENT), self.attack("y", kind, scheme, NAME)]
        for attacker in attackers:
            attacker.wait_for_log(MANY_PACKETS)
        self.check_transfer(scheme)
        self.check_bounded(*attackers)

    def test_sender_that_never_shows_that_it_receives(self):
        """A neighbour asks over UDP as if in another's name: it gets three times what it sends and
        a bounded rate beside, while an honest reader over UDP gets everything."""
        uri = f"udp://{self.net.address('f', 'x')}:{PORT}"
        with self.net["x"].entered():
            face = wire.Connection(uri)
        with face:
            # What comes is counted here, so that none of it may be lost for want of room.
            face.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER)
            answer = wire.unwrap(face.ask(wire.discovery(f"{NAME}/{samples.LARGE}")))[1]
            content = wire.first(wire.read_tlv(answer)[1], wire.CONTENT)
            version = wire.name_uri(wire.first(content, wire.NAME))
            sent = received = 0
            started = time.monotonic()
            for number in range(FORGED):
                packet = wire.interest(f"{version}/seg={number % FORGED_SEGMENTS}")
                face.send(packet)
                sent += len(packet)
                received += drain(face.socket)
            time.sleep(1)
            received += drain(face.socket)
            seconds = time.monotonic() - started
        # Interests that the forwarder's socket had no room for are answered by nothing.
        self.assertGreater(received, UNVALIDATED_RATE // 8, "others are served, too")
        self.assertLess(received, 3 * sent + UNVALIDATED_RATE * (seconds + 1))
        self.assertGreater(self.metric(UNVALIDATED), 0)
        self.check_transfer("udp")

    @grid(scheme=("udp", "tcp"))
    def check_commands_from_afar(self, scheme):
        """/localhost belongs to this machine: a neighbour's command is not even answered."""
        uri = f"{scheme}://{self.net.address('f', 'x')}:{PORT}"
        before = self.routes()
        for scope in ("localhost", "localhop"):
            with self.net["x"].entered():
                face = wire.Connection(uri)
            with face:
                frame = face.ask(raw.register_interest("/stolen", scope), 1)
            self.assertNotEqual(raw.status_of(frame), raw.OK, f"/{scope} was obeyed")
        self.assertEqual(self.routes(), before)

    def routes(self):
        """The prefixes that have routes."""
        argv = [nodes.byname_binary(), "status", "--json", "--connect", self.hub.uri()]
        rows = [json.loads(line) for line in self.lab.run(argv).stdout.splitlines()]
        return sorted(row["prefix"] for row in rows if row["kind"] == "route")


SILENCE = f"""
import socket, time
link = socket.socket(type=socket.SOCK_DGRAM)
link.bind(("0.0.0.0", {PORT}))
time.sleep(3600)
"""
