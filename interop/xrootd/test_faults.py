"""What goes wrong, and what XRootD's clients are told: never garbage, never for ever."""

import json
import os
import pathlib
import random
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from door import DoorCase, FORWARDER_PORT  # noqa: E402  (the path above must come first)
from harness import nodes, xrootd  # noqa: E402
from harness.lab import wait_until  # noqa: E402
from readers import Reader  # noqa: E402

# So that tests wait for seconds.
IMPATIENT = ("byname.timeout 1s", "byname.retries 2")
LARGE_BYTES = 64 << 20
OPENS = 1000
# So often, after twice as often has filled all caches.
ROUNDS = 8
# Less than 2 KiB for each of those opens.
GROWTH_KIB_MAX = 16 << 10
READ_BEGINS_S = 0.3
# No answer in time, which only XRootD 6 has a code for; no route.
NOT_NOW = "^error (3005|3035|3014) "


class Faults(DoorCase):
    def large(self, seed=1):
        """A directory with a file that no cache holds whole."""
        folder = self.node.path("published/.keep").parent
        content = random.Random(seed).randbytes(LARGE_BYTES)
        (folder / "large.bin").write_bytes(content)
        return folder, content

    def test_missing_files_and_directories(self):
        folder = self.node.path("published/.keep").parent
        (folder / "sub").mkdir()
        (folder / "file").write_text("x")
        door = self.door(self.publish(folder))
        missing = xrootd.xrdcp(door, "/nothing", self.lab.path("out"))
        self.assert_error(missing, 3011, "no such file or directory")
        self.assert_error(xrootd.xrdfs(door, "stat", "/nothing"), 3011)
        self.assert_error(xrootd.xrdfs(door, "ls", "/nothing"), 3011)
        self.assert_error(xrootd.xrdfs(door, "cat", "/sub"), 3016, "is a directory")
        self.assert_error(xrootd.xrdfs(door, "cat", "/file/x"), 3011)
        self.assert_alive(door)
        refused = [json.loads(line) for line in door.opens().splitlines()]
        self.assertEqual(refused[0]["path"], "/nothing")
        self.assertEqual(refused[0]["errno"], 2)

    def test_no_route(self):
        folder = self.node.path("published/.keep").parent
        self.publish(folder)
        door = self.door(self.link("/elsewhere"))
        for _ in range(2):
            self.assert_error(xrootd.xrdcp(door, "/x", self.lab.path("out")), 3014,
                              "network is unreachable")
        self.assertTrue(door.is_alive())

    def test_no_forwarder_until_later(self):
        folder = self.node.path("published/.keep").parent
        (folder / "file").write_text("x")
        link = self.publish(folder)
        self.publisher.stop()
        self.forwarder.daemon.stop()
        door = self.door(link, *IMPATIENT)
        self.assert_error(xrootd.xrdfs(door, "cat", "/file"), 3014)
        self.forwarder = nodes.BynameForwarder(self.node, "again", port=FORWARDER_PORT)
        nodes.byname_serve(self.node, self.forwarder, folder, "/lab")
        wait_until(lambda: xrootd.xrdfs(door, "cat", "/file").stdout == b"x",
                   "the door to serve again", 60)

    def test_a_key_that_is_not_trusted(self):
        folder = self.node.path("published/.keep").parent
        (folder / "file").write_text("x")
        self.publish(folder)
        other = "SHA256:" + "A" * 43
        door = self.door(self.link(key=other), *IMPATIENT)
        refused = xrootd.xrdcp(door, "/file", self.lab.path("out"))
        self.assert_error(refused, 3005, "required key not available")
        self.assertFalse(self.lab.path("out").exists())
        self.assertIn(self.key, door.daemon.log_text())

    def test_a_file_that_was_replaced_while_it_is_open(self):
        folder, content = self.large()
        door = self.door(self.publish(folder), *IMPATIENT)
        reader = Reader(door, "/large.bin")
        self.assertEqual(reader.read(0, 16), content[:16].hex())
        replaced = random.Random(2).randbytes(LARGE_BYTES // 2)
        (folder / ".new").write_bytes(replaced)
        os.replace(folder / ".new", folder / "large.bin")
        # Whoever asks for the status sees the new version, and from then on so does who opens it.
        def is_new():
            return f" {len(replaced)}\n" in xrootd.xrdfs(door, "stat", "/large.bin").stdout.decode()

        wait_until(is_new, "the new version", 30)
        out = self.lab.path("out")
        self.assert_ok(xrootd.xrdcp(door, "/large.bin", out))
        self.assertEqual(out.read_bytes(), replaced)
        # Who has it open never gets a mixture: the old octets, or an error.
        at = LARGE_BYTES - 100
        answer = reader.read(at, 16)
        self.assertTrue(answer == content[at:at + 16].hex() or
                        answer.startswith("error 3005"), answer)
        reader.close()
        self.assert_alive(door)

    def test_a_replaced_file_is_noticed_by_a_read_of_the_old_one(self):
        folder, content = self.large()
        door = self.door(self.publish(folder), *IMPATIENT)
        reader = Reader(door, "/large.bin")
        self.assertEqual(reader.read(0, 16), content[:16].hex())
        (folder / ".new").write_bytes(b"new")
        os.replace(folder / ".new", folder / "large.bin")
        answer = reader.read(LARGE_BYTES - 100, 16)
        self.assertIn("stale file handle", answer.lower())
        wait_until(lambda: xrootd.xrdfs(door, "cat", "/large.bin").stdout == b"new",
                   "the new version", 30)
        reader.close()

    def test_a_replaced_file_is_noticed_by_the_next_look_at_open_files(self):
        folder, content = self.large()
        door = self.door(self.publish(folder), "byname.recheck 1s")
        reader = Reader(door, "/large.bin")
        self.assertEqual(reader.read(0, 16), content[:16].hex())
        (folder / ".new").write_bytes(b"new")
        os.replace(folder / ".new", folder / "large.bin")

        def opened_anew():
            """Neither the path nor the old version is asked for: only the door itself looks. Until
            then it is the old file, size and content."""
            said = json.loads(self.assert_ok(xrootd.client(door, "whole", "/large.bin", "16")))
            if said == {"size": LARGE_BYTES, "begins": content[:16].hex()}:
                return False
            self.assertEqual(said, {"size": 3, "begins": b"new".hex()})
            return True

        wait_until(opened_anew, "the new version", 60)
        reader.close()

    def test_the_publisher_dies_and_comes_back(self):
        folder, content = self.large()
        door = self.door(self.publish(folder), *IMPATIENT)
        reader = Reader(door, "/large.bin")
        self.assertEqual(reader.read(0, 16), content[:16].hex())
        # In the middle of a read: it is asked already, and has not answered.
        at = LARGE_BYTES // 2
        self.publisher.freeze()
        reader.ask(at, 16)
        time.sleep(READ_BEGINS_S)
        self.publisher.signal(signal.SIGKILL)
        self.assertRegex(reader.answer(), NOT_NOW)
        nodes.byname_serve(self.node, self.forwarder, folder, "/lab")
        wait_until(lambda: reader.read(at, 16) == content[at:at + 16].hex(), "the same octets", 30)
        reader.close()
        self.assert_alive(door)

    def test_the_forwarder_is_started_again(self):
        folder, content = self.large()
        door = self.door(self.publish(folder), *IMPATIENT)
        reader = Reader(door, "/large.bin")
        self.assertEqual(reader.read(0, 16), content[:16].hex())
        self.forwarder.daemon.signal(signal.SIGKILL)
        at = LARGE_BYTES // 2
        self.assertRegex(reader.read(at, 16), NOT_NOW)
        # The publisher finds it by itself.
        nodes.BynameForwarder(self.node, port=FORWARDER_PORT)
        wait_until(lambda: reader.read(at, 16) == content[at:at + 16].hex(), "the same octets", 60)
        out = self.lab.path("out")
        self.assert_ok(xrootd.xrdcp(door, "/large.bin", out))
        self.assertEqual(out.read_bytes(), content)
        reader.close()

    def test_corrupted_data(self):
        folder, _ = self.large()
        link = self.publish(folder)
        port = FORWARDER_PORT + 1
        relay = nodes.tampering_relay()
        if relay is None:
            self._missing("there is no tampering_relay")
        self.node.start("relay", [relay, str(port), str(FORWARDER_PORT), "data"])
        link = link.replace(f":{FORWARDER_PORT}", f":{port}")
        door = self.door(link, *IMPATIENT)
        out = self.lab.path("out")
        # Status and directory are whole; no octet of the content is.
        self.assert_ok(xrootd.xrdfs(door, "stat", "/large.bin"))
        for env in ({}, {"XRD_CPUSEPGWRTRD": "0"}):
            refused = xrootd.xrdcp(door, "/large.bin", out, "-f", env=env)
            self.assert_error(refused, 3007, "input/output error")
            self.assertTrue(not out.exists() or out.stat().st_size == 0)
        self.assertIn("/large.bin", door.daemon.log_text())
        self.assertTrue(door.is_alive())


class Crowds(DoorCase):
    def test_a_thousand_opens_at_once_leave_nothing_behind(self):
        folder = self.node.path("published/.keep").parent
        for index in range(OPENS):
            (folder / f"f{index}").write_text(str(index))
        door = self.door(self.publish(folder))
        self.assert_ok(xrootd.client(door, "opens", "/f", "20"))
        before = door.descriptors()
        self.assert_ok(xrootd.client(door, "opens", "/f", str(OPENS)))
        wait_until(lambda: door.descriptors() <= before + 5, "descriptors to be closed", 30)
        lines = [json.loads(line) for line in door.opens().splitlines()]
        self.assertEqual(len(lines), OPENS + 20)
        self.assertEqual({line["path"] for line in lines},
                         {f"/f{index}" for index in range(OPENS)})
        self.assert_alive(door)

    def test_ten_thousand_opens_leak_nothing(self):
        folder = self.node.path("published/.keep").parent
        for index in range(OPENS):
            (folder / f"f{index}").write_text(str(index))
        door = self.door(self.publish(folder))
        for _ in range(2):
            self.assert_ok(xrootd.client(door, "opens", "/f", str(OPENS)))
        descriptors, memory_kib = door.descriptors(), door.resident_kib()
        for _ in range(ROUNDS):
            self.assert_ok(xrootd.client(door, "opens", "/f", str(OPENS)))
        wait_until(lambda: door.descriptors() <= descriptors + 5, "descriptors to be closed", 30)
        growth_kib = door.resident_kib() - memory_kib
        print(f"     {ROUNDS * OPENS} opens more: {growth_kib} KiB more than {memory_kib}",
              flush=True)
        self.assertLess(growth_kib, GROWTH_KIB_MAX)
        self.assertEqual(len(door.opens().splitlines()), (ROUNDS + 2) * OPENS)
        self.assert_alive(door)

    def test_a_client_that_is_killed(self):
        folder = self.node.path("published/.keep").parent
        (folder / "large.bin").write_bytes(os.urandom(LARGE_BYTES))
        door = self.door(self.publish(folder))
        reader = Reader(door, "/large.bin")
        reader.ask(0, 16 << 20)
        reader.daemon.signal(signal.SIGKILL)
        wait_until(lambda: '"path":"/large.bin"' in door.opens(), "the file to be closed", 60)
        self.assert_alive(door)


class Accounts(DoorCase):
    def test_log_and_counters(self):
        folder = self.content()
        door = self.door(self.publish(folder), "byname.metrics $DIR/admin/byname.prom 1")
        size = (folder / "many-segments.bin").stat().st_size

        def is_in_memory():
            self.assert_ok(xrootd.xrdcp(door, "/many-segments.bin", self.lab.path("out"), "-f"))
            return f'"cached_bytes":{size}' in door.opens()

        # As soon as the publisher has computed the root.
        wait_until(is_in_memory, "a copy from memory")
        lines = [json.loads(line) for line in door.opens().splitlines()]
        first, last = lines[0], lines[-1]
        for line in (first, last):
            self.assertEqual(line["path"], "/many-segments.bin")
            self.assertEqual(line["name"], "/lab/many-segments.bin")
            self.assertEqual(line["from"], "name")
            self.assertEqual(line["client"]["protocol"], "host")
            self.assertEqual(line["size"], size)
            self.assertEqual(line["bytes"], size)
            self.assertIn(str(FORWARDER_PORT), line["source"])
        self.assertGreaterEqual(first["received_bytes"], size)
        self.assertEqual(last["cached_bytes"], size)
        self.assertEqual(last["received_bytes"], 0)
        metrics = door.dir / "admin/byname.prom"
        # Written every second, also between the last open and its end.
        wanted = {f"byname_xrootd_opens_named_total {len(lines)}",
                  "byname_xrootd_open_named_files 0"}
        wait_until(lambda: metrics.exists() and wanted <= set(metrics.read_text().splitlines()),
                   "the counters")
        text = metrics.read_text()
        self.assertIn(f"byname_xrootd_bytes_total {len(lines) * size}\n", text)
        self.assertIn("byname_xrootd_session_open 1\n", text)
