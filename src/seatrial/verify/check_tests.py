"""Check the ``verify`` and ``metrics`` keys of tests before anything runs."""

from __future__ import annotations

from seatrial.documents import Faults
from seatrial.suite.load import Suite
from seatrial.verify.checks import faults_of_check
from seatrial.verify.metrics import faults_of_metrics


def check_judging(suite: Suite, faults: Faults) -> None:
    """Add the faults of every test's ``verify`` and ``metrics``."""
    for name, test in suite.tests.items():
        for i, check in enumerate(test.verify):
            for message in faults_of_check(check):
                suite.fault(faults, name, ["verify", i], message)
        for key, message in faults_of_metrics(test):
            suite.fault(faults, name, key.split("."), message)
