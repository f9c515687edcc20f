"""Random workloads, and EASY backfill as its definition says it: slow, and by other means."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st


class Asked(NamedTuple):
    """A job in whole seconds."""

    submit: int
    nodes: int
    elapsed: int
    walltime: int


class Workload(NamedTuple):
    total: int
    jobs: list[Asked]


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Few nodes, and times from a small range so that ends often coincide."""
    total = draw(st.integers(1, 12))
    job = st.builds(
        Asked,
        st.integers(0, 9),
        st.one_of(st.integers(1, total), st.integers(1, max(1, total // 4))),
        st.integers(1, 14),
        st.integers(1, 14),
    )
    return Workload(total, draw(st.lists(job, min_size=1, max_size=25)))


def second_by_second(workload: Workload) -> list[int]:
    """The starts: at every second everything is looked at anew."""
    total, jobs = workload
    start: dict[int, int] = {}
    by_submission = sorted(range(len(jobs)), key=lambda number: jobs[number].submit)
    now = 0
    while len(start) < len(jobs):
        for number in by_submission:
            waits = number not in start and jobs[number].submit <= now
            if waits and _may_start(number, now, total, jobs, start, by_submission):
                start[number] = now
        now += 1
    return [start[number] for number in range(len(jobs))]


def _may_start(
    number: int,
    now: int,
    total: int,
    jobs: list[Asked],
    start: dict[int, int],
    by_submission: list[int],
) -> bool:
    job = jobs[number]

    def free_at(time: int, also: dict[int, int]) -> int:
        """Nodes that are free at a time if all that run use up their walltimes; now, those that
        are really free."""
        used = 0
        for other, began in also.items():
            length = jobs[other].walltime
            if time == now:
                length = min(length, jobs[other].elapsed)
            if began <= time < began + length:
                used += jobs[other].nodes
        return total - used

    running = {
        other: began
        for other, began in start.items()
        if now < began + min(jobs[other].elapsed, jobs[other].walltime)
    }
    if job.nodes > free_at(now, running):
        return False
    first = next(n for n in by_submission if n not in start and jobs[n].submit <= now)
    if first == number:
        return True
    # The first could start at the earliest time at which its nodes are free. It still can, if this
    # job starts now, exactly when the job delays nobody.
    shadow = now
    while free_at(shadow, running) < jobs[first].nodes:
        shadow += 1
    return free_at(shadow, {**running, number: now}) >= jobs[first].nodes
