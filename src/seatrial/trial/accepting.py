"""The trials of a plan's components: which there are, how they stand, whether the plan changed.

    trial = latest(trials, plan.name, part)        # the one of ``<plan>-<component>[-<phase>]``
    trial.state                                    # open, complete or abandoned

One that was given up keeps its tag; the next one of its component is numbered: ``<tag>-2``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from seatrial.journal.codes import Name
from seatrial.journal.journal import read
from seatrial.plan.prepare import PreparedComponent, PreparedPlan
from seatrial.trial.folder import Record, TrialFolder, create
from seatrial.trial.planned import record_of

State = Literal["open", "complete", "abandoned"]

_STATES: dict[str, State] = {
    Name.TRIAL_START: "open",
    Name.TRIAL_RESUME: "open",
    Name.TRIAL_EXTEND: "open",
    Name.TRIAL_END: "complete",
    Name.TRIAL_ABANDON: "abandoned",
}


class PlanTrial(NamedTuple):
    """A trial of a component in a phase."""

    folder: TrialFolder
    record: Record
    state: State


def latest(trials: Path, plan: str, part: PreparedComponent, name: str = "") -> PlanTrial | None:
    """The latest trial of a component in a phase. ``name`` stands for the plan's in its tag."""
    found = None
    for tag in _tags(part.tag, plan, name):
        folder = TrialFolder(trials / tag)
        if not folder.path.exists():
            return found
        record = folder.record()
        if _is_of(record, plan, part):
            found = PlanTrial(folder, record, state_of(folder))
    return found


def begin(
    trials: Path, prepared: PreparedPlan, part: PreparedComponent, name: str = ""
) -> TrialFolder:
    """Make a trial of a component in a phase, under the first tag that is free."""
    tags = _tags(part.tag, prepared.plan.plan, name)
    tag = next(tag for tag in tags if not (trials / tag).exists())
    return create(trials, record_of(prepared, part, tag, time.time_ns()), part.cases)


def state_of(folder: TrialFolder) -> State:
    """Where a trial stands by its journal. Raises JournalError."""
    state: State = "open"
    for event in read(folder.journal):
        state = "abandoned" if state == "abandoned" else _STATES.get(event.event, state)
    return state


def changes(trial: PlanTrial, prepared: PreparedPlan, part: PreparedComponent) -> list[str]:
    """What of the plan, its machine and its tests is not as it was when the trial was made, as far
    as the trial goes by it: it keeps what it was made with."""
    record = trial.record
    pairs: list[tuple[str, Any, Any]] = [
        ("the policy", record.policy, part.policy),
        ("the machine", record.machine, part.machine),
        ("the tests", record.tests, part.tests),
        ("alerts", record.alerts, prepared.plan.alerts),
    ]
    found = [what for what, before, now in pairs if before != _as_kept(before, now)]
    if trial.folder.cases() != part.cases:
        found.append("the cases")
    return found


def _as_kept(before: Any, now: Any) -> Any:
    """A value as it comes back from ``trial.json``."""
    if isinstance(now, dict):
        return {key: _as_kept(before, value) for key, value in now.items()}
    return now if now is None else msgspec.json.decode(msgspec.json.encode(now), type=type(now))


def _is_of(record: Record, plan: str, part: PreparedComponent) -> bool:
    """Whether a trial is of that component; another one may have taken the tag."""
    component = record.component.component if record.component else ""
    about = (record.plan, component, record.phase, record.rehearsed)
    return about == (plan, part.component.component, part.phase, False)


def _tags(tag: str, plan: str, name: str) -> Iterator[str]:
    stem = f"{name}{tag.removeprefix(plan)}" if name else tag
    yield stem
    number = 2
    while True:
        yield f"{stem}-{number}"
        number += 1
