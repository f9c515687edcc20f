"""Imports point only down, and the command line starts without what few commands need."""

from __future__ import annotations

import ast
import functools
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import seatrial

SOURCE = Path(seatrial.__file__).parent

# Lowest first; what stands in one line may be used by all that stand below it.
ROOMS = [
    [
        "__init__",
        "errors",
        "units",
        "lazy",
        "arrays",
        "account",
        "structs",
        "gc_pause",
        "decoding",
        "escaping",
        "files",
        "file_origin",
        "state_folder",
        "log",
        "log_file",
        "file_model",
        "settings",
        "settings_file",
        "documents",
        "hooks",
        "yaml_positions",
    ],
    ["statistics", "journal", "layout"],
    ["machine"],
    ["suite"],
    ["rules"],
    ["verify"],
    ["conduct"],
    ["plan"],
    ["runs"],
    ["backends"],
    ["trial"],
    ["store", "acceptance"],
    ["studies", "sinks"],
    ["draw"],
    ["rehearse"],
    ["show"],
    ["report", "web", "importers", "api"],
    ["cli"],
    ["entry"],
    ["plugins"],
]
LEVELS = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


# A statement of import. Only these are parsed: to parse all of the source takes seconds. What a
# docstring says in such words would be one, too.
IMPORT = re.compile(r"^[ ]*((?:from [\w.]+ )?import (?:\([^)]*\)|[^\n(]+))", re.MULTILINE)


def imports(text: str, package: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """(line, full name) of every module that a source imports, inside functions, too."""
    for found in IMPORT.finditer(text):
        line = text.count("\n", 0, found.start(1)) + 1
        (node,) = ast.parse(found[1]).body
        if isinstance(node, ast.Import):
            yield from ((line, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*start, *filter(None, [node.module])])
            # `from seatrial import units` names the room only after the word import
            names = [alias.name for alias in node.names] if module == "seatrial" else [""]
            yield from ((line, f"{module}.{name}".strip(".")) for name in names)


def seatrial_rooms(named: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    for line, name in named:
        if name.split(".")[0] == "seatrial":
            room = name.split(".")[1] if "." in name else "__init__"
            yield line, "__init__" if room.startswith("__") else room


@functools.cache
def imports_of_modules() -> dict[Path, list[tuple[int, str]]]:
    return {
        path: list(imports(path.read_text(), ("seatrial", *path.relative_to(SOURCE).parent.parts)))
        for path in sorted(SOURCE.rglob("*.py"))
    }


def test_imports_point_only_down() -> None:
    assert not {room_of(path) for path in imports_of_modules()} - LEVELS.keys(), (
        "a new room; give it its place in ROOMS"
    )
    wrong = [
        f"{path}:{line}: {own} may not import from {room}; move what it needs to a lower room"
        for path, named in imports_of_modules().items()
        for line, room in seatrial_rooms(named)
        if room != (own := room_of(path)) and LEVELS[room] >= LEVELS[own] and LEVELS[own] > 0
    ]
    assert not wrong, "\n".join(wrong)


def test_the_core_imports_no_plug_in() -> None:
    wrong = [
        f"{path}:{line}: {name}"
        for path, named in imports_of_modules().items()
        if room_of(path) != "plugins"
        for line, name in named
        if name.startswith("seatrial.plugins")
    ]
    assert not wrong, "the core asks plug-ins by seatrial.hooks:\n" + "\n".join(wrong)


def test_every_way_to_import_is_seen() -> None:
    text = """
import seatrial.units
from seatrial import store, __version__
from seatrial.journal.codes import Name
from . import packing
from ..verify import verdict
def f():
    import seatrial.cli.run as r
    if 1:
        from seatrial.trial import driver
"""
    rooms = [room for _, room in seatrial_rooms(imports(text, ("seatrial", "conduct")))]
    assert sorted(rooms) == sorted(
        ["units", "store", "__init__", "journal", "conduct", "verify", "cli", "trial"]
    )


def test_the_pure_rooms_reach_for_no_clock_disk_or_chance() -> None:
    wrong = [
        f"{path}:{line}: {name}"
        for path, named in imports_of_modules().items()
        if room_of(path) == "conduct"
        for line, name in named
        if name.split(".")[0]
        in {"asyncio", "os", "pathlib", "random", "secrets", "socket", "subprocess", "time"}
    ]
    assert not wrong


def test_one_module_imports_scipy_in_its_functions() -> None:
    users = {
        str(path.relative_to(SOURCE))
        for path, named in imports_of_modules().items()
        if any(name.split(".")[0] == "scipy" for _, name in named)
    }
    assert users == {"statistics/significance.py"}
    assert "scipy" not in loaded_by("import seatrial.statistics.significance")


def loaded_by(statement: str, whole: bool = False) -> set[str]:
    """Return the packages that a statement loads, or the ``whole`` names of the modules."""
    text = (
        f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=60
    )
    return {name if whole else name.split(".")[0] for name in done.stdout.split()}


SUITE = """\
app: t
run: {script: echo $SECONDS 3$RANDOM}
metrics: {figure: {find: "(3\\\\S+)", unit: s, better: lower}}
"""
MACHINE = "{machine: m, nodes: [{names: localhost, cores: 1}], toolchains: {p: {}}}"


def test_commands_without_a_statistical_test_load_no_scipy(tmp_path: Path) -> None:
    """It takes one to two seconds. In its place is one that cannot be imported."""
    (tmp_path / "path/scipy").mkdir(parents=True)
    (tmp_path / "path/scipy/__init__.py").write_text("raise ImportError('it is needed')")
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite/test.yaml").write_text(SUITE)
    (tmp_path / "machine.yaml").write_text(MACHINE)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    environment["PYTHONPATH"] = str(tmp_path / "path")

    def done(words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from seatrial.cli import main; main()", *words.split()]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
        )

    for words in (
        "--help",
        "history --help",
        "list suite --machine machine.yaml",
        "run suite --machine machine.yaml --name one --repeat 4",
        "runs",
        "trials",
        "export one",
    ):
        told = done(words)
        assert told.returncode == 0, (words, told.stdout, told.stderr)
    assert "it is needed" in done("compare one one").stderr
