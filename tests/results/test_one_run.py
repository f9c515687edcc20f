"""One run, told: its events in words, its phases, what its figures should be."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seatrial.journal.events import (
    EVENT_NAMES,
    Event,
    JobEnded,
    JobQueued,
    JobStarted,
    MetricRecorded,
    OutputRemoved,
    RunJudged,
    RunJudgedAgain,
    RunSubmitted,
    ScriptEnded,
    ScriptStarted,
    SubmitEnded,
)
from seatrial.judge.references import References, loads
from seatrial.results.one_run import event_words, phases
from seatrial.results.references import Expected, expected
from seatrial.results.store.tables import CaseRow, EventRow, MetricRow, RunRow
from tests.programs import Workplace


def run_row(**changes: Any) -> RunRow:
    row = RunRow(
        row=1,
        verdict="pass",
        first_verdict="",
        trial="t",
        machine="frost",
        run_id="r",
        case="c",
        case_name="stream@gcc",
        test="stream",
        app="stream",
        toolchain="gcc",
        seq=1,
        code=0,
        why="",
        created=0,
        submitted=None,
        queued=None,
        job_started=None,
        script_started=None,
        script_ended=None,
        job_ended=None,
        judged=None,
        elapsed=None,
        exit_code=None,
        job_id="",
        nodes="",
        path="",
    )
    return msgspec.structs.replace(row, **changes)


def event(
    kind: type[Event] | str, time: int = 0, value: Any = None, detail: str = "", text: str = ""
) -> EventRow:
    """A row of the store, of an event of that kind."""
    name = kind if isinstance(kind, str) else EVENT_NAMES[kind]
    return EventRow(time, name, value, detail, text)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (event(MetricRecorded, value=5694.2, detail="triad", text="MB/s"), "triad = 5694 MB/s"),
        (event(MetricRecorded, value="none", detail="triad"), "triad = none"),
        (event(RunJudged, value=2, detail="x", text="no\nmore"), "wrong answer: no"),
        (event(JobEnded, value=23, detail="TIMEOUT"), "timeout TIMEOUT"),
        (event(JobEnded, value=0, detail="COMPLETED"), "COMPLETED"),
        (event(ScriptEnded, value=139), "exit code 139"),
        (event(SubmitEnded, value=0), "0"),
        (event(RunSubmitted, value="n[1-2]"), "on n[1-2]"),
        (event(ScriptStarted, value="GPU-a GPU-b", detail="n1"), "n1 GPUs GPU-a GPU-b"),
        (event(ScriptStarted, detail="n1", text="gcc"), "n1: gcc"),
        (event(OutputRemoved, value=2, detail="core.*"), "2 files removed by keep: core.*"),
        (event(RunJudgedAgain, value=0, detail="ana: typo", text="b\nc"), "pass: b; by ana: typo"),
        (event("unheard", detail="a", text="b"), "a: b"),
    ],
)
def test_each_event_is_told(said: EventRow, words: str) -> None:
    assert event_words(said) == words


def spans(run: RunRow, *events: EventRow) -> list[tuple[str, int, int | None]]:
    return [(phase.name, phase.since, phase.until) for phase in phases(run, events)]


def test_phases_follow_each_other_without_gap() -> None:
    run = run_row(created=10, script_started=40, script_ended=90, judged=95)
    found = spans(run, event(JobQueued, 20), event(JobStarted, 35))
    assert found == [
        ("prepared", 10, 20),
        ("queued", 20, 35),
        ("starting", 35, 40),
        ("running", 40, 90),
        ("judged", 90, 95),
    ]


def test_what_it_never_came_to_is_not_there() -> None:
    assert spans(run_row(created=10)) == [("prepared", 10, None)]
    failed = run_row(created=10, judged=12)
    assert spans(failed) == [("prepared", 10, 12)]
    lost = run_row(created=10, script_started=20, judged=60)
    assert spans(lost, event(JobEnded, 55)) == [
        ("prepared", 10, 20),
        ("running", 20, 55),
        ("judged", 55, 60),
    ]


def test_clocks_of_nodes_that_are_off_make_no_negative_time() -> None:
    run = run_row(created=10, script_started=5, script_ended=7, judged=30)
    found = spans(run, event(JobQueued, 20))
    assert all(end is None or end >= start for _, start, end in found)
    assert found[-1][2] == 30


# ---- references ---------------------------------------------------------------------------


def found_references(text: str) -> References:
    return loads(f"references:\n{text}", Path("references.yaml"))


def case_row() -> CaseRow:
    return CaseRow(
        id="c",
        name="stream@gcc",
        test="stream",
        app="stream",
        toolchain="gcc",
        parameters={"threads": 2},
        nodes=1,
        tasks=1,
        tasks_per_node=1,
        threads=2,
        walltime=60.0,
        node="",
        build="",
        repeat=1,
    )


TRIAD = MetricRow("triad", 90.0, "GB/s", "higher")


def test_a_value_has_its_band_and_how_far_off_the_figure_is() -> None:
    references = found_references("- {test: stream, metric: triad, unit: GB/s, value: 100}\n")
    assert expected(TRIAD, case_row(), references) == Expected(
        "100 GB/s", value=100.0, low=95.0, high=None, off=-10.0, meets=False
    )


def test_bounds_are_told_as_bounds() -> None:
    references = found_references(
        "- {test: stream, metric: triad, unit: GB/s, min: 80, max: 120}\n"
    )
    assert expected(TRIAD, case_row(), references) == Expected(
        ">= 80 GB/s, <= 120 GB/s", low=80.0, high=120.0, meets=True
    )


def test_another_unit_is_converted_and_another_dimension_not_compared() -> None:
    references = found_references("- {test: stream, metric: triad, unit: MB, value: 1}\n")
    assert expected(TRIAD, case_row(), references) == Expected("1 MB")
    references = found_references("- {test: stream, metric: triad, unit: MB/s, min: 95000}\n")
    found = expected(TRIAD, case_row(), references)
    assert found is not None
    assert (found.text, found.low, found.meets) == (">= 95000 MB/s = 95 GB/s", 95.0, False)


def test_none_and_ambiguous_ones() -> None:
    assert expected(TRIAD, case_row(), References()) is None
    one = found_references("- {test: stream, metric: triad, unit: GB/s, value: 1}\n").entries
    assert expected(TRIAD, case_row(), References.of(one * 2)) == Expected("ambiguous")


# ---- how its tasks were started -----------------------------------------------------------------


def test_the_launcher_of_the_toolchain_is_shown_with_its_line(place: Workplace) -> None:
    """As `show` and its JSON tell it: the line of the job script, else the one by the record."""
    mpirun = place.folder / "bin" / "mpirun"
    mpirun.parent.mkdir()
    mpirun.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n')
    mpirun.chmod(0o755)
    chain = {"launcher": {"kind": "mpirun", "command": str(mpirun), "options": ["--", "env"]}}
    place.local(cores=4, toolchains={"mine": chain})
    place.test("a", "$LAUNCH echo ok", run={"tasks": 2})
    assert place.run("--name", "t").code == 0
    run = json.loads(place.seatrial("runs", "--format", "json").out)[0]["run_id"]
    line = f"{mpirun} -n 2 -- env"
    assert re.search(rf"\nlauncher +mpirun: {line}\n", place.seatrial("show", run).out)
    shown = json.loads(place.seatrial("show", run, "--format", "json").out)
    assert shown["launcher"] == {"kind": "mpirun", "line": line, "gpus_in_turn": False}
    (script,) = (place.folder / "trials" / "t" / "runs").glob("a/*/job.sh")
    script.write_text(script.read_text().replace("-n 2", "-n 3"))
    shown = json.loads(place.seatrial("show", run, "--format", "json").out)
    assert shown["launcher"]["line"] == line.replace("-n 2", "-n 3"), "as the job had it"
    script.unlink()
    shown = json.loads(place.seatrial("show", run, "--format", "json").out)
    assert shown["launcher"]["line"] == line
