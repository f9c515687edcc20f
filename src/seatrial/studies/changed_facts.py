"""Which facts of nodes changed between runs, by the digests that these recorded.

    facts_changed(store, side, other)      # beside a comparison; ``history_facts``: of a history

A run records the digest of its nodes' facts (``runs/node_digests.py``). It stands for what trials
had collected of these nodes: that is found again, and compared. Runs with equal digests have equal
facts, so nothing is named. Runs without a digest are compared by the newest trials that collected
facts before them.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from seatrial.errors import UsageError
from seatrial.machine.node_sets import fold, unfold_or_empty
from seatrial.rules import facts
from seatrial.rules.drift import against, between
from seatrial.rules.facts import FactTable
from seatrial.runs.node_digests import digest_of_nodes, digests
from seatrial.store.schema import Store, chunks, marks
from seatrial.studies.difference import Difference
from seatrial.studies.node_facts import Collection, collected, in_force
from seatrial.studies.selection import Side
from seatrial.units import listed

MAX_CHANGES = 20
MAX_DIGESTS = 4
MAX_STATES = 16  # of a machine that are looked into for a digest


class RunDigest(NamedTuple):
    """The nodes of a run, folded; the digest of their facts ("": none); when the run was made."""

    nodes: str
    digest: str
    time: int


class CollectedStates:
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

    def facts_of(self, runs: Iterable[RunDigest]) -> FactTable | None:
        """Return the facts of the nodes of runs; of a node of several runs those of the first one.
        None if the digest of one of them is of no state that is still there."""
        of_node: dict[str, int] = {}
        for run in runs:
            if not (found := self._state_of(run)):
                return None
            for node, number in found.items():
                of_node.setdefault(node, number)
        parts: dict[int, list[str]] = {}
        for node, number in of_node.items():
            parts.setdefault(number, []).append(node)
        tables = [(self.table(number), nodes) for number, nodes in parts.items()]
        if len(tables) == 1 and tables[0][0] is not None:
            return tables[0][0].only(tables[0][1])
        return facts.of_nodes(
            {node: table.of(node) for table, nodes in tables if table for node in nodes}
        )

    def _state_of(self, run: RunDigest) -> dict[str, int]:
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
        found: dict[str, int] = {}
        own: list[str] = []
        for node in nodes:
            for number in range(state, len(self.collections)):
                read = self._read(number)
                if read is not None and node in read[1]:
                    found[node] = number
                    own.append(read[1][node])
                    break
            else:
                return {}
        return found if digest_of_nodes(own) == digest else {}

    def _read(self, number: int) -> tuple[FactTable, dict[str, str]] | None:
        if number not in self._tables:
            try:
                table = self.collections[number].table()
                self._tables[number] = table, digests(table)
            except UsageError:  # its files are gone
                self._tables[number] = None
        return self._tables[number]


class ComparedRuns(NamedTuple):
    """Runs on one machine, those whose facts count first before others, and its states."""

    states: CollectedStates
    runs: Sequence[RunDigest]

    @property
    def digests(self) -> set[str]:
        return {run.digest for run in self.runs}

    def table(self) -> FactTable | None:
        return self.states.facts_of(self.runs)


def changed_between_runs(first: ComparedRuns, second: ComparedRuns) -> list[Difference]:
    """Return in which facts the nodes of runs differ from those of other runs. Where their digests
    differ and what these stand for is gone, the digests are told."""
    if first.digests == second.digests:
        return []
    before, after = first.table(), second.table()
    if before is None or after is None:
        shown = (listed(sorted(each.digests), MAX_DIGESTS) for each in (first, second))
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
        Difference(f"nodes {fold(each.nodes)}", each.key, each.before or "", each.after or "")
        for each in between(before, after)
    ]


def _against(here: FactTable, there: FactTable) -> list[Difference]:
    """Return the facts whose usual values are not the same in two tables."""
    return [
        Difference("nodes", each.key, next(iter(each.here)) or "", next(iter(each.there)) or "")
        for each in against(here, there)
    ]


def _shortened(found: list[Difference], remedy: str) -> list[Difference]:
    more = len(found) - MAX_CHANGES
    told = [Difference("nodes", f"{more} more facts{remedy}")] if more > 0 else []
    return found[:MAX_CHANGES] + told


# ---- beside a comparison ------------------------------------------------------------------


def facts_changed(store: Store, first: Side, second: Side) -> list[Difference]:
    """Return in which facts of nodes two sides of a comparison differ: by the digests of their
    runs, or, where a run has none, by the newest trials that collected facts of their machines
    before the last trial of each side."""
    names = [{trial.machine for trial in side.trials} for side in (first, second)]
    if any(len(each) != 1 for each in names):
        return []
    known = {name: CollectedStates(collected(store, name)) for each in names for name in each}
    sides = [known[name] for each in names for name in each]
    runs = [_runs_of_side(store, side) for side in (first, second)]
    if all(runs):
        return changed_between_runs(
            *(ComparedRuns(*each) for each in zip(sides, runs, strict=True))
        )
    before, after = (
        in_force(states.collections, max(trial.created for trial in side.trials))
        for states, side in zip(sides, (first, second), strict=True)
    )
    if before is None or after is None or before.trial == after.trial:
        return []
    return changed_between_trials(before, after)


def _runs_of_side(store: Store, side: Side) -> list[RunDigest]:
    """Return the runs of a side, the newest first; none where one of them has no digest."""
    found: list[RunDigest] = []
    for rows in chunks([row for case in side.cases for row in case.runs]):
        sql = f"SELECT nodes, node_facts, created FROM runs WHERE id IN ({marks(len(rows))})"
        found += [RunDigest(*row) for row in store.rows(sql, rows)]
        if not all(run.digest for run in found[-len(rows) :]):
            return []
    return sorted(found, key=lambda run: -run.time)
