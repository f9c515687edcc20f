"""Which nodes explain the failed jobs of everybody: what ``seatrial suspects --jobs 14d`` adds."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import to_builtins

from seatrial.errors import UsageError
from seatrial.execute.trial_folder import known_machine
from seatrial.lazy import Bools, Floats, Ints, np
from seatrial.model.machine_topology import topology_of
from seatrial.model.node_set import MAX_NODES, fold, unfold_or_empty
from seatrial.model.topology import Topology
from seatrial.plugins.usage.answer_page import count_text
from seatrial.plugins.usage.importing import gaps, minute
from seatrial.plugins.usage.job_suspects import (
    GroupLevel,
    JobSuspect,
    JobSuspects,
    NodeJobs,
    Reach,
    RunnerUp,
    find,
)
from seatrial.plugins.usage.jobs import NONE, UNFINISHED, Chosen, Jobs, known_machines, read_jobs
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


# ---- evidence ------------------------------------------------------------------------------------
#
# What jobs of everybody say for or against nodes: which ended badly, how, and where they ran.
#
#     evidence = evidence_of(jobs)
#     job_suspects.find(evidence.jobs, evidence.names, levels, BLAME)
#
# A job that a person or the batch system ended, and one of which too little is known, says nothing;
# how many these are, and why, is told. A job that reached its time limit is bad if those like it
# (the same user's, of the same name, size and limit) ended well, one that used hardly any CPU if
# those like it used much.


COLUMNS = (
    *("state", "user", "name", "executable", "started", "ended", "limit_s", "nodes", "cores"),
    *("cpu_s", "suspended_s", "node_list", "job"),
)
"""The columns of jobs that are needed."""

SORTS = ("node failed", "failed", "out of memory", "timed out", "hung")
BLAME = (0.3, 0.3, 0.05, 0.15, 0.2)
"""The odds of each sort of evidence if a bad node ruins a job: memory is seldom a node's fault."""
_SORT_OF = {"node_fail": 0, "failed": 1, "out_of_memory": 2}
_TIMED_OUT, _HUNG = 3, 4

MIN_LIKE = 3
"""Jobs like one that ended well, before it is bad to be unlike them."""
HUNG_SHARE = 0.1
"""Of the median use of CPU of jobs like one, below which it hung."""
LEAST_USE = 0.05
"""Of their cores' time that jobs use, at least, if one that uses little is told to hang."""
SHORTEST_HUNG_S = 60
FEW_OF_KIND = 5
"""A user's jobs of names that fewer than so many have are one kind."""

LEFT_OUT = {
    "cancelled": "ended by a person or the batch system",
    "preempted": "ended by a person or the batch system",
    "requeued": "put back into the queue",
    "unknown": "without a known end",
}
OF_LIMIT = "at their time limit, where too few like them ended well"
NOWHERE = "without known nodes"
BACKWARDS = "that ended before they started"


class Evidence(NamedTuple):
    """Jobs that say something: in the order of their ends, on nodes of these ``names``. ``rows``
    are their places among all jobs, ``left_out`` how many others there were, by the reason."""

    jobs: NodeJobs
    names: list[str]
    rows: Ints
    left_out: dict[str, int]
    #: how many jobs tell how much CPU they used
    measured: int


def evidence_of(jobs: Jobs) -> Evidence:
    """Return what jobs that have ended say of nodes."""
    ended, started = jobs.numbers["ended"], jobs.numbers["started"]
    left_out: Counter[str] = Counter()
    kind = kinds_of(jobs)
    sort, reasons = _sorts_of_ends(jobs, kind)
    sort[ended < started] = _NOTHING - reasons.index(BACKWARDS)
    sort[(ended == NONE) | (started == NONE)] = _NOTHING
    for code, reason in enumerate(reasons):
        number = int((sort == _NOTHING - code).sum())
        if reason and number:
            left_out[reason] += number
    rows = np.flatnonzero(sort >= _GOOD)
    rows = rows[np.argsort(ended[rows], kind="stable")]
    lists = jobs.words["node_list"]
    used, place = np.unique(lists.codes[rows], return_inverse=True)
    spans = NodeSpans([lists.names[code] for code in used.tolist()])
    there = spans.counts[place] > 0
    if nowhere := int((~there).sum()):
        left_out[NOWHERE] += nowhere
    rows, place = rows[there], place[there]
    job, first, last = spans.of(place)
    told = sort[rows]
    node_jobs = NodeJobs(
        bad=told > _GOOD,
        kind=np.unique(kind[rows], return_inverse=True)[1].astype(np.int64),
        sort=np.maximum(told - 1, 0),
        ended=ended[rows],
        nodes=spans.sizes[place],
        job=job,
        first=first,
        last=last,
    )
    measured = int((jobs.numbers["cpu_s"][rows] > 0).sum())
    return Evidence(node_jobs, spans.names, rows, dict(left_out), measured)


