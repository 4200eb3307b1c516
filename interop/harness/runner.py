"""Finds and runs the tests, several at a time; prints one line per test and the totals."""

import argparse
import concurrent.futures
import ctypes
import importlib.util
import multiprocessing
import os
import signal
import sys
import time
import unittest

from . import lab, peers, samples
from .case import Case

REPORT_CHARS_MAX = 12000
# Tests that are run once more, alone, when they failed beside others (scripts/run-tests).
AGAIN_MAX = 3
PR_SET_PDEATHSIG = 1


class Outcome(unittest.TestResult):
    """What became of one test: a verdict, and what to print."""

    def startTest(self, test):
        super().startTest(test)
        self.verdict = None
        self.reason = None
        self._started = time.monotonic()

    def addSuccess(self, test):
        self.verdict = "ok"

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.reason = reason
        self.verdict = f"skipped: {reason}"

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.verdict = "FAILED"

    def addError(self, test, err):
        super().addError(test, err)
        self.verdict = "FAILED"

    def stopTest(self, test):
        seconds = time.monotonic() - self._started
        lines = [f"{title(test)} ... {self.verdict} ({seconds:.1f} s)"]
        if self.verdict == "FAILED":
            lines += [trace for _, trace in self.failures + self.errors]
            lines.append(indent(getattr(test, "report", "")[-REPORT_CHARS_MAX:]))
        self.text = "\n".join(lines)


def indent(text):
    """Sets the report off from the list of tests."""
    return "\n".join("    " + line for line in text.splitlines())


def title(test):
    """folder/file Class.method"""
    return f"{type(test).__module__} {type(test).__name__}.{test._testMethodName}"


def find(pattern, without=None):
    """All tests under interop/*/test_*.py whose title contains the pattern, and not the other."""
    suite = unittest.TestSuite()
    for file in sorted(peers.INTEROP.glob("*/test_*.py")):
        module_name = f"{file.parent.name}/{file.stem}"
        spec = importlib.util.spec_from_file_location(module_name, file)
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        spec.loader.exec_module(module)
        for value in vars(module).values():
            own = isinstance(value, type) and issubclass(value, Case)
            if own and value.__module__ == module_name and is_here(value):
                for test in unittest.defaultTestLoader.loadTestsFromTestCase(value):
                    name = title(test)
                    if pattern in name and not (without and without in name):
                        suite.addTest(test)
    return suite


def is_here(case):
    """False if it needs an optional peer that is not installed."""
    needed = [peers.PEERS[name] for name in case.needs]
    return all(peer.is_installed() for peer in needed if peer.is_optional)


_tests = {}


def load(pattern, counter):
    """Makes a process ready to run tests of its own; it ends, with all it started, when the main
    one does."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    lab.take_ports(next_number(counter))
    _tests.update((title(test), test) for test in find(pattern))


def _end(number, _):
    lab.Lab.close_all()
    os._exit(128 + number)


def next_number(counter):
    """The number of a process among those that run tests."""
    with counter.get_lock():
        counter.value += 1
        return counter.value - 1


def run(name):
    """Runs one test here; the verdict, the reason if it was skipped, and what to print."""
    outcome = Outcome()
    _tests[name].run(outcome)
    return outcome.verdict, outcome.reason, outcome.text


def main(arguments):
    parser = argparse.ArgumentParser(description="Interoperability tests of byname.")
    parser.add_argument("-k", metavar="TEXT", default="", help="tests whose title contains TEXT")
    parser.add_argument("--without", metavar="TEXT", help="but none whose title contains TEXT")
    parser.add_argument("--list", action="store_true", help="list the tests and stop")
    parser.add_argument("--jobs", metavar="N", type=int, default=1, help="tests at the same time")
    options = parser.parse_args(arguments)
    names = [title(test) for test in find(options.k, options.without)]
    if options.list:
        print("\n".join(names))
        return 0
    # Before several processes find that they are missing.
    samples.directory()
    counts = {"ok": 0, "FAILED": 0}
    reasons, failed = [], []
    with concurrent.futures.ProcessPoolExecutor(
            options.jobs, multiprocessing.get_context("fork"), load,
            (options.k, multiprocessing.Value("i"))) as pool:
        begun = {pool.submit(run, name): name for name in names}
        for ended in concurrent.futures.as_completed(begun):
            verdict, reason, text = ended.result()
            print(text, flush=True)
            if reason is not None:
                reasons.append(reason)
            elif verdict == "FAILED":
                failed.append(begun[ended])
            else:
                counts[verdict] += 1
        for name in failed:
            verdict = "FAILED"
            if len(failed) <= AGAIN_MAX:
                verdict, _, text = pool.submit(run, name).result()
                print(text, flush=True)
                outcome = "UNSTEADY: passed" if verdict == "ok" else "failed"
                print(f"{outcome} when run again, alone: {name}", flush=True)
            counts["ok" if verdict == "ok" else "FAILED"] += 1
    for reason in sorted(set(reasons)):
        print(f"skipped because {reason}")
    print(f"{counts['ok']} passed, {counts['FAILED']} failed, {len(reasons)} skipped")
    return 1 if counts["FAILED"] or not names else 0
