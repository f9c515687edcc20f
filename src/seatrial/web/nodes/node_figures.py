"""A figure for each chosen run, and for each node of a machine.

    found = by_node(view, "triad")          # the median on each node, judged
    found.of.values                         # of each run

A run on many nodes speaks for each of them. Where the runs are of several kinds (cases, whatever
node they are pinned to) each figure is taken relative to the median of its kind.
"""

import functools
import math
from typing import NamedTuple

import numpy as np

from seatrial.arrays import Floats, Ints
from seatrial.statistics import defective_nodes
from seatrial.store import node_runs
from seatrial.store.queries import MEASURED
from seatrial.units import NO_DIRECTION, Better, better_of
from seatrial.verify.figures import ELAPSED
from seatrial.web.nodes.view import View, kept

MAX_PAIRS = 500_000  # runs times nodes of which medians are taken; of the latest runs else


class RunFigures(NamedTuple):
    """A figure for each run (NaN: none, or not chosen). ``relative``: over the median of its kind,
    as there are several ``kinds``. ``left_out`` counts what could not be used, by the reason;
    ``why`` is the reason why there is no figure at all, or ""."""

    metric: str
    values: Floats
    left_out: dict[str, int]
    unit: str = ""
    better: Better = "higher"
    kinds: int = 0
    why: str = ""

    @property
    def relative(self) -> bool:
        return self.kinds > 1


def figures_of(view: View, metric: str) -> RunFigures:
    """Return the figures of a metric of the chosen runs with a right answer."""
    return view.kept(("figures", metric), lambda: _figures_of(view, metric))


def _figures_of(view: View, metric: str) -> RunFigures:
    runs = view.runs
    right = view.mask & np.isin(runs.code, MEASURED)
    values = np.full(len(right), np.nan)
    unit, better = "s", "lower"
    left_out: dict[str, int] = {}
    kinds = node_runs.metric_kinds(view.state.store(), metric)
    if kinds and right.any():
        run, which, figures = _measured(view, metric, tuple(kinds))
        at = np.searchsorted(runs.row[:-1], run)
        fits = (runs.row[at] == run) & right[at]
        at, which, figures = at[fits], which[fits], figures[fits]
        if len(at):
            latest = int(which[np.argmax(runs.created[at])])
            unit, better = kinds[latest]
            if others := int((which != latest).sum()):
                left_out["in another unit, or with another direction"] = others
            values[at[which == latest]] = figures[which == latest]
    if metric == ELAPSED and not np.isfinite(values).any():
        unit, better = "s", "lower"
        values = np.where(right, runs.elapsed, np.nan)
    known = np.flatnonzero(np.isfinite(values))
    if better == NO_DIRECTION:
        why = f"{metric[:100]} has no direction (better: none), so no node is judged by it"
        return RunFigures(metric, np.full(len(right), np.nan), left_out, why=why)
    if not len(known):
        why = f"no chosen run with a right answer has a metric {metric[:100]!r}"
        return RunFigures(metric, values, left_out, why=why)
    middles, counts = medians(values[known], runs.kind[known], len(runs.kinds))
    if (several := int((counts > 0).sum())) > 1:  # they become comparable
        norm = middles[runs.kind[known]]
        values[known] = np.where(norm > 0, values[known], np.nan) / norm
        if lost := int((norm <= 0).sum()):
            left_out["of a kind whose median is not above 0"] = lost
        unit = "1"
    return RunFigures(metric, values, left_out, unit, better_of(better), several)


def _measured(view: View, metric: str, kinds: tuple[int, ...]) -> tuple[Ints, Ints, Floats]:
    """Return all figures of a metric in the chosen trials. A trial that has news is read again."""
    read = functools.partial(node_runs.figures_of, view.state.store(), kinds)
    parts = [
        kept(view.state, (metric, trial.path), version, functools.partial(read, trial.row))
        for trial, version in zip(view.trials, view.versions, strict=True)
    ]
    runs, which, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    return runs, which, values


def medians(values: Floats, group: Ints, groups: int) -> tuple[Floats, Ints]:
    """Return the median of the values of each group (NaN of none), and how many these are."""
    narrow = np.uint16 if groups < 1 << 16 else np.int64  # numpy sorts two bytes by radix
    order = np.argsort(values)
    order = order[np.argsort(group[order].astype(narrow), kind="stable")]
    counts = np.bincount(group, minlength=groups)
    there = np.flatnonzero(counts)
    number = counts[there]
    begin = np.cumsum(number) - number
    found = np.full(groups, np.nan)
    low, high = order[begin + (number - 1) // 2], order[begin + number // 2]
    found[there] = (values[low] + values[high]) / 2
    return found, counts


# ---- a figure of each node ----------------------------------------------------------------


class NodeFigures(NamedTuple):
    """The median on each node (NaN of none) of so many ``counts``; ``z``: how many deviations of
    the healthy nodes it is better (or, below 0, worse) than their centre; and the judgement. Of
    more runs than can be looked at, only so many (``latest_only``, 0: all) were."""

    of: RunFigures
    values: Floats
    counts: Ints
    z: Floats
    survey: defective_nodes.Survey
    latest_only: int


def by_node(view: View, metric: str) -> NodeFigures:
    """Return what the runs' figures say of nodes, by the rule of ``statistics.defective_nodes``."""
    return view.kept(("by node", metric), lambda: judged(view, figures_of(view, metric)))


def judged(view: View, figures: RunFigures) -> NodeFigures:
    """Return the median of the figures on each node, and the judgement."""
    runs = view.runs
    widths = runs.last - runs.first + 1
    sizes = np.bincount(runs.owner, widths, minlength=len(runs.row))
    known = np.flatnonzero(np.isfinite(figures.values) & (sizes > 0))
    newest = known[np.argsort(runs.created[known], kind="stable")[::-1]]
    used = newest[np.cumsum(sizes[newest]) <= MAX_PAIRS]
    is_used = np.zeros(len(sizes), dtype=bool)
    is_used[used] = True
    spans = np.flatnonzero(is_used[runs.owner])
    spans = spans[np.argsort(figures.values[runs.owner[spans]])]
    width = widths[spans]
    starts = np.cumsum(width) - width
    node = np.arange(width.sum()) + np.repeat(runs.first[spans] - starts, width)
    pairs = np.repeat(figures.values[runs.owner[spans]], width)
    values, counts = medians(pairs, node, len(runs.names))
    values, counts = values[view.places], counts[view.places]
    by_name = dict(zip(view.names, values.tolist(), strict=True))
    known_names = {name: value for name, value in by_name.items() if math.isfinite(value)}
    survey = defective_nodes.survey(known_names, figures.better)
    z = np.full(len(values), np.nan)
    if survey.centre is not None and survey.noise:
        sign = 1 if figures.better == "higher" else -1
        z = sign * (values - survey.centre) / survey.noise
    latest_only = len(used) if len(used) < len(known) else 0
    return NodeFigures(figures, values, counts, z, survey, latest_only)


def metrics_to_choose(view: View) -> list[str]:
    """Return what a form offers: the metrics of the test that is looked at, or of all."""
    every = metrics_by_test(view)
    named = {name for test, names in every.items() if view.test in ("", test) for name in names}
    return [ELAPSED, *sorted(named - {ELAPSED})]


def metrics_by_test(view: View) -> dict[str, list[str]]:
    """Return the metrics of each test."""
    return node_runs.metrics_by_test(view.state.store(), [trial.row for trial in view.trials])
