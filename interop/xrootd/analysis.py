"""What a physicist's program does: few columns of many. Run by the Python that has uproot.

    analysis.py make FILE           writes a file with the shape of CMS's NanoAOD
    analysis.py read URL FILE       reads some columns from both, compares them, prints figures
"""

import json
import sys

import awkward
import numpy
import uproot

EVENTS = 20_000
# Written in so many pieces: each column of each is a basket of its own.
PIECES = 10
COLLECTIONS = {"Electron": 12, "Muon": 14, "Jet": 20, "Tau": 16, "GenPart": 8}
FLAGS = 120
WANTED = ["nMuon", "Muon_var0", "Muon_var3", "nJet", "Jet_var0", "Jet_var7", "HLT_path5", "run"]


def events(choose, count):
    """One piece of all columns."""
    columns = {"run": numpy.full(count, 3, dtype="u4"),
               "event": numpy.arange(count, dtype="u8")}
    for name, variables in COLLECTIONS.items():
        counts = choose.poisson(3, count)
        total = int(counts.sum())
        columns[name] = awkward.zip({
            f"var{number}": awkward.unflatten(choose.random(total, dtype="f4"), counts)
            for number in range(variables)})
    for number in range(FLAGS):
        columns[f"HLT_path{number}"] = choose.random(count) < 0.1
    return columns


def make(path):
    """Writes the file."""
    choose = numpy.random.default_rng(11)
    with uproot.recreate(path) as file:
        first = events(choose, EVENTS // PIECES)
        types = {name: awkward.type(column).content if isinstance(column, awkward.Array)
                 else column.dtype for name, column in first.items()}
        tree = file.mktree("Events", types)
        tree.extend(first)
        for _ in range(PIECES - 1):
            tree.extend(events(choose, EVENTS // PIECES))


def read(url, path):
    """Compares columns from afar with those of the file."""
    with uproot.open(path) as file:
        wanted = file["Events"].arrays(WANTED)
        columns = len(file["Events"].keys())
    with uproot.open(url) as file:
        found = file["Events"].arrays(WANTED)
    for name in WANTED:
        if not awkward.array_equal(found[name], wanted[name]):
            sys.exit(f"{name} differs")
    print(json.dumps({"events": len(wanted), "columns": columns, "read": len(WANTED)}))


if __name__ == "__main__":
    {"make": make, "read": read}[sys.argv[1]](*sys.argv[2:])
