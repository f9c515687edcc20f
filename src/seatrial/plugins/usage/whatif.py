"""What if jobs ran elsewhere, or a machine were larger, drained, or started jobs in another order?

    question = Question(machine="franklin", move=("application=g09",), to="hopper")
    answer = what_if(store, question, context_of(["franklin"]))
    answer.groups[0].effects["median"].change      # None where the replay cannot tell

The jobs of a record are started again, as it was and with the change (`replay`). The effect of the
change is the difference of these two, with an interval by blocks of days or weeks. Beside it stands
by how much the replay of what was is off from what was, for the same jobs and the same quantity, on
the half of the record that it was not fitted to. An effect that is smaller than that is not told.

Nobody knows how users would answer: they are taken to submit the same jobs at the same times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import ceil, exp, log
from statistics import fmean, median
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict, replace

from seatrial.errors import UsageError
from seatrial.lazy import Bools, Floats, Indices, Ints, np
from seatrial.plugins.usage.attributes import ATTRIBUTES, Context
from seatrial.plugins.usage.importing import gaps, minute
from seatrial.plugins.usage.jobs import NONE, Chosen, Jobs, read_jobs
from seatrial.plugins.usage.questions import matching, parse_condition
from seatrial.plugins.usage.replay import (
    BRIEF,
    COLUMNS,
    DAY,
    Asked,
    Fit,
    Load,
    Policy,
    Record,
    Unit,
    fitted,
    record_of,
    replays,
    size_classes,
    size_names,
)
from seatrial.plugins.usage.settings import machine_of
from seatrial.plugins.usage.simulation import UNFORESEEN, Closure
from seatrial.results.store import queries
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import Filters
from seatrial.units import count, listed, show_bytes

PolicyName = Literal["backfill", "priority", "queue"]
"""backfill: the order that was learned, with EASY; priority: that order, nobody overtakes; queue:
first come, first served, nobody overtakes."""

Quantity = Literal["median", "90 %", "mean"]
QUANTITIES: tuple[Quantity, ...] = ("median", "90 %", "mean")
_SHARES = (0.5, 0.9)


class Drain(NamedTuple):
    """A planned time in which nodes are closed, as everybody knows ahead; 0 nodes: all."""

    begin: int
    end: int
    nodes: int = 0


class Question(Struct, frozen=True, kw_only=True):
    """What is asked. Times are in s."""

    #: The machine whose jobs are moved, or that is changed.
    machine: str
    #: Conditions that all must hold of the jobs that are moved.
    move: tuple[str, ...] = ()
    #: The machine to which they are moved.
    to: str = ""
    #: How many times as fast they run there; None: by the runs of tests of their application.
    speed: float | None = None
    #: Nodes or cores that are added to the machine; negative: removed.
    add: int = 0
    add_unit: Unit = "nodes"
    policy: PolicyName | None = None
    drains: tuple[Drain, ...] = ()
    since: int = 0
    until: int = 0
    #: The sizes of machines, by name, where they are told.
    sizes: Mapping[str, int] = {}
    unit: Unit | None = None
    #: Conditions of the jobs that are a machine of their own, by the name of the machine.
    only: Mapping[str, tuple[str, ...]] = {}
    #: The files of machines, by name, where they are told.
    files: Mapping[str, str] = {}


# ---- answers -----------------------------------------------------------------------------------


class Off(Struct, frozen=True, kw_only=True):
    """A quantity of waits, as it was and replayed, in s."""

    actual: float
    replayed: float
    #: By how much the replay may be off, with 95 %; None if too few jobs tell it.
    error: float | None
    #: How much of that is an offset that more jobs would not make smaller.
    offset: float | None


class Effect(Off, frozen=True, kw_only=True):
    """The same with a change. What the replay cannot tell is None."""

    changed: float | None = None
    change: float | None = None
    low: float | None = None
    high: float | None = None
    #: Why no change is told, and what would be needed; "" where it is.
    reason: str = ""
    #: Whether it is sure that there is no change.
    none: bool = False


class Judged(Struct, frozen=True, kw_only=True):
    """Jobs of the second half, by which a replay is judged."""

    title: str
    jobs: int
    waits: Mapping[Quantity, Off]


class Group(Struct, frozen=True, kw_only=True):
    """Jobs whose waits are told with the change."""

    title: str
    machine: str
    jobs: int
    effects: Mapping[Quantity, Effect]


class Use(Struct, frozen=True, kw_only=True):
    """How much of a machine is in use, as shares of its units over the span."""

    machine: str
    unit: Unit
    before: int
    after: int
    actual: float
    replayed: float
    changed: float
    #: What the jobs of the span take with the change; above 1 the queue only grows.
    demand: float


class Calibration(Struct, frozen=True, kw_only=True):
    """How near the replay of a machine comes to what was, by size of jobs: the first is all."""

    machine: str
    unit: Unit
    units: int
    told_by: str
    policy: str
    jobs: int
    since: int
    until: int
    #: From when on jobs judge the replay, in s.
    half: int
    groups: Sequence[Judged]


class Moved(Struct, frozen=True, kw_only=True):
    """What is moved, in core-hours (node-hours where cores are not known)."""

    jobs: int
    hours_before: float
    hours_after: float
    unit: Unit


class Answer(Struct, frozen=True, kw_only=True):
    """What the change would do."""

    question: Question
    title: str
    calibrations: Sequence[Calibration]
    groups: Sequence[Group]
    use: Sequence[Use]
    moved: Moved | None
    remarks: Sequence[str]


# ---- quantities of waits -----------------------------------------------------------------------

RESAMPLES = 200
BINS = 300
SEED = 20100301
WEEK = 7 * DAY
MANY_DAYS = 112
"""From so many days on, weeks are drawn, else days."""
FEW_BLOCKS = 5
FEW_JOBS = 30
"""With fewer jobs or blocks it is not known how far the replay is off."""


class _Waits(NamedTuple):
    """Waits of jobs in one or more courses, shape (courses, n), and when the jobs were eligible."""

    seconds: Ints
    times: Ints

    def only(self, chosen: Bools) -> _Waits:
        return _Waits(self.seconds[:, chosen], self.times[chosen])


def quantities(seconds: Ints) -> Floats:
    """Return median, 90 % and mean over all courses, shape (3,)."""
    both = np.quantile(seconds, _SHARES, method="inverted_cdf")
    return np.array([*both, seconds.mean()])


class _Blocks:
    """Resamples of blocks of time, for waits of the same jobs: as many as there are, or ``drawn``
    for what is to be said of so many."""

    def __init__(self, times: Ints, length: int, drawn: int = 0) -> None:
        self.names, self.of_job = np.unique(times // length, return_inverse=True)
        rng = np.random.default_rng(SEED)
        number = len(self.names)
        share = np.full(number, 1 / number)
        self._drawn = rng.multinomial(drawn or number, share, RESAMPLES)

    def resampled(self, seconds: Ints) -> Floats:
        """Return the quantities of resamples, shape (RESAMPLES, 3): of blocks, which are the same
        for all waits of these jobs, and of courses."""
        courses, number = len(seconds), len(self.names)
        rng = np.random.default_rng([SEED, courses])
        of_courses = rng.multinomial(courses, np.full(courses, 1 / courses), RESAMPLES)
        weights = (
            (of_courses[:, :, None] * self._drawn[:, None, :]).reshape(RESAMPLES, -1).astype(float)
        )
        ranks = np.linspace(0, seconds.size - 1, BINS).astype(int)
        ends = np.unique(np.sort(seconds, axis=None)[ranks])
        cell = np.arange(courses)[:, None] * number + self.of_job
        place = cell * len(ends) + np.searchsorted(ends, seconds)
        shape = (courses * number, len(ends))
        histogram = np.bincount(place.ravel(), minlength=shape[0] * shape[1]).reshape(shape)
        sums = np.bincount(cell.ravel(), seconds.ravel().astype(float), minlength=shape[0])
        reached = np.cumsum(weights.astype(np.float32) @ histogram.astype(np.float32), axis=1)
        total = reached[:, -1]
        columns = [ends[(reached >= share * total[:, None]).argmax(axis=1)] for share in _SHARES]
        return np.stack([*columns, weights @ sums / total], axis=1).astype(float)


class _Error(NamedTuple):
    """By how much a replay may be off, and its offset, for each quantity; shape (3,)."""

    bound: Floats
    offset: Floats


def _error(actual: _Waits, replayed: _Waits, length: int, drawn: int = 0) -> _Error | None:
    """Return how far the replay is off for some jobs; None if they are too few. ``drawn``: for a
    time of so many blocks, in place of all."""
    if len(actual.times) < FEW_JOBS:
        return None
    blocks = _Blocks(actual.times, length, drawn)
    if len(blocks.names) < FEW_BLOCKS:
        return None
    offset = quantities(replayed.seconds) - quantities(actual.seconds)
    off = blocks.resampled(replayed.seconds) - blocks.resampled(actual.seconds)
    low, high = np.quantile(off, [0.025, 0.975], axis=0)
    return _Error(np.max(np.abs([low, high, offset]), axis=0), np.abs(offset))


def _off(actual: _Waits, replayed: _Waits, errors: Sequence[_Error | None]) -> dict[Quantity, Off]:
    """Return quantities as they were and replayed. ``errors``: of all replays that they rest on;
    they add."""
    was, again = quantities(actual.seconds).tolist(), quantities(replayed.seconds).tolist()
    known = [error for error in errors if error is not None]
    are_known = len(known) == len(errors)
    return {
        name: Off(
            actual=was[place],
            replayed=again[place],
            error=sum(float(each.bound[place]) for each in known) if are_known else None,
            offset=sum(float(each.offset[place]) for each in known) if are_known else None,
        )
        for place, name in enumerate(QUANTITIES)
    }


def _effects(
    off: Mapping[Quantity, Off], before: _Waits, after: _Waits, length: int, as_it_was: bool
) -> dict[Quantity, Effect]:
    """Return what a change does to quantities, where that is larger than the replay's error.
    ``as_it_was``: what is asked for is how the machine is replayed already."""
    blocks = _Blocks(before.times, length)
    drawn = blocks.resampled(after.seconds) - blocks.resampled(before.seconds)
    ends = np.quantile(drawn, [0.025, 0.975], axis=0).T.tolist()
    same = bool((before.seconds == after.seconds).all())
    found: dict[Quantity, Effect] = {}
    for name, changed, (low, high) in zip(
        QUANTITIES, quantities(after.seconds).tolist(), ends, strict=True
    ):
        was = off[name]
        if as_it_was or (same and was.error is not None and was.error < BRIEF):
            reason = AS_IT_WAS if as_it_was else "no job starts at another time"
            found[name] = Effect(**asdict(was), reason=reason, none=True)
            continue
        change = changed - was.replayed
        low, high = min(low, change), max(high, change)
        reason = _not_told(was, change, (low, high), len(blocks.names), length)
        effect = Effect(**asdict(was), reason=reason)
        if not reason:
            effect = replace(effect, changed=changed, change=change, low=low, high=high)
        found[name] = effect
    return found


AS_IT_WAS = "the replay of what was starts its jobs like this already"


def _not_told(
    effect: Off, change: float, ends: tuple[float, float], blocks: int, length: int
) -> str:
    """Return why a change is not told, and what would be needed; "" if it is told."""
    if effect.error is None or effect.offset is None:
        return (
            f"how far the replay is off is not known: the second half has fewer than {FEW_JOBS} "
            f"such jobs or {FEW_BLOCKS} {_block_name(length)}s with them; take a longer time"
        )
    if abs(change) > effect.error:
        if ends[0] > 0 or ends[1] < 0:
            return ""
        return "its interval takes in 0; take a longer time"
    if abs(change) <= effect.offset:
        return (
            "it is smaller than the replay's own error, most of which more jobs would not lessen: "
            "the batch system goes by something that its records do not tell"
        )
    chance = (effect.error - effect.offset) / (abs(change) - effect.offset)
    return (
        "it is smaller than the replay's own error; about "
        f"{ceil(blocks * chance**2)} {_block_name(length)}s of jobs like these might tell it, "
        f"{blocks} are there"
    )


def _block_name(length: int) -> str:
    return "week" if length == WEEK else "day"


# ---- sides -------------------------------------------------------------------------------------

MOST_COURSES = 16
LEAST_COURSES = 4
STARTS = 600_000
"""Jobs that are started in all courses of a replay, about."""


class _Side(NamedTuple):
    """A machine, with the replay of what was: starts of shape (courses, n)."""

    record: Record
    fit: Fit
    starts: Ints

    @property
    def times(self) -> Ints:
        return self.record.load.work.eligible

    @property
    def late(self) -> Bools:
        """Which jobs judge the replay: those of the half that it was not fitted to."""
        are: Bools = self.times >= self.fit.half
        return are

    def waits(self, chosen: Bools, starts: Ints | None = None) -> _Waits:
        """Return waits of jobs, of the replay of what was or of other starts."""
        given = self.starts if starts is None else starts
        return _Waits(given - self.times, self.times).only(chosen)

    def actual(self, chosen: Bools) -> _Waits:
        return self.waits(chosen, self.record.starts[None, :])

    def error(self, chosen: Bools, length: int, drawn: int = 0) -> _Error | None:
        """Return how far the replay is off, by jobs of the second half."""
        those = chosen & self.record.counted & self.late
        return _error(self.actual(those), self.waits(those), length, drawn)


def _sides(store: Store, question: Question, context: Context) -> list[_Side]:
    """Return the machine of a question, and the one to which jobs are moved."""
    names = [question.machine, *([question.to] if question.to else [])]
    jobs = {name: _jobs(store, question, name, context) for name in names}
    spans = {name: _span(found) for name, found in jobs.items()}
    since = max([question.since, *(first for first, _ in spans.values())])
    until = min([question.until or spans[names[0]][1], *(last for _, last in spans.values())])
    if since >= until:
        raise UsageError(
            f"the jobs of {' and '.join(names)} are of different times; import those of the same"
        )
    records = []
    for name, found in jobs.items():
        submitted, ended = found.numbers["submitted"], found.numbers["ended"]
        there = (submitted < until) & ((ended == NONE) | (ended >= since))
        records.append(record_of(found.only(there), name, since, until, _asked(question, name)))
    most = max(len(record.starts) for record in records)
    courses = min(MOST_COURSES, max(LEAST_COURSES, STARTS // most))
    fits = [fitted(record) for record in records]
    return [
        _Side(record, fit, replays(record.load, fit.policy, courses))
        for record, fit in zip(records, fits, strict=True)
    ]


def _jobs(store: Store, question: Question, machine: str, context: Context) -> Jobs:
    """Return the jobs of a machine, or of the part of it that is asked for. Raises UsageError if
    there are none."""
    only = question.only.get(machine, ())
    conditions = [parse_condition(text, ONLY) for text in only]
    conditions += [parse_condition(text, MOVE) for text in question.move]
    columns = {*COLUMNS}
    for condition in conditions:
        columns |= ATTRIBUTES[condition.attribute].columns(context)
    chosen = Chosen(machine=machine, since=question.since, until=question.until)
    jobs = read_jobs(store, chosen, columns)
    if not len(jobs):
        raise UsageError(
            f"{machine}: no jobs are known in this time; `seatrial usage import` brings them in"
        )
    jobs = jobs.only(matching(jobs, only, context, ONLY))
    if not len(jobs):
        raise UsageError(f"{ONLY}: no job of {machine} in this time has {' and '.join(only)}")
    return jobs


def _asked(question: Question, machine: str) -> Asked:
    """Return what people say of a machine."""
    only = [parse_condition(text, ONLY) for text in question.only.get(machine, ())]
    partitions = [name for each in only if each.attribute == "queue" for name in each.values]
    return Asked(
        size=question.sizes.get(machine, 0),
        unit=question.unit,
        site=machine_of(question.files.get(machine, machine)),
        is_part=bool(only),
        partitions=tuple(partitions),
    )


ONLY = "--only"
MOVE = "--move"


def _span(jobs: Jobs) -> tuple[int, int]:
    """Return the first submission, and the last time that is known. No job is known later than its
    record was asked for, whatever that says."""
    asked = jobs.numbers["asked"]
    times = np.max([jobs.numbers[name] for name in ("submitted", "started", "ended")], axis=0)
    last = int(np.where(asked > 0, np.minimum(times, asked), times).max())
    return int(jobs.numbers["submitted"].min()), last + 1


# ---- changes of one machine --------------------------------------------------------------------


def _changed_policy(question: Question, side: _Side) -> Policy:
    record, policy = side.record, side.fit.policy
    add = _in_units(question.add, question.add_unit, record)
    policy = replace(policy, total=policy.total + add)
    if policy.total < 1:
        raise UsageError(
            f"--add: {record.machine} has {side.fit.policy.total} {record.unit}; {-add} less leave "
            "none"
        )
    if question.policy == "backfill":
        return replace(policy, backfill="easy")
    if question.policy == "priority":
        return replace(policy, backfill="none")
    if question.policy == "queue":
        return replace(policy, backfill="none", by="", boosts=())
    return policy


def _in_units(number: int, unit: Unit, record: Record) -> int:
    """Return nodes or cores in the units of a machine. Raises UsageError where that is not
    known."""
    if not number or unit == record.unit:
        return number
    if not record.per_node:
        raise UsageError(
            f"{record.machine}: nobody says how many cores a node has; give a machine file, or "
            f"{record.unit}=NUMBER"
        )
    if unit == "nodes":
        return number * record.per_node
    if number % record.per_node:
        raise UsageError(
            f"--add cores={number}: are no whole nodes of {record.per_node} cores; "
            f"{record.machine} is counted in nodes"
        )
    return number // record.per_node


def with_drains(closures: Sequence[Closure], drains: Sequence[Closure]) -> tuple[Closure, ...]:
    """Return closures and drains as closures that do not overlap: there their units add."""
    both = [*closures, *drains]
    edges = sorted({edge for each in both for edge in (each.begin, each.end)})
    found = []
    for begin, end in pairwise(edges):
        units = [each.units for each in both if each.begin <= begin < each.end]
        if units:
            closed = UNFORESEEN if UNFORESEEN in units else sum(units)
            found.append(Closure(begin, end, closed))
    return tuple(found)


def _drained(question: Question, side: _Side, total: int) -> tuple[Closure, ...]:
    """Return the closures of a machine with the drains that are asked for."""
    record = side.record
    drains = []
    for drain in question.drains:
        if drain.end <= record.since or drain.begin >= record.until:
            raise UsageError(
                "--drain: is outside of the time that is replayed; see --since and --until"
            )
        nodes = _in_units(drain.nodes, "nodes", record)
        if nodes > total:
            raise UsageError(f"--drain: {drain.nodes} nodes are more than {record.machine} has")
        drains.append(Closure(drain.begin, drain.end, nodes or total))
    closures = with_drains(record.load.work.closures, drains)
    return tuple(each._replace(units=min(each.units, total)) for each in closures)


class _Change(NamedTuple):
    """A machine as it would be: its load, its policy, and starts of shape (courses, n) for all of
    its jobs; NONE for those that it does not start."""

    policy: Policy
    starts: Ints


def _restarted(side: _Side, stays: Bools, policy: Policy, closures: tuple[Closure, ...]) -> _Change:
    """Return the machine with its jobs that stay."""
    load = side.record.load.only(stays)
    load = replace(load, work=replace(load.work, closures=closures))
    starts = np.full_like(side.starts, NONE)
    starts[:, stays] = replays(load, policy, len(starts))
    return _Change(policy, starts)


# ---- jobs that are moved -----------------------------------------------------------------------


class _Speed(NamedTuple):
    """How many times as fast jobs run on another machine, and who says so."""

    factor: float
    told_by: str


def _speed_by_runs(store: Store, application: str, here: str, there: str) -> _Speed | None:
    """Return the geometric mean, over the cases of an application that passed on both machines, of
    how many times as fast they ran there: by medians of the best toolchain. None if no case ran on
    both."""
    of_machine = [_medians(store, application, machine) for machine in (here, there)]
    both = sorted(of_machine[0].keys() & of_machine[1].keys())
    if not both:
        return None
    logs = [log(of_machine[0][case] / of_machine[1][case]) for case in both]
    factor = exp(fmean(logs))
    return _Speed(
        factor,
        f"they run {factor:.3g} times as fast on {there}, by {count(len(both), 'case')} of "
        f"{application} that passed on both machines ({listed(both, 3)}); --speed says otherwise",
    )


def _medians(store: Store, application: str, machine: str) -> dict[str, float]:
    """Return the median time of each case of an application, of the best toolchain, in s."""
    times: dict[str, dict[str, list[float]]] = {}
    for run in queries.runs(store, Filters(machine=machine)):
        if (run.machine, run.app.lower()) != (machine, application.lower()):
            continue
        if run.code in queries.MEASURED and run.elapsed and not run.again:
            case = run.case_name.partition("@")[0]
            times.setdefault(case, {}).setdefault(run.toolchain, []).append(run.elapsed)
    return {case: min(map(median, by_name.values())) for case, by_name in times.items()}


def _speed(store: Store, question: Question) -> _Speed:
    """Return the speed that is asked for; else that of runs of the one application that is moved;
    else 1."""
    there = question.to
    if question.speed is not None:
        return _Speed(question.speed, f"they run {question.speed:g} times as fast on {there}")
    moved = [parse_condition(text, MOVE) for text in question.move]
    names = [name for each in moved if each.attribute == "application" for name in each.values]
    if len(names) == 1 and not any(each.negated for each in moved):
        found = _speed_by_runs(store, names[0], question.machine, there)
        if found is not None:
            return found
    return _Speed(
        1.0,
        f"they are taken to run as long on {there}: no test of theirs ran on both machines; "
        "--speed says otherwise",
    )


def _movable(question: Question, side: _Side, context: Context) -> Bools:
    """Return the jobs that are to be moved. Raises UsageError if there are none."""
    record = side.record
    chosen = matching(record.jobs, question.move, context, MOVE) & record.counted
    if not chosen.any():
        words = " and ".join(question.move)
        raise UsageError(
            f"--move: no job of {record.machine} that started in this time has {words}"
        )
    return chosen


def _on_target(speed: float, source: _Side, target: _Side, chosen: Bools) -> Load:
    """Return the jobs as they would be on the other machine: as many cores on its nodes, and times
    by the speed. They go to the queue that most of its jobs of the size use."""
    there, here = target.record, source.record
    work = here.load.work.only(chosen)
    units = _converted(work.units, here, there)
    run = np.ceil(work.run / speed).astype(np.int64)
    limit = np.maximum(np.ceil(work.limit / speed).astype(np.int64), np.maximum(run, 1))
    sizes = size_classes(units, there.size.units)
    return Load(
        replace(work, units=units, run=run, limit=limit),
        np.zeros(len(units), dtype=bool),
        _usual_queues(there)[sizes],
        sizes,
        here.load.number[chosen] + _APART,
    )


_APART = 1 << 40
"""Between the numbers of jobs of two machines."""


def _converted(units: Ints, here: Record, there: Record) -> Ints:
    """Return the units on another machine for as many cores."""
    if here.unit == there.unit == "cores":
        return units
    if not here.per_node or not there.per_node:
        if here.unit == there.unit:
            return units
        raise UsageError(
            f"{here.machine} is counted in {here.unit}, {there.machine} in {there.unit}, and "
            "nobody says how many cores a node has; give machine files, or --unit"
        )
    cores = units * here.per_node if here.unit == "nodes" else units
    return cores if there.unit == "cores" else -(-cores // there.per_node)


def _usual_queues(record: Record) -> Indices:
    """Return the queue that most jobs of each size use."""
    load = record.load
    counts = np.zeros((int(load.size.max()) + 1, len(record.queues)), dtype=np.int64)
    np.add.at(counts, (load.size, load.queue), 1)
    overall = counts.sum(axis=0).argmax()
    usual = np.full(len(size_names(record.size.units, "")), overall)
    there = counts.sum(axis=1) > 0
    usual[: len(counts)][there] = counts[there].argmax(axis=1)
    return usual


# ---- the answer --------------------------------------------------------------------------------


def what_if(store: Store, question: Question, context: Context) -> Answer:
    """Return what a change would do. ``context``: what tells the jobs that are moved. Raises
    UsageError for what cannot be asked."""
    sides = _sides(store, question, context)
    length = _block_length(sides[0].record)
    remarks = [text for side in sides for text in _missing(store, side.record)]
    remarks += [f"{side.record.machine}: {text}" for side in sides for text in side.record.remarks]
    if not question.to:
        return _on_its_own(question, sides[0], remarks, length)
    chosen = _movable(question, sides[0], context)
    speed = _speed(store, question)
    remarks.append(speed.told_by)
    coming = _on_target(speed.factor, sides[0], sides[1], chosen)
    return _moved(question, sides[0], sides[1], (chosen, coming), remarks, length)


def _missing(store: Store, record: Record) -> list[str]:
    """Return what was not imported of the time that is replayed."""
    found = gaps(store, record.machine, record.since, record.until)
    more = [f"{record.machine}: and {len(found) - MAX_GAPS} more gaps"] if found[MAX_GAPS:] else []
    return [gap.sentence for gap in found[:MAX_GAPS]] + more


MAX_GAPS = 5


def _block_length(record: Record) -> int:
    return WEEK if record.until - record.since >= MANY_DAYS * DAY else DAY


def _on_its_own(question: Question, side: _Side, remarks: list[str], length: int) -> Answer:
    """Return what a change of one machine would do."""
    record = side.record
    policy = _changed_policy(question, side)
    stays = record.load.work.units <= policy.total
    remarks += _unfit(record, ~stays, side, policy.total, "they do not run with the change")
    change = _restarted(side, stays, policy, _drained(question, side, policy.total))
    counted = record.counted & stays
    as_it_was = policy == side.fit.policy and not question.drains
    groups = list(_around_drains(question, side, counted, change.starts))
    for title, chosen in _by_size(record, counted):
        errors = [side.error(chosen, length)]
        groups.append(_group(title, side, chosen, change.starts, errors, length, as_it_was))
    return Answer(
        question=question,
        title=_title(question, 0),
        calibrations=[_calibration(side, length)],
        groups=groups,
        use=[_use(side, change.starts, policy.total)],
        moved=None,
        remarks=remarks,
    )


AFTERWARDS = 2
"""So many times its length a drain is felt after its end, at most."""


def _around_drains(
    question: Question, side: _Side, counted: Bools, starts: Ints
) -> Iterator[Group]:
    """Yield the jobs that a drain may hold up: those that are eligible at most a usual time limit
    before it, in it, or for some time afterwards. How far the replay is off is told of so many days
    of the second half."""
    if not question.drains:
        return
    work = side.record.load.work
    ahead = int(np.quantile(work.limit, 0.9))
    felt = np.zeros(len(work.limit), dtype=bool)
    for drain in question.drains:
        last = drain.end + AFTERWARDS * (drain.end - drain.begin)
        felt |= (side.times >= drain.begin - ahead) & (side.times < last)
    chosen = counted & felt
    if chosen.any():
        days = len(np.unique(side.times[chosen] // DAY))
        error = side.error(counted, DAY, drawn=days)
        yield _group("jobs that the outage may hold up", side, chosen, starts, [error], DAY)


def _by_size(record: Record, counted: Bools) -> Iterator[tuple[str, Bools]]:
    """Yield all jobs, and those of each size that has enough."""
    yield "all jobs", counted
    for place, name in enumerate(size_names(record.size.units, record.unit)):
        chosen = counted & (record.load.size == place)
        if FEW_JOBS <= chosen.sum() < counted.sum():
            yield f"jobs of {name}", chosen


def _group(
    title: str,
    side: _Side,
    chosen: Bools,
    starts: Ints,
    errors: Sequence[_Error | None],
    length: int,
    as_it_was: bool = False,
) -> Group:
    before = side.waits(chosen)
    off = _off(side.actual(chosen), before, errors)
    return Group(
        title=title,
        machine=side.record.machine,
        jobs=int(chosen.sum()),
        effects=_effects(off, before, side.waits(chosen, starts), length, as_it_was),
    )


def _moved(
    question: Question,
    source: _Side,
    target: _Side,
    move: tuple[Bools, Load],
    remarks: list[str],
    length: int,
) -> Answer:
    """Return what it would do to move jobs from one machine to another. ``move``: which of the
    first one's jobs, and what they are on the second one."""
    chosen, coming = move
    here, there = source.record, target.record
    fits = coming.work.units <= target.fit.policy.total
    unfit = np.zeros(len(chosen), dtype=bool)
    unfit[np.flatnonzero(chosen)[~fits]] = True
    remarks += _unfit(here, unfit, target, target.fit.policy.total, "they stay where they are")
    chosen, coming = chosen & ~unfit, coming.only(fits)
    if not chosen.any():
        raise UsageError(f"--move: none of these jobs fits {there.machine}")
    remarks += _beside(source, target, coming)
    policy = _changed_policy(question, source)
    stays = ~chosen & (here.load.work.units <= policy.total)
    left = _restarted(source, stays, policy, _drained(question, source, policy.total))
    both = replays(there.load.joined(coming), target.fit.policy, len(source.starts))
    own, of_moved = np.split(both, [len(there.starts)], axis=1)
    starts = left.starts.copy()
    starts[:, chosen] = of_moved
    others = here.counted & stays
    like = _like(target, coming.work.units)
    groups = [
        _group(
            "the moved jobs",
            source,
            chosen,
            starts,
            [source.error(chosen, length), target.error(like, length)],
            length,
        )
    ]
    if others.any():
        errors = [source.error(others, length)]
        groups.append(
            _group(f"other jobs of {here.machine}", source, others, starts, errors, length)
        )
    errors = [target.error(there.counted, length)]
    title = f"jobs of {there.machine}"
    groups.append(_group(title, target, there.counted, own, errors, length))
    return Answer(
        question=question,
        title=_title(question, int(chosen.sum())),
        calibrations=[_calibration(side, length) for side in (source, target)],
        groups=groups,
        use=[
            _use(source, left.starts, policy.total),
            _use(target, own, target.fit.policy.total, (coming, of_moved)),
        ],
        moved=_hours(source, target, chosen, coming),
        remarks=remarks,
    )


