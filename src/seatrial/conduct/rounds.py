"""The order of repeated runs: in rounds, in each of which every case runs once.

    rounds = Rounds(cases=3, seed="demo")
    rounds.order(0)                     # (0, 1, 2)
    rounds.place(4, case=1)             # its place in the fifth round

Runs of one case that stand together make a difference of a drift of the machine. Each round is a
row of a Williams design (E. J. Williams, Australian Journal of Scientific Research A 2, 1949): in a
whole cycle of rounds every case has every place equally often, and follows every other case equally
often within a round. The cycle has as many rounds as there are cases, twice as many if that number
is odd. The order of the rows is drawn by the seed; the first row has the order of the cases.
"""

import hashlib
from collections.abc import Iterable


class Rounds:
    """The rounds of so many ``cases``, without an end. The first row of the design is a zigzag: 0,
    1, n-1, 2, n-2, ...; the others are the same, shifted, and for an odd number reversed, too."""

    def __init__(self, cases: int, seed: str) -> None:
        self._cases = cases
        self._seed = seed
        self._cycle = -1  # the cycle of which the shifts are known
        self._shifts: tuple[list[int], list[int]] = [], []

    def order(self, number: int) -> tuple[int, ...]:
        """Return the cases in the order of a round."""
        return tuple(sorted(range(self._cases), key=lambda case: self.place(number, case)))

    def place(self, number: int, case: int) -> int:
        """Return the place of a case, from 0 on, in a round."""
        shift, reverse = self._row(number)
        place = _place_in_zigzag((_zigzag(case, self._cases) - shift) % self._cases, self._cases)
        return self._cases - 1 - place if reverse else place

    def _row(self, number: int) -> tuple[int, bool]:
        odd = self._cases % 2
        cycle, row = divmod(number, self._cases * (1 + odd))
        if cycle != self._cycle:
            self._cycle, self._shifts = cycle, self._draw(cycle)
        if odd:
            return self._shifts[row % 2][row // 2], row % 2 == 1
        return self._shifts[0][row], False

    def _draw(self, cycle: int) -> tuple[list[int], list[int]]:
        """Return the shifts of the rows of a cycle, and those of its reversed rows."""
        forward, backward = (
            shuffled(range(self._cases), f"{self._seed} {cycle} {side}")
            for side in ("forward", "backward")
        )
        if cycle == 0:
            forward.remove(0)
            forward.insert(0, 0)
        return forward, backward


def shuffled(numbers: Iterable[int], seed: str) -> list[int]:
    """Return the numbers in an order that the seed draws, the same on every machine."""
    return sorted(numbers, key=lambda each: hashlib.sha256(f"{seed} {each}".encode()).digest())


def _zigzag(place: int, cases: int) -> int:
    """Return what stands at a place of 0, 1, n-1, 2, n-2, ..."""
    return (place + 1) // 2 if place % 2 else (cases - place // 2) % cases


def _place_in_zigzag(label: int, cases: int) -> int:
    """Return the place of a label in 0, 1, n-1, 2, n-2, ..."""
    return 2 * label - 1 if 0 < label <= cases // 2 else 2 * (cases - label) % (2 * cases)
