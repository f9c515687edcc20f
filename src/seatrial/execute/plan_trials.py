"""The trials of the components of a plan: their states, and whether the plan has changed.

    trial = latest(trials, plan.name, part)        # the one of ``<plan>-<component>[-<phase>]``
    trial.state                                    # open, complete or abandoned

A trial that was abandoned keeps its tag. The next one of its component gets a number: ``<tag>-2``.
"""

import contextlib
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from seatrial import __version__
from seatrial.account import user_name
from seatrial.decide.policy_change import followed
from seatrial.errors import TrialError, UsageError
from seatrial.execute.creation import MAX_LEFT_OUT, create
from seatrial.execute.plan.prepare import PreparedComponent, PreparedPlan
from seatrial.execute.trial_folder import Record, TrialFolder, known_by
from seatrial.execute.trial_paths import tags
from seatrial.files import read_regular
from seatrial.hooks import keys_of
from seatrial.journal.events import PolicyChanged
from seatrial.journal.journal import read
from seatrial.journal.trial import TrialLife, TrialState
from seatrial.judge.log_rules import own_rules
from seatrial.judge.verdict import known_failures_of
from seatrial.lazy import yaml
from seatrial.model.build import digests
from seatrial.model.documents import MAX_FILE_BYTES
from seatrial.model.failures import KnownFailure
from seatrial.model.file_model import decoder, encode, plain
from seatrial.model.machine import Machine
from seatrial.model.nodes import node_names
from seatrial.model.plan import Component
from seatrial.model.policy import Policy
from seatrial.model.test import Case, Test, TrialOptions
from seatrial.units import listed

_NAMED = ("the machine", "the tests")  # whose changed keys are named
_MAX_NAMED = 4
_NUMBERED = r"-\d+"  # the end of the tag of a later trial

RECORDS = Component(component="", kind="checklist", about="What people recorded about the plan")

State = Literal["open", "complete", "abandoned"]


class PlanTrial(Struct, frozen=True):
    """A trial of a component in a phase. ``damaged``: some lines of its journal are. ``policy`` is
    the one that holds now, as people may have changed it; ``life`` is by its journal."""

    folder: TrialFolder
    record: Record
    state: State
    policy: Policy
    life: TrialLife
    damaged: bool = False


def latest(trials: Path, plan: str, part: PreparedComponent, name: str = "") -> PlanTrial | None:
    """Return a component's latest trial in a phase. ``name`` replaces the plan's in its tag."""
    newest = None
    for tag in _tags(part.tag, plan, name):
        folder = TrialFolder(trials / tag)
        if not folder.path.exists():
            return newest
        record = folder.record()
        component = record.component.component if record.component else ""
        about = (record.plan, component, record.phase, record.rehearsed)
        if about == (plan, part.component.component, part.phase, False):  # else its tag was taken
            newest = _plan_trial(folder, record)
    return newest


def made(trials: Path, path: Path, name: str = "") -> list[PlanTrial]:
    """Return the latest trial of each component and phase of a plan's file, oldest first. They are
    found by the records of the trials, so the plan and its suites may have changed or be
    unreadable. ``name`` replaces the plan's in the tags."""
    newest: dict[tuple[str, str], PlanTrial] = {}
    for folder, record in _of_plan(trials, path, name):
        assert record.component is not None
        place = (record.component.component, record.phase)
        other = newest.get(place)
        if other is None or other.record.created <= record.created:
            newest[place] = _plan_trial(folder, record)
    return sorted(newest.values(), key=lambda trial: trial.record.created)


def _of_plan(trials: Path, path: Path, name: str) -> Iterator[tuple[TrialFolder, Record]]:
    """Yield the trials of a plan's file that ran, with their records."""
    plan = plan_name(path)
    stem = name or plan
    for tag in tags(trials):
        if not stem or tag.startswith(f"{stem}-"):
            folder = TrialFolder(trials / tag)
            with contextlib.suppress(TrialError):
                record = folder.record()
                if _is_of_plan(record, plan, path) and _has_tag(record, tag, name):
                    yield folder, record


def _is_of_plan(record: Record, plan: str, path: Path) -> bool:
    if record.rehearsed or record.component is None:
        return False
    return record.plan == plan if plan else record.plan_file == str(path.absolute())