def _like(target: _Side, units: Ints) -> Bools:
    """Return the jobs of the target that are as large as those that come; all if these are few."""
    low, high = np.quantile(units, [0.05, 0.95])
    own = target.record.load.work.units
    like = target.record.counted & (own >= low) & (own <= high)
    return like if (like & target.late).sum() >= FEW_JOBS else target.record.counted


def _unfit(here: Record, unfit: Bools, there: _Side, total: int, what: str) -> Iterator[str]:
    """Yield which jobs are larger than a machine, and what becomes of them."""
    if unfit.any():
        jobs = here.jobs.words["job"].only(unfit).texts()
        needs = "needs" if len(jobs) == 1 else "need"
        yield (
            f"{count(len(jobs), 'job')} {needs} more than the {total:,} {there.record.unit} of "
            f"{there.record.machine}: {what}: {listed(jobs, 5)}"
        )


def _beside(source: _Side, target: _Side, coming: Load) -> Iterator[str]:
    """Yield what is assumed of jobs on another machine, and what speaks against it."""
    here, there = source.record, target.record
    if here.per_node and there.per_node and here.per_node != there.per_node:
        yield (
            f"the moved jobs have as many cores on {there.machine}, whose nodes have "
            f"{there.per_node} for {here.per_node}"
        )
    memory = [_memory_of_core(record) for record in (here, there)]
    if memory[0] and memory[1] and memory[1] < memory[0]:
        yield (
            f"a core of {there.machine} has {show_bytes(memory[1])} of memory, one of "
            f"{here.machine} {show_bytes(memory[0])}; how much the jobs use is not recorded, so "
            "some might need more nodes"
        )
    longest = int(there.load.work.limit.max())
    if beyond := int((coming.work.limit > longest).sum()):
        yield (
            f"{count(beyond, 'moved job')} asked for more time than any job of {there.machine}: "
            "its queues may not take them"
        )


