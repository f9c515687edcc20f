"""Write simple tests of ReFrame as a suite.

written = import_tests(Path("checks"), Path("suites/reframe"))
written.tests, written.notes

A test becomes a folder ``FILE/CLASS`` with a test.yaml; what is in ``src`` beside its source is
copied. A test that is not understood as a whole is not written: each reason is a note with its
line.
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from seatrial.errors import SeatrialError
from seatrial.files import remove_tree, write_durably
from seatrial.importers.notes import ImportNote
from seatrial.importers.reframe.entry import ReframeFigure
from seatrial.importers.reframe.source import (
    NotProvable,
    ParameterOf,
    ParameterText,
    ReframeTest,
    read_tests,
)
from seatrial.lazy import regex
from seatrial.suite.load import load
from seatrial.verify.reading import Unreadable, read_text
from seatrial.yaml_positions import Faults

LIMIT = 4 << 20
SOURCES = "src"  # ReFrame's name of the folder beside a test's source
_PART = regex(r"[A-Za-z0-9][A-Za-z0-9._+-]*")  # as folders of tests are named
_PLAIN_VALUE = regex(r"[\w./+:,=-]*", re.ASCII)
_TIME_LIMIT = regex(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_COMPILERS = {
    **dict.fromkeys((".c",), ("$CC", "$CFLAGS", "cflags")),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".C"), ("$CXX", "$CXXFLAGS", "cxxflags")),
    **dict.fromkeys((".f90", ".F90", ".f", ".F"), ("$FC", "$FFLAGS", "fflags")),
}


class TranslatedSuite(Struct, frozen=True):
    """The tests that were written, by their names in the suite, the number of tests that were
    found, and the notes."""

    tests: dict[str, ReframeTest]
    found: int
    notes: list[ImportNote]


def import_tests(root: Path, out: Path) -> TranslatedSuite:
    """Write the tests in a source, or in all sources below a folder, to ``out``. Raises OSError."""
    notes: list[ImportNote] = []
    tests: dict[str, ReframeTest] = {}
    found = 0
    for path in [root] if root.is_file() else sorted(root.rglob("*.py")):
        try:
            read = list(read_tests(path, read_text(path.parent, path.name, LIMIT)))
        except (Unreadable, SyntaxError, ValueError, RecursionError) as error:
            line = getattr(error, "lineno", 0) or 0
            text = getattr(error, "msg", str(error))
            notes.append(ImportNote(path, line, f"cannot be read: {text}"))
            continue
        found += len(read)
        for test in read:
            name = f"{path.stem}/{test.name}"
            try:
                if name in tests:
                    raise NotProvable(test.line, f"there is another {name}")
                _write(test, path, out / name)
            except NotProvable as error:
                refusals = test.refusals or [(error.line, error.text)]
                notes += [
                    ImportNote(path, line, f"{test.name} was not translated: {why}")
                    for line, why in refusals
                ]
                continue
            notes += _notes_of(test, path)
            tests[name] = test
    return TranslatedSuite(tests, found, notes)


def _write(test: ReframeTest, path: Path, folder: Path) -> None:
    """Write a test to its folder, or nothing. Raises NotProvable."""
    if test.refusals:
        raise NotProvable(*test.refusals[0])
    for part in (path.stem, test.name):
        if not _PART.fullmatch(part):
            raise NotProvable(test.line, f"{part!r} cannot name a folder of a test")
    text = "".join(_test_yaml(test, path))
    folder.mkdir(parents=True)  # plain: a new folder, in the one that the user names
    write_durably(folder / "test.yaml", text.encode())
    if _has_sources(test, path):
        # plain: into the new folder
        shutil.copytree(path.parent / SOURCES, folder / SOURCES, symlinks=True)
    if faults := _faults_of(folder):
        remove_tree(folder)
        raise NotProvable(test.line, faults)


def _faults_of(folder: Path) -> str:
    """Return the faults of the test that was written, "" if there are none."""
    faults = Faults()
    try:
        load([folder], faults)
        faults.raise_any()
    except SeatrialError as error:
        return str(error).replace(f"{folder}/", "").partition("\n")[0]
    return ""


def _test_yaml(test: ReframeTest, path: Path) -> Iterator[str]:
    """Yield the lines of a test.yaml. Raises NotProvable."""
    get = test.values.get
    yield f"# Imported from {path.name}:{test.line} of ReFrame.\n"
    yield f"app: {json.dumps(test.name)}\n"
    if get("descr"):
        yield f"about: {_quoted(test, 'descr')}\n"
    if get("tags"):
        yield f"tags: {json.dumps(get('tags'))}\n"
    if test.parameters:
        yield f"parameters: {json.dumps(test.parameters)}\n"
    chains = [each for each in get("valid_prog_environs") or ["*"] if isinstance(each, str)]
    if any(re.match(r"[+%-]", each) or " " in each for each in chains):
        raise NotProvable(test.lines["valid_prog_environs"], "environments by features")
    if chains != ["*"]:
        yield f"toolchains: {json.dumps(chains)}\n"
    variables = {**(get("variables") or {}), **(get("env_vars") or {})}
    if variables:
        yield "environment:\n"
        for name, value in variables.items():
            yield f"  {name}: {json.dumps(_plain(test, 'env_vars', str(value)))}\n"
    if get("modules"):
        yield f"modules: {json.dumps(get('modules'))}\n"
    builds = test.kind != "RunOnlyRegressionTest"
    yield from _build(test, path) if builds else ()
    if not builds and _has_sources(test, path):
        files = sorted(each.name for each in (path.parent / SOURCES).iterdir())
        yield f"inputs: {json.dumps([f'{SOURCES}/{name}' for name in files])}\n"
    if test.kind == "CompileOnlyRegressionTest":
        return
    yield from _run(test, builds)
    yield "verify:\n  - {exit_code: any}\n"
    for check in test.checks:
        kind = "matches" if check.must_match else "absent"
        pattern = check.pattern
        if re.search(r"\$[A-Za-z_{]", pattern):
            raise NotProvable(test.line, f"{pattern!r} has a $ before a letter")
        if not check.must_match and re.escape(pattern) != pattern.replace(" ", "\\ "):
            raise NotProvable(test.line, f"assert_not_found of {pattern!r}, which is no text")
        yield f"  - {{{kind}: {json.dumps(pattern)}, in: {check.stream}}}\n"
    if test.figures:
        yield "metrics:\n"
    for figure in test.figures:
        better = _better(test, figure.name, figure.unit)
        keys = {"find": figure.pattern, "unit": figure.unit or "1", "better": better}
        keys |= {"reduce": figure.reduce, "in": figure.stream}
        yield f"  {figure.name}: {json.dumps(keys)}\n"


def _build(test: ReframeTest, path: Path) -> Iterator[str]:
    get = test.values.get
    source, system = get("sourcepath") or "", get("build_system") or ""
    yield "build:\n"
    if _has_sources(test, path):
        yield f"  sources: [{SOURCES}]\n"
    yield "  script: |\n    set -e\n"
    if _has_sources(test, path):
        yield f"    cd {SOURCES}\n"
    yield from (f"    {line}\n" for line in _lines(test, "prebuild_cmds"))
    suffix = Path(source).suffix if isinstance(source, str) else ""
    if system in ("", "SingleSource") and suffix in _COMPILERS:
        compiler, flags, own = _COMPILERS[suffix]
        more = " ".join(_lines(test, f"build_system.{own}"))
        links = " ".join(_lines(test, "build_system.ldflags"))
        built = _executable(test)
        parts = (compiler, flags, more, "-o", built, source, links, "$LDFLAGS", "$LDLIBS")
        yield f"    {' '.join(filter(None, parts))}\n"
    elif system == "Make" and not any(key.startswith("build_system.") for key in test.values):
        yield '    make CC="$CC" CXX="$CXX" FC="$FC"\n'
    else:
        what = f"build system {system or 'by default'} of {source or 'no source'}"
        raise NotProvable(test.line, f"{what} is of no known form")
    yield from (f"    {line}\n" for line in _lines(test, "postbuild_cmds"))


def _run(test: ReframeTest, builds: bool) -> Iterator[str]:
    get = test.values.get
    tasks, per_node = get("num_tasks", 1), get("num_tasks_per_node")
    if tasks == 0:
        raise NotProvable(test.lines["num_tasks"], "num_tasks is 0: as many as there are")
    yield "run:\n"
    if per_node is not None:
        nodes = f"({_expression(tasks)} + {_expression(per_node)} - 1) // {_expression(per_node)}"
        if isinstance(tasks, int) and isinstance(per_node, int):
            nodes = str(-(-tasks // per_node))
        yield f"  nodes: {json.dumps(nodes) if not nodes.isdigit() else nodes}\n"
    yield f"  tasks: {_expression(tasks)}\n"
    for key, name in (
        ("threads_per_task", "num_cpus_per_task"),
        ("gpus_per_node", "num_gpus_per_node"),
    ):
        if get(name) is not None:
            yield f"  {key}: {_expression(get(name))}\n"
    if get("exclusive_access"):
        yield "  exclusive: true\n"
    if get("time_limit"):
        yield f"  walltime: {_seconds(test)}s\n"
    words = [_executable(test), *_lines(test, "executable_opts")]
    yield "  script: |\n"
    if builds:
        yield f'    cp -r "$BUILD"/{SOURCES}/. . 2>/dev/null || cp -r "$BUILD"/. .\n'
    yield from (f"    {line}\n" for line in _lines(test, "prerun_cmds"))
    yield f"    $LAUNCH {' '.join(words)}\n"
    yield from (f"    {line}\n" for line in _lines(test, "postrun_cmds"))


def _executable(test: ReframeTest) -> str:
    return _plain(test, "executable", test.values.get("executable") or f"./{test.name}")


def _expression(value: object) -> str:
    return value.name if isinstance(value, ParameterOf) else str(value)


def _seconds(test: ReframeTest) -> int:
    written = test.values["time_limit"]
    found = _TIME_LIMIT.fullmatch(written) if isinstance(written, str) else None
    if found is None or not any(found.groups()):
        raise NotProvable(test.lines["time_limit"], f"time_limit {written!r}")
    days, hours, minutes, seconds = (int(each or 0) for each in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _lines(test: ReframeTest, name: str) -> list[str]:
    """Return the texts of a list, as shell: parameters are variables."""
    return [_plain(test, name, each) for each in test.values.get(name) or []]


def _plain(test: ReframeTest, name: str, value: object) -> str:
    """Return a text as shell. ReFrame puts the values of parameters into it: a variable is the same
    where none of them has blanks or special characters, and the text has no quotes around it."""
    pieces = value.pieces if isinstance(value, ParameterText) else (value,)
    line = test.lines.get(name, test.line)
    out = []
    for piece in pieces:
        if not isinstance(piece, ParameterOf):
            text = str(piece)
            if "\n" in text or (isinstance(value, ParameterText) and re.search(r"['\"`\\]", text)):
                raise NotProvable(line, f"{name}: a text of several lines, or with quotes")
            out.append(text)
            continue
        values = test.parameters[piece.name]
        if not all(_PLAIN_VALUE.fullmatch(str(each)) and str(each) for each in values):
            raise NotProvable(line, f"{name}: values of {piece.name} that the shell would read")
        out.append(f"${{{piece.name}}}")
    return "".join(out)


def _quoted(test: ReframeTest, name: str) -> str:
    found = test.values[name]
    if isinstance(found, ParameterText):
        raise NotProvable(test.lines[name], f"{name} has parameters in it")
    return json.dumps(found)


def _better(test: ReframeTest, name: str, unit: str) -> str:
    """Return which is better of a figure, by its first reference or its unit."""
    for of_system in (test.values.get("reference") or {}).values():
        bounds = of_system.get(name) if isinstance(of_system, dict) else None
        if isinstance(bounds, tuple) and len(bounds) >= 3:
            return ReframeFigure(name, 0.0, unit, *bounds[:3]).better
    return ReframeFigure(name, 0.0, unit, None, None, None).better


def _has_sources(test: ReframeTest, path: Path) -> bool:
    if test.values.get("sourcesdir", SOURCES) not in (SOURCES, None):
        raise NotProvable(test.lines["sourcesdir"], "sourcesdir is another folder")
    return "sourcesdir" not in test.values and (path.parent / SOURCES).is_dir()


def _notes_of(test: ReframeTest, path: Path) -> Iterator[ImportNote]:
    """Yield what was not carried over of a test that was written."""
    systems: list[Any] = test.values.get("valid_systems") or []
    if systems and systems != ["*"]:
        line = test.lines["valid_systems"]
        text = "valid_systems is about machines: here the machine is chosen by --machine"
        yield ImportNote(path, line, text)
    if test.values.get("reference"):
        line = test.lines["reference"]
        text = (
            "references belong to a machine: learn them with `seatrial reference accept`, or write "
            "them to its references.yaml"
        )
        yield ImportNote(path, line, text)
    if "num_tasks_per_node" not in test.values and test.values.get("num_tasks", 1) != 1:
        line = test.lines["num_tasks"]
        text = "no num_tasks_per_node: the scheduler chose the nodes, and here it is one node"
        yield ImportNote(path, line, text, lost=False)
