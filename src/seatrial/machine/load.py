"""Finding and loading a machine's description.

    site = find_machine("c5")        # machines/c5.yaml, a path, or this host where none is named
    site.machine                     # the description
    site.references                  # machines/c5/references.yaml, beside it

Names are looked up in ``machines/`` below the working directory, then in
``~/.config/seatrial/machines``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from seatrial.documents import Faults, Node, Place, decode, read
from seatrial.errors import UsageError
from seatrial.machine.facts import unfold
from seatrial.machine.model import Machine
from seatrial.units import bytes_of, seconds
from seatrial.written import Scalar

FOLDER = Path("machines")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Site(NamedTuple):
    """A machine, and the file of its references (which need not exist yet)."""

    machine: Machine
    references: Path


def find_machine(name: str | None) -> Site:
    """The machine of that name or path; None: this host, as detected, or as its own file in
    ``machines/`` describes it. Raises UsageError and InvalidFiles."""
    from seatrial.machine.detect import detect, this_host

    if name is not None and (name.endswith((".yaml", ".yml")) or "/" in name):
        return load_machine(Path(name))
    wanted = name or this_host()
    folders = (FOLDER, Path.home() / ".config/seatrial/machines")
    for folder in folders:
        if _exists(folder / f"{wanted}.yaml"):
            return load_machine(folder / f"{wanted}.yaml")
    if name is not None and name != this_host():
        known = sorted({file.stem for folder in folders for file in folder.glob("*.yaml")})
        described = f"described are {', '.join(known)}; " if known else ""
        raise UsageError(
            f"no machine {name!r}: there is no {FOLDER / name}.yaml; {described}"
            f"`seatrial machine {name} --detect > {FOLDER / name}.yaml` makes a first description"
        )
    return Site(detect(wanted), FOLDER / wanted / "references.yaml")


def load_machine(path: Path) -> Site:
    """Load a description; all its faults at once as InvalidFiles."""
    if not _exists(path):
        raise UsageError(f"{path}: no such file; name a machine's description")
    faults = Faults()
    node = read(path, faults)
    machine = decode(node, Machine, faults) if node is not None else None
    if machine is not None and node is not None:
        _check(machine, node, faults)
    faults.raise_any()
    assert machine is not None
    return Site(machine, path.parent / machine.machine / "references.yaml")


def _check(machine: Machine, node: Node, faults: Faults) -> None:
    def place(*key: str | int) -> Place:
        return node.place_of(*key)

    if not _NAME.fullmatch(machine.machine):
        faults.add(place("machine"), "machine", "a name must be letters, digits, ._-")
    if not machine.nodes:
        faults.add(place("nodes"), "nodes", "no node is described; give at least one kind")
    seen: set[str] = set()
    for i, kind in enumerate(machine.nodes):
        try:
            names = set(unfold(kind.names))
            if twice := sorted(seen & names):
                text = f"{twice[0]} is described twice"
                faults.add(place("nodes", i, "names"), f"nodes[{i}].names", text)
            seen |= names
        except ValueError as error:
            faults.add(place("nodes", i, "names"), f"nodes[{i}].names", str(error))
        try:
            bytes_of(kind.memory)
        except ValueError as error:
            faults.add(place("nodes", i, "memory"), f"nodes[{i}].memory", str(error))
    if machine.scheduler == "local" and len(seen) > 1:
        text = f"{len(seen)} nodes, but `scheduler: local` is one; give one, or `scheduler: slurm`"
        faults.add(place("nodes"), "nodes", text)
    try:
        kept = set(unfold(machine.slurm.nodelist)) if machine.slurm.nodelist else set()
        if other := sorted(kept - seen):
            text = f"{other[0]} is no node of this machine"
            faults.add(place("slurm", "nodelist"), "slurm.nodelist", text)
    except ValueError as error:
        faults.add(place("slurm", "nodelist"), "slurm.nodelist", str(error))
    for key, value in (("poll", machine.slurm.poll), ("lost_after", machine.slurm.lost_after)):
        try:
            seconds(value)
        except ValueError as error:
            faults.add(place("slurm", key), f"slurm.{key}", str(error))
    for name, chain in machine.toolchains.items():
        key = f"toolchains.{name}"
        if not _NAME.fullmatch(name):
            faults.add(place("toolchains", name), key, "a name must be letters, digits, ._-")
        for variable, text in faults_of_variables(chain.environment):
            at = place("toolchains", name, "environment", variable)
            faults.add(at, f"{key}.environment.{variable}", text)
    for variable, text in faults_of_variables(machine.environment):
        faults.add(place("environment", variable), f"environment.{variable}", text)


def faults_of_variables(environment: Mapping[str, Scalar]) -> list[tuple[str, str]]:
    """What is wrong with an environment as it is written: the variable and a message."""
    faults = []
    for name, value in environment.items():
        if not _VARIABLE.fullmatch(name):
            text = "is not a name for a variable; it must be letters, digits and _"
            faults.append((name, text))
        elif "\0" in str(value):
            faults.append((name, "holds a NUL character"))
    return faults


def _exists(path: Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - Path's raises where it may not look
