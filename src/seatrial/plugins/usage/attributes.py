"""What jobs are told apart by: their size, month, application, field of science, kind of node.

    told = context_of(["hopper"], edges=(1, 16, 8192))
    words("size", jobs, told)             # Words: 1, 2-16, 17-8192, above 8192, (unknown)
    words("application", jobs, told)      # by the site's patterns, then by those that ship

Each attribute is a function of jobs that returns a word for each of them. What is not known is the
word ``(unknown)``; no job is dropped.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Struct

from seatrial.errors import UsageError
from seatrial.files import open_regular
from seatrial.lazy import Bools, Ints, SmallInts, np
from seatrial.model.documents import Location, load_checked
from seatrial.model.file_model import FileModel, doc
from seatrial.model.machine import NodeGroup
from seatrial.model.moments import zone_of
from seatrial.model.node_set import unfold
from seatrial.plugins.usage.jobs import STATES, Jobs, NodePlaces, Words
from seatrial.plugins.usage.settings import machine_of, settings_of
from seatrial.plugins.usage.sources.files import csv_rows
from seatrial.units import show_bytes

UNKNOWN = "(unknown)"

# ---- files of a site -----------------------------------------------------------------------------
#
# Which application a job ran, in which mode, and for which field of science.

MAX_EDGES = 40
MAX_SIZE = 10**9
SHIPPED = Path(__file__).parent / "shipped" / "applications.yaml"

_Patterns = str | list[str]


class JobPatterns(FileModel, frozen=True):
    """Patterns of a job, such as ``vasp*``; case does not matter. A rule is about the jobs of which
    the name, the executable or a module matches, if it has any of these keys, and that match each
    other key; of several patterns of one key, any. Without a key it is about all jobs."""

    name: Annotated[_Patterns, doc("job names")] = []
    executable: Annotated[
        _Patterns,
        doc("programs: the last part of the path; with a `/` or a space, all that is recorded"),
    ] = []
    module: Annotated[_Patterns, doc("modules that were loaded, as `records` have them")] = []
    user: Annotated[_Patterns, doc("users")] = []
    account: Annotated[_Patterns, doc("accounts")] = []
    queue: Annotated[_Patterns, doc("partitions or queues")] = []
    reservation: Annotated[_Patterns, doc("reservations")] = []
    machine: Annotated[_Patterns, doc("machines")] = []


class ApplicationRule(JobPatterns, frozen=True, kw_only=True):
    """The application of jobs."""

    application: Annotated[str, doc("the application, as tests name it by `app`")]


class ModeRule(JobPatterns, frozen=True, kw_only=True):
    """The mode of jobs, such as compat or native."""

    mode: Annotated[str, doc("the mode, such as compat or native")]


class FieldRule(JobPatterns, frozen=True, kw_only=True):
    """The field of science of jobs."""

    field: Annotated[str, doc("the field of science")]


class ApplicationFile(FileModel, frozen=True):
    """An ``applications.yaml``: the first rule that matches a job counts."""

    applications: Annotated[
        list[ApplicationRule], doc("rules for applications; those that ship come after them")
    ] = []
    modes: Annotated[
        list[ModeRule], doc("rules for modes; `- mode: native` as the last one is for all others")
    ] = []
    records: Annotated[
        list[str],
        doc(
            "files of executables by job, as XALT records them: JSON lines, or CSV with titles; "
            "keys: job, executable, modules, machine; paths start at the folder of this file"
        ),
    ] = []


class FieldFile(FileModel, frozen=True):
    """A ``fields.yaml``: accounts come first, then users, then rules, of which the first one that
    matches a job counts."""

    accounts: Annotated[dict[str, str], doc("the field of science of each account")] = {}
    users: Annotated[dict[str, str], doc("the field of science of each user")] = {}
    rules: Annotated[list[FieldRule], doc("rules for fields of science")] = []


Matches = Callable[[str], bool]


Need = tuple[tuple[str, Matches], ...]
"""Columns of a job, of which one must match."""

PROGRAM = ("name", "executable", "module")
"""Columns of which each may tell the program of a job."""


class Rule(NamedTuple):
    """A word, and what a job must have for it."""

    word: str
    needs: tuple[Need, ...]

    @property
    def columns(self) -> set[str]:
        return {column for need in self.needs for column, _ in need}


class _Record(NamedTuple):
    """What ran in a job, as a site records it."""

    executables: tuple[str, ...]
    modules: tuple[str, ...]


Records = Mapping[tuple[str, str], _Record]
"""By machine ("": any) and job."""


class JobTelling(NamedTuple):
    """What tells the application, the mode and the field of jobs."""

    applications: tuple[Rule, ...] = ()
    modes: tuple[Rule, ...] = ()
    fields: tuple[Rule, ...] = ()
    records: Records = {}


def load_applications(path: Path) -> ApplicationFile:
    """Return a file of applications. Raises InvalidFiles with every fault."""
    return load_checked(path, ApplicationFile, _check_applications)


def load_fields(path: Path) -> FieldFile:
    """Return a file of fields: YAML, or CSV with the titles account (or user) and field. Raises
    InvalidFiles, or UsageError with the line."""
    if path.suffix == ".csv":
        return _fields_of_csv(path)
    return load_checked(path, FieldFile, _check_fields)


def _check_applications(file: ApplicationFile, at: Location) -> None:
    for key, rules in (("applications", file.applications), ("modes", file.modes)):
        words = [getattr(rule, key.removesuffix("s")) for rule in rules]
        _check_rules(rules, words, at.inside(key), key.removesuffix("s"))
    for i, name in enumerate(file.records):
        place = at.inside("records", i)
        if not (path := _beside(name, place)).is_file():
            place.fault(f"{path} is no file; paths start at the folder of this file")


def _check_fields(file: FieldFile, at: Location) -> None:
    _check_rules(file.rules, [rule.field for rule in file.rules], at.inside("rules"), "field")
    for key, named in (("accounts", file.accounts), ("users", file.users)):
        for name, field in named.items():
            if not field.strip():
                at.fault("is empty; name the field of science", key, name)


def _check_rules(
    rules: Sequence[JobPatterns], words: Sequence[str], at: Location, key: str
) -> None:
    for i, (rule, word) in enumerate(zip(rules, words, strict=True)):
        if not word.strip():
            at.fault(f"is empty; name the {key}", i, key)
        elif word == UNKNOWN:
            at.fault(f"{UNKNOWN} is what no rule matches; name the {key}", i, key)
        for column, patterns in _patterns_of(rule).items():
            if not all(pattern.strip() for pattern in patterns):
                at.fault("is empty; write a pattern such as vasp*", i, column)
        if not _patterns_of(rule) and i + 1 < len(rules):
            at.fault("matches all jobs, so no rule below it counts; put it last", i)


def _beside(name: str, at: Location) -> Path:
    return at.node.place_of(*at.key).path.parent / name


def _patterns_of(rule: JobPatterns) -> dict[str, list[str]]:
    """Return the patterns of a rule by column."""
    given: dict[str, Any] = {
        name: getattr(rule, name) for name in JobPatterns.__struct_fields__ if getattr(rule, name)
    }
    return {key: [value] if isinstance(value, str) else value for key, value in given.items()}


def _rule(word: str, rule: JobPatterns, machines: Collection[str] = ()) -> Rule:
    """Return a rule, of these machines alone where some are named."""
    tests = {
        column: _MATCHES.get(column, glob_matches)(globs)
        for column, globs in _patterns_of(rule).items()
    }
    of_program = tuple((column, tests.pop(column)) for column in PROGRAM if column in tests)
    others = tuple((test,) for test in tests.items())
    return Rule(word, (*((of_program,) if of_program else ()), *others, *_of_machines(machines)))


def _of_machines(machines: Collection[str]) -> tuple[Need, ...]:
    return ((("machine", frozenset(machines).__contains__),),) if machines else ()


def glob_matches(globs: Collection[str]) -> Matches:
    """Return what tells whether one of these globs matches a whole text. ``*`` is any text, ``?``
    any character; case does not matter."""
    if not globs:
        return lambda _: False
    parts = ("".join(_GLOB.get(char) or re.escape(char) for char in glob) for glob in globs)
    pattern = re.compile("|".join(parts), re.IGNORECASE | re.DOTALL)
    return lambda text: pattern.fullmatch(text) is not None


_GLOB = {"*": ".*", "?": "."}


def _matches_program(globs: Collection[str]) -> Matches:
    """Return what tells whether one of these globs matches one of the executables, a line each: the
    last part of its path, or all of it if the glob has a ``/`` or a space."""
    of_path = glob_matches([glob for glob in globs if _WHOLE & {*glob}])
    of_program = glob_matches([glob for glob in globs if not _WHOLE & {*glob}])
    return lambda text: any(
        of_path(line) or of_program(program_of(line)) for line in text.split("\n")
    )


def _matches_module(globs: Collection[str]) -> Matches:
    """Return what tells whether one of these globs matches one of the modules, a line each."""
    matches = glob_matches(globs)
    return lambda text: any(map(matches, text.split("\n")))


_MATCHES = {"executable": _matches_program, "module": _matches_module}
_WHOLE = {"/", " "}


def program_of(executable: str) -> str:
    """Return the name of a program: ``vasp`` of ``/opt/vasp -v``."""
    return executable.strip().partition(" ")[0].rpartition("/")[2]


def _fields_of_csv(path: Path) -> FieldFile:
    named: dict[str, dict[str, str]] = {"account": {}, "user": {}}
    for line, row in csv_rows(path):
        field = (row.get("field") or "").strip()
        keys = [key for key in named if (row.get(key) or "").strip()]
        if not field or len(keys) != 1:
            raise UsageError(
                f"{path}:{line}: needs an account (or a user) and a field; write the titles "
                "account,field in the first line, and both in each other line"
            )
        named[keys[0]][row[keys[0]].strip()] = field
    return FieldFile(accounts=named["account"], users=named["user"])


# ---- records of executables ----------------------------------------------------------------------


class _Written(Struct, frozen=True):
    """A line of a file of records."""

    job: str | int
    executable: str | list[str] = ""
    modules: str | list[str] = ""
    machine: str = ""


def read_records(paths: Iterable[Path]) -> Records:
    """Return what ran in each job. Raises UsageError with the line that is at fault."""
    found: dict[tuple[str, str], list[_Record]] = {}
    for path in paths:
        for written in _written(path):
            made = _Record(_listed(written.executable, "\n"), _listed(written.modules, None))
            found.setdefault((written.machine, str(written.job)), []).append(made)
    return {
        key: _Record(
            tuple(dict.fromkeys(name for one in records for name in one.executables)),
            tuple(dict.fromkeys(name for one in records for name in one.modules)),
        )
        for key, records in found.items()
    }


def _listed(value: str | list[str], separator: str | None) -> tuple[str, ...]:
    parts = value.split(separator) if isinstance(value, str) else value
    return tuple(part.strip() for part in parts if part.strip())


def _written(path: Path) -> Iterator[_Written]:
    if path.suffix == ".csv":
        lines: Iterator[tuple[int, Any]] = csv_rows(path)
    else:
        lines = _json_lines(path)
    for line, row in lines:
        kept = {key: value for key, value in row.items() if value is not None}
        try:
            yield msgspec.convert(kept, _Written)
        except msgspec.ValidationError as error:
            raise UsageError(
                f'{path}:{line}: {error}; write e.g. {{"job": "12", "executable": "/opt/vasp"}}'
            ) from None


def _json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    try:
        with open_regular(path) as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    row = msgspec.json.decode(line)
                    if not isinstance(row, dict):
                        raise UsageError(f"{path}:{number}: is no JSON object of keys and values")
                    yield number, row
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None
    except msgspec.DecodeError as error:
        raise UsageError(f"{path}:{number}: is no JSON: {error}") from None


# ---- what is known of machines -------------------------------------------------------------------


class Context(Struct, frozen=True, kw_only=True):
    """What attributes are told by, beside the jobs."""

    #: The largest size of each class but the last one, ascending; (): powers.
    edges: tuple[int, ...] = ()
    telling: JobTelling = JobTelling()
    #: The kinds of nodes of each machine that a file describes.
    kinds: Mapping[str, tuple[NodeGroup, ...]] = {}
    #: The time zone of months and days.
    zone: tzinfo | None = None


def context_of(
    machines: Collection[str],
    edges: Sequence[int] = (),
    fields: Path | None = None,
    applications: Path | None = None,
    zone: tzinfo | None = None,
) -> Context:
    """Return what the files of these machines say; ``fields`` and ``applications`` are read in
    place of theirs. Raises InvalidFiles and UsageError."""
    described = {name: found for name in machines if (found := machine_of(name)) is not None}
    return Context(
        edges=_checked_edges(edges),
        telling=_telling(described, fields, applications),
        kinds={name: tuple(machine.nodes) for name, machine in described.items()},
        zone=zone or _zone_of_machines(described),
    )


def _zone_of_machines(machines: Collection[str]) -> tzinfo | None:
    """Return the time zone that all of these machines have; None, that of this host, if they have
    none, or several."""
    zones = {settings_of(name).time_zone for name in machines}
    return zone_of(zones.pop()) if len(zones) == 1 else None


def _checked_edges(edges: Sequence[int]) -> tuple[int, ...]:
    if any(not 1 <= edge <= MAX_SIZE for edge in edges) or list(edges) != sorted(set(edges)):
        raise UsageError("--edges: write sizes of 1 or more, ascending, such as 1,16,1024,8192")
    if len(edges) > MAX_EDGES:
        raise UsageError(f"--edges: {len(edges)} sizes; the most is {MAX_EDGES}")
    return tuple(edges)


def _telling(
    machines: Collection[str], fields: Path | None, applications: Path | None
) -> JobTelling:
    of_fields = _machines_by_file(machines, "fields", fields)
    of_applications = _machines_by_file(machines, "applications", applications) | {SHIPPED: []}
    files = {path: load_applications(path) for path in of_applications}
    return JobTelling(
        tuple(
            _rule(rule.application, rule, of_applications[path])
            for path, file in files.items()
            for rule in file.applications
        ),
        tuple(
            _rule(rule.mode, rule, of_applications[path])
            for path, file in files.items()
            for rule in file.modes
        ),
        tuple(
            rule
            for path, names in of_fields.items()
            for rule in _field_rules(load_fields(path), names)
        ),
        read_records(path.parent / name for path, file in files.items() for name in file.records),
    )


def _machines_by_file(
    machines: Collection[str], key: str, given: Path | None
) -> dict[Path, list[str]]:
    """Return the files that a key of machines names, each with its machines; or the one file that
    is given for all of them."""
    if given is not None:
        return {given: []}
    files: dict[Path, list[str]] = {}
    for name in machines:
        if path := getattr(settings_of(name), key):
            files.setdefault(Path(path), []).append(name)
    return files


def _field_rules(file: FieldFile, machines: Collection[str]) -> Iterator[Rule]:
    for column, named in (("account", file.accounts), ("user", file.users)):
        names: dict[str, list[str]] = {}
        for name, field in named.items():
            names.setdefault(field, []).append(name)
        for field, of_field in names.items():
            exact = frozenset(of_field).__contains__
            yield Rule(field, (((column, exact),), *_of_machines(machines)))
    for rule in file.rules:
        yield _rule(rule.field, rule, machines)


# ---- attributes ----------------------------------------------------------------------------------


class Attribute(NamedTuple):
    """Something by which jobs are told apart."""

    #: Above its words.
    title: str
    #: The columns of jobs that it needs.
    needs: tuple[str, ...]
    words: Callable[[Jobs, Context], Words]
    #: The rules that tell it; "" if none do.
    rules: str = ""
    #: The column whose words are to be in a rule next.
    next_rule: str = ""
    #: Whether its words have an order of their own; others are ordered by what they have.
    ordered: bool = False

    @property
    def option(self) -> str:
        """The option of commands that names the file of its rules."""
        return "fields" if self.rules == "fields" else "applications"

    def columns(self, context: Context) -> set[str]:
        """Return the columns of jobs that it needs."""
        if not self.rules:
            return {*self.needs}
        rules: tuple[Rule, ...] = getattr(context.telling, self.rules)
        columns = {column for rule in rules for column in rule.columns} - {"module"}
        if context.telling.records:
            columns |= {"machine", "job", "executable"}
        return columns | {"machine", self.next_rule}

    def told_by_rules(self, text: str, context: Context) -> str:
        """Return the word of the first rule that a name or an executable alone matches."""
        rules: tuple[Rule, ...] = getattr(context.telling, self.rules)
        for rule in rules:
            of_program = [test for need in rule.needs for test in need if test[0] in PROGRAM]
            if any(matches(text) for _, matches in of_program):
                return rule.word
        return UNKNOWN


def words(name: str, jobs: Jobs, context: Context) -> Words:
    """Return the word of each job for an attribute."""
    return ATTRIBUTES[name].words(jobs, context)


NAMING = frozenset({"user", "account"})
"""Attributes whose words are names of people and their projects."""


def shown_names(name: str, names: Sequence[str], with_names: bool) -> Sequence[str]:
    """Return the words of an attribute as they may be shown: numbers stand for names of people."""
    if name not in NAMING or with_names:
        return names
    numbers = itertools.count(1)
    return [word if word == UNKNOWN else f"{name} {next(numbers)}" for word in names]


def _column(name: str) -> Callable[[Jobs, Context], Words]:
    def column(jobs: Jobs, _: Context) -> Words:
        codes, names = jobs.words[name]
        return Words(codes, tuple(name or UNKNOWN for name in names))

    return column


def _state(jobs: Jobs, _: Context) -> Words:
    """Return the states, in the order of `STATES`."""
    codes, names = jobs.words["state"]
    known = [*STATES, *(name for name in names if name not in STATES)]
    places = np.array([known.index(name) for name in names], dtype=np.int32)
    return Words(places[codes] if len(names) else codes, tuple(known))


def _sizes(column: str, powers: tuple[int, ...]) -> Callable[[Jobs, Context], Words]:
    def sizes(jobs: Jobs, context: Context) -> Words:
        edges = context.edges or powers
        amounts = jobs.numbers[column]
        codes = np.searchsorted(np.array(edges), amounts).astype(np.int32)
        codes[amounts <= 0] = len(edges) + 1
        return Words(codes, (*size_classes(edges), UNKNOWN))

    return sizes


POWERS = tuple(2 ** (2 * power + 1) for power in range(9))
"""2, 8, ... 8192, ... 131072 cores."""


def size_classes(edges: Sequence[int]) -> list[str]:
    """Return the names of the classes that have these sizes as their largest, and of the last one,
    which has none: ``1``, ``2-16``, ``above 16``."""
    starts = [1, *(edge + 1 for edge in edges)]
    inside = [str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, edges, strict=False)]
    return [*inside, f"above {edges[-1]}"]


# ---- by rules


def _by_rules(kind: str) -> Callable[[Jobs, Context], Words]:
    def told(jobs: Jobs, context: Context) -> Words:
        rules = getattr(context.telling, kind)
        return tell(jobs, rules, context.telling.records)

    return told


def tell(jobs: Jobs, rules: Sequence[Rule], records: Records) -> Words:
    """Return the word of the first rule that matches each job; `UNKNOWN` where none does."""
    columns = {**jobs.words, **_recorded(jobs, records)}
    names = list(dict.fromkeys(rule.word for rule in rules))
    codes = np.full(len(jobs), len(names), dtype=np.int32)
    left = np.ones(len(jobs), dtype=bool)
    for rule in rules:
        hit = left.copy()
        for need in rule.needs:
            hits = np.zeros(len(jobs), dtype=bool)
            for column, matches in need:
                if column in columns:
                    hits |= _hits(columns[column], matches)
            hit &= hits
        codes[hit] = names.index(rule.word)
        left &= ~hit
    return Words(codes, (*names, UNKNOWN))


def _hits(column: Words, matches: Matches) -> Bools:
    """Return of which jobs the word matches; one that is not known matches nothing."""
    hits = [bool(name) and matches(name) for name in column.names]
    found: Bools = np.array(hits, dtype=bool)[column.codes]
    return found


def _recorded(jobs: Jobs, records: Records) -> dict[str, Words]:
    """Return the executables and modules of jobs with what records have of them. A job whose id two
    jobs of its machine have is left as it is: which of them the record is of, nobody knows."""
    if not records:
        return {}
    machine, job = jobs.words["machine"], jobs.words["job"]
    submitted = jobs.numbers["submitted"]
    known = {name: place for place, name in enumerate(job.names)}
    wanted = np.zeros(len(job.names), dtype=bool)
    wanted[[known[name] for _, name in records if name in known]] = True
    places: dict[tuple[str, str], list[int]] = {}
    for place in np.flatnonzero(wanted[job.codes]).tolist():
        key = (machine.names[machine.codes[place]], job.names[job.codes[place]])
        places.setdefault(key, []).append(place)
    found = {
        place: record
        for key, of_key in places.items()
        if (record := records.get(key) or records.get(("", key[1]))) is not None
        and len({*submitted[of_key].tolist()}) == 1
        for place in of_key
    }
    return {
        "executable": _with(jobs.words["executable"], found, "executables"),
        "module": _with(Words.of([""] * len(jobs)), found, "modules"),
    }


def _with(column: Words, found: Mapping[int, _Record], part: str) -> Words:
    """Return a column with the words that records have in place of its own."""
    names = {name: place for place, name in enumerate(column.names)}
    codes = column.codes.copy()
    for place, record in found.items():
        if text := "\n".join(getattr(record, part)):
            codes[place] = names.setdefault(text, len(names))
    return Words(codes, tuple(names))


# ---- by the machine's file


def _node_kind(jobs: Jobs, context: Context) -> Words:
    """Return the kinds of the nodes of each job; of several kinds with a + between them."""
    machine, nodes = jobs.words["machine"], jobs.words["node_list"]
    codes = np.full(len(jobs), -1, dtype=np.int32)
    names: dict[str, int] = {}
    for place, name in enumerate(machine.names):
        groups = context.kinds.get(name, ())
        chosen = np.flatnonzero(machine.codes == place)
        if not groups or not len(chosen):
            continue
        kind_of = {node: kind_name(group) for group in groups for node in unfold(group.names)}
        places, words_of = NodePlaces([*kind_of]), Words.of([*kind_of.values()])
        told, of_job = np.unique(nodes.codes[chosen], return_inverse=True)
        kinds = [_kinds_in(nodes.names[code], places, words_of) for code in told.tolist()]
        of_list = np.array([names.setdefault(kind, len(names)) for kind in kinds], dtype=np.int32)
        codes[chosen] = of_list[of_job]
    codes[codes < 0] = names.setdefault(UNKNOWN, len(names))
    return Words(codes, tuple(names))


def _kinds_in(nodes: str, places: NodePlaces, kinds: Words) -> str:
    """Return the kinds of a set of nodes; `UNKNOWN` if one of them is none of the machine.
    ``kinds``: of each of the places."""
    inside, total = places.of(nodes)
    if not total or len(inside) < total:
        return UNKNOWN
    there = np.flatnonzero(np.bincount(kinds.codes[inside]))  # quicker than np.unique
    return " + ".join(kinds.names[code] for code in there.tolist())


def kind_name(group: NodeGroup) -> str:
    """Return what a kind of nodes is called: by its features, its partition, or its size."""
    size = f"{group.cores} cores"
    if group.memory.bytes:
        size += f", {show_bytes(group.memory.bytes)}"
    return "+".join(group.features) or group.partition or size


# ---- by how they ended

_CAUSES = {
    "timeout": "time limit",
    "node_fail": "node failed",
    "out_of_memory": "out of memory",
    "cancelled": "cancelled",
    "preempted": "preempted",
    "requeued": "requeued",
    "completed": "ended well",
    "pending": "has not ended",
    "running": "has not ended",
    "suspended": "has not ended",
}


def _cause(jobs: Jobs, _: Context) -> Words:
    """Return why each job ended: by its state, and of one that failed its signal or exit code."""
    state = jobs.words["state"]
    names: dict[str, int] = {}
    causes = [_CAUSES.get(name, UNKNOWN) for name in state.names]
    of_state = np.array([names.setdefault(each, len(names)) for each in causes], dtype=np.int32)
    codes = of_state[state.codes]
    failed = np.flatnonzero(state.are(["failed"]))
    ends = np.array([jobs.numbers["signal"][failed], jobs.numbers["exit_code"][failed]])
    told, of_failed = np.unique(ends, axis=1, return_inverse=True)
    words_of = [_failure(signal, exit_code) for signal, exit_code in told.T.tolist()]
    places = np.array([names.setdefault(each, len(names)) for each in words_of], dtype=np.int32)
    codes[failed] = places[of_failed]
    return Words(codes, tuple(names))


def _failure(signal: int, exit_code: int) -> str:
    """Return why a job failed."""
    if signal > 0:
        return f"signal {signal}"
    return f"exit code {exit_code}" if exit_code > 0 else UNKNOWN


# ---- months


def month_starts(since: int, until: int, zone: tzinfo | None) -> tuple[Ints, tuple[str, ...]]:
    """Return the bounds of the calendar months of a span, in s, its ends first and last, and the
    name of each month (``2011-03``). Months begin at midnight in the time zone; where the clocks
    skip that hour, when they go on."""
    first = datetime.fromtimestamp(since, zone)
    year, month = first.year, first.month
    names = [f"{year:04d}-{month:02d}"]
    bounds = [since]
    while True:
        year, month = (year + 1, 1) if month == 12 else (year, month + 1)
        start = _moment(year, month, zone)
        if start >= until:
            break
        bounds.append(start)
        names.append(f"{year:04d}-{month:02d}")
    return np.array([*bounds, until], dtype=np.int64), tuple(names)


def _moment(year: int, month: int, zone: tzinfo | None) -> int:
    """Return when a month begins, in s."""
    return int(datetime(year, month, 1, tzinfo=zone).timestamp())


def zone_name(zone: tzinfo | None) -> str:
    """Return the name of a time zone; of this host's, as its clock has it: ``CET/CEST``."""
    return str(zone) if zone is not None else "/".join(dict.fromkeys(time.tzname))


