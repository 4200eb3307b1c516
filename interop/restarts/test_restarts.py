"""Restarts in the middle of a read: sixteen of the 256 cells that bench/restarts plays."""

import os
import sys

from harness import nodes, peers
from harness.case import Case

LIMIT_S = 200


class Restarts(Case):
    """Publisher, forwarders and mirror are away for up to 20 s; every read arrives by itself."""

    def test_chosen_cells(self):
        """Every pair of values of two axes is met once."""
        binary = nodes.byname_binary()
        reread = os.path.join(os.path.dirname(binary), "examples/reread")
        if not os.access(reread, os.X_OK):
            self._missing("cargo build -p byname-profile --example reread was not run")
        played = self.lab.run([sys.executable, peers.REPO / "bench/restarts", "--chosen"],
                              {"BYNAME_BIN": binary}, timeout_s=LIMIT_S)
        print(played.stdout.decode(errors="replace").splitlines()[-1:], flush=True)
        self.assertEqual(played.code, 0, str(played))
