"""A year of two machines, made with planted shares, waits and losses, after NERSC's papers.

    year = made_year(5_000, seed=3)
    year.jobs                           # UserJobs of both machines, in the order of submission
    year.applications                   # the code of each of them
    year.planted.above_8192             # 0.402 of Hopper's core-seconds
    core_seconds(year.jobs, lambda job: job.user)       # exact sums, by a plain loop

What is planted (`Planted`) is what the maker aimed at; the jobs have it but for the rounding of
times to seconds and jobs that run beyond the end of a month. What `core_seconds` and `by_month`
return is exact. The times of jobs are drawn one by one: waits and nodes are those that are planted,
and no schedule of a machine (two jobs may have a node at the same time).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from statistics import NormalDist
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from seatrial.plugins.usage.jobs import JobState, UserJob

K = TypeVar("K")
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

HOUR = 3600
YEAR = 2011
MONTHS = tuple(f"{YEAR}-{month:02d}" for month in range(1, 13))
BEGINS = tuple(
    int(datetime(YEAR + month // 12, month % 12 + 1, 1, tzinfo=UTC).timestamp())
    for month in range(13)
)
"""When each month begins, and the year ends, in s."""

SEVEN = {
    "milc": 0.21,
    "gtc": 0.17,
    "paratec": 0.14,
    "cam": 0.12,
    "madbench": 0.09,
    "gamess": 0.07,
    "pmemd": 0.05,
}
"""The seven codes of Franklin's acceptance, with their share of Hopper's hours: 85 % together."""

OF_FIELD = {
    "Lattice QCD": ("milc", "chroma", "qlua"),
    "Fusion": ("gtc", "xgc", "m3d", "nimrod", "osiris"),
    "Materials": ("paratec", "vasp", "qe", "abinit", "siesta"),
    "Climate": ("cam", "wrf", "pop", "mpas"),
    "Astrophysics": ("madbench", "castro", "flash"),
    "Chemistry": ("gamess", "pmemd", "g09", "nwchem", "namd", "gromacs", "orca", "wien2k"),
    "Other": ("impact", "elmfire", "parflow"),
}
"""The fields of science and their codes."""

_LARGER = (
    *("vasp", "castro", "xgc", "namd", "wrf", "chroma", "nwchem", "impact", "m3d", "qe", "pop"),
    *("flash", "gromacs", "osiris", "nimrod"),
)
"""The codes between the seven and g09, which is the 23rd."""
_SMALLER = ("abinit", "siesta", "mpas", "qlua", "elmfire", "parflow", "orca", "wien2k")

MAIN_QUEUE, CCM_QUEUE, DEBUG_QUEUE = "regular", "ccm_queue", "debug"
CCM_CODES = ("g09", "namd", "wien2k")
"""Codes that Hopper runs in compat mode alone: each of their jobs there is in ccm_queue."""

LONG_NODES, LONG = 3, 36 * HOUR
"""The nodes and the limit of the jobs whose waits are planted."""


_MONTHS = tuple(share / 102 for share in (7, 7.5, *(8.5,) * 5, *(9.0,) * 5))


class Planted(NamedTuple):
    """What the maker aimed at. Shares are of core-seconds."""

    of_hopper: float = 0.9
    """Hopper's share of both machines."""
    above_8192: float = 0.402
    """Of Hopper, in jobs of more than 8,192 cores."""
    above_8192_until_may: float = 0.48
    seven: float = 0.85
    """Of Hopper, of the seven codes."""
    g09: float = 0.01
    """Of both machines, of g09."""
    g09_of_hopper: float = 0.002
    """The part of it on Hopper, of both machines, too."""
    g09_rank: int = 23
    months: tuple[float, ...] = _MONTHS
    """Of each month, on each machine."""
    wait_ratio: float = 4.0
    """The wait on Carver over that on Hopper of jobs of 3 nodes and 36 hours: medians and means."""
    wait_hopper: int = 5 * HOUR
    """Its median on Hopper, in s."""
    ccm_users: int = 60
    """Users of compat mode (the queue ccm_queue of Hopper)."""
    ccm_users_who_stayed: int = 12
    """Those of them with more than one job there."""


