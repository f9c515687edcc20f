"""Events as points: the names of the OLCF Test Harness, and no two points that are one."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from seatrial.execute.trial_folder import TrialFolder
from seatrial.journal.encoding import decode
from seatrial.journal.events import (
    EVENT_KINDS,
    CheckStarted,
    Event,
    GaugeRead,
    MetricRecorded,
    NodeDown,
    NodeUp,
    OutputRemoved,
    RunCreated,
    RunJudged,
    RunJudgedAgain,
    ScriptEnded,
    ScriptStarted,
)
from seatrial.journal.journal import read
from seatrial.model.codes import NODE_FAILURE, PERFORMANCE, RECALLED
from seatrial.plugins.sinks.influxdb import Moments, TrialPoints
from seatrial.plugins.sinks.protocol import TrialInfo, _Machine, about_of
from tests.plugins.sinks.protocol import Point, parse
from tests.programs import Workplace
from tests.results.store.trials import NOON, SECOND, TrialMaker, a_case, a_trial

GOLDEN = Path(__file__).with_name("golden") / "points.txt"
ABOUT = TrialInfo("t", _Machine("frontier", {"rack1": "n[001-002]"}), "tester", "login1")


def points_of(folder: TrialFolder, oth: bool = False) -> list[Point]:
    """Every point of a trial, as InfluxDB would read it."""
    points = TrialPoints(about_of(folder), oth)
    return [parse(line) for event in read(folder.journal) for line in points.lines(event)]


def test_a_trial_as_points(tmp_path: Path) -> None:
    """To renew the golden file: SEATRIAL_REGENERATE=1."""
    folder = a_trial(tmp_path).folder
    points = TrialPoints(about_of(folder))
    lines = [line.decode() for event in read(folder.journal) for line in points.lines(event)]
    text = "\n".join([*lines, ""]).replace(str(tmp_path), "/trials")
    if os.environ.get("SEATRIAL_REGENERATE"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_names_are_those_of_the_olcf_test_harness(tmp_path: Path) -> None:
    points = points_of(a_trial(tmp_path).folder, oth=True)
    events = [point for point in points if point.measurement == "events"]
    of_runs = [point for point in events if "nightly" in dict(point.tags).get("test_id", "")]
    assert of_runs
    fields = {
        *("build_directory", "event_filename", "event_name", "event_subtype", "event_time"),
        *("event_type", "event_value", "check_alias", "hostname", "job_account_id", "job_id"),
        *("path_to_rgt_package", "rgt_path_to_sspace", "rgt_system_log_tag", "run_archive"),
        *("user", "workdir", "comment", "output_txt"),
    }
    for point in of_runs:
        assert dict(point.tags).keys() == {"app", "machine", "runtag", "test", "test_id"}
        assert fields <= point.fields.keys()
    (over,) = [
        point.fields
        for point in of_runs
        if dict(point.tags)["test_id"] == "aaaa1111nightly"
        and point.fields["event_name"] == "check_end"
    ]
    assert over["event_filename"] == "Event_200_check_end.txt"
    assert (over["event_type"], over["event_subtype"]) == ("check", "end")
    assert (over["event_value"], over["job_account_id"]) == ("0", "[NO_VALUE]")
    assert over["job_id"] == "4711"
    started = next(p.fields for p in of_runs if p.fields["event_name"] == "binary_execute_start")
    assert (started["event_type"], started["event_subtype"]) == ("binary_execute", "start")


def test_directories_account_and_output_as_that_harness_tells_them(place: Workplace) -> None:
    place.local(slurm={"account": "stf007"}, toolchains={"gcc": {}})
    place.test("good", "echo out; echo err >&2; cd /", run={"account": "csc190"})
    place.test("bad", "head -c 90000 /dev/zero | tr '\\0' x; echo; echo last; exit 3")
    built = {"script": "echo compiled; exit 1"}
    place.test("unbuilt", "true", build=built, run={"account": "{where}"}, defaults={"where": "a"})
    assert place.run("--name", "t").code == 1
    points = [p for p in points_of(place.trial("t"), oth=True) if p.measurement == "events"]
    told = {
        (dict(p.tags)["test"], str(p.fields["event_name"])): p
        for p in points
        if "test" in dict(p.tags)
    }
    assert all(p.fields["rgt_path_to_sspace"] == str(place.trial("t").path) for p in points)

    def field_of(test: str, event: str, name: str) -> str:
        return str(told[test, event].fields[name])

    assert field_of("good", "binary_execute_end", "output_txt") == "out\nerr\n"
    assert field_of("good", "check_end", "output_txt") == "out\nerr"
    assert field_of("good", "binary_execute_start", "output_txt") == "[NO_VALUE]"
    assert field_of("good", "check_end", "workdir") == str(place.run_folder("good"))
    assert field_of("good", "check_end", "job_account_id") == "csc190"
    assert field_of("bad", "check_end", "job_account_id") == "stf007"
    assert field_of("unbuilt", "build_end", "job_account_id") == "[NO_VALUE]"
    output = field_of("bad", "check_end", "output_txt")
    assert output.startswith("exit code 3, not 0\nx") and output.endswith("x\nlast")
    assert 59_000 < len(output) < 61_000
    assert field_of("unbuilt", "build_end", "output_txt") == "compiled"
    builds = {dict(told["unbuilt", name].tags)["test_id"] for name in ("build_start", "build_end")}
    assert len(builds) == 1 and builds != {""}


def test_the_runs_id_is_a_field_unless_old_dashboards_want_a_tag(tmp_path: Path) -> None:
    folder = a_trial(tmp_path).folder
    for point in points_of(folder):
        assert "test_id" not in dict(point.tags)
    ids = {point.fields.get("test_id") for point in points_of(folder)}
    assert ids >= {"aaaa1111nightly", "aaaa2222nightly", "bbbb3333nightly"}
    for point in points_of(folder, oth=True):
        assert "test_id" not in point.fields or point.measurement == "node_health"


def test_figures_and_elapsed_time_of_a_run(tmp_path: Path) -> None:
    points = points_of(a_trial(tmp_path).folder)
    (figures,) = [
        point
        for point in points
        if point.measurement == "metrics" and point.fields.get("test_id") == "aaaa1111nightly"
    ]
    stem = "stream-app-stream"
    assert figures.fields == {
        "test_id": "aaaa1111nightly",
        f"{stem}-triad": 5694.0,
        f"{stem}-copy": 5000.5,
        f"{stem}-execution_time": 1.0,
    }
    (checked,) = [
        point.time
        for point in points
        if point.fields.get("event_name") == "check_start"
        and point.fields["test_id"] == "aaaa1111nightly"
    ]
    assert figures.time == checked
    assert any("hpl-build_time" in point.fields for point in points)


def test_a_run_that_is_over_is_told_at_its_start(tmp_path: Path) -> None:
    runs = [point for point in points_of(a_trial(tmp_path).folder) if point.measurement == "runs"]
    verdicts = {str(point.fields["test_id"]): dict(point.tags)["verdict"] for point in runs}
    assert verdicts == {
        "aaaa1111nightly": "pass",
        "aaaa2222nightly": "wrong answer",
        "bbbb3333nightly": "build failed",
    }
    first = runs[0].fields
    assert (first["elapsed"], first["passed"], first["failed"], first["code"]) == (1.0, 1, 0, 0)
    assert first["waited"] == 3.0
    assert "elapsed" not in runs[2].fields


def test_a_recalled_run_neither_passed_nor_failed(tmp_path: Path) -> None:
    """Also one that version 0.1 called cancelled."""
    trial = TrialMaker(tmp_path, "t", [a_case(1)])
    trial.recalled_run(trial.cases[0], "r1")
    trial.recalled_run(trial.cases[0], "r2", as_0_1=True)
    trial.end()
    points = points_of(trial.folder)
    runs = [point for point in points if point.measurement == "runs"]
    assert [dict(point.tags)["verdict"] for point in runs] == ["recalled"] * 2
    for point in runs:
        fields = point.fields
        assert (fields["code"], fields["passed"], fields["failed"]) == (RECALLED.number, 0, 0)
        assert "elapsed" not in fields
    ends = [point.fields for point in points if point.fields.get("event_name") == "check_end"]
    assert [(end["value"], end["event_value"], end["check_alias"]) for end in ends] == [
        (RECALLED.number, "45", "recalled")
    ] * 2
    assert not [point for point in points if point.measurement == "node_health"]


def test_a_run_that_was_judged_again_counts_once_by_its_last_verdict() -> None:
    run: dict[str, Any] = {"run_id": "r1", "test": "hpl", "app": "hpl", "case": "c1"}
    found = of(
        RunCreated(time=NOON, **run),
        ScriptStarted(time=NOON + SECOND, **run),
        RunJudged(time=NOON + 2 * SECOND, code=2, verdict="wrong answer", reason="no", **run),
        RunJudgedAgain(time=NOON + 9 * SECOND, code=0, verdict="pass", before=2, **run),
        RunJudgedAgain(time=NOON + 10 * SECOND, code=0, verdict="pass", before=0, **run),
    )
    kept = {(p.time, p.tags): p.fields for p in found if p.measurement == "runs"}
    counted = {
        dict(tags)["verdict"]: (fields["passed"], fields["failed"], fields.get("again"))
        for (_, tags), fields in kept.items()
    }
    assert counted == {"wrong answer": (0, 0, True), "pass": (1, 0, None)}
    assert len({time for time, _ in kept}) == 1
    again = [p.fields for p in found if p.fields.get("event_name") == "check_again"]
    assert [(fields["value"], fields["check_alias"]) for fields in again] == [(0, "pass")] * 2


def test_figures_that_a_second_judgement_adds_join_those_of_the_run() -> None:
    """Their time is that of the verdict, which other points of the test have, too."""
    run: dict[str, Any] = {"run_id": "r1", "test": "hpl", "app": "hpl", "case": "c1"}
    other = {**run, "run_id": "r2"}
    points = TrialPoints(ABOUT)
    events = (
        ScriptStarted(time=NOON + SECOND, **run),
        CheckStarted(time=NOON + 2 * SECOND, **run),
        MetricRecorded(time=NOON + 2 * SECOND, metric="rate", value=7, **run),
        RunJudged(time=NOON + 3 * SECOND, code=40, verdict="no figure", **run),
        OutputRemoved(time=NOON + 3 * SECOND, files=1, **run),
        RunJudged(time=NOON + 9 * SECOND, code=40, verdict="no figure", **other),
        MetricRecorded(time=NOON + 3 * SECOND, metric="late", value=5, **run),
        MetricRecorded(time=NOON + 3 * SECOND, metric="later", value=6, **run),
        MetricRecorded(time=NOON + 3 * SECOND, metric="no", value=math.nan, **run),
        RunJudgedAgain(time=NOON + 99 * SECOND, code=0, verdict="pass", before=40, **run),
        MetricRecorded(time=NOON + 9 * SECOND, metric="late", value=8, **other),
    )
    found = [parse(line) for event in events for line in points.lines(event)]
    metrics = [point for point in found if point.measurement == "metrics"]
    assert [{k: v for k, v in p.fields.items() if k != "test_id"} for p in metrics] == [
        {"hpl-hpl-rate": 7.0},
        {"hpl-hpl-late": 5.0},
        {"hpl-hpl-later": 6.0},
        {"hpl-hpl-late": 8.0},
    ]
    first, late, later, of_other = metrics
    assert first.identity == late.identity == later.identity != of_other.identity
    assert of_other.time == NOON + 9 * SECOND
    assert [point.fields["test_id"] for point in metrics] == ["r1", "r1", "r1", "r2"]
    told = [point for point in found if point.measurement == "events"]
    assert len({point.identity for point in told}) == len(events)
    assert not points._runs


# ---- nodes and gauges ---------------------------------------------------------------------


def of(*events: Event) -> list[Point]:
    points = TrialPoints(ABOUT)
    return [parse(line) for event in events for line in points.lines(event)]


def test_what_is_said_of_nodes() -> None:
    found = of(
        NodeDown(time=NOON, nodes="n[001-003]", reason="no answer"),
        NodeUp(time=NOON + SECOND, nodes="n001"),
    )
    health = [point for point in found if point.measurement == "node_health"]
    assert [(dict(p.tags)["node"], p.fields["status"]) for p in health] == [
        *(("n001", "FAILED"), ("n002", "FAILED"), ("n003", "FAILED")),
        ("n001", "SUCCESS"),
    ]
    assert health[0].fields == {"test_id": "", "status": "FAILED", "message": "no answer"}
    assert [dict(point.tags).get("group") for point in health] == ["rack1", "rack1", None, "rack1"]


def test_what_is_no_node_set_is_one_node() -> None:
    found = of(NodeDown(time=NOON, nodes="n[1-,\n", reason="x"))
    assert [dict(p.tags)["node"] for p in found if p.measurement == "node_health"] == ["n[1-,"]


def test_a_run_of_one_node_speaks_of_it(tmp_path: Path) -> None:
    trial = TrialMaker(tmp_path, "t", [a_case(1)])
    trial.run(trial.cases[0], "r1", NODE_FAILURE, why="it fell")
    trial.run(trial.cases[0], "r2", PERFORMANCE, why="slow")
    trial.run(trial.cases[0], "r3", NODE_FAILURE, again=True)
    trial.end()
    health = [p for p in points_of(trial.folder) if p.measurement == "node_health"]
    assert [(p.fields["test_id"], p.fields["status"]) for p in health] == [
        ("r1", "FAILED"),
        ("r2", "PERF-FAIL"),
    ]
    assert dict(health[0].tags) == {"machine": "frontier", "node": "n001", "test": "stream"}


def test_gauges_and_rehearsals() -> None:
    gauge = GaugeRead(time=NOON, gauge="time", value=12.5)
    none = GaugeRead(time=NOON + 2, gauge="time", reason="it ended with exit code 1")
    about = TrialInfo("t", _Machine("frontier"), rehearsed=True)
    points = TrialPoints(about)
    found = [parse(line) for event in (gauge, none) for line in points.lines(event)]
    (read_out,) = [point for point in found if point.measurement == "non_harness_metrics"]
    assert read_out.fields == {"value": 12.5}
    assert all(dict(point.tags)["rehearsed"] == "true" for point in found)


# ---- identity -----------------------------------------------------------------------------


def written(**members: Any) -> Event:
    """An event as it is read from a line with these members."""
    line = json.dumps(members).replace("NaN", '"nan"')
    return decode(line.encode())


EVENTS = st.lists(
    st.builds(
        written,
        time=st.integers(NOON, NOON + 3) | st.integers(NOON, NOON + 5 * SECOND),
        event=st.sampled_from([*EVENT_KINDS, "of_the_future"]),
        test=st.sampled_from(["", "a", "b"]),
        run_id=st.sampled_from(["", "r1", "r2", " \n"]),
        value=st.sampled_from([None, 0, 1.5, 10**400, float("nan"), "text"]),
        nodes=st.sampled_from(["", "n1", "n[1-3]", "n[1-", "a b,c"]),
        alias=st.sampled_from(["", "m", " ", "a=b, c\\"]),
        text=st.sampled_from(["", 'a "quoted"\nline\\']),
        path=st.sampled_from(["", "/a b"]),
    ),
    max_size=60,
)


@given(EVENTS, st.booleans())
def test_no_event_replaces_another(events: list[Event], oth: bool) -> None:
    """But a run that is judged again replaces its own points."""
    driver = [event for event in events if "binary" not in event.name]
    times = iter(sorted(event.time for event in driver))
    ordered = [
        event if "binary" in event.name else replace(event, time=next(times)) for event in events
    ]
    points = TrialPoints(ABOUT, oth)
    lines = [line for event in ordered for line in points.lines(event)]
    points = TrialPoints(ABOUT, oth)
    found = [
        parse(line)
        for event in ordered
        for line in points.lines(event)[: 1 if isinstance(event, RunJudgedAgain) else None]
    ]
    assert len({point.identity for point in found}) == len(found)
    assert all(float(point.fields.get("waited", 0)) < 10**6 for point in found)
    again = TrialPoints(ABOUT, oth)
    assert [line for event in ordered for line in again.lines(event)] == lines


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2000)), max_size=200))
def test_a_moment_is_near_its_events_time(steps: list[tuple[bool, int]]) -> None:
    moments, now, seen = Moments(), NOON, set()
    for of_job, step in steps:
        now += step
        time = now - 40 * SECOND if of_job else now
        moment = moments.moment(ScriptEnded(time=time) if of_job else RunJudged(time=time, code=0))
        seen.add(moment)
        assert abs(moment - time) <= (1_000_000 if of_job else 2 * len(steps))
    assert len(seen) == len(steps)


def test_a_time_far_ahead_does_not_drag_the_later_ones_along() -> None:
    moments = Moments()
    times = [NOON, NOON + 10**17, NOON + SECOND, NOON + SECOND]
    found = [moments.moment(RunJudged(time=time, code=0)) for time in times]
    assert found == [NOON, NOON + 10**17, NOON + SECOND, NOON + SECOND + 2]
