"""Find and load a machine file.

    site = load_machine(Path("machines/c5.yaml"))
    site.machine                     # the description
    site.references                  # machines/c5/references.yaml, beside it

Names are looked up in ``machines/`` below the working directory, then in
``~/.config/seatrial/machines``.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.account import home
from seatrial.errors import UsageError
from seatrial.hooks import check_keys, resolved
from seatrial.model.documents import (
    Faults,
    Location,
    YamlNode,
    decode_partly,
    key_text,
    lay_over,
    read,
)
from seatrial.model.failures import check_known_failures, check_log_rules
from seatrial.model.file_model import NAME, Scalar
from seatrial.model.machine import FileSystem, FileUse, Machine, Places
from seatrial.model.machine_topology import check_topology, with_topology
from seatrial.model.node_set import unfold_or_empty
from seatrial.model.nodes import check_layout, hosts_by_role, with_layout
from seatrial.model.places import placed
from seatrial.model.run_settings import fault_of_variable
from seatrial.model.schedulers import BatchSettings, Scheduler, schedulers

FOLDER = Path("machines")
SITE_FOLDER = Path("/etc/seatrial/machines")
LOCAL = "local"  # this host, whatever else is described


class Site(Struct, frozen=True):
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
    own_faults = Faults()
    node = read_with_includes(path, own_faults)
    machine = decode_partly(node, Machine, own_faults) if node is not None else None
    if machine is not None and node is not None:
        location = Location(node, own_faults, own_faults.faulty)
        if own_faults.of_shape:  # suppress consequential faults; keys of plug-ins are independent
            check_keys("machine", machine, location)
        else:
            check(machine, location)
    faults.add_all(own_faults)
    if machine is None or own_faults.found:
        return None
    assert node is not None
    machine = resolved("machine", machine, Location(node, faults))
    kinds = [
        with_layout(kind, Location(node, faults).inside("nodes", i))
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
    values = dict(node.value)
    named = values.pop(INCLUDE)
    including = YamlNode(values, node.place, node.keys)
    included: YamlNode | None = None
    for file, at in _files(named, path, faults):
        document = _read_included(file, at, faults, chain)
        if document is not None and included is not None:
            document = _joined(included, document, including, (), faults)
        included = document or included
    return including if included is None else lay_over(included, including)


def _read_included(
    file: Path, at: YamlNode, faults: Faults, chain: tuple[Path, ...]
) -> YamlNode | None:
    if any(os.path.realpath(file) == os.path.realpath(each) for each in chain):
        circle = " -> ".join(str(each) for each in (*chain, file))
        faults.add(at.place, INCLUDE, f"goes round in a circle: {circle}")
        return None
    if not os.path.isfile(file):  # noqa: PTH113 - Path's raises where it may not look
        faults.add(at.place, INCLUDE, f"{file} is no file; paths start at {chain[-1].parent}")
        return None
    node = _read(file, faults, chain)
    if node is not None and not isinstance(node.value, dict):
        faults.add(node.place, "", "is not a mapping of keys to values")
        return None
    return node


def _files(written: YamlNode, path: Path, faults: Faults) -> list[tuple[Path, YamlNode]]:
    """Return the included files, each with the place where it is named."""
    items = written.value if isinstance(written.value, list) else [written]
    files = []
    for item in items:
        if isinstance(item.value, str) and item.value:
            files.append((path.parent / item.value, item))
        else:
            faults.add(item.place, INCLUDE, "must be the path of a file, or a list of paths")
    return files


def _joined(
    one: YamlNode, other: YamlNode, including: YamlNode | None, key: tuple[str, ...], faults: Faults
) -> YamlNode:
    """Return two included nodes as one. It is a fault if they differ where ``including``, the
    value of the including file, says nothing."""
    if isinstance(one.value, dict) and isinstance(other.value, dict):
        values = dict(one.value)
        for name, inner in other.value.items():
            known = including.child(name) if including is not None else None
            values[name] = (
                _joined(values[name], inner, known, (*key, name), faults)
                if name in values
                else inner
            )
        return YamlNode(values, one.place, other.keys | one.keys)
    if including is None and _plain(one) != _plain(other):
        text = f"differs from {one.place}, which is included, too; give it in the file that "
        faults.add(other.place, key_text(key), f"{text}includes both, or remove one")
    return one


def _plain(node: YamlNode) -> Any:
    if isinstance(node.value, dict):
        return {name: _plain(inner) for name, inner in node.value.items()}
    return [_plain(each) for each in node.value] if isinstance(node.value, list) else node.value


# ---- check ---------------------------------------------------------------------------------------
#
# Check a decoded machine file: names, node sets, quantities and references between keys.


_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"


def check(machine: Machine, location: Location) -> None:
    """Add every fault of a decoded machine file that no value shows by itself."""
    names = _nodes(machine, location)
    _subset(machine.slurm.nodelist, names, location.inside("slurm", "nodelist"))
    _groups(machine, names, location)
    if machine.topology is not None:
        check_topology(machine, location.inside("topology"))
    for kind in schedulers().values():
        if kind.name != "local":
            _batch_settings(kind, getattr(machine, kind.name), location.inside(kind.name))
    _environments(machine, location)
    _launchers(machine, location)
    for name, system in machine.file_systems.items():
        _file_system(system, machine, location.inside("file_systems", name))
    if machine.file_use is not None:
        _file_use(machine.file_use, machine.jobs_run_elsewhere, location.inside("file_use"))
    check_log_rules(machine.log_rules, location)
    check_known_failures(machine.known_failures, location)
    check_keys("machine", machine, location)


def _environments(machine: Machine, location: Location) -> None:
    """Check the variables that are set: for everything, by a toolchain, and for pages."""
    places = [(location.inside("environment"), machine.environment)]
    for key in ("toolchains", "pages"):
        for name, settings in getattr(machine, key).items():
            places.append((location.inside(key, name, "environment"), settings.environment))
    for at, environment in places:
        for variable, text in faults_of_variables(environment):
            at.fault(text, variable)


def _launchers(machine: Machine, location: Location) -> None:
    """Check that the launchers' lines have no variables: the shell replaces none in $LAUNCH."""
    chains = machine.toolchains.items()
    places = [
        (location.inside("toolchains", name, "launcher"), one.launcher) for name, one in chains
    ]
    for at, launcher in [(location.inside("launcher"), machine.launcher), *places]:
        words = [launcher.command, *launcher.options] if launcher is not None else []
        for names in filter(None, map(references_of, words)):
            text = f"${names[0]} is not replaced in $LAUNCH; write what it is, or a name on PATH"
            at.fault(text, "command" if references_of(words[0]) else "options")


