"""What pages of nodes look at: the trials and runs that are chosen, and a figure for each node.

    view = view_of(site, asked)                          # by trial, since, until, test, rehearsed
    figures = figures_of(site, view, "stream", "triad")  # one for each run
    found = by_node(view, figures)                       # the median on each node, judged

A run on many nodes speaks for each of them. Where the runs are of several kinds (cases, whatever
node they are pinned to) each figure is taken relative to the median of its kind.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from seatrial.errors import SeatrialError, UsageError
from seatrial.journal import codes
from seatrial.machine.facts import node_names
from seatrial.machine.model import Machine
from seatrial.statistics import defective_nodes
from seatrial.store import node_runs, queries
from seatrial.store.queries import MEASURED, NO_OUTCOME
from seatrial.store.rows import TrialRow
from seatrial.studies.evidence import NOT_OF_NODES, WILLED
from seatrial.studies.history import ELAPSED
from seatrial.units import Better, better_of
from seatrial.web.nodes.run_index import Columns, RunSelection, fleet_of, narrow
from seatrial.web.query import PageQuery
from seatrial.web.state.server_state import ServerState

if TYPE_CHECKING:
    import numpy as np

    from seatrial.web.nodes.run_index import Figures, Mask, Numbers

MOST_PAIRS = 500_000  # runs times nodes of which medians are taken; of the latest runs else
MOST_PREPARED = 1_000_000  # runs that are read before anybody asked
RECORDS_TRIED = 5
NOT_WRONG = (codes.PASS.number, *NO_OUTCOME, *WILLED, *NOT_OF_NODES)


class View(NamedTuple):
    """What is looked at. ``mask`` are the runs of the wanted test that were created in the window;
    ``machine`` is None where no record of these trials can be read."""

    name: str
    trials: list[TrialRow]
    others: int
    machine: Machine | None
    held: RunSelection
    mask: Mask
    since: int
    until: int
    test: str
    rehearsed: bool
    kinds: str = ""  # of the runs, where not all are looked at

    @property
    def key(self) -> tuple[object, ...]:
        """What tells the chosen runs from others of the same trials."""
        return (self.since, self.until, self.test, self.kinds)

    def wrong(self) -> Mask:
        """The chosen runs that went wrong on their nodes, those that ran again included."""
        import numpy as np

        mask: Mask = self.mask & ~np.isin(self.held.columns.code, NOT_WRONG)
        return mask

    def over(self) -> Mask:
        """The chosen runs that are over."""
        import numpy as np

        mask: Mask = self.mask & ~np.isin(self.held.columns.code, NO_OUTCOME)
        return mask


def view_of(site: ServerState, asked: PageQuery) -> View:
    """The trials, runs and nodes that are asked for. Raises UsageError for a machine or a trial
    that there is not."""
    store = site.store()
    name = asked.path["machine"]
    every = [trial for trial in queries.trials(store) if trial.machine == name]
    if not every:
        raise UsageError(f"no trial ran on a machine {name!r}; /machines lists those there are")
    if tag := asked.text("trial"):
        chosen = [trial for trial in every if tag in (trial.tag, trial.path)]
        if not chosen:
            raise UsageError(f"no trial {tag!r} ran on {name}; leave the filter out to see all")
    else:
        rehearsed = asked.flag("rehearsed")
        chosen = [trial for trial in every if rehearsed or not trial.rehearsed]
    machine = _machine_of(site, chosen or every)
    names = node_names(machine) if machine is not None else []
    held = fleet_of(site, name, names).held(store, chosen)
    since, until = asked.moment("since"), asked.moment("until")
    test = asked.text("test")
    mask = _mask(held, since, until, test)
    made_up = any(trial.rehearsed for trial in chosen)
    return View(
        *(name, chosen, len(every) - len(chosen), machine, held, mask, since, until, test, made_up)
    )


def prepare(site: ServerState) -> None:
    """Read the runs of the machine that was heard of last, for which its page would keep people
    waiting; nothing where there are too many, or the store cannot be asked: the page says so."""
    with contextlib.suppress(SeatrialError, OSError):
        measured = [trial for trial in queries.trials(site.store()) if not trial.rehearsed]
        latest = max(measured, key=lambda trial: trial.last or 0, default=None)
        of_latest = [one for one in measured if latest and one.machine == latest.machine]
        if latest and sum(one.passed + one.failed for one in of_latest) <= MOST_PREPARED:
            view = view_of(site, PageQuery({"machine": latest.machine}, [], ""))
            by_node(view, figures_of(site, view, ELAPSED))


def _mask(held: RunSelection, since: int, until: int, test: str) -> Mask:
    import numpy as np

    mask = np.ones(len(held.columns.row), dtype=bool)
    if since:
        mask &= held.columns.created >= since
    if until:
        mask &= held.columns.created < until
    if test:
        cases = [row for row, case in held.cases.items() if case.test == test]
        mask &= np.isin(held.columns.case, cases)
    return mask


def _machine_of(site: ServerState, trials: Sequence[TrialRow]) -> Machine | None:
    """The description in the newest record that can be read."""
    for trial in trials[:RECORDS_TRIED]:
        if (record := site.records.record(trial)) is not None:
            return record.machine
    return None


# ---- a figure of each run -----------------------------------------------------------------


class RunFigures(NamedTuple):
    """A figure for each run (NaN: none, or not chosen). ``relative``: over the median of its kind,
    as there are several ``kinds``. ``left_out`` counts what could not be used, by the reason."""

    metric: str
    values: Figures
    unit: str
    better: Better
    relative: bool
    kinds: list[str]
    left_out: dict[str, int]


_Pairs = tuple["Numbers", "Numbers", "Figures"]  # run, kind of metric, value


def figures_of(site: ServerState, view: View, metric: str) -> RunFigures:
    """The figures of a metric of the chosen runs with a right answer. Raises UsageError where no
    run has that metric."""
    key = ("figures", metric, view.key)
    return view.held.remembered(key, lambda: _figures_of(site, view, metric))


def _figures_of(site: ServerState, view: View, metric: str) -> RunFigures:
    import numpy as np

    columns = view.held.columns
    right = view.mask & np.isin(columns.code, MEASURED)
    kinds = node_runs.metric_kinds(site.store(), metric)
    values = np.full(len(columns.row), np.nan)
    unit, better = "s", "lower"
    left_out: Counter[str] = Counter()
    if kinds:
        rows, which, figures = _measured(site, view, metric, [kind.row for kind in kinds])
        order = np.argsort(columns.row, kind="stable")
        at = order[np.searchsorted(columns.row, rows, sorter=order) % max(1, len(order))]
        fits = (columns.row[at] == rows) & right[at] if len(order) else np.zeros(0, dtype=bool)
        at, which, figures = at[fits], which[fits], figures[fits]
        if len(at):
            latest = which[int(np.argmax(columns.created[at]))]
            _, unit, better = next(kind for kind in kinds if kind.row == latest)
            if others := int((which != latest).sum()):
                left_out["in another unit, or with another direction"] = others
            values[at[which == latest]] = figures[which == latest]
    if metric == ELAPSED and not np.isfinite(values).any():
        unit, better = "s", "lower"
        values = np.where(right, columns.elapsed, np.nan)
    if not np.isfinite(values).any():
        raise UsageError(f"no chosen run with a right answer has a metric {metric[:100]!r}")
    return _related(view, metric, values, unit, better_of(better), left_out)


def _measured(site: ServerState, view: View, metric: str, kinds: list[int]) -> _Pairs:
    """All figures of a metric in the chosen trials; read again of a trial that has news."""
    import numpy as np

    kept = site.node_figures
    parts = []
    for trial in view.trials:
        seen = (trial.row, trial.last, trial.passed, trial.failed, view.held.rebuilt)
        found = kept.get((trial.path, metric))
        if found is None or found[0] != seen:
            rows = node_runs.figures_of(site.store(), kinds, trial.row)
            table = np.array(rows, dtype=float).reshape(-1, 3)
            runs, which = (table[:, i].astype(np.int64) for i in (0, 1))
            found = (seen, (runs, which, table[:, 2].copy()))
            kept.put((trial.path, metric), found)
        parts.append(found[1])
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return columns[0], columns[1], columns[2]


def _related(
    view: View, metric: str, values: Figures, unit: str, better: Better, left_out: Counter[str]
) -> RunFigures:
    """Figures of several kinds become comparable over the medians of their kinds."""
    import numpy as np

    known = np.flatnonzero(np.isfinite(values))
    cases = np.unique(view.held.columns.case[known])
    names = sorted({view.held.cases[case].kind for case in cases.tolist()})
    if len(names) < 2:
        return RunFigures(metric, values, unit, better, False, names, dict(left_out))
    number = {name: i for i, name in enumerate(names)}
    of_case = np.array([number[view.held.cases[case].kind] for case in cases.tolist()])
    kind = of_case[np.searchsorted(cases, view.held.columns.case[known])]
    order = np.argsort(values[known])
    order = order[np.argsort(kind[order].astype(narrow(len(names))), kind="stable")]
    counts = np.bincount(kind, minlength=len(names))
    begin = np.cumsum(counts) - counts
    figures = values[known][order]
    middle = (figures[begin + (counts - 1) // 2] + figures[begin + counts // 2]) / 2
    norm = middle[kind]
    related = np.full(len(values), np.nan)
    good = norm > 0
    related[known[good]] = values[known[good]] / norm[good]
    if lost := int((~good).sum()):
        left_out["of a kind whose median is not above 0"] = lost
    return RunFigures(metric, related, "1", better, True, names, dict(left_out))


# ---- a figure of each node ----------------------------------------------------------------


class NodeFigures(NamedTuple):
    """The median on each node (NaN of none) of so many ``counts``; ``z``: how many deviations of
    the healthy nodes it is better (or, below 0, worse) than their centre; and the judgement. Of
    more runs than can be looked at, only the latest ``runs`` were."""

    values: Figures
    counts: Numbers
    z: Figures
    survey: defective_nodes.Survey
    runs: int
    latest_only: bool


def by_node(view: View, figures: RunFigures) -> NodeFigures:
    """What the runs' figures say of nodes, by the rule of ``statistics.defective_nodes``."""
    key = ("by node", figures.metric, view.key)
    return view.held.remembered(key, lambda: _by_node(view, figures))


