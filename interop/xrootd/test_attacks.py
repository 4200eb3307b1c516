"""Clients and origins that mean no good: what they cost is bounded, and others are served."""

import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import raw  # noqa: E402  (the path above must come first)
from door import DoorCase  # noqa: E402
from harness import nodes, xrootd  # noqa: E402
from harness.lab import wait_until  # noqa: E402
from readers import Reader  # noqa: E402

IDLE_CLIENTS = 100
IDLE_S = 5
# Its own timers; who looks instead of waiting is there a hundred times a second at least.
IDLE_RUNS_MAX = 250
RANGES_MAX = 1024
LARGE_RANGES = 256
# The most that XRootD takes for one range.
RANGE_BYTES_MAX = (2 << 20) - 16
# What the door may keep (64 MiB of content, 16 of nodes), XRootD's buffers, and as much again.
GROWTH_KIB_MAX = 192 << 10
# An argument that is invalid, missing or too long, no open file, not permitted, no such file.
REFUSALS = (3000, 3001, 3002, 3004, 3005, 3010, 3011)
# The same, and too much at once.
REFUSED_READS = (3000, 3002, 3003, 3005, 3008)
NO_NAMES = (b"/../secret", b"/sub/../../secret", b"/sub/../8193.bin", b"/./8193.bin/..",
            b"/%2e%2e/secret", b"/..%2fsecret", b"", b"8193.bin", b"/nothing\0",
            b"/" + b"x" * 255, b"/" + b"x/" * 30, b"/" + b"x" * 8000, b"/" + b"%00" * 80,
            b"/\xff\xfe\xfd", b"/\x01\x02", b"/32=metadata", b"/8193.bin/32=metadata",
            b"/8193.bin/v=1/seg=0")
# Octets that are no packets, for as long as somebody takes them.
RUBBISH = """
import os, socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listening", flush=True)
while True:
    connection, _ = listener.accept()
    try:
        while True:
            connection.sendall(os.urandom(1 << 16))
    except OSError:
        connection.close()
"""
RUBBISH_PORT = 7003


class Clients(DoorCase):
    def connection(self, door):
        """One without XRootD's library."""
        with self.node.entered():
            return raw.Connection(door.port)

    def test_names_that_are_none(self):
        folder = self.content()
        (folder.parent / "secret").write_text("secret")
        door = self.door(self.publish(folder),
                         f"xrd.protocol http:{xrootd.HTTP_PORT} libXrdHttp.so")
        client = self.connection(door)
        for path in NO_NAMES:
            for code, text in (client.ask(raw.STAT, content=path), client.open(path)):
                self.assertIn(code, REFUSALS, f"{path[:40]}: {text}")
        # XRootD's paths end there.
        self.assertEqual(client.open(b"/8193.bin\0/../secret")[0], 0)
        for path in ("/../secret", "/%2e%2e/secret", "/sub/..%2f..%2fsecret", "/" + "x" * 8000):
            got = xrootd.curl(door, path, "--write-out", "%{http_code}")
            self.assertRegex(got.stdout[-3:], rb"[45]..", f"{path[:40]}: {got}")
        # What follows a "?" is for servers, however long.
        code, _ = client.open(b"/8193.bin?a=b&" + b"c=" + b"d" * 6000)
        self.assertEqual(code, 0)
        client.close()
        self.assert_alive(door)

    def test_the_largest_vector_read(self):
        folder = self.node.path("published/.keep").parent
        (folder / "large.bin").write_bytes(os.urandom(64 << 20))
        door = self.door(self.publish(folder))
        client = self.connection(door)
        before_kib = door.resident_kib()
        _, handle = client.open(b"/large.bin")
        # 512 MiB; XRootD's own library would not ask for an octet twice.
        ranges = [(RANGE_BYTES_MAX, index * 4_000_037 % (60 << 20))
                  for index in range(LARGE_RANGES)]
        asked = sum(size for size, _ in ranges)
        self.assertEqual(client.read_vector(handle[:4], ranges), asked)
        grown_kib = door.resident_kib() - before_kib
        print(f"     {asked >> 20} MiB in one vector read: {grown_kib} KiB more", flush=True)
        self.assertLess(grown_kib, GROWTH_KIB_MAX)
        # More than XRootD takes, a range that is too large, one that is none.
        for wrong in ([(RANGE_BYTES_MAX, 0)] * (RANGES_MAX + 1), [(1, 0)] * (RANGES_MAX + 1),
                      [(RANGE_BYTES_MAX + 17, 0)], [(1, -1)]):
            other = self.connection(door)
            _, handle = other.open(b"/large.bin")
            self.assertIn(other.read_vector(handle[:4], wrong), REFUSED_READS)
            other.close()
        client.close()
        self.assert_alive(door)

    def test_idle_clients_cost_nothing(self):
        folder = self.content()
        door = self.door(self.publish(folder))
        connections = [self.connection(door) for _ in range(IDLE_CLIENTS)]
        for connection in connections[::2]:
            self.assertEqual(connection.open(b"/8193.bin")[0], 0)
        ran_before = door.times_run()
        time.sleep(IDLE_S)
        ran = door.times_run() - ran_before
        print(f"     {IDLE_CLIENTS} clients that do nothing: its threads ran {ran} times in "
              f"{IDLE_S} s", flush=True)
        self.assertLess(ran, IDLE_RUNS_MAX)
        out = self.lab.path("out")
        self.assert_ok(xrootd.xrdcp(door, "/many-segments.bin", out))
        self.assert_same(out, folder / "many-segments.bin")
        for connection in connections:
            connection.close()
        wait_until(lambda: door.descriptors() < 100, "descriptors to be closed", 30)
        self.assert_alive(door)


