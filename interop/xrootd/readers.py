"""Clients that stay: what they read is told them one by one."""

import os

from harness import xrootd
from harness.lab import wait_until

# The library says on standard error what its callers are told anyway.
QUIET = {**xrootd.CLIENT_ENV, "XRD_LOGFILE": "/dev/null"}


class Reader:
    """A client that keeps a file open and reads what it is told."""

    def __init__(self, server, path):
        source, self.pipe = os.pipe()
        self.server = server
        argv = [xrootd.PYTHON, xrootd.CLIENT, server.url(), "hold", path]
        with os.fdopen(source, "rb") as stdin:
            self.daemon = server.node.start("reader", argv, QUIET, stdin)
        self.daemon.wait_for_log("open")
        self.lines = 1

    def ask(self, offset, count):
        """Begins a read."""
        os.write(self.pipe, f"{offset} {count}\n".encode())
        self.lines += 1

    def answer(self, timeout_s=60):
        """What the read begun last gave: hex, or "error CODE TEXT"."""
        def has_come():
            return self.daemon.log_text().count("\n") >= self.lines

        wait_until(has_come, "an answer to the reader", timeout_s, self.daemon)
        return self.daemon.log_text().splitlines()[self.lines - 1]

    def read(self, offset, count):
        """Reads, and waits."""
        self.ask(offset, count)
        return self.answer()

    def close(self):
        """Ends the client as it should end."""
        os.close(self.pipe)
        self.daemon.process.wait(30)
