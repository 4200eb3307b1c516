"""A relay that records every frame in both directions, to learn what a peer really sends.

It can also alter what comes from the forwarder, as a dishonest cache would.
"""

import os
import selectors
import socket
import threading

from . import wire


class Tap:
    """Listens on a Unix socket and forwards to a forwarder's Unix socket."""

    def __init__(self, lab, upstream_path, label="tap", alter=None):
        self.alter = alter
        self.path = str(lab.path(f"{label}.sock"))
        self.upstream_path = upstream_path
        self.to_forwarder = []
        self.from_forwarder = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        os.chmod(self.path, 0o600)
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def uri(self):
        """The URI to connect a peer to."""
        return "unix://" + self.path

    def close(self):
        """Accepts nobody any more."""
        self._listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client):
        upstream = socket.socket(socket.AF_UNIX)
        upstream.connect(self.upstream_path)
        ways = {
            client: (upstream, self.to_forwarder, bytearray()),
            upstream: (client, self.from_forwarder, bytearray()),
        }
        with client, upstream, selectors.DefaultSelector() as selector:
            for end in ways:
                selector.register(end, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    other, record, pending = ways[key.fileobj]
                    try:
                        data = key.fileobj.recv(65536)
                        if self.alter is None or key.fileobj is client:
                            other.sendall(data)
                        pending += data
                        frames = _split(pending)
                        if self.alter is not None and key.fileobj is upstream:
                            other.sendall(b"".join(map(self.alter, frames)))
                    except OSError:
                        return
                    if not data:
                        return
                    record += frames


def _split(pending):
    """Takes the complete frames off the head of `pending`."""
    frames = []
    while True:
        try:
            end = wire.read_tlv(pending)[2]
        except IndexError:
            return frames
        frames.append(bytes(pending[:end]))
        del pending[:end]
