"""From one score to another: by how much it changed, with its interval, and each part's factor.

    change = score_change(wanted, before, after)
    change.ratio, change.low, change.high      # 1.003, 0.998, 1.008
    change.parts[0].factor                     # 1.3: this part is 1.3 times as good

A score is a product of powers of its parts' rates, and the logarithm of its change a weighted sum
of theirs. Its interval is made of the parts' own, which are those of a comparison, by the recovery
of variances (MOVER: Zou and Donner 2008): parts are measured by themselves.
"""

import math
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from seatrial.statistics.together import judged
from seatrial.statistics.two_sample import RatioEstimate, Verdict
from seatrial.studies.score_file import ScoreFile
from seatrial.studies.scores import Score, TermScore
from seatrial.units import better_of
from seatrial.verify.outputs.io500 import BANDWIDTH, METADATA


class PartFactor(Struct, frozen=True, kw_only=True):
    """How many times as good a part is, with the ends of its 95 % interval; None where it cannot be
    had. ``verdict`` is that of a comparison of its figures, among those of all parts."""

    part: str
    factor: float
    low: float | None = None
    high: float | None = None
    verdict: Verdict = "unclear"
    why: str = ""


class ScoreChange(Struct, frozen=True, kw_only=True):
    """How many times as high the score of the second side is; ``of_size``: the part of it that the
    size of the system is. ``ratio`` is None where a side has no score."""

    first: str
    second: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    of_size: float = 1.0
    parts: list[PartFactor] = []
    why: str = ""


def score_change(wanted: ScoreFile, first: Score, second: Score) -> ScoreChange:
    """Return the change from one side to another."""
    change = ScoreChange(first=first.side, second=second.side)
    if missing := [one.side for one in (first, second) if one.value is None]:
        return replace(change, why=f"there is no score of {' and '.join(missing)}")
    pairs = list(zip(first.parts, second.parts, strict=True))
    rows = [(one.values, other.values, better_of(one.better)) for one, other in pairs]
    parts = [_factor(*pair, one) for pair, one in zip(pairs, judged(rows), strict=True)]
    low, high = _ends(parts, _weights(wanted))
    ratio = (second.value or 0.0) / (first.value or 1.0)
    return replace(
        change,
        ratio=ratio,
        low=None if low is None else ratio / low,
        high=None if high is None else ratio * high,
        of_size=second.size / first.size if first.size and second.size else 1.0,
        parts=parts,
    )


def _factor(one: TermScore, other: TermScore, found: RatioEstimate) -> PartFactor:
    """Return the factor of a part: that of its rates, with the interval of its figures."""
    factor = (other.rate or 0.0) / (one.rate or 1.0)
    low = high = None
    if found.ratio and found.low and found.high and math.isfinite(found.high):
        low, high = found.low / found.ratio, found.high / found.ratio
        if one.better == "lower":
            low, high = 1 / high, 1 / low
        low, high = factor * low, factor * high
    return PartFactor(
        part=one.part, factor=factor, low=low, high=high, verdict=found.verdict, why=found.why
    )


def _ends(
    parts: Sequence[PartFactor], weights: Sequence[float]
) -> tuple[float | None, float | None]:
    """Return by which factors the ends of the score's interval are below and above it; None where a
    part has no interval."""
    below = above = 0.0
    for part, weight in zip(parts, weights, strict=True):
        if part.low is None or part.high is None:
            return None, None
        below += (weight * math.log(part.factor / part.low)) ** 2
        above += (weight * math.log(part.high / part.factor)) ** 2
    return math.exp(math.sqrt(below)), math.exp(math.sqrt(above))


def _weights(wanted: ScoreFile) -> list[float]:
    """Return the power of each part in the score."""
    if wanted.score == "io500":
        halves = ([0.5 / len(each)] * len(each) for each in (BANDWIDTH, METADATA))
        return [weight for half in halves for weight in half]
    weights = [part.weight if wanted.score == "ssi" else 1.0 for part in wanted.parts.values()]
    return [weight / math.fsum(weights) for weight in weights]