def _memory_of_core(record: Record) -> float:
    """Return the least memory of a core, in bytes; 0 if no file says it."""
    groups = record.asked.nodes()
    return min((group.memory.bytes / group.cores for group in groups), default=0.0)


def _calibration(side: _Side, length: int) -> Calibration:
    record = side.record
    groups = [
        Judged(
            title=title,
            jobs=int(chosen.sum()),
            waits=_off(side.actual(chosen), side.waits(chosen), [side.error(chosen, length)]),
        )
        for title, chosen in _by_size(record, record.counted & side.late)
    ]
    return Calibration(
        machine=record.machine,
        unit=record.unit,
        units=side.fit.policy.total,
        told_by=record.size.told_by
        if side.fit.policy.total == record.size.units
        else "the most in use at once",
        policy=side.fit.policy.words,
        jobs=int(record.counted.sum()),
        since=record.since,
        until=record.until,
        half=side.fit.half,
        groups=groups,
    )


def _use(side: _Side, starts: Ints, total: int, more: tuple[Load, Ints] | None = None) -> Use:
    """Return the use of a machine; ``more``: jobs that come to it, with their starts."""
    record = side.record
    before = side.fit.policy.total
    span = record.until - record.since
    started = (starts != NONE).all(axis=0)
    changed, demand = _held(record.load, starts, record), _taken(record.load.only(started), record)
    if more is not None:
        changed, demand = changed + _held(*more, record), demand + _taken(more[0], record)
    return Use(
        machine=record.machine,
        unit=record.unit,
        before=before,
        after=total,
        actual=_held(record.load, record.starts[None, :], record) / (before * span),
        replayed=_held(record.load, side.starts, record) / (before * span),
        changed=changed / (total * span),
        demand=demand / (total * span),
    )


