"""``seatrial usage whatif``: its options, and the answer as a page."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, get_args

from msgspec import to_builtins

from seatrial.cli import Folders
from seatrial.cli.query_common import opened, print_page
from seatrial.errors import UsageError
from seatrial.plugins.usage.attributes import context_of
from seatrial.plugins.usage.jobs import known_machines
from seatrial.plugins.usage.replay import Unit
from seatrial.plugins.usage.settings import name_of_machine
from seatrial.plugins.usage.simulation import program_or_reason
from seatrial.plugins.usage.whatif import (
    QUANTITIES,
    Answer,
    Calibration,
    Drain,
    Effect,
    Group,
    Moved,
    Quantity,
    Question,
    what_if,
)
from seatrial.show.page import Cell, Column, Items, Page, Section, Table, Text
from seatrial.units import SECOND_NS, in_per_cent, moment_of, show_seconds

# ---- options -----------------------------------------------------------------------------------


def parse_amount(text: str) -> tuple[Unit, int]:
    """Return what is added: ``nodes=1000``, ``cores=-240``."""
    for unit in get_args(Unit):
        found = re.fullmatch(rf"{unit}=([+-]?[0-9]{{1,9}})", text)
        if found and int(found[1]):
            return unit, int(found[1])
    raise ValueError(f"{text!r} is no number of nodes or cores; write e.g. nodes=1000, cores=-240")


def parse_drain(text: str) -> Drain:
    """Return a drain: ``2010-03-01..2010-03-04``, and ``,nodes=500`` for a part of the machine."""
    span, comma, part = text.partition(",")
    first, dots, last = span.partition("..")
    if not dots:
        raise ValueError(f"{text!r} is no span; write e.g. 2010-03-01..2010-03-04T12:00,nodes=500")
    begin, end = moment_of(first) // SECOND_NS, moment_of(last) // SECOND_NS
    if begin >= end:
        raise ValueError(f"{text!r}: its end is not after its begin")
    if not comma:
        return Drain(begin, end)
    unit, nodes = parse_amount(part)
    if unit != "nodes" or nodes < 1:
        raise ValueError(f"{text!r}: what is drained is nodes; write e.g. {span},nodes=500")
    return Drain(begin, end, nodes)


def parse_size(text: str) -> tuple[str, int]:
    """Return a size of a machine: ``hopper=6384``, or of the one that is asked about: ``6384``."""
    name, _, number = text.rpartition("=")
    if not re.fullmatch("[0-9]{1,9}", number) or not int(number):
        raise ValueError(f"{text!r} is no size; write e.g. 6384, or hopper=6384")
    return name, int(number)


def parse_speed(text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = math.nan
    if not 0.01 <= speed <= 100:
        raise ValueError(f"{text!r} is no factor between 0.01 and 100; write e.g. 1.3")
    return speed


def whatif(folders: Folders, /, form: str, **chosen: Any) -> int:
    """Do ``seatrial usage whatif``; return the exit code."""
    with opened(folders) as store:
        question = _question(chosen, known_machines(store))
        context = context_of(
            [name for name in (question.machine, question.to) if name],
            fields=chosen["fields"],
            applications=chosen["applications"],
        )
        answer = what_if(store, question, context)
    print_page(page_of(answer), form)
    return 0


def _question(chosen: dict[str, Any], known: Sequence[str]) -> Question:
    """Return the question of a command's options. Raises UsageError for what does not belong
    together. ``known``: the machines of which jobs are known."""
    to = name_of_machine(chosen["to"]) if chosen["to"] else ""
    machine = _machine(chosen["machine"], to, known)
    for name in filter(None, (machine, to)):
        if known and name not in known:
            raise UsageError(f"no jobs of {name} are known; there are some of {', '.join(known)}")
    _require_sense(chosen, machine, to)
    unit: Unit
    unit, add = chosen["add"] or ("nodes", 0)
    sizes: dict[str, int] = {}
    for name, size in chosen["sizes"]:
        sizes[_one_of(name or machine, machine, to, f"--size {name}={size}")] = size
    only: dict[str, tuple[str, ...]] = {}
    for text in chosen["only"]:
        name, condition = _part(text, machine)
        name = _one_of(name, machine, to, f"--only {text}")
        only[name] = (*only.get(name, ()), condition)
    return Question(
        machine=machine,
        move=chosen["move"],
        to=to,
        speed=chosen["speed"],
        add=add,
        add_unit=unit,
        policy=chosen["policy"],
        drains=chosen["drains"],
        since=chosen["since"] // SECOND_NS,
        until=chosen["until"] // SECOND_NS,
        sizes=sizes,
        unit=chosen["unit"],
        only=only,
        files={machine: chosen["machine"] or machine, to: chosen["to"]},
    )


def _require_sense(chosen: dict[str, Any], machine: str, to: str) -> None:
    """Raise UsageError for options that say nothing together."""
    if bool(chosen["move"]) != bool(to):
        raise UsageError("--move says which jobs go, --to where they go: give both, or none")
    if to == machine:
        raise UsageError(f"--to {to}: is the machine on which the jobs ran; name another one")
    if not (to or chosen["add"] or chosen["policy"] or chosen["drains"]):
        raise UsageError("nothing is changed; give --move and --to, --add, --policy or --drain")
    if chosen["speed"] is not None and not to:
        raise UsageError("--speed is of jobs that go to another machine; give --move and --to")
    if chosen["until"] and chosen["since"] >= chosen["until"]:
        raise UsageError("--since is not before --until; name an earlier time")


def _part(text: str, machine: str) -> tuple[str, str]:
    """Return the machine of a condition, and the condition: ``hopper:queue=regular``."""
    name, colon, condition = text.partition(":")
    return (name, condition) if colon and "=" not in name else (machine, text)


def _one_of(name: str, machine: str, to: str, option: str) -> str:
    """Return the name of a machine that is asked about. Raises UsageError for another one."""
    if name and name in (machine, to):
        return name
    others = f"{machine} and {to} are" if to else f"{machine} is"
    raise UsageError(f"{option}: {name!r} is not asked about, {others}")


def _machine(given: str, to: str, known: Sequence[str]) -> str:
    """Return the machine that is asked about: the one that is given, or the only one."""
    if given:
        return name_of_machine(given)
    others = [name for name in known if name != to]
    if not others:
        beside = f" beside those of {to}" if to else ""
        raise UsageError(f"no jobs are known{beside}; `seatrial usage import` brings them in")
    if len(others) > 1:
        raise UsageError(f"-m: name one of the machines with jobs: {', '.join(others)}")
    return others[0]


# ---- the page ----------------------------------------------------------------------------------

IN_WORDS: dict[Quantity, str] = {
    "median": "the median",
    "mean": "the mean",
    "90 %": "the wait that 90 % stay below",
}
"""Quantities in words, the one that is told first first."""


def page_of(answer: Answer) -> Page:
    """Return an answer as a page. What the replay cannot tell is on none of its media."""
    first = [Text(_off_by(each)) for each in answer.calibrations]
    return Page(
        answer.title,
        [
            Section(answer.title, [*first, *map(_calibration_table, answer.calibrations)]),
            Section("Waits", list(map(_waits_table, answer.groups))),
            Section("Machines", [_use_table(answer)]),
            Section("What this rests on", [Items(list(_remarks(answer)))]),
        ],
        summary=_summary(answer),
        records=partial(to_builtins, answer),
        lines=partial(_lines, answer),
    )


HARDLY = 0.5
LITTLE = (
    "The replay hardly shows what made jobs wait: perhaps fewer nodes were there than is assumed "
    "(--size), partitions have nodes of their own (--only), or jobs were held, which the records "
    "do not tell."
)
"""Said where the error of the mean is more than so large a part of it."""


def _off_by(one: Calibration) -> str:
    """Return how far a replay is off, as a sentence."""
    every = one.groups[0]
    judged = f"{every.jobs:,} jobs from {_day(one.half)} on, to which it was not fitted"
    errors = {name: off.error for name, off in every.waits.items()}
    if errors["median"] is None:
        return (
            f"How far the replay of {one.machine} is off from what happened is not known: it is "
            f"judged by {judged}, and these are too few."
        )
    mean = every.waits["mean"]
    hardly = mean.error is not None and mean.error > max(HARDLY * mean.actual, 60)
    more = f" {LITTLE}" if hardly else ""
    told = [f"{_time(errors[name])} in {words}" for name, words in IN_WORDS.items()]
    return (
        f"The replay of {one.machine} is off from the waits that were by up to {', '.join(told)} "
        f"(95 %; judged by {judged}). No change that is smaller is told.{more}"
    )


def _day(time: int) -> str:
    return f"{datetime.fromtimestamp(time):%Y-%m-%d}"


def _time(seconds: float | None) -> str:
    """Return a time, below an hour in whole minutes or seconds; "" for none."""
    if seconds is None:
        return ""
    whole = round(abs(seconds))
    if whole < 60:
        return f"{whole} s"
    return f"{round(whole / 60)} m" if whole < 3570 else show_seconds(whole)


def _signed(seconds: float | None) -> str:
    if seconds is None:
        return ""
    sign = "-" if seconds <= -0.5 else "+" if seconds >= 0.5 else ""
    return sign + _time(seconds)


def _calibration_table(one: Calibration) -> Table:
    """Return how far a replay is off, by the size of jobs."""
    columns = (
        Column("Jobs"),
        Column("Number", "count"),
        Column("Median was", "number"),
        Column("Replayed", "number"),
        Column("Off by", "number"),
        Column("90 %: off by", "number"),
    )
    rows: list[list[Cell]] = [
        [
            group.title,
            group.jobs,
            _time(group.waits["median"].actual),
            _time(group.waits["median"].replayed),
            _time(group.waits["median"].error) or "unknown",
            _time(group.waits["90 %"].error) or "unknown",
        ]
        for group in one.groups
    ]
    return Table(columns, rows, title=one.machine)


def _waits_table(group: Group) -> Table:
    columns = (
        Column("Wait"),
        Column("Was", "number"),
        Column("Replayed", "number"),
        Column("With it", "number"),
        Column("Change", "number"),
        Column("95 %"),
        Column("Off by", "number"),
    )
    rows = [_row(group.effects[name], name) for name in QUANTITIES]
    return Table(columns, rows, title=f"{group.title} ({group.jobs:,})")


def _row(effect: Effect, name: Quantity) -> list[Cell]:
    interval = "" if effect.low is None else f"{_signed(effect.low)}..{_signed(effect.high)}"
    return [
        name,
        _time(effect.actual),
        _time(effect.replayed),
        _time(effect.changed),
        _change(effect),
        interval,
        _time(effect.error) or "unknown",
    ]


def _change(effect: Effect) -> str:
    """Return the change, or what it is below."""
    if effect.change is not None:
        return _signed(effect.change)
    if effect.none:
        return "none"
    return "not told"


def _use_table(answer: Answer) -> Table:
    columns = (
        Column("Machine"),
        Column("Size"),
        Column("With it"),
        Column("In use"),
        Column("Replayed"),
        Column("With it in use"),
    )
    rows: list[list[Cell]] = [
        [
            one.machine,
            f"{one.before:,} {one.unit}",
            f"{one.after:,} {one.unit}" if one.after != one.before else "",
            *(in_per_cent(share) for share in (one.actual, one.replayed, one.changed)),
        ]
        for one in answer.use
    ]
    return Table(columns, rows)


def _remarks(answer: Answer) -> Iterator[str]:
    for one in answer.calibrations:
        first, last = (
            f"{datetime.fromtimestamp(each):%Y-%m-%d}" for each in (one.since, one.until)
        )
        yield (
            f"{one.machine}: {one.jobs:,} jobs from {first} to {last} on {one.units:,} {one.unit} "
            f"({one.told_by}); order of starts that fits best: {one.policy}"
        )
    if answer.moved is not None:
        yield _hours(answer.moved)
    for use in answer.use:
        if use.demand > 1:
            yield (
                f"with it, the jobs of {use.machine} take {in_per_cent(use.demand)} of it: "
                "its queue grows to the end of the time, so waits are of this time alone, and at a "
                "load by which the replay was not judged"
            )
    yield from answer.remarks
    yield "users are taken to submit the same jobs at the same times; shares of users are not known"
    program, reason = program_or_reason()
    if program is None:
        yield f"the simulation ran in Python, which is slow: {reason}"


def _hours(moved: Moved) -> str:
    kind = "core-hours" if moved.unit == "cores" else "node-hours"
    before, after = (f"{hours:,.0f}" for hours in (moved.hours_before, moved.hours_after))
    if before == after:
        return f"the moved jobs hold {before} {kind} on either machine"
    return f"the moved jobs hold {before} {kind} where they ran, {after} where they go"


def _summary(answer: Answer) -> str:
    """Return what becomes of the groups, those of sizes aside, in a sentence each."""
    groups = answer.groups if answer.moved is not None else answer.groups[:1]
    return " ".join(map(_sentence, groups))


def _sentence(group: Group) -> str:
    title = f"{group.title[0].upper()}{group.title[1:]}"
    name = next((each for each in IN_WORDS if group.effects[each].change is not None), None)
    if name is None:
        effect = group.effects["median"]
        if effect.none:
            return f"{title}: no change, as {effect.reason}."
        return f"{title}: no change of waits is told: {effect.reason}."
    effect = group.effects[name]
    assert effect.change is not None and effect.low is not None and effect.high is not None
    ends = sorted(map(abs, (effect.low, effect.high)))
    return (
        f"{title} would wait {_time(effect.change)} {'more' if effect.change > 0 else 'less'} in "
        f"{IN_WORDS[name]} ({_time(effect.replayed)}, then {_time(effect.changed)}; 95 %: "
        f"{_time(ends[0])} to {_time(ends[1])}); the replay may be off by {_time(effect.error)}."
    )


def _lines(answer: Answer) -> Iterable[Sequence[object]]:
    numbers = ("actual", "replayed", "changed", "change", "low", "high", "error")
    yield ("machine", "jobs_of", "jobs", "wait", *(f"{name}_s" for name in numbers), "reason")
    for group in answer.groups:
        for name, effect in group.effects.items():
            values = (getattr(effect, number) for number in numbers)
            yield (group.machine, group.title, group.jobs, name, *values, effect.reason)
