"""EASY backfill: when a waiting job starts, as two small functions over indexed values.

First come, first served. When the first job does not fit, it gets a reservation: at its *shadow
time* enough of the jobs that run now will have reached their walltimes. A later job may pass it if
it will be over by then, or takes only *extra* nodes that the first job leaves over even then. So
the first job is never delayed by those that pass it (Lifka 1995; Mu'alem and Feitelson 2001).

The same source serves the online cluster in the interpreter and, compiled, the bare simulation
(``batch``). So it takes plain indexed values: lists, arrays or mappings.

A queue is a sequence of *entries* in the order of their submission. What they ask for is given by
entry: ``need`` (nodes), ``walltime``, ``pool`` (which set of nodes it may use). By pool are given
``free`` (nodes that are free now) and ``outside`` (those of them that the first job cannot use).
"""

from __future__ import annotations

from typing import Protocol, TypeVar

Time = TypeVar("Time", int, float)
_Value = TypeVar("_Value", covariant=True)


class Indexed(Protocol[_Value]):
    """A list, an array or a mapping whose keys are whole numbers."""

    def __getitem__(self, index: int, /) -> _Value: ...


def reservation(
    need: int, free: int, ends: Indexed[Time], held: Indexed[int], count: int, never: Time
) -> tuple[Time, int]:
    """(shadow time, extra nodes) of a job that needs more nodes than are free. ``ends`` are the
    times, in order, at which nodes come free by the walltimes, ``held`` how many at each. All that
    end at the shadow time count. Where there will not be enough: (``never``, 0)."""
    index = 0
    while index < count:
        end = ends[index]
        while index < count and ends[index] == end:
            free += held[index]
            index += 1
        if free >= need:
            return end, free - need
    return never, 0


def next_start(
    now: Time,
    first: int,
    queue: Indexed[int],
    count: int,
    need: Indexed[int],
    walltime: Indexed[Time],
    pool: Indexed[int],
    free: Indexed[int],
    outside: Indexed[int],
    shadow: Time,
    extra: int,
) -> int:
    """The position of the first entry in ``queue[first:count]`` that may pass the reservation;
    -1: none."""
    for position in range(first, count):
        entry = queue[position]
        nodes = need[entry]
        nodes_of = pool[entry]
        if nodes <= free[nodes_of] and (
            now + walltime[entry] <= shadow or nodes <= outside[nodes_of] + extra
        ):
            return position
    return -1


def extra_left(extra: int, end: Time, nodes: int, outside: int, shadow: Time) -> int:
    """The extra nodes that are left when a job that may pass has passed."""
    if end <= shadow or nodes <= outside:
        return extra
    return extra - (nodes - outside)
