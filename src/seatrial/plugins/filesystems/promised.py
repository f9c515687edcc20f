"""Which figure of which file system is promised of a metric.

promises(machine, test, "/scratch/trials/t")    # {"write": Promise("scratch", "write", 50, ...)}

A metric has the promise of its name, of the file system on which the test works. A test says it
otherwise by ``advertised: {total: write, hours: none, copy: home/read}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from seatrial.errors import suggest
from seatrial.hooks import value_of
from seatrial.judge.metrics import figure_names
from seatrial.judge.promises import Promise, Promises
from seatrial.model.documents import Location
from seatrial.model.machine import FileSystem, Machine
from seatrial.model.test import Test
from seatrial.plugins.filesystems import Advertised

NONE = "none"
NOT_KNOWN = "it is not known on which file system it works"


def promises(machine: Machine, test: Test, folder: str) -> Promises:
    """Return what was promised of the metrics of a test that works in a folder."""
    here = file_system_at(machine, folder)
    found = {name: _promise(here, name, figure) for name, figure in _figures(machine, here).items()}
    asked: Mapping[str, str] = value_of(test, "advertised", dict)
    for metric, wanted in asked.items():
        system, _, name = wanted.rpartition("/")
        if wanted == NONE:
            found.pop(metric, None)
        elif any(_figures(machine, each) for each in machine.file_systems):
            found[metric] = _asked(machine, system or here, name)
    return found


def file_system_at(machine: Machine, folder: str) -> str:
    """Return the name of the file system that a folder is on, by the paths in the machine's file;
    "" if it is on none of them."""
    path = PurePosixPath(folder)
    holding = [
        (len(PurePosixPath(each.path).parts), name)
        for name, each in machine.file_systems.items()
        if folder and path.is_relative_to(each.path)
    ]
    return max(holding, default=(0, ""))[1]


def _figures(machine: Machine, name: str) -> Mapping[str, Advertised]:
    system = machine.file_systems.get(name)
    return {} if system is None else advertised_of(system)


def advertised_of(system: FileSystem) -> Mapping[str, Advertised]:
    """Return the advertised figures of a file system, by name."""
    figures: Mapping[str, Advertised] = value_of(system, "advertised", dict)
    return figures


def _promise(system: str, name: str, figure: Advertised) -> Promise:
    return Promise(system, name, figure.value, figure.unit)


def _asked(machine: Machine, system: str, name: str) -> Promise:
    """Return the figure that a test asks for, or why there is none."""
    figures = _figures(machine, system)
    if name in figures:
        return _promise(system, name, figures[name])
    if not system:
        return Promise(machine.machine, name, reason=NOT_KNOWN)
    if system not in machine.file_systems:
        known = ", ".join(machine.file_systems)
        reason = f"{machine.machine} has no file system of that name; there are {known}"
        return Promise(system, name, reason=reason)
    known = ", ".join(figures) or "none"
    return Promise(system, name, reason=f"its advertised figures are {known}")


def check_test(test: Test, at: Location) -> None:
    """Add the faults of a test's ``advertised`` that the types do not show."""
    known = figure_names([test])
    asked: Mapping[str, str] = value_of(test, "advertised", dict)
    for metric, wanted in asked.items():
        system, slash, name = wanted.rpartition("/")
        if not name.strip() or not wanted.isprintable() or (slash and not system.strip()):
            at.fault(f"{wanted!r} is no figure; write e.g. write, scratch/write or none", metric)
        if known is not None and metric not in known:
            remedy = suggest(metric, known) or f"there are {', '.join(sorted(known)) or 'none'}"
            at.fault(f"the test has no metric {metric}; {remedy}", metric)
