"""Counters of errors as rates, between two collections of the facts of the same nodes.

    for rise in rises(before, after):
        rise.counter, rise.node, rise.by, rise.per_hour   # ib_mlx5_0_1_symbol_error, n007, 812, 203
    judge(with_rates(after, before), ...)                 # rate.ib_symbol_error <= 144

Counters are readings that only grow, of memory errors (EDAC, machine checks) and of InfiniBand. A
node that was started in between counts from its start. A time below an hour counts as one, so that
a single error between two collections that are close is no high rate.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from seatrial.lazy import np
from seatrial.plugins.facts.node_facts import MISSING, READINGS, FactTable

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
