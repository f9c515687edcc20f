"""`seatrial judge`: verdicts that were made by a wrong check are made again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from seatrial.execute.second_judgement import is_of_checks
from seatrial.journal.events import (
    JobEnded,
    MetricRecorded,
    ReferencesCorrected,
    RunJudged,
    RunJudgedAgain,
    ScriptEnded,
)
from seatrial.journal.trial import RecordedRun
from seatrial.model.codes import FAILED, LOST, WRONG_ANSWER, Code
from tests.programs import Workplace

WRONG: list[dict[str, Any]] = [{"name": "energy", "value": r"^energy (\S+)", "equals": 9}]
RIGHT: list[dict[str, Any]] = [{"name": "energy", "value": r"^energy (\S+)", "equals": 8.25}]
REASON = ("--reason", "the energy was of another edge")


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    place = Workplace(tmp_path)
    place.local()
    return place


def write(place: Workplace, verify: list[dict[str, Any]], **more: Any) -> None:
    place.test("lulesh", "echo energy 8.25", verify=verify, **more)


def listed(place: Workplace, *words: str) -> list[dict[str, Any]]:
    done = place.seatrial("runs", "--trial", "t", "--format", "json", *words)
    found: list[dict[str, Any]] = json.loads(done.out)
    return found


def test_a_corrected_check_gives_new_verdicts_and_keeps_the_old_ones(place: Workplace) -> None:
    write(place, WRONG, repeat=3)
    place.test("sound")
    assert place.run("--name", "t").code == 1
    (before,) = {event.time for event in place.events("t", RunJudged)[-1:]}
    write(place, RIGHT, repeat=3)
    (old,) = json.loads(place.seatrial("trials", "--format", "json").out)
    shown = place.seatrial("judge", "t")
    assert (shown.code, place.count(RunJudgedAgain)) == (0, 0)
    assert "4 runs would be judged again, 3 changed: 3 wrong answer -> pass" in shown.out
    done = place.seatrial("judge", "t", "--again", *REASON)
    assert (done.code, done.err) == (0, "")
    events = place.events("t", RunJudgedAgain)
    assert [(event.test, event.verdict, event.before) for event in events] == [
        ("lulesh", "pass", 2)
    ] * 3
    assert {event.why for event in events} == {"the energy was of another edge"}
    assert all("@" in event.by and event.time > before for event in events)
    assert len({event.checks for event in events}) == len({e.references for e in events}) == 1
    assert all(len(event.checks) == len(event.references) == 64 for event in events)
    runs = {run["run_id"]: run for run in listed(place)}
    again = [runs[event.run_id] for event in events]
    assert {(run["verdict"], run["first_verdict"], run["why"]) for run in again} == {
        ("pass", "wrong answer", "")
    }
    others = [run for run in runs.values() if run not in again]
    assert [(run["verdict"], run["first_verdict"]) for run in others] == [("pass", None)]
    assert listed(place, "--failed") == []
    (trial,) = json.loads(place.seatrial("trials", "--format", "json").out)
    assert (trial["passed"], trial["failed"]) == (4, 0)
    assert (trial["last"], trial["elapsed"]) == (old["last"], old["elapsed"])  # not stretched


def test_it_is_idempotent_and_may_change_again(place: Workplace) -> None:
    write(place, WRONG)
    place.run("--name", "t")
    write(place, RIGHT)
    assert place.seatrial("judge", "t", "--again", *REASON).code == 0
    journal = place.trial().journal.read_bytes()
    assert "none changed" in place.seatrial("judge", "t", "--again", *REASON).out
    assert place.trial().journal.read_bytes() == journal
    write(place, WRONG)
    assert place.seatrial("judge", "t", "--again", *REASON).code == 1
    (run,) = listed(place)
    assert (run["verdict"], run["first_verdict"]) == ("wrong answer", "wrong answer")
    assert [event.before for event in place.events("t", RunJudgedAgain)] == [2, 0]


def test_the_trial_goes_on_with_the_last_verdicts(place: Workplace) -> None:
    write(place, WRONG)
    place.run("--name", "t")
    write(place, RIGHT)
    place.seatrial("judge", "t", "--again", *REASON)
    done = place.resume()
    assert (done.code, "1 passed" in done.out) == (0, True)
    place.audit()
    (trial,) = json.loads(place.seatrial("trials", "--format", "json").out)
    assert trial["state"] == "ended"


def test_verdicts_that_are_not_of_a_check_are_not_touched(place: Workplace) -> None:
    place.test("slow", "sleep 60", run={"walltime": "1s"}, verify=[{"contains": "x"}])
    place.test("bad", "exit 3", verify=[{"contains": "x"}])
    place.run("--name", "t")
    place.test("slow", "true")
    place.test("bad", "true", verify=[{"exit_code": 3}])
    done = place.seatrial("judge", "t", "--again", *REASON)
    assert "1 run judged again, 1 changed: 1 failed -> pass" in done.out
    assert [event.test for event in place.events("t", RunJudgedAgain)] == ["bad"]


@pytest.mark.parametrize(
    ("code", "job_end", "of_checks"),
    [(WRONG_ANSWER, 0, True), (LOST, 0, False), (FAILED, 0, True), (FAILED, FAILED.number, False)],
)
def test_a_verdict_of_a_check_is_told_from_others(
    code: Code, job_end: int, of_checks: bool
) -> None:
    without, run = RecordedRun(run_id="r0"), RecordedRun(run_id="r1")
    run.apply(ScriptEnded(exit_code=0))
    for each in (without, run):
        each.apply(JobEnded(code=job_end))
        each.apply(RunJudged(code=code.number))
    assert is_of_checks(run) is of_checks
    assert not is_of_checks(without)


def test_what_is_gone_cannot_be_judged_and_keeps_its_verdict(place: Workplace) -> None:
    write(place, WRONG)
    place.test("left", "echo 1 > out", verify=[{"contains": "1", "in": "out"}])
    place.test("more", "echo 1", verify=[{"contains": "2"}])
    place.run("--name", "t")
    shutil.rmtree(place.run_folder("lulesh"))
    (place.run_folder("left") / "out").unlink()
    write(place, RIGHT)
    place.test("left", "echo 1 > out", verify=[{"contains": "2", "in": "out"}])
    place.test("more", "echo 1", verify=[{"contains": "1"}, {"file": "never"}])
    done = place.seatrial("judge", "t", "--again", *REASON)
    assert done.code == 1
    assert "0 runs judged again, none changed" in done.out
    assert (
        "1 run keeps its verdict, as it cannot be judged again: its directory is gone" in done.out
    )
    assert "out is not there, and whether the run wrote it is not known" in done.out
    assert "never is not there" in done.out
    assert not place.count(RunJudgedAgain)


def test_outputs_that_keep_removed_cannot_be_judged(place: Workplace) -> None:
    """Whatever the verdict was: here a wrong one, so that it does not turn into another."""
    about: dict[str, Any] = {"keep": {"runs": "none"}}
    for name in ("file", "function", "stdout"):
        check = {"contains": "2", "in": "out" if name == "file" else "stdout"}
        place.test(name, "echo 1 > out; echo 1", verify=[check], **about)
    place.run("--name", "t")
    place.test("file", "", verify=[{"contains": "1", "in": "out"}])
    place.test("function", "", verify=[{"python": "a.py:check"}])
    (place.suite / "function/a.py").write_text("def check(run, names): return 'no'\n")
    place.test("stdout", "", verify=[{"contains": "1"}])
    done = place.seatrial("judge", "t", "--again", *REASON)
    assert "1 run judged again, 1 changed: 1 wrong answer -> pass" in done.out
    assert [event.test for event in place.events("t", RunJudgedAgain)] == ["stdout"]
    assert "files of it were removed by keep" in done.out
    assert "out is not there, and whether the run wrote it is not known" in done.out


def test_figures_that_were_recorded_stay_and_missing_ones_are_added(place: Workplace) -> None:
    metrics = {
        "kept": {"find": r"^kept (\S+)", "unit": "s", "better": "lower"},
        "found": {"find": r"^fuond (\S+)", "unit": "s", "better": "lower"},
    }
    script = "echo kept 5; echo kept_too 7; echo found 6"
    place.test("rates", script, metrics=metrics)
    place.run("--name", "t")
    metrics["kept"]["find"], metrics["found"]["find"] = r"^kept_too (\S+)", r"^found (\S+)"
    place.test("rates", script, metrics=metrics)
    references = place.folder / "other.yaml"
    references.write_text(
        "references:\n  - {test: rates, metric: kept, unit: s, max: 6}\n"
        "  - {test: rates, metric: found, unit: s, max: 5}\n"
    )
    done = place.seatrial("judge", "t", "--again", "--references", "other.yaml", *REASON)
    assert "1 no figure -> performance" in done.out
    figures = place.events("t", MetricRecorded)
    assert [(event.metric, event.value) for event in figures] == [("kept", 5.0), ("found", 6.0)]
    (event,) = place.events("t", RunJudgedAgain)
    assert event.reason == "found 6 s is above its maximum 5 s"
    (run,) = listed(place)
    assert run["metrics"] == {
        "kept": {"value": 5.0, "unit": "s"},
        "found": {"value": 6.0, "unit": "s"},
    }


def test_figures_are_added_where_the_verdict_stays_and_the_trial_is_not_longer(
    place: Workplace,
) -> None:
    script = "echo rate 5; echo energy 8.25"
    metrics = {"rate": {"find": r"^rate (\S+)", "unit": "s", "better": "lower"}}
    place.test("right", script)
    place.test("wrong", script, verify=WRONG)
    place.test("early", script, metrics=metrics)
    place.run("--name", "t")
    (old,) = json.loads(place.seatrial("trials", "--format", "json").out)
    place.test("right", script, metrics=metrics)
    place.test("wrong", script, verify=WRONG, metrics=metrics)
    shown = place.seatrial("judge", "t").out
    assert "3 runs would be judged again, none changed\n" in shown
    assert "figures that had not been found would be added\nrecord it: seatrial" in shown
    done = place.seatrial("judge", "t", "--again", *REASON, "--format", "json")
    added = {one["case"].split("@")[0]: one["added"] for one in json.loads(done.out)}
    assert added["right"] == ["rate"] and added["early"] == []
    assert not place.events("t", RunJudgedAgain)
    rates = {run["test"]: run["metrics"].get("rate") for run in listed(place)}
    assert rates["right"] == rates["early"] == {"value": 5.0, "unit": "s"}
    (trial,) = json.loads(place.seatrial("trials", "--format", "json").out)
    assert (trial["last"], trial["elapsed"]) == (old["last"], old["elapsed"])
    verdicts = {event.run_id: event.time for event in place.events("t", RunJudged)}
    assert all(event.time <= verdicts[event.run_id] for event in place.events("t", MetricRecorded))
    journal = place.trial().journal.read_bytes()
    assert "added" not in place.seatrial("judge", "t", "--again", *REASON).out
    assert place.trial().journal.read_bytes() == journal


def test_an_expected_value_may_be_added_as_a_parameter(place: Workplace) -> None:
    script = "echo energy $((edge * edge)).25"
    place.test("lulesh", script, verify=WRONG, parameters={"edge": [2, 3, 4]})
    place.run("--name", "t")
    right = [{"name": "energy", "value": r"^energy (\S+)", "equals": "want"}]
    about: dict[str, Any] = {"edge": [2, 3, 4, 5], "want": [4.25, 9.25, 16.25, 25.25]}
    zipped: dict[str, Any] = {"parameters": about, "zip": [["edge", "want"]]}
    place.test("lulesh", script, verify=right, **zipped)
    done = place.seatrial("judge", "t", "--again", *REASON)
    assert (done.code, "3 wrong answer -> pass" in done.out) == (0, True)
    about["edge"][0] = 7
    place.test("lulesh", script, verify=right, **zipped)
    done = place.seatrial("judge", "t", "--again", *REASON)
    assert done.code == 2
    assert (
        "verify[0].equals: 'want': want has no value here, in the case lulesh{edge=2}" in done.err
    )


def test_a_slow_pattern_and_a_function_judge_again(place: Workplace) -> None:
    write(place, WRONG)
    place.run("--name", "t")
    write(place, [{"python": "answer.py:check"}, {"absent": "x", "in": "stdout"}])
    (place.suite / "lulesh/answer.py").write_text("def check(run, names): return 'no'\n")
    first = place.seatrial("judge", "t", "--again", *REASON)
    assert "answer.py:check: no" in first.out
    (place.suite / "lulesh/answer.py").write_text("def check(run, names): return ''\n")
    assert place.seatrial("judge", "t", "--again", *REASON).code == 0
    one, two = place.events("t", RunJudgedAgain)
    assert one.checks != two.checks


# ---- what is refused ------------------------------------------------------------------------


def test_without_a_reason_nothing_is_recorded(place: Workplace) -> None:
    write(place, WRONG)
    place.run("--name", "t")
    done = place.seatrial("judge", "t", "--again")
    assert (done.code, "--reason" in done.err) == (2, True)


def test_a_trial_that_runs_is_refused(place: Workplace) -> None:
    place.test("slow", "echo; sleep 60")
    with place.start_run("--name", "t") as driving:
        driving.until(lambda: bool(place.ran()), "a run")
        done = place.seatrial("judge", "t", "--again", *REASON)
        assert done.code == 3
        assert "this trial is being run by" in done.err


def test_an_output_that_was_changed_keeps_its_verdict(place: Workplace) -> None:
    write(place, WRONG)
    place.run("--name", "t")
    (place.run_folder("lulesh") / "stdout").write_text("energy 9.00\n")
    done = place.seatrial("judge", "t", "--again", *REASON)
    assert "stdout was changed after the run was judged" in done.said
    assert not place.events("t", RunJudgedAgain)


def test_a_damaged_journal_is_refused(place: Workplace) -> None:
    write(place, WRONG)
    place.run("--name", "t")
    write(place, RIGHT)
    journal = place.trial().journal
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:3], b"torn\n", *lines[3:]]))
    done = place.seatrial("judge", "t", "--again", *REASON)
    assert done.code == 3
    assert ":4: 2 damaged lines" in done.err


def damage(place: Workplace, event: str, run_id: str) -> None:
    """Change one bit of an event of a run."""
    journal = place.trial().journal
    lines = journal.read_bytes().splitlines(keepends=True)
    of = (f'"{event}"'.encode(), f'"{run_id}"'.encode())
    (at,) = (n for n, line in enumerate(lines) if all(word in line for word in of))
    lines[at] = lines[at].replace(b'"time":1', b'"time":3')
    journal.write_bytes(b"".join(lines))


def test_a_correction_stands_where_the_line_of_the_first_verdict_is_damaged(
    place: Workplace,
) -> None:
    write(place, WRONG, repeat=2)
    place.test("other", "echo energy 8.25", verify=WRONG)
    place.run("--name", "t")
    write(place, RIGHT, repeat=2)
    place.seatrial("judge", "t", "--again", *REASON)
    first = place.events("t", RunJudgedAgain)[0]
    damage(place, "check_end", first.run_id)
    done = place.resume()
    assert "2 passed, 1 wrong answer" in done.out
    runs = {run["run_id"]: run for run in listed(place)}
    found = runs[first.run_id]
    assert (found["verdict"], found["first_verdict"]) == ("pass", "wrong answer")
    last = place.events("t", RunJudgedAgain)[-1]
    assert (last.run_id, last.by, last.why) == (first.run_id, first.by, first.why)
    assert (last.before, last.checks) == (first.before, first.checks)
    (trial,) = json.loads(place.seatrial("trials", "--format", "json").out)
    assert (trial["passed"], trial["failed"]) == (2, 1)
    again = place.resume()
    assert "2 passed, 1 wrong answer" in again.out or "is complete" in again.out
    assert len(place.events("t", RunJudgedAgain)) == 3


def test_a_correction_is_not_of_a_run_that_runs_again(place: Workplace) -> None:
    """Its first verdict and its output were lost, and the trial's own checks judge what runs."""
    write(place, WRONG)
    place.run("--name", "t")
    write(place, RIGHT)
    place.seatrial("judge", "t", "--again", *REASON)
    path = place.run_folder("lulesh")
    damage(place, "check_end", path.name)
    damage(place, "job_end", path.name)
    (path / "events.jsonl").unlink()
    assert "1 wrong answer" in place.resume().out
    (run,) = listed(place)
    assert (run["verdict"], run["first_verdict"]) == ("wrong answer", None)
    assert len(place.events("t", RunJudgedAgain)) == 1


