"""The facts of nodes that trials collected: which trials, and what they found.

collected(store, "frost")             # the runs that collected facts, newest trial first
table_of(runs_of_trial)               # one table of all that they found
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from seatrial.errors import SeatrialError, UsageError
from seatrial.journal.codes import PASS
from seatrial.rules import facts
from seatrial.rules.facts import FactTable
from seatrial.rules.model import FACTS_APP, FACTS_FILE
from seatrial.store import queries
from seatrial.store.rows import Filters, RunRow
from seatrial.store.schema import Store
from seatrial.trial.folder import TrialFolder

if TYPE_CHECKING:
    from seatrial.machine.model import Machine


class Collection(NamedTuple):
    """A trial that collected facts: its tag, its machine, when it was made (ns), and its runs."""

    trial: str
    machine: str
    time: int
    runs: list[RunRow]

    @property
    def files(self) -> list[Path]:
        """The files of its facts. Raises UsageError if they are gone."""
        paths = [Path(run.path) / FACTS_FILE for run in self.runs if run.path]
        there = [path for path in paths if path.is_file()]
        if not there:
            raise UsageError(f"{self.trial}: its files of facts are gone")
        return there

    def table(self) -> FactTable:
        """Return what it found. Raises UsageError if no file of it can be read."""
        return facts.read(self.files)

    def description(self) -> "Machine | None":
        """Return the machine as the trial recorded it; None if its record cannot be read."""
        folder = next((path for path in self.files[0].parents if path.name == self.trial), None)
        try:
            return TrialFolder(folder).record().machine if folder else None
        except (SeatrialError, ValueError):
            return None


def collected(store: Store, machine: str = "", trial: str = "") -> list[Collection]:
    """Return the trials that collected facts, the newest first."""
    tests = [name for name, app in queries.tests_of(store) if app == FACTS_APP]
    filters = Filters(machine=machine, trial=trial, tests=tests)
    found: dict[str, list[RunRow]] = {}
    for run in queries.runs(store, filters):
        if run.app == FACTS_APP and run.code == PASS.number:
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
