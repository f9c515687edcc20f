"""In what two sides of a comparison differ besides what they measured.

for one in differences(base, other):
    one.subject, one.what, one.first, one.second     # "toolchain gcc", "version", "12.2", "13.1"

What is known of a trial: its record (machine, toolchains, tests, versions), the environments that
its runs had, and what its input files held. What cannot be told is said.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from seatrial.errors import SeatrialError, TrialError
from seatrial.execute.toolchains import PACKAGES, not_known, read_compiler_facts, versions_of
from seatrial.execute.trial_folder import Record, TrialFolder
from seatrial.execute.trial_paths import BUILD_RESULT, TrialPaths
from seatrial.files import read_regular
from seatrial.hooks import load, provided
from seatrial.model import build
from seatrial.model.file_model import plain
from seatrial.model.identifiers import case_name
from seatrial.model.machine import SlurmOverride
from seatrial.model.run_settings import ASKED_KEYS, as_written
from seatrial.model.schedulers import Slurm
from seatrial.model.task_placement import launcher_of
from seatrial.model.test import Test
from seatrial.results.references import DIGITS, bound_parameters, files_of, sums_of
from seatrial.results.selection import Difference, Side
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import TrialRow
from seatrial.units import SECOND_NS, listed

MAX_TRIALS = 32  # of a side that are looked into, the newest
MAX_NAMED = 12
MAX_BUILDS = 500  # of a trial whose compilers are read

_NOT_OF_FIGURES = {  # launchers are told of each test
    "machine": (
        "machine",
        "about",
        "toolchains",
        "launcher",
        "rehearsal",
        "gauges",
        "jobs",
        "facts",
        "guard",
        "file_use",
        "log_rules",
        "known_failures",
    ),
    "toolchain": ("launcher",),
    "test": (
        "name",
        "folder",
        "about",
        "tags",
        "repeat",
        "inputs",
        "toolchains",
        "inherits",
        "failures",
    ),
}
# What a test asks of the scheduler, which is told with its values.
_ASKED = {f"run.{key}" for key in ASKED_KEYS}
LONGEST = 60  # characters of the values of a side


class SideRecords(Struct):
    """What is known of a side's trials; ``unread`` are trials whose record could not be read."""

    side: Side
    records: list[tuple[TrialRow, Record]]
    unread: list[str]


BothSides = tuple[SideRecords, SideRecords]


def differences(first: Side, second: Side) -> list[Difference]:
    """What differs between two sides, the most telling first; nothing where all is the same, or
    where a side was given, as it tells nothing of how it was measured."""
    if first.given or second.given:
        return []
    sides = (_origin(first), _origin(second))
    same_trials = {t.path for t in first.trials} == {t.path for t in second.trials}
    versions = (_all(side, lambda record: record.version) for side in sides)
    found = [*_unread(sides), *difference_of("seatrial", "version", *versions)]
    found += [*_machines(sides), *_toolchains(sides), *_packages(sides)]
    found += [*_launchers(sides), *_libraries(sides)]
    if not same_trials:
        found += [*_tests(sides), *input_differences(sides), *_environments(sides)]
    found += _sums(sides)
    return found


def _origin(side: Side) -> SideRecords:
    origin = SideRecords(side, [], [])
    for trial in side.trials[-MAX_TRIALS:]:
        try:
            origin.records.append((trial, TrialFolder(Path(trial.path)).record()))
        except TrialError:
            origin.unread.append(trial.tag)
    return origin


def _unread(sides: BothSides) -> Iterator[Difference]:
    for side in sides:
        passed = len(side.side.trials) - MAX_TRIALS
        if passed > 0:
            yield Difference("trials", f"{passed} older ones of {side.side.text} not looked into")
        if side.unread:
            named = ", ".join(side.unread[:MAX_NAMED])
            yield Difference("trials", f"no readable trial.json, so nothing is known of: {named}")


def _all(side: SideRecords, part: Any) -> set[str]:
    return {str(part(record)) for _, record in side.records}


# ---- machines and toolchains --------------------------------------------------------------


def _machines(sides: BothSides) -> Iterator[Difference]:
    names = [_all(side, lambda r: r.machine.machine) for side in sides]
    yield from difference_of("machine", "name", *names)
    for name in sorted(names[0] & names[1]) if names[0] == names[1] else [""]:
        described = [
            [
                _fields(r.machine, "machine")
                for _, r in side.records
                if name in ("", r.machine.machine)
            ]
            for side in sides
        ]
        yield from _field_differences(f"machine {name}".strip(), described)


