"""The simulation of a batch system, beside an oracle that looks at every second's jobs anew."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seatrial.plugins.usage.simulation import (
    BACKFILLS,
    UNFORESEEN,
    Backfill,
    Closure,
    Workload,
    in_c,
    in_python,
    program_or_reason,
    simulate,
)


class Job(NamedTuple):
    """A job, by its numbers. ``fixed``: it runs since then."""

    eligible: int
    units: int
    run: int
    limit: int
    fixed: int = -1


def workload(jobs: Iterable[Job], total: int, closures: Iterable[Closure] = ()) -> Workload:
    eligible, units, run, limit, fixed = np.array([*jobs], dtype=np.int64).reshape(-1, 5).T
    return Workload(eligible, units, run, limit, fixed, total, tuple(closures))


# ---- the oracle ---------------------------------------------------------------------------------


class Oracle:
    """Starts jobs by the definition of EASY backfill. At each moment it counts the units in use
    from all jobs, and tries all times for the reservation."""

    def __init__(self, jobs: list[Job], total: int, closures: list[Closure]) -> None:
        self.jobs, self.total, self.closures = jobs, total, closures
        self.starts = [job.fixed for job in jobs]
        self.over: set[int] = set()

    def left(self, time: int, now: int, reserved: tuple[int, Job] | None = None) -> int:
        """Return the units that are free at a time, by the limits of jobs that have started."""
        left = self.total
        for place, (start, job) in enumerate(zip(self.starts, self.jobs, strict=True)):
            if start >= 0 and place not in self.over and (time == now or start + job.limit > time):
                left -= job.units
        for closure in self.closures:
            if closure.begin <= time < closure.end and closure.units != UNFORESEEN:
                left -= closure.units
        if reserved is not None and reserved[0] <= time < reserved[0] + reserved[1].limit:
            left -= reserved[1].units
        return left

    def fits(self, start: int, now: int, job: Job, reserved: tuple[int, Job] | None = None) -> bool:
        moments = [start, *(closure.begin for closure in self.closures)]
        moments += [] if reserved is None else [reserved[0]]
        return all(
            self.left(moment, now, reserved) >= job.units
            for moment in moments
            if start <= moment < start + job.limit
        )

    def reservation(self, now: int, job: Job) -> tuple[int, Job]:
        ends = (start + each.limit for start, each in zip(self.starts, self.jobs, strict=True))
        times = sorted({*ends, *(closure.end for closure in self.closures)})
        return next((t, job) for t in times if t > now and self.fits(t, now, job))

    def run(self, backfill: Backfill) -> list[int]:
        now = 0
        while min(self.starts, default=0) < 0:
            before = list(self.starts)
            self.step(now, backfill)
            now += before == self.starts  # jobs of no time make room at the second of their start
        return self.starts

    def step(self, now: int, backfill: Backfill) -> None:
        self.over = {
            place
            for place, (start, job) in enumerate(zip(self.starts, self.jobs, strict=True))
            if 0 <= start <= now - job.run
        }
        if any(c.begin <= now < c.end and c.units == UNFORESEEN for c in self.closures):
            return
        reserved = None
        first = True
        for place, job in enumerate(self.jobs):
            if self.starts[place] >= 0 or job.eligible > now:
                continue
            if self.fits(now, now, job, reserved):
                self.starts[place] = now
            elif backfill == "none":
                return
            elif first and backfill == "easy":
                reserved = self.reservation(now, job)
                first = False


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Job], int, list[Closure]]:
    total = draw(st.integers(1, 8))
    jobs = []
    for _ in range(draw(st.integers(0, 9))):
        run = draw(st.integers(0, 6))
        eligible, units = draw(st.integers(0, 25)), draw(st.integers(1, total))
        fixed = draw(st.sampled_from([-1, -1, -1, 0]))
        jobs.append(Job(eligible, units, run, max(run, 1) + draw(st.integers(0, 3)), fixed))
    edges = sorted(draw(st.sets(st.integers(0, 30), max_size=6)))
    closures = [
        Closure(begin, end, draw(st.integers(UNFORESEEN, total)))
        for begin, end in zip(edges[::2], edges[1::2], strict=False)
    ]
    return jobs, total, closures


@settings(max_examples=300, deadline=None)
@example(
    # The first job that waits ends as the closure begins: the last one has room beside it.
    ([Job(0, 3, 5, 5), Job(1, 3, 5, 5), Job(2, 1, 20, 20)], 4, [Closure(10, 20, 2)]),
    "easy",
)
@example(
    # The third job ends as the reservation begins: it leaves the last one what that can spare.
    ([Job(0, 2, 5, 5), Job(1, 3, 5, 5), Job(2, 1, 3, 3), Job(2, 1, 20, 20)], 4, []),
    "easy",
)
@given(worlds(), st.sampled_from(BACKFILLS))
def test_jobs_start_as_the_definition_says(
    world: tuple[list[Job], int, list[Closure]], backfill: Backfill
) -> None:
    jobs, total, closures = world
    asked = workload(jobs, total, closures)
    program, reason = program_or_reason()
    assert program is not None, reason
    expected = Oracle(jobs, total, closures).run(backfill)
    assert in_c(program, asked, backfill).tolist() == expected
    assert in_python(asked, backfill).tolist() == expected


# ---- many jobs ----------------------------------------------------------------------------------


def many(jobs: int, total: int, seed: int) -> Workload:
    random = np.random.default_rng(seed)
    units = np.minimum(2 ** random.integers(0, 8, jobs), total)
    run = random.exponential(3600, jobs).astype(np.int64)
    limit = 1 + (run * random.uniform(1, 4, jobs)).astype(np.int64)
    eligible = np.cumsum(random.exponential((units * run).mean() / total, jobs)).astype(np.int64)
    half = int(eligible[jobs // 2])
    closures = (
        Closure(half, half + 7200, UNFORESEEN),
        Closure(half + 90_000, half + 120_000, total),
        Closure(half + 200_000, half + 900_000, total // 3),
    )
    running = units.cumsum() <= total // 2
    fixed = np.where(running, 0, -1)
    return Workload(np.where(running, 0, eligible), units, run, limit, fixed, total, closures)


@pytest.mark.parametrize("backfill", BACKFILLS)
def test_many_jobs_start_in_python_as_in_c_and_never_use_more_than_there_is(
    backfill: Backfill,
) -> None:
    asked = many(2500, 160, seed=3)
    order = np.random.default_rng(4).permutation(len(asked.run))
    starts = simulate(asked, order, backfill)
    assert in_python(asked.only(order), backfill).tolist() == starts[order].tolist()
    assert (starts >= asked.eligible).all()
    ends = starts + asked.run
    for moment in starts:
        closed = sum(c.units for c in asked.closures if c.begin <= moment < c.end and c.units > 0)
        used = asked.units[(starts <= moment) & (ends > moment)].sum()
        assert used + closed <= asked.total
        assert not asked.closures[0].begin <= moment < asked.closures[0].end


def test_a_job_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="jobs of 9 to 9 units, of 8"):
        simulate(workload([Job(0, 9, 1, 1)], 8), np.array([0]), "easy")
    with pytest.raises(ValueError, match="beyond its limit"):
        simulate(workload([Job(0, 1, 2, 1)], 8), np.array([0]), "easy")


def test_without_a_compiler_it_says_so_and_answers_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    asked = many(300, 160, seed=5)
    order = np.arange(300)
    expected = simulate(asked, order, "easy").tolist()
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    program_or_reason.cache_clear()
    try:
        program, reason = program_or_reason()
        assert program is None
        assert "no-such-compiler cannot be run" in reason
        assert "set CC to a C compiler" in reason
        assert simulate(asked, order, "easy").tolist() == expected
    finally:
        program_or_reason.cache_clear()
