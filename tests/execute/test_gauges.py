"""Gauges of trials for real, on this host: starts follow the load, and what was read is judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from seatrial.journal.events import (
    AlertRaised,
    Event,
    GaugeRead,
    JobStarted,
    RunJudged,
    RunSubmitted,
)
from seatrial.units import SECOND_NS
from tests.execute.plans import TAG, audit, control, ends, short, start, write_plan
from tests.execute.test_file_use import HOLD
from tests.gates import wait_for
from tests.programs import Workplace


@pytest.fixture
def place(place: Workplace) -> Workplace:
    place.constants = {"execute.requests.LOOK_SECONDS": 0.05}
    return place


def follows(events: list[Event], target: float) -> int:
    """Check each start of a test with I/O against the journal: what was read last, and the runs
    that the reading cannot show. Return how many there were."""
    value, began, starts = 0.0, 0, 0
    flights: dict[str, int | None] = {}  # of runs with I/O, when they started
    for event in events:
        if isinstance(event, GaugeRead) and event.gauge == "load" and event.value is not None:
            value, began = event.value, event.time - round(event.seconds * SECOND_NS)
        elif isinstance(event, RunSubmitted) and event.test == "io":
            seen = (
                time is not None and time + 3 * SECOND_NS // 10 < began for time in flights.values()
            )
            unseen = len(flights) - sum(seen)
            assert value + 2 * unseen + 2 <= target
            flights[event.run_id] = None
            starts += 1
        elif isinstance(event, JobStarted) and event.run_id in flights:
            flights[event.run_id] = event.time
        elif isinstance(event, RunJudged):
            flights.pop(event.run_id, None)
    return starts


def test_starts_follow_a_gauge_to_its_target(place: Workplace) -> None:
    """Each run holds two files open, which the gauge counts; others hold as many as a file says."""
    folder, others = place.folder / "open", place.folder / "others"
    folder.mkdir()
    others.write_text("3")
    held = f"ls {folder} | wc -l"
    about = {"command": f"echo $(( $(cat {others}) + $({held}) ))", "every": "100ms"}
    place.local(cores=12, gauges={"load": about})
    files = f"{folder}/$$.a {folder}/$$.b"
    go = place.folder / "go"
    script = f"touch {files}; {wait_for(go)}"
    short(place, "io", f"{script}; rm {files}", "60s")
    short(place, "light", "true", "60s")
    throttle = {"gauge": "load", "target": 9, "settle": "300ms"}
    tests = {"io": {"opens": 2}, "light": {"io": "light", "fill": True, "most": 1}}
    write_plan(place, "10m", tests=tests, throttles=[throttle])

    def open_now() -> int:
        return len(list(folder.iterdir()))

    def read(value: float) -> bool:
        return place.events(TAG, GaugeRead)[-1].value == value

    def going() -> int:
        started = (event for event in place.events(TAG, RunSubmitted) if event.test == "io")
        return sum(1 for _ in started) - len(ends(place, "io"))

    try:
        with start(place) as driving:
            driving.until(lambda: open_now() == 6 and read(9), "three runs, as nine are open then")
            before = len(ends(place, "light"))
            driving.until(lambda: len(ends(place, "light")) > before + 2, "light runs")
            assert open_now() == 6
            shown = " ".join(control(place, "status").out.split())
            assert "gauge load leaves no room for a run of io: 9 read, " in shown
            others.write_text("0")
            driving.until(lambda: open_now() == 8 and read(8), "one more, as others left")
            others.write_text("8")
            go.touch()
            driving.until(lambda: read(8) and not going(), "all to end")
            ended = len(ends(place, "io"))
            before = len(ends(place, "light"))
            driving.until(lambda: len(ends(place, "light")) > before + 2, "light runs")
            assert len(ends(place, "io")) == ended, "nothing fits beside eight"
            others.write_text("1")
            driving.until(lambda: len(ends(place, "io")) > ended, "runs again")
            assert control(place, "pause").code == 0
            assert driving.end().code == 3
    finally:
        go.touch()  # whatever happened, the runs end
    audit(place)
    assert follows(place.events(TAG), 9) > 4


def gauge_of(place: Workplace, **keys: object) -> tuple[dict[str, object], str]:
    """A gauge that reads a file, and bash by which a run writes a value and waits until it was
    read."""
    value = place.folder / "value"
    value.write_text("20")
    command = f"v=$(cat {value}); [ $v != broken ] && echo $v; touch {place.folder}/read-$v"
    about = {"command": command, "every": "100ms", "timeout": "1s", **keys}
    wait = wait_for(place.folder / "read-$v")
    return about, f"for v in $VALUES; do echo $v > {value}; {wait}; done"


def test_a_gauge_is_read_in_each_trial_that_asks_and_judged(place: Workplace) -> None:
    about, script = gauge_of(place)
    place.local(gauges={"inlet": about, "other": {"command": "echo 1"}})
    place.test("warm", script.replace("$VALUES", "21 25 31 22 23"), run={"walltime": "60s"})
    limits = [
        {"criterion": "gauge", "gauge": "inlet", "at_least": 18, "at_most": most, "share": share}
        for most, share in ((40, "100%"), (27, "100%"), (28, "1%"), (24, "99.9%"))
    ]
    component = {"component": "mix", "tests": ["warm"], "criteria": limits}
    plan = {"plan": "p", "machine": "machine.yaml", "suites": ["suite"], "components": [component]}
    (place.folder / "plan.yaml").write_text(yaml.safe_dump(plan))
    done = place.seatrial("accept", "plan.yaml", "-q")
    assert done.code == 1, done.said
    read = place.events(TAG, GaugeRead)
    assert {event.gauge for event in read} == {"inlet"}
    assert {21, 25, 31, 22} <= {event.value for event in read}
    (status,) = json.loads(control(place, "status", "--format", "json").out)["trials"]
    told = [each for each, *_ in status["criteria"] if each["criterion"] == "gauge"]
    assert [each["state"] for each in told] == ["met", "not met", "met", "not met"]
    assert told[0]["label"] == "gauge of inlet"
    assert told[1]["bound"] == "at least 100 % of the time at least 18 and at most 27"
    report = place.folder / "r.json"
    assert place.seatrial("report", TAG, "-o", str(report)).code == 0
    (part,) = json.loads(report.read_text())["components"]
    figures = {each["title"]: each["table"]["rows"] for each in part["figures"]}
    assert "Runs in flight" in figures
    values = [row[2] for row in figures["Gauge inlet"]]
    assert {21, 25, 31, 22} <= set(values)


def test_a_gauge_that_fails_leaves_a_gap_that_meets_nothing(place: Workplace) -> None:
    about, script = gauge_of(place, sample=True)
    place.local(gauges={"inlet": about})
    place.test("warm", script.replace("$VALUES", "21 broken 23 24"), run={"walltime": "60s"})
    assert place.run("--name", "t").code == 0
    read = place.events("t", GaugeRead)
    assert {21, 23, None} <= {event.value for event in read}
    (alert,) = [each for each in place.events("t", AlertRaised) if each.kind == "gauge"]
    assert "gauge inlet fails: it printed nothing; its readings have a gap" in alert.text


def test_a_trial_that_asks_for_no_gauge_reads_none(place: Workplace) -> None:
    place.local(gauges={"inlet": {"command": f"touch {place.folder}/was-read; echo 1"}})
    place.test("one")
    assert place.run("--name", "t").code == 0
    assert place.verdicts() and not place.events("t", GaugeRead)
    assert not Path(place.folder / "was-read").exists()


def test_declared_open_files_are_set_beside_measured_ones(place: Workplace) -> None:
    scratch = place.folder / "scratch"
    scratch.mkdir()
    place.local(cores=4, file_use={"every": "1s", "paths": [str(scratch)]})
    (place.folder / "hold.py").write_text(HOLD)
    hold = f"python3 {place.folder}/hold.py {scratch} 2"
    declared = {"low": 1, "right": 2, "high": 200, "none": 0}
    for name in declared:
        place.test(name, hold, run={"walltime": "60s"})
    tests = {name: {"opens": opens} for name, opens in declared.items()}
    component = {"component": "mix", "tests": tests}
    plan = {"plan": "p", "machine": "machine.yaml", "suites": ["suite"], "components": [component]}
    (place.folder / "plan.yaml").write_text(yaml.safe_dump(plan))
    done = place.seatrial("accept", "plan.yaml", "-q")
    assert done.code == 0, done.said
    told = {each.subject: each.text for each in place.events(TAG, AlertRaised)}
    assert told == {
        "low": "low: declared 1 opens, measured 2 (2 x), the median of 1 run: the declaration is "
        "too low; give the test opens: 2",
        "high": "high: declared 200 opens, measured 2 (0.01 x), the median of 1 run: the "
        "declaration is too high; give the test opens: 2",
    }
    runs = {each.test: each.run_id for each in place.events(TAG, RunJudged)}
    shown = place.seatrial("show", runs["high"]).out
    assert "declared 200 opens, measured 2 (0.01 x)" in shown
    record = json.loads(place.seatrial("show", runs["right"], "--format", "json").out)
    assert record["opens"] == {"declared": 2, "measured": 2, "state": "right"}
    report = place.folder / "r.md"
    assert place.seatrial("report", TAG, "-o", str(report)).code == 0
    assert "Declared and measured open files" in report.read_text()
