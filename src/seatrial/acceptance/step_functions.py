"""Step functions over the time of a trial: runs in flight, the load of metadata targets.

in_flight(history, now), target_loads(history, now)["scratch/mdt0"]
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from seatrial.acceptance.outages import Span, whole_outages
from seatrial.acceptance.trial_history import NO_ENTRY, TrialHistory


class LevelSpan(NamedTuple):
    """A span of the trial (ns) in which a number had one value."""

    start: int
    end: int
    value: float


def levels(
    intervals: Iterable[tuple[int, int, float]], spans: Sequence[Span], without: Sequence[Span] = ()
) -> list[LevelSpan]:
    """Return the sum of the weights of the intervals that are open, over the time of the spans
    without that of others. An interval that ends when another begins makes no dip."""
    by_weight: dict[float, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for start, end, weight in intervals:
        if end > start:
            changes = by_weight[weight]
            changes[start] += 1
            changes[end] -= 1
    clock: dict[int, int] = defaultdict(int)
    for start, end in spans:
        clock[start] += 1
        clock[end] -= 1
    for start, end in without:
        clock[start] -= len(spans) + 1
        clock[end] += len(spans) + 1
    open_now = dict.fromkeys(sorted(by_weight), 0)  # by weight
    found: list[LevelSpan] = []
    running = since = 0
    for at in sorted({*clock}.union(*by_weight.values())):
        if running > 0:
            value = sum([weight * number for weight, number in open_now.items()], 0.0)
            if found and found[-1].end == since and found[-1].value == value:
                found[-1] = found[-1]._replace(end=at)
            else:
                found.append(LevelSpan(since, at, value))
        since = at
        running += clock.get(at, 0)
        for weight, changes in by_weight.items():
            open_now[weight] += changes.get(at, 0)
    return found


class Dip(NamedTuple):
    """Consecutive levels below a bound: the start of the first, and their length, in ns."""

    start: int
    length: int


def dips(found: Iterable[LevelSpan], bound: float) -> list[Dip]:
    """Return the dips below a bound. A time without levels (a pause) does not end a dip."""
    each: list[Dip] = []
    going = False
    for level in found:
        length = level.end - level.start
        if level.value >= bound:
            going = False
        elif going:
            each[-1] = Dip(each[-1].start, each[-1].length + length)
        else:
            each.append(Dip(level.start, length))
            going = True
    return each


def kept_level(found: Sequence[LevelSpan], short: int) -> tuple[float, int]:
    """Return the largest of the levels below which no dip is as long as ``short`` (ns), and the
    start of the first such dip below the next larger level (below this level, if there is none
    larger)."""
    values = sorted({level.value for level in found})

    def lasting(number: int) -> list[Dip]:
        return [dip for dip in dips(found, values[number]) if dip.length >= short]

    low, high = 0, len(values) - 1  # nothing is below the least; the higher, the longer the dips
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (low, middle - 1) if lasting(middle) else (middle, high)
    longer = lasting(low + 1) if low + 1 < len(values) else []
    return values[low], longer[0].start if longer else found[0].start


def in_flight(
    history: TrialHistory, now: int, tests: Iterable[str] | None = None
) -> list[LevelSpan]:
    """Return how many runs held nodes over the trial's time, without planned outages of all nodes;
    runs of these tests, or of all."""
    wanted = None if tests is None else frozenset(tests)
    intervals = [
        (*held, 1.0)
        for run in history.runs
        if (held := run.held_nodes(now)) and (wanted is None or history.test_of(run) in wanted)
    ]
    return levels(intervals, history.window(now), whole_outages(history))


def target_loads(history: TrialHistory, now: int) -> dict[str, list[LevelSpan]]:
    """Return the load of each metadata target over time: the sum of the ``opens`` of the runs
    there, while their jobs hold nodes."""
    by_target: dict[str, list[tuple[int, int, float]]] = {
        target.name: [] for target in history.policy.targets
    }
    for run in history.runs:
        held = run.held_nodes(now)
        if run.target and held is not None and run.entry != NO_ENTRY:
            opens = history.policy_at(run.submitted or 0).entries[run.entry].opens
            by_target.setdefault(run.target, []).append((*held, opens))
    spans = history.window(now)
    return {name: levels(intervals, spans) for name, intervals in by_target.items()}
