"""Reduce the number of points of a series without changing its look.

kept = thin_line(places)
"""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

Place = tuple[float, float]  # in pixels
MAX_DOTS = 4000


def thin_line(places: Sequence[Place]) -> list[Place]:
    """Return the first, last, least and greatest place of each pixel's column, in their order."""
    columns = (list(own) for _, own in groupby(places, lambda place: int(place[0])))
    return [place for column in columns for place in _ends(column)]


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
    columns: dict[int, list[Place]] = {}
    for place in places:
        columns.setdefault(int(place[0]), []).append(place)
    height = itemgetter(1)
    return [pick(own, key=height) for own in columns.values() for pick in (min, max)]
