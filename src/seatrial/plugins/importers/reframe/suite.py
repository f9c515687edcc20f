"""Write tests of ReFrame as a suite.

written = import_tests(Path("checks"), Path("suites/reframe"))
written.tests, written.unfinished, written.notes

A test becomes a folder ``FILE/CLASS`` with a test.yaml; what its ``sourcesdir`` has is copied. One
that is not understood as a whole is written as far as it is, with the other statements as
comments: it is skipped on each toolchain, and a check of it fails, until a person has finished it.
"""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from seatrial.escaping import comment
from seatrial.files import write_durably
from seatrial.judge.reading import Unreadable
from seatrial.plugins.importers.reframe.classes import NotProvable, Sources
from seatrial.plugins.importers.reframe.evaluate import (
    FOLLOWS,
    Deferred,
)
from seatrial.plugins.importers.reframe.tests import ReframeCase, ReframeTest, read_tests
from seatrial.plugins.importers.reframe.writer import (
    NAME_OF_FOLDER,
    NOT_CARRIED,
    UNFINISHED,
    TestWriter,
    is_feature,
    is_remote,
    references_of,
)
from seatrial.plugins.importers.results import faults_of_test
from seatrial.units import count


class WrittenTest(NamedTuple):
    """A test that was written, and its source, relative to what was imported."""

    test: ReframeTest
    source: str


class LostPart(NamedTuple):
    """What was not carried over: the reason as many tests share it, the test ("" for a file), the
    statement or the reason in full, and the place."""

    kind: str
    test: str
    text: str
    place: str


class TranslatedSuite(Struct, frozen=True):
    """The tests that were translated and those that are begun, by their names in the suite; how
    many were found; what was not carried over, and notes on tests that were translated."""

    tests: dict[str, WrittenTest]
    unfinished: dict[str, WrittenTest]
    found: int
    lost: list[LostPart]
    notes: list[LostPart]


def import_tests(
    root: Path, out: Path, libraries: Sequence[Path] = (), system: str = ""
) -> TranslatedSuite:
    """Write the tests in a source, or in all sources below a folder, to ``out``. What they inherit
    is looked up in ``libraries``, too. ``system``: that of ReFrame for which they are translated,
    "" for any. Raises OSError."""
    done = TranslatedSuite({}, {}, 0, [], [])
    found = 0
    base = root.parent if root.is_file() else root
    sources = Sources([root, *libraries])
    for path in [root] if root.is_file() else sorted(root.rglob("*.py")):
        place = str(path.relative_to(base))
        try:
            read = list(read_tests(sources, path, system))
        except (Unreadable, SyntaxError, ValueError, RecursionError) as error:
            line = getattr(error, "lineno", 0) or 0
            text = f"cannot be read: {getattr(error, 'msg', error)}"
            where = f"{place}:{line}" if line else place
            done.lost.append(LostPart("a source that cannot be read", "", text, where))
            continue
        found += len(read)
        for test in read:
            _write_one(done, test, base, out)
    return TranslatedSuite(done.tests, done.unfinished, found, done.lost, done.notes)


def _write_one(done: TranslatedSuite, test: ReframeTest, base: Path, out: Path) -> None:
    """Write a test, whole or as far as it is understood, and keep what was not carried over."""
    path = test.module.path
    place = path.relative_to(base)
    try:
        name = _free_name(done, test, place)
    except NotProvable as error:
        where = f"{place}:{error.line}"
        done.lost.append(LostPart(error.kind, test.name, error.text, where))
        return
    is_whole = _write(test, out / name, name)
    written = WrittenTest(test, str(place))
    (done.tests if is_whole else done.unfinished)[name] = written
    roots = [refusal for refusal in test.refusals if refusal.kind != FOLLOWS]
    for refusal in roots or test.refusals:  # what follows from others stands in the test.yaml
        where = f"{_relative(refusal.module.path, base)}:{refusal.line}"
        done.lost.append(LostPart(refusal.kind, name, refusal.text, where))
    if is_whole:
        for text in dict.fromkeys(_notes_of(test)):
            done.notes.append(LostPart(text, name, "", f"{place}:{test.line}"))


def _relative(path: Path, base: Path) -> str:
    return str(path.relative_to(base) if path.is_relative_to(base) else path)


def _free_name(done: TranslatedSuite, test: ReframeTest, place: Path) -> str:
    """Return the name of a test in the suite: FILE/CLASS; with its folders where another source
    has a test of this name. Raises NotProvable."""
    at = place.parent if place.name == "__init__.py" and place.parent.name else place
    for name in (f"{at.stem}/{test.name}", f"{at.with_suffix('')}/{test.name}"):
        for part in name.split("/"):
            if not NAME_OF_FOLDER.fullmatch(part):
                text = f"{part!r} cannot name a folder of a test"
                raise NotProvable(test.line, text, "names of files")
        other = done.tests.get(name) or done.unfinished.get(name)
        if other is None:
            return name
        if other.source == str(place):
            break
    text = f"there is another {test.name} in this file"
    raise NotProvable(test.line, text, "copies of a class")


