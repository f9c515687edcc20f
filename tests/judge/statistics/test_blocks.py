from __future__ import annotations

import numpy as np

from seatrial.judge.statistics.all_pairs import blocks


def test_blocks_are_what_loops_would_give() -> None:
    rng = np.random.default_rng(1)
    member = rng.integers(0, 4, 23)
    figures = rng.normal(100, 5, (23, 23))
    figures[rng.random((23, 23)) < 0.3] = np.nan
    np.fill_diagonal(figures, np.nan)
    figures[np.ix_(member == 1, member == 2)] = np.nan  # a pair of groups without a figure
    found = blocks(figures, member, 5)  # the last group has no member
    for a in range(5):
        for b in range(5):
            block = figures[np.ix_(member == a, member == b)]
            known = block[~np.isnan(block)]
            assert (found.known[a, b], found.cells[a, b]) == (known.size, block.size)
            expected = [np.median(known), known.min(), known.max()] if known.size else [np.nan] * 3
            told = [found.median[a, b], found.low[a, b], found.high[a, b]]
            np.testing.assert_allclose(told, expected)
