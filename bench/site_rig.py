"""A site of processes: forwarder, head and disks, on this machine or on nodes of a topology."""

import contextlib
import os
import subprocess
import sys
import time

from measure import process_cpu_s, process_rss_bytes

READY_S = 30


class Site:
    """Its processes. `nodes` says for names of them on which node each runs; others run here.

    A command that runs on a node dies with this program, as all that is on nodes does.
    """

    def __init__(self, byname, directory, nodes=None, endpoint=None):
        self.byname, self.directory, self.nodes = str(byname), directory, nodes or {}
        self.socket = f"unix://{directory}/f.sock"
        # Of processes on other nodes than the forwarder's.
        self.endpoint = endpoint or self.socket
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(directory),
                            "BYNAME_HOME": str(directory / "home")}
        self.servers = {}

    def connect(self, name="command"):
        """How a process reaches the forwarder."""
        return ["--connect", self.endpoint if name in self.nodes else self.socket]

    def command(self, *words, name="command"):
        """A command, on the node of that name if there is one."""
        argv = [self.byname, *map(str, words)]
        return self.nodes[name].inside(argv) if name in self.nodes else argv

    def run(self, *words, **options):
        """Runs a command here; one that fails ends the program with what it said."""
        done = subprocess.run(self.command(*words, name=""), cwd=self.directory,
                              env=self.environment, check=False, capture_output=True, **options)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, words))}: {done.stderr.decode(errors='replace')}")
        return done

    def start(self, name, ready, *words):
        """Starts a server, and waits until its log has a word."""
        log = self.directory / f"{name}.log"
        with open(log, "wb") as out:
            self.servers[name] = subprocess.Popen(
                self.command(*words, name=name), cwd=self.directory, env=self.environment,
                stdout=out, stderr=subprocess.STDOUT)
        until = time.monotonic() + READY_S
        while ready not in log.read_text(errors="replace"):
            if time.monotonic() > until or self.servers[name].poll() is not None:
                sys.exit(f"{name} does not start:\n{log.read_text(errors='replace')}")
            time.sleep(0.02)

    def start_forwarder(self, *flags):
        """The forwarder."""
        self.start("forwarder", "listening", "forward", "--listen", self.socket, *flags)

    def start_head(self):
        """The head of /lab, in the directory `site`."""
        self.start("head", "byname:/lab", "catalog", "--dir", "site", *self.connect("head"))

    def add_disk(self, index):
        """Makes a disk in a directory of its own, and starts its server."""
        name = f"disk {index}"
        self.run("site", "disk", "add", f"d{index}", "--server", f"s{index}", *self.connect(""))
        self.start(name, f"serving d{index}", "disk", f"d{index}", *self.connect(name))

    def cpu_s(self):
        """Processor time of each server so far."""
        return {name: process_cpu_s(server.pid) for name, server in self.servers.items()}

    def rss_bytes(self):
        """Memory of each server."""
        return {name: process_rss_bytes(server.pid) for name, server in self.servers.items()}

    def stored_bytes(self):
        """Octets of contents on the disks."""
        objects = self.directory.glob("d[0-9]/objects/*/*")
        return sum(path.stat().st_size for path in objects)

    def stop(self):
        """Ends all servers."""
        for server in self.servers.values():
            server.terminate()
        for server in self.servers.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(5)
                continue
            server.kill()
            server.wait()