def _has_tag(record: Record, tag: str, name: str) -> bool:
    """Return whether a tag is that of a component in its phase, perhaps with a number."""
    assert record.component is not None
    words = (name or record.plan, record.component.component, record.phase)
    stem = "-".join(filter(None, words))
    return tag == stem or bool(re.fullmatch(_NUMBERED, tag.removeprefix(stem)))


def elsewhere(trials: Path, path: Path, name: str = "") -> Path | None:
    """Return a folder near a plan's file, other than ``trials``, that has trials of the plan; None
    where there is none."""
    near = path.absolute().parent
    for folder in (near / "trials", near.parent / "trials", near):
        if folder.resolve() != trials.resolve() and folder.is_dir() and made(folder, path, name):
            return folder
    return None


def left_over(trials: Path, prepared: PreparedPlan, path: Path, name: str = "") -> list[PlanTrial]:
    """Return the trials of components and phases that the plan has no more, but those that people
    abandoned. ``prepared`` is the whole plan."""
    planned = {(part.component.component, part.phase) for part in prepared.all_parts}
    left = []
    for trial in made(trials, path, name):
        component = trial.record.component
        assert component is not None  # as made found it
        place = (component.component, trial.record.phase)
        if component.component and place not in planned and trial.state != "abandoned":
            left.append(trial)
    return left


def left_over_words(trial: PlanTrial) -> str:
    """Return that the plan has a trial's component no more, with the remedy."""
    component = trial.record.component.component if trial.record.component else ""
    phase = f" in phase {trial.record.phase}" if trial.record.phase else ""
    return (
        f"{trial.folder.tag}: the plan has no component {component}{phase} any more, and what it "
        "found is left out; put it back, and waive there what both sides dropped"
    )


def plan_name(path: Path) -> str:
    """Return the name in a plan's file; "" where the file cannot be read or has none."""
    try:
        written = yaml.safe_load(read_regular(path, MAX_FILE_BYTES))
    except (OSError, yaml.YAMLError, ValueError, RecursionError):
        return ""
    name = written.get("plan") if isinstance(written, dict) else None
    return name if isinstance(name, str) else ""


def begin(
    trials: Path,
    prepared: PreparedPlan,
    part: PreparedComponent,
    name: str = "",
    rebuild: bool = False,
    consent: Sequence[str] = (),
) -> TrialFolder:
    """Create a trial of a component in a phase, under the first free tag. With ``rebuild`` it takes
    no build from other trials; ``consent``: who consented to its harmful tests."""
    tag = next_tag(trials, prepared.plan.plan, part, name)
    record = record_of(prepared, part, tag, time.time_ns(), rebuild=rebuild)
    record = replace(record, asked=replace(record.asked, consent=list(consent)))
    return create(trials, record, part.cases)


def checklist(
    trials: Path, prepared: PreparedPlan, part: PreparedComponent, name: str = ""
) -> PlanTrial:
    """Return the trial of a checklist in a phase, made if there is none, though others make it at
    the same time."""
    while True:
        # the tag first: one that is free after a look might follow the trial of somebody else
        tag = next_tag(trials, prepared.plan.plan, part, name)
        if trial := latest(trials, prepared.plan.plan, part, name):
            return trial
        _create_once(trials, record_of(prepared, part, tag, time.time_ns()), part.cases)


def records(trials: Path, plan: str, name: str = "") -> TrialFolder | None:
    """Return the trial of a plan's records, which people make: it runs nothing. None if nobody has
    recorded anything yet."""
    for tag in _record_tags(plan, name):
        folder = TrialFolder(trials / tag)
        if not folder.path.exists():
            return None
        record = folder.record()
        # no component of a plan is without a name
        nameless = record.component is not None and not record.component.component
        if nameless and record.plan == plan and record.policy.kind == "checklist":
            return folder
    return None


def begin_records(trials: Path, prepared: PreparedPlan, name: str = "") -> TrialFolder:
    """Return the trial of a plan's records, made if there is none, though others make it at the
    same time."""
    plan, machine = prepared.plan.plan, prepared.site.machine
    policy = Policy(kind="checklist")
    part = PreparedComponent("", RECORDS, "", machine, [], {}, [], [], policy)
    while True:
        tag = next(tag for tag in _record_tags(plan, name) if not (trials / tag).exists())
        if folder := records(trials, plan, name):
            return folder
        _create_once(trials, record_of(prepared, part, tag, time.time_ns()), [])


