"""``seatrial rehearse`` as people use it, and the other commands on what it leaves."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.cli import main
from seatrial.execute.trial_folder import TrialFolder
from seatrial.journal import journal
from seatrial.journal.events import JobStarted, TrialEnded, TrialStarted
from seatrial.results.status import status
from tests.plugins.rehearsal.stage import Stage
from tests.programs import COMMAND, Done, until


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Two tests on eight nodes for ten minutes: 40 and 80 runs, and one criterion."""
    stage = Stage(tmp_path)
    stage.test("wide", nodes=2)
    stage.test("small")
    stage.behave("wide", elapsed="1m")
    stage.behave("small", elapsed="30s")
    stage.component(
        "stability",
        kind="sustained",
        duration="10m",
        reserve=0,
        tests={"wide": {"copies": 3}, "small": {"copies": 2}},
        criteria=[{"criterion": "utilisation", "at_least": "90%"}],
    )
    return stage


Command = Callable[..., Done]


@pytest.fixture
def seatrial(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """The command's own door, in this process, in the folder of the plan."""
    monkeypatch.chdir(stage.folder)

    def run(*words: str) -> Done:
        stage.write()
        monkeypatch.setattr(sys, "argv", ["seatrial", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, said.out, said.err)

    return run


def test_it_says_what_would_come_out(stage: Stage, seatrial: Command) -> None:
    done = seatrial("rehearse", "plan.yaml")
    assert done.code == 0, done.said
    lines = done.out.splitlines()
    assert lines[0].startswith("p on toy, rehearsed in ")
    assert lines[2] == "stability: 8 nodes, 10 m 0 s, trial p-stability-rehearsed"
    assert "utilisation 100.0 % of node-hours in accepted work" in lines
    rows = [line.split() for line in lines]
    assert ["wide", "2", "30", "0", "0.0", "1", "60", "0", "0", "s", "0", "s"] in rows
    assert ["small", "1", "40", "0", "0.0", "0.3333", "30", "0", "0", "s", "0", "s"] in rows
    assert any(row[:1] == ["utilisation"] and row[-1] == "met" for row in rows)
    assert max(map(len, lines)) <= 80


def test_every_command_works_on_the_trial(stage: Stage, seatrial: Command) -> None:
    assert seatrial("rehearse", "plan.yaml", "--name", "t").code == 0
    trials = seatrial("trials")
    assert trials.code == 0
    assert "rehearsed" in trials.out
    runs = seatrial("runs", "--trial", "t", "--limit", "0", "--format", "json")
    found = json.loads(runs.out)
    assert len(found) == 70
    shown = seatrial("show", f"t/{found[0]['run_id']}")
    assert shown.code == 0, shown.said
    assert "rehearsed" in shown.out
    assert "a rehearsed run leaves no files" in shown.out
    exported = seatrial("export", "t", "--format", "json")
    assert exported.code == 0
    assert json.loads(exported.out)


def test_a_criterion_that_is_missed_is_said_with_its_reason(
    stage: Stage, seatrial: Command
) -> None:
    stage.plan["rehearsal"]["tests"]["wide"]["fails"] = "50%"
    done = seatrial("rehearse", "plan.yaml")
    assert done.code == 1
    assert "not met" in done.out
    assert "- utilisation: " in done.out
    assert "wide (failed)" in done.out


def test_many_seeds_say_how_likely_each_criterion_is(stage: Stage, seatrial: Command) -> None:
    stage.plan["rehearsal"]["tests"]["wide"]["fails"] = "20%"
    done = seatrial("rehearse", "plan.yaml", "--seeds", "10", "--json")
    said = json.loads(done.out)
    odds, every_test = said["odds"]
    assert every_test["met"] == 10
    assert said["seeds"] == list(range(1, 11))
    assert 0 < odds["met"] < 10
    assert odds["not_met"] == 10 - odds["met"]
    assert (odds["undecided"], odds["waived"]) == (0, 0)
    assert sum(cause["seeds"] for cause in odds["causes"]) == odds["not_met"]
    assert done.code == 1
    written = [path.parent.name for path in stage.trials.glob("*/trial.json")]
    assert written == ["p-stability-rehearsed"]
    again = seatrial("rehearse", "plan.yaml", "--seeds", "10")
    assert f"{odds['met']} of 10" in again.out
    assert "not met with" in again.out


def test_states_are_counted_apart_over_seeds(stage: Stage, seatrial: Command) -> None:
    """Of a test that never gives an answer: nothing to measure, a criterion that is not decided."""
    stage.behave("wide", elapsed="1m", fails="100%")
    component = stage.plan["components"][0]
    component["criteria"] = [
        {"criterion": "variability", "at_most": "5%", "tests": ["wide"]},
        {"criterion": "pass_rate", "at_least": "100%"},
    ]
    component["waivers"] = [
        {"reason": "r", "by": "b", "on": "2026-05-01", "criteria": ["pass_rate"]}
    ]
    done = seatrial("rehearse", "plan.yaml", "--seeds", "3", "--json")
    assert done.code == 1  # as it never had a right answer
    open_one, waived, every_test = json.loads(done.out)["odds"]
    assert every_test["not_met"] == 3
    states = ("met", "not_met", "undecided", "waived")
    assert [open_one[state] for state in states] == [0, 0, 3, 0]
    assert [waived[state] for state in states] == [0, 0, 0, 3]
    text = seatrial("rehearse", "plan.yaml", "--seeds", "3").out
    assert "- variability of wide: undecided with 3 seeds, first with 1: " in text
    row, *_ = [line.split() for line in text.splitlines() if line.startswith("wide ")]
    assert row == ["wide", "2", "0", *row[3:4], "100.0", *["0", "s"] * 2]  # none to take times of
    assert "missed" not in text


def test_failures_are_told_in_per_cent_and_times_in_seconds(
    stage: Stage, seatrial: Command
) -> None:
    stage.behave("wide", elapsed={"mean": "250s", "sd": "2s"}, fails="20%")
    words = ("--days", "0.25", "--json")
    done = seatrial("rehearse", "plan.yaml", *words)
    (wide,) = [one for one in json.loads(done.out)["trials"][0]["tests"] if one["test"] == "wide"]
    assert wide["accepted"] + wide["failed"] <= wide["accepted"] + wide["others"]
    ended = wide["accepted"] + wide["failed"]
    assert 0.1 < wide["failed"] / ended < 0.3
    assert wide["elapsed"] == pytest.approx(250, abs=2)
    assert wide["sd"] == pytest.approx(2, rel=0.5)
    text = seatrial("rehearse", "plan.yaml", "--days", "0.25").out
    head, *_ = [line.split() for line in text.splitlines() if line.startswith("test ")]
    row, *_ = [line.split() for line in text.splitlines() if line.startswith("wide ")]
    assert {"failed", "%", "mean", "(s)", "sd"} <= set(head)
    assert row[3:5] == [str(wide["failed"]), f"{100 * wide['failed'] / ended:.1f}"]
    assert f"{wide['elapsed']:.4g}" in row


def test_days_and_seed_and_component(stage: Stage, seatrial: Command) -> None:
    stage.component("after", tests=["wide"])
    words = ("--days", "0.01", "--seed", "7", "--component", "stability", "--json")
    done = seatrial("rehearse", "plan.yaml", *words)
    (trial,) = json.loads(done.out)["trials"]
    assert (trial["component"], trial["seed"]) == ("stability", 7)
    assert trial["seconds"] == pytest.approx(900, abs=1)  # 864 s, and what runs then ends


def test_a_seed_gives_the_same_whatever_the_name_and_the_time(
    stage: Stage, seatrial: Command
) -> None:
    """Before, the order of repeated runs was drawn by the trial's name and the time."""
    names = ["a", "b", "c", "d", "e"]
    for number, name in enumerate(names):
        stage.test(name, nodes=8)
        stage.behave(name, elapsed=f"{10 + number}s")
    stage.component("functionality", repeat=4, tests=names)

    def order(tag: str, seed: str) -> list[tuple[str, int]]:
        words = ("--component", "functionality", "--name", tag, "--seed", seed)
        assert seatrial("rehearse", "plan.yaml", *words).code == 0
        began, *found = journal.read(TrialFolder(stage.trials / tag).journal)
        return [(e.test, e.time - began.time) for e in found if isinstance(e, JobStarted)]

    first = order("one", "1")
    assert len(first) == 20
    assert order("another", "1") == first
    assert order("third", "2") != first


def test_days_too_few_for_any_run_are_told(stage: Stage, seatrial: Command) -> None:
    for test in ("wide", "small"):
        stage.test(test, build={"script": "make"})
        stage.behave(test, elapsed="1m", build="30m")
    done = seatrial("rehearse", "plan.yaml", "--days", "0.01")
    assert done.code == 1, done.said
    assert "--days 0.01: p-stability-rehearsed has no run" in done.err
    assert "has no run" not in seatrial("rehearse", "plan.yaml", "--days", "0.1").err


def test_it_says_what_the_metadata_targets_bore(stage: Stage, seatrial: Command) -> None:
    """Three copies of 400,000 open files and two of none, beside 300,000 of production."""
    production = [{"from": 0, "load": 300_000}, {"from": "5m", "load": 0}]
    stage.machine["file_systems"] = {
        "f5": {"path": "/f5", "targets": ["mdt0", "mdt1"], "safe_load": 1_400_000}
    }
    stage.machine["file_systems"]["f5"]["rehearsal"] = {"production": production}
    component = stage.plan["components"][0]
    component |= {"file_system": "f5", "targets": ["mdt1"], "caps": {"safe_load": False}}
    component["tests"]["wide"]["opens"] = 400_000
    done = seatrial("rehearse", "plan.yaml")
    text = " ".join(done.out.split())
    said = "- f5: highest 1.5 million open files on mdt1 (safe 1.4 million); above that 50.0 % of"
    assert said in text
    record = json.loads(seatrial("rehearse", "plan.yaml", "--seeds", "2", "--json").out)
    first, second = record["trials"][0]["metadata_targets"]
    assert (first["target"], first["highest"], first["above"]) == ("mdt0", 300_000, 0)
    assert (second["highest"], second["safe"]) == (1_500_000, 1_400_000)
    assert second["above"] == pytest.approx(0.5, abs=0.01)
    assert record["worst_loads"][0]["target"] == "mdt1"
    seeds = seatrial("rehearse", "plan.yaml", "--seeds", "2").out
    assert "- f5: highest 1.5 million open files on mdt1 with seed 1 (safe" in seeds
    compared = seatrial("rehearse", "--compare", "plan.yaml", "plan.yaml", "--seeds", "3").out
    assert "medians of 3 seeds" in compared
    assert "highest load of a target of f5, most of all seeds" in compared
    compared = seatrial("rehearse", "--compare", "plan.yaml", "plan.yaml").out
    rows = [" ".join(line.split()) for line in compared.splitlines()]
    assert "highest load of a target of f5 1.5 million 1.5 million" in rows
    assert "time a target of f5 is above safe 50.0 % 50.0 %" in rows


def test_what_was_left_out_of_a_log_is_said(stage: Stage, seatrial: Command) -> None:
    line = " ".join(["1", "0", "-1", "60", "8", *["-1"] * 13])
    (stage.folder / "log.swf").write_text(f"; a log\n{line}\nrubbish\n")
    stage.machine["rehearsal"]["background"] = {"swf": "log.swf", "cores_per_node": 8}
    done = seatrial("rehearse", "plan.yaml")
    assert "log.swf: 1 damaged line left out: not 18 numbers" in " ".join(done.out.split())
    (trial,) = json.loads(seatrial("rehearse", "plan.yaml", "--json").out)["trials"]
    assert len(trial["remarks"]) == 1


def test_plans_side_by_side(stage: Stage, seatrial: Command) -> None:
    (stage.folder / "other.yaml").write_text(stage.write().read_text())
    stage.plan["plan"] = "q"
    stage.plan["components"][0]["tests"]["wide"]["copies"] = 2
    done = seatrial("rehearse", "--compare", "other.yaml", "plan.yaml")
    rows = [line.split() for line in done.out.splitlines()]
    assert rows[0] == ["p", "q"]
    assert ["node-hours", "in", "accepted", "work", "100.0", "%", "75.0", "%"] in rows
    assert ["utilisation", "met", "100", "%", "not", "met", "75", "%"] in rows
    assert ["accepted", "wide", "30", "20"] in rows
    assert done.code == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("plan.yaml", "plan.yaml"), "add --compare"),
        (("--compare", "plan.yaml"), "name two plans"),
        (("none.yaml",), "no such file"),
        (("plan.yaml", "--component", "x"), "no component 'x'"),
        (("plan.yaml", "--name", "a/b"), "a tag is letters"),
        (("plan.yaml", "--days", "0"), "--days"),
        (("plan.yaml", "--days", "-1"), "--days"),
        (("plan.yaml", "--days", "nan"), "nan is not a finite number"),
        (("plan.yaml", "--days", "inf"), "--days"),
    ],
)
def test_what_cannot_be_rehearsed_is_told(
    stage: Stage, seatrial: Command, words: tuple[str, ...], said: str
) -> None:
    done = seatrial("rehearse", *words)
    assert done.code == 2, done.said
    assert said in done.err
    assert not list(stage.trials.glob("*"))


