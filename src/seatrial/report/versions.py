"""List what a report rests on: software, toolchains, files, tests, environments, with hashes."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from seatrial import __version__
from seatrial.decoding import encode
from seatrial.machine.model import Toolchain
from seatrial.report.checksums import digest, sum_of
from seatrial.report.content import Cell, Table, bounded
from seatrial.report.tables import MAX_ROWS
from seatrial.suite.model import Case
from seatrial.trial.folder import TrialFolder
from seatrial.trial.record import Record
from seatrial.units import listed

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
    made = [_software([record for record, _, _ in used], plan_file), _toolchains(used)]
    if skipped:
        columns = "component | left out | why"
        made.append(bounded("What the plan left out", columns, skipped, max_rows=MAX_ROWS))
    return [table for table in made if table.rows]


def _software(records: Sequence[Record], plan_file: Path | None) -> Table:
    rows: list[list[Cell]] = [["Seatrial, this report", __version__]]
    for version in dict.fromkeys(record.version for record in records):
        tags = ", ".join(record.tag for record in records if record.version == version)
        rows.append([f"Seatrial, {tags}", version])
    for user in dict.fromkeys(f"{record.user}@{record.host}" for record in records):
        rows.append(["trials made by", user])
    files = [plan_file.absolute()] if plan_file else []
    named = [Path(record.plan_file) for record in records if record.plan_file]
    for path in dict.fromkeys([*files, *named]):
        rows.append([f"plan's file now, {path.name}", _now(path)])
    for suite in dict.fromkeys(chain.from_iterable(record.asked.suites for record in records)):
        rows.append(["suite", suite])
    return bounded("Software and files", "what | version or SHA-256", rows)


def _now(path: Path) -> str:
    try:
        return sum_of(path, path.stat().st_size)[0]
    except OSError:
        return "not here any more; what trials were made with is in their trial.json"


def _toolchains(used: Sequence[UsedToolchains]) -> Table:
    columns = "toolchain | version | compilers | flags | modules | variables set"
    found: dict[tuple[str, str], tuple[str, Toolchain]] = {}
    for record, ran, facts in used:
        for name, one in record.machine.toolchains.items():
            if name not in ran:
                continue
            said = {each["cc"] for each in facts if each.get("toolchain") == name and "cc" in each}
            one = replace(one, version="; ".join(sorted(said)) or one.version)
            found[name, digest_of_struct(one)] = (name, one)
    rows: list[list[Cell]] = []
    for name, one in found.values():
        compilers = ", ".join(filter(None, (one.cc, one.cxx, one.fc, one.mpicc)))
        flags = " ".join(filter(None, (one.cflags, one.openmp, one.ldflags, one.ldlibs)))
        names = (", ".join(one.modules), ", ".join(one.environment))
        rows.append([name, one.version, compilers, flags, *names])
    return bounded("Toolchains that ran", columns, rows, max_rows=MAX_ROWS)


def digest_of_struct(value: msgspec.Struct) -> str:
    """Return the SHA-256 of a value as JSON with its keys in order."""
    return digest(encode(value, order="deterministic"))


def definitions(folder: TrialFolder, record: Record, cases: Sequence[Case]) -> list[Table]:
    """Return the tables of a trial's tests, with hashes of definitions, builds, environments."""
    columns = "test | application | cases: count | definition, SHA-256 | builds"
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
    made = [bounded("Tests", columns, rows, about, MAX_ROWS), *_environments(folder)]
    return [table for table in made if table.rows]


def _environments(folder: TrialFolder) -> Iterator[Table]:
    """Yield the environments of its runs by hash; their values may be secret."""
    try:
        names = sorted(path.name for path in folder.environments.glob("[!.]*"))
    except OSError:
        return
    if names:
        rows = ((name.partition(".")[0],) for name in names)
        about = "Each is a file of the trial's folder `environments`."
        yield bounded("Environments of runs", "hash", rows, about, 20)