def _fields(value: Struct, kind: str) -> dict[str, Any]:
    left_out = _NOT_OF_FIGURES.get(kind, ())
    names = [name for name in value.__struct_fields__ if name not in left_out]
    return {name: plain(getattr(value, name)) for name in names}


def _changed(sides: Sequence[list[dict[str, Any]]]) -> dict[str, list[set[str]]]:
    """Return the keys whose values are not the same on both sides, with the values of each side; no
    key where a side has nothing."""
    if not all(sides):
        return {}
    keys = dict.fromkeys(key for side in sides for fields in side for key in fields)
    values = {
        key: [{value_text(one.get(key, "")) for one in side} for side in sides] for key in keys
    }
    return {key: both for key, both in values.items() if both[0] != both[1]}


def _field_differences(subject: str, sides: Sequence[list[dict[str, Any]]]) -> Iterator[Difference]:
    """Fields whose values are not the same on both sides; long ones are only named."""
    long = []
    for name, (one, other) in _changed(sides).items():
        if max(map(len, one | other)) <= LONGEST:
            yield Difference(subject, name, in_short(one), in_short(other))
        else:
            long.append(name)
    if long:
        yield Difference(subject, ", ".join(long))


def _toolchains(sides: BothSides) -> Iterator[Difference]:
    """Toolchains of the same name; or, where each side has one, that one with the other."""
    used = [side.side.all_of("toolchain") - {""} for side in sides]
    yield from difference_of("toolchain", "name", *used)
    crossed = len(used[0]) == len(used[1]) == 1 and used[0] != used[1]
    if crossed:
        pairs = list(zip(*used, strict=True))
    else:
        pairs = [(name, name) for name in sorted(used[0] & used[1])]
    for names in pairs:
        subject = "toolchain" if crossed else f"toolchain {names[0]}"
        described = [
            _described_toolchain(side, name) for side, name in zip(sides, names, strict=True)
        ]
        yield from _field_differences(subject, described)
        built = [_facts_of_builds(side, name) for side, name in zip(sides, names, strict=True)]
        yield from _compilers(subject, built)


def _facts_of_builds(side: SideRecords, name: str) -> list[dict[str, str]]:
    """Return what the builds of a side found of a toolchain."""
    return [facts for facts in _found_by_builds(side) if facts.get("toolchain") == name]


def _described_toolchain(side: SideRecords, name: str) -> list[dict[str, Any]]:
    """Return what the machines of a side tell of a toolchain."""
    toolchains = [record.machine.toolchains for _, record in side.records]
    return [_fields(known[name], "toolchain") for known in toolchains if name in known]


def _compilers(subject: str, sides: Sequence[list[dict[str, str]]]) -> Iterator[Difference]:
    """Yield what builds of a toolchain found on each side. Nobody can say of what is not known that
    it is the same."""
    versions = [_by_name(map(versions_of, side)) for side in sides]
    unknown = {name for facts in chain(*sides) for name in not_known(facts)}
    for name in dict.fromkeys(chain(*versions)):
        one, other = (side.get(name, set()) for side in versions)
        what = f"{name} as builds found it"
        if one and other and name in unknown:
            again = ", and may be another" if one == other else ""
            yield Difference(subject, what, in_short(one), f"{in_short(other)}{again}")
        else:
            yield from difference_of(subject, what, one, other)


def _by_name(facts: Iterable[Mapping[str, str]]) -> dict[str, set[str]]:
    """Return the values that facts have of each name."""
    values: dict[str, set[str]] = {}
    for each in facts:
        for name, value in each.items():
            values.setdefault(name, set()).add(value)
    return values


def _packages(sides: BothSides) -> Iterator[Difference]:
    """The packages of Spack and EasyBuild that builds installed, with their keys."""
    found = [_found_by_builds(side) for side in sides]
    for what in PACKAGES:
        one, other = ({each[what] for each in of_side if what in each} for of_side in found)
        yield from difference_of("build", f"package of {what}", one, other)


def _found_by_builds(side: SideRecords) -> list[dict[str, str]]:
    """Return what builds of a side found: their compilers, their package."""
    found = []
    for trial, _ in side.records:
        folders = islice(TrialFolder(Path(trial.path)).builds.glob("[!.]*"), MAX_BUILDS)
        found += [facts for each in folders if (facts := read_compiler_facts(each))]
    return found


def _shared_tests(sides: BothSides) -> list[str]:
    return sorted(sides[0].side.all_of("test") & sides[1].side.all_of("test"))


# ---- tests --------------------------------------------------------------------------------