PLANTED = Planted()


class MadeMachine(NamedTuple):
    """A machine, and how its hours are spread."""

    name: str
    nodes: int
    cores: int
    node: str
    """How its nodes are named, before their number of five digits."""
    sizes: tuple[tuple[tuple[int, ...], float], ...]
    """Classes of size: the cores of their jobs, and the class's share of the hours."""
    upper_until_may: float
    """The share of the upper half of the classes until May."""
    codes: Mapping[str, float]
    """The share of the hours of each code."""
    small: frozenset[str]
    """Codes that have no jobs in the upper half of the classes."""
    wait: int
    """The median wait of jobs of 3 nodes and 36 hours, in s."""
    incidents: int


class Incident(NamedTuple):
    """Nodes that were lost, and what was lost with them."""

    machine: str
    at: int
    until: int
    nodes: str
    jobs: frozenset[str]
    """The ids of the jobs that ended by it, in the state node_fail."""


class MadeYear(NamedTuple):
    """The jobs of both machines in the order of submission, and what is true of them."""

    jobs: list[UserJob]
    applications: list[str]
    """The code of each job."""
    fields: dict[str, str]
    """The field of science of each account."""
    incidents: list[Incident]
    planted: Planted

    def of(self, machine: str) -> list[UserJob]:
        """Return the jobs of one machine."""
        return [job for job in self.jobs if job.machine == machine]


def _codes(part: float, seven: Mapping[str, float], g09: float) -> dict[str, float]:
    """Return each code's share of the hours of a machine, which has this part of both machines'.
    ``g09``: its share of both."""
    larger = {code: 0.0150 - 0.0003 * place for place, code in enumerate(_LARGER)}
    rest = 1 - PLANTED.of_hopper * PLANTED.seven - PLANTED.g09 - sum(larger.values())
    others = larger | dict.fromkeys(_SMALLER, rest / len(_SMALLER))
    left = (1 - sum(seven.values()) - g09 / part) / sum(others.values())
    return {**seven, **{code: share * left for code, share in others.items()}, "g09": g09 / part}


HOPPER = MadeMachine(
    name="hopper",
    nodes=6384,
    cores=24,
    node="nid",
    sizes=(
        ((24, 48, 72, 96, 192, 384, 510), 0.110),
        ((512, 720, 1008, 1536, 2040), 0.172),
        ((2064, 3072, 4096, 6144, 8184, 8192), 0.316),
        ((8193, 8208, 12288, 16368, 16384), 0.170),
        ((16392, 24576, 49152, 65520), 0.162),
        ((65544, 98304, 131064), 0.070),
    ),
    upper_until_may=PLANTED.above_8192_until_may,
    codes=_codes(PLANTED.of_hopper, SEVEN, PLANTED.g09_of_hopper),
    small=frozenset((*_LARGER, *_SMALLER, "g09")),
    wait=PLANTED.wait_hopper,
    incidents=3,
)
CARVER = MadeMachine(
    name="carver",
    nodes=1120,
    cores=8,
    node="c",
    sizes=(
        ((1, 2, 4, 8), 0.02),
        ((16, 24, 32, 64), 0.38),
        ((128, 256), 0.35),
        ((512, 1024), 0.25),
    ),
    upper_until_may=0.6,
    codes=_codes(1 - PLANTED.of_hopper, {}, PLANTED.g09 - PLANTED.g09_of_hopper),
    small=frozenset({"g09", "wien2k"}),
    wait=round(PLANTED.wait_hopper * PLANTED.wait_ratio),
    incidents=1,
)


