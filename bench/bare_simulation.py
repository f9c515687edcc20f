"""A bare simulation of a batch system: EASY backfill over a whole workload.

    starts = simulate(submit_s, nodes, elapsed_s, walltime_s, total_nodes=2000)

It decides by the functions of EASY backfill of the cluster of a rehearsal, but its nodes have no
names and nothing fails. Where numba is installed the code is compiled at the first call in a
process, which takes a few seconds; else the interpreter runs the same source. The compiled code is
not cached on disk, as numba would not notice changes of those functions, which are in another file.
"""

import functools
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any, cast

from numpy.typing import ArrayLike

from seatrial.lazy import Floats, np
from seatrial.plugins.rehearsal.queue import extra_left, next_start, reservation

INFINITY = float("inf")


def simulate(
    submit_s: "ArrayLike",
    nodes: "ArrayLike",
    elapsed_s: "ArrayLike",
    walltime_s: "ArrayLike",
    total_nodes: int,
    compiled: bool = True,
) -> Floats:
    """Return the time at which each job starts, an array of shape (n,) in seconds. A job ends after
    its elapsed time, or after its walltime if that is shorter. Jobs that are submitted at one time
    are queued in the order of the list.

    Raises ValueError where the lists differ in length, or a job asks for no node or for too many.
    """
    need = np.asarray(nodes, dtype=np.int64)
    submit, elapsed, walltime = (
        np.asarray(values, dtype=np.float64) for values in (submit_s, elapsed_s, walltime_s)
    )
    if not need.shape == submit.shape == elapsed.shape == walltime.shape == (need.size,):
        raise ValueError("submit_s, nodes, elapsed_s and walltime_s must be of one length")
    if need.size and not (need.min() >= 1 and need.max() <= total_nodes):
        raise ValueError(f"jobs of {need.min()} to {need.max()} nodes, of {total_nodes}")
    order = np.argsort(submit, kind="stable")
    used = np.minimum(elapsed, walltime)
    jobs: list[Any] = [values[order] for values in (submit, need, used, walltime)]
    starts = np.empty(need.size)
    fast = compiled_run() if compiled else None
    if fast is not None:
        starts[order] = fast(*jobs, total_nodes)
    else:
        lists = [values.tolist() for values in jobs]  # faster in the interpreter
        starts[order] = _run(lists[0], lists[1], lists[2], lists[3], total_nodes)
    return starts


@functools.cache
def compiled_run() -> Callable[..., list[float]] | None:
    """Return the compiled function; None where numba is not installed."""
    try:
        from numba import njit
        from numba.extending import register_jitable
    except ImportError:
        return None
    for function in (reservation, next_start, extra_left, _begin, _end):
        register_jitable(function)
    run: Any = njit(_run)
    return cast("Callable[..., list[float]]", run)


# The functions below are compiled: plain loops, and lists whose types numba can infer.


def _run(
    submit: Sequence[float],
    nodes: Sequence[int],
    used: Sequence[float],
    walltime: Sequence[float],
    total: int,
) -> list[float]:
    """Return the start times of jobs that are in the order of their submission."""
    count = len(nodes)
    starts = [0.0] * count
    pool = [0] * count  # one pool: every job can use every node
    free, outside = [total], [0]
    queue = [0 for _ in range(0)]
    over = [(0.0, 0) for _ in range(0)]  # running jobs, by their ends
    ends = [0.0 for _ in range(0)]  # the same, by the ends of their walltimes
    held = [0 for _ in range(0)]
    who = [0 for _ in range(0)]
    shadow, extra = INFINITY, 0
    blocked = False  # whether the first job of the queue has a reservation
    arrived = looked = 0
    while arrived < count or len(over) > 0:
        now = submit[arrived] if arrived < count else INFINITY
        if len(over) > 0 and over[0][0] < now:
            now = over[0][0]
        while len(over) > 0 and over[0][0] == now:
            job = heappop(over)[1]
            _end(job, starts[job] + walltime[job], ends, held, who)
            free[0] += nodes[job]
            blocked = False
        while arrived < count and submit[arrived] == now:
            queue.append(arrived)
            arrived += 1
        position = looked
        while len(queue) > 0 and free[0] > 0:
            if not blocked and nodes[queue[0]] <= free[0]:
                position = 0
            else:
                if not blocked:
                    need = nodes[queue[0]]
                    shadow, extra = reservation(need, free[0], ends, held, len(ends), INFINITY)
                    blocked, position = True, 1
                position = next_start(
                    *(now, position, queue, len(queue), nodes, walltime),
                    *(pool, free, outside, shadow, extra),
                )
                if position < 0:
                    break
            job = queue.pop(position)
            if blocked:
                extra = extra_left(extra, now + walltime[job], nodes[job], 0, shadow)
            starts[job] = now
            free[0] -= nodes[job]
            heappush(over, (now + used[job], job))
            _begin(job, now + walltime[job], nodes[job], ends, held, who)
        looked = len(queue)
    return starts


def _begin(job: int, end: float, need: int, ends: Any, held: Any, who: Any) -> None:
    """Insert a job among those that run, at the end of its walltime."""
    place = len(ends)
    while place > 0 and ends[place - 1] > end:
        place -= 1
    ends.insert(place, end)
    held.insert(place, need)
    who.insert(place, job)


def _end(job: int, end: float, ends: Any, held: Any, who: Any) -> None:
    """Remove a job from those that run."""
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high) // 2
        if ends[middle] < end:
            low = middle + 1
        else:
            high = middle
    while who[low] != job:
        low += 1
    ends.pop(low)
    held.pop(low)
    who.pop(low)
