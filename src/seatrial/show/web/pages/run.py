"""Run: one run: what was requested and what ran, its time, metrics, output and siblings."""

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.errors import TrialError, UsageError
from seatrial.escaping import plain, plain_line
from seatrial.execute.trial_folder import Record, TrialFolder
from seatrial.judge.promises import NOTHING, Promises, beside
from seatrial.judge.references import References
from seatrial.model.codes import code_of
from seatrial.model.node_set import unfold_or_empty
from seatrial.model.run_settings import described, effective
from seatrial.model.test import JobOptions, Test
from seatrial.results import one_run
from seatrial.results.promises import promises_in
from seatrial.results.references import expected, with_elapsed
from seatrial.results.store import queries, run_lists
from seatrial.results.store.run_lists import Siblings, earlier, siblings
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import (
    STATES,
    CaseRow,
    EventRow,
    MetricRow,
    RunRow,
    TrialRow,
    outcome_of,
)
from seatrial.results.store.upserts import gaps
from seatrial.show.breakdowns import parts_page as parts_page
from seatrial.show.web.caches import in_time
from seatrial.show.web.filters import MAX_GAPS
from seatrial.show.web.output import (
    BUILD_LOG,
    Output,
    RunMetric,
    head,
    output_of,
    placement_of,
    search_of,
)
from seatrial.show.web.page import PageQuery, added_to
from seatrial.show.web.server_state import ServerState
from seatrial.units import SECOND_NS

MAX_SCRIPT = 128 << 10
MAX_EVENTS = 2000
MAX_METRICS = 200
MAX_NODES = 256
MAX_SHOWN = 40  # siblings in the table


_STATES = tuple(STATES)
OUTPUTS = ("stdout", "stderr")
_SLOW = "is not shown: its file system was too slow to answer"


def data(state: ServerState, query: PageQuery) -> dict[str, Any]:
    """Return a run. Times are in ns; what is not known is ""."""
    search, whole = search_of(query), query.flag("whole")
    store = state.store()
    with store.reading():
        run = _run(store, query)
        trial = queries.trial_of(store, run)
        case = queries.case_of(store, run)
        events = queries.events_of(store, run)
        metrics = queries.metrics_of(store, run)
        build = run_lists.build_of(store, trial.row, case.build)
        beside = siblings(store, run)
        past = earlier(store, beside.runs, run)
        damage = gaps(store, trial)[:MAX_GAPS] if trial.damaged else []
    record = state.records.record(trial)
    slow: Files = [Output(name=name, absent=_SLOW) for name in OUTPUTS], []
    has_log = build is not None and not run.path and not run.rehearsed
    of_build = f"{trial.path}/builds/{case.build}" if has_log else ""
    outputs, job = in_time(lambda: _files(run, search, whole, of_build), slow)
    if removal := one_run.removed_by_keep(events):
        outputs = [replace(one, absent=removal) if one.absent else one for one in outputs]
    how = one_run.launched(record, case, job[0]["text"] if job else "")
    same, known = _environments(run, beside.runs)
    test, nodes = _test_of(record, run), unfold_or_empty(run.nodes)
    code = code_of(run.code)
    references = state.records.references(store, trial)
    promises = in_time(lambda: promises_in(trial.path, case.test, case.id), NOTHING)
    return {
        "run": run,
        "verdict": code.name,
        "meaning": code.meaning,
        "reason": plain(run.why),
        "exclusion": plain_line(one_run.exclusion(events)),
        "former": _plain(one_run.former_verdict(events)),
        "state": _STATES[outcome_of(run.code, run.again)],
        "trial": trial,
        "case": case,
        "build": build,
        "launcher": how.kind,
        "launch": how.line,  # $LAUNCH
        # what was asked of the scheduler besides size and time
        "asked": in_time(lambda: _asked(record, trial, run), ""),
        "modules": one_run.modules_of(events),
        "same_environment": same,
        "known_environments": known,
        # Open phases last until now; in virtual time until the last event.
        "now": (trial.last or run.created) if run.rehearsed else time.time_ns(),
        "phases": one_run.phases(run, events),
        "events": [_event(event, run) for event in events[:MAX_EVENTS]],
        "events_left_out": max(0, len(events) - MAX_EVENTS),
        "metrics": _metrics(metrics[:MAX_METRICS], case, past, run, references, promises),
        "breakdowns": one_run.breakdowns_of(record, metrics, run),
        "metrics_left_out": max(0, len(metrics) - MAX_METRICS),
        "nodes": {"text": run.nodes, "names": list(nodes[:MAX_NODES]), "number": len(nodes)},
        # unique ids of those on its first node
        "gpus": [plain(gpu) for gpu in one_run.gpus_by_rank(one_run.gpus_of(events), how, case)],
        "placement": in_time(lambda: placement_of(run, test), None),
        "added": added_to("run", state, run, record),
        "scripts": [*_scripts_of_test(test), *job],
        "outputs": outputs,
        "siblings": _nearest(beside, run),
        "gaps": damage,
        "find": query.text("find"),
    }


