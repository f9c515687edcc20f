"""Say what ran: for each test its purpose, size, launch line, inputs, checks, metrics, scripts.

tables = ran(record, cases)        # of one trial
tables = tests([record, ...])      # checks, metrics, inputs
texts = scripts([record, ...])     # for the annex
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from seatrial import __version__
from seatrial.escaping import plain_line
from seatrial.execute.launchers import launch_line
from seatrial.execute.trial_folder import Record, TrialFolder
from seatrial.judge.learning import is_learned
from seatrial.model.build import changed_flags, name_of, own_flags, path_of
from seatrial.model.codes import CANCELLED, KNOWN, RECALLED, code_of
from seatrial.model.file_model import encode
from seatrial.model.identifiers import bindings_text, show
from seatrial.model.machine import Toolchain
from seatrial.model.test import Case, Check, Consistency, Metric, PlacementCheck, Test
from seatrial.results.node_hours import NodeShares, TestShare
from seatrial.results.trial_history import RunHistory, TrialHistory
from seatrial.show.page import Cell, Table
from seatrial.show.report.content import Listing, bounded, columns_of, filled
from seatrial.show.report.figures import MAX_ROWS
from seatrial.show.report.sign import digest, sum_of
from seatrial.units import count, listed, show_unit

MAX_RAN_ROWS: Final = 500
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
    "consistent",
)
_LIMITS: Final = ("in_file", "size_limit")


NamedTest = tuple[str, Test, Record]
"""A test, by the name that tells it from another version of it, and its trial's record."""


def ran(record: Record, cases: Sequence[Case], shares: NodeShares | None = None) -> list[Table]:
    """Return the tables of what a trial ran that have rows: sizes and launch lines. ``shares`` are
    those of the node-hours."""
    by_test: dict[str, list[Case]] = {name: [] for name in record.tests}
    for case in cases:
        by_test.setdefault(case.test, []).append(case)
    of_tests = [(record.tests[name], some) for name, some in by_test.items() if some]
    return filled(
        _sizes(record, of_tests, shares),
        _launches(record, of_tests),
        _own_flags(record, of_tests),
    )


def tests(records: Iterable[Record]) -> list[Table]:
    """Return the tables of the tests that trials ran, each test once: checks, metrics, inputs."""
    by_definition: dict[tuple[str, str], list[tuple[Test, Record]]] = {}
    for record in records:
        for test in record.tests.values():
            digest = digest_of_struct(replace(test, folder="", about="", repeat=1))
            by_definition.setdefault((test.name, digest), []).append((test, record))
    versions = Counter(name for name, _ in by_definition)
    named = []
    for (name, _), same in by_definition.items():
        tags = listed([record.tag for _, record in same], 2)
        label = f"{name} (in {tags})" if versions[name] > 1 else name
        named.append((label, *same[0]))
    return filled(_checks(named), _figures(named), _inputs(named))


def _sizes(
    record: Record, of_tests: Iterable[tuple[Test, list[Case]]], shares: NodeShares | None
) -> Table:
    columns = columns_of(
        "test",
        "purpose",
        "nodes x tasks x threads",
        "toolchains",
        "parameters",
        ("cases", "count"),
        ("runs of each", "count"),
        ("walltime", "seconds"),
        ("planned share", "share"),
        ("share", "share"),
    )
    had = {each.test: each for each in shares.tests} if shares is not None else {}
    rows = [[*_size(record, test, cases), *_share(had.get(test.name))] for test, cases in of_tests]
    about = (
        "Tasks are processes (MPI ranks) on all nodes together; threads are those of each task. "
        "The shares are of the node-hours that were available."
    )
    return bounded("What ran", columns, rows, about, MAX_RAN_ROWS)


def _size(record: Record, test: Test, cases: Sequence[Case]) -> list[Cell]:
    """Return the purpose of a test, its shapes, parameters, cases, and the time it asks for."""
    shapes = [f"{case.nodes} x {case.tasks} x {case.threads}" for case in cases]
    if test.only_builds:
        shapes = ["only builds" if record.imported is None else "not known"]
    bound = filter(None, (bindings_text(case.parameters) for case in cases))
    return [
        test.name,
        test.about or f"application {test.app}",
        listed(list(dict.fromkeys(shapes)), MAX_SHAPES),
        ", ".join(dict.fromkeys(case.toolchain for case in cases)),
        listed(list(dict.fromkeys(bound)), 3).replace(",", ", "),
        len(cases),
        max(case.repeat for case in cases),
        max(case.walltime for case in cases),
    ]


def _share(share: TestShare | None) -> tuple[Cell, Cell]:
    """Return the planned and the achieved share of a test."""
    if share is None:
        return None, None
    return "fill" if share.only_fills else share.planned, share.achieved


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
    columns = columns_of("test", "toolchain", "of the case of", "started by")
    return bounded("Launch lines", columns, rows, "$LAUNCH, as scripts get it", MAX_RAN_ROWS)


