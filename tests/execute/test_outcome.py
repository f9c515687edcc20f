from __future__ import annotations

from collections import Counter

import pytest

from seatrial.execute.requests import DriveOutcome, FailOn


@pytest.mark.parametrize(
    ("verdicts", "complete", "codes"),
    [
        # of `any`, `failures`, `never`
        ("pass", True, (0, 0, 0)),
        ("pass,known", True, (0, 0, 0)),
        ("pass", False, (3, 3, 3)),
        ("pass,node failure", True, (1, 3, 0)),
        ("pass,check error", False, (1, 3, 3)),
        ("wrong answer,lost", True, (1, 1, 0)),
        ("timeout", False, (1, 1, 3)),
        ("a mode of its own", True, (1, 1, 0)),
    ],
)
def test_the_exit_code_by_policy(
    verdicts: str, complete: bool, codes: tuple[int, int, int]
) -> None:
    outcome = DriveOutcome(Counter(verdicts.split(",")), complete, "")
    policies: tuple[FailOn, ...] = ("any", "failures", "never")
    assert tuple(outcome.exit_code(policy) for policy in policies) == codes