def _event(event: EventRow, run: RunRow) -> dict[str, Any]:
    """Return an event with the seconds since the run's creation."""
    after = (event.time - run.created) / SECOND_NS
    text = plain(one_run.event_words(event))
    return {"time": event.time, "after": after, "event": event.event, "text": text}


def _plain(former: one_run.FormerVerdict | None) -> one_run.FormerVerdict | None:
    """Return a former verdict with texts that are safe to show."""
    if former is None:
        return None
    reason, by_and_why = plain(former.reason), plain(former.by_and_why)
    return replace(former, reason=reason, by_and_why=by_and_why)


def _run(store: Store, query: PageQuery) -> RunRow:
    """Return the run of this id, or of a unique beginning of it."""
    tag, run_id = query.path["trial"], query.path["run_id"]
    if not tag.strip() or not run_id.strip():
        raise UsageError("a run's address is /runs/TRIAL/RUN")
    return queries.run(store, f"{tag}/{run_id}")


# ---- what ran -----------------------------------------------------------------------------


def _asked(record: Record | None, trial: TrialRow, run: RunRow) -> str:
    """Return what was asked of the scheduler for a run; "" where nothing was, or it is not
    known."""
    if record is None:
        return ""
    try:
        case = TrialFolder(Path(trial.path)).case(run.case)
    except TrialError:
        return ""
    options = case.job if case is not None else JobOptions()
    batch = record.machine.jobs_run_elsewhere
    return described(effective(record.machine.batch, options) if batch else options)


def _environments(run: RunRow, others: Sequence[RunRow]) -> tuple[int, int]:
    """Return how many other runs of the case had the same environment, of how many known ones."""
    if not run.environment:
        return 0, 0
    known = [one.environment for one in others if one.environment and one.row != run.row]
    return known.count(run.environment), len(known)


# ---- figures ------------------------------------------------------------------------------


def _metrics(
    metrics: Sequence[MetricRow],
    case: CaseRow,
    past: dict[tuple[str, str], list[tuple[RunRow, float]]],
    run: RunRow,
    references: References,
    promises: Promises,
) -> list[RunMetric]:
    return [
        RunMetric(
            name=one.name,
            value=one.value,
            unit=one.unit,
            better=one.better,
            expected=expected(one, case, references, run.stage),
            past=[
                {
                    "created": before.created,
                    "trial": before.trial,
                    "run_id": before.run_id,
                    "value": value,
                }
                for before, value in past.get((one.name, one.unit), ())
                if before.row != run.row
            ],
            promised=beside(promises, one.name, one.value, one.unit),
        )
        for one in with_elapsed(metrics, run, references)
    ]


def _nearest(beside: Siblings, run: RunRow) -> Siblings:
    """Return the siblings nearest to the run, for a table."""
    at = next((i for i, one in enumerate(beside.runs) if one.row == run.row), 0)
    start = max(0, min(at - MAX_SHOWN // 2, len(beside.runs) - MAX_SHOWN))
    return replace(beside, runs=beside.runs[start : start + MAX_SHOWN])


# ---- files --------------------------------------------------------------------------------


Script = dict[str, str]  # its title, its text, and what is left out, or why it is absent
Files = tuple[list[Output], list[Script]]


def _files(run: RunRow, search: re.Pattern[str] | None, whole: bool, of_build: str) -> Files:
    """Return the outputs of a run and its job script; of one without a job the log of its build,
    which is in ``of_build``."""
    if of_build:
        built = replace(run, path=of_build)
        return [output_of(built, BUILD_LOG, search, whole)], []
    outputs = [output_of(run, name, search, whole) for name in OUTPUTS]
    job = head(run, "job.sh", MAX_SCRIPT)
    if isinstance(job, str):
        script = {"title": "job.sh", "text": "", "note": job}
        return outputs, [script] if run.path and not run.rehearsed else []
    note = "only its beginning" if job.size > MAX_SCRIPT else ""
    return outputs, [{"title": "job.sh", "text": plain(job.text), "note": note}]


def _test_of(record: Record | None, run: RunRow) -> Test | None:
    return record.tests.get(run.test) if record else None


def _scripts_of_test(test: Test | None) -> list[Script]:
    if test is None:
        return []
    return [
        {"title": f"{kind} script of {test.name}", "text": text[:MAX_SCRIPT], "note": ""}
        for kind, text in test.scripts.items()
    ]
