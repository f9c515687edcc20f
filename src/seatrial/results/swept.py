"""What a sweep found: for each metric the best point with its interval, the plateau, the knee.

    swept = swept_of(sweep, cases, units)
    swept.bests[0].best, swept.bests[0].plateau, swept.bests[0].knee      # numbers of settings

A point without a figure, failed or not tried, is in none of them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from msgspec import Struct

from seatrial.decide.sweep import KNEE, PLATEAU, Sweep, SweepAnswer
from seatrial.judge.promises import Promised
from seatrial.model.file_model import Scalar
from seatrial.model.identifiers import bindings_text
from seatrial.model.test import Case
from seatrial.units import Better, count, show_figure, show_number, show_seconds, show_share

MAX_NAMED = 4


class SweptPoint(Struct, frozen=True):
    """A point that ran: its values on the axes, the medians of its ``n`` figures by metric, and
    what a run takes (None: not known)."""

    number: int
    values: dict[str, Scalar]
    nodes: int
    tasks: int
    n: int
    figures: dict[str, float]
    node_hours: float | None
    #: what was promised of the figures, by metric
    promised: dict[str, Promised] = {}

    @property
    def name(self) -> str:
        return bindings_text(self.values)


class SweptBest(Struct, frozen=True, kw_only=True):
    """What is known of one metric. ``low`` and ``high``: the interval of 95 % of the best point's
    figure, by the surface. The others are numbers of settings: see ``decide.sweep.SweepAnswer``."""

    metric: str
    unit: str
    better: Better
    best: int
    low: float
    high: float
    plateau: list[int]
    cheapest: int
    knee: int
    #: of each point that ran, its figure over that of the best, by the surface
    of_best: dict[int, float]


class Swept(Struct, frozen=True, kw_only=True):
    """What a sweep found. ``ending``: why it ended, "" while it goes on."""

    points: list[SweptPoint]
    bests: list[SweptBest]
    ending: str
    #: settings of the grid, those that have run, the runs, and the most runs
    grid: int
    tried: int
    runs: int
    most_runs: int
    #: seconds of its blocks, and the most (0: no limit)
    spent: float
    most_seconds: float
    #: the least effect that matters, as a share
    least: float
    #: the standard deviation of one figure of the first metric, as a share; None: not known
    noise: float | None = None
    #: why settings are not in the grid, with how many
    skipped: dict[str, int] = {}

    def point(self, number: int) -> SweptPoint:
        return next(each for each in self.points if each.number == number)

    @property
    def by_limit(self) -> bool:
        """Whether a limit ended it."""
        return self.ending in ("runs", "time")


def swept_of(
    sweep: Sweep, cases: Sequence[Case], axes: Sequence[str], units: Mapping[str, str]
) -> Swept:
    """Return what a sweep found by now."""
    numbers = sorted({run.setting for run in sweep.passed})
    fit = sweep.fit(sweep.rules.metric)
    return Swept(
        points=[_point(sweep, number, cases[number], axes) for number in numbers],
        bests=[
            _best(sweep, metric, answer, numbers, units.get(metric, ""))
            for metric in sweep.metrics
            if (answer := sweep.answer(metric)) is not None
        ],
        ending=sweep.ending,
        grid=len(cases),
        tried=sum(map(bool, sweep.runs)),
        runs=sum(sweep.runs),
        most_runs=sweep.rules.runs,
        spent=sweep.spent,
        most_seconds=sweep.rules.seconds,
        least=sweep.rules.min_effect,
        noise=fit.noise if fit is not None else None,
    )


def _point(sweep: Sweep, number: int, case: Case, axes: Sequence[str]) -> SweptPoint:
    own = [run.figures for run in sweep.passed if run.setting == number]
    hours = sweep.node_hours(number)
    return SweptPoint(
        number=number,
        values={axis: case.parameters.get(axis, case.toolchain) for axis in axes},
        nodes=case.nodes,
        tasks=case.tasks,
        n=len(own),
        figures={
            metric: math.exp(_sign(better) * median(each[metric] for each in own))
            for metric, better in sweep.metrics.items()
        },
        node_hours=hours if math.isfinite(hours) else None,
    )


def _sign(better: Better) -> int:
    return 1 if better == "higher" else -1


def _best(
    sweep: Sweep, metric: str, answer: SweepAnswer, numbers: Sequence[int], unit: str
) -> SweptBest:
    fit, sign = sweep.fit(metric), _sign(sweep.metrics[metric])
    assert fit is not None  # as there is an answer
    centre = float(fit.mean[answer.best])
    low, high = sorted(math.exp(sign * end) for end in sweep.interval(metric, answer))
    return SweptBest(
        metric=metric,
        unit=unit,
        better=sweep.metrics[metric],
        best=answer.best,
        low=low,
        high=high,
        plateau=answer.plateau,
        cheapest=answer.cheapest,
        knee=answer.knee,
        of_best={n: math.exp(sign * (float(fit.mean[n]) - centre)) for n in numbers},
    )


# ---- in words ------------------------------------------------------------------------------------


def told(swept: Swept, one: SweptBest) -> Iterator[str]:
    """Yield the best point of a metric, the plateau and the knee, in sentences."""
    best, cheapest, knee = map(swept.point, (one.best, one.cheapest, one.knee))
    yield f"best {one.metric}: {_named(best, one)}"
    yield f"95 %: {_interval(one)}, by the surface through all figures, as `of the best` below"
    others = len(one.plateau) - 1
    share = show_share(PLATEAU)
    if not others:
        yield f"plateau: no other point that ran is within {share} of it"
    elif cheapest is best:
        yield f"plateau: {count(others, 'other point')} within {share} of it; it is the cheapest"
    else:
        yield (
            f"plateau: {count(others, 'other point')} within {share} of it; the cheapest is "
            f"{_named(cheapest, one)}{_cost(cheapest, best)}"
        )
    higher = max(swept.points, key=lambda point: _above(one, point))
    if higher.n < best.n and _above(one, higher) > swept.least:
        yield f"{_named(higher, one)} may be better: it has too few runs to be named"
    reached = f"knee: the fewest nodes, then tasks, with {show_share(KNEE)} of it: "
    yield reached + ("the best point itself" if knee is best else _named(knee, one))


def _above(one: SweptBest, point: SweptPoint) -> float:
    """Return by how much a point is better than the best one, by the surface."""
    ratio = one.of_best[point.number]
    return (ratio if one.better == "higher" else 1 / ratio) - 1


def _named(point: SweptPoint, one: SweptBest) -> str:
    figure = show_figure(point.figures[one.metric], one.unit)
    return f"{point.name}: {figure} (n = {point.n})"


def _interval(one: SweptBest) -> str:
    return f"{show_number(one.low)} to {show_figure(one.high, one.unit)}"


def _cost(point: SweptPoint, best: SweptPoint) -> str:
    if not (point.node_hours and best.node_hours):
        return ""
    hours, of_best = show_number(point.node_hours), show_number(best.node_hours)
    return f", {hours} node-hours a run, the best {of_best}"


def ending_text(swept: Swept, complete: bool) -> str:
    """Return why a sweep ended, and what that means for its best."""
    limit = "the best is of what was tried"
    text = {
        "nothing improves": (
            f"nothing improves by more than {show_share(swept.least)} beyond the noise, "
            "by the surface through all figures"
        ),
        "runs": f"stopped by the limit of {swept.most_runs} runs: {limit}",
        "time": f"stopped by the limit of {show_seconds(swept.most_seconds)}: {limit}",
        "no figure": "stopped: no point of the first block has a figure",
    }.get(swept.ending, "")
    if text:
        return text
    return f"ended before it was done: {limit}" if complete else f"under way: {limit} by now"


def tried_text(swept: Swept) -> str:
    """Return how much of the grid ran."""
    tried, runs = (f"{part / max(1, swept.grid):.0%}" for part in (swept.tried, swept.runs))
    return (
        f"{count(swept.grid, 'point')}; {swept.tried} of them ran ({tried}), in "
        f"{count(swept.runs, 'run')} ({runs} of the grid)"
    )
