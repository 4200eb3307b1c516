"""ROOT reads some columns of a file from afar. Run by the Python that has ROOT.

    columns.py URL FILE      reads them from both, compares them, prints figures
"""

import json
import sys

import ROOT

CACHE_BYTES = 10_000_000
WANTED = ["nMuon", "Muon_var0", "Muon_var3", "nJet", "Jet_var0", "Jet_var7", "HLT_path5", "run"]


def rows(path):
    """All values of the columns, in order; and how many columns there are."""
    file = ROOT.TFile.Open(path)
    if not file or file.IsZombie():
        sys.exit(f"{path} cannot be opened")
    tree = file.Get("Events")
    columns = tree.GetListOfBranches().GetEntries()
    tree.SetCacheSize(CACHE_BYTES)
    tree.SetBranchStatus("*", False)
    for name in WANTED:
        tree.SetBranchStatus(name, True)
        tree.AddBranchToCache(name)
    leaves = [tree.GetLeaf(name) for name in WANTED]
    found = []
    for entry in range(tree.GetEntries()):
        tree.GetEntry(entry)
        found.append([[leaf.GetValue(at) for at in range(leaf.GetLen())] for leaf in leaves])
    return found, columns, file.GetReadCalls()


def main(url, path):
    """Compares."""
    wanted, columns, _ = rows(path)
    found, _, calls = rows(url)
    if found != wanted:
        sys.exit("the values differ")
    print(json.dumps({"events": len(wanted), "columns": columns, "read": len(WANTED),
                      "calls": calls}))


if __name__ == "__main__":
    main(*sys.argv[1:])
