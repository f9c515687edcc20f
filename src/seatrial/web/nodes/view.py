"""What pages of nodes look at: the chosen runs of a machine, and its nodes.

    view = view_of(state, query)           # by trial, since, until, test, rehearsed
    view.counts(view.wrong())              # on each node, so many of them went wrong

A run's nodes are spans of places in the machine's order of nodes: n[001-128] is one span. So sums
over nodes are sums over the ends of spans. The runs of a trial are read again when its journal has
news.
"""

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from seatrial.arrays import Bools, Floats, Ints
from seatrial.errors import UsageError
from seatrial.journal import codes
from seatrial.machine.facts import node_names
from seatrial.machine.model import Machine
from seatrial.store import node_runs, queries
from seatrial.store.node_runs import NO_TIME, STAGES, NodeCase, TrialRuns
from seatrial.store.queries import NO_OUTCOME
from seatrial.store.rows import TrialRow
from seatrial.studies.evidence import NOT_OF_NODES, WILLED
from seatrial.units import SECOND_NS
from seatrial.web.query import PageQuery
from seatrial.web.state.server_state import ServerState

RECORDS_TRIED = 5
NO_RUNS = TrialRuns._make(np.empty(0, np.int64) for _ in TrialRuns._fields)
NOT_WRONG = (codes.PASS.number, *NO_OUTCOME, *WILLED, *NOT_OF_NODES)

T = TypeVar("T")


class MachineRuns(NamedTuple):
    """The runs of some trials of a machine, by ascending ``row``. ``test`` and ``kind`` are indices
    of ``tests`` and ``kinds``, ``time`` is that of the start (ns), ``elapsed`` is in seconds or
    NaN. Spans of nodes: the ``owner`` (an index of the runs), the ``first`` and the ``last`` place
    in ``names``."""

    row: Ints
    test: Ints
    kind: Ints
    code: Ints
    created: Ints
    time: Ints
    elapsed: Floats
    owner: Ints
    first: Ints
    last: Ints
    tests: list[str]
    kinds: list[str]
    names: list[str]


class View(NamedTuple):
    """What is looked at. ``mask`` are the runs of the wanted test that were created in the window;
    ``names`` are the nodes: first those that are ``described`` (0 where no record of these trials
    can be read), then others that the runs were on. ``places`` are theirs."""

    state: ServerState
    name: str
    trials: list[TrialRow]
    machine: Machine
    versions: tuple[Hashable, ...]  # of the trials
    runs: MachineRuns
    names: list[str]
    described: int
    places: Ints
    mask: Bools
    since: int
    until: int
    test: str
    kinds: tuple[int, ...] | None = None  # of the runs, where not all are looked at

    @property
    def key(self) -> tuple[Hashable, ...]:
        """What tells the chosen runs from others."""
        paths = tuple(trial.path for trial in self.trials)
        return (self.name, paths, self.since, self.until, self.test, self.kinds)

    @property
    def rehearsed(self) -> bool:
        """Whether rehearsed runs are among these."""
        return any(trial.rehearsed for trial in self.trials)

    def kept(self, what: Hashable, make: Callable[[], T]) -> T:
        """Return what was made of the chosen runs, or is made now."""
        return kept(self.state, (what, self.key), self.versions, make)

    def wrong(self) -> Bools:
        """Return the chosen runs that went wrong on their nodes, those that ran again included."""
        return self.mask & ~np.isin(self.runs.code, NOT_WRONG)

    def over(self) -> Bools:
        """Return the chosen runs that are over."""
        return self.mask & ~np.isin(self.runs.code, NO_OUTCOME)

    def on(self, node: int) -> Bools:
        """Return the runs that were on a node."""
        place = self.places[node]
        here = (self.runs.first <= place) & (place <= self.runs.last)
        mask = np.zeros(len(self.mask), dtype=bool)
        mask[self.runs.owner[here]] = True
        return mask

    def counts(self, mask: Bools) -> Ints:
        """Return how many of these runs were on each node."""
        return _counts(self.runs, mask)[self.places]


def _counts(runs: MachineRuns, mask: Bools) -> Ints:
    own = mask[runs.owner]
    size = len(runs.names) + 1
    begin = np.bincount(runs.first[own], minlength=size)
    return np.cumsum(begin - np.bincount(runs.last[own] + 1, minlength=size))


