"""XRootD's own monitoring goes on: its f-stream has figures for each client, also where several
share an open file."""

import pathlib
import socket
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from door import DoorCase  # noqa: E402  (the path above must come first)
from harness.lab import wait_until  # noqa: E402
from readers import Reader  # noqa: E402

PORT = 9930
DATAGRAM_BYTES_MAX = 1 << 16
# XrdXrootdMonData.hh
F_STREAM = b"f"
CLOSED, OPENED = 0, 1
HAS_NAME = 1
HEADER = struct.Struct(">cBHi")
RECORD = struct.Struct(">BBHI")


class FStream:
    """What a collector understands of it."""

    def __init__(self, node):
        with node.entered():
            self.socket = socket.socket(type=socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", PORT))
        self.socket.setblocking(False)
        self.paths, self.read_bytes = {}, []

    def take(self):
        """Takes what has come."""
        while True:
            try:
                packet = self.socket.recv(DATAGRAM_BYTES_MAX)
            except BlockingIOError:
                return
            if HEADER.unpack_from(packet)[0] == F_STREAM:
                self._take(packet)

    def _take(self, packet):
        at = HEADER.size
        while at < len(packet):
            kind, flags, size, file = RECORD.unpack_from(packet, at)
            content = packet[at + RECORD.size:at + size]
            if kind == OPENED and flags & HAS_NAME:
                self.paths[file] = (struct.unpack_from(">q", content)[0],
                                    content[12:].split(b"\0")[0].decode())
            elif kind == CLOSED:
                self.read_bytes.append((self.paths.get(file), struct.unpack_from(">q", content)[0]))
            at += size


class Monitoring(DoorCase):
    def test_the_f_stream_has_figures_for_each_client(self):
        stream = FStream(self.node)
        folder = self.content()
        door = self.door(self.publish(folder), "xrootd.monitor all auth fstat 1 lfn ops xfr 1 "
                         f"dest fstat files user 127.0.0.1:{PORT}")
        size = (folder / "many-segments.bin").stat().st_size
        readers = [Reader(door, "/many-segments.bin") for _ in range(2)]
        for reader, count in zip(readers, (1000, 70_000)):
            self.assertEqual(len(reader.read(5, count)), 2 * count)
        for reader in readers:
            reader.close()

        def are_closed():
            stream.take()
            return len(stream.read_bytes) == 2

        wait_until(are_closed, "the records of both clients")
        named = (size, "/many-segments.bin")
        self.assertEqual(sorted(stream.read_bytes), [(named, 1000), (named, 70_000)])
        # To us they were one open file, which says who opened it.
        line, = door.opens().splitlines()
        self.assertIn('"bytes":71000', line)
