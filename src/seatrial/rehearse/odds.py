"""Estimate how likely each criterion is met, from rehearsals of a plan with many seeds.

for odds in odds_of(rehearsed_by_seed): print(odds.label, odds.met, odds.of)
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from seatrial.acceptance.criteria import Result, State
from seatrial.rehearse.summary import CriterionVerdict, Rehearsed
from seatrial.statistics.significance import wilson


class UnmetCause(NamedTuple):
    """Why a criterion was not met or undecided: in how many seeds, the first, and its reason."""

    state: State
    seeds: int
    first: int
    why: str


class Odds(NamedTuple):
    """In how many of all seeds a criterion was met, not met, undecided or waived.

    ``low`` and ``high``: the 95 % interval of the probability that it is met. ``least`` and
    ``most``: the results with the smallest and the largest value.
    """

    trial: str
    label: str
    met: int
    not_met: int
    undecided: int
    waived: int
    of: int
    low: float
    high: float
    least: Result
    most: Result
    causes: list[UnmetCause]


def odds_of(rehearsals: Sequence[Sequence[Rehearsed]]) -> list[Odds]:
    """Return the odds of each criterion of each trial, from one rehearsal a seed."""
    found = []
    for trials in zip(*rehearsals, strict=True):
        for verdicts in zip(*(trial.criteria for trial in trials), strict=True):
            found.append(_odds(trials, verdicts))
    return found


def _odds(trials: Sequence[Rehearsed], verdicts: Sequence[CriterionVerdict]) -> Odds:
    states = Counter(verdict.result.state for verdict in verdicts)
    low, high = wilson(states["met"], len(verdicts) - states["waived"])
    results = sorted(
        (verdict.result for verdict in verdicts), key=lambda result: result.value or 0.0
    )
    seeds = [trial.seed for trial in trials]
    return Odds(
        trial=trials[0].name,
        label=verdicts[0].label,
        met=states["met"],
        not_met=states["not met"],
        undecided=states["undecided"],
        waived=states["waived"],
        of=len(verdicts),
        low=low,
        high=high,
        least=results[0],
        most=results[-1],
        causes=_causes(zip(seeds, verdicts, strict=True)),
    )


def _causes(verdicts: Iterable[tuple[int, CriterionVerdict]]) -> list[UnmetCause]:
    """Return why a criterion was not met or undecided, the most frequent cause first."""
    found: dict[tuple[State, str], UnmetCause] = {}
    for seed, verdict in verdicts:
        result = verdict.result
        if result.state not in ("not met", "undecided"):
            continue
        cause = str(result.numbers.get("cause") or result.numbers.get("worst") or "")
        known = found.get((result.state, cause), UnmetCause(result.state, 0, seed, result.why))
        found[result.state, cause] = known._replace(seeds=known.seeds + 1)
    return sorted(found.values(), key=lambda each: (each.state, -each.seeds, each.first))
