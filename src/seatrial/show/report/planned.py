"""Find the trials of a plan's components, and the components without one.

found = find(trials, Path("plan.yaml"))
found.trials, found.others, found.remarks
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import InvalidFiles, TrialError, UsageError
from seatrial.execute import plan_trials
from seatrial.execute.plan.prepare import PreparedComponent, PreparedPlan, prepare_plan
from seatrial.execute.plan_trials import PlanTrial
from seatrial.execute.trial_folder import TrialFolder
from seatrial.execute.trial_paths import tags
from seatrial.journal.events import EvidenceGiven
from seatrial.journal.trial import TrialLife
from seatrial.judge import references as refs
from seatrial.model.documents import Faults, read
from seatrial.model.plan import Component, Criterion
from seatrial.results.compare import ComparisonRow, compare_sides, origins_of
from seatrial.results.criteria.speed import BETTER_BY
from seatrial.results.criteria.view import NodeCases, Result, TrialView
from seatrial.results.records import evidence_of, records_in, state_of_evidence
from seatrial.results.selection import Side, SideSelection, gather
from seatrial.results.status import judge
from seatrial.results.store.schema import Store
from seatrial.show.draw.plots import Interval, forest
from seatrial.show.draw.svg import Axis
from seatrial.show.page import Cell, Table
from seatrial.show.report.content import Other, ReportFigure, bounded, columns_of, titled
from seatrial.units import show_unit

TrialOfPart = tuple[PreparedComponent, PlanTrial | None]


class Planned(Struct, frozen=True):
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
        return _by_trials_alone(trials, path, name, rehearsed, error)
    plan = prepared.plan
    latest = rehearsals(trials, prepared) if rehearsed else _latest(trials, prepared, name)
    made = [(part, trial) for part, trial in latest if trial is not None]
    if not made:
        raise UsageError(_nothing(trials, path, rehearsed))
    remarks = [_changed(trial, prepared, part) for part, trial in made]
    kept = None
    if not rehearsed:
        kept = plan_trials.records(trials, plan.plan, name)
        gone = plan_trials.left_over(trials, prepared, path, name)
        remarks += [f"{plan_trials.left_over_words(trial)}." for trial in gone]
    return Planned(
        [trial.folder for _, trial in made],
        _others(prepared, [part for part, trial in latest if trial is None], kept, path.parent),
        [*filter(None, remarks)],
        [(part.component.component, *each) for part, _ in latest for each in part.skipped],
        plan.about,
        path,
        kept,
    )


def _by_trials_alone(
    trials: Path, path: Path, name: str, rehearsed: bool, error: InvalidFiles
) -> Planned:
    """Return the trials of a plan whose file has faults by now. Raises the error if it has none."""
    if rehearsed:
        known = _of_plan(trials, plan_trials.plan_name(path))
    else:
        known = plan_trials.made(trials, path, name)
    if not known:
        raise error
    remark = f"The plan has faults by now, and is told by its trials alone: {error.faults[0]}"
    return Planned([one.folder for one in known], remarks=[remark], file=path)


def _others(
    prepared: PreparedPlan,
    missing: Sequence[PreparedComponent],
    kept: TrialFolder | None,
    folder: Path,
) -> list[Other]:
    """Return the components without a trial: those that are not begun, and those that rest on
    documents alone."""
    given = records_in(kept).given
    others = [
        _other(
            part.component, titled(part.component.component, part.phase), "not begun", given, folder
        )
        for part in missing
    ]
    run = {part.component.component for part in prepared.all_parts}
    for each in prepared.plan.components:
        if each.evidence and each.component not in run:
            others.append(_other(each, each.component, "", given, folder))
    return others


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
    evidence = evidence_of(component.evidence, given, folder)
    return Other(
        title=title,
        state=state or state_of_evidence(evidence),
        about=component.about,
        evidence=evidence,
        waivers=component.waivers,
        criteria=component.criteria,
    )


# ---- rehearsals ---------------------------------------------------------------------------


def _latest(trials: Path, prepared: PreparedPlan, name: str) -> list[TrialOfPart]:
    """Return the components and phases of a plan, each with its latest trial."""
    return [
        (part, plan_trials.latest(trials, prepared.plan.plan, part, name))
        for part in prepared.all_parts
    ]


def rehearsals(trials: Path, prepared: PreparedPlan) -> list[TrialOfPart]:
    """Return the components and phases of a plan, each with its latest rehearsal of any tag."""
    ordered = sorted(_of_plan(trials, prepared.plan.plan), key=lambda each: each.record.created)
    by_part = {
        (trial.record.component.component, trial.record.phase): trial
        for trial in ordered
        if trial.record.component is not None
    }
    return [(part, by_part.get((part.component.component, part.phase))) for part in prepared.parts]


def _of_plan(trials: Path, plan: str) -> list[PlanTrial]:
    """Return all rehearsals of the components of a plan of that name."""
    rehearsed = []
    for tag in tags(trials):
        folder = TrialFolder(trials / tag)
        try:
            record = folder.record()
        except TrialError:
            continue
        if record.rehearsed and record.plan == plan and record.component is not None:
            rehearsed.append(PlanTrial(folder, record, "complete", record.policy, TrialLife()))
    return rehearsed


def _nothing(trials: Path, path: Path, rehearsed: bool) -> str:
    if rehearsed:
        return f"{path}: no rehearsal of it in {trials}; `seatrial rehearse {path}` makes one"
    fault = f"{path}: none of its components was started in {trials}"
    if _of_plan(trials, plan_trials.plan_name(path)):
        return f"{fault}; --rehearsed reports on its rehearsal"
    if other := plan_trials.elsewhere(trials, path):
        return f"{fault}; {other} has trials of it: `seatrial --trials {other} report ...`"
    return f"{fault}; `seatrial accept {path}` runs it"


# ---- expected ------------------------------------------------------------------------------------
#
# Compare figures of merit with the machine's references.


MAX_EXPECTED_ROWS: Final = 500


def expected(view: TrialView) -> Table:
    """Return the median of each figure that has a reference, case by case.

    The medians are over the runs with a right answer, as the criterion figure_of_merit judges them.
    """
    columns = columns_of(
        "case",
        "metric",
        "unit",
        ("n", "count"),
        ("median", "number"),
        ("reference", "number"),
        "allowed",
        ("better by", "per cent"),
        "state",
        "why",
    )
    about = (
        "Medians over the runs with a right answer, against the references of the machine that the "
        "trial was made with, also where runs were judged again by others. Better by: positive is "
        "better, also where lower is better."
    )
    return bounded(
        "Figures of merit against their references", columns, _rows(view), about, MAX_EXPECTED_ROWS
    )


def _rows(view: TrialView) -> Iterator[list[Cell]]:
    tests = {case.test for case in view.history.cases}
    for test, metric in view.references.by_metric:
        for stage in view.stages or (None,) if test in tests else ():
            criterion = Criterion(
                criterion="figure_of_merit", metric=metric, tests=[test], stage=stage
            )
            results = {one.subject: one for one in judge(criterion, view)}
            for group in view.groups(criterion):
                one = results.get(group.name)
                if one is not None and (row := _row(view, metric, group, one)) is not None:
                    yield row


def _row(view: TrialView, metric: str, group: NodeCases, one: Result) -> list[Cell] | None:
    """Return the row of a case, None if it has no reference."""
    case = group.case
    reason = "" if one.state == "met" else one.reason
    try:
        reference = refs.matching(
            view.references, case.test, metric, case.parameters, case.toolchain, group.stage
        )
    except refs.AmbiguousReference:
        return [one.subject, metric, "", one.n, None, None, "", None, one.state, reason]
    if reference is None:
        return None
    measured = group.figures(metric)
    alike = refs.in_unit(reference, measured[0].unit) if measured else None
    alike = alike or reference  # of another dimension: then there is no median, but a reason
    unit = show_unit(alike.unit, "{}")
    shown: list[Cell] = [one.subject, metric, unit, one.n, one.value, alike.value, one.bound]
    off = one.numbers.get(BETTER_BY)
    return [*shown, off if isinstance(off, int | float) else None, one.state, reason]


# ---- given ---------------------------------------------------------------------------------------
#
# The figure of what was measured beside figures that somebody else gave, such as a vendor.


MAX_GIVEN_ROWS: Final = 40
_COLUMNS = columns_of(
    "case",
    "metric",
    "unit",
    ("given", "number"),
    ("n given", "count"),
    ("measured", "number"),
    ("n measured", "count"),
    ("better by", "per cent"),
    ("95 % from", "per cent"),
    ("to", "per cent"),
)


def given_side(store: Store, tag: str) -> Side:
    """Return figures that somebody else gave, as a side. Raises UsageError if the trial measured
    its own."""
    side = gather(store, SideSelection(tag, tag, {}), given=True)
    if not side.given:
        raise UsageError(f"--given {tag}: its figures were measured; name imported ones")
    return side


def beside_given(store: Store, folder: TrialFolder, given: Side) -> Iterator[ReportFigure]:
    """Yield the figure of a trial beside given figures of each system, if a case is in both; of
    runs alone where the trial has some."""
    systems = dict.fromkeys(one.machine for one in given.cases)
    for system in systems:
        cases = [one for one in given.cases if one.machine == system]
        text = f"{given.text} of {system}" if len(systems) > 1 else given.text
        yield from _beside_system(store, folder, replace(given, text=text, cases=cases))


def _beside_system(store: Store, folder: TrialFolder, given: Side) -> Iterator[ReportFigure]:
    shown = _beside_given(store, folder, given)
    if not shown:
        return
    drawing = forest(
        [_interval(row, row.better_by or 0.0) for row in shown[:MAX_GIVEN_ROWS]],
        title=f"Measured, beside the figures of {given.text}",
        about="by how many per cent what was measured is better",
        axis=Axis("better by", "%"),
        centre=0.0,
        ends=("worse than given", "better"),
        bars=True,
    )
    origins = origins_of(given)
    about = (
        f"The figures of {given.text} were given, not measured here"
        f"{f' (of {origins})' if origins else ''}. Positive: what was measured "
        "is better. The intervals of 95 % are of what was measured alone. No criterion rests on "
        "them."
    )
    data = bounded(f"Beside the figures of {given.text}", _COLUMNS, map(_cells, shown))
    yield ReportFigure(f"Beside given figures: {given.text}", about, data, str(drawing))


def _beside_given(store: Store, folder: TrialFolder, given: Side) -> list[ComparisonRow]:
    """Return the cases of a trial for which there are given figures."""
    try:
        measured = gather(store, SideSelection(folder.tag, str(folder.path), {}))
    except UsageError:  # a checklist, or a trial in which nothing has run
        return []
    stages = measured.all_of("stage")
    if "alone" in stages and len(given.all_of("stage")) == 1:
        cases = [case for case in measured.cases if case.stage == "alone"]
        measured = Side(measured.text, measured.trials, cases, {"stage": "alone"})
    try:
        rows = compare_sides(given, measured, elapsed=True).rows
    except UsageError:  # no case is on both sides
        return []
    return [row for row in rows if row.better_by is not None and row.verdict == "given"]


def _interval(row: ComparisonRow, value: float) -> Interval:
    name, label = f"{row.case} {row.metric}", f"{value + 0.0:+.2f} %, given"
    return Interval(name, value, row.better_from, row.better_to, label, "muted", 4)


def _cells(row: ComparisonRow) -> list[Cell]:
    first, second = row.first, row.second
    ends = row.better_by, row.better_from, row.better_to
    return [row.case, row.metric, row.unit, first.median, first.n, second.median, second.n, *ends]
