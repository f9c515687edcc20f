"""What jobs of everybody say for or against nodes: which ended badly, how, and where they ran.

    evidence = evidence_of(jobs)
    job_suspects.find(evidence.jobs, evidence.names, levels, BLAME)

A job that a person or the batch system ended, and one of which too little is known, says nothing;
how many these are, and why, is told. A job that reached its time limit is bad if those like it (the
same user's, of the same name, size and limit) ended well, one that used hardly any CPU if those
like it used much.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from seatrial.lazy import Bools, Floats, Ints, np
from seatrial.model.node_set import MAX_NODES, unfold_or_empty
from seatrial.model.topology import Topology
from seatrial.plugins.usage.job_suspects import GroupLevel, NodeJobs
from seatrial.plugins.usage.jobs import NONE, UNFINISHED, Jobs

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
    sort, reasons = _sorts(jobs, kind)
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


def _sorts(jobs: Jobs, kind: Ints) -> tuple[Ints, list[str]]:
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
                self.names += (_name(names, number) for number in range(lowest, highest + 1))
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


def _name(names: _Names, number: int) -> str:
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