def test_another_place_or_a_lost_file_is_refused(place: Workplace) -> None:
    write(place, WRONG)
    place.run("--name", "t")
    other = place.folder / "other"
    (other / "suite").mkdir(parents=True)
    shutil.copytree(place.suite, other / "suite", dirs_exist_ok=True)
    with_other = place.seatrial("judge", "t", "--with", "other/suite")
    assert with_other.code == 1
    shutil.rmtree(place.suite / "lulesh")
    write(place, WRONG)
    (place.suite / "lulesh").rename(place.suite / "lulash")
    done = place.seatrial("judge", "t")
    assert (done.code, "there is no test lulesh in suite" in done.err) == (2, True)
    done = place.seatrial("judge", "t", "--references", "no.yaml")
    assert done.code == 2


def test_a_copied_trial_has_files_of_its_own(place: Workplace) -> None:
    place.test("lulesh", "echo energy 8.25; echo x > big", verify=RIGHT)
    place.run("--name", "t")
    (run_id,) = place.ran()
    copy = place.folder / "copied"
    shutil.copytree(place.trials, copy)
    own = place.trial().run("lulesh", run_id)
    theirs = copy / "t" / own.relative_to(place.trial().path)
    (theirs / "stdout").write_text("energy 9.75\n")
    assert place.seatrial("--trials", "copied", "store", "rebuild").code == 0
    shown = place.seatrial("--trials", "copied", "show", run_id)
    assert (str(theirs) in shown.out, str(own) in shown.out) == (True, False)
    assert ("energy 9.75" in shown.out, "energy 8.25" in shown.out) == (True, False)
    judged = place.seatrial("--trials", "copied", "judge", "t")
    assert "stdout was changed after the run was judged" in judged.said
    exported = place.seatrial("--trials", "copied", "export", "t", "--format", "junit").out
    assert (str(theirs) in exported, str(own) in exported) == (True, False)
    assert str(own) in place.seatrial("show", run_id).out


