"""Bisect for the largest size at which a program works.

    search = LargestSearch(rules)       # of the sizes in order; used as a race is: see ``race``

The program is taken to work up to some size, and to fail above it. So each run halves the sizes
that are left: of 31 sizes the largest is found in five runs. Each run is a block of its own.
"""

from seatrial.conduct.race import Dropped
from seatrial.conduct.race_rules import RaceRules

MAX_CUTS = 3


class LargestSearch:
    """A search over settings whose sizes rise: a fold over its runs, as ``Race`` is. ``runs``,
    ``failures`` and ``cuts`` are by setting; ``dropped`` are settings that failed, or are larger
    than one that did."""

    def __init__(self, rules: RaceRules) -> None:
        count = len(rules.levels)
        self.rules = rules
        self.runs = [0] * count
        self.failures: list[list[str]] = [[] for _ in range(count)]
        self.cuts: list[list[str]] = [[] for _ in range(count)]
        self.dropped: dict[int, Dropped] = {}
        self.blocks: list[list[list[int]]] = []
        self._works, self._fails = -1, count
        self._unbuilt: set[int] = set()

    @property
    def rounds_begun(self) -> int:
        """The number of rounds before the current block."""
        return max(0, len(self.blocks) - 1)

    @property
    def largest(self) -> int | None:
        """The largest setting that is known to work; None if none is."""
        return self._works if self._works >= 0 else None

    def record(self, setting: int, number: int, figure: float) -> None:
        """Record that a setting works."""
        self.runs[setting] += 1
        self._works = max(self._works, setting)

    def fail(self, setting: int, number: int, cause: str) -> None:
        """Record that a setting does not work, and why."""
        self.runs[setting] += 1
        self.failures[setting].append(cause)
        self.dropped[setting] = Dropped(len(self.blocks), cause=cause)
        self._fails = min(self._fails, setting)

    def cut_off(self, setting: int, number: int, cause: str) -> None:
        """Record that a run was ended from outside, and why: it is run again, unless that happened
        too often."""
        self.runs[setting] += 1
        self.cuts[setting].append(cause)
        if len(self.cuts[setting]) == MAX_CUTS:
            self.exclude(setting, f"{MAX_CUTS} runs had no result: {cause}")

    def exclude(self, setting: int, cause: str) -> None:
        """Record that a setting cannot run at all, and why."""
        self.dropped[setting] = Dropped(len(self.blocks), cause=cause)
        self._unbuilt.add(setting)

    def end_block(self) -> None:
        """A block has run."""

    def next_block(self) -> list[list[int]]:
        """Begin the next block: the middle of the sizes that are left; none if none is."""
        left = [n for n in range(self._works + 1, self._fails) if n not in self._unbuilt]
        if not left:
            return []
        block = [[left[len(left) // 2]]]
        self.blocks.append(block)
        return block
