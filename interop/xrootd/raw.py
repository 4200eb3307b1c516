"""XRootD's own protocol without its library: requests that no library would send.

A request is 24 octets (stream, number, 16 of its own, length of what follows) and what follows; an
answer is 8 (stream, status, length) and content. Numbers are those of XProtocol.hh.
"""

import socket
import struct

HANDSHAKE = struct.pack(">5i", 0, 0, 0, 4, 2012)
LOGIN, OPEN, READV, STAT = 3007, 3010, 3025, 3017
OK, OKSOFAR, ERROR = 0, 4000, 4003
OPEN_READ = 0x0010
TIMEOUT_S = 60
PIECE = 1 << 20
RANGE = struct.Struct(">4siq")


class Connection:
    """A connection that has said who it is. Made inside of `node.entered()`."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self.socket.sendall(HANDSHAKE)
        self._skip(8 + 8)
        self.ask(LOGIN, struct.pack(">i8s4B", 1, b"attacker", 0, 0, 5, 0))

    def close(self):
        """As every client may, at any time."""
        self.socket.close()

    def send(self, number, own=b"", content=b""):
        """A request."""
        self.socket.sendall(struct.pack(">2sH16si", b"\0\1", number, own, len(content)) + content)

    def answer(self):
        """Status and content of the next answer."""
        _, status, length = struct.unpack(">2sHI", self._exactly(8))
        return status, self._exactly(length)

    def ask(self, number, own=b"", content=b""):
        """A request and its answer; of an error, its code and its text."""
        self.send(number, own, content)
        status, content = self.answer()
        if status == ERROR:
            text = content[4:].rstrip(b"\0").decode(errors="replace")
            return struct.unpack(">i", content[:4])[0], text
        return status, content

    def open(self, path):
        """Opens a file for reading: (0, its handle), or an error."""
        return self.ask(OPEN, struct.pack(">HH12x", 0, OPEN_READ), path)

    def read_vector(self, handle, ranges):
        """Sends a vector read of (octets, offset) and lets what comes go by: how many octets that
        was, or an error's code."""
        self.send(READV, b"", b"".join(RANGE.pack(handle, size, offset)
                                       for size, offset in ranges))
        filled = 0
        while True:
            _, status, length = struct.unpack(">2sHI", self._exactly(8))
            if status not in (OK, OKSOFAR):
                return struct.unpack(">i", self._exactly(length)[:4])[0]
            self._skip(length)
            filled += length
            if status == OK:
                return filled - RANGE.size * len(ranges)

    def _exactly(self, count):
        """So many octets."""
        found = bytearray()
        while len(found) < count:
            piece = self.socket.recv(count - len(found))
            if not piece:
                raise ConnectionError("the server has closed the connection")
            found += piece
        return bytes(found)

    def _skip(self, count):
        """So many octets, which nobody wants."""
        while count:
            piece = self.socket.recv(min(count, PIECE))
            if not piece:
                raise ConnectionError("the server has closed the connection")
            count -= len(piece)
