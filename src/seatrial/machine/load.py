"""Find and load a machine file.

    site = load_machine(Path("machines/c5.yaml"))
    site.machine                     # the description
    site.references                  # machines/c5/references.yaml, beside it

Names are looked up in ``machines/`` below the working directory, then in
``~/.config/seatrial/machines``.
"""

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from seatrial.account import home
from seatrial.documents import Faults, Spot, YamlNode, decode_partly, key_text, lay_over, read
from seatrial.errors import UsageError
from seatrial.machine.check import check, workload_of
from seatrial.machine.check_sinks import check_sinks
from seatrial.machine.layouts import with_layout
from seatrial.machine.model import Machine, Places
from seatrial.machine.places import placed
from seatrial.machine.topologies import with_topology

FOLDER = Path("machines")
SITE_FOLDER = Path("/etc/seatrial/machines")
LOCAL = "local"  # this host, whatever else is described


class Site(NamedTuple):
    """A machine, and the path of its references (the file may not exist yet)."""

    machine: Machine
    references: Path


def this_host() -> str:
    """Return the short name of this host, fit for a file name."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", os.uname().nodename.split(".")[0]) or "localhost"


def machine_file(name: str | None) -> Path | None:
    """Return the file of the machine of that name or path, or None for this host if no file
    describes it. Raises UsageError if there is no such machine."""
    if name is not None and is_path(name):
        return Path(name)
    wanted = this_host() if name is None else name
    for folder in _folders():
        if _exists(folder / f"{wanted}.yaml"):
            return folder / f"{wanted}.yaml"
    if name is not None and name not in (LOCAL, this_host()):
        known = described()
        listed = f"described are {', '.join(known)}; " if known else ""
        raise UsageError(
            f"no machine {name!r}: there is no {FOLDER / name}.yaml; {listed}"
            f"`seatrial machine {name} --detect > {FOLDER / name}.yaml` makes a first description"
        )
    return None


def described() -> list[str]:
    """Return the names of the machines that have a file."""
    return sorted({file.stem for folder in _folders() for file in folder.glob("*.yaml")})


def _folders() -> tuple[Path, ...]:
    return (FOLDER, home() / ".config/seatrial/machines", SITE_FOLDER)


def is_path(name: str) -> bool:
    """Return True if a machine is named by its file, False if by its name."""
    return name.endswith((".yaml", ".yml")) or "/" in name


def load_machine(path: Path) -> Site:
    """Load a machine file. Raises InvalidFiles with all its faults."""
    faults = Faults()
    site = read_machine(path, faults)
    faults.raise_any()
    assert site is not None
    return site


def read_machine(path: Path, faults: Faults) -> Site | None:
    """Load a machine file; add its faults to ``faults``. Raises UsageError if there is no such
    file."""
    if not _exists(path):
        raise UsageError(f"{path}: no such file; name a machine's description")
    own = Faults()
    node = read_with_includes(path, own)
    machine = decode_partly(node, Machine, own) if node is not None else None
    if machine is not None and node is not None:
        spot = Spot(node, own, own.faulty)
        if own.of_shape:  # suppress consequential faults; sinks are independent of each other
            check_sinks(machine.sinks, spot.inside("sinks"))
        else:
            check(machine, spot)
    faults.add_all(own)
    if machine is None or own.found:
        return None
    assert node is not None
    machine = _with_paths(machine, node)
    kinds = [
        with_layout(kind, Spot(node, faults).inside("nodes", i))
        for i, kind in enumerate(machine.nodes)
    ]
    machine = replace(machine, nodes=kinds)
    machine = _with_files(machine, node, faults)
    if machine is None:
        return None
    return Site(machine, path.parent / machine.machine / "references.yaml")


def _with_files(machine: Machine, node: YamlNode, faults: Faults) -> Machine | None:
    """Return the description with the groups and the network that its files tell; None, with a
    fault added, if one cannot be read."""
    key, file = "places", machine.places.file
    try:
        if machine.places != Places():
            groups = placed(machine, node.place_of("places").path.parent)
            machine = replace(machine, groups=groups, places=Places())
        if machine.topology is not None and machine.topology.file:
            key, file = "topology", machine.topology.file
            machine = with_topology(machine, node.place_of("topology").path.parent)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        faults.add(node.place_of(key), key, f"{file}: {reason}" if file else reason)
        return None
    return machine


def _with_paths(machine: Machine, node: YamlNode) -> Machine:
    """Return the description with an absolute path of its workload: trials keep the description,
    and the file may move."""
    background = machine.rehearsal.background
    if background is None or not background.swf:
        return machine
    file = node.place_of("rehearsal", "background", "swf").path
    background = replace(background, swf=str(workload_of(background.swf, file)))
    return replace(machine, rehearsal=replace(machine.rehearsal, background=background))


def _exists(path: Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - Path's raises where it may not look


# ---- files that share keys -----------------------------------------------------------------------

INCLUDE = "include"


def read_with_includes(path: Path, faults: Faults) -> YamlNode | None:
    """Return the document of a machine file, laid over those that it includes; None, with the
    faults added, if it cannot be read."""
    return _read(path, faults, ())


def _read(path: Path, faults: Faults, above: tuple[Path, ...]) -> YamlNode | None:
    """``above``: the files that include this one, the outermost first."""
    node = read(path, faults)
    if node is None or not isinstance(node.value, dict) or INCLUDE not in node.value:
        return node
    chain = (*above, path)
    own = YamlNode({k: v for k, v in node.value.items() if k != INCLUDE}, node.place, node.keys)
    included: YamlNode | None = None
    for file, at in _files(node.value[INCLUDE], path, faults):
        if any(os.path.realpath(file) == os.path.realpath(each) for each in chain):
            circle = " -> ".join(str(each) for each in (*chain, file))
            faults.add(at.place, INCLUDE, f"goes round in a circle: {circle}")
        elif not os.path.isfile(file):  # noqa: PTH113 - Path's raises where it may not look
            faults.add(at.place, INCLUDE, f"{file} is no file; paths start at {path.parent}")
        elif (found := _read(file, faults, chain)) is None:
            continue
        elif not isinstance(found.value, dict):
            faults.add(found.place, "", "is not a mapping of keys to values")
        else:
            included = found if included is None else _joined(included, found, own, (), faults)
    return own if included is None else lay_over(included, own)


def _files(written: YamlNode, path: Path, faults: Faults) -> list[tuple[Path, YamlNode]]:
    """Return the included files, each with the place where it is named."""
    items = written.value if isinstance(written.value, list) else [written]
    found = []
    for item in items:
        if isinstance(item.value, str) and item.value:
            found.append((path.parent / item.value, item))
        else:
            faults.add(item.place, INCLUDE, "must be the path of a file, or a list of paths")
    return found


def _joined(
    one: YamlNode, other: YamlNode, own: YamlNode | None, key: tuple[str, ...], faults: Faults
) -> YamlNode:
    """Return two included nodes as one. It is a fault if they differ where ``own``, the value of
    the including file, says nothing."""
    if isinstance(one.value, dict) and isinstance(other.value, dict):
        values = dict(one.value)
        for name, inner in other.value.items():
            known = own.child(name) if own is not None else None
            values[name] = (
                _joined(values[name], inner, known, (*key, name), faults)
                if name in values
                else inner
            )
        return YamlNode(values, one.place, other.keys | one.keys)
    if own is None and _plain(one) != _plain(other):
        text = f"differs from {one.place}, which is included, too; give it in the file that "
        faults.add(other.place, key_text(key), f"{text}includes both, or remove one")
    return one


def _plain(node: YamlNode) -> Any:
    if isinstance(node.value, dict):
        return {name: _plain(inner) for name, inner in node.value.items()}
    return [_plain(each) for each in node.value] if isinstance(node.value, list) else node.value