def _batch_settings(kind: type[Scheduler], settings: BatchSettings, location: Location) -> None:
    for i, word in enumerate(settings.options):
        if kind.own_options and re.fullmatch(kind.own_options, word):
            text = f"{word!r} is given by Seatrial itself, or makes {kind.submits} wait; remove it"
            location.fault(text, "options", i)
    kind.check(settings, location)


def _file_use(about: FileUse, in_jobs: bool, location: Location) -> None:
    if about.job_stats and not in_jobs:
        location.fault("its jobs have no numbers by which Lustre counts; leave it out", "job_stats")


REFERENCE = re.compile(r"\$(?:(\$)|([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})", re.ASCII)
"""What is replaced in the value of a variable: ``$$`` by a dollar sign, ``$NAME`` and ``${NAME}``
by what NAME is on the node."""


def references_of(value: object) -> list[str]:
    """Return the names of the variables that the value of a variable refers to."""
    matches = REFERENCE.finditer(str(value))
    return [match[2] or match[3] for match in matches if not match[1]]


_OTHERWISE = "export it in `setup` of the machine, or in the script; $$ is a dollar sign"


def faults_of_variables(environment: Mapping[str, Scalar]) -> list[tuple[str, str]]:
    """Return the faults of an environment: (variable, message)."""
    faults = []
    for name, value in environment.items():
        if not re.fullmatch(_VARIABLE, name):
            text = "is not a name for a variable; it must be letters, digits and _"
            faults.append((name, text))
        elif "\0" in str(value):
            faults.append((name, "holds a NUL character"))
        elif match := re.search(r"\$[({][^)}]*[)}]?", REFERENCE.sub("", str(value))):
            text = f"{match[0]} is not replaced, only $NAME and ${{NAME}} are; {_OTHERWISE}"
            faults.append((name, text))
        elif text := fault_of_variable(name, value):
            faults.append((name, text))
    return faults


