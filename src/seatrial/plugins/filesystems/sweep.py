"""``seatrial io sweep``: the best nodes, tasks, sizes and stripes of a file system.

The command writes the file of a tuning with ``search: sweep``, for a test of the suites that ship
or one of the site, and tunes by it: what runs, and what is decided, is that of ``seatrial tune``.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from seatrial.cli.commands.run import tune
from seatrial.errors import InvalidFiles, UsageError, suggest
from seatrial.execute.detect import find_machine
from seatrial.files import write_durably
from seatrial.lazy import yaml
from seatrial.model.file_model import Scalar
from seatrial.model.machine import Machine
from seatrial.model.nodes import node_names
from seatrial.model.suite import load, shipped_suites
from seatrial.model.test import Test
from seatrial.units import bytes_of, listed, share_of, show_bytes, span_of

ALIASES = {"nodes": "hosts", "tasks": "writers"}
"""What people say, and the parameters of the recipes."""

METRICS = ("write", "read")
"""Figures by which a recipe is swept, those of them that it has."""

OF_RECIPES = {
    "elbencho": METRICS,
    "fio": METRICS,
    "ior": ("write_max", "read_max"),
    "h5write": ("best",),
    "ncwrite": ("best",),
}
"""The rates of recipes that ship and whose files do not name them: their outputs do."""

TRANSFERS = ["64K", "256K", "1M", "4M", "16M"]
_SUITES = ("probes", "io")
_FEW_TARGETS = 8  # stripes that are tried where the number of targets is not told


def sweep(
    context: click.Context,
    /,
    file_system: str,
    machine: str | None,
    recipe: str,
    suite: Path | None,
    axes: Sequence[str],
    write: Path | None,
    tag: str | None,
    rehearse: bool,
    **limits: Any,
) -> None:
    """Do ``seatrial io sweep``."""
    about = _tuning_of(
        find_machine(machine).machine, file_system, _recipe(recipe, suite), axes, limits
    )
    text = yaml.safe_dump(about, sort_keys=False, width=100)
    if write is not None:
        if write.exists():
            raise UsageError(f"{write}: is there already; name another file, or remove it")
        write_durably(write, text.encode())
        click.echo(f"{write}: seatrial tune {write}" + (f" -m {machine}" if machine else ""))
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sweep.yaml"
        write_durably(file, text.encode())
        try:
            code = context.invoke(tune, file=file, machine=machine, tag=tag, rehearsed=rehearse)
        except InvalidFiles as error:  # the file is gone when people read this
            faults = [fault.replace(f"{folder}/", "") for fault in error.faults]
            remedy = "`--write sweep.yaml` writes the tuning that has it."
            raise InvalidFiles(faults, remedy) from None
    context.exit(code)


class _Recipe(NamedTuple):
    """A test that writes and reads, and the folder of its suite."""

    test: Test
    suite: Path


def _recipe(name: str, suite: Path | None) -> _Recipe:
    """Return the test of a name. Raises UsageError where there is none."""
    folders = [suite] if suite is not None else [shipped_suites() / each for each in _SUITES]
    known: dict[str, Path] = {}
    for folder in folders:
        loaded = load([folder])
        known |= dict.fromkeys(loaded.names, folder)
        if name in loaded.names:
            own = loaded.only([name])
            for faults in (own.of_folders, *own.faults.values()):
                faults.raise_any()
            return _Recipe(own.tests[name], folder.absolute())
    remedy = suggest(name, known) or f"there are {listed([*known], 12)}"
    raise UsageError(f"--recipe {name}: no such test; {remedy}")


# ---- the tuning ----------------------------------------------------------------------------------


def _tuning_of(
    machine: Machine,
    file_system: str,
    recipe: _Recipe,
    written: Sequence[str],
    limits: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the tuning of a sweep, as its file has it. Raises UsageError."""
    path, kind = _place(machine, file_system)
    test, suite = recipe
    given = _given(written, test)
    values = {**_usual(machine, file_system, kind, test), **given}
    fixed = {name: each[0] for name, each in values.items() if len(each) == 1}
    axes = {name: each for name, each in values.items() if len(each) > 1}
    fixed |= _where(test, file_system, path)
    others = {name: _listed(name, test) for name in test.parameters if name not in (*axes, *fixed)}
    fixed |= {name: each[0] for name, each in others.items() if each}
    if not axes:
        raise UsageError("nothing to sweep: each axis has one value; give --axis nodes=1,2,4")
    metric, *also = _metrics(test, limits["metric"])
    better = "higher" if metric in OF_RECIPES.get(test.name, ()) else None
    tuning: dict[str, Any] = {
        "tune": f"{test.name} on {file_system}",
        "about": f"Sweep of {file_system} ({path}) by {test.name}",
        "suite": str(suite),
        "test": test.name,
        "search": "sweep",
        "metric": metric,
        "also": also,
        "better": limits["better"] or better,
        "axes": axes,
        "parameters": fixed,
        "where": ["size(transfer) <= size(block)"] * _has(test, "transfer", "block"),
        "default": {name: each[0] for name, each in axes.items()},
        **_limits(path, test, limits),
    }
    return {key: value for key, value in tuning.items() if value not in ([], {}, None)}


