"""uproot and ROOT, with XRootD's client from PyPI, read columns of a NanoAOD-shaped file."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from door import DoorCase  # noqa: E402  (the path above must come first)
from harness import peers, xrootd  # noqa: E402
from harness.lab import wait_until  # noqa: E402

ANALYSIS = peers.INTEROP / "xrootd/analysis.py"
COLUMNS = peers.INTEROP / "xrootd/columns.py"
FILE = "nano.root"


class Analysis(DoorCase):
    """A program reads few columns of many, and prints what it saw as JSON."""

    def file(self):
        """A file with the shape of CMS's NanoAOD, published."""
        file = self.node.path("published/.keep").parent / FILE
        self.assert_ok(self.node.run([peers.UPROOT_PYTHON, ANALYSIS, "make", file]))
        return file

    def assert_few_come(self, file, *command):
        """The program succeeds, and less than the file is received for it."""
        door = self.door(self.publish(file.parent))
        read = self.node.run([*command, door.url(f"/{FILE}"), file], xrootd.CLIENT_ENV, 120)
        said = json.loads(self.assert_ok(read).splitlines()[-1])
        # The client's connection has ended, and with it the open file.
        wait_until(lambda: FILE in door.opens(), "the log of the open")
        opens = [json.loads(line) for line in door.opens().splitlines()]
        received = sum(line["received_bytes"] for line in opens)
        size = file.stat().st_size
        print(f"     {said['read']} of {said['columns']} columns, {said['events']} events: "
              f"{sum(line['reads'] for line in opens)} reads, "
              f"{sum(line['ranges'] for line in opens)} ranges, "
              f"{sum(line['bytes'] for line in opens)} octets asked for, "
              f"{received} received, of {size}", flush=True)
        self.assertGreater(said["columns"], 10 * said["read"])
        self.assertLess(received, size, "more than the whole file came")


class Columns(Analysis):
    needs = ("uproot",)

    def test_few_columns_of_many(self):
        self.assert_few_come(self.file(), peers.UPROOT_PYTHON, ANALYSIS, "read")


class Root(Analysis):
    needs = ("uproot", "root")

    def test_few_columns_of_many(self):
        self.assert_few_come(self.file(), peers.ROOT_PYTHON, COLUMNS)
