"""The base of all interoperability tests, and the grid: one method, one test per combination."""

import itertools
import signal
import unittest

from . import netns, nodes, peers
from .lab import Lab, outside_address

TEST_LIMIT_S = 240


def grid(**axes):
    """Marks a method `check_…(self, **point)` that becomes one test for every point of the axes."""

    def mark(method):
        method.grid = axes
        return method

    return mark


def _expand(cls):
    for name, method in list(vars(cls).items()):
        axes = getattr(method, "grid", None)
        if axes is None:
            continue
        for values in itertools.product(*axes.values()):
            point = dict(zip(axes, values))
            title = "_".join(["test", name.removeprefix("check_"), *map(str, values)])
            setattr(cls, title, lambda self, m=method, p=point: m(self, **p))


class Case(unittest.TestCase):
    """A test with a lab of its own.

    `needs` lists peers, `needs_byname` is false for controls, `needs_netns` is true where the test
    makes a topology, `limit_s` is after how many seconds it is ended.
    """

    needs = ()
    needs_byname = True
    needs_netns = False
    limit_s = TEST_LIMIT_S

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        _expand(cls)

    def setUp(self):
        self.report = ""
        for name in self.needs:
            if not peers.PEERS[name].is_installed():
                self._missing(f"{name} is not installed (interop/setup)")
        if self.needs_byname and nodes.byname_binary() is None:
            self._missing("there is no byname binary")
        if self.needs_netns and netns.unavailable():
            self._missing(netns.unavailable())
        signal.signal(signal.SIGALRM, self._too_long)
        signal.alarm(self.limit_s)
        self.lab = Lab()

    def tearDown(self):
        signal.alarm(0)
        if hasattr(self, "lab"):
            self.report = self.lab.close()

    def outside_address(self):
        """An address whose links have an ordinary MTU."""
        return outside_address() or self.skipTest("this machine has only loopback addresses")

    def _missing(self, reason):
        if peers.is_ci():
            self.fail(reason)
        self.skipTest(reason)

    def _too_long(self, *_):
        raise AssertionError(f"the test took more than {self.limit_s} s")
