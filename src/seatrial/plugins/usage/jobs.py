"""Jobs that others ran: one row an attempt of a job, and many of them as columns.

    chosen = Chosen(machine="hopper", since=start, until=end)
    jobs = read_jobs(store, chosen, ("user", "cores", "started", "ended", "suspended_s", "asked"))
    (jobs.seconds_within(start, end) * jobs.numbers["cores"]).sum()     # core-seconds, exactly
    jobs.words["user"].names                                            # who ran them

Times are whole seconds since the epoch, as batch systems keep them: in nanoseconds, the
core-seconds of a large machine's year would not fit into 64 bits.

In the store, words that many jobs share (users, queues, names) stand once, in a table of their own,
and jobs have their numbers: a million rows are read in half the time then.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Annotated, Literal, NamedTuple, Self, get_args

from msgspec import Struct
from msgspec.structs import asdict, replace

from seatrial.lazy import Bools, Ints, SmallInts, np
from seatrial.model.node_set import unfold_or_empty
from seatrial.results.store.schema import Store, marks
from seatrial.results.store.tables import Column, Id, Table, chunks, columns_of
from seatrial.units import SECOND_NS

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


class UserJob(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
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
    #: When its record was asked for, in s; 0 if that is not known. The import sets it.
    asked: int = 0


_COLUMNS = columns_of(UserJob)
NUMBERS = tuple(column.name for column in _COLUMNS if column.python is int)
WORDS = tuple(column.name for column in _COLUMNS if column.python is str)

# ---- tables --------------------------------------------------------------------------------------

PLAIN = ("machine", "job", "node_list")
"""The columns of words that are stored as they are: nearly each job has another one, or all have
the same."""
CODED = tuple(name for name in WORDS if name not in PLAIN)
"""The columns of words that are stored as ids of `WORD_TABLE`."""


def in_table(name: str) -> str:
    """Return what a column is called in the table: ``user`` is a word of SQL."""
    return "person" if name == "user" else name


class StoredWord(Struct, frozen=True):
    """A word of any column. ``digest`` stands for it where a database bounds the length of what it
    can find."""

    id: Id
    digest: str
    word: str


WORD_TABLE = Table("usage_words", StoredWord, unique="digest")


class _Rank(Struct, frozen=True):
    """Which of two records of one attempt counts: one of an end, else the one that was asked for
    later, in ns. ``tie`` is of its content, so that the order of imports never decides."""

    asked: int
    tie: int


def _rank(row: str) -> str:
    return f"({row}.ended IS NOT NULL, {row}.asked, {row}.tie)"


JOBS = Table(
    "usage_jobs",
    [
        *(
            replace(column, name=in_table(column.name), python=int, sql="INTEGER")
            if column.name in CODED
            else column
            for column in _COLUMNS
            if column.name != "asked"
        ),
        *columns_of(_Rank),
    ],
    # In the order in which they are read, and come: neither sorts.
    primary_key="machine, submitted, job, attempt",
    replaced_if=f"{_rank('excluded')} > {_rank('usage_jobs')}",
)

# ---- columns -------------------------------------------------------------------------------------


class Words(NamedTuple):
    """A column of words: the place of each job's word among the names."""

    codes: SmallInts
    names: tuple[str, ...]

    @classmethod
    def of(cls, words: Sequence[str]) -> Self:
        """Return a column of these words. Its names are sorted."""
        names = tuple(sorted(set(words)))
        place = {name: i for i, name in enumerate(names)}
        return cls(np.fromiter(map(place.__getitem__, words), np.int32, len(words)), names)

    @classmethod
    def alike(cls, word: str, number: int) -> Self:
        """Return a column of so many times one word."""
        return cls(np.zeros(number, dtype=np.int32), (word,))

    def only(self, chosen: Bools | Ints) -> Self:
        """Return those that a mask or places choose, in that order."""
        return self._replace(codes=self.codes[chosen])

    def texts(self) -> list[str]:
        """Return the word of each job."""
        return [self.names[code] for code in self.codes.tolist()]

    def are(self, names: Iterable[str]) -> Bools:
        """Return which of them are one of these names."""
        wanted = set(names)
        found: Bools = np.array([name in wanted for name in self.names], dtype=bool)[self.codes]
        return found


