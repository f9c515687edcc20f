"""Which nodes differ: from most of their kind, from an earlier trial, from another machine; and
counters of errors as rates, between two collections of the facts of the same nodes.

    for row in from_majority(table, kinds, limits):
        row.key, row.usual, row.others        # node.kernel, 5.14.0-427, {"5.14.0-362": ["n007"]}
    for rise in rises(before, after):
        rise.counter, rise.node, rise.by, rise.per_hour   # ib_mlx5_0_1_symbol_error, n007, 812, 203
    judge(with_rates(after, before), ...)                 # rate.ib_symbol_error <= 144

Counters are readings that only grow, of memory errors (EDAC, machine checks) and of InfiniBand. A
node that was started in between counts from its start. A time below an hour counts as one, so that
a single error between two collections that are close is no high rate.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from msgspec import Struct

from seatrial.errors import UsageError
from seatrial.lazy import np
from seatrial.plugins.facts.node_facts import MISSING, READINGS, FactTable

USUAL_LIMITS = {
    "memory.total_kib": 0.01,  # firmware takes some, and not the same on each start
    "node.memory": 0.01,
    "limit.processes*": 0.01,  # these three follow the memory
    "sysctl.kernel_threads_max": 0.01,
    "sysctl.fs_file_max": 0.01,
}

Values = dict[str | None, list[str]]


class DriftLimits(NamedTuple):
    """What is no difference: numbers of a fact (pattern) that differ by at most a share of the
    usual one, and facts (patterns) that are not compared at all."""

    shares: Mapping[str, float] = USUAL_LIMITS
    waived: Sequence[str] = ()

    def covers(self, key: str) -> bool:
        """Return whether a fact is compared."""
        if any(fnmatchcase(key, pattern) for pattern in self.waived):
            return False
        return not key.startswith((READINGS, "skipped.")) or self._share(key) is not None

    def near(self, key: str, one: str | None, other: str | None) -> bool:
        """Return whether two values of a fact count as equal."""
        share = self._share(key)
        if one == other or share is None or one is None or other is None:
            return one == other
        (first, unit), (second, other_unit) = (_with_unit(value) for value in (one, other))
        if first is None or second is None or unit != other_unit:
            return False
        return abs(first - second) <= share * max(abs(first), abs(second))

    def _share(self, key: str) -> float | None:
        shares = (share for name, share in self.shares.items() if fnmatchcase(key, name))
        return next(shares, None)


def _with_unit(value: str) -> tuple[float | None, str]:
    """Return the number in a value such as ``251.4 GiB``, None if there is none, and its unit."""
    number, _, unit = value.partition(" ")
    try:
        return float(number), unit.strip()
    except ValueError:
        return None, value


USUAL = DriftLimits()


class FactDifference(Struct, frozen=True):
    """A fact that is not the same on all nodes of a kind. ``usual`` is the value of more than half
    of the nodes (None: they miss it), and ``others`` the nodes with other values. Without such a
    value ``agreed`` is False, ``others`` has all nodes, and nobody is accused."""

    key: str
    kind: str
    usual: str | None
    nodes: int
    others: Values
    agreed: bool = True


def from_majority(
    table: FactTable, kinds: Mapping[str, str], limits: DriftLimits = USUAL
) -> list[FactDifference]:
    """Return the facts in which nodes differ from more than half of their kind. ``kinds``: the kind
    of each node; nodes without one are a kind together."""
    of_kind: dict[str, list[int]] = {}
    for i, node in enumerate(table.nodes):
        of_kind.setdefault(kinds.get(node, ""), []).append(i)
    differences = []
    for kind, rows in of_kind.items():
        numbers = table.numbers[rows]
        differing = (numbers != numbers[:1]).any(axis=0)
        part = table.only(table.nodes[i] for i in rows)
        for column in np.flatnonzero(differing):
            key = table.keys[column]
            if limits.covers(key) and (row := _difference(part, kind, key, limits)):
                differences.append(row)
    return sorted(differences, key=lambda row: (row.kind, row.key))


def _difference(part: FactTable, kind: str, key: str, limits: DriftLimits) -> FactDifference | None:
    """Return how a fact differs within a kind; None if all values count as equal."""
    values = part.folded(key)
    usual = next(iter(values))
    near = {value for value in values if limits.near(key, value, usual)}
    alike = sum(len(values[value]) for value in near)
    others = {value: nodes for value, nodes in values.items() if value not in near}
    if not others:
        return None
    if 2 * alike <= len(part.nodes):
        return FactDifference(key, kind, None, len(part.nodes), values, agreed=False)
    return FactDifference(key, kind, usual, len(part.nodes), others)


class Change(Struct, frozen=True):
    """A fact that is another one than before on some nodes."""

    key: str
    before: str | None
    after: str | None
    nodes: list[str]


def between(before: FactTable, after: FactTable, limits: DriftLimits = USUAL) -> list[Change]:
    """Return the facts that changed on nodes that are in both tables."""
    nodes = [node for node in after.nodes if node in before.rows]
    old, new = before.only(nodes), after.only(nodes)
    aligned = [old.rows[node] for node in new.nodes]
    changes: list[Change] = []
    for key in filter(limits.covers, sorted({*before.keys, *after.keys})):
        earlier, later = old.column(key), new.column(key)
        pairs: dict[tuple[str | None, str | None], list[str]] = {}
        for node, row, value in zip(new.nodes, aligned, later, strict=True):
            if earlier[row] != value and not limits.near(key, earlier[row], value):
                pairs.setdefault((earlier[row], value), []).append(node)
        changes += [Change(key, *values, changed) for values, changed in pairs.items()]
    return changes


class MachineContrast(Struct, frozen=True):
    """A fact whose values on two machines differ: each value with its nodes."""

    key: str
    here: Values
    there: Values


def against(
    here: FactTable, there: FactTable, limits: DriftLimits = USUAL
) -> list[MachineContrast]:
    """Return the facts whose usual value is not the same on two machines, such as a test system and
    production: the value of most nodes of each."""
    contrasts = []
    for key in sorted({*here.keys, *there.keys}):
        if limits.covers(key):
            one, other = here.folded(key), there.folded(key)
            usual = next(iter(one), None), next(iter(other), None)
            if not limits.near(key, *usual):
                contrasts.append(MachineContrast(key, one, other))
    return contrasts


def parsed_limits(within: Iterable[tuple[str, float]], waived: Sequence[str]) -> DriftLimits:
    """Return the limits of a person, before the usual ones."""
    return DriftLimits({**dict(within), **USUAL_LIMITS}, waived)


def require_nodes(table: FactTable, source: str) -> FactTable:
    """Return the table. Raises UsageError if no node answered."""
    if not table.nodes:
        raise UsageError(f"{source}: no node answered; nothing can be compared")
    return table


# ---- counters of errors as rates -----------------------------------------------------------------


RATE = "rate."
LEAST_HOURS = 1.0
_EDAC = ("edac_corrected", "edac_uncorrected", "machine_checks")
_PORT = re.compile(r"ib_.+_[0-9]+_([a-z]+(?:_[a-z]+)*)")
_CLOCK, _UPTIME = "now.clock_s", "now.uptime_s"


class CounterRise(NamedTuple):
    """A counter of a node that grew between two collections: by how much, and per hour."""

    counter: str
    node: str
    by: int
    per_hour: float


def rises(before: FactTable, after: FactTable) -> Iterator[CounterRise]:
    """Yield the counters that both collections have of a node, also those that did not grow."""
    counters = [key for key in after.keys if _kind(key)]
    old = _values(before, [*counters, _CLOCK])
    new = _values(after, [*counters, _CLOCK, _UPTIME])
    for node in after.nodes:
        earlier, later = old.get(node, {}), new[node]
        seconds = later.get(_CLOCK, 0.0) - earlier.get(_CLOCK, math.inf)
        if seconds <= 0:
            continue  # the same collection, or one of them did not tell its time
        uptime = later.get(_UPTIME, seconds)
        hours = max(LEAST_HOURS, min(seconds, uptime) / 3600)
        for key in counters:
            if key in later and key in earlier:
                grown = later[key] - earlier[key]
                if uptime < seconds or grown < 0:  # it was started, or somebody set it back
                    grown = later[key]
                yield CounterRise(key.removeprefix(READINGS), node, int(grown), grown / hours)


def _set_back(before: FactTable, after: FactTable) -> Iterator[str]:
    """Yield a sentence about each node whose clock is not behind that of the collection before."""
    old, new = (_values(table, [_CLOCK]) for table in (before, after))
    for node in after.nodes:
        earlier, later = old.get(node, {}).get(_CLOCK), new[node].get(_CLOCK)
        if earlier is not None and later is not None and later <= earlier:
            yield f"{node}: its clock was set back since the facts before; it has no rates"


def _values(table: FactTable, keys: list[str]) -> dict[str, dict[str, float]]:
    """Return the numbers of each node by key."""
    numbers: dict[str, dict[str, float]] = {node: {} for node in table.nodes}
    for key in keys:
        for node, value in zip(table.nodes, table.column(key), strict=True):
            try:
                numbers[node][key] = float(value or "")
            except ValueError:
                continue
    return numbers


def _kind(key: str) -> str:
    """Return the kind of a counter, alike for all ports: ib_symbol_error; "" for no counter."""
    name = key.removeprefix(READINGS)
    if not key.startswith(READINGS):
        return ""
    port = _PORT.fullmatch(name)
    return f"ib_{port[1]}" if port else name if name in _EDAC else ""


def with_rates(after: FactTable, before: FactTable) -> FactTable:
    """Return a table with the rates per hour of each node as facts: rate.edac_corrected, and
    rate.ib_symbol_error of all its ports together."""
    rates: dict[str, dict[str, float]] = {}
    after = after._replace(troubles=[*after.troubles, *_set_back(before, after)])
    for rise in rises(before, after):
        of_node = rates.setdefault(rise.node, {})
        kind = RATE + _kind(READINGS + rise.counter)
        of_node[kind] = of_node.get(kind, 0.0) + rise.per_hour
    return _with_facts(after, rates)


def _with_facts(table: FactTable, rates: Mapping[str, Mapping[str, float]]) -> FactTable:
    keys = sorted({key for of_node in rates.values() for key in of_node})
    lines = list(table.lines)
    known: dict[tuple[str, str], int] = {}
    numbers = np.full((len(table.nodes), len(keys)), MISSING, dtype=np.int32)
    for node, of_node in rates.items():
        for column, key in enumerate(keys):
            if key in of_node:
                fact = (key, f"{of_node[key]:.3g}")
                if fact not in known:
                    known[fact] = len(lines)
                    lines.append(fact)
                numbers[table.rows[node], column] = known[fact]
    joined = np.hstack([table.numbers, numbers])
    return table._replace(keys=[*table.keys, *keys], lines=lines, numbers=joined)
