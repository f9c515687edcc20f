"""Check a decoded machine file: names, node sets, quantities and references between keys."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from seatrial.documents import Spot, key_text
from seatrial.escaping import has_controls
from seatrial.file_model import Scalar
from seatrial.lazy import regex
from seatrial.machine.check_sinks import check_sinks
from seatrial.machine.failures import check_known_failures, check_log_rules
from seatrial.machine.glibc import fault_of_variable
from seatrial.machine.layouts import check_layout
from seatrial.machine.model import PAGES, FileSystem, FileUse, Gauge, Machine, Places
from seatrial.machine.node_sets import unfold
from seatrial.machine.rehearsal_model import Background, MachineModel
from seatrial.machine.schedulers import BatchSettings, Scheduler, schedulers
from seatrial.machine.topologies import check_topology

_NAME = regex(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_VARIABLE = regex(r"[A-Za-z_][A-Za-z0-9_]*")
_QUORUM = regex(r"[1-9][0-9]{0,6}|([1-9][0-9]?|100)%")
_VARIABLES = regex(r"(?=\**[A-Za-z_])[A-Za-z0-9_*]+")
_NO_NAME = "a name must be letters, digits, ._-"


def check(machine: Machine, spot: Spot) -> None:
    """Add every fault of a decoded machine file that no value shows by itself."""
    if not _NAME.fullmatch(machine.machine):
        spot.fault(_NO_NAME, "machine")
    names = _nodes(machine, spot)
    _subset(machine.slurm.nodelist, names, spot.inside("slurm", "nodelist"))
    if machine.slurm.exclude:
        spot.parsed(unfold, machine.slurm.exclude, "slurm", "exclude")
    _groups(machine, names, spot)
    for name, folded in machine.roles.items():
        at = spot.inside("roles", name)
        if not _NAME.fullmatch(name):
            at.fault(_NO_NAME)
        at.parsed(unfold, folded)
    if machine.topology is not None:
        check_topology(machine, spot.inside("topology"))
    for kind in schedulers().values():
        if kind.name != "local":
            _batch_settings(kind, getattr(machine, kind.name), spot.inside(kind.name))
    if machine.builds.folder and not Path(machine.builds.folder).is_absolute():
        spot.fault(f"{machine.builds.folder!r} is no absolute path", "builds", "folder")
    if machine.guard and not Path(machine.guard).is_absolute():
        spot.fault(f"{machine.guard!r} is no absolute path", "guard")
    if told := fault_of_quorum(machine.compat.quorum):
        spot.fault(told, "compat", "quorum")
    for i, name in enumerate(machine.compat.environment):
        if told := fault_of_names(name):
            spot.fault(told, "compat", "environment", i)
    for i, mount in enumerate(machine.containers.mounts if machine.containers else ()):
        paths = mount.split(":")
        if len(paths) > 2 or not all(Path(each).is_absolute() for each in paths):
            text = f"{mount!r} is neither an absolute path nor two with a colon between them"
            spot.fault(text, "containers", "mounts", i)
    for name, chain in machine.toolchains.items():
        at = spot.inside("toolchains", name)
        if not _NAME.fullmatch(name):
            at.fault(_NO_NAME)
        for variable, text in faults_of_variables(chain.environment):
            at.fault(text, "environment", variable)
    for variable, text in faults_of_variables(machine.environment):
        spot.fault(text, "environment", variable)
    for pages, settings in machine.pages.items():
        if pages not in PAGES:
            spot.fault(f"{pages!r} is not one of {', '.join(PAGES)}", "pages", pages)
        for variable, text in faults_of_variables(settings.environment):
            spot.fault(text, "pages", pages, "environment", variable)
    for name, system in machine.file_systems.items():
        _file_system(name, system, machine, spot.inside("file_systems", name))
    for name, gauge in machine.gauges.items():
        _gauge(name, gauge, machine, spot.inside("gauges", name))
    if machine.file_use is not None:
        _file_use(machine.file_use, machine.jobs_run_elsewhere, spot.inside("file_use"))
    check_log_rules(machine.log_rules, spot)
    check_known_failures(machine.known_failures, spot)
    check_sinks(machine.sinks, spot.inside("sinks"))
    _rehearsal(machine.rehearsal, names, spot.inside("rehearsal"))


def _batch_settings(kind: type[Scheduler], settings: BatchSettings, spot: Spot) -> None:
    for i, word in enumerate(settings.options):
        if kind.own_options and re.fullmatch(kind.own_options, word):
            text = f"{word!r} is given by Seatrial itself, or makes {kind.submits} wait; remove it"
            spot.fault(text, "options", i)
    kind.check(settings, spot)


def _file_use(about: FileUse, in_jobs: bool, spot: Spot) -> None:
    for i, path in enumerate(about.paths):
        if not Path(path).is_absolute():
            spot.fault(f"{path!r} is no absolute path", "paths", i)
    if about.job_stats and not in_jobs:
        spot.fault("its jobs have no numbers by which Lustre counts; leave it out", "job_stats")
    if "%j" not in about.job_id:
        spot.fault(f"{about.job_id!r} has no %j, the number of the job", "job_id")


def fault_of_quorum(quorum: int | str) -> str:
    """Return why this is no quorum of a compat job; "" if it is one."""
    if _QUORUM.fullmatch(str(quorum)):
        return ""
    return f"{quorum!r} is no quorum; write a number of nodes, or 1% to 100%"


def fault_of_names(pattern: str) -> str:
    """Return why this names no variables for the nodes of a compat job; "" if it does. ``*`` stands
    for any letters, anywhere but alone."""
    if _VARIABLES.fullmatch(pattern):
        return ""
    return f"{pattern!r} is no name of variables; write e.g. LM_LICENSE_FILE or FLUENT_*"


def faults_of_variables(environment: Mapping[str, Scalar]) -> list[tuple[str, str]]:
    """Return the faults of an environment: (variable, message)."""
    faults = []
    for name, value in environment.items():
        if not _VARIABLE.fullmatch(name):
            text = "is not a name for a variable; it must be letters, digits and _"
            faults.append((name, text))
        elif "\0" in str(value):
            faults.append((name, "holds a NUL character"))
        elif text := fault_of_variable(name, value):
            faults.append((name, text))
    return faults


# ---- nodes --------------------------------------------------------------------------------


def _nodes(machine: Machine, spot: Spot) -> set[str]:
    """Check the nodes; return the names of all nodes."""
    if not machine.nodes:
        spot.fault("no node is described; give at least one kind", "nodes")
    seen: set[str] = set()
    for i, kind in enumerate(machine.nodes):
        at = spot.inside("nodes", i)
        names = set(at.parsed(unfold, kind.names, "names") or ())
        if twice := sorted(seen & names):
            at.fault(f"{twice[0]} is described twice", "names")
        seen |= names
        if kind.layout is not None:
            check_layout(kind, at)
    if machine.scheduler == "local" and len(seen) > 1:
        *others, last = (f"`scheduler: {name}`" for name in schedulers() if name != "local")
        text = f"{len(seen)} nodes, but `scheduler: local` is one; give one, or "
        text += f"{', '.join(others)} or {last}"
        spot.fault(text, "nodes")
    return seen


def _subset(folded: str, names: set[str], at: Spot) -> tuple[str, ...]:
    """Check that a node set names nodes of the machine only; return their names."""
    members = at.parsed(unfold, folded) or () if folded else ()
    if other := sorted(set(members) - names):
        at.fault(f"{other[0]} is not a node of this machine")
    return members


def _named_nodes(name: str, folded: str, names: set[str], at: Spot) -> tuple[str, ...]:
    if not _NAME.fullmatch(name):
        at.fault(_NO_NAME)
    if not folded:
        at.fault("has no nodes; write e.g. n[001-128]")
    return _subset(folded, names, at)


def _places(places: Places, spot: Spot) -> None:
    """Check that places name one source of groups, and that groups are not written as well."""
    if bool(places.file) == (places.xnames is not None):
        spot.fault("give file or xnames, one of them", "places")
    if places.by and not places.file:
        spot.fault("is about a file; give file", "places", "by")
    if spot.given("groups"):
        spot.fault("groups are written, too; remove groups or places", "places")


def _groups(machine: Machine, names: set[str], spot: Spot) -> None:
    """Check that groups name nodes of the machine, and each node at most once."""
    if spot.given("places"):
        _places(machine.places, spot)
    group_of: dict[str, str] = {}
    for name, folded in machine.groups.items():
        at = spot.inside("groups", name)
        members = _named_nodes(name, folded, names, at)
        if twice := [node for node in members if node in group_of]:
            at.fault(f"{twice[0]} is in the group {group_of[twice[0]]}, too; give each node one")
        group_of.update(dict.fromkeys(members, name))


# ---- file systems and gauges --------------------------------------------------------------


def _file_system(name: str, system: FileSystem, machine: Machine, at: Spot) -> None:
    if not _NAME.fullmatch(name):
        at.fault(_NO_NAME)
    if not system.path.startswith("/"):
        at.fault(f"{system.path!r} must be an absolute path", "path")
    if has_controls(system.path):
        at.fault(f"{system.path!r} has control characters; name another folder", "path")
    seen: set[str] = set()
    for i, target in enumerate(system.metadata_targets):
        if not _NAME.fullmatch(target.name):
            at.fault(f"{target.name!r}: {_NO_NAME}", "targets", i)
        elif target.name in seen:
            at.fault(f"{target.name} is given twice", "targets", i)
        seen.add(target.name)
        if target.gauge and target.gauge not in machine.gauges:
            there = ", ".join(sorted(machine.gauges)) or "none"
            at.fault(f"no gauge {target.gauge!r}; there are {there}", "targets", i, "gauge")
    levels = system.rehearsal.production if system.rehearsal else []
    for i, level in enumerate(levels):
        spot = at.inside("rehearsal", "production", i)
        if level.target and level.target not in seen:
            text = f"no target {level.target!r}; there are {', '.join(sorted(seen)) or 'none'}"
            spot.fault(text, "target")


def _gauge(name: str, gauge: Gauge, machine: Machine, at: Spot) -> None:
    if not _NAME.fullmatch(name):
        at.fault(_NO_NAME)
    if not gauge.command.strip():
        at.fault("is empty; write bash that prints one number", "command")
    if not gauge.rehearsal:
        return
    known = list(machine.file_systems)
    for folder, system in machine.file_systems.items():
        known += [f"{folder}/{target.name}" for target in system.metadata_targets]
    if gauge.rehearsal not in known:
        text = f"no file system or target {gauge.rehearsal!r}; there are "
        at.fault(text + (", ".join(known) or "none"), "rehearsal")


# ---- rehearsals ---------------------------------------------------------------------------


def _rehearsal(model: MachineModel, names: set[str], at: Spot) -> None:
    for name, folded in model.partitions.items():
        _named_nodes(name, folded, names, at.inside("partitions", name))
    if model.background is not None:
        _background(model.background, len(names), at.inside("background"))


def _background(background: Background, nodes: int, at: Spot) -> None:
    load = background.load.fraction or at.faulty.has(key_text((*at.key, "load")))
    if bool(background.swf) == bool(load):
        at.fault("give swf, a file of jobs, or load, the share of made ones; not both")
    for i, size in enumerate(background.nodes):
        if not 1 <= size <= nodes:
            at.fault(f"{size} is not between 1 and the machine's {nodes} nodes", "nodes", i)
    file = workload_of(background.swf, at.node.place_of(*at.key, "swf").path)
    if background.swf and not os.path.isfile(file):  # noqa: PTH113 - Path's may raise
        at.fault(f"{file} is no file", "swf")


def workload_of(swf: str, file: Path) -> Path:
    """Return the path of a workload; a relative one starts at the folder of the machine file."""
    return (file.parent / swf).absolute()
