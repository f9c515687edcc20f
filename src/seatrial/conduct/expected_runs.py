"""The number of runs of each test that a sustained trial keeps in flight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from seatrial.conduct.policy import Policy
from seatrial.conduct.shares import planned_shares


class ExpectedRuns(NamedTuple):
    """What is expected of an entry: the number of its ``runs`` in flight, 0 where nothing is
    expected; and how many runs its part of the machine holds (``share``), caps aside."""

    runs: int
    share: float


def expected_runs(policy: Policy, widths: Sequence[int], whole: int) -> list[ExpectedRuns]:
    """Return what is expected of each entry: its copies, or as many runs as its part of the machine
    holds and one at least, but no more than its cap. ``widths`` has what the widest case of each
    entry takes of the ``whole`` machine: of its nodes, or of the cores of a shared node."""
    entries = policy.entries
    if policy.kind != "sustained":
        return [ExpectedRuns(0, 0.0)] * len(entries)
    planned = planned_shares(policy, widths, whole)
    expected = []
    for entry, width, part in zip(entries, widths, planned.shares, strict=True):
        share = part * whole / max(width, 1)
        runs = entry.copies
        if not runs and share > 0:
            runs = max(1, int(share + 1e-9))
        expected.append(ExpectedRuns(min(runs, entry.most or runs), share))
    return expected