def _tests(sides: BothSides) -> Iterator[Difference]:
    for name in _shared_tests(sides):
        records = [[record for _, record in side.records if name in record.tests] for side in sides]
        if all(records):
            yield from _test_differences(sides, name, records)


def _test_differences(
    sides: BothSides, name: str, records: Sequence[list[Record]]
) -> Iterator[Difference]:
    """Yield in what a test differs, by the records of either side that have it."""
    subject = f"test {name}"
    changed = _changed([[_parts(record.tests[name]) for record in side] for side in records])
    if changed:
        yield Difference(subject, ", ".join(changed))
    asked = [[_asked(record, name) for record in side] for side in records]
    first, second = ({text for text, _ in side} for side in asked)
    if first != second:
        yield from _field_differences(subject, [[own for _, own in side] for side in asked])
    elif not changed and _builds_differ(sides, name):
        yield Difference(subject, "sources, or what else its build depends on")


def _parts(test: "Test") -> dict[str, Any]:
    """What a test is, key by key, as its file has them: ``run.script``, ``metrics.triad``."""
    parts: dict[str, Any] = {}
    for name, value in _fields(test, "test").items():
        if name in ("run", "build", "metrics") and isinstance(value, dict):
            inside = {f"{name}.{key}": inner for key, inner in value.items()}
            parts |= {key: inner for key, inner in inside.items() if key not in _ASKED}
        else:
            parts[name] = value
    return parts


def _asked(record: "Record", name: str) -> tuple[str, dict[str, str]]:
    """Return what a trial asked of the scheduler for a test: a text of what the test and its plan
    say, and what it came to on the machine."""
    run = record.tests[name].run
    plan = record.component.slurm if record.component else SlurmOverride()
    return str(as_written(Slurm(), run, plan)), as_written(record.machine.slurm, run, plan)


def _builds_differ(sides: BothSides, test: str) -> bool:
    """Whether the builds of a test do, on the same machine with the same toolchains."""
    names = [(side.side.all_of("machine"), side.side.all_of("toolchain")) for side in sides]
    one, other = (
        {m.build for m in side.side.cases if m.test == test and m.build} for side in sides
    )
    return names[0] == names[1] and bool(one and other) and not one & other


# ---- programs -----------------------------------------------------------------------------


def _launchers(sides: BothSides) -> Iterator[Difference]:
    """What starts the tasks of a test: the launcher, and the options that it is given."""
    for name in _shared_tests(sides):
        one, other = (_launched(side, name) for side in sides)
        for i, what in enumerate(("launcher", "launcher's options")):
            yield from difference_of(
                f"test {name}", what, *({e[i] for e in side} for side in (one, other))
            )


def _launched(side: SideRecords, test: str) -> set[tuple[str, str]]:
    """Return the launchers of a test's cases, as words, each with its options."""
    cases = [one for one in side.side.cases if one.test == test]
    found = set()
    for trial, record in side.records:
        for case in (case for case in cases if case.trial == trial.tag and test in record.tests):
            launcher = launcher_of(
                record.machine, record.tests[test], case.toolchain, case.parameters
            )
            flavour = "" if launcher.flavour == "other" else f" ({launcher.flavour})"
            said = f"{launcher.kind}{flavour}{launcher.command and ': '}{launcher.command}"
            found.add((said, " ".join(launcher.options)))
    return found


def _libraries(sides: BothSides) -> Iterator[Difference]:
    """Shared libraries that a test's binaries found elsewhere, or did not need, on one side."""
    one, other = (libraries_of(side.side) for side in sides)
    for test in sorted(one.keys() & other.keys()):
        subject = f"test {test}"
        differ: list[Difference] = []
        for name in sorted(one[test].keys() | other[test].keys()):
            files = (side[test].get(name, {""}) for side in (one, other))
            differ += difference_of(subject, f"linked {name}", *files)
        yield from differ[:MAX_NAMED]
        if len(differ) > MAX_NAMED:
            yield Difference(subject, f"{len(differ) - MAX_NAMED} more linked libraries")


# ---- files that must be identical -----------------------------------------------------------


def _sums(sides: BothSides) -> Iterator[Difference]:
    """Files that must be the same bit for bit, and that runs of the same case wrote with other sums
    on one side than on the other."""
    one, other = (sums_of_side(side.side, side.records) for side in sides)
    for case, file in sorted(one.keys() & other.keys()):
        shown = ({sha256[:DIGITS] for sha256 in sums[case, file]} for sums in (one, other))
        yield from difference_of(case, f"{file} differs, SHA-256", *shown)


