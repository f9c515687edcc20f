"""Tests without ``run``: they pass when they build."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
import yaml

from seatrial.journal.events import BuildEnded, BuildStarted, RunJudged, RunSubmitted
from tests.gates import wait_for
from tests.programs import Workplace
from tests.slurm.cluster import SlurmCluster

CHAINS = {"gcc": {}, "odd": {"cflags": "-broken"}}


def library(place: Workplace, name: str, script: str, **keys: object) -> Path:
    """A test that is only built."""
    folder = place.suite / name
    folder.mkdir(parents=True)
    text = {"app": "library", "build": {"script": script}, **keys}
    (folder / "test.yaml").write_text(yaml.safe_dump(text))
    return folder


def test_passes_when_it_builds_on_each_toolchain(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.local(toolchains=CHAINS)
    library(place, "lib", 'echo "$CFLAGS"; test "$CFLAGS" != -broken')
    place.test("other", build={"script": "true"})
    done = place.run("--name", "t", "--repeat", "3", "--toolchain", "*")
    assert done.code == 1
    assert place.verdicts() == {
        "lib@gcc": "pass",
        "lib@odd": "build failed",
        "other@gcc": "pass",
        "other@odd": "pass",
    }
    place.audit()
    judged = [event for event in place.events("t", RunJudged) if event.test == "lib"]
    assert len(judged) == 2  # of each toolchain one, whatever --repeat says
    assert not [event for event in place.events("t", RunSubmitted) if event.test == "lib"]
    assert len(place.events("t", BuildEnded)) == 4
    assert not (place.trial().path / "runs" / "lib").exists()
    passed = next(event.run_id for event in judged if event.code == 0)
    shown = place.seatrial("show", passed, "--scripts")
    assert shown.code == 0
    assert "no job: it passes when it builds" in shown.out
    assert "build.log" in shown.out
    assert "is not there" not in shown.out
    assert "not started" not in shown.out
    assert "run script" not in shown.out
    listed = place.seatrial("runs", "--trial", "t", "--format", "json")
    rows = [row for row in json.loads(listed.out) if row["test"] == "lib"]
    assert sorted((row["verdict"], row["elapsed"]) for row in rows) == [
        ("build failed", None),
        ("pass", None),
    ]
    assert place.seatrial("judge", "t").code == 0
    junit = place.seatrial("export", "t", "--format", "junit").out
    assert junit.count('classname="library.lib"') == 2
    assert junit.count("<failure") == 1


def test_list_and_dry_run(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.local()
    library(place, "lib", "true")
    place.test("other")
    listed = place.seatrial("list", "suite", "-m", str(place.machine), "--commands")
    assert listed.code == 0
    assert "(only builds)" in listed.out
    done = place.run("--name", "t", "--dry-run")
    assert done.code == 0, done.said
    assert not list((place.trial().path / "runs").glob("lib*"))
    assert place.resume().code == 0
    assert place.verdicts() == {"lib": "pass", "other": "pass"}
    place.audit()


def test_killed_between_build_and_verdict(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.local()
    gate = tmp_path / "gate"
    library(place, "lib", wait_for(gate))
    with place.start_run("--name", "t") as driving:
        driving.until(place.more(0, BuildStarted), "the build")
        driving.send(signal.SIGKILL)
        driving.process.wait()
    gate.touch()
    assert place.resume().code == 0
    assert place.verdicts() == {"lib": "pass"}
    place.audit()


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ({"verify": [{"exit_code": 0}]}, "verify"),
        ({"metrics": {"from": "stream"}}, "metrics"),
        ({"inputs": ["test.yaml"]}, "inputs"),
        ({"repeat": 2}, "repeat"),
        ({"build": None}, "run"),
        ({"run": {"nodes": 2}}, "run.script"),
        ({"run": {"script": ""}}, "run.script"),
    ],
)
def test_faults(tmp_path: Path, keys: dict[str, object], key: str) -> None:
    place = Workplace(tmp_path)
    place.local()
    library(place, "lib", "true", **keys)
    done = place.run("--name", "t")
    assert done.code == 2
    assert f" {key}: " in done.err


def write_plan(place: Workplace, component: dict[str, object]) -> None:
    about: dict[str, object] = {"plan": "p", "machine": "machine.yaml", "suites": ["suite"]}
    about |= {"rehearsal": {"tests": {"other": {"elapsed": "1m"}}}}
    (place.folder / "plan.yaml").write_text(yaml.safe_dump({**about, "components": [component]}))


@pytest.mark.parametrize("kind", ["once", "isolated_then_full"])
def test_in_a_plan(tmp_path: Path, kind: str) -> None:
    place = Workplace(tmp_path)
    place.local()
    library(place, "lib", "true")
    place.test("other")
    criteria = [{"criterion": "pass_rate", "at_least": "100%"}]
    tests: dict[str, object] = {"lib": {}, "other": {}}
    write_plan(place, {"component": "ft", "kind": kind, "tests": tests, "criteria": criteria})
    rehearsed = place.seatrial("rehearse", "plan.yaml")
    assert rehearsed.code == 0, rehearsed.said
    done = place.seatrial("accept", "run", "plan.yaml", "-q")
    assert done.code == 0, done.said
    rows = json.loads(place.seatrial("runs", "--trial", "p-ft", "--format", "json").out)
    assert [row["verdict"] for row in rows if row["test"] == "lib"] == ["pass"]
    report = place.seatrial("report", "plan.yaml", "-o", "report.html")
    assert report.code == 0, report.said
    verified = place.seatrial("report", "verify", "report.html")
    assert "as it was" in verified.out
    assert "not checked     outputs" not in verified.out


def test_cannot_be_kept_in_flight(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.local()
    library(place, "lib", "true")
    place.test("other")
    tests: dict[str, object] = {"lib": {}, "other": {}}
    write_plan(place, {"component": "s", "kind": "sustained", "duration": "1h", "tests": tests})
    done = place.seatrial("accept", "run", "plan.yaml", "--dry-run")
    assert done.code == 2
    assert "components[0].tests.lib" in done.err
    assert "kind: once" in done.err


@pytest.mark.slurm
def test_build_in_a_job(tmp_path: Path, cluster: SlurmCluster) -> None:
    place = Workplace(tmp_path)
    place.slurm(cluster)
    library(place, "lib", "hostname > made", build={"script": "true", "where": "job"})
    assert place.run("--name", "t").code == 0
    assert place.verdicts() == {"lib": "pass"}
    place.audit()