def test_a_run_of_a_copied_store_is_told_by_the_paths_of_its_trials(place: Workplace) -> None:
    place.test("lulesh")
    place.run("--name", "t")
    (run_id,) = place.ran()
    copy = place.folder / "copied"
    shutil.copytree(place.trials, copy)
    done = place.seatrial("--trials", "copied", "show", run_id)
    assert (done.code, "seatrial store rebuild" in done.err) == (2, True)
    named = [line.split()[0] for line in done.err.splitlines() if line.startswith("  ")]
    assert named == [f"{copy}/t/{run_id}", f"{place.trials}/t/{run_id}"]
    assert place.seatrial("--trials", "copied", "show", named[0]).code == 0


def test_a_copied_trial_that_goes_on_removes_no_files_of_the_original(place: Workplace) -> None:
    place.test("lulesh", "echo x > big; exit 1", repeat=3, keep={"runs": "none"})
    place.local(cores=1)
    place.run("--name", "t", "--max-failures", "1")
    own = place.trial().run("lulesh", place.ran()[0])
    shutil.copytree(place.trials, place.folder / "copied")
    (own / "big").write_text("again")
    assert place.seatrial("--trials", "copied", "resume", "t").code == 1
    assert (own / "big").exists()


# ---- what people see --------------------------------------------------------------------------