def _own_flags(record: Record, of_tests: Iterable[tuple[Test, list[Case]]]) -> Table:
    """Return what tests replaced of toolchains that ran, and why."""
    rows: list[list[Cell]] = []
    for test, cases in of_tests:
        for name in sorted({case.toolchain for case in cases}):
            flags = own_flags(test, name)
            if flags is None:
                continue
            usual = record.machine.toolchains.get(name, Toolchain())
            for key, value in changed_flags(test, name).items():
                rows.append([test.name, name, key, getattr(usual, key), value, flags.reason])
            for key, setting in flags.environment.items():
                before = usual.environment.get(key, "")
                rows.append([test.name, name, f"${key}", show(before), show(setting), flags.reason])
    columns = columns_of("test", "toolchain", "what", "the machine's", "the test's", "reason")
    about = "What tests need other than the machine's file says of a toolchain."
    return bounded("Toolchains' own flags", columns, rows, about, MAX_RAN_ROWS)


def _checks(tests: Iterable[NamedTest]) -> Table:
    rows: list[list[Cell]] = []
    for name, test, _ in tests:
        if all(check.exit_code is None for check in test.verify):
            rows.append([name, "", "exit code", "0", ""])
        rows += [[name, *_check(check)] for check in test.verify]
    columns = columns_of("test", "in", "check", "of", "expected")
    about = "All of them must hold, or the answer is wrong. Patterns are regular expressions."
    return bounded("What a right answer is", columns, rows, about, MAX_RAN_ROWS)


def _check(check: Check) -> tuple[str, str, str, str]:
    """Return where a check looks, its kind, its text, and what is expected with what tolerance."""
    defaults = {about.name: about.default for about in msgspec.structs.fields(Check)}
    written = {
        name: value
        for name, value in msgspec.structs.asdict(check).items()
        if value not in (None, defaults[name]) and name not in _LIMITS
    }
    kind = next((name for name in (*_KINDS, *written) if name in written), "")
    value = written.pop(kind, "")
    if isinstance(value, PlacementCheck | Consistency):
        value = ", ".join(f"{key} {word}" for key, word in msgspec.structs.asdict(value).items())
    expected = ", ".join(f"{name.replace('_', ' ')} {_digits(x)}" for name, x in written.items())
    if is_learned(check):
        expected = "the learned checksum of the case"
    if kind == "exit_code":
        return "", "exit code", str(value), expected
    place = "" if kind in ("file", "identical", "consistent") else check.in_file
    return place, kind, str(value), expected