def _write(test: ReframeTest, folder: Path, name: str) -> bool:
    """Write a test to its folder. Return whether it is whole; else it is begun, and is loaded, but
    does not run."""
    folder.mkdir(parents=True)  # plain: a new folder, in the one that the user names
    writer = TestWriter(test)
    parts = writer.parts()
    try:
        for to, sources in writer.all_sources().items():
            # plain: into the new folder
            shutil.copytree(sources, folder / to, symlinks=True)
    except (NotProvable, OSError, shutil.Error) as error:
        test.refuse(test.line, str(error), "sources", area="build")
    if not test.refusals:
        _write_file(folder, "".join(parts.values()))
        faults = faults_of_test(folder)
        if not faults:
            return True
        test.refuse(test.line, faults, "what Seatrial refuses")
    _write_file(folder, "".join(writer.skeleton(parts)))
    if faults := faults_of_test(folder):
        test.refuse(test.line, faults, "what Seatrial refuses")
        _write_file(folder, "".join(writer.skeleton({})))
    return False


def _write_file(folder: Path, text: str) -> None:
    write_durably(folder / "test.yaml", text.encode(errors="replace"))


# ---- notes ---------------------------------------------------------------------------------------


def _notes_of(test: ReframeTest) -> Iterator[str]:
    """Yield what was not carried over of a test that was written."""
    values = test.cases[0].values
    chains = values.get("valid_prog_environs") or []
    told = {
        "valid_systems: the machine is chosen by --machine": list(
            values.get("valid_systems") or ["*"]
        )
        != ["*"],
        "valid_prog_environs by features: write names of toolchains": any(map(is_feature, chains)),
        "references: learn them by `seatrial reference accept`": values.get("reference"),
        "xfail of a reference: write known_failures (performance)": (
            _expects_a_miss(test.cases[0])
        ),
        "xfail: known_failures, until a day in a year; change the day": test.expected_failure,
        "resourcesdir: set RESOURCESDIR in the machine's environment": (
            "RESOURCESDIR" in str(values)
        ),
        "current_system.name is the name of the machine, MACHINE": "${MACHINE}" in str(values),
        "current_environ.name is the name of the toolchain, TOOLCHAIN": (
            "${TOOLCHAIN}" in str(values)
        ),
        "sourcesdir is cloned when it is built: name a commit": is_remote(
            str(values.get("sourcesdir", ""))
        ),
        "fixtures are made in the build; their checks are left out": test.fixtures,
        "no num_tasks_per_node: one node, where the scheduler chose": (
            values.get("num_tasks_per_node") is None and values.get("num_tasks", 1) != 1
        ),
    }
    yield from (text for text, holds in told.items() if holds)
    yield from (text for name, text in NOT_CARRIED.items() if values.get(name))


def _expects_a_miss(case: ReframeCase) -> bool:
    """Return whether a figure is expected to miss its reference."""
    return any(isinstance(bound, Deferred) for of in references_of(case) for bound in of.values())


def table_of(done: TranslatedSuite, path: Path) -> str:
    """Return what was not carried over as Markdown: one table, by reason, the most frequent first;
    then the notes on tests that were translated."""
    whole, begun = len(done.tests), len(done.unfinished)
    lines = [f"# Imported from {path}\n\n", f"{summary_of(done)}\n\n"]
    if begun:
        lines.append(
            f"{count(begun, 'test')} are begun: each is left out until you remove its key "
            f"`toolchains` and its check `{UNFINISHED}`. What is not translated stands in its "
            "test.yaml as comments; below are the first reasons, and not what follows from them."
            "\n\n"
        )
    lines.append("| reason | tests | test | what | place |\n| --- | --- | --- | --- | --- |\n")
    for kind, tests, rows in by_reason([*done.lost]) + by_reason(done.notes):
        for at, row in enumerate(rows):
            first = (kind, str(tests)) if at == 0 else ("", "")
            cells = (*first, row.test, row.text, row.place)
            lines.append(f"| {' | '.join(map(_cell, cells))} |\n")
    return "".join(lines) if done.lost or done.notes else "".join(lines[:2]) + f"{whole} tests.\n"


def _cell(text: str) -> str:
    return comment(text).replace("|", r"\|")


def by_reason(parts: Sequence[LostPart]) -> list[tuple[str, int, list[LostPart]]]:
    """Return reasons, the one of most tests first: each with its number of tests, and its parts."""
    rows: dict[str, list[LostPart]] = {}
    for part in parts:
        rows.setdefault(part.kind, []).append(part)
    numbered = [
        (kind, len({p.test if "/" in p.test else p.place for p in of}), of)
        for kind, of in rows.items()
    ]
    return sorted(numbered, key=lambda row: -row[1])


def summary_of(done: TranslatedSuite) -> str:
    """Return how many tests were translated, begun and left out."""
    left = done.found - len(done.tests) - len(done.unfinished)
    text = f"{len(done.tests)} of {done.found} tests are translated, {len(done.unfinished)} begun"
    return f"{text}, {left} left out" if left else text