# ---- kinds ---------------------------------------------------------------------------------------


def kinds_of(jobs: Jobs) -> Ints:
    """Return a number for each job, the same for those of one user and one name; digits in names
    are as good as others. A user's jobs of rare names are one kind."""
    names = jobs.words["name"]
    programs = jobs.words["executable"]
    plain = [_plain(name) for name in names.names]
    rest = [_plain(name) for name in programs.names]
    number = {name: i for i, name in enumerate(dict.fromkeys([*plain, *rest]))}
    of_name = np.array([number[name] for name in plain], dtype=np.int64)[names.codes]
    of_program = np.array([number[name] for name in rest], dtype=np.int64)[programs.codes]
    named = np.array([bool(name) for name in names.names], dtype=bool)[names.codes]
    called = np.where(named, of_name, of_program)
    user = jobs.words["user"].codes.astype(np.int64)
    kind = user * (len(number) + 1) + called
    _, place, counts = np.unique(kind, return_inverse=True, return_counts=True)
    few: Bools = counts[place] < FEW_OF_KIND
    found: Ints = np.where(few, user * (len(number) + 1) + len(number), kind)
    return found


def _plain(name: str) -> str:
    return re.sub(r"\d+", "#", name)


# ---- how jobs ended ------------------------------------------------------------------------------

_GOOD, _NOTHING = 0, -1


def _sorts_of_ends(jobs: Jobs, kind: Ints) -> tuple[Ints, list[str]]:
    """Return for each job 0 if it ended well, 1 and more (a place in SORTS) if it ended badly, and
    less than 0 if it says nothing: -1 and on are places among the reasons, which come second."""
    states = jobs.words["state"]
    reasons = ["", *dict.fromkeys(LEFT_OUT.values()), OF_LIMIT, BACKWARDS]
    of_state = []
    for name in states.names:
        if name == "completed":
            of_state.append(_GOOD)
        elif name in _SORT_OF:
            of_state.append(1 + _SORT_OF[name])
        elif name in UNFINISHED:
            of_state.append(_NOTHING)
        elif name == "timeout":
            of_state.append(_NOTHING - reasons.index(OF_LIMIT))
        else:
            reason = LEFT_OUT.get(name, LEFT_OUT["unknown"])
            of_state.append(_NOTHING - reasons.index(reason))
    sort = np.array(of_state, dtype=np.int64)[states.codes]
    well, over = sort == _GOOD, states.are(["timeout"])
    like = _like(jobs, kind)
    count = int(like.max(initial=-1)) + 1
    ended_well = np.bincount(like[well], minlength=count)
    timed_out = np.bincount(like[over], minlength=count)
    is_unlike = (ended_well >= MIN_LIKE) & (ended_well > timed_out)
    sort[over & is_unlike[like]] = 1 + _TIMED_OUT
    sort[_hung(jobs, like, well) & (over | states.are(["cancelled"]))] = 1 + _HUNG
    return sort, reasons


def _like(jobs: Jobs, kind: Ints) -> Ints:
    """Return a number for each job, the same for those of one kind, time limit and size (to a
    factor of two)."""
    size = np.frexp(jobs.numbers["nodes"])[1]  # how many binary digits it has
    rows = np.stack([kind, size, jobs.numbers["limit_s"]], axis=1)
    found: Ints = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return found


