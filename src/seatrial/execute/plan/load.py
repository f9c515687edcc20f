"""Load a plan: its file, the machine and the suites that it names.

    faults = Faults()
    loaded = load_plan(Path("plan.yaml"), faults)     # None if the file is no plan at all
    faults.raise_any()

Paths of suites and of a machine file are relative to the plan's folder.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from seatrial.errors import UsageError
from seatrial.execute.detect import find_machine
from seatrial.judge.check_tests import check_judging
from seatrial.model.documents import (
    Faults,
    Faulty,
    Location,
    YamlNode,
    decode_partly,
    key_text,
    read,
)
from seatrial.model.machine_file import Site, is_path, machine_file, read_machine
from seatrial.model.plan import Component, Plan
from seatrial.model.suite import Suite, load


class Loaded(NamedTuple):
    """A plan as it is written, with the places of its values. ``site`` is None if the machine is at
    fault. ``suites``: those of each component, as far as they exist; ``partly``: the positions of
    components that name missing suites, whose tests are unknown; ``faulty``: keys that could not be
    decoded."""

    path: Path
    plan: Plan
    node: YamlNode
    site: Site | None
    suites: list[Suite]
    partly: set[int]
    faulty: Faulty

    @property
    def known_suites(self) -> list[Suite]:
        """The suites; none where one is missing, which may have a test of any name."""
        return [] if self.partly else self.suites

    def location(self, faults: Faults) -> Location:
        """Return the whole plan, to be checked."""
        return Location(self.node, faults, self.faulty)


def load_plan(path: Path, faults: Faults) -> Loaded | None:
    """Read a plan, its machine and its suites; add the faults of all their files to ``faults``.
    Return None if the plan's own file is no plan. Raises UsageError if it is missing."""
    if not path.exists():
        raise UsageError(f"{path}: no such file; name a plan, such as plans/acceptance.yaml")
    if path.is_dir():
        raise UsageError(f"{path}: is a folder; name the plan's file, such as {path}/plan.yaml")
    own = Faults()
    node = read(path, own)
    if node is not None and isinstance(node.value, dict) and {"tune", "axes"} <= set(node.value):
        ways = f"`seatrial tune {path}` runs it, `seatrial tune {path} --rehearse` rehearses it"
        raise UsageError(f"{path}: is a tuning, and no plan; {ways}")
    plan = decode_partly(node, Plan, own) if node is not None else None
    faults.add_all(own)
    if node is None or plan is None:
        return None
    loaded = Loaded(path, plan, node, None, [], set(), own.faulty)
    loaded.suites.extend(_suites(loaded, faults))
    return loaded._replace(site=_site(loaded, faults))


def unread(at: Location, *key: str | int) -> bool:
    """Return True if a key, or something inside it, could not be decoded: the value is then a
    default, or only a part of what the file says."""
    return at.faulty.has(key_text((*at.key, *key)))


def _site(loaded: Loaded, faults: Faults) -> Site | None:
    """Return the plan's machine; None if it is at fault."""
    if unread(loaded.location(faults), "machine"):
        return None
    name = loaded.plan.machine
    if is_path(name):
        name = os.path.normpath(loaded.path.parent / name)
        name = name if "/" in name else f"./{name}"
    try:
        file = machine_file(name or None)
        return find_machine(name or None) if file is None else read_machine(file, faults)
    except UsageError as error:
        loaded.location(faults).fault(str(error), "machine")
        return None


def _suites(loaded: Loaded, faults: Faults) -> list[Suite]:
    """Return the suites of each component. A suite that several components name is read once."""
    known: dict[tuple[str, ...], tuple[Suite, bool]] = {}
    suites = []
    for i, component in enumerate(loaded.plan.components):
        at = loaded.location(faults).inside("components", i, "suites")
        if not component.suites and not unread(at):
            at = loaded.location(faults).inside("suites")
        named = tuple(component.suites or loaded.plan.suites)
        if named not in known:
            known[named] = _load(loaded, named, at, faults)
        suite, whole = known[named]
        if unread(at) or not whole:
            loaded.partly.add(i)
        suites.append(suite)
    return suites


def _load(
    loaded: Loaded, named: tuple[str, ...], at: Location, faults: Faults
) -> tuple[Suite, bool]:
    """Return the suites that exist, as one, and True if none is missing."""
    paths = dict(enumerate(suite_paths(loaded.path, named)))
    suite = Suite({}, {}, {}, {}, Faults())
    while paths:
        try:
            suite = load(list(paths.values()))
            break
        except UsageError as error:
            faulty = (i for i, path in paths.items() if str(error).startswith(f"{path}:"))
            missing = next(faulty, next(iter(paths)))
            at.fault(str(error), missing)
            del paths[missing]
    check_judging(suite)
    faults.add_all(suite.of_folders)
    return suite, len(paths) == len(named)


def suite_paths(plan: Path, named: Sequence[str]) -> list[Path]:
    """Return the folders of suites that a plan names."""
    return [Path(os.path.normpath(plan.parent / name)) for name in named]


def component_of(plan: Plan, name: str) -> Component:
    """Return the component of that name. Raises UsageError."""
    for component in plan.components:
        if component.component == name:
            return component
    listed = ", ".join(each.component for each in plan.components)
    raise UsageError(f"{plan.plan} has no component {name!r}; it has {listed}")
