"""Which nodes explain the failed jobs of everybody: what ``seatrial suspects --jobs 14d`` adds."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import to_builtins

from seatrial.errors import UsageError
from seatrial.execute.trial_folder import known_machine
from seatrial.model.machine_topology import topology_of
from seatrial.model.node_set import fold
from seatrial.model.topology import Topology
from seatrial.plugins.usage.answer_page import count_text
from seatrial.plugins.usage.evidence import (
    BLAME,
    COLUMNS,
    SORTS,
    Evidence,
    evidence_of,
    levels_of,
)
from seatrial.plugins.usage.gaps import gaps, minute
from seatrial.plugins.usage.job_suspects import JobSuspect, JobSuspects, Reach, RunnerUp, find
from seatrial.plugins.usage.jobs import Chosen, Jobs, known_machines, read_jobs
from seatrial.plugins.usage.settings import machine_of, name_of_machine
from seatrial.results.store import queries
from seatrial.results.store.schema import Store
from seatrial.show.page import Column, Items, Page, Part, Section, Table, Text
from seatrial.show.variability import chance
from seatrial.units import SECOND_NS, count, in_per_cent, listed, moment_of, show_number

MAX_ROWS = 30
MAX_JOBS = 2
"""First jobs of a suspect that are shown; JSON has all."""
MAX_ALTERNATIVES = 3
SHORTEST_GAP_S = 300
"""Since an import some time has always passed."""


class _Span(NamedTuple):
    """A span of time in s; without ``until``: up to now."""

    since: int
    until: int

    @property
    def words(self) -> str:
        return f"{minute(self.since)} to {minute(self.until) if self.until else 'now'}"


def _parse_span(text: str) -> _Span:
    """Return the span of ``14d``, ``2026-11-01`` (up to now) or ``2026-11-01..2026-11-15``. Raises
    UsageError."""
    start, dots, end = text.partition("..")
    try:
        since = moment_of(start) // SECOND_NS
        until = moment_of(end) // SECOND_NS if dots else 0
    except ValueError as error:
        remedy = "write e.g. 14d, or FROM..TO"
        raise UsageError(f"--jobs {text}: {error}; {remedy}") from None
    if since >= (until or time.time()):
        raise UsageError(f"--jobs {text}: it begins after its end; write the earlier time first")
    return _Span(max(since, 0), until)


def accuse(store: Store, machine: str, text: str, by_runs: Mapping[str, Collection[str]]) -> Page:
    """Return which nodes are accused by the jobs of everybody that ended in a span; without a
    machine: of each of which jobs were imported. ``by_runs``: the nodes of each machine that runs
    of trials accuse, which are marked. Raises UsageError."""
    span = _parse_span(text)
    known = known_machines(store)
    names = [name_of_machine(machine)] if machine else known
    if not names or not set(names) <= set(known):
        of = f" of {machine}" if machine else ""
        there = f"; there are jobs of {listed(known, 5)}" if known else ""
        raise UsageError(
            f"no jobs of others{of} were imported{there}; `seatrial usage import` brings them in"
        )
    found = {name: _judged(store, name, span, machine or name) for name in names}
    sections = [
        Section(f"Jobs of everybody on {name}", [*_parts(one, by_runs.get(name, ()))])
        for name, one in found.items()
    ]
    return Page(
        "Suspects by jobs",
        sections,
        records=lambda: {name: {"jobs": _record(one)} for name, one in found.items()},
    )


class _Judged(NamedTuple):
    span: _Span
    jobs: Jobs
    evidence: Evidence
    answer: JobSuspects
    gaps: list[str]
    #: whether groups of nodes are known by a description of the machine
    described: bool


def _judged(store: Store, machine: str, span: _Span, given: str) -> _Judged:
    """Return what the jobs of a machine, which was given by this name or file, say."""
    jobs = read_jobs(store, Chosen(machine=machine, since=span.since, until=span.until), COLUMNS)
    ended = jobs.numbers["ended"]
    jobs = jobs.only((ended >= span.since) & ((ended < span.until) | (span.until == 0)))
    evidence = evidence_of(jobs)
    topology = _topology(store, machine, given)
    levels = levels_of(evidence.names, topology)
    answer = find(evidence.jobs, evidence.names, levels, BLAME)
    until = span.until or int(time.time())
    missing = [
        gap.sentence
        for gap in gaps(store, machine, span.since, until)
        if not gap.until or gap.until - gap.since >= SHORTEST_GAP_S
    ]
    return _Judged(span, jobs, evidence, answer, missing, topology is not None)


def _topology(store: Store, name: str, given: str) -> Topology | None:
    """Return the network of a machine: by its file, else by that of its latest trial."""
    machine = machine_of(given)
    if machine is None:
        trials = (each for each in queries.trials(store) if each.machine == name)
        described = (known_machine(Path(each.path)) for each in trials)
        machine = next(filter(None, described), None)
    return topology_of(machine) if machine is not None else None


# ---- the page ------------------------------------------------------------------------------------


def _parts(judged: _Judged, by_runs: Collection[str]) -> Iterator[Part]:
    """Yield who is accused, by what, and what that cannot tell."""
    answer = judged.answer
    told = f"{answer.bad:,} of {count_text(answer.jobs, 'job')} ended badly, {judged.span.words}"
    if answer.reason:
        yield f"{told}; no node can be accused: {answer.reason}"
    elif not answer.suspects:
        yield f"{told}; no node or group explains that better than chance and users do"
    else:
        yield (
            f"{told}; {answer.unexplained:,} of these without any of the suspects "
            f"({answer.candidates:,} nodes and groups compared)"
        )
        yield Table.of(
            _columns(judged, by_runs),
            answer.suspects[:MAX_ROWS],
            total=len(answer.suspects),
            about="p: the chance that healthy nodes show as much, times all that were compared.",
        )
    yield Items([*_remarks(judged)])
    yield from (Text(gap, "notice") for gap in judged.gaps)


def _columns(judged: _Judged, by_runs: Collection[str]) -> list[Column]:
    def also(one: JobSuspect) -> str:
        return "runs" if set(one.names) & set(by_runs) else ""

    return [
        Column("Suspect", value=_name, fold=True, spare=-2),
        Column("Bad of jobs", value=lambda one: f"{len(one.bad)} of {len(one.jobs)}", spare=-2),
        Column("By chance", "number", lambda one: round(one.expected, 1), spare=-1),
        Column("p", value=lambda one: chance(one.p).removeprefix("p = ").removeprefix("p ")),
        Column("Ruins", value=lambda one: in_per_cent(one.harm), spare=4),
        Column(
            "Since", value=lambda one: minute(one.since) if one.since else "", fold=True, spare=-1
        ),
        Column("Evidence", value=partial(_sorts, judged), fold=True),
        Column("Kinds", "count", lambda one: one.kinds, spare=5),
        Column("Jobs", value=partial(_first_jobs, judged), fold=True, spare=1),
        Column("Also by", value=also, spare=2),
    ]


def _name(one: JobSuspect | RunnerUp) -> str:
    """Return who is accused: nodes that were always together are not to be told apart, and others
    that were in much the same jobs may be meant."""
    told = fold(one.names) if one.level == "node" else listed(one.names, 3)
    told = f"one of {told}" if one.level == "node" and len(one.names) > 1 else told
    rivals = one.alternatives if isinstance(one, JobSuspect) else []
    return " or ".join([told, *filter(None, [listed(rivals, MAX_ALTERNATIVES)])])


def _sorts(judged: _Judged, one: JobSuspect) -> str:
    """Return how its bad jobs ended."""
    number = Counter(judged.evidence.jobs.sort[one.bad].tolist())
    return ", ".join(f"{number[code]} {name}" for code, name in enumerate(SORTS) if number[code])


def _ids(judged: _Judged, jobs: Iterable[int]) -> list[str]:
    return judged.jobs.words["job"].only(judged.evidence.rows[[*jobs]]).texts()


def _first_jobs(judged: _Judged, one: JobSuspect) -> str:
    return listed(_ids(judged, one.bad), MAX_JOBS)


def _remarks(judged: _Judged) -> Iterator[str]:
    """Yield what stands behind the answer: what is explained otherwise, what is left out, what the
    jobs do not suffice for."""
    answer = judged.answer
    if any(one.alternatives for one in answer.suspects[:MAX_ROWS]):
        yield '"or": these had much the same jobs, and would explain them nearly as well'
    if answer.by_kind:
        yield (
            f"{count_text(answer.by_kind, 'bad job')} accuse no node: the user's jobs of that name "
            "failed wherever they ran"
        )
    if answer.hours:
        hours = listed([minute(hour) for hour in answer.hours], 3)
        yield (
            f"{count_text(answer.by_hour, 'bad job')} in {count(len(answer.hours), 'hour')} in "
            f"which jobs of many users failed everywhere accuse little: {hours}"
        )
    yield from (_of_runner_up(one) for one in answer.runners_up)
    yield from (_of_reach(one) for one in answer.reach)
    left_out = judged.evidence.left_out
    if left_out:
        reasons = ", ".join(f"{number:,} {reason}" for reason, number in left_out.items())
        yield f"left out: {count_text(sum(left_out.values()), 'job')}: {reasons}"
    if answer.jobs and not judged.evidence.measured:
        yield "hung jobs cannot be told: no job says how much CPU it used"
    if not judged.described:
        yield "no file describes this machine: groups of nodes are known by their names alone"


def _of_runner_up(one: RunnerUp) -> str:
    return (
        f"{_name(one)}: {one.bad} of {count(one.jobs, 'job')} ended badly, where chance would give "
        f"{show_number(round(one.expected, 2))}: too few to accuse it; about "
        f"{count(one.more_jobs, 'more job')} like these would do"
    )


def _of_reach(reach: Reach) -> str:
    ruins = "all of its jobs" if reach.share == 1 else f"{in_per_cent(reach.share)} of its jobs"
    said = (
        f"a bad node that ruins {ruins} would be found (9 times in 10) on {reach.found:,} of "
        f"{count_text(reach.nodes, 'node')}"
    )
    if reach.found == reach.nodes:
        return said
    return f"{said}; half of the others need {count_text(reach.more_jobs, 'more job')} or fewer"


def _record(judged: _Judged) -> dict[str, Any]:
    """Return all of it for JSON."""
    record: dict[str, Any] = to_builtins(judged.answer)
    for one, told in zip(judged.answer.suspects, record["suspects"], strict=True):
        told["evidence"] = _evidence_record(judged, one.bad)
        told["bad"], told["jobs"] = _ids(judged, one.bad), len(one.jobs)
    return {
        **record,
        "since": judged.span.since,
        "until": judged.span.until or None,
        "left_out": judged.evidence.left_out,
        "gaps": judged.gaps,
    }


def _evidence_record(judged: _Judged, bad: Sequence[int]) -> dict[str, int]:
    number = Counter(judged.evidence.jobs.sort[list(bad)].tolist())
    return {SORTS[code]: number[code] for code in sorted(number)}
