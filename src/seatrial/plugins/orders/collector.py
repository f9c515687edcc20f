"""Adds up what the ranks of a run recorded of their messages."""

from __future__ import annotations

import contextlib

from seatrial.execute.run_collector import RunReader
from seatrial.execute.runs import RunUnderWay
from seatrial.model.test import Test
from seatrial.plugins.orders import patterns


class PatternReader(RunReader):
    """Makes the pattern of a run whose test asks for it."""

    def is_slow(self, test: Test) -> bool:
        return bool(test.run.pattern)

    def collect(self, run: RunUnderWay) -> None:
        if run.test.run.pattern:
            with contextlib.suppress(OSError):
                patterns.collect(run.path)
