"""Say what ran: for each test its purpose, size, launch line, inputs, checks, metrics, scripts.

tables = ran(record, cases)        # of one trial
tables = tests([record, ...])      # checks, metrics, inputs
texts = scripts([record, ...])     # for the annex
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from seatrial.acceptance.node_shares import NodeShares, TestShare
from seatrial.machine.model import Toolchain
from seatrial.report.content import Cell, Listing, Table, bounded
from seatrial.report.versions import digest_of_struct
from seatrial.runs.launchers import launch_line
from seatrial.suite.case_names import bindings_text, show
from seatrial.suite.check_spec import Check, Metric, PlacementCheck
from seatrial.suite.inputs import name_of, path_of
from seatrial.suite.model import Case, Test
from seatrial.suite.toolchain_flags import changed_flags, own_flags
from seatrial.trial.record import Record
from seatrial.units import count, listed, show_unit
from seatrial.verify.learned_sums import is_learned

MAX_ROWS: Final = 500
SHA256_DIGITS: Final = 64  # a mark of executable files follows
MAX_SHAPES: Final = 6
MAX_TEXT: Final = 20_000  # characters of a script or a plan
_KINDS: Final = (
    "exit_code",
    "contains",
    "absent",
    "matches",
    "value",
    "identical",
    "file",
    "python",
    "placement",
)
_LIMITS: Final = ("in_file", "size_limit")


class NamedTest(NamedTuple):
    """A test, by the name that tells it from another version of it, and its trial's record."""

    name: str
    test: Test
    record: Record


def ran(record: Record, cases: Sequence[Case], shares: NodeShares | None = None) -> list[Table]:
    """Return the tables of what a trial ran that have rows: sizes and launch lines. ``shares`` are
    those of the node-hours."""
    by_test: dict[str, list[Case]] = {name: [] for name in record.tests}
    for case in cases:
        by_test.setdefault(case.test, []).append(case)
    of_tests = [(record.tests[name], some) for name, some in by_test.items() if some]
    made = [
        _sizes(record, of_tests, shares),
        _launches(record, of_tests),
        _own_flags(record, of_tests),
    ]
    return [table for table in made if table.rows]


def tests(records: Iterable[Record]) -> list[Table]:
    """Return the tables of the tests that trials ran, each test once: checks, metrics, inputs."""
    found: dict[tuple[str, str], list[tuple[Test, Record]]] = {}
    for record in records:
        for test in record.tests.values():
            digest = digest_of_struct(replace(test, folder="", about="", repeat=1))
            found.setdefault((test.name, digest), []).append((test, record))
    versions = Counter(name for name, _ in found)
    named = []
    for (name, _), same in found.items():
        tags = listed([record.tag for _, record in same], 2)
        label = f"{name} (in {tags})" if versions[name] > 1 else name
        named.append(NamedTest(label, *same[0]))
    made = [_checks(named), _figures(named), _inputs(named)]
    return [table for table in made if table.rows]


def _sizes(
    record: Record, of_tests: Iterable[tuple[Test, list[Case]]], shares: NodeShares | None
) -> Table:
    columns = (
        "test | purpose | nodes x tasks x threads | toolchains | parameters | cases: count"
        " | runs of each: count | walltime: seconds | planned share: share | share: share"
    )
    had = {each.test: each for each in shares.tests} if shares is not None else {}
    rows: list[list[Cell]] = []
    for test, cases in of_tests:
        shapes = dict.fromkeys(f"{case.nodes} x {case.tasks} x {case.threads}" for case in cases)
        if test.only_builds:
            shapes = {"only builds" if record.imported is None else "not known": None}
        chains = dict.fromkeys(case.toolchain for case in cases)
        bound = dict.fromkeys(bindings_text(case.parameters) for case in cases)
        rows.append(
            [
                test.name,
                test.about or f"application {test.app}",
                listed(list(shapes), MAX_SHAPES),
                ", ".join(chains),
                listed([each for each in bound if each], 3).replace(",", ", "),
                len(cases),
                max(case.repeat for case in cases),
                max(case.walltime for case in cases),
                *_share(had.get(test.name)),
            ]
        )
    about = (
        "Tasks are processes (MPI ranks) on all nodes together; threads are those of each task. "
        "The shares are of the node-hours that were available."
    )
    return bounded("What ran", columns, rows, about, MAX_ROWS)


def _share(found: TestShare | None) -> tuple[Cell, Cell]:
    """Return the planned and the achieved share of a test."""
    if found is None:
        return None, None
    return "fill" if found.only_fills else found.planned, found.achieved


def _launches(record: Record, of_tests: Iterable[tuple[Test, list[Case]]]) -> Table:
    """Return how the tasks of each test are started; a row for each toolchain."""
    rows: list[list[Cell]] = []
    for test, cases in of_tests:
        if test.only_builds:
            continue
        first = {case.toolchain: case for case in reversed(cases)}
        lines = {name: launch_line(record.machine, test, case) for name, case in first.items()}
        for name, line in sorted(lines.items()):
            size = f"{first[name].nodes} x {first[name].tasks} x {first[name].threads}"
            rows.append([test.name, name, size, line or "none: the script starts itself"])
    columns = "test | toolchain | of the case of | started by"
    return bounded("Launch lines", columns, rows, "$LAUNCH, as scripts get it", MAX_ROWS)