def _hung(jobs: Jobs, like: Ints, well: Bools) -> Bools:
    """Return which jobs used far less CPU than those like them that ended well."""
    use = _use(jobs)
    known = well & (use >= 0)
    order = np.lexsort((use[known], like[known]))
    group, sorted_use = like[known][order], use[known][order]
    groups, starts, counts = np.unique(group, return_index=True, return_counts=True)
    median = np.zeros(int(like.max(initial=-1)) + 1)
    enough = counts >= MIN_LIKE
    median[groups[enough]] = sorted_use[(starts + counts // 2)[enough]]
    usual = median[like]
    long = jobs.numbers["ended"] - jobs.numbers["started"] >= SHORTEST_HUNG_S
    is_low: Bools = (use >= 0) & (usual >= LEAST_USE) & (use < HUNG_SHARE * usual) & long & ~well
    return is_low


def _use(jobs: Jobs) -> Floats:
    """Return the share of the time of its cores that each job used; -1 where it is not known."""
    numbers = jobs.numbers
    held = numbers["ended"] - numbers["started"] - np.maximum(numbers["suspended_s"], 0)
    known = (numbers["cpu_s"] != NONE) & (numbers["cores"] > 0) & (held > 0)
    known &= (numbers["ended"] != NONE) & (numbers["started"] != NONE)
    time = np.maximum(held * numbers["cores"], 1)
    use: Floats = np.where(known, numbers["cpu_s"] / time, -1.0)
    return use


# ---- nodes ---------------------------------------------------------------------------------------

_PLAIN = re.compile(r"([^\[\],]*?)([0-9]{1,15})([^0-9\[\],]*)")
_BRACKETS = re.compile(r"([^\[\],]*)\[([0-9,-]+)\]([^\[\],]*)")
_RANGE = re.compile(r"([0-9]{1,15})(?:-([0-9]{1,15}))?")
_ITEMS = re.compile(r"(?:[^,\[]|\[[^\]]*\])+")

_Names = tuple[str, str, int]
"""The names of consecutive nodes: the text before and behind their numbers, how many digits these
have (-1: the name has no number)."""


class NodeSpans:
    """Distinct lists of nodes as spans of places. Ranges are not written out for each: nodes of
    consecutive numbers have consecutive places."""

    def __init__(self, lists: Sequence[str]) -> None:
        read = [_read(nodes) for nodes in lists]
        kinds = sorted({names for ranges in read for names, _, _ in ranges})
        number = {names: i for i, names in enumerate(kinds)}
        rows = [
            (number[names], low, high, i)
            for i, ranges in enumerate(read)
            for names, low, high in ranges
        ]
        kind, low, high, of_list = np.array(rows, dtype=np.int64).reshape(-1, 4).T
        self.names: list[str] = []
        first = self._placed(kinds, kind, low, high)
        order = np.lexsort((first, of_list))
        first, last, of_list = first[order], (first + high - low)[order], of_list[order]
        # A node that a list names twice counts once.
        base = of_list * (len(self.names) + 1)
        before = np.concatenate([[-1], np.maximum.accumulate(base + last)[:-1]])
        first = np.maximum(base + first, before + 1) - base
        kept = first <= last
        self._first, self._last = first[kept], last[kept]
        self.counts = np.bincount(of_list[kept], minlength=len(lists))
        self._start = np.cumsum(self.counts) - self.counts
        lengths = np.concatenate([[0], np.cumsum(self._last - self._first + 1)])
        #: how many nodes each list has
        self.sizes = lengths[self._start + self.counts] - lengths[self._start]

    def _placed(self, kinds: Sequence[_Names], kind: Ints, low: Ints, high: Ints) -> Ints:
        """Give places to all nodes of these ranges; return that of the first node of each."""
        first = np.empty(len(kind), dtype=np.int64)
        order = np.lexsort((low, kind))
        edges = np.searchsorted(kind[order], np.arange(len(kinds) + 1))
        for names, (start, end) in zip(kinds, pairwise(edges.tolist()), strict=True):
            own = order[start:end]
            reach = np.maximum.accumulate(high[own])
            opens = np.concatenate([[True], low[own][1:] > reach[:-1] + 1])
            starts = np.flatnonzero(opens)
            lows, highs = low[own][starts], reach[np.append(starts[1:], len(own)) - 1]
            sizes = highs - lows + 1
            places = len(self.names) + np.cumsum(sizes) - sizes
            block = np.cumsum(opens) - 1
            first[own] = places[block] + low[own] - lows[block]
            for lowest, highest in zip(lows.tolist(), highs.tolist(), strict=True):
                self.names += (
                    _name_of_node(names, number) for number in range(lowest, highest + 1)
                )
        return first

    def of(self, lists: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the spans of jobs whose lists have these places: numbers of jobs, first, last."""
        counts = self.counts[lists]
        job = np.repeat(np.arange(len(lists)), counts)
        within = np.arange(len(job)) - np.repeat(np.cumsum(counts) - counts, counts)
        span = np.repeat(self._start[lists], counts) + within
        return job, self._first[span], self._last[span]


def _read(nodes: str) -> list[tuple[_Names, int, int]]:
    """Return the ranges of a list of nodes; none of what is no list."""
    items = _ITEMS.findall(nodes)
    if ",".join(items) != nodes:
        return []
    found = [each for item in items for each in _ranges(item)]
    sizes = [high - low + 1 for _, low, high in found]
    return found if sizes and min(sizes) > 0 and sum(sizes) <= MAX_NODES else []


def _ranges(item: str) -> Iterator[tuple[_Names, int, int]]:
    """Yield the ranges of ``n[001-128,130]`` or ``n7``."""
    match = _BRACKETS.fullmatch(item)
    parts = [_RANGE.fullmatch(part) for part in match[2].split(",")] if match else []
    if match is None or not all(parts) or match[3][:1].isdigit():
        for name in (item,) if _PLAIN.fullmatch(item) else unfold_or_empty(item):
            yield _one(name)
        return
    for part in filter(None, parts):
        for low, high in _of_one_length(part[1], part[2] or part[1]):
            yield (match[1], match[3], len(low)), int(low), int(high)


def _one(name: str) -> tuple[_Names, int, int]:
    """Return the range of one node."""
    plain = _PLAIN.fullmatch(name)
    if plain is None:
        return (name, "", -1), 0, 0
    return (plain[1], plain[3], len(plain[2])), int(plain[2]), int(plain[2])


def _of_one_length(low: str, high: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a range whose numbers have one length: 8-12 is 8-9 and 10-12."""
    if len(low) == len(high):
        yield low, high
    elif int(low) <= int(high) and "0" not in (low[0], high[0]):
        edges = [int(low), *(10**digits for digits in range(len(low), len(high))), int(high) + 1]
        yield from ((str(start), str(end - 1)) for start, end in pairwise(edges))
    else:
        yield "1", "0"  # no range


def _name_of_node(names: _Names, number: int) -> str:
    before, after, digits = names
    return before if digits < 0 else f"{before}{number:0{digits}}{after}"


# ---- groups --------------------------------------------------------------------------------------


def levels_of(names: Sequence[str], topology: Topology | None) -> list[GroupLevel]:
    """Return the levels of groups that nodes are in: of the machine's network, where it is known,
    else those that names with several numbers tell, such as ``c0-0c1s2n3``."""
    if topology is None:
        return list(_levels_by_name(names))
    number = np.array([topology.number_of.get(name, -1) for name in names], dtype=np.int64)
    found = []
    for level in topology.levels:
        unit_of = np.array([*level.unit_of, -1], dtype=np.int64)[number]
        units = [f"{level.name} {unit}" for unit in level.units]
        found.append(GroupLevel(level.name, units, unit_of))
    return found


def _levels_by_name(names: Sequence[str]) -> Iterator[GroupLevel]:
    numbers = [[match.end() for match in re.finditer(r"\d+", name)] for name in names]
    before = np.empty(0)
    for depth in range(2, 1 + max(map(len, numbers), default=0)):
        heads = [
            name[: ends[-depth]] if len(ends) >= depth else ""
            for name, ends in zip(names, numbers, strict=True)
        ]
        units = [head for head in dict.fromkeys(heads) if head]
        place = {unit: i for i, unit in enumerate(units)} | {"": -1}
        unit_of = np.array([place[head] for head in heads])
        if 1 < len(units) < len(names) and not np.array_equal(unit_of, before):
            yield GroupLevel("group", [f"{unit}*" for unit in units], unit_of)
        before = unit_of
