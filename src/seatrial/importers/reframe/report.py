"""Read run reports of ReFrame: JSON with ``session_info`` and ``runs`` of ``testcases``.

Reports of 3.x and 4.0 have ``perfvars``, a list, and no times of test cases; since 4.1 they have
``perfvalues`` by ``SYSTEM:PARTITION:METRIC`` and the time of completion.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from seatrial.files import read_regular
from seatrial.importers.notes import ImportNote
from seatrial.importers.reframe.entry import ReframeEntry, ReframeFigure, figure_of, number_or_none
from seatrial.importers.times import time_of
from seatrial.machine.node_sets import fold

MAX_BYTES = 1 << 30
LONGEST_REASON = 400


def read_report(path: Path) -> tuple[list[ReframeEntry], list[ImportNote]]:
    """Return the runs of a report, and notes on what could not be read."""
    try:
        report = msgspec.json.decode(read_regular(path, MAX_BYTES))
        session = report["session_info"]
        span = (_moment(session, "time_start"), _moment(session, "time_end"))
        cases = [case for run in report["runs"] for case in run["testcases"]]
    except OSError as error:
        return [], [ImportNote(path, 0, f"cannot be read: {error.strerror or error}")]
    except (ValueError, RecursionError) as error:
        return [], [ImportNote(path, 0, f"is no whole JSON: {error}; left out")]
    except (KeyError, TypeError, AttributeError):
        return [], [ImportNote(path, 0, "is JSON, but no run report of ReFrame: left out")]
    entries = []
    notes = []
    for number, case in enumerate(cases, 1):
        place = f"{path}: test case {number}"
        try:
            entry = _entry(case, place, span)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = f"test case {number} is not as ReFrame writes it ({error!r}): left out"
            notes.append(ImportNote(path, 0, what))
            continue
        if entry.result in ("skip", "skipped", "None"):
            notes.append(ImportNote(path, 0, f"{entry.name}: was skipped: left out", False))
            continue
        entries.append(entry)
    return entries, notes


def _moment(session: dict[str, Any], name: str) -> int:
    exact = session.get(f"{name}_unix")
    return time_of(str(exact if exact is not None else session[name]))


def _entry(case: dict[str, Any], place: str, span: tuple[int, int]) -> ReframeEntry:
    variables = case.get("check_vars") or case
    system, _, partition = case["system"].partition(":")
    finished = case.get("job_completion_time_unix") or case.get("job_completion_time")
    submitted = case.get("job_submit_time")
    job = case.get("jobid")
    nodes = case.get("job_nodelist") or case.get("nodelist") or []
    return ReframeEntry(
        name=case.get("display_name") or case["name"],
        system=system,
        partition=case.get("partition") or partition,
        environ=case.get("environ") or case.get("environment") or "",
        place=place,
        result=str(case["result"]),
        job="" if job is None else str(job),
        submitted=None if submitted is None else time_of(str(submitted)),
        finished=None if finished is None else time_of(str(finished)),
        session=span,
        phase=case.get("fail_phase") or "",
        reason=str(case.get("fail_reason") or "").strip()[:LONGEST_REASON],
        exit_code=_whole(case.get("job_exitcode")),
        hosts=fold([str(each) for each in nodes]),
        path=str(case.get("outputdir") or ""),
        tasks=_whole(variables.get("num_tasks")) or 0,
        tasks_per_node=_whole(variables.get("num_tasks_per_node")) or 0,
        figures=list(_figures(case)),
    )


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _figures(case: dict[str, Any]) -> Iterator[ReframeFigure]:
    for name, given in (case.get("perfvalues") or {}).items():
        value, reference, lower, upper, unit, *_ = given
        yield from _figure(name.split(":", 2)[-1], value, unit, reference, lower, upper)
    for given in case.get("perfvars") or []:
        expected = map(given.get, ("reference", "thres_lower", "thres_upper"))
        yield from _figure(given["name"], given["value"], given.get("unit"), *expected)


def _figure(name: str, value: object, unit: object, *expected: object) -> Iterator[ReframeFigure]:
    """Yield a figure; none where ReFrame has no finite one."""
    with contextlib.suppress(ValueError):
        figure = number_or_none(value)
        if figure is not None:
            yield figure_of(name, figure, str(unit or "1"), *expected)
