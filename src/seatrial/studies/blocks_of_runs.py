"""Blocks in which several settings were measured together: jobs that they share, or trials.

blocks = by_block(groups, kind)
agreement_of(blocks, best, "higher")      # (3, 3): best in three of three blocks
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from seatrial.store.by_case import CaseRuns, Kind
from seatrial.units import Better

Key = tuple[str, ...]
Blocks = Mapping[str, Mapping[Key, list[float]]]


def by_block(groups: Mapping[Key, Sequence[CaseRuns]], kind: Kind) -> Blocks:
    """Return the figures of the settings by block, of blocks with two settings or more: by jobs
    (``TRIAL\\nJOB``) where settings share one, else by trials."""
    return _shared(groups, kind, True) or _shared(groups, kind, False)


def _shared(groups: Mapping[Key, Sequence[CaseRuns]], kind: Kind, by_job: bool) -> Blocks:
    found: dict[str, dict[Key, list[float]]] = {}
    for key, cases in groups.items():
        for case in cases:
            values = case.values.get(kind, [])
            jobs = case.jobs.get(kind, [""] * len(values))
            for value, job in zip(values, jobs, strict=True):
                if job or not by_job:
                    name = f"{case.trial}\n{job}" if by_job else case.trial
                    found.setdefault(name, {}).setdefault(key, []).append(value)
    return {name: block for name, block in found.items() if len(block) > 1}


def agreement_of(blocks: Blocks, best: Key, better: Better) -> tuple[int, int]:
    """Return in how many blocks the setting has the best median, and in how many it was measured;
    (0, 0) where there is one block, which cannot disagree."""
    sign = 1 if better == "higher" else -1
    having = [block for block in blocks.values() if best in block]
    if len(having) < 2:
        return 0, 0
    first = sum(
        all(sign * median(block[best]) >= sign * median(values) for values in block.values())
        for block in having
    )
    return first, len(having)