def _create_once(trials: Path, record: Record, cases: Sequence[Case]) -> None:
    """Create a trial, unless somebody else has made one with its tag."""
    try:
        create(trials, record, cases)
    except UsageError:
        if not (trials / record.tag).exists():
            raise


def _record_tags(plan: str, name: str) -> Iterator[str]:
    return _tags(f"{name or plan}-records", "", "")


def state_of(folder: TrialFolder) -> State:
    """Return the state of a trial, by its journal. Raises JournalError and TrialError."""
    return _plan_trial(folder, folder.record()).state


def _plan_trial(folder: TrialFolder, record: Record) -> PlanTrial:
    life, policy, damaged = _read_life(folder, record.policy)
    abandoned = life.state is TrialState.ABANDONED
    state: State = "abandoned" if abandoned else "complete" if life.complete else "open"
    return PlanTrial(folder, record, state, policy, life, damaged)


def policy_by_now(folder: TrialFolder, record: Record) -> Policy:
    """Return the policy of a trial by its journal, as people may have changed it."""
    return _read_life(folder, record.policy)[1]


def _read_life(folder: TrialFolder, policy: Policy) -> tuple[TrialLife, Policy, bool]:
    """Return the life of a trial, its policy by now, and whether its journal is damaged."""
    life, reading = TrialLife(policy.duration), read(folder.journal)
    for event in reading:
        life.apply(event)
        if isinstance(event, PolicyChanged):
            policy = followed(policy, event.parts)
    return life, policy, reading.damaged > 0


def changes(
    trial: PlanTrial, prepared: PreparedPlan, part: PreparedComponent, builds: bool = True
) -> list[str]:
    """Return what has changed in the plan, its machine and its tests since the trial was created,
    or since people last changed its policy. Without ``builds`` they are not compared, as the plan
    may have been prepared without them."""
    policy = policy_before(trial, part)
    changed = ["the policy"] if _as_kept(policy) != _as_kept(part.policy) else []
    if known_failures_to_take(trial, prepared, part) is not None:
        changed.append("the known failures")
    return changed + changed_inputs(trial, prepared, part, builds)


def known_failures_to_take(
    trial: PlanTrial, prepared: PreparedPlan, part: PreparedComponent
) -> list[KnownFailure] | None:
    """Return the known failures that the plan has now; None if they are those of the trial."""
    of_plan, of_machine = prepared.plan.known_failures, part.machine.known_failures
    wanted = known_failures_of(part.tests, of_plan, of_machine)
    return None if wanted == known_by(trial.record, trial.policy) else wanted


def changed_inputs(
    trial: PlanTrial, prepared: PreparedPlan, part: PreparedComponent, builds: bool = True
) -> list[str]:
    """Return what has changed as ``changes`` does, the policy aside: `accept change` cannot change
    that of a trial under way."""
    record = trial.record
    pairs: list[tuple[str, Any, Any]] = [
        ("the machine", _deciding(record.machine), _deciding(part.machine)),
        ("the tests", _without_known(record.tests), _without_known(part.tests)),
        ("alerts", record.alerts, prepared.plan.alerts),
    ]
    changed = [
        f"{what}{_where(before, now) if what in _NAMED else ''}"
        for what, before, now in ((what, *map(_as_kept, both)) for what, *both in pairs)
        if before != now
    ]
    cases, present = trial.folder.cases(), part.cases
    if not builds:
        cases, present = ([replace(case, build="") for case in some] for some in (cases, present))
    if cases != present:
        changed.append("the cases")
    return changed


def _deciding(machine: Machine) -> Machine:
    """Return a machine without the keys that change nothing in a trial, and without its known
    failures: `known_failures_to_take` has those."""
    idle = {key.name: key.default for key in keys_of("machine") if not key.of_runs}
    return replace(machine, facts={}, known_failures=[], **idle)


def _without_known(tests: Mapping[str, Test]) -> dict[str, Test]:
    return {name: replace(test, known_failures=[]) for name, test in tests.items()}


