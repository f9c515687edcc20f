"""Fewer points, of the same look: what a pixel's column shows is its least and greatest value.

kept = thin(places, columns=600)
"""

from __future__ import annotations

from collections.abc import Sequence

Place = tuple[float, float]  # in pixels
MAX_DOTS = 4000


def thin_line(places: Sequence[Place]) -> list[Place]:
    """The places of a line: of each pixel's column the first, the last, the least, the greatest,
    in their order. What comes back looks the same."""
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


def thin_dots(places: Sequence[Place], most: int = MAX_DOTS) -> list[Place]:
    """The places of dots: one of those that would lie on each other; where these are still more
    than ``most``, the grid is made coarser. The least and greatest of a column stay."""
    size = 0.5
    kept = _on_grid(places, size)
    while len(kept) > most and size < 16:
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
    least: dict[int, Place] = {}
    most: dict[int, Place] = {}
    for place in places:
        column = int(place[0])
        if column not in least or place[1] < least[column][1]:
            least[column] = place
        if column not in most or place[1] > most[column][1]:
            most[column] = place
    return [*least.values(), *most.values()]
