"""The guard: a C program that reads what programs are made for and judges them by launch rules.

    program = compiled(rules_header([], ""))      # once for each set of rules; kept in a cache
    for facts in scan(program, [Path("a.out")]):
        facts.values["mpi"], facts.refused

``guard.c`` is the one reader of ELF files: what ``seatrial guard check`` says is what a launch will
be told. Python would need a second reader (such as pyelftools), which could say otherwise, and
which is slower.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent import futures
from itertools import islice
from pathlib import Path

from msgspec import Struct

from seatrial.errors import SeatrialError, UsageError
from seatrial.execute import c_programs

SOURCE = Path(__file__).parent / "guard.c"
LAUNCH_LINE = SOURCE.with_name("launch_line.h")  # a part of it
BATCH = 500  # files that one process reads


class ProgramFacts(Struct, frozen=True):
    """What one file is made for, and the names of the rules that refuse it or warn of it.
    ``values``: the facts that it has, as text; ``launch_rules.py`` lists them."""

    path: str
    values: dict[str, str]
    refused: list[str] = []
    warned: list[str] = []


def compile_to(target: Path, header: str) -> None:
    """Compile the guard with a header of rules. Raises UsageError without a compiler."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "rules.h").write_text(header)
        c_programs.compile_to(target, SOURCE, "the guard", [Path(folder)])


def compiled(header: str) -> Path:
    """Return the guard with a header of rules. It is compiled once and kept in the user's cache."""
    source = SOURCE.read_bytes() + LAUNCH_LINE.read_bytes()
    return c_programs.kept("guard", source + header.encode(), lambda path: compile_to(path, header))


def scan(program: Path, paths: Iterable[str], jobs: int = 1) -> Iterator[ProgramFacts]:
    """Yield the facts of files, in their order. ``jobs``: processes at a time."""
    with futures.ThreadPoolExecutor(jobs) as threads:
        for programs in threads.map(lambda part: _scan_some(program, part), _parts(paths)):
            yield from programs


def _parts(paths: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(paths)
    while part := list(islice(rest, BATCH)):
        yield part


def _scan_some(program: Path, paths: Sequence[str]) -> list[ProgramFacts]:
    names = b"".join(os.fsencode(path) + b"\0" for path in paths)
    done = subprocess.run([program, "scan"], input=names, capture_output=True, check=False)
    facts = [_parsed(record) for record in done.stdout.split(b"\0\0")[:-1]]
    if done.returncode or len(facts) != len(paths):
        last = paths[min(len(facts), len(paths) - 1)]
        raise SeatrialError(
            f"{last}: the guard ended with {done.returncode} here: please report it"
        )
    return facts


def _parsed(record: bytes) -> ProgramFacts:
    path, *fields = (os.fsdecode(field) for field in record.split(b"\0"))
    values: dict[str, str] = {}
    findings: dict[str, list[str]] = {"refuse": [], "warn": []}
    for field in fields:
        name, _, value = field.partition("=")
        if name in findings:
            findings[name].append(value)
        else:
            values[name] = value
    return ProgramFacts(path, values, findings["refuse"], findings["warn"])


def files_below(folder: Path) -> Iterator[str]:
    """Yield the regular files below a folder; links are not followed. Raises UsageError."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: is no folder; name one")
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(place, name)  # noqa: PTH118 (a Path a file takes longer)
            if not os.path.islink(path):  # noqa: PTH114
                yield path
