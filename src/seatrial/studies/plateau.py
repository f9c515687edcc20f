"""The settings about the best one that are as good: its plateau, over one or two parameters.

plateau_of({("1",): 0.7, ("2",): 1.0, ("4",): 0.98}, ("2",), told=set())     # {("2",), ("4",)}
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from seatrial.studies.constant_resources import PLATEAU
from seatrial.studies.scaling_cells import are_numbers

Key = tuple[str, ...]


def plateau_of(ratios: Mapping[Key, float | None], best: Key, told: Collection[Key]) -> set[Key]:
    """Return the settings that can be reached from the best one by steps along one parameter, over
    settings within 5 % of it or not ``told`` to be worse. A step leads to the next number; from a
    word to any other one. Settings without a ratio are passed over."""
    known = [key for key, ratio in ratios.items() if ratio is not None]
    good = {key for key in known if (ratios[key] or 0.0) >= 1 - PLATEAU or key not in told}
    places = [_places([key[i] for key in known]) for i in range(len(best))]
    reached, edge = {best}, [best]
    while edge:
        key = edge.pop()
        near = {other for other in good - reached if _is_next(key, other, places)}
        reached |= near
        edge += near
    return reached


def _places(values: list[str]) -> dict[str, int]:
    """Return the places of numbers in their order; of words, which have none, nothing."""
    distinct = list(dict.fromkeys(values))
    if not are_numbers(distinct):
        return {}
    return {value: place for place, value in enumerate(sorted(distinct, key=float))}


def _is_next(one: Key, other: Key, places: list[dict[str, int]]) -> bool:
    steps = [
        abs(order[a] - order[b]) if order else 1
        for a, b, order in zip(one, other, places, strict=True)
        if a != b
    ]
    return steps == [1]
