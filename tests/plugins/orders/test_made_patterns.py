"""Patterns by words: who talks to whom, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from seatrial.model.orders import mfdn_cells
from seatrial.plugins.orders.acts import irregular, mfdn_triangle, parse_pattern
from seatrial.plugins.orders.patterns import Pattern


def pairs(pattern: Pattern) -> set[tuple[int, int]]:
    return set(zip(pattern.senders.tolist(), pattern.receivers.tolist(), strict=True))


@pytest.mark.parametrize(
    ("words", "ranks", "number"),
    [
        ("halo 4x3x5", 60, 60 * 6),
        ("Halo 4,3", 12, 12 * 4),
        ("halo 4x3 open", 12, 2 * (3 * 3 + 4 * 2)),
        ("transpose 4x3", 12, 4 * 3 * 2 + 3 * 4 * 3),
    ],
)
def test_grids(words: str, ranks: int, number: int) -> None:
    pattern = parse_pattern(words)
    assert (pattern.ranks, len(pairs(pattern))) == (ranks, number)
    assert pairs(pattern) == {(b, a) for a, b in pairs(pattern)}


@pytest.mark.parametrize("kind", ["DM", "CM", "BDM", "BCM"])
def test_cells_of_mfdn_share_parts_of_vectors(kind: str) -> None:
    """Two cells talk where a row or a column of one has the number of one of the other's."""
    cells = mfdn_cells(5, kind)  # type: ignore[arg-type]
    wanted = {
        (a, b)
        for a, one in enumerate(cells)
        for b, other in enumerate(cells)
        if a != b and {*one} & {*other}
    }
    assert pairs(mfdn_triangle(5, kind)) == wanted == pairs(parse_pattern(f"mfdn 5 {kind}"))  # type: ignore[arg-type]


def test_irregular_patterns_are_of_near_points() -> None:
    """All pairs within the radius are there, by a search that compares all of them."""
    pattern = irregular(300, 5)
    assert pairs(pattern) == {(b, a) for a, b in pairs(pattern)}
    again, other = irregular(300, 5), irregular(300, 6)
    assert np.array_equal(pattern.senders, again.senders) and len(other.senders) > 300
    assert not np.array_equal(pattern.senders, other.senders)
    assert pattern.volumes.min() >= 1 and len(set(pattern.volumes.tolist())) > 20
    assert pairs(parse_pattern("irregular 300 seed 5")) == pairs(pattern)
    degrees = np.bincount(pattern.senders, minlength=300)
    assert degrees.max() > 3 * np.median(degrees)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("ring 5", "'ring 5' is no pattern; write halo 16x16x16"),
        ("halo", "is no pattern"),
        ("halo 4x0", "0 ranks: there can be 1 to"),
        ("transpose 9000x9000", "ranks: there can be 1 to"),
        ("transpose 1x65536", "pairs; 67108864 are the most"),
        ("mfdn 4 DM", "4 diagonals: MFDn takes an odd number"),
        ("mfdn 5 XM", "'XM' is none of DM, CM, BDM, BCM"),
        ("irregular 0", "0 ranks: there can be 1 to"),
    ],
)
def test_what_is_no_pattern_is_told(words: str, told: str) -> None:
    with pytest.raises(ValueError, match=r"\S") as error:
        parse_pattern(words)
    assert told in str(error.value)
