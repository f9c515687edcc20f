"""Select the samples that may be the best of several (subset selection, Gupta 1965).

found = select_best({"a": [10.1, 10.2, 10.0], "b": [12.0, 12.1, 12.2]}, "lower")
found.best, found.told         # "a", {"b"}: b is told to be worse

Each sample is compared with the one of the best median by ``two_sample.compare``, at 5 % divided
among the others (Holm 1979). So with 95 % a best one is among those that are not told to be worse.
Of two samples the answer is that of the rule.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from seatrial.lazy import statistics
from seatrial.statistics.sample_sizes import CONFIDENCE, twice
from seatrial.statistics.together import judged
from seatrial.statistics.two_sample import MIN_RELATIVE_CHANGE, RatioEstimate
from seatrial.units import Better


class BestOfSeveral(NamedTuple):
    """The sample with the best median, by its name, and what the others are beside it: ``beside``,
    by their names, is the ratio of each to the best, and its verdict."""

    best: str
    beside: dict[str, RatioEstimate]

    @property
    def told(self) -> set[str]:
        """The names of those that are told to be worse."""
        return {name for name, one in self.beside.items() if one.verdict == "worse"}


def select_best(
    samples: Mapping[str, Sequence[float]], better: Better, least: float = MIN_RELATIVE_CHANGE
) -> BestOfSeveral:
    """Compare samples of figures above 0. Raises ValueError if there is none."""
    sign = 1 if better == "higher" else -1
    best = max(samples, key=lambda name: sign * statistics.median(samples[name]))
    return BestOfSeveral(best, beside(samples, best, better, least))


def beside(
    samples: Mapping[str, Sequence[float]], best: str, better: Better, least: float
) -> dict[str, RatioEstimate]:
    """Return what each other sample is beside the one that is taken for the best."""
    others = [name for name in samples if name != best]
    alone = {name: judged([(samples[best], samples[name], better)], least)[0] for name in others}
    ordered = sorted((one.p or 0.0, name) for name, one in alone.items() if one.told)
    for i, (p, _) in enumerate(ordered):
        if p > (1 - CONFIDENCE) / (len(others) - i):
            why = f"among {len(samples)} settings chance may make such a difference: repeat"
            for _, name in ordered[i:]:
                needed = twice(min(len(samples[best]), len(samples[name])))
                alone[name] = replace(alone[name], verdict="unclear", why=why, needed=needed)
            break
    return alone