def made_year(jobs: int = 5_000, seed: int = 1) -> MadeYear:
    """Return a year of both machines of about this number of jobs, half of them of each; 2,000 at
    least. The same seed makes the same year."""
    drawn = [
        _Drawn.of(machine, jobs // 2, np.random.default_rng([seed, number]))
        for number, machine in enumerate((HOPPER, CARVER))
    ]
    # As many hours as the machine allows whose longest job is first at its limit.
    hours = min(each.most_hours() / part for each, part in zip(drawn, _PARTS, strict=True))
    rows: list[tuple[UserJob, str]] = []
    incidents: list[Incident] = []
    for each, part in zip(drawn, _PARTS, strict=True):
        made, lost = _rows(each, hours * part)
        rows += made
        incidents += lost
    rows.sort(key=lambda row: row[0].submitted)
    fields = {
        account: field for number, field in enumerate(OF_FIELD) for account in _accounts(number)
    }
    return MadeYear(
        [job for job, _ in rows], [code for _, code in rows], fields, incidents, PLANTED
    )


def core_seconds(jobs: Iterable[UserJob], key: Callable[[UserJob], K]) -> dict[K, int]:
    """Return the core-seconds of jobs by what a function says of each, exactly."""
    sums: dict[K, int] = defaultdict(int)
    for job in jobs:
        if job.started is not None and job.ended is not None:
            sums[key(job)] += job.cores * (job.ended - job.started - job.suspended_s)
    return dict(sums)


def by_month(jobs: Iterable[UserJob], key: Callable[[UserJob], K]) -> dict[tuple[str, K], int]:
    """Return the core-seconds of jobs by month of the year (UTC) and by what a function says of
    each: a job that runs beyond the end of a month counts in both, each with its part."""
    sums: dict[tuple[str, K], int] = defaultdict(int)
    for job in jobs:
        if job.started is None or job.ended is None:
            continue
        for name, begin, end in zip(MONTHS, BEGINS[:-1], BEGINS[1:], strict=True):
            if (seconds := min(job.ended, end) - max(job.started, begin)) > 0:
                sums[name, key(job)] += job.cores * seconds
    return dict(sums)


# ---- drawing: how large each job is, of which code and month, and how long it runs ---------------

_PARTS = (PLANTED.of_hopper, 1 - PLANTED.of_hopper)
_LARGE_ARE_FEW, _LARGE_ARE_SHORT = 0.6, 0.7
"""The number of jobs of a class falls with this power of their cores, and within a class the
core-seconds of a job grow with that power."""
_SPREAD, _FURTHEST = 0.6, 1.5
"""Of the logarithm of run times: its standard deviation, and how many of these a job is off."""
_LONGEST, _LONGEST_OF_LONG = 47 * HOUR, 35 * HOUR
_ROUNDS = 200


class _Drawn(NamedTuple):
    """The jobs of a machine that run, as columns of one length."""

    machine: MadeMachine
    random: np.random.Generator
    month: Ints
    code: Ints
    """The place of its code among the codes of the machine."""
    cores: Ints
    long: NDArray[np.bool_]
    """Whether it has 3 nodes and 36 hours."""
    share: Floats
    """Of the machine's core-seconds."""

    @classmethod
    def of(cls, machine: MadeMachine, count: int, random: np.random.Generator) -> _Drawn:
        """Draw jobs, and spread the hours over them so that each code, and each class of size in
        each month, has its share (iterative proportional fitting)."""
        shares = _shares(machine)
        long = max(48, count // 25)
        month, size = _strata(machine, shares, count - long, random)
        cores = np.array([random.choice(machine.sizes[each][0]) for each in size.tolist()])
        code = _drawn_codes(machine, size, random)
        of_long = LONG_NODES * machine.cores
        size_of_long = next(i for i, (all_, _) in enumerate(machine.sizes) if of_long in all_)
        month = np.concatenate([month, np.arange(long) % 12])
        size = np.concatenate([size, np.full(long, size_of_long)])
        cores = np.concatenate([cores, np.full(long, of_long)])
        code = np.concatenate([code, np.full(long, list(machine.codes).index("g09"))])
        is_long = np.arange(len(month)) >= len(month) - long
        off = np.clip(random.standard_normal(len(month)), -_FURTHEST, _FURTHEST)
        weight = cores**_LARGE_ARE_SHORT * np.exp(_SPREAD * off)
        fitted = _fitted(
            weight,
            [
                (month * len(machine.sizes) + size, shares.ravel()),
                (code, np.array(list(machine.codes.values()))),
            ],
        )
        return cls(machine, random, month, code, cores, is_long, fitted)

    def most_hours(self) -> float:
        """Return how many core-seconds all jobs may have so that none is above its limit."""
        longest = np.where(self.long, _LONGEST_OF_LONG, _LONGEST)
        return float(np.min(longest * self.cores / self.share))


def _shares(machine: MadeMachine) -> Floats:
    """Return the share of each month (rows) and class of size (columns)."""
    months = np.array(PLANTED.months)
    sizes = np.array([share for _, share in machine.sizes])
    upper = np.arange(len(sizes)) >= len(sizes) // 2
    before = months[:4].sum()
    share = sizes[upper].sum()
    of_month = np.where(
        np.arange(12) < 4,
        machine.upper_until_may,
        (share - before * machine.upper_until_may) / (1 - before),
    )[:, None]
    within: Floats = np.where(upper, of_month * sizes / share, (1 - of_month) * sizes / (1 - share))
    return months[:, None] * within


def _strata(
    machine: MadeMachine, shares: Floats, count: int, random: np.random.Generator
) -> tuple[Ints, Ints]:
    """Return the month and the class of size of each job; three at least of each pair."""
    cores = np.array([np.mean(all_) for all_, _ in machine.sizes])
    weight = shares / cores**_LARGE_ARE_FEW
    numbers = np.maximum(3, np.round(count * weight / weight.sum())).astype(int).ravel()
    pairs = random.permutation(np.repeat(np.arange(len(numbers)), numbers))
    return pairs // len(cores), pairs % len(cores)


def _drawn_codes(machine: MadeMachine, size: Ints, random: np.random.Generator) -> Ints:
    """Return the place of each job's code. Rare codes are drawn more often than by their hours."""
    weight = np.sqrt(list(machine.codes.values()))
    weight[list(machine.codes).index("g09")] = 0  # those are long
    of_all = np.array([code not in machine.small for code in machine.codes])
    upper = size >= len(machine.sizes) // 2
    code = np.zeros(len(size), dtype=int)
    for which, allowed in ((upper, of_all), (~upper, np.ones_like(of_all))):
        chance = weight * allowed
        code[which] = random.choice(len(weight), which.sum(), p=chance / chance.sum())
    return code


def _fitted(weight: Floats, margins: list[tuple[Ints, Floats]]) -> Floats:
    """Return weights whose sums by each margin (a group of each, and the share of each group) are
    its shares."""
    for _ in range(_ROUNDS):
        for group, share in margins:
            sums = np.bincount(group, weight, len(share))
            weight = weight * (share / np.where(sums > 0, sums, 1))[group]
    return weight


# ---- rows: when each job ran, who ran it, and how it ended ---------------------------------------

_CROSSING = 0.03  # the share of jobs that run beyond the end of a month
_ENDS: tuple[tuple[JobState, float, int, int], ...] = (
    ("failed", 0.04, 1, 0),
    ("timeout", 0.02, 0, 0),
    ("out_of_memory", 0.005, 0, 9),
    ("cancelled", 0.015, 0, 15),
    ("completed", 0.92, 0, 0),
)
"""How jobs end: the state, its share, the exit code and the signal."""
_NEVER_STARTED = 0.01
_SET_APART = 100
"""The last nodes of a machine, which only jobs have that an incident ends."""
_VICTIMS = 4
_USERS, _ACCOUNTS, _G09_USERS = 200, 8, 132  # of a field


def _rows(drawn: _Drawn, core_seconds: float) -> tuple[list[tuple[UserJob, str]], list[Incident]]:
    """Return the jobs with their codes, and the incidents."""
    seconds = np.maximum(5, np.rint(drawn.share * core_seconds / drawn.cores).astype(int))
    started = _starts(drawn, seconds)
    victims = _victims(drawn, seconds)
    for incident, places in victims:
        started[places] = incident.at - seconds[places]
    submitted = started - _waits(drawn)
    ids = np.empty(len(seconds), dtype=int)
    ids[np.argsort(submitted, kind="stable")] = 100_001 + np.arange(len(seconds))
    writer = _Writer(drawn, ids, submitted, started, seconds)
    lost = {place: incident for incident, places in victims for place in places.tolist()}
    rows = [writer.row(place, lost.get(place)) for place in range(len(seconds))]
    rows += writer.never_started(rows)
    return rows, [
        incident._replace(jobs=frozenset(map(str, ids[places].tolist())))
        for incident, places in victims
    ]


def _starts(drawn: _Drawn, seconds: Ints) -> Ints:
    """Return when each job starts: within its month, if it can, or so that it runs beyond its
    end."""
    begins = np.array(BEGINS)
    begin, end = begins[drawn.month], begins[drawn.month + 1]
    random = drawn.random.random(len(seconds))
    within = begin + (random * np.maximum(0, end - begin - seconds)).astype(int)
    across = end - (random * seconds).astype(int)
    crosses = (drawn.random.random(len(seconds)) < _CROSSING) & (drawn.month < 11)
    starts: Ints = np.where(crosses, across, within)
    return starts


def _waits(drawn: _Drawn) -> Ints:
    """Return how long each job waits. Those of long jobs are the quantiles of one distribution on
    each machine, so neither medians nor means are off by chance."""
    count, long = len(drawn.cores), int(drawn.long.sum())
    base = drawn.machine.wait / 5 * np.log2(1 + drawn.cores) / 6
    waits = base * np.exp(drawn.random.standard_normal(count))
    quantiles = [NormalDist().inv_cdf((i + 0.5) / long) for i in range(long)]
    waits[drawn.long] = drawn.machine.wait * np.exp(0.5 * drawn.random.permutation(quantiles))
    whole: Ints = np.rint(waits).astype(int)
    return whole


def _victims(drawn: _Drawn, seconds: Ints) -> list[tuple[Incident, Ints]]:
    """Return the incidents, each with the places of the jobs that end by it."""
    machine, able = drawn.machine, (seconds > HOUR) & (drawn.cores >= drawn.machine.cores)
    nodes = f"{machine.node}[{machine.nodes - _SET_APART + 1:05}-{machine.nodes:05}]"
    places = drawn.random.permutation(np.flatnonzero(able & ~drawn.long))
    found = []
    for number in range(machine.incidents):
        chosen = places[number * _VICTIMS : (number + 1) * _VICTIMS]
        # The middle of a month: of which month the jobs are is not changed much by it.
        at = BEGINS[2 + 3 * number] + 14 * 24 * HOUR + 1234
        incident = Incident(machine.name, at, at + 6 * HOUR, nodes, frozenset())
        found.append((incident, chosen))
    return found


class _Writer:
    """Makes the rows of a machine from columns."""

    def __init__(
        self, drawn: _Drawn, ids: Ints, submitted: Ints, started: Ints, seconds: Ints
    ) -> None:
        self.drawn, self.machine, self.codes = drawn, drawn.machine, tuple(drawn.machine.codes)
        self.ids, self.submitted = ids.tolist(), submitted.tolist()
        self.started, self.seconds = started.tolist(), seconds.tolist()
        self.code, self.cores = drawn.code.tolist(), drawn.cores.tolist()
        self.long = drawn.long.tolist()
        random, count = drawn.random, len(ids)
        self.chance = random.random((count, 4)).tolist()
        self.end = random.choice(len(_ENDS), count, p=[end[1] for end in _ENDS]).tolist()
        self.field = {
            code: number for number, codes in enumerate(OF_FIELD.values()) for code in codes
        }
        self.in_ccm = 0

    def row(self, place: int, incident: Incident | None) -> tuple[UserJob, str]:
        """Return a job and its code."""
        code, seconds = self.codes[self.code[place]], self.seconds[place]
        first, second, third, fourth = self.chance[place]
        state, _, exit_code, signal = _ENDS[self.end[place]]
        if incident is not None:
            state, exit_code, signal = "node_fail", 0, 0
        cores, started = self.cores[place], self.started[place]
        nodes = -(-cores // self.machine.cores)
        queue = self._queue(code, cores, seconds)
        user = self._user(code, queue, first)
        name, executable = _names(code, queue, self.ids[place], second)
        row = UserJob(
            machine=self.machine.name,
            job=str(self.ids[place]),
            submitted=self.submitted[place],
            eligible=self.submitted[place],
            started=started,
            ended=started + seconds,
            limit_s=self._limit(place, state, third),
            state=state,
            exit_code=exit_code,
            signal=signal,
            user=user,
            account=_account(user),
            queue=queue,
            name=name,
            executable=executable,
            nodes=nodes,
            cores=cores,
            node_list=self._node_list(nodes, incident, fourth),
            cpu_s=int(0.9 * cores * seconds),
            energy_j=15 * cores * seconds,
        )
        return row, code

    def never_started(self, rows: list[tuple[UserJob, str]]) -> list[tuple[UserJob, str]]:
        """Return jobs that were cancelled while they waited, of users who have others."""
        chosen = self.drawn.random.choice(len(rows), int(len(rows) * _NEVER_STARTED), replace=False)
        last = max(self.ids)
        cancelled = []
        for number, (job, code) in enumerate(rows[place] for place in chosen.tolist()):
            if job.queue == CCM_QUEUE:
                continue
            about = {
                name: getattr(job, name)
                for name in (
                    *("machine", "submitted", "eligible", "limit_s", "user", "account", "queue"),
                    *("name", "executable", "nodes", "cores"),
                )
            }
            ended = job.submitted + 600 + number
            waited = UserJob(job=str(last + 1 + number), ended=ended, state="cancelled", **about)
            cancelled.append((waited, code))
        return cancelled

    def _queue(self, code: str, cores: int, seconds: int) -> str:
        if self.machine is HOPPER and code in CCM_CODES:
            return CCM_QUEUE
        return DEBUG_QUEUE if seconds <= HOUR // 2 and cores <= 12_288 else MAIN_QUEUE

    def _user(self, code: str, queue: str, chance: float) -> str:
        """Return the user of a job. The first users of compat mode stay with it, the others try it
        once."""
        field = self.field[code]
        if queue == CCM_QUEUE:
            self.in_ccm += 1
            stayed, tried = PLANTED.ccm_users_who_stayed, PLANTED.ccm_users
            number = self.in_ccm - 1 if self.in_ccm <= tried else self.in_ccm % stayed
        else:
            number = int((_G09_USERS if code == "g09" else _USERS) * chance**2)
        return f"u{field}{number:03}"

    def _limit(self, place: int, state: JobState, chance: float) -> int:
        """Return the limit, in whole minutes; a job that reached it ran some seconds longer."""
        seconds: int = self.seconds[place]
        if self.long[place]:
            return LONG
        if state == "timeout":
            return seconds // 60 * 60
        return min(48 * HOUR, -(-int(seconds * (1.05 + 2 * chance**2)) // 1800) * 1800)

    def _node_list(self, nodes: int, incident: Incident | None, chance: float) -> str:
        """Return neighbours; for a job that an incident ends, the last of them are lost nodes."""
        free = self.machine.nodes - _SET_APART
        last = nodes + int((free - nodes) * chance) if incident is None else free + 1
        names = f"{last - nodes + 1:05}-{last:05}"
        return f"{self.machine.node}[{names}]" if nodes > 1 else f"{self.machine.node}{last:05}"


def _accounts(field: int) -> list[str]:
    return [f"m{100 + 10 * field + number}" for number in range(_ACCOUNTS)]


def _account(user: str) -> str:
    return _accounts(int(user[1]))[int(user[2:]) % _ACCOUNTS]


def _names(code: str, queue: str, number: int, chance: float) -> tuple[str, str]:
    """Return the name of a job and its executable, one of which at least tells its code."""
    if chance < 0.3:
        return f"ccm_{code}" if queue == CCM_QUEUE else f"{code}_{number % 97}", ""
    if chance < 0.35:
        return f"{code}-prod", "/global/scratch/a.out"
    return f"run{number % 13}", f"/usr/common/usg/{code}/bin/{code}.x"