def _environments(sides: BothSides) -> Iterator[Difference]:
    """Variables whose values runs of both sides do not share, by name."""
    one, other = (variables_of(trial.path for trial, _ in side.records) for side in sides)
    if not one or not other:
        return
    names = sorted(n for n in one.keys() | other.keys() if one.get(n) != other.get(n))
    if names:
        yield Difference("environment of runs", listed(names, MAX_NAMED))


# ---- input differences ---------------------------------------------------------------------------
#
# In which inputs of tests the trials of two sides differ, by name and by content.


class _Held(Struct, frozen=True):
    """An input of a trial's test: its path, and its hash when the trial was made ("": unknown)."""

    path: str
    digest: str


def input_differences(sides: BothSides) -> Iterator[Difference]:
    """Inputs of another name or content, in any trial of a side. Where a trial's record has no hash
    of a file (it is large, or the trial is of an older version), it is read as it is now, and one
    that was changed after the earliest trial was made is told."""
    for name in _shared_tests(sides):
        inputs = [_listed(side, name) for side in sides]
        if not all(inputs):
            continue
        first = min(created for created, _ in chain(*inputs))
        files = [[held for _, held in side] for side in inputs]
        for file in sorted(set().union(*chain(*files))):
            both = [[held.get(file) for held in side] for side in files]
            yield from _input(f"test {name}", file, both, first)


def _input(
    subject: str, file: str, sides: Sequence[Sequence[_Held | None]], first: int
) -> Iterator[Difference]:
    """An input in each trial of both sides; ``first`` is when (ns) the earliest was made."""
    there = [_there(side) for side in sides]
    if there[0] != there[1]:
        yield Difference(subject, f"input {file}", *there)
    held = [{one for one in side if one} for side in sides]
    if all(held):
        yield from _content(subject, f"input {file}", held, first)


def _content(
    subject: str, what: str, sides: Sequence[set[_Held]], first: int
) -> Iterator[Difference]:
    """Yield how the content of an input differs: by its digests as the records have them, else as
    its files are now, if they were not changed since the earliest trial."""
    paths = [set(map(attrgetter("path"), side)) for side in sides]
    digests = [set(map(attrgetter("digest"), side)) for side in sides]
    if "" in digests[0] | digests[1]:
        if day := _day_of_change(paths[0] & paths[1], first):
            yield Difference(subject, f"{what}: the file was changed on {day}")
            return
        if paths[0] == paths[1]:
            return
        digests = [set(map(build.digest, side)) for side in paths]
    if "" in digests[0] | digests[1]:
        yield Difference(subject, what, *(", ".join(sorted(side)) for side in paths))
    else:
        short = ({text[:12] for text in side} for side in digests)
        yield from difference_of(subject, f"{what}, SHA-256", *short)


def _there(side: Sequence[_Held | None]) -> str:
    missing = side.count(None)
    if not missing:
        return "there"
    return f"in {len(side) - missing} of {len(side)} trials" if missing < len(side) else "not there"


def _listed(side: SideRecords, test: str) -> list[tuple[int, dict[str, _Held]]]:
    """When each trial was made, and the test's inputs by their names in a run."""
    found = []
    for trial, record in side.records:
        if test in record.tests:
            items = record.tests[test].inputs
            paths = {build.name_of(item): build.path_of(item) for item in items}
            held = {name: _Held(path, record.inputs.get(path, "")) for name, path in paths.items()}
            found.append((trial.created, held))
    return found


def _day_of_change(paths: set[str], created: int) -> str:
    """Return the day on which one of these files was last written, if after a time (ns)."""
    for path in sorted(paths):
        try:
            written = Path(path).stat().st_mtime_ns
        except OSError:
            continue
        if written > created:
            return f"{datetime.fromtimestamp(written / SECOND_NS, UTC):%Y-%m-%d}"
    return ""


# ---- linked libraries ----------------------------------------------------------------------------
#
# The shared libraries of what was built, as ``ldd`` found them at the end of each build.
#
# libraries_of(side)["stream"]["libmpi.so.40"] # {"/opt/openmpi/lib/libmpi.so.40"}


MAX_LINKED = 500  # builds of a side that are read
MAX_RESULT_BYTES = 1 << 20
LONGEST_FILE = 60

# ``libm.so.6 => /lib/libm.so.6 (0x7f...)``; what is not found has no address
_LIBRARY = re.compile(r"\t(\S+) => (not found|\S+)(?: \(0x[0-9a-f]+\))?")


