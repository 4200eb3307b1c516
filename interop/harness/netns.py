"""Machines on one machine: each node of a topology is a network namespace of its own.

A namespace has no name in the file system: a sleeping process holds it, and that process dies with
the test program (parent-death signal), as does everything that runs inside. So a crashed run, even
one killed with SIGKILL, leaves neither namespaces nor links nor processes behind. A node shares the
file system with all others, so its Unix sockets can be reached from anywhere.
"""

import contextlib
import ctypes
import functools
import json
import os
import shutil
import subprocess

from .lab import wait_until

COMMAND_TIMEOUT_S = 20
NEEDED = ("ip", "nsenter", "setpriv", "unshare")
DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")
CLONE_NEWNET = 0x40000000


@functools.cache
def unavailable():
    """None, or the reason why no topology can be made here."""
    absent = [program for program in NEEDED if shutil.which(program) is None]
    if absent:
        return f"there is no {absent[0]}"
    try:
        _run(["unshare", "--net", "ip", "link", "add", "name", "probe0", "type", "veth",
              "peer", "name", "probe1"])
    except AssertionError:
        return "network namespaces need root (CAP_SYS_ADMIN) and veth"
    return None


def _run(argv, script=None):
    """Runs a short command; AssertionError with what it said if it fails."""
    done = subprocess.run([str(a) for a in argv], input=script, capture_output=True, text=True,
                          timeout=COMMAND_TIMEOUT_S, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, argv))}: {done.stderr.strip()}"
    return done.stdout


class Node:
    """A machine of the topology; stands wherever a Lab is wanted, with directories of its own."""

    def __init__(self, lab, name):
        self.lab = lab
        self.name = name
        self.addresses = {}
        self.holder = lab.start(f"netns-{name}", [*DIES_WITH_US, "unshare", "--net", "sleep",
                                                  "infinity"])
        wait_until(self._is_apart, f"the namespace of {name}", daemon=self.holder)
        self.configure("link set lo up")

    def _is_apart(self):
        own, other = (os.stat(f"/proc/{who}/ns/net").st_ino for who in ("self", self.pid))
        return own != other and self._program() == "sleep"

    def _program(self):
        with open(f"/proc/{self.pid}/comm", encoding="utf-8") as comm:
            return comm.read().strip()

    @property
    def pid(self):
        """The process that holds the namespace."""
        return self.holder.process.pid

    def inside(self, argv):
        """The command that runs another one in the namespace, in the same process."""
        return [*DIES_WITH_US, "nsenter", f"--net=/proc/{self.pid}/ns/net", *argv]

    def configure(self, *commands):
        """Runs commands of ip(8) in the namespace."""
        _run(self.inside(["ip", "-batch", "-"]), "\n".join(commands) + "\n")

    def ask(self, *arguments):
        """What ip(8) says about the namespace."""
        return json.loads(_run(self.inside(["ip", "-j", *arguments])))

    def path(self, name):
        """A path of this node inside the lab."""
        return self.lab.path(f"{self.name}/{name}")

    def env(self, extra=None):
        """The environment of the lab's processes."""
        return self.lab.env(extra)

    def start(self, label, argv, env=None, stdin=None):
        """Starts a daemon on this node."""
        return self.lab.start(f"{self.name}-{label}", self.inside(argv), env, stdin)

    def run(self, argv, env=None, timeout_s=60, stdout=None):
        """Runs a command on this node to its end."""
        return self.lab.run(self.inside(argv), env, timeout_s, stdout)

    @contextlib.contextmanager
    def entered(self):
        """Sockets that this thread opens meanwhile belong to the node."""
        libc = ctypes.CDLL(None, use_errno=True)
        with open("/proc/thread-self/ns/net", "rb") as home, \
                open(f"/proc/{self.pid}/ns/net", "rb") as there:
            assert libc.setns(there.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
            try:
                yield self
            finally:
                libc.setns(home.fileno(), CLONE_NEWNET)


class Topology:
    """Nodes, and links between pairs of them: one subnet 10.0.<n>.0/24 for each link."""

    def __init__(self, lab, names, links=()):
        self.lab = lab
        self.nodes = {name: Node(lab, name) for name in names}
        self.links = []
        for one, other in links:
            self.link(one, other)

    def __getitem__(self, name):
        return self.nodes[name]

    def link(self, one, other):
        """Joins two nodes. The interface is called after the node at its other end."""
        ends = (self.nodes[one], self.nodes[other])
        self.links.append((one, other))
        subnet = f"10.0.{len(self.links)}"
        _run(["ip", "link", "add", "name", f"to-{other}", "netns", ends[0].pid, "type", "veth",
              "peer", "name", f"to-{one}", "netns", ends[1].pid])
        for host, (node, far) in enumerate(((ends[0], other), (ends[1], one)), start=1):
            node.addresses[far] = f"{subnet}.{host}"
            node.configure(f"addr add {subnet}.{host}/24 dev to-{far}", f"link set to-{far} up")

    def lan(self, names):
        """Joins nodes by a switch: interface "lan", one subnet 10.1.0.0/24."""
        switch = Node(self.lab, "switch")
        switch.configure("link add name bridge type bridge mcast_snooping 0", "link set bridge up")
        for host, name in enumerate(names, start=1):
            node = self.nodes[name]
            _run(["ip", "link", "add", "name", "lan", "netns", node.pid, "type", "veth",
                  "peer", "name", f"to-{name}", "netns", switch.pid])
            switch.configure(f"link set to-{name} master bridge", f"link set to-{name} up")
            node.addresses["lan"] = f"10.1.0.{host}"
            node.configure(f"addr add 10.1.0.{host}/24 brd + dev lan", "link set lan up",
                           "route add 224.0.0.0/4 dev lan")

    def address(self, name, seen_from):
        """The address of a node on its link with another."""
        return self.nodes[name].addresses[seen_from]

    def neighbours(self, name):
        """The names of the nodes that a node has links with."""
        return list(self.nodes[name].addresses)

    def cut(self, one, other):
        """Takes the link down at the first node: sending fails there, at the other it is silent."""
        self._set(one, other, "down")

    def restore(self, one, other):
        """Brings a cut link up again; the nodes in the same order."""
        self._set(one, other, "up")

    def sent_bytes(self, name, towards):
        """What a node has sent into one of its links so far."""
        shown = self.nodes[name].ask("-s", "link", "show", f"to-{towards}")
        return shown[0]["stats64"]["tx"]["bytes"]

    def _set(self, one, other, state):
        self.nodes[one].configure(f"link set to-{other} {state}")
        self.lab.notes.append(f"# link {one}-{other} {state}")
