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
from seatrial import hooks

SOURCE = Path(seatrial.__file__).parent

# What a room may import besides itself and the modules that stand beside the rooms, as drawn in
# docs/architecture.md.
ALLOWED = {
    "model": set(),
    "journal": {"model"},
    "judge": {"model"},
    "decide": {"model", "journal", "judge"},
    "execute": {"model", "journal", "judge", "decide"},
    "results": {"model", "journal", "judge", "decide", "execute"},
    "show": {"model", "journal", "judge", "execute", "results"},
    "api": {"model", "journal", "judge", "decide", "execute", "results"},
    "testing": {"model", "execute"},
    "cli": {"model", "journal", "judge", "decide", "execute", "results", "show", "api"},
}
ROOMS = {*ALLOWED, "plugins"}
BESIDE = {
    *("__init__", "errors", "units", "lazy", "account", "escaping", "files"),
    *("log", "hooks", "entry", "grouping"),
}


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


def test_rooms_import_only_what_is_drawn() -> None:
    assert {room_of(path) for path in imports_of_modules()} == ROOMS | BESIDE
    wrong = [
        f"{path}:{line}: {own} may not import from {room}; move what it needs to a lower room"
        for path, named in imports_of_modules().items()
        if (own := room_of(path)) in ALLOWED
        for line, room in seatrial_rooms(named)
        if room in ALLOWED and room != own and room not in ALLOWED[own]
    ]
    assert not wrong, "\n".join(wrong)


def test_what_stands_beside_the_rooms_imports_none() -> None:
    wrong = [
        f"{path}:{line}: {room}"
        for path, named in imports_of_modules().items()
        if room_of(path) in BESIDE - {"__init__", "entry"}
        for line, room in seatrial_rooms(named)
        if room in ROOMS
    ]
    assert not wrong, "\n".join(wrong)


def test_the_core_imports_no_plug_in() -> None:
    """Nor does it name the module of one in a text."""
    wrong = [
        str(path)
        for path in sorted(SOURCE.rglob("*.py"))
        if room_of(path) not in ("plugins", "hooks") and "seatrial.plugins" in path.read_text()
    ]
    assert not wrong, "the core asks plug-ins by seatrial.hooks"


def test_each_plug_in_of_the_product_is_loaded() -> None:
    folders = {path.parent.name for path in (SOURCE / "plugins").glob("*/__init__.py")}
    assert {plugin.name for plugin in hooks.installed()} >= folders


def test_every_way_to_import_is_seen() -> None:
    text = """
import seatrial.units
from seatrial import store, __version__
from seatrial.model.codes import Name
from . import packing
from ..verify import verdict
def f():
    import seatrial.cli.run as r
    if 1:
        from seatrial.trial import driver
"""
    rooms = [room for _, room in seatrial_rooms(imports(text, ("seatrial", "conduct")))]
    assert sorted(rooms) == sorted(
        ["units", "store", "__init__", "model", "conduct", "verify", "cli", "trial"]
    )


def test_the_pure_rooms_reach_for_no_clock_disk_or_chance() -> None:
    wrong = [
        f"{path}:{line}: {name}"
        for path, named in imports_of_modules().items()
        if room_of(path) == "decide"
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
    assert users == {"judge/statistics/significance.py"}
    assert "scipy" not in loaded_by("import seatrial.judge.statistics.significance")


def loaded_by(statement: str, whole: bool = False) -> set[str]:
    """Return the packages that a statement loads, or the ``whole`` names of the modules."""
    text = (
        f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=60
    )
    return {name if whole else name.split(".")[0] for name in done.stdout.split()}


def test_the_help_of_all_commands_imports_no_act() -> None:
    every = "from seatrial.cli import about, seatrial; list(about.pages(seatrial))"
    names = loaded_by(every, whole=True)
    assert "seatrial.plugins.usage.commands" in names
    rooms = {name.split(".")[1] for name in names if name.startswith("seatrial.")}
    assert not rooms & {"decide", "execute", "journal", "judge", "show"}


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