# ---- nodes --------------------------------------------------------------------------------


def _nodes(machine: Machine, location: Location) -> set[str]:
    """Check the nodes; return the names of all nodes."""
    if not machine.nodes:
        location.fault("no node is described; give at least one kind", "nodes")
    seen: set[str] = set()
    for i, kind in enumerate(machine.nodes):
        at = location.inside("nodes", i)
        names = set(unfold_or_empty(kind.names))
        if twice := sorted(seen & names):
            at.fault(f"{twice[0]} is described twice", "names")
        seen |= names
        if kind.layout is not None:
            check_layout(kind, at)
    if machine.scheduler == "local" and len(seen) > 1:
        *others, last = (f"`scheduler: {name}`" for name in schedulers() if name != "local")
        text = f"{len(seen)} nodes, but `scheduler: local` is one; give one, or "
        text += f"{', '.join(others)} or {last}"
        location.fault(text, "nodes")
    return seen


def _subset(folded: str, names: set[str], at: Location) -> tuple[str, ...]:
    """Check that a node set names nodes of the machine only; return their names."""
    members = unfold_or_empty(folded)
    if other := sorted(set(members) - names):
        at.fault(f"{other[0]} is not a node of this machine")
    return members


def named_nodes(folded: str, names: set[str], at: Location) -> tuple[str, ...]:
    """Check that a node set names nodes of the machine, and some; return their names."""
    if not folded:
        at.fault("has no nodes; write e.g. n[001-128]")
    return _subset(folded, names, at)


def _places(places: Places, location: Location) -> None:
    """Check that places name one source of groups, and that groups are not written as well."""
    if bool(places.file) == (places.xnames is not None):
        location.fault("give file or xnames, one of them", "places")
    if places.by and not places.file:
        location.fault("is about a file; give file", "places", "by")
    if location.given("groups"):
        location.fault("groups are written, too; remove groups or places", "places")


def _groups(machine: Machine, names: set[str], location: Location) -> None:
    """Check that groups name nodes of the machine, or hosts with a role, and each at most once."""
    if location.given("places"):
        _places(machine.places, location)
    group_of: dict[str, str] = {}
    names = names.union(*hosts_by_role(machine).values())
    for name, folded in machine.groups.items():
        at = location.inside("groups", name)
        members = named_nodes(folded, names, at)
        if twice := [node for node in members if node in group_of]:
            at.fault(f"{twice[0]} is in the group {group_of[twice[0]]}, too; give each node one")
        group_of.update(dict.fromkeys(members, name))


# ---- file systems -------------------------------------------------------------------------


def _file_system(system: FileSystem, machine: Machine, at: Location) -> None:
    seen: set[str] = set()
    for i, target in enumerate(system.metadata_targets):
        if not NAME.fullmatch(target.name):
            at.fault(f"{target.name!r}: a name must be letters, digits, ._-", "targets", i)
        elif target.name in seen:
            at.fault(f"{target.name} is given twice", "targets", i)
        seen.add(target.name)
        if target.gauge and target.gauge not in machine.all_gauges:
            gauges = ", ".join(sorted(machine.all_gauges)) or "none"
            at.fault(f"no gauge {target.gauge!r}; there are {gauges}", "targets", i, "gauge")
