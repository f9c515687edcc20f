"""One run: what each of its events says, where its time went, how its tasks were started.

event_words(event)                 # "exit code 0"
phases(run, events)                # [RunPhase("queued", t0, t1), RunPhase("running", t1, t2), ...]
launched(record, case, job_script) # Launched(kind="mpirun", line="mpirun -n 4 ...")
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from seatrial.escaping import plain_line
from seatrial.execute.launchers import TASK_GPUS, launch_line, launch_written
from seatrial.execute.trial_folder import Record
from seatrial.journal import events
from seatrial.judge.derived import Whole, breakdowns
from seatrial.model.codes import code_of
from seatrial.model.figures import ELAPSED
from seatrial.model.task_placement import launcher_of
from seatrial.model.test import Case
from seatrial.results.store import queries
from seatrial.results.store.tables import CaseRow, EventRow, MetricRow, RunRow, Time
from seatrial.units import SECOND_NS


def event_words(event: EventRow) -> str:
    """Return what an event of a run says, in a few words of one line."""
    kind = events.EVENT_KINDS.get(event.event, events.UnknownEvent)
    return kind.row_words(event.value, event.detail, event.text)


def modules_of(rows: Sequence[EventRow]) -> str:
    """Return the modules that were loaded when the run's script started the latest time, with
    blanks between them."""
    texts = [
        event.text for event in rows if event.event == events.EVENT_NAMES[events.ScriptStarted]
    ]
    return texts[-1].replace(":", " ") if texts else ""


def gpus_of(rows: Sequence[EventRow]) -> list[str]:
    """Return the unique ids of the GPUs that the run was given on its first node, as its script
    started the latest time; [] if none are known."""
    started = [
        event.value for event in rows if event.event == events.EVENT_NAMES[events.ScriptStarted]
    ]
    return started[-1].split() if started and isinstance(started[-1], str) else []


def gpus_by_rank(gpus: Sequence[str], how: "Launched", case: CaseRow) -> list[str]:
    """Return the GPUs of a run's first node in words: ``GPU-0a1b of rank 0`` where it is known
    which rank has which, else as they are."""
    ranks = min(case.tasks or 0, case.tasks_per_node or 0)
    each = len(gpus) // ranks if how.gpus_in_turn and ranks else 0
    if not each or ranks * each != len(gpus):
        return list(gpus)
    return [f"{gpu} of rank {number // each}" for number, gpu in enumerate(gpus)]


def removed_by_keep(rows: Sequence[EventRow]) -> str:
    """Return, after the name of a file that is not there, that ``keep`` removed outputs of the run;
    "" if it did not."""
    removed = any(event.event == events.EVENT_NAMES[events.OutputRemoved] for event in rows)
    return "was removed by `keep`, after its verdict" if removed else ""


def exclusion(rows: Sequence[EventRow]) -> str:
    """Return who agreed that criteria leave a run out, and why: ``Ann, Bob: excluded: F2``; "" for
    a run that counts."""
    said = ""
    for event in rows:
        if event.event == events.EVENT_NAMES[events.RunReviewed]:
            taken_back = event.detail.endswith(queries.WITHDRAWN)
            said = "" if taken_back else event.detail if event.value else said
    return said


class FormerVerdict(Struct, frozen=True):
    """The first verdict of a run that was judged again, its reason, and when (ns), by whom and why
    it was judged again, the latest time."""

    verdict: str
    reason: str
    time: Time
    by_and_why: str


def former_verdict(rows: Sequence[EventRow]) -> FormerVerdict | None:
    """Return the first verdict of a run that was judged again; None for any other."""
    first = [event for event in rows if event.event == events.EVENT_NAMES[events.RunJudged]]
    again = [event for event in rows if event.event == events.EVENT_NAMES[events.RunJudgedAgain]]
    if not first or not again:
        return None
    code = first[0].value
    verdict = code_of(code).name if isinstance(code, int) else str(code)
    return FormerVerdict(verdict, first[0].text, again[-1].time, again[-1].detail)


# ---- where its time went ------------------------------------------------------------------

PhaseName = Literal["prepared", "queued", "starting", "running", "judged"]


class RunPhase(Struct, frozen=True):
    """A part of a run's time, in ns; ``until`` is None while it lasts."""

    name: PhaseName
    since: int
    until: int | None

    def seconds(self, now: int) -> float:
        return max(0, (now if self.until is None else self.until) - self.since) / SECOND_NS


