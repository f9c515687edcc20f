"""Kinds of cores: planted ones, those of the Franklin paper, none."""

from __future__ import annotations

import numpy as np
import pytest

from seatrial.judge.statistics.bands import CoreFigure, core_kinds


def figures(
    seed: int, kind_of: list[int], add: float, noise: float = 0.02, nodes: int = 4
) -> list[CoreFigure]:
    """Pairs of all cores of all nodes, in two levels; each end of kind 1 adds to 5 us."""
    rng = np.random.default_rng(seed)
    return [
        CoreFigure(
            "router" if a // 2 == b // 2 else "system",
            x,
            y,
            (5 if a // 2 == b // 2 else 6)
            + add * (kind_of[x] + kind_of[y])
            + abs(float(rng.normal(0, noise))),
        )
        for a in range(nodes)
        for b in range(a + 1, nodes)
        for x in range(len(kind_of))
        for y in range(len(kind_of))
    ]


def test_planted_kinds_are_found() -> None:
    for seed in range(20):
        found = core_kinds(figures(seed, [0, 1, 0, 1], 1.0))
        assert found is not None and found.cpus == [[0, 2], [1, 3]]
        assert found.ratios == pytest.approx([1, 1.17], abs=0.03)
        assert found.of[3] == 1


def test_franklin() -> None:
    """Core 0 takes the interrupts: 5.46, 6.09 and 6.74 us, 1, 6 and 9 of 16."""
    values = (5.46, 6.09, 6.74)
    given = [
        CoreFigure("system", x, y, values[(x > 0) + (y > 0)]) for x in range(4) for y in range(4)
    ]
    found = core_kinds(given)
    assert found is not None and found.cpus == [[0], [1, 2, 3]]


def test_equal_cores_have_no_kinds() -> None:
    assert sum(core_kinds(figures(seed, [0] * 8, 0.0, 0.2)) is not None for seed in range(100)) <= 5


def test_too_few_or_unknown_cores_have_no_kinds() -> None:
    assert core_kinds([]) is None
    assert core_kinds([CoreFigure("system", 0, 1, 5.0)] * 3) is None
    assert core_kinds([CoreFigure("system", -1, -1, 5.0)] * 9) is None
    assert core_kinds([CoreFigure("system", 0, 0, 5.0)] * 9) is None
    odd = [CoreFigure("system", 0, 9, 5.0), CoreFigure("system", 1, 8, 5.0)] * 4
    assert core_kinds(odd) is None
    lone = [CoreFigure("a", 0, 7, 5.0)] * 4 + [
        CoreFigure("a", 1, cpu, 5.0) for cpu in range(90, 94)
    ]
    assert core_kinds(lone) is None
