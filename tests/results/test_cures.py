"""Cases that failed before, and no longer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seatrial.model import codes
from tests.cli.test_query_common import ask

from .figures import TRIAD, Measuring, bound


def trial(folder: Path, tag: str, runs: int, failed: int) -> None:
    case = bound(1)
    made = Measuring(folder, tag, [case])
    for i in range(runs):
        if i < failed:
            made.measure(case, verdict=codes.TIMEOUT)
        else:
            made.measure(case, {TRIAD: 100.0 + i % 7})
    made.done()


@pytest.mark.parametrize(("clean", "said"), [(5, "it takes 6 to show it"), (6, "that shows it")])
def test_a_case_that_failed_often(tmp_path: Path, clean: int, said: str) -> None:
    trial(tmp_path, "before", 8, 6)
    trial(tmp_path, "after", clean, 0)
    answer = ask(tmp_path, "compare", "before", "after")
    line = f"stream: 6 of 8 runs of A failed, none of {clean} of B: cured? {said} (95 %)"
    assert line in answer.out.splitlines()
    found = json.loads(ask(tmp_path, "compare", "before", "after", "--format", "json").out)
    (cure,) = found["comparisons"][0]["cures"]
    assert cure == {"case": "stream", "failed": 6, "runs": 8, "clean": clean, "needed": 6}


@pytest.mark.parametrize(("before", "after"), [(0, 0), (2, 1)])
def test_none_failed_or_some_still_do(tmp_path: Path, before: int, after: int) -> None:
    trial(tmp_path, "before", 8, before)
    trial(tmp_path, "after", 8, after)
    assert "cured" not in ask(tmp_path, "compare", "before", "after").out
