"""Cases that failed at times on one side and never on the other: are they cured?

for one in cures_of(paired.pairs):
    one.failed, one.runs, one.clean, one.needed      # 3 of 60 failed; 80 clean runs; it takes 217
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from seatrial.statistics.significance import clean_runs_needed
from seatrial.store.by_case import CaseRuns, excluded_of
from seatrial.studies.pairing import CasePair


class Cure(Struct, frozen=True):
    """A case of whose ``runs`` some ``failed`` on the first side, and none of the ``clean`` ones on
    the second; ``needed``: how many clean ones show with 95 % that failures are rarer."""

    case: str
    failed: int
    runs: int
    clean: int
    needed: int

    @property
    def shown(self) -> bool:
        return self.clean >= self.needed

    def told(self, first: str, second: str) -> str:
        """Return a sentence; the sides are named as given."""
        more = "that shows it" if self.shown else f"it takes {self.needed} to show it"
        return (
            f"{self.case}: {self.failed} of {self.runs} runs of {first} failed, none of "
            f"{self.clean} of {second}: cured? {more} (95 %)"
        )


def cures_of(pairs: Iterable[CasePair]) -> list[Cure]:
    """Return a row for each case that failed on the first side alone, and ran on the second."""
    found = []
    for pair in pairs:
        (failed, runs), (still, clean) = _counts(pair.first), _counts(pair.second)
        if failed and clean and not still:
            found.append(Cure(pair.name, failed, runs, clean, clean_runs_needed(failed, runs)))
    return found


def _counts(cases: Sequence[CaseRuns]) -> tuple[int, int]:
    """Return how many runs failed, and how many there are."""
    failed = sum(excluded_of(cases).values())
    return failed, failed + sum(len(case.runs) for case in cases)
