"""Which facts of nodes changed between runs, by the digests that these recorded.

    facts_changed(store, side, other)      # beside a comparison; ``with_facts``: of a history

A run records the digest of its nodes' facts (``node_facts.py``). It stands for what trials
had collected of these nodes: that is found again, and compared. Runs with equal digests have equal
facts, so nothing is named. Runs without a digest are compared by the newest trials that collected
facts before them.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import SeatrialError, UsageError
from seatrial.execute.kept_files import changed_file
from seatrial.execute.trial_folder import TrialFolder
from seatrial.journal.events import RunJudged
from seatrial.journal.journal import read
from seatrial.judge.log_rules import FACTS_APP, FACTS_FILE
from seatrial.judge.statistics.significance import student_p
from seatrial.model.codes import PASS
from seatrial.model.machine import Machine
from seatrial.model.node_set import fold, unfold_or_empty
from seatrial.plugins.facts import node_facts
from seatrial.plugins.facts.drift import against, between
from seatrial.plugins.facts.node_facts import READINGS, FactTable, digest_of_nodes, digests
from seatrial.results.history import History, ReportedChange
from seatrial.results.selection import Difference, Side
from seatrial.results.slow_places import LEAST, LEVEL, deviations
from seatrial.results.store import queries
from seatrial.results.store.schema import Store, marks
from seatrial.results.store.series import Point
from seatrial.results.store.tables import Filters, RunOutcome, RunRow, chunks
from seatrial.results.variability import SlowFact, SlowFacts
from seatrial.units import listed

# ---- node facts ----------------------------------------------------------------------------------
#
# The facts of nodes that trials collected: which trials, and what they found.
#
#     collected(store, "frost")[0].table()     # what the newest trial found


class Collection(Struct, frozen=True):
    """A trial that collected facts: its tag, its machine, when it was made (ns), and its runs."""

    trial: str
    machine: str
    time: int
    runs: list[RunRow]

    @property
    def files(self) -> list[Path]:
        """The files of its facts. Raises UsageError if they are gone."""
        paths = [Path(run.path) / FACTS_FILE for run in self.runs if run.path]
        present = [path for path in paths if path.is_file()]
        if not present:
            raise UsageError(f"{self.trial}: its files of facts are gone")
        return present

    def table(self) -> FactTable:
        """Return what it found. Raises UsageError if no file of it can be read."""
        return node_facts.read(self.files)

    def description(self) -> "Machine | None":
        """Return the machine as the trial recorded it; None if its record cannot be read."""
        folder = self._folder()
        try:
            return folder.record().machine if folder else None
        except (SeatrialError, ValueError):
            return None

    def changed_since(self) -> list[str]:
        """Return sentences about files of facts whose checksum is not that of the journal."""
        folder = self._folder()
        paths = {run.run_id: Path(run.path) for run in self.runs if run.path}
        if folder is None:
            return []
        try:
            judged = [each for each in read(folder.journal) if isinstance(each, RunJudged)]
        except SeatrialError:
            return []
        return [
            f"{self.trial}: {FACTS_FILE} of run {each.run_id} was changed since it was judged"
            for each in judged
            if each.run_id in paths
            and changed_file(paths[each.run_id], each.sha256 or {}, [FACTS_FILE])
        ]

    def _folder(self) -> TrialFolder | None:
        folder = next((path for path in self.files[0].parents if path.name == self.trial), None)
        return TrialFolder(folder) if folder else None


def collected(store: Store, machine: str = "", trial: str = "") -> list[Collection]:
    """Return the trials that collected facts, the newest first."""
    tests = [name for name, app in queries.tests_of(store) if app == FACTS_APP]
    filters = Filters(machine=machine, trial=trial, tests=tests)
    by_trial: dict[str, list[RunRow]] = {}
    for run in queries.runs(store, filters):
        if run.app == FACTS_APP and run.code == PASS.number:
            by_trial.setdefault(run.trial, []).append(run)
    made = [
        Collection(tag, runs[0].machine, max(run.created for run in runs), runs)
        for tag, runs in by_trial.items()
    ]
    return sorted(made, key=lambda one: -one.time)


def newest(store: Store, machine: str) -> Collection:
    """Return the newest trial that collected facts of a machine. Raises UsageError without one."""
    collections = collected(store, machine)
    if not collections:
        about = f" of {machine}" if machine else ""
        raise UsageError(f"no trial collected facts{about}; `seatrial facts collect` makes one")
    return collections[0]


def of_trial(store: Store, tag: str) -> Collection:
    """Return the facts trial of a tag or path. Raises UsageError if it collected none."""
    trial = queries.trial(store, tag)
    collections = collected(store, trial=trial.path)
    if not collections:
        raise UsageError(f"{trial.tag}: collected no facts; `seatrial trials` lists the trials")
    return collections[0]


def before(store: Store, one: Collection) -> Collection | None:
    """Return the newest trial that collected facts of the same machine before a trial."""
    return next((c for c in collected(store, one.machine) if c.time < one.time), None)


def in_force(collections: Sequence[Collection], time: int) -> Collection | None:
    """Return the newest of the trials (newest first) that was made before a time (ns)."""
    return next((one for one in collections if one.time <= time), None)


class Spell(Struct, frozen=True):
    """A value that a fact had on some nodes from one trial on."""

    trial: str
    time: int
    value: str | None
    nodes: list[str]


def spells(collections: Iterable[Collection], key: str, nodes: Iterable[str]) -> list[Spell]:
    """Return when nodes got another value of a fact, the oldest first; the first trial that knows a
    node begins its row. Of no nodes named: all."""
    wanted = set(nodes)
    last: dict[str, str | None] = {}
    rows: list[Spell] = []
    for one in sorted(collections, key=lambda one: one.time):
        table = one.table()
        changed: dict[str | None, list[str]] = {}
        for node, value in zip(table.nodes, table.column(key), strict=True):
            if wanted and node not in wanted:
                continue
            if node not in last or last[node] != value:
                changed.setdefault(value, []).append(node)
            last[node] = value
        rows += [Spell(one.trial, one.time, value, names) for value, names in changed.items()]
    return rows


# ---- changed facts -------------------------------------------------------------------------------


MAX_CHANGES = 20
MAX_DIGESTS = 4
MAX_STATES = 16  # of a machine that are looked into for a digest


class _RunDigest(Struct, frozen=True):
    """The nodes of a run, folded; the digest of their facts ("": none); when the run was made."""

    nodes: str
    digest: str
    time: int


class _CollectedStates:
    """What was known of the nodes of a machine after each trial that collected facts."""

    def __init__(self, collections: Sequence[Collection]) -> None:
        """``collections``: of one machine, the newest first."""
        self.collections = collections
        self._tables: dict[int, tuple[FactTable, dict[str, str]] | None] = {}
        self._found: dict[tuple[str, str], dict[str, int]] = {}

    def table(self, number: int) -> FactTable | None:
        """Return what a trial found; None if its files are gone."""
        read = self._read(number)
        return read[0] if read else None

    def facts_of(self, runs: Iterable[_RunDigest]) -> FactTable | None:
        """Return the facts of the nodes of runs; of a node of several runs those of the first one.
        None if the digest of one of them is of no state that is still there."""
        of_node: dict[str, int] = {}
        for run in runs:
            if not (states_of_run := self._state_of(run)):
                return None
            of_node = {**states_of_run, **of_node}
        states = set(of_node.values())
        if len(states) == 1 and (only := self.table(states.pop())):
            return only.only(of_node)
        tables = {node: self.table(number) for node, number in of_node.items()}
        return node_facts.of_nodes(
            {node: table.facts_of(node) for node, table in tables.items() if table is not None}
        )

    def _state_of(self, run: _RunDigest) -> dict[str, int]:
        """Return the number of the trial that told the facts of each node of a run; none if no
        state has its digest. The state before the run is tried first: it mostly is the one."""
        key = (run.nodes, run.digest)
        if key not in self._found:
            states = range(len(self.collections))
            likely = [i for i in states if self.collections[i].time <= run.time][:1]
            tried = [*likely, *(i for i in states if i not in likely)][:MAX_STATES]
            nodes = unfold_or_empty(run.nodes)
            fitting = (self._at(i, nodes, run.digest) for i in tried)
            self._found[key] = next((found for found in fitting if found), {})
        return self._found[key]

    def _at(self, state: int, nodes: Sequence[str], digest: str) -> dict[str, int]:
        """Return which trial told the facts of nodes, as of a trial; none if the digest of these
        facts is another one."""
        trial_of: dict[str, int] = {}
        known: list[str] = []
        for node in nodes:
            for number in range(state, len(self.collections)):
                read = self._read(number)
                if read is not None and node in read[1]:
                    trial_of[node] = number
                    known.append(read[1][node])
                    break
            else:
                return {}
        return trial_of if digest_of_nodes(known) == digest else {}

    def _read(self, number: int) -> tuple[FactTable, dict[str, str]] | None:
        if number not in self._tables:
            try:
                table = self.collections[number].table()
                self._tables[number] = table, digests(table)
            except UsageError:  # its files are gone
                self._tables[number] = None
        return self._tables[number]


def _changed_between_runs(
    states: _CollectedStates,
    runs: Sequence[_RunDigest],
    other_states: _CollectedStates,
    other_runs: Sequence[_RunDigest],
) -> list[Difference]:
    """Return in which facts the nodes of runs differ from those of other runs. The facts of a run
    count before those of the runs behind it. Where the digests differ and what these stand for is
    gone, the digests are told."""
    digests_of_sides = [{run.digest for run in side} for side in (runs, other_runs)]
    if digests_of_sides[0] == digests_of_sides[1]:
        return []
    before, after = states.facts_of(runs), other_states.facts_of(other_runs)
    if before is None or after is None:
        shown = (listed(sorted(side), MAX_DIGESTS) for side in digests_of_sides)
        return [Difference("nodes", "digest of facts", *shown)]
    return _shortened(_between(before, after) or _against(before, after), "")


def changed_between_trials(one: Collection, other: Collection) -> list[Difference]:
    """Return in which facts two trials differ: node by node on one machine, else by what most nodes
    have; nothing where the facts of one are gone."""
    try:
        before, after = one.table(), other.table()
    except UsageError:
        return []
    compare = _between if one.machine == other.machine else _against
    remedy = f"; `seatrial facts diff {one.trial} {other.trial}` has all"
    return _shortened(compare(before, after), remedy)


def _between(before: FactTable, after: FactTable) -> list[Difference]:
    """Return the facts that changed on nodes that are in both tables."""
    return [
        Difference(
            f"nodes {fold(change.nodes)}", change.key, change.before or "", change.after or ""
        )
        for change in between(before, after)
    ]


def _against(here: FactTable, elsewhere: FactTable) -> list[Difference]:
    """Return the facts whose usual values are not the same in two tables."""
    return [
        Difference(
            "nodes", contrast.key, next(iter(contrast.here)) or "", next(iter(contrast.there)) or ""
        )
        for contrast in against(here, elsewhere)
    ]


def _shortened(differences: list[Difference], remedy: str) -> list[Difference]:
    more = len(differences) - MAX_CHANGES
    rest = [Difference("nodes", f"{more} more facts{remedy}")] if more > 0 else []
    return differences[:MAX_CHANGES] + rest


# ---- beside a comparison ------------------------------------------------------------------


def facts_changed(store: Store, first: Side, second: Side) -> list[Difference]:
    """Return in which facts of nodes two sides of a comparison differ: by the digests of their
    runs, or, where a run has none, by the newest trials that collected facts of their machines
    before the last trial of each side."""
    machine, other = _machine_of(first), _machine_of(second)
    if not machine or not other:
        return []
    states = _CollectedStates(collected(store, machine))
    others = states if other == machine else _CollectedStates(collected(store, other))
    runs, other_runs = _runs_of_side(store, first), _runs_of_side(store, second)
    if runs and other_runs:
        return _changed_between_runs(states, runs, others, other_runs)
    before, after = _in_force_for(first, states), _in_force_for(second, others)
    if before is None or after is None or before.trial == after.trial:
        return []
    return changed_between_trials(before, after)


def _machine_of(side: Side) -> str:
    """Return the machine of a side; "" where it has several."""
    machines = {trial.machine for trial in side.trials}
    return machines.pop() if len(machines) == 1 else ""


def _in_force_for(side: Side, states: _CollectedStates) -> Collection | None:
    return in_force(states.collections, max(trial.created for trial in side.trials))


def _runs_of_side(store: Store, side: Side) -> list[_RunDigest]:
    """Return the runs of a side, the newest first; none where one of them has no digest."""
    runs: list[_RunDigest] = []
    for rows in chunks([row for case in side.cases for row in case.runs]):
        sql = f"SELECT nodes, node_facts, created FROM runs WHERE id IN ({marks(len(rows))})"
        runs += [_RunDigest(*row) for row in store.rows(sql, rows)]
        if not all(run.digest for run in runs[-len(rows) :]):
            return []
    return sorted(runs, key=lambda run: -run.time)


# ---- history facts -------------------------------------------------------------------------------
#
# The facts of nodes that changed when the level of a history did.


MAX_RUNS = 20  # of each side of a change, those next to it
MAX_LEVELS = 12  # changes of a level whose facts are read, the latest


def with_facts(store: Store, histories: Sequence[History]) -> list[History]:
    """Return histories whose latest confirmed changes have the facts of nodes that changed then: by
    the digests of the runs on both sides, or, where one has none, by the last trial that collected
    facts before the change, and the first one after it."""
    confirmed = [one.first for history in histories for one in history.told if one.confirmed]
    since = min(sorted(confirmed)[-MAX_LEVELS:], default=0)

    @cache
    def states_of(machine: str) -> _CollectedStates:
        return _CollectedStates(collected(store, machine))

    return [
        replace(history, told=list(_changes_with_facts(store, history, since, states_of)))
        for history in histories
    ]


def _changes_with_facts(
    store: Store, history: History, since: int, states_of: Callable[[str], _CollectedStates]
) -> Iterator[ReportedChange]:
    """Yield the changes of a history; those confirmed ``since`` a time (ns) have their facts."""
    points = history.series.points
    edges = [0, *(one.change.settled for one in history.told), len(points)]
    for number, one in enumerate(history.told, 1):
        if one.confirmed and one.first >= since:
            start, middle, end = edges[number - 1 : number + 2]
            before = points[max(start, middle - MAX_RUNS) : middle][::-1]
            if one.drift:
                before = points[one.change.index : middle][:MAX_RUNS]
            after = points[middle : min(end, middle + MAX_RUNS)]
            sides = [_runs_of_points(store, side) for side in (before, after)]
            facts = _of_change(states_of(history.series.machine), one, *sides)
            yield replace(one, facts=facts)
        else:
            yield one


def _of_change(
    states: _CollectedStates,
    change: ReportedChange,
    before: Sequence[_RunDigest],
    after: Sequence[_RunDigest],
) -> list[Difference]:
    if before and after and all(run.digest for run in (*before, *after)):
        return _changed_between_runs(states, before, states, after)
    earlier = in_force(states.collections, change.last)
    later = [one for one in states.collections if one.time > change.last]
    return changed_between_trials(earlier, later[-1]) if earlier and later else []


def _runs_of_points(store: Store, points: Sequence[Point]) -> list[_RunDigest]:
    """Return the runs of points, in their order; points that are medians of runs have none."""
    wanted = {(point.trial, point.run_id): i for i, point in enumerate(points)}
    names = [point.run_id for point in points]
    columns = "trials.tag, runs.run_id, runs.nodes, runs.node_facts, runs.created"
    where = f"runs.run_id IN ({marks(len(names))})"
    sql = f"SELECT {columns} FROM runs JOIN trials ON trials.id = runs.trial WHERE {where}"
    runs = [
        (wanted[tag, run_id], _RunDigest(*row))
        for tag, run_id, *row in store.rows(sql, names)
        if (tag, run_id) in wanted
    ]
    return [run for _, run in sorted(runs, key=lambda each: each[0])]


# ---- slow facts ----------------------------------------------------------------------------------
#
# Which facts of nodes go with slow runs: "on nodes with firmware 1.2 they take 7 % longer".
#
#     slow_facts(outcomes, table).facts[0].keys     # ["node.firmware"]
#
# Each run is compared with the median of its case. The runs of the same nodes are one figure, the
# median of theirs, so that many runs on few nodes are no more evidence than the nodes are. Nodes
# with a value of a fact are compared with all others by Welch's test on logarithms. Facts that
# divide the nodes in the same way are one question, and p is multiplied by the number of questions
# (Bonferroni).


MIN_NODES = 2  # on each side
MAX_QUESTIONS = 2000


def slow(store: Store, machine: str, outcomes: Sequence[RunOutcome]) -> SlowFacts | None:
    """Return the facts of nodes that go with slow runs of a machine, by those that were collected
    last; None if nobody collected them."""
    for one in collected(store, machine):
        try:
            return slow_facts(outcomes, one.table())
        except UsageError:  # its files are gone
            continue
    return None


def slow_facts(outcomes: Sequence[RunOutcome], table: FactTable) -> SlowFacts:
    """Return the facts of nodes that explain times of runs of one machine better than chance."""
    figures = _figures(outcomes, set(table.nodes))
    used = {node for nodes in figures for node in nodes}
    questions = _questions(table.only(used))
    facts = []
    for members, pairs in questions.items():
        sides: tuple[list[float], list[float]] = [], []
        for nodes, x in figures.items():
            if members.issuperset(nodes):
                sides[0].append(x)
            elif members.isdisjoint(nodes):
                sides[1].append(x)
        if (tested := _tested(*sides)) is None:
            continue
        ratio, p = tested[0], min(1.0, tested[1] * len(questions))
        if p < LEVEL and abs(math.log(ratio)) >= LEAST:
            keys, value = [key for key, _ in pairs], pairs[0][1]
            facts.append(SlowFact(keys, value, fold(members), len(members), len(used), ratio, p))
    return SlowFacts(sorted(facts, key=lambda fact: fact.p), len(questions))


def _tested(inside: Sequence[float], outside: Sequence[float]) -> tuple[float, float] | None:
    """Return how many times as long runs take inside, and p, by logarithms of times; None where one
    side has too few."""
    if min(len(inside), len(outside)) < MIN_NODES:
        return None
    p = student_p(list(map(math.exp, inside)), list(map(math.exp, outside)))
    ratio = math.exp(statistics.mean(inside) - statistics.mean(outside))
    return None if p is None else (ratio, p)


def _figures(outcomes: Sequence[RunOutcome], known: set[str]) -> dict[tuple[str, ...], float]:
    """Return the logarithm of the time of runs beside the median of their case, for each set of
    nodes that ran some."""
    of_nodes: dict[tuple[str, ...], list[float]] = {}
    for one, deviation in deviations(outcomes):
        nodes = unfold_or_empty(one.nodes)
        if nodes and known.issuperset(nodes):
            of_nodes.setdefault(nodes, []).append(deviation)
    return {nodes: statistics.median(times) for nodes, times in of_nodes.items()}


def _questions(table: FactTable) -> dict[frozenset[str], list[tuple[str, str]]]:
    """Return the facts (key, value) by the nodes that have them, each division of the nodes into
    two sides once: the smaller side stands for it."""
    divisions: dict[frozenset[str], list[tuple[str, str]]] = {}
    for key in table.keys:
        if key.startswith((READINGS, "skipped.")):
            continue
        for value, nodes in table.folded(key).items():
            members = frozenset(nodes)
            rest = len(table.nodes) - len(members)
            if value is None or not MIN_NODES <= len(members) <= rest or rest < MIN_NODES:
                continue
            if members in divisions or len(divisions) < MAX_QUESTIONS:
                divisions.setdefault(members, []).append((key, value))
    return divisions