def _starts_of_phases(run: RunRow, rows: Sequence[EventRow]) -> list[tuple[PhaseName, int | None]]:
    """Return when each phase of a run began (ns), in order; None: it never came to it."""
    first: dict[str, int] = {}
    for event in rows:
        first.setdefault(event.event, event.time)

    def of(*kinds: type[events.Event]) -> int | None:
        times = (first.get(events.EVENT_NAMES[kind]) for kind in kinds)
        return next(filter(None, times), None)

    ended = run.script_ended if run.script_started is not None else None
    return [
        ("prepared", run.created),
        ("queued", of(events.JobQueued, events.SubmitEnded)),
        ("starting", of(events.JobStarted)),
        ("running", run.script_started),
        ("judged", ended or of(events.JobEnded, events.CheckStarted)),
    ]


def phases(run: RunRow, rows: Sequence[EventRow]) -> list[RunPhase]:
    """What a run waited for and did, in order: made and submitted, queued at the scheduler, started
    but not yet its script, its script, then its verdict. What it never came to is not there."""
    known = [(name, at) for name, at in _starts_of_phases(run, rows) if at is not None]
    result = []
    latest = run.created
    ends = [*(at for _, at in known[1:]), run.judged]
    for (name, at), following in zip(known, ends, strict=True):
        start = latest = max(latest, at)  # clocks of nodes differ
        result.append(RunPhase(name, start, None if following is None else max(following, start)))
    return result


# ---- how its tasks were started -----------------------------------------------------------


class Launched(Struct, frozen=True):
    """How the tasks of a run were started: the kind of the launcher, and $LAUNCH itself, "" where
    the script starts them; whether ranks have the GPUs of a node in turn."""

    kind: str
    line: str
    gpus_in_turn: bool = False


def only_builds(case: CaseRow) -> bool:
    """Return whether a case has no job: it passes when it builds."""
    return case.nodes == 0


def launched(record: Record | None, case: CaseRow, job_script: str) -> Launched:
    """Return how the tasks of a run were started: by its job script, else by the trial's record.
    Empty if neither is there."""
    known = _case_of(case)
    test = record.tests.get(case.test) if record else None
    if record is None or test is None or known is None or known.only_builds:
        kind, line = "", ""
    else:
        kind = launcher_of(record.machine, test, known.toolchain, known.parameters).kind
        line = launch_line(record.machine, test, known)
    line = launch_written(job_script, line)
    ordered = test is not None and bool(test.run.order or test.run.place)
    return Launched(kind, plain_line(line), f"./{TASK_GPUS}" in line.split() and not ordered)


def _case_of(row: CaseRow) -> Case | None:
    """Return a case as it was asked for; None if the trial's files do not have it."""
    if row.nodes is None or row.tasks is None or row.tasks_per_node is None or row.threads is None:
        return None
    return Case(
        id=row.id,
        test=row.test,
        parameters=row.parameters,
        toolchain=row.toolchain,
        nodes=row.nodes,
        tasks=row.tasks,
        tasks_per_node=row.tasks_per_node,
        threads=row.threads,
        walltime=row.walltime or 0.0,
        node=row.node,
        repeat=row.repeat,
        build=row.build,
    )


# ---- the parts of its figures --------------------------------------------------------------


def breakdowns_of(record: Record | None, metrics: Sequence[MetricRow], run: RunRow) -> list[Whole]:
    """Return the wholes of a run with their parts, by its test in the trial's record."""
    test = record.tests.get(run.test) if record else None
    if test is None or not test.parts:
        return []
    known = {metric.name for metric in metrics}
    elapsed = [] if run.elapsed is None or ELAPSED in known else [run.elapsed]
    timed = [MetricRow(ELAPSED, each, "s", "lower") for each in elapsed]
    return breakdowns(test.parts, [*metrics, *timed])