class Jobs(Struct, frozen=True):
    """Jobs as columns of one length: numbers (NONE where one is not known) and words. It has those
    columns that were read."""

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
        for column in self.numbers.values():
            return len(column)
        for words in self.words.values():
            return len(words.codes)
        return 0

    def only(self, chosen: Bools | Ints) -> Self:
        """Return the jobs that a mask or places choose, in that order."""
        return type(self)(
            {name: column[chosen] for name, column in self.numbers.items()},
            {name: column.only(chosen) for name, column in self.words.items()},
        )

    def seconds_within(self, since: int, until: int) -> Ints:
        """Return how long each job held its cores from ``since`` to before ``until``, in s. A job
        that runs holds them until its record was asked for: later it may have ended. When a
        suspension was is not known, so its time is taken from the end of the job. The columns
        ``started``, ``ended``, ``suspended_s`` and ``asked`` are needed."""
        started, ended = self.numbers["started"], self.numbers["ended"]
        asked = self.numbers["asked"]
        known = np.where(asked > 0, np.minimum(asked, until), until)
        over = np.where(ended == NONE, known, ended) - self.numbers["suspended_s"]
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


def read_jobs(store: Store, chosen: Chosen, columns: Iterable[str] = ()) -> Jobs:
    """Return jobs of the store as columns, in the order of machine and submission.

    ``columns``: the names of those that are wanted; none: all. A million jobs with the 20 columns
    that questions use take 3 s and 300 MB, with 8 of them 1 s: name what is needed. ``job`` and
    ``node_list`` are texts of their own for each job, and cost the most.
    """
    wanted = frozenset(columns) or frozenset(UserJob.__struct_fields__)
    numbers, coded, plain = (
        [name for name in names if name in wanted]
        for names in (NUMBERS, CODED, ("job", "node_list"))
    )
    with store.reading():
        parts = list(_parts(store, chosen, [*numbers, *coded], plain))
        values = _joined([part.numbers for part in parts], len(numbers) + len(coded))
        ids = zip(coded, values[len(numbers) :], strict=True)
        words = {name: _decoded(store, column) for name, column in ids}
    for i, name in enumerate(plain):
        words[name] = Words.of([*chain.from_iterable(part.texts[i] for part in parts)])
    if "machine" in wanted:
        words["machine"] = _machines(parts)
    return Jobs(dict(zip(numbers, values, strict=False)), words)


JOBS_AT_ONCE = 50_000
"""How many jobs are read at once: as Python's numbers they take ten times the memory of arrays."""


class _Part(Struct, frozen=True):
    """Some jobs of one machine: columns of numbers, and of texts."""

    machine: str
    size: int
    numbers: list[Ints]
    texts: list[list[str]]


def _parts(
    store: Store, chosen: Chosen, numbers: Sequence[str], texts: Sequence[str]
) -> Iterator[_Part]:
    """Yield the chosen jobs, some at a time."""
    selected = ", ".join(map(_selected, numbers)) or "submitted"
    for machine in [chosen.machine] if chosen.machine else known_machines(store):
        for since, until in _spans(store, machine, chosen.until):
            rest, values = _conditions(machine, chosen, since, until)
            found = store.numbers(f"SELECT {selected} {rest}", values)
            columns = store.columns(f"SELECT {', '.join(texts)} {rest}", values) if texts else []
            yield _Part(machine, len(found[0]), found if numbers else [], columns)


def _selected(name: str) -> str:
    """Return the expression of a column of numbers that is never NULL."""
    if name == "asked":
        return f"asked / {SECOND_NS}"
    name = in_table(name)
    column = next(column for column in JOBS.columns if column.name == name)
    return f"coalesce({name}, {NONE})" if column.optional else name


def _conditions(machine: str, chosen: Chosen, since: int, until: int) -> tuple[str, list[object]]:
    """Return the query from FROM on, and its values, of jobs that were submitted within a span."""
    conditions, values = ["machine = ?", "submitted >= ?"], [machine, since]
    if until:
        conditions.append("submitted < ?")
        values.append(until)
    if chosen.since:
        conditions.append("(ended >= ? OR (ended IS NULL AND asked >= ?))")
        values += [chosen.since, chosen.since * SECOND_NS]
    where = " AND ".join(conditions)
    return f"FROM usage_jobs WHERE {where} ORDER BY machine, submitted, job, attempt", values


