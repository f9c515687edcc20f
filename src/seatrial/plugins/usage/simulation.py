"""When a batch system would start jobs: a simulation of one machine, whose nodes have no names.

    starts = simulate(Workload(eligible, units, run, limit, fixed, total=6384), order)

Units are nodes or cores; times are whole seconds. The rules stand in ``simulation.c``, which a host
with a C compiler compiles once; without one the same rules run here in Python, which takes some
hundred times as long.
"""

from __future__ import annotations

import subprocess
import tempfile
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from functools import cache
from heapq import heappop, heappush
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import SeatrialError
from seatrial.execute.c_programs import kept_or_reason
from seatrial.lazy import Bools, Indices, Ints, np

SOURCE = Path(__file__).parent / "simulation.c"

Backfill = Literal["none", "easy", "any"]
"""What may start before the first job that waits: nothing; what does not delay it (EASY); or
whatever fits."""

BACKFILLS: tuple[Backfill, ...] = ("none", "easy", "any")
UNFORESEEN = -1
"""The units of a closure that nobody knew ahead: nothing starts meanwhile."""


class Closure(NamedTuple):
    """A time from ``begin`` to before ``end`` in which ``units`` are closed. Jobs that would run
    into it do not start on them, as everybody knows of it; unless it is UNFORESEEN."""

    begin: int
    end: int
    units: int


class Workload(Struct, frozen=True):
    """Jobs of a machine as arrays of shape (n,), and its units."""

    #: When each may start at the earliest, in s.
    eligible: Ints
    units: Ints
    #: How long it runs, and its time limit, which is not shorter and at least 1; in s.
    run: Ints
    limit: Ints
    #: When it started, of jobs that run already; -1 of those that are to be started.
    fixed: Ints
    total: int
    #: In order, and without overlaps.
    closures: tuple[Closure, ...] = ()

    def only(self, chosen: Bools | Indices) -> Workload:
        """Return some of its jobs, or all in another order."""
        return replace(self, **{name: getattr(self, name)[chosen] for name in COLUMNS})

    def joined(self, other: Workload) -> Workload:
        """Return its jobs and then those of another workload, on its own machine."""
        pairs = {name: [getattr(self, name), getattr(other, name)] for name in COLUMNS}
        return replace(self, **{name: np.concatenate(pair) for name, pair in pairs.items()})


COLUMNS = ("eligible", "units", "run", "limit", "fixed")
"""The arrays of a workload, in the order in which the program reads them."""


def simulate(workload: Workload, order: Indices, backfill: Backfill) -> Ints:
    """Return when each job starts, shape (n,). ``order``: the jobs, the one with the highest
    priority first. Raises ValueError for a job that does not fit the machine."""
    need = workload.units
    if need.size and not (need.min() >= 1 and need.max() <= workload.total):
        raise ValueError(f"jobs of {need.min()} to {need.max()} units, of {workload.total}")
    if (workload.limit < np.maximum(workload.run, 1)).any() or (workload.run < 0).any():
        raise ValueError("a job runs for less than 0 s, or beyond its limit, or has none")
    ordered = workload.only(order)
    program, _ = program_or_reason()
    starts = np.empty_like(need)
    starts[order] = (
        in_python(ordered, backfill) if program is None else in_c(program, ordered, backfill)
    )
    return starts


@cache
def program_or_reason() -> tuple[Path | None, str]:
    """Return the compiled simulation; None, and why, where it cannot be compiled."""
    return kept_or_reason("simulation", SOURCE, "the simulation")


def in_c(program: Path, ordered: Workload, backfill: Backfill) -> Ints:
    """Return the starts of jobs that are in the order of their priority, by the C program."""
    closures = np.array(ordered.closures, dtype=np.int64).reshape(-1, 3)
    sizes = [len(ordered.run), ordered.total, BACKFILLS.index(backfill), len(closures)]
    parts = [
        np.array(sizes),
        *(getattr(ordered, name) for name in COLUMNS),
        np.argsort(ordered.eligible, kind="stable"),
        *(closures[:, column] for column in range(3)),
    ]
    with tempfile.TemporaryFile() as numbers:  # through a pipe it takes three times as long
        for part in parts:
            numbers.write(np.ascontiguousarray(part, dtype=np.int64).tobytes())
        numbers.seek(0)
        done = subprocess.run([program], stdin=numbers, capture_output=True, check=False)
    if done.returncode or len(done.stdout) != 8 * len(ordered.run):
        reason = done.stderr.decode(errors="replace")[-500:] or f"it ended with {done.returncode}"
        raise SeatrialError(f"{program}: {reason}: please report it")
    starts: Ints = np.frombuffer(done.stdout, dtype=np.int64)
    return starts


# ---- the same in Python ------------------------------------------------------------------------


