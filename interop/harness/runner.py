"""Finds and runs the tests; prints one line per test and the totals."""

import argparse
import importlib.util
import sys
import time
import unittest

from . import lab, peers
from .case import Case

REPORT_CHARS_MAX = 12000


class Outcome(unittest.TestResult):
    """Prints each test as it ends, and the report of its lab if it failed."""

    def __init__(self):
        super().__init__()
        self.passed = 0
        self.durations = []

    def startTest(self, test):
        super().startTest(test)
        self._verdict = None
        self._started = time.monotonic()

    def addSuccess(self, test):
        self._verdict = "ok"

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._verdict = f"skipped: {reason}"

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._verdict = "FAILED"

    def addError(self, test, err):
        super().addError(test, err)
        self._verdict = "FAILED"

    def failed_count(self):
        """Tests that failed, however they did."""
        return len({str(test) for test, _ in self.failures + self.errors})

    def stopTest(self, test):
        seconds = time.monotonic() - self._started
        print(f"{title(test)} ... {self._verdict} ({seconds:.1f} s)", flush=True)
        if self._verdict == "ok":
            self.passed += 1
        if self._verdict == "FAILED":
            for failed, trace in (self.failures + self.errors):
                if failed is test:
                    print(trace)
            print(indent(getattr(test, "report", "")[-REPORT_CHARS_MAX:]), flush=True)


def indent(text):
    """Sets the report off from the list of tests."""
    return "\n".join("    " + line for line in text.splitlines())


def title(test):
    """folder/file Class.method"""
    return f"{type(test).__module__} {type(test).__name__}.{test._testMethodName}"


def find(pattern):
    """All tests under interop/*/test_*.py whose title contains the pattern."""
    suite = unittest.TestSuite()
    for file in sorted(peers.INTEROP.glob("*/test_*.py")):
        module_name = f"{file.parent.name}/{file.stem}"
        spec = importlib.util.spec_from_file_location(module_name, file)
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        spec.loader.exec_module(module)
        for value in vars(module).values():
            own = isinstance(value, type) and issubclass(value, Case)
            if own and value.__module__ == module_name:
                for test in unittest.defaultTestLoader.loadTestsFromTestCase(value):
                    if pattern in title(test):
                        suite.addTest(test)
    return suite


def main(arguments):
    parser = argparse.ArgumentParser(description="Interoperability tests of byname.")
    parser.add_argument("-k", metavar="TEXT", default="", help="tests whose title contains TEXT")
    parser.add_argument("--list", action="store_true", help="list the tests and stop")
    options = parser.parse_args(arguments)
    suite = find(options.k)
    if options.list:
        for test in suite:
            print(title(test))
        return 0
    lab.end_cleanly_on_sigterm()
    outcome = Outcome()
    suite.run(outcome)
    failed = outcome.failed_count()
    for name in sorted({reason for _, reason in outcome.skipped}):
        print(f"skipped because {name}")
    print(f"{outcome.passed} passed, {failed} failed, {len(outcome.skipped)} skipped")
    return 1 if failed or outcome.testsRun == 0 else 0
