"""EASY backfill: two functions that decide when a waiting job starts.

Jobs start in the order of their submission. If the first job does not fit, it gets a reservation:
at its *shadow time* enough running jobs will have reached their walltimes. A later job may start
before it if it ends by then, or if it takes only *extra* nodes, which the first job does not need
even then. So no job delays the first one (Lifka 1995; Mu'alem and Feitelson 2001).

The cluster of a rehearsal runs this source in the interpreter, the bare simulation (``batch``)
compiles it. So it takes plain indexed values: lists, arrays or mappings.

A queue is a sequence of *entries* in the order of their submission. Their requests are given by
entry: ``need`` (nodes), ``walltime``, ``pool`` (the set of nodes that it may use). By pool are
given ``free`` (the number of nodes that are free now) and ``outside`` (the number of those that the
first job cannot use).
"""

from typing import Protocol, TypeVar

Time = TypeVar("Time", int, float)
_Value = TypeVar("_Value", covariant=True)


class Indexed(Protocol[_Value]):
    """A list, an array or a mapping with integer keys."""

    def __getitem__(self, index: int, /) -> _Value: ...


def reservation(
    need: int, free: int, ends: Indexed[Time], held: Indexed[int], count: int, never: Time
) -> tuple[Time, int]:
    """Return (shadow time, extra nodes) of a job that needs more nodes than are free. ``ends`` are,
    in order, the times at which running jobs reach their walltimes; ``held`` are the numbers of
    their nodes. All jobs that end at the shadow time count. Returns (``never``, 0) where there will
    not be enough nodes."""
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
    """Return the position of the first entry in ``queue[first:count]`` that may start before the
    reservation; -1 where there is none."""
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
    """Return the number of extra nodes that are left after a job has started before the
    reservation."""
    if end <= shadow or nodes <= outside:
        return extra
    return extra - (nodes - outside)