def _taken(load: Load, record: Record) -> float:
    """Return the unit-seconds of the jobs that are eligible within the span."""
    work = load.work
    inside = (work.eligible >= record.since) & (work.eligible < record.until)
    return float((work.units * work.run)[inside].sum())


def _held(load: Load, starts: Ints, record: Record) -> float:
    """Return the unit-seconds that jobs hold within the span, as a mean over courses."""
    ends = np.minimum(starts + load.work.run, record.until)
    seconds = np.maximum(ends - np.maximum(starts, record.since), 0)
    held = np.where(starts == NONE, 0, seconds * load.work.units)
    return float(held.sum()) / len(starts)


def _hours(source: _Side, target: _Side, chosen: Bools, coming: Load) -> Moved:
    """Return the hours of the moved jobs on both machines."""
    here, there = source.record, target.record
    cores = all(each.unit == "cores" or each.per_node for each in (here, there))

    def hours(record: Record, load: Load) -> float:
        factor = record.per_node if cores and record.unit == "nodes" else 1
        return float((load.work.units * load.work.run).sum()) * factor / 3600

    return Moved(
        jobs=int(chosen.sum()),
        hours_before=hours(here, here.load.only(chosen)),
        hours_after=hours(there, coming),
        unit="cores" if cores else "nodes",
    )


def _title(question: Question, moved: int) -> str:
    """Return the question in words."""
    parts = []
    if question.to:
        words = " and ".join(question.move)
        parts.append(
            f"{count(moved, 'job')} with {words} went from {question.machine} to {question.to}"
        )
    if question.add:
        verb = "more" if question.add > 0 else "less"
        parts.append(f"{question.machine} had {abs(question.add)} {question.add_unit} {verb}")
    if question.policy:
        parts.append(f"{question.machine} started jobs by {question.policy}")
    for drain in question.drains:
        nodes = count(drain.nodes, "node") if drain.nodes else "all nodes"
        begin, end = minute(drain.begin), minute(drain.end)
        parts.append(f"{nodes} of {question.machine} were drained from {begin} to {end}")
    return "What if " + ", and ".join(parts) + "?"
