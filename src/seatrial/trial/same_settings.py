"""Settings of a tuning that run in the same way: on a full node all spreads give one launch line.

    kept, left_out = merged(cases, test, machine, axes, default)
    left_out        # [(case of spread=pack, "it runs as spread=numa does: ...")]

Only an axis that the test names in keys of ``run`` alone, such as ``spread: spread``, can have such
values: a script that names it, or a file of the test that does, may do something else with each.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from seatrial.decoding import encode, plain
from seatrial.file_model import Scalar
from seatrial.machine.model import Machine
from seatrial.runs.launchers import launch_of
from seatrial.runs.settings_script import variables_of
from seatrial.suite.case_names import bindings_text, show
from seatrial.suite.model import Case, Test
from seatrial.suite.run_spec import RunSpec
from seatrial.suite.tune_file import TOOLCHAIN
from seatrial.verify.reading import Unreadable, read_text

MAX_BYTES = 1 << 20  # of a file of the test that is searched for the name of an axis
SAME = "the same launch, environment and script"
_OWN = ("test.yaml", "tune.yaml")


def merged(
    cases: Sequence[Case],
    test: Test,
    machine: Machine,
    axes: Sequence[str],
    default: Mapping[str, Scalar],
) -> tuple[list[Case], list[tuple[Case, str]]]:
    """Return the cases, of those that run in the same way one: the default, else the first; and
    the others with the reason."""
    idle = [axis for axis in axes if axis != TOOLCHAIN and _is_of_run_alone(axis, test)]
    if not idle:
        return list(cases), []
    groups: dict[bytes, list[Case]] = {}
    for case in cases:
        groups.setdefault(_way(case, test, machine, idle), []).append(case)
    usual = {axis: show(value) for axis, value in default.items()}
    kept, left_out = [], []
    for group in groups.values():
        first = next((each for each in group if _setting(each, axes) == usual), group[0])
        kept.append(first)
        told = bindings_text(_setting(first, axes))
        why = f"it runs as {told} does: {SAME}"
        left_out += [(each, why) for each in group if each is not first]
    there = {id(case) for case in kept}
    return [case for case in cases if id(case) in there], left_out


def _setting(case: Case, axes: Sequence[str]) -> dict[str, str]:
    return {
        axis: show(case.toolchain if axis == TOOLCHAIN else case.parameters[axis]) for axis in axes
    }


def _way(case: Case, test: Test, machine: Machine, idle: Sequence[str]) -> bytes:
    """Return how a case runs; cases for which it is equal run in the same way."""
    launch = launch_of(machine, test, case)
    others = {name: show(value) for name, value in case.parameters.items() if name not in idle}
    like = replace(case, id="", parameters=others, placement=type(case.placement)())
    return msgspec.json.encode(
        [like, launch.line, launch.before, variables_of(machine, test, case)]
    )


def _is_of_run_alone(axis: str, test: Test) -> bool:
    """Return whether a test names an axis in keys of ``run``, and nowhere where it may do anything
    with it. One that it names nowhere is a variable that its programs may read."""
    word = re.compile(rf"\b{re.escape(axis)}\b")
    keys = plain(replace(test.run, script=""))
    if not any(isinstance(value, str) and word.search(value) for value in keys.values()):
        return False
    told = replace(test, run=RunSpec(script=test.run.script), parameters={}, defaults={}, name="")
    if word.search(encode(replace(told, folder="")).decode()):
        return False
    for path in Path(test.folder).rglob("*"):
        if path.is_file() and path.name not in _OWN:
            try:
                if word.search(read_text(path.parent, path.name, MAX_BYTES, "")):
                    return False
            except Unreadable:
                return False
    return True