class Origins(DoorCase):
    def test_an_origin_that_sends_rubbish(self):
        rubbish = self.node.start("rubbish", [sys.executable, "-c", RUBBISH, str(RUBBISH_PORT)])
        rubbish.wait_for_log("listening")
        door = self.door(f"byname:/lab?via=tcp://127.0.0.1:{RUBBISH_PORT}", "byname.timeout 1s",
                         "byname.retries 2")
        before_kib = door.resident_kib()
        for _ in range(3):
            refused = xrootd.xrdcp(door, "/file", self.lab.path("out"), "-f")
            self.assertFalse(refused.timed_out, str(refused))
            self.assertRegex(refused.stderr, r"\[30(05|35|07|14)\]")
        self.assertLess(door.resident_kib() - before_kib, GROWTH_KIB_MAX)
        self.assertTrue(door.is_alive())

    def test_a_file_that_nobody_sends_delays_no_other(self):
        folder = self.content()
        self.publish(folder, "/quick")
        slow = self.node.path("slow/.keep").parent
        (slow / "large.bin").write_bytes(os.urandom(64 << 20))
        home = {"BYNAME_HOME": str(self.node.path("other/home"))}
        stuck = self.node.start("slow", [nodes.byname_binary(), "serve", slow, "--name", "/slow",
                                         "--connect", self.forwarder.uri()], home)
        nodes.wait_published(self.forwarder.uri(), "/slow", stuck)
        door = self.door("/", f"byname.connect {self.forwarder.uri('tcp')}",
                         "byname.unknown_keys insecure", "byname.timeout 60s")
        reader = Reader(door, "/slow/large.bin")
        self.assertEqual(len(reader.read(0, 16)), 32)
        stuck.freeze()
        reader.ask(60 << 20, 16)
        out = self.lab.path("out")
        for relative in ("many-segments.bin", "8193.bin", "one byte.bin"):
            self.assert_ok(xrootd.xrdcp(door, "/quick/" + relative, out, "-f"))
            self.assert_same(out, folder / relative)
        self.assertEqual(reader.daemon.log_text().count("\n"), 2, "it waits as before")
        stuck.signal(signal.SIGCONT)
        self.assertEqual(len(reader.answer()), 32)
        reader.close()
