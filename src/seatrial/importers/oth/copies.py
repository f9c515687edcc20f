"""Find tests that are copies of one another but for some values: they become one test with
parameters.

for group in groups(tests):
    group.tests[0], group.axes, group.zipped, group.name_of   # "collective_${part2}_${nodes}n"

People copy a test's folder and change a number in its ini file and in its name. Two tests are
copies if all files of their folders are the same, links by what they say, but for the values of the
ini file; and if each value that differs may be a variable where the template uses it. The name of
the test is a value like others, as templates look at it.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from seatrial.importers.oth.ini import SCRIPTS, TEST_FILE, OthTest
from seatrial.importers.oth.job_script import may_be_variables
from seatrial.verify.reading import read_text

FIXED = ("build_cmd", "check_cmd", "report_cmd")  # commands: a variable in them would not be equal
UNUSED = ("batch_filename",)  # of the values: Seatrial has its own name
TEMPLATE_LIMIT = 1 << 20  # bytes
NOT_COPIED = ("Run_Archive", "Status", "Perf")
"""Folders of a test that hold what ran."""


class CopyGroup(Struct, frozen=True):
    """Tests that become one. ``axes``: the values of each parameter, in the order of ``tests`` if
    they are ``zipped``, else each value once. ``keys``: the parameter of each key of the ini file
    that varies, but for those that have the copy's name (``named``). ``name``: of the test;
    ``name_of``: the name that a copy had, with parameters."""

    tests: tuple[OthTest, ...]
    name: str
    name_of: str
    axes: dict[str, list[str]] = {}
    keys: dict[str, str] = {}
    zipped: tuple[str, ...] = ()
    named: tuple[str, ...] = ()


def groups(tests: Iterable[OthTest]) -> list[CopyGroup]:
    """Return the tests of one application in groups of copies, most of them alone."""
    alike: dict[str, list[OthTest]] = {}
    for test in tests:
        alike.setdefault(_fingerprint(test), []).append(test)
    found: list[CopyGroup] = []
    for same in alike.values():
        group = _group(same) if len(same) > 1 else None
        found += [group] if group else [CopyGroup((one,), one.name, one.name) for one in same]
    names = [group.name for group in found]
    return [
        group if names.count(group.name) == 1 else replace(group, name=group.tests[0].name)
        for group in found
    ]


def template_lines(test: OthTest) -> list[str]:
    """Return the lines of a test's template. Raises Unreadable."""
    return read_text(test.template.parent, test.template.name, TEMPLATE_LIMIT).splitlines()


def _fingerprint(test: OthTest) -> str:
    """Return what copies have in common: files, variables, keys, commands."""
    digest = hashlib.sha256()
    for path, text in sorted(_files(test.folder)):
        digest.update(f"{path}\0{text}\0".encode(errors="surrogateescape"))
    fixed = [(key, test.values.get(key, "")) for key in FIXED]
    digest.update(repr((sorted(test.values), fixed, sorted(test.variables.items()))).encode())
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the files of a test's folder with a checksum, and its links with what they say."""
    for where, folders, files in os.walk(folder):
        if Path(where) == folder:
            folders[:] = [name for name in folders if name not in NOT_COPIED]
        links = [name for name in folders if (Path(where) / name).is_symlink()]
        for name in (*files, *links):
            path = Path(where) / name
            own = str(path.relative_to(folder))
            if own == f"{SCRIPTS}/{TEST_FILE}":
                continue
            if path.is_symlink():
                yield own, f"-> {path.readlink()}"
            elif path.is_file():
                yield own, hashlib.sha256(path.read_bytes()).hexdigest()


def _group(tests: Sequence[OthTest]) -> CopyGroup | None:
    """Return the group of tests with one fingerprint; None if a value that differs cannot be a
    variable."""
    varying = [
        key
        for key in tests[0].values
        if key not in UNUSED and len({test.values[key] for test in tests}) > 1
    ]
    if not may_be_variables(template_lines(tests[0]), set(varying)):
        return None
    named = tuple(key for key in varying if all(test.values[key] == test.name for test in tests))
    varying = [key for key in varying if key not in named]
    if any(not re.fullmatch(r"[\w.+-]+", test.values[key]) for test in tests for key in varying):
        return None
    axes = {key: [test.values[key] for test in tests] for key in varying}
    name, name_of = _name(tests, axes)
    distinct = {key: list(dict.fromkeys(values)) for key, values in axes.items()}
    product = 1
    for values in distinct.values():
        product *= len(values)
    rows = set(zip(*axes.values(), strict=True))
    keys = {key: key for key in varying}
    if len(rows) < len(tests):
        return None  # two tests that are the same
    if product == len(tests):
        return CopyGroup(tuple(tests), name, name_of, distinct, keys, (), named)
    return CopyGroup(tuple(tests), name, name_of, axes, keys, tuple(axes), named)


def _name(tests: Sequence[OthTest], axes: dict[str, list[str]]) -> tuple[str, str]:
    """Return the name of a group and how the name of a copy is made of parameters; add to ``axes``
    those parts of the names that no other parameter tells."""
    parts = [test.name.split("_") for test in tests]
    if len({len(each) for each in parts}) > 1:
        parts = [[test.name] for test in tests]
    own: list[str] = []
    pattern: list[str] = []
    for place, column in enumerate(zip(*parts, strict=True), 1):
        if len(set(column)) == 1:
            own.append(column[0])
            pattern.append(column[0])
            continue
        told = next(filter(None, (_told(column, key, axes[key]) for key in axes)), "")
        if not told:
            axes[f"part{place}"] = list(column)
            told = f"${{part{place}}}"
        pattern.append(told)
    return "_".join(own) or tests[0].name, "_".join(pattern)


def _told(column: Sequence[str], key: str, values: Sequence[str]) -> str:
    """Return how a parameter tells a part of the names, such as ``${nodes}n``; "" if it cannot."""
    first, value = column[0], values[0]
    for found in re.finditer(re.escape(value), first):
        before, after = first[: found.start()], first[found.end() :]
        if all(part == f"{before}{each}{after}" for part, each in zip(column, values, strict=True)):
            return f"{before}${{{key}}}{after}"
    return ""
