"""Find the trials of a plan's components, and the components without one.

found = find(trials, Path("plan.yaml"))
found.trials, found.others, found.remarks
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from seatrial.acceptance.evidence_status import evidence_of, state_of_evidence
from seatrial.acceptance.plan_records import records_in
from seatrial.documents import Faults, read
from seatrial.errors import InvalidFiles, TrialError, UsageError
from seatrial.journal.events import EvidenceGiven
from seatrial.journal.trial_life import TrialLife
from seatrial.plan.model import Component
from seatrial.plan.prepare import PreparedComponent, PreparedPlan, prepare_plan
from seatrial.report.content import Other, titled
from seatrial.trial import plan_trials
from seatrial.trial.folder import TrialFolder, tags
from seatrial.trial.plan_trials import PlanTrial


class Planned(NamedTuple):
    """The trials of a plan, in its order.

    ``others``: components without a trial. ``remarks``: sentences to read first. ``skipped``: what
    cannot run on the machine, as (component, what, why). ``file``: the plan's, if there is one.
    ``records``: the trial of what people recorded about it, if there is one.
    """

    trials: list[TrialFolder]
    others: Sequence[Other] = ()
    remarks: Sequence[str] = ()
    skipped: Sequence[tuple[str, str, str]] = ()
    about: str = ""
    file: Path | None = None
    records: TrialFolder | None = None


def find(trials: Path, path: Path, name: str = "", rehearsed: bool = False) -> Planned:
    """Return the trials of a plan, or with ``rehearsed`` the latest rehearsal of each component.

    ``name``: the name in the tags of the trials, in place of the plan's. Raises UsageError if there
    is none.
    """
    if not path.exists():
        raise UsageError(f"{path}: there is no such plan")
    _require_plan(path)
    try:
        prepared = prepare_plan(path, with_builds=False, with_documents=False)
    except InvalidFiles as error:
        known = (
            _of_plan(trials, plan_trials.plan_name(path))
            if rehearsed
            else plan_trials.made(trials, path, name)
        )
        if not known:
            raise
        said = f"The plan has faults by now, and is told by its trials alone: {error.faults[0]}"
        return Planned([one.folder for one in known], remarks=[said], file=path)
    if rehearsed:
        found = rehearsals(trials, prepared)
    else:
        found = [
            (part, plan_trials.latest(trials, prepared.plan.plan, part, name))
            for part in prepared.all_parts
        ]
    there = [trial.folder for _, trial in found if trial is not None]
    if not there:
        raise UsageError(_nothing(trials, path, rehearsed))
    kept = None if rehearsed else plan_trials.records(trials, prepared.plan.plan, name)
    given = records_in(kept).given
    folder = path.parent
    others = [
        _other(
            part.component, titled(part.component.component, part.phase), "not begun", given, folder
        )
        for part, trial in found
        if trial is None
    ]
    run = {part.component.component for part in prepared.all_parts}
    others += [
        _other(each, each.component, "", given, folder)
        for each in prepared.plan.components
        if each.evidence and each.component not in run
    ]
    skipped = [
        (part.component.component, what, why) for part, _ in found for what, why in part.skipped
    ]
    remarks = [said for part, trial in found if trial and (said := _changed(trial, prepared, part))]
    if not rehearsed:
        gone = plan_trials.left_over(trials, prepared, path, name)
        remarks += [f"{plan_trials.left_over_words(trial)}." for trial in gone]
    return Planned(there, others, remarks, skipped, prepared.plan.about, path, kept)


def _require_plan(path: Path) -> None:
    """Raise UsageError for a file that is no plan at all, before faults of its keys are found."""
    node = read(path, Faults())
    keys = set(node.value) if node is not None and isinstance(node.value, dict) else set()
    if keys and not keys & {"plan", "components"}:
        what = "a test" if keys & {"run", "app", "metrics"} else "something else"
        raise UsageError(
            f"{path}: is {what}, not a plan; a report is on a plan's file, or on trials by their "
            "tags: `seatrial trials` lists them"
        )


def _changed(trial: PlanTrial, prepared: PreparedPlan, part: PreparedComponent) -> str:
    what = plan_trials.changed_judging(trial, part)
    if not trial.record.rehearsed:  # a rehearsal has a policy of its own
        what += plan_trials.changes(trial, prepared, part, builds=False)
    if not what:
        return ""
    return (
        f"{trial.folder.tag}: the plan changed since: {', '.join(what)}. It is judged by what it "
        "was made with."
    )


def _other(
    component: Component,
    title: str,
    state: str,
    given: Mapping[str, list[EvidenceGiven]],
    folder: Path,
) -> Other:
    """Return a component without a trial; without a ``state`` it rests on its documents."""
    found = evidence_of(component.evidence, given, folder)
    return Other(
        title=title,
        state=state or state_of_evidence(found),
        about=component.about,
        evidence=found,
        waivers=component.waivers,
        criteria=component.criteria,
    )


# ---- rehearsals ---------------------------------------------------------------------------


def rehearsals(
    trials: Path, prepared: PreparedPlan
) -> list[tuple[PreparedComponent, PlanTrial | None]]:
    """Return the components and phases of a plan, each with its latest rehearsal of any tag."""
    ordered = sorted(_of_plan(trials, prepared.plan.plan), key=lambda each: each.record.created)
    found = {
        (trial.record.component.component, trial.record.phase): trial
        for trial in ordered
        if trial.record.component is not None
    }
    return [(part, found.get((part.component.component, part.phase))) for part in prepared.parts]


def _of_plan(trials: Path, plan: str) -> list[PlanTrial]:
    """Return all rehearsals of the components of a plan of that name."""
    found = []
    for tag in tags(trials):
        folder = TrialFolder(trials / tag)
        try:
            record = folder.record()
        except TrialError:
            continue
        if record.rehearsed and record.plan == plan and record.component is not None:
            found.append(PlanTrial(folder, record, "complete", record.policy, TrialLife()))
    return found


def _nothing(trials: Path, path: Path, rehearsed: bool) -> str:
    if rehearsed:
        return f"{path}: no rehearsal of it in {trials}; `seatrial rehearse {path}` makes one"
    said = f"{path}: none of its components was started in {trials}"
    if _of_plan(trials, plan_trials.plan_name(path)):
        return f"{said}; --rehearsed reports on its rehearsal"
    if other := plan_trials.elsewhere(trials, path):
        return f"{said}; {other} has trials of it: `seatrial --trials {other} report ...`"
    return f"{said}; `seatrial accept {path}` runs it"
