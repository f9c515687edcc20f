"""Stops of a drill: the longest time without a good operation, the time to the first good one.

That line is what ``seatrial parse --list`` tells of the format. Here is all of a run that is a
drill: what its job does beside the load, and what its log tells of stops.

The script ``job.drill`` is bash on the first node, as nothing else is certain to be there. What it
sees goes to ``drill.log``, whose lines ``drill.sh`` describes:

    1795957761669086 begin 4 1000000 2000000 120000000
    1795957761669386 probe write begin
    1795957761679386 probe write end 0
    1795957771669386 act begin

A stop of a probe begins with the first operation that failed or took longer than ``slow``, and ends
with the end of the first good one, or of the slow one that went well. So it is right to within the
time between two looks. The load tells its own longest time between two good operations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from seatrial.escaping import shell_word
from seatrial.execute.environment import exports, write_script
from seatrial.execute.script import JobLines
from seatrial.files import make_folder
from seatrial.hooks import value_of
from seatrial.judge.reading import Unreadable, read_text
from seatrial.model.documents import Location
from seatrial.model.figures import MetricValue, shown
from seatrial.model.file_model import Duration
from seatrial.model.machine import Machine
from seatrial.model.test import Case, Test, TestFile
from seatrial.plugins.drills.keys import LOAD, Drill
from seatrial.units import listed, seconds, show_seconds

_SCRIPT = "job.drill"

# The load learns by DRILL_STOP that it is to end. Where the drill itself is killed, its way back is
# still done; signals are for the drill, which ends by them.
_BEFORE = """\
export DRILL_LOG="$_run/drill.log" DRILL_STOP="$_run/drill.stop"
(
  trap : TERM INT HUP
  bash "$_run/job.drill/run.sh"
  [ -e "$DRILL_STOP" ] || bash "$_run/job.drill/run.sh" back
) < /dev/null > "$_run/drill.out" 2>&1 &
_drill=$!
"""
_AFTER = """\
: > "$_run/drill.load_ended"
wait "$_drill"
"""


def drill_of(test: TestFile) -> Drill | None:
    """Return the drill that a test is; None for any other test."""
    drill = getattr(test, "drill")  # noqa: B009 - a key of this plug-in
    return drill if isinstance(drill, Drill) else None


def _faults_of_bounds(test: TestFile, drill: Drill) -> Iterator[str]:
    """Yield what is wrong with the checks that bound how long something may stop."""
    bounds = [each for one in test.verify if (each := getattr(one, "drill", None)) is not None]
    if not bounds:
        known = ", ".join(f"{name}: 30s" for name in drill.watch)
        yield f"nothing judges it: say `verify: [{{drill: {{{known}}}}}]`"
    for name in dict.fromkeys(name for each in bounds for name in each):
        if name not in (LOAD, *drill.watch):
            known = ", ".join((*drill.watch, LOAD))
            yield f"verify bounds the stops of {name}, which it does not watch; it has {known}"


def check(test: TestFile, at: Location) -> None:
    """Add the faults of a drill: it needs consent, a check that judges it, and time."""
    drill = drill_of(test)
    if drill is None or at.faulty.shapes:
        return
    if not test.harmful:
        at.fault("it stops something: say `harmful: true`, so that it needs the consent of people")
    if not drill.watch:
        at.fault("has no probe; say e.g. `watch: {there: stat /scratch/file}`", "watch")
    for fault in _faults_of_bounds(test, drill):
        at.fault(fault)
    if drill.quiet.seconds >= drill.give_up.seconds:
        at.fault(
            f"quiet {drill.quiet} is not less than give_up {drill.give_up}: it would never end"
        )
    try:
        walltime = seconds(test.run.walltime)
    except ValueError:
        return  # an expression: job.drill itself asks before it acts
    if walltime <= drill.longest:
        at.fault(
            f"run.walltime {test.run.walltime} may end it before everything is back: it can take "
            f"{show_seconds(drill.longest)}; say more, or less of give_up and act_limit"
        )


def lines(machine: Machine, test: Test, case: Case) -> JobLines:
    """Return what a drill adds to the job script of a case; nothing for other tests."""
    if drill_of(test) is None:
        return JobLines()
    drills = value_of(machine, "drills", dict)
    return JobLines(before=exports(drills.get(test.name, {})) + _BEFORE, after=_AFTER)


def prepare(machine: Machine, test: Test, case: Case, run: Path) -> None:
    """Write the scripts of a drill into the directory of its run; nothing for other tests. Raises
    OSError."""
    drill = drill_of(test)
    if drill is None:
        return
    folder = run / _SCRIPT
    make_folder(folder / "watch")
    for name, text in {"act": drill.act, "undo": drill.undo}.items():
        write_script(folder / name, text.rstrip("\n") + "\n")
    for name, text in drill.watch.items():
        write_script(folder / "watch" / name, text.rstrip("\n") + "\n")
    script = Path(__file__).with_name("drill.sh").read_text()
    write_script(folder / "run.sh", f"#!/bin/bash\n{_numbers(drill)}\n{script}")


def _numbers(drill: Drill) -> str:
    """Return bash that sets the times of a drill, in us, and in s where timeout(1) has them."""
    us = ("every", "slow", "before", "quiet", "give_up")
    words = [f"{name}={round(getattr(drill, name).seconds * 1e6)}" for name in us]
    words.append(f"longest={round(drill.longest * 1e6)}")
    return " ".join([*words, f"act_limit={shell_word(str(drill.act_limit.seconds))}"])


# ---- the log -------------------------------------------------------------------------------------


FILE = "drill.log"
LIMIT = 64 << 20

_ENDED = (124, 137)  # exit codes of timeout(1) where it ended what hung
_DONE = "done"
_US = 1e-6


class _Operation(NamedTuple):
    """One look of a probe, or the act, or its undoing: us; None where it has no end."""

    begin: int
    end: int | None
    code: int | None


class _Load(Struct, frozen=True):
    """What a task of the load says: us."""

    longest: int
    at: int
    lost: int


class _Stop(Struct, frozen=True):
    """A time without a good operation: us. ``over`` is False where no good one came."""

    begin: int
    end: int
    over: bool

    @property
    def seconds(self) -> float:
        return (self.end - self.begin) * _US


class _Log(Struct, frozen=True):
    """A log: its operations by probe, act and undo, and what the load says; ``tasks`` those of the
    run; ``every``, ``slow`` and ``act_limit`` as the test has them (us); ``last``: the time of its
    last line, and ``reason`` that of its end, "" where it has none."""

    tasks: int
    every: int
    slow: int
    act_limit: int
    probes: Mapping[str, Sequence[_Operation]]
    acts: Mapping[str, _Operation]
    loads: Sequence[_Load]
    last: int
    reason: str

    def stops(self) -> dict[str, list[_Stop]]:
        """Return the stops of each probe, and of the load as a whole: the longest of its tasks."""
        stops = {name: list(self._stops(each)) for name, each in self.probes.items()}
        if self.loads:
            stops[LOAD] = [_Stop(one.at, one.at + one.longest, True) for one in self.loads]
        return stops

    def _stops(self, operations: Iterable[_Operation]) -> Iterator[_Stop]:
        began: int | None = None
        for begin, end, code in operations:
            start = begin if began is None else began
            if end is None and self.last - begin <= self.slow:
                continue  # it may still go well
            if end is None or code != 0:
                began = start
            elif began is not None or end - begin > self.slow:
                yield _Stop(start, end, True)
                began = None
        if began is not None:
            yield _Stop(began, self.last, False)

    def unwatched(self) -> Iterator[tuple[str, float]]:
        """Yield the longest time (s) for which each probe did not look, if it is too long."""
        for name, operations in self.probes.items():
            ends = [each.end or self.last for each in operations]
            gaps = [each.begin - end for end, each in zip(ends, operations[1:], strict=False)]
            gaps.append(self.last - ends[-1])
            if max(gaps) > 2 * self.every + self.slow:
                yield name, max(gaps) * _US


def parse(text: str) -> list[MetricValue]:
    """Return longest_stop and first_good (s, from the beginning of the act; 0 where nothing
    stopped), each with the label probe. Raises ValueError with the reason where nothing was done,
    or the log is not whole."""
    log = _log_of(text)
    if (act := log.acts.get("act")) is None:
        raise ValueError(f"the drill did nothing: {log.reason or 'it did not come to its end'}")
    figures = []
    for name, stops in log.stops().items():
        after = [stop.end for stop in stops if stop.end > act.begin and stop.over]
        first = max(0.0, (min(after) - act.begin) * _US) if after else 0.0
        labels: dict[str, int | str] = {"probe": name}
        figures.append(MetricValue("longest_stop", _longest(stops), "s", "lower", labels=labels))
        figures.append(MetricValue("first_good", first, "s", "lower", labels=labels))
    return figures


def fault(bounds: Mapping[str, Duration], folder: Path, file: str) -> str:
    """Return what went wrong in a drill: that of its course, and stops beyond their bounds. "" if
    nothing did."""
    try:
        log = _log_of(read_text(folder, FILE, LIMIT))
    except Unreadable as error:
        return f"the drill left no record: {error}"
    except ValueError as error:
        return f"{FILE}: {error}"
    faults = [*_of_course(log), *_of_load(log, LOAD in bounds), *_of_stops(log.stops(), bounds)]
    return "; ".join(faults)


def _of_course(log: _Log) -> Iterator[str]:
    if log.reason != _DONE:
        yield f"the drill ended early: {log.reason or 'it was killed'}"
    yield from filter(None, (_of_act(name, each, log) for name, each in log.acts.items()))
    undo = log.acts.get("undo")
    if "act" in log.acts and (undo is None or undo.end is None):
        yield "the way back did not come to its end: do by hand what `undo` of its test.yaml says"
    for name, time in log.unwatched():
        yield f"{name} was not watched for {show_seconds(time)}, so no stop of it is known"


def _of_act(name: str, act: _Operation, log: _Log) -> str:
    """Return how an act, or its undoing, went wrong; "" if it did not."""
    took = (act.end or log.last) - act.begin
    if act.code in _ENDED and took >= log.act_limit:
        return f"{name} hung and was ended after {show_seconds(took * _US)}"
    return f"{name} ended with {act.code}" if act.code else ""


def _of_load(log: _Log, bounded: bool) -> Iterator[str]:
    if lost := sum(each.lost for each in log.loads):
        yield f"the load lost {lost} blocks that were written"
    if bounded and len(log.loads) != log.tasks:
        yield f"{len(log.loads)} of {log.tasks} tasks of the load told what they did"


def _of_stops(
    stops: Mapping[str, Sequence[_Stop]], bounds: Mapping[str, Duration]
) -> Iterator[str]:
    if gone := [name for name, each in stops.items() if not all(stop.over for stop in each)]:
        yield f"{listed(sorted(gone), 6)} did not come back"
    for name, bound in bounds.items():
        if name != LOAD and name not in stops:
            yield f"{name} was never watched"
        elif (longest := _longest(stops.get(name, ()))) > bound.seconds:
            yield f"{name} stopped for {show_seconds(longest)}, at most {bound} is allowed"


def _longest(stops: Iterable[_Stop]) -> float:
    """Return the longest of some stops, in s; 0 of none."""
    return max((stop.seconds for stop in stops), default=0.0)


def _log_of(text: str) -> _Log:
    """Read a log. Raises ValueError for one that is not whole."""
    lines = [line.split(" ") for line in text.splitlines()]
    operations: dict[str, dict[str, list[_Operation]]] = defaultdict(lambda: defaultdict(list))
    loads: list[_Load] = []
    reason, last = "", 0
    if not lines or lines[0][1:2] != ["begin"]:
        raise ValueError("it does not begin with a line begin")
    try:
        tasks, every, slow, act_limit = map(int, lines[0][2:])
        for words in lines:
            last = max(last, int(words[0]))
            match words[1:]:
                case ["begin", _, _, _, _]:
                    pass
                case ["probe", name, *event]:
                    _add(operations["probe"][name], int(words[0]), event)
                case ["act" | "undo" as name, *event]:
                    _add(operations["act"][name], int(words[0]), event)
                case ["load", _, _, longest, at, lost]:
                    loads.append(_Load(int(longest), int(at), int(lost)))
                case ["end", *rest]:
                    reason = " ".join(rest)
                case _:
                    raise ValueError("it is none that a drill writes")
    except (ValueError, IndexError) as error:
        raise ValueError(f"a line of it is not whole: {shown(' '.join(words))}: {error}") from None
    acts = {name: each[-1] for name, each in operations["act"].items()}
    probes = operations["probe"]
    return _Log(tasks, every, slow, act_limit, probes, acts, loads, last, reason)


def _add(operations: list[_Operation], time: int, event: Sequence[str]) -> None:
    """Add what a line says: that an operation began, or how the last one ended. Raises ValueError
    and IndexError for what no drill writes."""
    match event:
        case ["begin"]:
            operations.append(_Operation(time, None, None))
        case ["end", code]:
            operations[-1] = operations[-1]._replace(end=time, code=int(code))
        case _:
            raise ValueError("it is none that a drill writes")
