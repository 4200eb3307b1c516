"""The administrator's tools of others, with what they print taken apart."""

import re

from . import nodes, peers

ANSWER_TIMEOUT_S = 15


class NdndTool:
    """`ndnd fw …` for one forwarder."""

    def __init__(self, lab, hub):
        self.lab = lab
        self.hub = hub

    def run(self, *arguments):
        """Runs a command and returns the result."""
        return self.lab.run([peers.NDND, "fw", *arguments],
                            {"NDN_CLIENT_TRANSPORT": self.hub.uri()}, ANSWER_TIMEOUT_S)

    def command(self, *arguments):
        """(status code, parameters) of the last ControlResponse that a command prints."""
        result = self.run(*arguments)
        text = result.stdout.decode()
        statuses = re.findall(r"^Status=(\d+) \(", text, re.M)
        assert statuses, f"no response: {result}"
        code = int(statuses[-1])
        assert (result.code == 0) == (code == 200), f"exit code does not fit: {result}"
        last = text.rpartition("Status=")[2]
        return code, dict(re.findall(r"^  (\w+)=(.*)$", last, re.M))

    def done(self, *arguments):
        """The parameters in the response to a command that must succeed."""
        code, parameters = self.command(*arguments)
        assert code == 200, f"{arguments}: {code} {parameters}"
        return parameters

    def lines(self, *arguments):
        """Each line of a list as a dictionary of its fields; a field in braces, which may hold
        braces, is text."""
        result = self.run(*arguments)
        assert result.code == 0, f"{arguments}: {result}"
        return [dict(re.findall(r"(\w+)=(\{(?:[^{}]|\{[^{}]*\})*\}|\S+)", line))
                for line in result.stdout.decode().splitlines()]

    def values(self, *arguments):
        """A status with one `name=value` per line."""
        return {key: value for line in self.lines(*arguments) for key, value in line.items()}

    def routes(self, prefix):
        """{(next hop, origin): cost} of a prefix."""
        return {(line["nexthop"], line["origin"]): int(line["cost"])
                for line in self.lines("route-list") if line["prefix"] == prefix}

    def next_hops(self, prefix):
        """{next hop: cost} of a prefix in the FIB."""
        listing = self.run("fib-list").stdout.decode()
        found = re.search(rf"^  {re.escape(prefix)} nexthops=\{{(.*)\}}$", listing, re.M)
        pairs = re.findall(r"faceid=(\d+) \(cost=(\d+)\)", found.group(1)) if found else []
        return {face: int(cost) for face, cost in pairs}

    def strategies(self):
        """{prefix: strategy}"""
        return {line["prefix"]: line["strategy"] for line in self.lines("strategy-list")}

    def face_to(self, uri):
        """The line of the face with this remote URI, or None."""
        return next((line for line in self.lines("face-list") if line.get("remote") == uri), None)


class Pynfdc:
    """`pynfdc` of python-ndn for one forwarder."""

    def __init__(self, lab, hub):
        self.lab = lab
        self.hub = hub

    def text(self, *arguments):
        """What a command prints; it ends with 0 whatever the forwarder says."""
        result = self.lab.run([peers.PYNFDC, *arguments],
                              {"NDN_CLIENT_TRANSPORT": self.hub.uri()}, ANSWER_TIMEOUT_S)
        assert result.code == 0, f"{arguments}: {result}"
        return result.stdout.decode()

    def code(self, *arguments):
        """The status code of a command's response."""
        found = re.search(r"(?:^|\t)(\d{3}) ", self.text(*arguments))
        assert found, f"{arguments}: no status code"
        return int(found.group(1))

    def faces(self):
        """{remote URI: face}"""
        rows = [line.split() for line in self.text("face").splitlines()[2:]]
        return {row[1]: row[0] for row in rows}

    def face(self, which):
        """The description of one face, {} if there is none."""
        rows = (line.strip().split("\t") for line in self.text("face", which).splitlines())
        return {row[0]: row[1] for row in rows if len(row) == 2}

    def routes(self, prefix):
        """(lines of the FIB, lines of the RIB) about a prefix."""
        fib, _, rib = self.text("route", prefix).partition("Routing Table (RIB)")
        return _indented(fib), _indented(rib)

    def strategies(self):
        """{prefix: strategy}"""
        lines = self.text("strategy").splitlines()
        return {lines[at]: lines[at + 1].strip() for at in range(0, len(lines) - 1, 2)}

    def status(self):
        """{name: value}"""
        rows = (line.strip().split("\t") for line in self.text("status").splitlines())
        return {row[0]: row[1] for row in rows if len(row) == 2}


def _indented(text):
    """[{field: value}] of the lines that begin with a tab."""
    return [dict(re.findall(r"(\w+)=(\S+)", line))
            for line in text.splitlines() if line.startswith("\t")]


def pair(lab, kind):
    """A forwarder under test and another one, of NDNd, to have something to point at."""
    return nodes.FORWARDERS[kind](lab, "near"), nodes.NdndForwarder(lab, "far")