def test_the_old_verdict_is_shown_with_who_and_why(place: Workplace) -> None:
    write(place, WRONG)
    place.run("--name", "t")
    write(place, RIGHT)
    place.seatrial("judge", "t", "--again", *REASON)
    (event,) = place.events("t", RunJudgedAgain)
    shown = place.seatrial("show", event.run_id).out
    was = "it was     wrong answer: energy: stdout:1: the value is 8.25, not 9; judged again "
    assert was in shown
    assert f"by {event.by}: the energy was of another edge\n" in shown
    assert f"check_again           pass; by {event.by}: the energy was of another edge" in shown
    former = json.loads(place.seatrial("show", event.run_id, "--format", "json").out)
    assert former["former_verdict"]["verdict"] == "wrong answer"
    assert former["run"]["judged"] < former["former_verdict"]["time"]
    junit = place.seatrial("export", "t", "--format", "junit").out
    assert 'failures="0"' in junit
    assert '<property name="first verdict" value="wrong answer"/>' in junit


def test_criteria_follow_corrected_references(place: Workplace) -> None:
    """And the same references, read from their file anew, are no correction."""
    metrics = {"rate": {"find": r"^rate (\S+)", "unit": "s", "better": "lower"}}
    about: dict[str, Any] = {"metrics": metrics, "parameters": {"p": [1, 2]}}
    entry = "  - {test: rates, metric: rate, unit: s, value: %s, where: {p: 1}}\n"
    file = place.machine.parent / "here/references.yaml"
    file.parent.mkdir()
    file.write_text("references:\n" + entry % 6)
    place.test("rates", "echo rate 6; echo energy 8.25", verify=WRONG, **about)
    component: dict[str, Any] = {"component": "t", "settings": {"p": 1}}
    component["criteria"] = [{"criterion": "figure_of_merit", "metric": "rate"}]
    whole = {"plan": "p", "machine": str(place.machine), "suites": [str(place.suite)]}
    (place.folder / "plan.yaml").write_text(yaml.safe_dump({**whole, "components": [component]}))
    assert place.seatrial("accept", "plan.yaml", "-q").code == 1
    place.test("rates", "echo rate 6; echo energy 8.25", verify=RIGHT, **about)
    told = "the references are not those of before"
    done = place.seatrial("judge", "p-t", "--again", *REASON)
    assert "1 wrong answer -> pass" in done.out and told not in done.out
    assert (figure_of_merit(place), remarks(place)) == ("met", [])
    (place.folder / "report.html").rename(place.folder / "first.html")
    (old,) = json.loads(place.seatrial("trials", "--format", "json").out)
    file.write_text("references:\n" + entry % 3)
    assert told in place.seatrial("judge", "p-t").out
    assert (figure_of_merit(place), remarks(place)) == ("met", []), "nothing was recorded"
    done = place.seatrial("judge", "p-t", "--again", *REASON)
    assert "1 pass -> performance" in done.out and told in done.out
    (correction,) = place.events("p-t", ReferencesCorrected)
    (judged,) = place.events("p-t", RunJudgedAgain)[1:]
    assert correction.references == judged.references and len(correction.references) == 64
    assert figure_of_merit(place) == "not met"
    (remark,) = remarks(place)
    assert remark.startswith(f"{correction.by} corrected the references") and REASON[1] in remark
    done = place.seatrial("accept", "status", "plan.yaml")
    assert "correct the references" in done.out
    assert "3 s" in place.seatrial("show", judged.run_id).out
    assert json.loads(place.seatrial("trials", "--format", "json").out)[0]["last"] == old["last"]
    verified = place.seatrial("report", "verify", "first.html")
    assert verified.code == 3, "a correction is no forgery: " + verified.said
    file.write_text("references:\n" + entry % 6)
    place.seatrial("judge", "p-t", "--again", *REASON)
    assert (figure_of_merit(place), remarks(place)) == ("met", [])