def _digits(value: Any) -> str:
    """Return a value with all of its digits."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _figures(tests: Iterable[NamedTest]) -> Table:
    rows: list[list[Cell]] = []
    for label, test, _ in tests:
        for name, one in test.metrics.items():
            if isinstance(one, Metric):
                how = f"{one.reduce} of {one.find}" if one.reduce else one.find
                place = "" if one.of else one.in_file
                how = f"{one.of} over {one.over}" if one.of else how
                unit = show_unit(one.unit, "{}")
                rows.append([label, name, unit, one.direction, place, how])
            else:  # from: FORMAT, or python: FILE:FUNCTION
                rows.append([label, "", "", "", "", f"{name}: {one}"])
    columns = columns_of("test", "metric", "unit", "better", "in", "found by")
    return bounded("Figures of merit", columns, rows, max_rows=MAX_RAN_ROWS)


def _inputs(tests: Iterable[NamedTest]) -> Table:
    rows: list[list[Cell]] = []
    for name, test, record in tests:
        for item in test.inputs:
            digest = record.inputs.get(path_of(item), "")
            rows.append([name, name_of(item), digest[:SHA256_DIGITS] or "too large"])
    columns = columns_of("test", "input", "checksum")
    about = "SHA-256 when the trial was made; of a folder: a hash of its names and files."
    return bounded("Inputs", columns, rows, about, MAX_RAN_ROWS)


# ---- for the annex ------------------------------------------------------------------------


def scripts(records: Iterable[Record]) -> Iterator[Listing]:
    """Yield the scripts of the tests, each once."""
    tags_of: dict[tuple[str, str, str], list[str]] = {}
    for record in records:
        for test in record.tests.values():
            for kind, text in test.scripts.items():
                tags_of.setdefault((test.name, kind, text), []).append(record.tag)
    versions = Counter((name, kind) for name, kind, _ in tags_of)
    several = {name for (name, _), number in versions.items() if number > 1}
    for (name, kind, text), tags in tags_of.items():
        trials = f", in {listed(tags, 3)}" if name in several else ""
        yield Listing(f"{name}: {kind} script{trials}", _cut(text))


def plan_texts(records: Iterable[Record]) -> Iterator[Listing]:
    """Yield the files of the plans as they were when their trials were made."""
    tags_of: dict[tuple[str, str], list[str]] = {}
    for record in records:
        if record.plan_text:
            tags_of.setdefault((record.plan, record.plan_text), []).append(record.tag)
    for (name, text), tags in tags_of.items():
        trials = f", of {listed(tags, 3)}" if len(tags_of) > 1 else ""
        yield Listing(f"Plan {name}{trials}", _cut(text))


def _cut(text: str) -> str:
    if len(text) <= MAX_TEXT:
        return text.rstrip("\n")
    return f"{text[:MAX_TEXT]}\n... ({count(len(text) - MAX_TEXT, 'more character')})"


# ---- failed --------------------------------------------------------------------------------------
#
# List the runs of a trial that did not pass, by test, verdict and reason.


NAMED: Final = 3  # runs that a row names
MAX_TESTS: Final = 12  # that are named with the number of their runs
LONGEST: Final = 300  # characters of a reason
ALIKE: Final = ", or alike"
_IN_NO_RATE: Final = (KNOWN.number, CANCELLED.number)
_MEASURED = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?|\d{4,}|\[[\d,-]+\]|(?<= on )\S+$")


def failed(history: TrialHistory) -> Table:
    """Return each reason of each test with its number of runs, the most frequent first.

    Reasons that differ only in measured numbers or nodes are counted together; exit codes are kept
    apart.
    """
    order = list(dict.fromkeys(case.test for case in history.cases))
    failures = [run for run in history.runs if _ended(run) and not run.passed]
    alike: dict[tuple[str, str, str, str], list[RunHistory]] = {}
    for run in failures:
        reason = _MEASURED.sub("#", run.reason)
        key = (history.test_of(run), code_of(run.code).name, run.cause, reason)
        alike.setdefault(key, []).append(run)
    ranked = sorted(alike.items(), key=lambda each: (order.index(each[0][0]), -len(each[1])))
    rows = [_row(test, verdict, runs) for (test, verdict, *_), runs in ranked]
    columns = columns_of(
        "test",
        "verdict",
        "cause",
        "reason",
        ("runs", "count"),
        ("retried", "count"),
        "first of them",
    )
    about = " ".join(_about_failed(history, failures, rows)) if failures else ""
    return bounded("Runs that did not pass", columns, rows, about)


def _ended(run: RunHistory) -> bool:
    """Return whether a run is over; one that was recalled never began."""
    return run.over and run.code != RECALLED.number


def _about_failed(
    history: TrialHistory, failures: Sequence[RunHistory], rows: Sequence[Sequence[Cell]]
) -> Iterator[str]:
    """Yield what is to be known of the runs that did not pass, in sentences."""
    tests = Counter(map(history.test_of, failures)).most_common()
    named = ", ".join(f"{test} {number:,}" for test, number in tests[:MAX_TESTS])
    more = f" and {len(tests) - MAX_TESTS} more tests" if len(tests) > MAX_TESTS else ""
    ended = sum(map(_ended, history.runs))
    yield f"{len(failures):,} of {ended:,} that ended: {named}{more}."
    verdicts = Counter(code_of(run.code).name for run in failures if run.code in _IN_NO_RATE)
    if verdicts:
        names = ", ".join(f"{number} {name}" for name, number in verdicts.most_common())
        yield f"No rate counts {names} of these."
    if any(str(row[3]).endswith(ALIKE) for row in rows):
        yield "Reasons that are alike differ in measured numbers or nodes alone."
    if any(run.will_rerun for run in failures):
        yield "Retried: another run of the same case took its place."
    yield "`seatrial show RUN` tells all of a run."


def _row(test: str, verdict: str, runs: list[RunHistory]) -> list[Cell]:
    texts = list(dict.fromkeys(run.reason for run in runs))
    reason = plain_line(texts[0])[:LONGEST] or "none was given"
    if len(texts) > 1:
        reason += ALIKE
    again = sum(run.will_rerun for run in runs)
    named = ", ".join(run.id for run in runs[:NAMED])
    return [test, verdict, runs[0].cause or None, reason, len(runs), again or None, named]


# ---- versions ------------------------------------------------------------------------------------
#
# List what a report rests on: software, toolchains, files, tests, environments, with hashes.


SHORT: Final = 16  # digits of a checksum in a table


UsedToolchains = tuple[Record, set[str], Sequence[Mapping[str, str]]]
"""The record of a trial, the toolchains that ran, and what its jobs and builds found."""


def versions(
    used: Sequence[UsedToolchains],
    plan_file: Path | None,
    skipped: Sequence[tuple[str, str, str]],
) -> list[Table]:
    """Return the tables of software, the toolchains that ran (``used``: by trial), the plan's file,
    and what could not run."""
    columns = columns_of("component", "left out", "why")
    return filled(
        _software([record for record, _, _ in used], plan_file),
        _toolchains(used),
        bounded("What the plan left out", columns, skipped, max_rows=MAX_ROWS),
    )


def _software(records: Sequence[Record], plan_file: Path | None) -> Table:
    rows: list[list[Cell]] = [["Seatrial, this report", __version__]]
    tags: dict[str, list[str]] = {}
    for record in records:
        tags.setdefault(record.version, []).append(record.tag)
    rows += [[f"Seatrial, {', '.join(some)}", version] for version, some in tags.items()]
    users = dict.fromkeys(f"{record.user}@{record.host}" for record in records)
    rows += [["trials made by", user] for user in users]
    rows += _consents(records)
    plans = [plan_file.absolute()] if plan_file else []
    plans += [Path(record.plan_file) for record in records if record.plan_file]
    rows += [[f"plan's file now, {path.name}", _now(path)] for path in dict.fromkeys(plans)]
    suites = dict.fromkeys(chain.from_iterable(record.asked.suites for record in records))
    rows += [["suite", suite] for suite in suites]
    return bounded("Software and files", columns_of("what", "version or SHA-256"), rows)


def _consents(records: Sequence[Record]) -> Iterator[list[Cell]]:
    """Yield which tests of a trial are harmful, and who consented to them."""
    for record in records:
        harmful = sorted(name for name, test in record.tests.items() if test.harmful)
        if harmful:
            by = ", ".join(record.asked.consent) or "nobody"
            yield [f"consent to {', '.join(harmful)}, {record.tag}", by]


def _now(path: Path) -> str:
    try:
        return sum_of(path, path.stat().st_size)[0]
    except OSError:
        return "not here any more; what trials were made with is in their trial.json"


def _toolchains(used: Sequence[UsedToolchains]) -> Table:
    columns = columns_of("toolchain", "version", "compilers", "flags", "modules", "variables set")
    rows: dict[tuple[str, str], list[Cell]] = {}
    for record, ran, facts in used:
        for name, one in record.machine.toolchains.items():
            if name not in ran:
                continue
            versions = {
                each["cc"] for each in facts if each.get("toolchain") == name and "cc" in each
            }
            one = replace(one, version="; ".join(sorted(versions)) or one.version)
            rows[name, digest_of_struct(one)] = [name, one.version, *_compilers(one)]
    return bounded("Toolchains that ran", columns, rows.values(), max_rows=MAX_ROWS)


def _compilers(one: Toolchain) -> list[str]:
    """Return the compilers of a toolchain, its flags, modules, and variables."""
    compilers = ", ".join(filter(None, (one.cc, one.cxx, one.fc, one.mpicc)))
    flags = " ".join(filter(None, (one.cflags, one.openmp, one.ldflags, one.ldlibs)))
    return [compilers, flags, ", ".join(one.modules), ", ".join(one.environment)]


def digest_of_struct(value: msgspec.Struct) -> str:
    """Return the SHA-256 of a value as JSON with its keys in order."""
    return digest(encode(value, order="deterministic"))


def definitions(folder: TrialFolder, record: Record, cases: Sequence[Case]) -> list[Table]:
    """Return the tables of a trial's tests, with hashes of definitions, builds, environments."""
    columns = columns_of("test", "application", ("cases", "count"), "definition, SHA-256", "builds")
    by_test: dict[str, list[Case]] = {name: [] for name in record.tests}
    for case in cases:
        by_test.setdefault(case.test, []).append(case)
    rows: list[list[Cell]] = []
    for name, test in record.tests.items():
        builds = list(dict.fromkeys(case.build for case in by_test[name] if case.build))
        sha256 = digest_of_struct(replace(test, folder=""))[:SHORT]
        rows.append([name, test.app, len(by_test[name]), sha256, listed(builds, 4)])
    about = (
        "A definition is what the test's file says, with all that it inherits, wherever it lies. A "
        "build is named by the hash of its sources, script, toolchain and environment."
    )
    return filled(bounded("Tests", columns, rows, about, MAX_ROWS), *_environments(folder))


def _environments(folder: TrialFolder) -> Iterator[Table]:
    """Yield the environments of its runs by hash; their values may be secret."""
    try:
        names = sorted(path.name for path in folder.environments.glob("[!.]*"))
    except OSError:
        return
    if names:
        rows = ((name.partition(".")[0],) for name in names)
        about = "Each is a file of the trial's folder `environments`."
        yield bounded("Environments of runs", columns_of("hash"), rows, about, 20)
