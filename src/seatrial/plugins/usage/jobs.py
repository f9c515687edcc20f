"""Jobs that others ran: one row an attempt of a job, and many of them as columns.

    jobs = read_jobs(store, Chosen(machine="hopper", since=start, until=end))
    jobs.core_seconds().sum()                  # of all of them, exactly
    jobs.words("user").names                   # who ran them

Times are whole seconds since the epoch, as batch systems keep them: in nanoseconds, the
core-seconds of a large machine's year would not fit into 64 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple, Self, get_args

from msgspec import Struct
from msgspec.structs import asdict

from seatrial.lazy import Bools, Ints, SmallInts, np
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import Column, Table, columns_of

JobState = Literal[
    "pending",
    "running",
    "suspended",
    "completed",
    "failed",
    "timeout",
    "node_fail",
    "out_of_memory",
    "cancelled",
    "preempted",
    "requeued",
    "unknown",
]
"""How a job is, or ended, in words that all batch systems share. "cancelled": by a person or the
batch system, before or after its start. "requeued": this attempt ended and the job ran again, or
may. "unknown": its record says nothing that is known; it is counted and shown as such."""

STATES: tuple[JobState, ...] = get_args(JobState)
UNFINISHED = ("pending", "running", "suspended")
FAILED = ("failed", "timeout", "node_fail", "out_of_memory")

NONE = -1
"""What a number that is not known is in a column."""


class UserJob(Struct, frozen=True, kw_only=True):
    """One attempt of a job, as the batch system accounts for it. Empty words and None are what it
    does not say."""

    #: The machine on which it ran, by the name that Seatrial has for it.
    machine: str
    #: Its id at the batch system: of a task of an array with its index (``12_3``), of a part of a
    #: heterogeneous job with its offset (``12+1``).
    job: str
    #: When it was submitted, in s: ids are used again after years.
    submitted: int
    #: 0 of the first attempt; 1, 2, ... after it was put back into the queue, where the batch
    #: system keeps the time of its submission then.
    attempt: int = 0
    #: The cluster by the batch system's name, where it has several.
    cluster: str = ""
    #: When it could have started: held or dependent jobs are not eligible, in s.
    eligible: int | None = None
    started: int | None = None
    ended: int | None = None
    #: How long it was suspended, in s; its cores were others' then.
    suspended_s: int = 0
    #: The time limit that it asked for, in s; None if it has none.
    limit_s: int | None = None
    state: Annotated[str, Column(sql="TEXT")] = "unknown"
    exit_code: int | None = None
    #: The signal that ended it; 0 if none did.
    signal: int = 0
    user: str = ""
    account: str = ""
    #: The partition or queue.
    queue: str = ""
    name: str = ""
    #: The executable or what else the batch system or the site records of it (``sacct`` comment,
    #: XALT), from which the application is told.
    executable: str = ""
    reservation: str = ""
    #: Allocated; of a job that has not started, asked for.
    nodes: int = 0
    cores: int = 0
    gpus: int = 0
    #: The nodes, folded (``n[001-004]``).
    node_list: str = ""
    #: CPU time that its processes used, in s; None where it is not measured.
    cpu_s: int | None = None
    #: In J; None where it is not measured.
    energy_j: int | None = None
    #: Why it waits or was ended, in the batch system's words.
    reason: str = ""


JOBS = Table(
    "usage_jobs",
    columns_of(UserJob),
    primary_key="machine, job, submitted, attempt",
    indexes=["CREATE INDEX usage_jobs_by_end ON usage_jobs (machine, ended)"],
)

NUMBERS = tuple(column.name for column in JOBS.columns if column.python is int)
WORDS = tuple(column.name for column in JOBS.columns if column.python is str)


class Words(NamedTuple):
    """A column of words: the place of each job's word among the names."""

    codes: SmallInts
    names: tuple[str, ...]

    @classmethod
    def of(cls, words: Sequence[str]) -> Self:
        """Return a column of these words. Its names are sorted."""
        names = tuple(sorted(set(words)))
        place = {name: i for i, name in enumerate(names)}
        return cls(np.array([place[word] for word in words], dtype=np.int32), names)

    def are(self, names: Iterable[str]) -> Bools:
        """Return which of them are one of these names."""
        wanted = set(names)
        found: Bools = np.array([name in wanted for name in self.names], dtype=bool)[self.codes]
        return found


class Jobs(Struct, frozen=True):
    """Jobs as columns of one length: numbers (NONE where one is not known) and words."""

    numbers: Mapping[str, Ints]
    words: Mapping[str, Words]

    @classmethod
    def of(cls, jobs: Sequence[UserJob]) -> Self:
        """Return rows as columns."""
        rows = [asdict(job) for job in jobs]
        return cls(
            {
                name: np.array(
                    [NONE if row[name] is None else row[name] for row in rows], dtype=np.int64
                )
                for name in NUMBERS
            },
            {name: Words.of([row[name] for row in rows]) for name in WORDS},
        )

    def __len__(self) -> int:
        return len(self.numbers["submitted"])

    def only(self, chosen: Bools | Ints) -> Self:
        """Return the jobs that a mask or places choose, in that order."""
        return type(self)(
            {name: column[chosen] for name, column in self.numbers.items()},
            {
                name: Words(column.codes[chosen], column.names)
                for name, column in self.words.items()
            },
        )

    def seconds_within(self, since: int, until: int) -> Ints:
        """Return how long each job held its cores from ``since`` to before ``until``, in s. A job
        that runs holds them until then. When a suspension was is not known, so its time is taken
        from the end of the job."""
        started, ended = self.numbers["started"], self.numbers["ended"]
        over = np.where(ended == NONE, until, ended - self.numbers["suspended_s"])
        held = np.minimum(over, until) - np.maximum(started, since)
        seconds: Ints = np.where(started == NONE, 0, np.maximum(held, 0))
        return seconds


class Chosen(Struct, frozen=True, kw_only=True):
    """Which jobs are asked for."""

    #: The machine; "": all.
    machine: str = ""
    #: Those that were in the queue or ran at some time from then on, in s.
    since: int = 0
    #: Those that were submitted before then, in s; 0: now.
    until: int = 0


def read_jobs(store: Store, chosen: Chosen) -> Jobs:
    """Return jobs of the store as columns, in the order of machine and submission."""
    conditions, values = ["1 = 1"], list[object]()
    for condition, value in (
        ("machine = ?", chosen.machine),
        ("(ended IS NULL OR ended >= ?)", chosen.since),
        ("submitted < ?", chosen.until),
    ):
        if value:
            conditions.append(condition)
            values.append(value)
    selected = [
        f"coalesce({column.name}, {NONE})" if column.python is int else column.name
        for column in JOBS.columns
    ]
    columns = store.columns(
        f"SELECT {', '.join(selected)} FROM usage_jobs WHERE {' AND '.join(conditions)} "
        "ORDER BY machine, submitted, job, attempt",
        values,
    )
    by_name = dict(zip(JOBS.names, columns, strict=True))
    return Jobs(
        {name: np.array(by_name[name], dtype=np.int64) for name in NUMBERS},
        {name: Words.of(by_name[name]) for name in WORDS},
    )