def _place(machine: Machine, name: str) -> tuple[str, str]:
    """Return the folder of a file system and its type."""
    if name.startswith("/"):
        return name, ""
    systems = machine.file_systems
    if name not in systems:
        known = suggest(name, systems) or f"it has {listed([*systems], 8) or 'none'}"
        raise UsageError(
            f"{machine.machine} has no file system {name!r}; {known}: write `file_systems: "
            f"{{{name}: {{path: /{name}}}}}` into its file, or name a folder"
        )
    return systems[name].path, systems[name].type


def _given(written: Sequence[str], test: Test) -> dict[str, list[Scalar]]:
    """Return the values of the axes as they were given, by parameter."""
    given: dict[str, list[Scalar]] = {}
    for text in written:
        name, equals, values = text.partition("=")
        name = ALIASES.get(name.strip(), name.strip())
        each = [_scalar(value.strip()) for value in values.split(",")]
        if not equals or "" in each:
            raise UsageError(f"--axis {text}: write a name and values, e.g. nodes=1,2,4")
        if name not in test.parameter_names:
            known = [*test.parameter_names, *ALIASES]
            remedy = suggest(name, known) or f"it has {listed(known, 12)}"
            raise UsageError(f"--axis {text}: {test.name} has no parameter {name!r}; {remedy}")
        if name in given:
            raise UsageError(f"--axis {text}: {name} is given twice; give all values at once")
        given[name] = each
    return given


def _scalar(text: str) -> Scalar:
    try:
        return int(text)
    except ValueError:
        return text


def _usual(machine: Machine, name: str, kind: str, test: Test) -> dict[str, list[Scalar]]:
    """Return the values that are tried where none are given, of the parameters that a test has."""
    nodes = len(node_names(machine))
    cores = min((group.cores for group in machine.nodes if group.cores), default=1)
    usual: dict[str, list[Scalar]] = {
        "hosts": _powers(nodes),
        "writers": _powers(cores),
        "api": _listed("api", test),
        "files": _listed("files", test),
        "transfer": [*TRANSFERS],
    }
    if kind == "lustre":
        system = machine.file_systems[name]
        targets = int(getattr(system, "object_targets", 0)) or _FEW_TARGETS
        usual["stripes"] = _powers(targets)
    return {key: each for key, each in usual.items() if key in test.parameter_names and each}


def _powers(largest: int) -> list[Scalar]:
    return [2**power for power in range(max(1, largest).bit_length())]


def _listed(name: str, test: Test) -> list[Scalar]:
    values = test.parameters.get(name)
    return list(values) if isinstance(values, list) else []


def _where(test: Test, name: str, path: str) -> dict[str, Scalar]:
    """Return the parameters that bring a test to a file system."""
    if "directory" in test.parameter_names:
        return {"directory": name}
    if "folder" in test.parameter_names:
        return {"folder": path}
    raise UsageError(
        f"{test.name} has no parameter `directory` or `folder`, so it cannot be told where to "
        "write; add one to its test.yaml"
    )


def _has(test: Test, *names: str) -> bool:
    return all(name in test.parameter_names for name in names)


def _metrics(test: Test, asked: str) -> list[str]:
    """Return the figures that are swept."""
    if asked:
        return [name.strip() for name in asked.split(",") if name.strip()]
    found = [name for name in METRICS if name in test.metrics]
    found = found or [*OF_RECIPES.get(test.name, ())]
    if not found:
        raise UsageError(
            f"{test.name} does not tell its figures before it runs; give --metric NAME, and "
            "--better higher or lower"
        )
    return found


# ---- limits --------------------------------------------------------------------------------------


def _limits(path: str, test: Test, limits: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of the limits."""
    gauge, below = limits["gauge"], limits["below"]
    if (gauge is None) != (below is None):
        raise UsageError("--gauge NAME and --below NUMBER belong together; give both or none")
    cost = _parsed("--budget", limits["budget"], share_of)
    if not 0 < cost <= 1:
        raise UsageError(f"--budget {limits['budget']}: must be above 0 and at most 100%")
    if limits["most_time"] is not None:
        _parsed("--time", limits["most_time"], span_of)
    return {
        "runs": limits["max_runs"],
        "cost": limits["budget"],
        "time": limits["most_time"],
        "space": _space(path, test, limits["space"]),
        "load": {"gauge": gauge, "below": below} if gauge else None,
    }


def _parsed(option: str, text: str, parse: Any) -> Any:
    try:
        return parse(text)
    except ValueError as error:
        raise UsageError(f"{option} {text}: {error}") from None


def _space(path: str, test: Test, text: str) -> int:
    """Return the bytes that a run may take. A share is of what is free now, by statvfs."""
    if test.requires.space is None:
        raise UsageError(
            f"{test.name} does not say what its runs take, so no limit of space can hold; "
            "give it requires.space"
        )
    if not text.endswith("%"):
        limit: int = _parsed("--space", text, bytes_of)
    else:
        share = _parsed("--space", text, share_of)
        try:
            room = os.statvfs(path)
        except OSError as error:
            raise UsageError(
                f"{path}: {error.strerror}, so what is free there is unknown on this host; give "
                "--space as bytes, e.g. 2TiB, or work where it is mounted"
            ) from None
        free = room.f_bavail * room.f_frsize
        limit = int(free * share)
        click.echo(
            f"space: {show_bytes(free)} are free on {path}; a run may take {text} of it, "
            f"{show_bytes(limit)}",
            err=True,
        )
    if limit < 1:
        raise UsageError(f"--space {text}: leaves no space for a run; free some, or give more")
    return limit