def figure_of_merit(place: Workplace) -> str:
    done = place.seatrial("accept", "status", "plan.yaml", "--format", "json")
    (trial,) = json.loads(done.out)["trials"]
    (results,) = [each for each in trial["criteria"] if each[0]["criterion"] == "figure_of_merit"]
    return str(results[0]["state"])


def remarks(place: Workplace) -> list[str]:
    assert place.seatrial("report", "write", "p-t", "-o", "report.html").code == 0
    assert place.seatrial("report", "write", "p-t", "-o", "report.json").code == 0
    (part,) = json.loads((place.folder / "report.json").read_text())["components"]
    found: list[str] = part["remarks"]
    return found


def test_the_report_lists_what_was_judged_again(place: Workplace) -> None:
    write(place, WRONG, repeat=2)
    place.run("--name", "t")
    write(place, RIGHT, repeat=2)
    place.seatrial("judge", "t", "--again", *REASON)
    assert place.seatrial("report", "write", "t", "-o", "report.json").code == 0
    (part,) = json.loads((place.folder / "report.json").read_text())["components"]
    tables = {table["title"]: table for table in part["tables"]}
    assert "Runs that did not pass" not in tables
    ((test, first, verdict, runs, when, by, why),) = tables["Runs that were judged again"]["rows"]
    event = place.events("t", RunJudgedAgain)[-1]
    assert (test, first, verdict, runs) == ("lulesh", "wrong answer", "pass", 2)
    assert (by, why) == (event.by, "the energy was of another edge")
    assert when == event.time or isinstance(when, str)