def month_of(times: Ints, zone: tzinfo | None) -> Words:
    """Return the month of each time."""
    if not len(times):
        return Words(np.zeros(0, dtype=np.int32), ())
    bounds, names = month_starts(int(times.min()), int(times.max()) + 1, zone)
    places: SmallInts = (np.searchsorted(bounds, times, side="right") - 1).astype(np.int32)
    return Words(places, names)


MONTH = "month"

ATTRIBUTES: Mapping[str, Attribute] = {
    "size": Attribute("Cores", ("cores",), _sizes("cores", POWERS), ordered=True),
    "nodes": Attribute("Nodes", ("nodes",), _sizes("nodes", (1, *POWERS)), ordered=True),
    "user": Attribute("User", ("user",), _column("user")),
    "account": Attribute("Account", ("account",), _column("account")),
    "field": Attribute("Field", (), _by_rules("fields"), "fields", "account"),
    "application": Attribute("Application", (), _by_rules("applications"), "applications", "name"),
    "mode": Attribute("Mode", (), _by_rules("modes"), "modes", "queue"),
    "queue": Attribute("Queue", ("queue",), _column("queue")),
    "node-kind": Attribute("Kind of node", ("machine", "node_list"), _node_kind),
    "machine": Attribute("Machine", ("machine",), _column("machine")),
    "state": Attribute("State", ("state",), _state, ordered=True),
    "cause": Attribute("Cause", ("state", "signal", "exit_code"), _cause),
}
"""What jobs are told apart by, beside `MONTH`, by the names of ``--by``."""


def title_of(name: str) -> str:
    """Return the title of a column of words, of `MONTH` and others that are no attribute, too."""
    return ATTRIBUTES[name].title if name in ATTRIBUTES else name.capitalize()
