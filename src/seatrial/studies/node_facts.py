"""The facts of nodes that trials collected: which trials, and what they found.

collected(store, "frost")             # the runs that collected facts, newest trial first
table_of(runs_of_trial)               # one table of all that they found
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from seatrial.errors import SeatrialError, UsageError
from seatrial.journal.codes import PASS
from seatrial.machine.facts import fold
from seatrial.machine.model import Machine
from seatrial.rules import facts
from seatrial.rules.drift import against, between
from seatrial.rules.facts import FactTable
from seatrial.store import queries
from seatrial.store.rows import Filters, RunRow
from seatrial.store.schema import Store, chunks, marks
from seatrial.studies.history import History, ReportedChange
from seatrial.studies.provenance import Difference
from seatrial.studies.selection import Side
from seatrial.trial.folder import TrialFolder
from seatrial.units import listed


class Collection(NamedTuple):
    """A trial that collected facts: its tag, its machine, when it was made (ns), and its runs."""

    trial: str
    machine: str
    time: int
    runs: list[RunRow]

    @property
    def files(self) -> list[Path]:
        """The files of its facts. Raises UsageError if they are gone."""
        paths = [Path(run.path) / facts.FILE for run in self.runs if run.path]
        there = [path for path in paths if path.is_file()]
        if not there:
            raise UsageError(f"{self.trial}: its files of facts are gone")
        return there

    def table(self) -> FactTable:
        """Return what it found. Raises UsageError if no file of it can be read."""
        return facts.read(self.files)

    def description(self) -> Machine | None:
        """Return the machine as the trial recorded it; None if its record cannot be read."""
        folder = next((path for path in self.files[0].parents if path.name == self.trial), None)
        try:
            return TrialFolder(folder).record().machine if folder else None
        except (SeatrialError, ValueError):
            return None


def collected(store: Store, machine: str = "", trial: str = "") -> list[Collection]:
    """Return the trials that collected facts, the newest first."""
    filters = Filters(machine=machine, trial=trial)
    found: dict[str, list[RunRow]] = {}
    for run in queries.runs(store, filters):
        if run.app == facts.APP and run.code == PASS.number:
            found.setdefault(run.trial, []).append(run)
    made = [
        Collection(tag, runs[0].machine, max(run.created for run in runs), runs)
        for tag, runs in found.items()
    ]
    return sorted(made, key=lambda one: -one.time)


def newest(store: Store, machine: str) -> Collection:
    """Return the newest trial that collected facts of a machine. Raises UsageError without one."""
    found = collected(store, machine)
    if not found:
        about = f" of {machine}" if machine else ""
        raise UsageError(f"no trial collected facts{about}; `seatrial facts collect` makes one")
    return found[0]


def of_trial(store: Store, tag: str) -> Collection:
    """Return the facts trial of a tag or path. Raises UsageError if it collected none."""
    trial = queries.trial(store, tag)
    found = collected(store, trial=trial.path)
    if not found:
        raise UsageError(f"{trial.tag}: collected no facts; `seatrial trials` lists the trials")
    return found[0]


def before(store: Store, one: Collection) -> Collection | None:
    """Return the newest trial that collected facts of the same machine before a trial."""
    return next((c for c in collected(store, one.machine) if c.time < one.time), None)


def in_force(collections: Sequence[Collection], time: int) -> Collection | None:
    """Return the newest of the trials (newest first) that was made before a time (ns)."""
    return next((one for one in collections if one.time <= time), None)


class Spell(NamedTuple):
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
    found: list[Spell] = []
    for one in sorted(collections, key=lambda one: one.time):
        table = one.table()
        changed: dict[str | None, list[str]] = {}
        for node, value in zip(table.nodes, table.column(key), strict=True):
            if wanted and node not in wanted:
                continue
            if node not in last or last[node] != value:
                changed.setdefault(value, []).append(node)
            last[node] = value
        found += [Spell(one.trial, one.time, value, names) for value, names in changed.items()]
    return found


# ---- beside a comparison ------------------------------------------------------------------

MAX_CHANGES = 20
MAX_DIGESTS = 4


def facts_changed(store: Store, first: Side, second: Side) -> list[Difference]:
    """Return in which facts of nodes two sides of a comparison differ: by the newest trials that
    collected facts of their machines before the last trial of each side. Nothing where the runs of
    both sides recorded the same digests of their nodes' facts. Where these differ and no trial
    tells how, the digests are told."""
    digests = [_digests_of(store, side) for side in (first, second)]
    if all(digests) and digests[0] == digests[1]:
        return []
    one, other = _of_side(store, first), _of_side(store, second)
    told = _changed(one, other) if one and other and one.trial != other.trial else []
    if told or not all(digests):
        return told
    shown = (listed(sorted(each), MAX_DIGESTS) for each in digests)
    return [Difference("nodes", "digest of facts", *shown)]


def _digests_of(store: Store, side: Side) -> set[str]:
    """Return the digests of the facts of nodes that the runs of a side recorded; none where a run
    has none."""
    found: set[str] = set()
    for rows in chunks([row for case in side.cases for row in case.runs]):
        sql = f"SELECT DISTINCT node_facts FROM runs WHERE id IN ({marks(len(rows))})"
        found.update(digest for (digest,) in store.rows(sql, rows))
    return set() if "" in found else found


def _changed(one: Collection, other: Collection) -> list[Difference]:
    """Return in which facts two trials differ: node by node on one machine, else by what most nodes
    have; nothing where the facts of one are gone."""
    try:
        before, after = one.table(), other.table()
    except UsageError:
        return []
    if one.machine == other.machine:
        found = [
            Difference(f"nodes {fold(each.nodes)}", each.key, each.before or "", each.after or "")
            for each in between(before, after)
        ]
    else:
        found = [
            Difference("nodes", each.key, next(iter(each.here)) or "", next(iter(each.there)) or "")
            for each in against(before, after)
        ]
    more = len(found) - MAX_CHANGES
    told = f"{more} more facts; `seatrial facts diff {one.trial} {other.trial}` has all"
    return found[:MAX_CHANGES] + ([Difference("nodes", told)] if more > 0 else [])


def _of_side(store: Store, side: Side) -> Collection | None:
    machines = {trial.machine for trial in side.trials}
    if len(machines) != 1:
        return None
    return in_force(collected(store, *machines), max(trial.created for trial in side.trials))


# ---- beside a history ---------------------------------------------------------------------

MAX_LEVELS = 12  # changes of a level whose facts are read, the latest


def with_facts(store: Store, found: Sequence[History]) -> list[History]:
    """Return histories whose latest confirmed changes have the facts of nodes that changed then: by
    the last trial that collected facts before the change, and the first one after it. Changes with
    the same two trials have the same facts."""
    confirmed = [told.first for history in found for told in history.told if told.confirmed]
    since = min(sorted(confirmed)[-MAX_LEVELS:], default=0)
    collections: dict[str, list[Collection]] = {}
    known: dict[tuple[str, str], list[Difference]] = {}

    def facts(machine: str, told: ReportedChange) -> ReportedChange:
        if not told.confirmed or told.first < since:
            return told
        if machine not in collections:
            collections[machine] = collected(store, machine)
        before = in_force(collections[machine], told.last)
        later = [one for one in collections[machine] if one.time > told.last]
        if before is None or not later:
            return told
        pair = (before.trial, later[-1].trial)
        if pair not in known:
            known[pair] = _changed(before, later[-1])
        return replace(told, facts=known[pair])

    return [
        replace(history, told=[facts(history.series.machine, told) for told in history.told])
        for history in found
    ]