def _own_flags(record: Record, of_tests: Iterable[tuple[Test, list[Case]]]) -> Table:
    """Return what tests replaced of toolchains that ran, and why."""
    rows: list[list[Cell]] = []
    for test, cases in of_tests:
        for name in sorted({case.toolchain for case in cases}):
            own = own_flags(test, name)
            if own is None:
                continue
            usual = record.machine.toolchains.get(name, Toolchain())
            for key, value in changed_flags(test, name).items():
                rows.append([test.name, name, key, getattr(usual, key), value, own.reason])
            for key, setting in own.environment.items():
                before = usual.environment.get(key, "")
                rows.append([test.name, name, f"${key}", show(before), show(setting), own.reason])
    columns = "test | toolchain | what | the machine's | the test's | reason"
    about = "What tests need other than the machine's file says of a toolchain."
    return bounded("Toolchains' own flags", columns, rows, about, MAX_ROWS)


def _checks(tests: Iterable[NamedTest]) -> Table:
    rows: list[list[Cell]] = []
    for name, test, _ in tests:
        if all(check.exit_code is None for check in test.verify):
            rows.append([name, "", "exit code", "0", ""])
        rows += [[name, *_check(check)] for check in test.verify]
    columns = "test | in | check | of | expected"
    about = "All of them must hold, or the answer is wrong. Patterns are regular expressions."
    return bounded("What a right answer is", columns, rows, about, MAX_ROWS)


def _check(check: Check) -> tuple[str, str, str, str]:
    """Return where a check looks, its kind, its text, and what is expected with what tolerance."""
    defaults = {about.name: about.default for about in msgspec.structs.fields(Check)}
    written = {
        name: value
        for name, value in msgspec.structs.asdict(check).items()
        if value is not None and value != defaults[name] and name not in _LIMITS
    }
    kind = next((name for name in (*_KINDS, *written) if name in written), "")
    value = written.pop(kind, "")
    if isinstance(value, PlacementCheck):
        value = ", ".join(f"{key} {word}" for key, word in msgspec.structs.asdict(value).items())
    text = str(value)
    asked = ", ".join(f"{name.replace('_', ' ')} {_said(one)}" for name, one in written.items())
    if is_learned(check):
        asked = "the learned checksum of the case"
    if kind == "exit_code":
        return "", "exit code", text, asked
    return ("" if kind in ("file", "identical") else check.in_file), kind, text, asked


def _said(value: Any) -> str:
    """Return a value with all of its digits."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _figures(tests: Iterable[NamedTest]) -> Table:
    rows: list[list[Cell]] = []
    for label, test, _ in tests:
        for name, one in test.metrics.items():
            if isinstance(one, Metric):
                how = f"{one.reduce} of {one.find}" if one.reduce else one.find
                unit = show_unit(one.unit, "{}")
                rows.append([label, name, unit, one.better, one.in_file, how])
            else:  # from: FORMAT, or python: FILE:FUNCTION
                rows.append([label, "", "", "", "", f"{name}: {one}"])
    columns = "test | metric | unit | better | in | found by"
    return bounded("Figures of merit", columns, rows, max_rows=MAX_ROWS)


def _inputs(tests: Iterable[NamedTest]) -> Table:
    rows: list[list[Cell]] = []
    for name, test, record in tests:
        for item in test.inputs:
            digest = record.inputs.get(path_of(item), "")
            rows.append([name, name_of(item), digest[:SHA256_DIGITS] or "too large"])
    columns = "test | input | checksum"
    about = "SHA-256 when the trial was made; of a folder: a hash of its names and files."
    return bounded("Inputs", columns, rows, about, MAX_ROWS)


# ---- for the annex ------------------------------------------------------------------------


def scripts(records: Iterable[Record]) -> Iterator[Listing]:
    """Yield the scripts of the tests, each once."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for record in records:
        for test in record.tests.values():
            texts = {"build": test.build.script if test.build else "", "run": test.run.script}
            for kind, text in texts.items():
                if text.strip():
                    found.setdefault((test.name, kind, text), []).append(record.tag)
    several = {name for name, kind, _ in found if sum(k[:2] == (name, kind) for k in found) > 1}
    for (name, kind, text), tags in found.items():
        of = f", in {listed(tags, 3)}" if name in several else ""
        yield Listing(f"{name}: {kind} script{of}", _cut(text))


def plan_texts(records: Iterable[Record]) -> Iterator[Listing]:
    """Yield the files of the plans as they were when their trials were made."""
    found: dict[tuple[str, str], list[str]] = {}
    for record in records:
        if record.plan_text:
            found.setdefault((record.plan, record.plan_text), []).append(record.tag)
    for (name, text), tags in found.items():
        of = f", of {listed(tags, 3)}" if len(found) > 1 else ""
        yield Listing(f"Plan {name}{of}", _cut(text))


def _cut(text: str) -> str:
    if len(text) <= MAX_TEXT:
        return text.rstrip("\n")
    return f"{text[:MAX_TEXT]}\n... ({count(len(text) - MAX_TEXT, 'more character')})"