def policy_before(trial: PlanTrial, part: PreparedComponent) -> Policy:
    """Return the policy of a trial by now, to compare with the plan's, which has its known failures
    aside."""
    return replace(_without_old_caps(trial.policy, part.policy), known_failures=None)


def _without_old_caps(before: Policy, now: Policy) -> Policy:
    """Return the policy of a trial without the caps of tests with copies alone, where the plan
    gives none: until 0.1 copies were such a cap."""
    if len(before.entries) != len(now.entries):
        return before
    entries = [
        replace(old, most=0) if old.most == old.copies and not new.most else old
        for old, new in zip(before.entries, now.entries, strict=True)
    ]
    return replace(before, entries=entries)


def changed_judging(trial: PlanTrial, part: PreparedComponent) -> list[str]:
    """Return what has changed in the criteria, waivers, evidence, items and other keys of a
    component since its trial was created."""
    before, now = trial.record.component, part.component
    if before is None:
        return []
    kept = _as_kept(now)
    pairs: list[tuple[str, Any, Any]] = [
        ("the criteria", before.criteria, kept.criteria),
        ("the waivers", before.waivers, kept.waivers),
        ("the evidence", before.evidence, kept.evidence),
        ("the items", before.items, kept.items),
        ("keep", before.keep, kept.keep),
        ("alongside", before.alongside, kept.alongside),
    ]
    return [what for what, was, become in pairs if was != become]


def _where(before: Any, now: Any) -> str:
    """Return the keys that changed, in brackets: ``(jobs, toolchains.gcc)``."""
    was, become = plain(before), plain(now)
    keys = []
    for key in sorted(was.keys() | become.keys()):
        one, other = was.get(key), become.get(key)
        if one == other:
            continue
        inner: list[str] = []
        if isinstance(one, dict) and isinstance(other, dict):
            names = sorted(one.keys() | other.keys())
            inner = [f"{key}.{name}" for name in names if one.get(name) != other.get(name)]
        keys += inner or [key]
    return f" ({listed(keys, _MAX_NAMED)})"


def _as_kept(value: Any) -> Any:
    """Return a value as it is read from ``trial.json``: numbers may come back as others of equal
    value, and of what equals a default it cannot be told whether it was written."""
    if isinstance(value, dict):
        return {key: _as_kept(each) for key, each in value.items()}
    return decoder(type(value)).decode(encode(value))


def next_tag(trials: Path, plan: str, part: PreparedComponent, name: str = "") -> str:
    """Return the tag that a new trial of a component in a phase would get."""
    return next(tag for tag in _tags(part.tag, plan, name) if not (trials / tag).exists())


def _tags(tag: str, plan: str, name: str) -> Iterator[str]:
    stem = f"{name}{tag.removeprefix(plan)}" if name else tag
    yield stem
    yield from (f"{stem}-{number}" for number in count(2))


# ---- records of trials ---------------------------------------------------------------------------


def record_of(
    plan: PreparedPlan, part: PreparedComponent, tag: str, created: int, rebuild: bool = False
) -> Record:
    """Return the record of a component in a phase; ``created`` in ns. With ``rebuild`` it takes no
    build from other trials."""
    record = record_without_inputs(plan, part, tag, created, rebuild)
    return replace(record, inputs=digests(part.tests.values()))


def record_without_inputs(
    plan: PreparedPlan, part: PreparedComponent, tag: str, created: int, rebuild: bool = False
) -> Record:
    """Return a record that does not say which files its tests have."""
    return Record(
        tag=tag,
        created=created,
        version=__version__,
        user=user_name(),
        host=os.uname().nodename,
        asked=TrialOptions(suites=part.suites, rebuild=rebuild),
        machine=part.machine,
        references=str(plan.site.references.absolute()),
        expected=plan.expected,
        inputs={},
        tests=part.tests,
        policy=part.policy,
        plan=plan.plan.plan,
        plan_file=os.fspath(plan.path),
        plan_text=plan.path.read_text(errors="replace"),  # plain: the user's own plan
        component=part.component,
        phase=part.phase,
        alerts=plan.plan.alerts,
        known_failures=known_failures_of(
            part.tests, plan.plan.known_failures, part.machine.known_failures
        ),
        left_out=part.skipped[:MAX_LEFT_OUT],
        rules=own_rules(part.tests.values()),
        machine_nodes=len(node_names(plan.site.machine)),
    )