def view_of(state: ServerState, query: PageQuery) -> View:
    """Return the trials, runs and nodes that are asked for. Raises UsageError for a machine or a
    trial that there is not."""
    store = state.store()
    name = query.path["machine"]
    every = [trial for trial in queries.trials(store) if trial.machine == name]
    if not every:
        raise UsageError(f"no trial ran on a machine {name!r}; /machines lists those there are")
    if tag := query.text("trial"):
        chosen = [trial for trial in every if tag in (trial.tag, trial.path)]
        if not chosen:
            raise UsageError(f"no trial {tag!r} ran on {name}; leave the filter out to see all")
    else:
        rehearsed = query.flag("rehearsed")
        chosen = [trial for trial in every if rehearsed or not trial.rehearsed]
    # The description is that of the newest record that can be read.
    records = (state.records.record(trial) for trial in (chosen or every)[:RECORDS_TRIED])
    machine = next((one.machine for one in records if one), Machine(machine=name, nodes=[]))
    by_row = node_runs.versions_of(store, name)
    versions = tuple(by_row.get(trial.row) for trial in chosen)
    key = ("runs", name, *(trial.path for trial in chosen))
    runs = kept(state, key, versions, lambda: _runs_of(state, name, chosen, versions))
    place_of = {node: place for place, node in enumerate(runs.names)}
    described = [place_of[node] for node in node_names(machine) if node in place_of]
    used = np.flatnonzero(_counts(runs, np.ones(len(runs.row), dtype=bool))).tolist()
    places = [*described, *sorted({*used} - {*described})]
    since, until, test = query.moment("since"), query.moment("until"), query.text("test")
    mask = (runs.created >= since) & (runs.created < (until or np.iinfo(np.int64).max))
    if test:
        mask &= runs.test == (runs.tests.index(test) if test in runs.tests else -1)
    return View(
        state=state,
        name=name,
        trials=chosen,
        machine=machine,
        versions=versions,
        runs=runs,
        names=[runs.names[place] for place in places],
        described=len(described),
        places=np.array(places, np.int64),
        mask=mask,
        since=since,
        until=until,
        test=test,
    )


def read_ahead(state: ServerState) -> None:
    """Read the runs of the machine on which the latest trial ran, so that nobody waits for them.
    Raises SeatrialError."""
    trials = queries.trials(state.store())
    measured = [trial for trial in trials if not trial.rehearsed]
    for trial in (measured or trials)[:1]:
        view_of(state, PageQuery({"machine": trial.machine}, []))


def kept(state: ServerState, key: Hashable, version: Hashable, make: Callable[[], T]) -> T:
    """Return what was made for this version, or is made now."""
    found: tuple[Hashable, T] | None = state.node_runs.get(key)
    if found is None or found[0] != version:
        found = (version, make())
        state.node_runs.put(key, found)
    return found[1]


def _runs_of(
    state: ServerState, machine: str, trials: Sequence[TrialRow], versions: Sequence[Hashable]
) -> MachineRuns:
    """Return the runs of these trials. A trial that has news is read again."""
    store = state.store()

    def read(trial: int) -> tuple[TrialRuns, list[NodeCase]]:
        return node_runs.runs_of_trial(store, trial), node_runs.cases_of(store, trial)

    with store.reading():
        found = [
            kept(state, ("trial", trial.path), version, functools.partial(read, trial.row))
            for trial, version in zip(trials, versions, strict=True)
        ]
        names = node_runs.names_of(store, machine)
    columns = zip(NO_RUNS, *(own for own, _ in found), strict=True)
    runs = TrialRuns._make(np.concatenate(column) for column in columns)
    order = np.argsort(runs.row, kind="stable")
    row, elapsed = runs.row[order], runs.elapsed[order]
    cases = sorted(case for _, own in found for case in own)
    at = np.searchsorted(np.array([one.row for one in cases], np.int64), runs.case[order])
    tests, test = _indexed([one.test for one in cases], at)
    kinds, kind = _indexed([one.kind for one in cases], at)
    if (stage := runs.stage[order]).any():
        kinds, kind = _by_stage(kinds, kind, stage)
    return MachineRuns(
        row=row,
        test=test,
        kind=kind,
        code=runs.code[order],
        created=runs.created[order],
        time=runs.time[order],
        elapsed=np.where(elapsed == NO_TIME, np.nan, elapsed / SECOND_NS),
        owner=np.searchsorted(row, runs.run),
        first=runs.first,
        last=runs.last,
        tests=tests,
        kinds=kinds,
        names=names,
    )


def _by_stage(kinds: list[str], kind: Ints, stage: Ints) -> tuple[list[str], Ints]:
    """Return the kinds of runs, and that of each run, with runs alone and runs at full machine
    apart."""
    both, kind = np.unique(kind * len(STAGES) + stage, return_inverse=True)
    named = [divmod(each, len(STAGES)) for each in both.tolist()]
    return [f"{kinds[k]} [{STAGES[s]}]" if s else kinds[k] for k, s in named], kind


def _indexed(words: Sequence[str], at: Ints) -> tuple[list[str], Ints]:
    """Return the distinct words in their order, and the index of the one at each place."""
    distinct = sorted(set(words))
    index = {word: number for number, word in enumerate(distinct)}
    return distinct, np.array([index[word] for word in words], np.int64)[at]
