"""Uses of byname from beginning to end, as their users meet them: the scripts in journeys/."""

from harness import nodes, peers
from harness.case import Case

SKIPPED = 77


class Journeys(Case):
    """Each script plays one journey and says how many commands it took, and how long."""

    needs_netns = True

    def test_share(self):
        """A link from one machine to another, and a restart in the middle."""
        self.play("share")

    def play(self, name):
        """Runs a script to its end."""
        played = self.lab.run([peers.REPO / "journeys" / name],
                              {"BYNAME_BIN": nodes.byname_binary()}, timeout_s=200)
        if played.code == SKIPPED:
            self._missing(played.stdout.decode())
        print(f"journeys/{name}: {played.stdout.decode().splitlines()[-1:]}", flush=True)
        self.assertEqual(played.code, 0, str(played))