def _spans(store: Store, machine: str, until: int) -> Iterator[tuple[int, int]]:
    """Yield spans of time (the last one may have no end: 0) with about JOBS_AT_ONCE submissions
    each."""
    since = 0
    while True:
        found = store.rows(
            "SELECT submitted FROM usage_jobs WHERE machine = ? AND submitted >= ? "
            f"ORDER BY machine, submitted LIMIT 1 OFFSET {JOBS_AT_ONCE}",
            (machine, since),
        )
        end = max(found[0][0], since + 1) if found else 0
        if not end or (until and end >= until):
            yield since, until
            return
        yield since, end
        since = end


def known_machines(store: Store) -> list[str]:
    """Return the machines of which jobs were imported, sorted."""
    rows = store.rows("SELECT DISTINCT machine FROM usage_imports ORDER BY machine")
    return [machine for (machine,) in rows]


def _joined(parts: list[list[Ints]], number: int) -> list[Ints]:
    """Return columns from their parts, which are given up one by one: they are large."""
    columns: list[Ints] = []
    for i in range(number):
        columns.append(np.concatenate([part[i] for part in parts] or [np.zeros(0, np.int64)]))
        for part in parts:
            part[i] = np.zeros(0, np.int64)
    return columns


def _decoded(store: Store, ids: Ints) -> Words:
    """Return a column of words from their ids."""
    there = np.zeros(int(ids.max(initial=0)) + 1, dtype=bool)
    there[ids] = True
    used = np.flatnonzero(there)
    word_of: dict[int, str] = {}
    for some in chunks(used.tolist()):
        sql = f"SELECT id, word FROM usage_words WHERE id IN ({marks(len(some))})"
        word_of.update(store.rows(sql, some))
    ordered = sorted(word_of, key=word_of.__getitem__)
    place = np.zeros(len(there), dtype=np.int32)
    place[ordered] = np.arange(len(ordered), dtype=np.int32)
    return Words(place[ids], tuple(word_of[each] for each in ordered))


def _machines(parts: Sequence[_Part]) -> Words:
    """Return the column of the machines."""
    names = tuple(sorted({part.machine for part in parts}))
    codes = [names.index(part.machine) for part in parts]
    sizes = [part.size for part in parts]
    return Words(np.repeat(np.array(codes, dtype=np.int32), sizes), names)


# ---- nodes of jobs -------------------------------------------------------------------------------


class NodePlaces:
    """Finds nodes of some names in sets of nodes. Most sets of jobs are one span of numbers, of
    which the ends alone are looked for."""

    _SPAN = re.compile(r"([^\[\],]*?)(?:([0-9]+)|\[([0-9]+)-([0-9]+)\])")

    def __init__(self, names: Sequence[str]) -> None:
        self._place = {name: place for place, name in enumerate(names)}
        self._none: Ints = np.zeros(0, dtype=np.int64)
        numbered: dict[tuple[str, int], list[tuple[int, int]]] = {}
        for name, place in self._place.items():
            if (match := self._SPAN.fullmatch(name)) and match[2]:
                numbered.setdefault((match[1], len(match[2])), []).append((int(match[2]), place))
        self._spans = {
            key: ([number for number, _ in rows], np.array([place for _, place in rows]))
            for key, rows in ((key, sorted(rows)) for key, rows in numbered.items())
        }

    def of(self, nodes: str) -> tuple[Ints, int]:
        """Return the places of those names that a set has, and how many nodes the set has: 0 if
        that is not known."""
        if match := self._SPAN.fullmatch(nodes):
            first, last = match[2] or match[3], match[2] or match[4]
            if len(first) == len(last) and first <= last:
                numbers, places = self._spans.get((match[1], len(first)), ([], self._none))
                low, high = bisect_left(numbers, int(first)), bisect_right(numbers, int(last))
                return places[low:high], int(last) - int(first) + 1
        names = unfold_or_empty(nodes)
        known = [self._place[name] for name in names if name in self._place]
        return np.array(known, dtype=np.int64), len(names)