def _by_node(view: View, figures: RunFigures) -> NodeFigures:
    import numpy as np

    values, counts, runs = view.held.medians(figures.values, MOST_PAIRS)
    known = np.flatnonzero(np.isfinite(values))
    names = view.held.names
    survey = defective_nodes.survey(
        {names[place]: float(values[place]) for place in known.tolist()}, figures.better
    )
    z = np.full(len(values), np.nan)
    if survey.centre is not None and survey.noise:
        sign = 1 if figures.better == "higher" else -1
        z = sign * (values - survey.centre) / survey.noise
    has_nodes = view.held.sizes() > 0
    all_runs = int((np.isfinite(figures.values) & has_nodes).sum())
    return NodeFigures(values, counts, z, survey, runs, runs < all_runs)


def metrics_by_test(site: ServerState, view: View) -> dict[str, list[str]]:
    """The metrics of each test, by the latest of its runs that has a right answer."""

    def make() -> dict[str, list[str]]:
        rows = view.held.tests()
        found = queries.figures(site.store(), [row for row in rows.values() if row >= 0])
        return {test: [m.name for m in found.get(row, ())] for test, row in rows.items()}

    return view.held.remembered("metrics", make)


def metrics_to_choose(site: ServerState, view: View) -> list[str]:
    """What a form offers: the metrics of the test that is looked at, or of all."""
    every = metrics_by_test(site, view)
    named = {name for test, names in every.items() if view.test in ("", test) for name in names}
    return [ELAPSED, *sorted(named - {ELAPSED})]


def columns_chosen(columns: Columns, mask: np.ndarray) -> list[int]:
    """The rows of the chosen runs, the newest first."""
    import numpy as np

    there = np.flatnonzero(mask)
    ordered = there[np.argsort(columns.created[there], kind="stable")[::-1]]
    return [int(row) for row in columns.row[ordered]]