class _Moment(Struct):
    """A time ahead that starts must leave room for."""

    time: int
    room: int


class _Machine:
    """A machine at a time: who waits, who runs. Jobs are told by their place in the order."""

    def __init__(self, ordered: Workload, backfill: Backfill) -> None:
        lists: list[list[int]] = [getattr(ordered, name).tolist() for name in COLUMNS]
        self.eligible, self.units, self.run, self.limit, self.started = lists
        self.total, self.closures, self.backfill = ordered.total, ordered.closures, backfill
        self.waiting: list[int] = []
        self.running: list[tuple[int, int]] = []  # a heap of (end, job)
        self.holding: list[tuple[int, int]] = []  # (end of its limit, job), in order
        self.used = 0
        self.free = 0
        self.checks: list[_Moment] = []
        for job, started in enumerate(self.started):
            if started >= 0:
                self.begin(job, started)

    def begin(self, job: int, now: int) -> None:
        self.started[job] = now
        self.used += self.units[job]
        heappush(self.running, (now + self.run[job], job))
        insort(self.holding, (now + self.limit[job], job))

    def end_first(self) -> None:
        job = heappop(self.running)[1]
        self.used -= self.units[job]
        del self.holding[bisect_left(self.holding, (self.started[job] + self.limit[job], job))]

    def start_ready(self, now: int) -> None:
        """Start all jobs that can start now."""
        inside = self._closed_at(now)
        if not self.waiting or inside == UNFORESEEN:
            return
        self.free = self.total - self.used - inside
        self.checks = list(self._closures_after(now))
        while self.waiting and self._fits(now, self.waiting[0]):
            self._start(self.waiting.pop(0), now)
        if not self.waiting or self.backfill == "none" or self.free <= 0:
            return
        if self.backfill == "easy":
            self._reserve(now, self.waiting[0])
        behind = self.waiting[1:]
        del self.waiting[1:]
        for job in behind:
            if self._fits(now, job):
                self._start(job, now)
            else:
                self.waiting.append(job)

    def _closed_at(self, time: int) -> int:
        """Return how many units are closed; UNFORESEEN in such a closure."""
        return next((each.units for each in self.closures if each.begin <= time < each.end), 0)

    def _closures_after(self, now: int) -> Iterator[_Moment]:
        """Yield the begins of closures to come that are known, with the room that they leave."""
        for closure in self.closures:
            if closure.begin > now and closure.units != UNFORESEEN:
                first = bisect_left(self.holding, (closure.begin + 1, 0))
                across = sum(self.units[job] for _, job in self.holding[first:])
                yield _Moment(closure.begin, self.total - closure.units - across)

    def _fits(self, now: int, job: int) -> bool:
        need, until = self.units[job], now + self.limit[job]
        return need <= self.free and all(
            need <= check.room or until <= check.time for check in self.checks
        )

    def _start(self, job: int, now: int) -> None:
        self.begin(job, now)
        self.free -= self.units[job]
        for check in self.checks:
            if now + self.limit[job] > check.time:
                check.room -= self.units[job]

    def _reserve(self, now: int, job: int) -> None:
        """Reserve units for the first job that waits, which does not fit now."""
        need, limit = self.units[job], self.limit[job]
        ends = {closure.end for closure in self.closures if closure.end > now}
        place, room = 0, self.total - self.used
        for time in sorted({*ends, *(until for until, _ in self.holding)}):
            while place < len(self.holding) and self.holding[place][0] <= time:
                room += self.units[self.holding[place][1]]
                place += 1
            later = [check for check in self.checks if time < check.time < time + limit]
            left = room - max(self._closed_at(time), 0) - need
            if left < 0 or any(check.room < need for check in later):
                continue
            for check in self.checks:
                if time <= check.time < time + limit:
                    check.room -= need
            self.checks.append(_Moment(time, left))
            return


def in_python(ordered: Workload, backfill: Backfill) -> Ints:
    """Return the starts of jobs that are in the order of their priority."""
    machine = _Machine(ordered, backfill)
    arrival: Sequence[int] = np.argsort(ordered.eligible, kind="stable").tolist()
    ends = [closure.end for closure in ordered.closures]
    arrived = passed = 0
    while arrived < len(arrival) or machine.waiting:
        coming = [machine.eligible[arrival[arrived]]] if arrived < len(arrival) else []
        coming += [end for end, _ in machine.running[:1]]
        now = min([*coming, *ends[passed : passed + 1]])
        while machine.running and machine.running[0][0] <= now:
            machine.end_first()
        while arrived < len(arrival) and machine.eligible[arrival[arrived]] <= now:
            if machine.started[arrival[arrived]] < 0:
                insort(machine.waiting, arrival[arrived])
            arrived += 1
        passed = bisect_left(ends, now + 1)
        machine.start_ready(now)
    return np.array(machine.started, dtype=np.int64)