def libraries_of(side: Side) -> dict[str, dict[str, set[str]]]:
    """Return by test the libraries that its binaries are linked to, by name, each with the files
    that were found for it; a test none of whose results can be read is left out."""
    paths = {trial.tag: trial.path for trial in side.trials}
    builds = dict.fromkeys((one.test, paths[one.trial], one.build) for one in side.cases)
    found: dict[str, dict[str, set[str]]] = {}
    for test, path, key in islice((each for each in builds if each[2]), MAX_LINKED):
        try:
            data = read_regular(
                TrialPaths(Path(path)).builds / key / BUILD_RESULT, MAX_RESULT_BYTES
            )
        except OSError:
            continue
        libraries = found.setdefault(test, {})
        for name, file in _LIBRARY.findall(data.decode(errors="replace")):
            libraries.setdefault(name, set()).add(_end_of(file))
    return found


def _end_of(file: str) -> str:
    """Return a path that fits into a table: its end, where it is long."""
    plain = "".join(char for char in file if char.isprintable())
    return plain if len(plain) <= LONGEST_FILE else "..." + plain[3 - LONGEST_FILE :]


# ---- run variables -------------------------------------------------------------------------------
#
# The environment variables that the runs of trials had, as hashes: their values may be secret.
#
# variables_of(trial_paths)["OMP_PLACES"] # {"9f86d0..."}: every run had the same value


MAX_ENVIRONMENTS = 200  # of a trial that are read
MAX_VARIABLES_BYTES = 4 << 20

_VARIABLE = re.compile(
    r"""^declare -\w*x\w* (\w+)(?:=("(?:[^"\\]|\\.)*"|\$'(?:[^'\\]|\\.)*'|[^\n]*))?\n""",
    re.MULTILINE | re.DOTALL,
)


def variables_of(trials: Iterable[str]) -> dict[str, set[str]]:
    """Return the hashes of the values that each variable had in runs of trials, by their paths."""
    found: dict[str, set[str]] = {}
    for path in trials:
        folder = TrialPaths(Path(path)).environments
        for file in sorted(islice(folder.glob("[!.]*"), MAX_ENVIRONMENTS)):
            try:  # not through a link: jobs write here, and what is read is shown
                data = read_regular(file, MAX_VARIABLES_BYTES, follow=False)
            except OSError:
                continue
            text = data.decode(errors="replace")
            for name, value in _VARIABLE.findall(text):
                digest = hashlib.sha256(value.encode(errors="replace")).hexdigest()
                found.setdefault(name, set()).add(digest)
    return found


def node_differences(store: Store, first: Side, second: Side) -> list[Difference]:
    """Return how the nodes of two sides differ."""
    return [
        difference
        for source in provided("seatrial_fact_sources")
        for difference in load(source.differences)(store, first, second)
    ]


def sums_of_side(
    side: Side, records: Iterable[tuple[TrialRow, Record]]
) -> dict[tuple[str, str], set[str]]:
    """Return the sums that all runs of a side wrote, right or wrong, by (case, file). Where the
    side has one toolchain, cases do not name it: sides of two toolchains are compared."""
    shares_one = len(side.all_of("toolchain")) == 1
    of_side = {
        (one.test, bound_parameters(one.key_parameters), one.toolchain) for one in side.cases
    }
    found: dict[tuple[str, str], set[str]] = {}
    for trial, record in records:
        if not files_of(record.tests.values()):
            continue
        folder = TrialFolder(Path(trial.path))
        try:
            cases = {case.id: case for case in folder.cases()}
            sums = sums_of(folder, record, right_only=False)
        except SeatrialError:
            continue
        for (case_id, file), counted in sums.items():
            case = cases.get(case_id)
            if case is None:
                continue
            if (case.test, bound_parameters(case.parameters), case.toolchain) not in of_side:
                continue
            chain = "" if shares_one else case.toolchain
            name = case_name(case.test, dict(sorted(case.parameters.items())), chain)
            found.setdefault((name, file), set()).update(counted)
    return found


def difference_of(
    subject: str, what: str, one: Iterable[Any], other: Iterable[Any]
) -> Iterator[Difference]:
    """A difference of two sets of values, unless a side has none."""
    first, second = set(one), set(other)
    if first and second and first != second:
        yield Difference(subject, what, in_short(first), in_short(second))


def in_short(values: Iterable[Any]) -> str:
    text = ", ".join(sorted(value_text(value) for value in values))
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def value_text(value: Any) -> str:
    if isinstance(value, str | int | float):
        return str(value) or "none"
    return msgspec.json.encode(value).decode() if value else "none"