def test_a_bad_plan_is_told_with_its_lines(stage: Stage, seatrial: Command) -> None:
    stage.plan["components"][0]["tests"]["wide"]["copies"] = "many"
    stage.plan["machine"] = "./none.yaml"
    done = seatrial("rehearse", "plan.yaml")
    assert done.code == 2
    assert "plan.yaml:" in done.err
    assert "2 faults; nothing was done." in done.err


def test_killed_it_leaves_an_ordinary_journal(stage: Stage, seatrial: Command) -> None:
    stage.write()
    process = subprocess.Popen(
        [COMMAND, "rehearse", "plan.yaml", "--days", "300"],
        cwd=stage.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    path = stage.trials / "p-stability-rehearsed" / "journal.jsonl"
    until(lambda: path.exists() and path.stat().st_size > 0, "the first events")
    assert process.poll() is None
    process.kill()
    process.wait()
    reading = journal.read(path)
    events = list(reading)
    assert reading.damaged == 0
    assert isinstance(events[0], TrialStarted)
    assert not any(isinstance(event, TrialEnded) for event in events)
    trials = seatrial("trials")
    assert "interrupted" in trials.out
    resumed = seatrial("resume", "p-stability-rehearsed")
    assert resumed.code == 3
    assert "is a rehearsal" in resumed.err


def test_a_throttle_without_a_reading_is_open_and_it_says_so(
    stage: Stage, seatrial: Command
) -> None:
    stage.machine["gauges"] = {"load": {"command": "uptime"}}
    throttle = {"gauge": "load", "high": 5, "low": 1}
    stage.test("swept", parameters={"n": [4, 16]}, run={"script": "true", "nodes": "n"})
    stage.behave("swept", elapsed="1m")
    stage.component("more", tests=["*"], throttles=[throttle])
    done = seatrial("rehearse", "plan.yaml")
    assert done.code == 0, done.said
    assert "taken as open: throttles by load" in done.out
    assert "left out: swept{n=16}" in done.err
    assert done.out.count("Its runs:") == 1
    assert done.out.splitlines()[-1].startswith("          seatrial ")


def test_trials_are_listed_by_when_they_were_made(
    stage: Stage, seatrial: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rehearsal's second component begins, in virtual time, long after what is made next."""
    stage.component("after", tests=["wide"])
    assert seatrial("rehearse", "plan.yaml", "--days", "0.1", "--seed", "2").code == 0
    assert seatrial("rehearse", "plan.yaml", "--name", "last", "--component", "after").code == 0
    (latest,) = json.loads(seatrial("trials", "--limit", "1", "--format", "json").out)
    assert latest["tag"] == "last"
    monkeypatch.setattr("seatrial.show.text.screen_width", lambda: 80)
    lines = seatrial("trials").out.splitlines()
    assert any(line.startswith("p-stability-rehearsed ") for line in lines)
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].startswith("all rows: ") and "rehearsed" in lines[0]


def test_planned_and_achieved_shares_are_shown(stage: Stage, seatrial: Command) -> None:
    """Three runs of two nodes and two of one leave nothing of eight nodes."""
    done = seatrial("rehearse", "plan.yaml", "--json")
    (trial,) = json.loads(done.out)["trials"]
    shares = trial["node_shares"]
    assert {each["test"]: each["planned"] for each in shares["tests"]} == {
        "small": 0.25,
        "wide": 0.75,
    }
    achieved = {each["test"]: each["achieved"] for each in shares["tests"]}
    assert achieved == pytest.approx({"small": 0.25, "wide": 0.75}, abs=0.01)
    text = seatrial("rehearse", "plan.yaml").out
    assert "share of node-hours  planned  achieved" in text
    assert "wide                  75.0 %    75.0 %" in text
    assert "share of wide, planned" in seatrial("rehearse", "--compare", *["plan.yaml"] * 2).out


def on_this_host(stage: Stage) -> None:
    """Two cores, a run of one of them in each of two tests."""
    stage.machine |= {"scheduler": "local", "nodes": [{"names": "here", "cores": 2}]}
    del stage.machine["rehearsal"]
    stage.plan["components"].clear()
    for name, elapsed in {"one": "20s", "other": "30s"}.items():
        stage.test(name)
        stage.behave(name, elapsed=elapsed)
    tests = {"one": {"copies": 1}, "other": {"fill": True}}
    stage.component("shared", kind="sustained", duration="20m", tests=tests)
    stage.write()


def test_on_this_host_runs_share_its_cores_as_in_a_trial(stage: Stage, seatrial: Command) -> None:
    """Before, each had the whole host: 50 % were planned, and the first test had 100 %."""
    on_this_host(stage)
    found = json.loads(seatrial("rehearse", "plan.yaml", "--json").out)
    (trial,) = found["trials"]
    had = {each["test"]: each["achieved"] for each in trial["node_shares"]["tests"]}
    assert had == pytest.approx({"one": 0.5, "other": 0.5}, abs=0.01)
    assert trial["utilisation"] == pytest.approx(1, abs=0.01)
    said = " ".join(found["assumed"])
    assert "share the cores" in said
    assert "whole nodes" not in said
    assert "queue" not in said
    assert "poll" not in said
    folder = TrialFolder(stage.trials / trial["trial"])
    seen = status(folder.record(), folder.cases(), journal.read(folder.journal)).node_shares
    assert seen is not None
    assert {each.test: each.achieved for each in seen.tests} == pytest.approx(had)


@pytest.mark.parametrize("fails", [{}, {"node_failures": "3m", "repair": "1m"}])
def test_a_host_that_fails_ends_all_runs_on_it(
    stage: Stage, seatrial: Command, fails: dict[str, str]
) -> None:
    on_this_host(stage)
    stage.machine["rehearsal"] = {**fails, "slow_nodes": 1, "slow_by": 2}
    stage.write()
    done = json.loads(seatrial("rehearse", "plan.yaml", "--json").out)
    (trial,) = done["trials"]
    elapsed = {test["test"]: test["elapsed"] for test in trial["tests"]}
    assert elapsed == pytest.approx({"one": 40, "other": 60})
    assert bool(trial["uses"]["failed"]) == bool(fails)


def test_a_test_that_only_fills_has_no_planned_share(stage: Stage, seatrial: Command) -> None:
    stage.test("filler")
    stage.behave("filler", elapsed="20s")
    stage.plan["components"][0]["tests"]["filler"] = {"fill": True}
    stage.write()
    said = seatrial("rehearse", "plan.yaml").out
    (row,) = [
        line.split()
        for line in said.splitlines()
        if line.startswith("filler  ") and "fill " in line
    ]
    assert row[:2] == ["filler", "fill"], said


def test_each_event_is_told_with_what_it_changes_and_nothing_else(
    stage: Stage, seatrial: Command
) -> None:
    stage.plan["rehearsal"]["events"] = [
        {"from": "1m", "to": "2m", "slow_by": 2, "tests": ["small"], "why": "cooling"},
        {"from": "2m", "to": "3m", "fails": "5%", "hangs": "1%"},
        {"from": "3m", "to": "4m", "keeps": "30s", "nodes": "n[1-2]"},
        {"from": "4m", "to": "5m", "refused": "10%"},
        {"from": "5m", "to": "6m", "held": True},
    ]
    stage.write()
    assumed = json.loads(seatrial("rehearse", "plan.yaml", "--json").out)["assumed"]
    assert [words for words in assumed if words.startswith("From ")] == [
        "From 1m to 2m, small: 2 times the elapsed time (cooling).",
        "From 2m to 3m, all tests: 5% more fail; 1% more hang.",
        "From 3m to 4m, all tests on n[1-2]: nodes are kept 30s.",
        "From 4m to 5m, all tests: 10% of the submissions are refused.",
        "From 5m to 6m, all tests: jobs are held.",
    ]


def test_what_is_assumed_of_the_machine_is_said(stage: Stage, seatrial: Command) -> None:
    stage.plan["rehearsal"]["assumed"] = ["Nothing is known."]
    stage.machine["rehearsal"] = {"poll": "7s", "start_delay": "3s", "node_failures": "2d"}
    first, *assumed = json.loads(seatrial("rehearse", "plan.yaml", "--json").out)["assumed"]
    assert first == "Nothing is known."
    said = " ".join(assumed)
    for value in ("1 s after its submission", "3 s after", "every 7 s", "every 2 d", "4 h"):
        assert value in said
    text = seatrial("rehearse", "plan.yaml").out
    assert "- Starts and ends of jobs are noticed at a poll, every 7 s." in text
