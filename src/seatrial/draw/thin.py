"""Reduce the number of points of a series without changing its look.

kept = thin_line(places)
"""

from __future__ import annotations

from collections.abc import Sequence

Place = tuple[float, float]  # in pixels
MAX_DOTS = 4000


def thin_line(places: Sequence[Place]) -> list[Place]:
    """Return the first, last, least and greatest place of each pixel's column, in their order."""
    kept: list[Place] = []
    column: list[Place] = []
    for place in places:
        if column and int(place[0]) != int(column[0][0]):
            kept += _ends(column)
            column = []
        column.append(place)
    return kept + _ends(column)


def _ends(column: Sequence[Place]) -> list[Place]:
    if len(column) <= 4:
        return list(column)
    heights = [y for _, y in column]
    chosen = {0, heights.index(min(heights)), heights.index(max(heights)), len(column) - 1}
    return [column[i] for i in sorted(chosen)]


def thin_dots(places: Sequence[Place], limit: int = MAX_DOTS) -> list[Place]:
    """Return one place in each cell of a grid of half a pixel.

    With more than ``limit`` places the grid becomes coarser. The least and greatest place of each
    pixel's column are kept.
    """
    size = 0.5
    kept = _on_grid(places, size)
    while len(kept) > limit and size < 16:
        size *= 1.5
        kept = _on_grid(places, size)
    if size > 0.5:
        kept |= _on_grid(_extremes(places), 0.5)
    return sorted(kept.values())


def _on_grid(places: Sequence[Place], size: float) -> dict[tuple[int, int, float], Place]:
    found: dict[tuple[int, int, float], Place] = {}
    for x, y in places:
        found.setdefault((int(x / size), int(y / size), size), (x, y))
    return found


def _extremes(places: Sequence[Place]) -> list[Place]:
    """Return the least and the greatest place of each pixel's column."""
    least: dict[int, Place] = {}
    greatest: dict[int, Place] = {}
    for place in places:
        column = int(place[0])
        if column not in least or place[1] < least[column][1]:
            least[column] = place
        if column not in greatest or place[1] > greatest[column][1]:
            greatest[column] = place
    return [*least.values(), *greatest.values()]
