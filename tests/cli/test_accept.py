"""`seatrial accept`: run, resume, status, pause, extend, abandon, admit; what they refuse."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import pytest
import yaml

from seatrial.execute.requests import Request, ask
from seatrial.journal.events import (
    AlertRaised,
    NodeAdmitted,
    RequestRefused,
    RunJudged,
    RunSubmitted,
    TestAdmitted,
    TestStopped,
    TrialAbandoned,
    TrialEnded,
    TrialExtended,
    TrialPaused,
    TrialResumed,
    TrialStarted,
)
from tests.execute import plans
from tests.execute.plans import TAG, accept, audit, control, ends, passed, start, write_plan
from tests.programs import Workplace


@pytest.fixture
def place(place: Workplace) -> Workplace:
    place.constants = {"execute.requests.LOOK_SECONDS": 0.05}
    return place


def short(place: Workplace, name: str, script: str = "sleep 0.3", **keys: Any) -> None:
    """A test whose runs are so long that few of them fill a trial."""
    plans.short(place, name, script, **keys)


def test_a_plan_runs_to_its_end_and_its_criteria_decide(place: Workplace) -> None:
    short(place, "a", "sleep 0.1")
    criteria: list[dict[str, object]] = [{"criterion": "pass_rate", "at_least": "99%"}]
    write_plan(place, criteria=criteria)
    done = accept(place)
    assert done.code == 0, done.said
    assert "pass rate" in done.out
    assert passed(place) > 5
    audit(place)
    assert "p-mix is complete" in accept(place).out
    criteria.append({"criterion": "accepted_runs", "at_least": 10_000})
    write_plan(place, criteria=criteria)
    again = accept(place)
    assert again.code == 0, "a trial is judged by what it was made with"
    changed = "p-mix: its plan changed since: the criteria; it is judged by what it was made with"
    assert changed in again.out
    assert changed in control(place, "status").out
    refused = control(place, "abandon", "by mistake")
    assert refused.code == 2, refused.said
    assert "it is complete, and cannot be abandoned" in refused.err
    heads = control(place, "status").out.splitlines()
    assert any(line.startswith("component") and line.endswith("accepted") for line in heads)
    shown = place.seatrial("accept", "status", "plan.yaml", "--format", "json")
    assert shown.code == 0
    (one,) = json.loads(shown.out)["trials"]
    assert (one["tag"], one["state"], one["verdict"]) == (TAG, "ended", "met")
    for words in (["trials"], ["runs", "--trial", TAG], ["show", f"{TAG}/{ends(place)[0].run_id}"]):
        assert place.seatrial(*words).code == 0, words


def test_a_complete_trial_that_lost_a_verdict_is_resumed(place: Workplace) -> None:
    short(place, "a")
    write_plan(place)
    assert accept(place).code == 0
    verdicts = place.verdicts(TAG)
    journal = place.trial(TAG).journal
    (first, *_) = [line for line in journal.read_bytes().splitlines() if b'"check_end"' in line]
    journal.write_bytes(journal.read_bytes().replace(first, b"x" + first[1:]))
    run = json.loads(first)["run_id"]
    assert run not in {event.run_id for event in ends(place)}
    done = accept(place)
    assert done.code == 3, done.said
    assert "1 line of the journal cannot be read" in done.out, "what else it said is not known"
    assert run in {event.run_id for event in ends(place)}, done.said
    assert place.verdicts(TAG) == verdicts
    assert f"{TAG} is complete" in accept(place).out


def test_components_and_phases_are_run_in_order(place: Workplace) -> None:
    short(place, "a")
    write_plan(place)
    plan = yaml.safe_load((place.folder / "plan.yaml").read_text())
    plan["phases"] = [{"phase": "one"}, {"phase": "two"}]
    criteria = [{"criterion": "pass_rate", "at_least": "100%"}]
    plan["components"] = [
        {"component": "vendor", "repeat": 2, "criteria": criteria},
        {"component": "bad", "tests": ["a"], "phases": ["two"],
         "criteria": [{"criterion": "accepted_runs", "at_least": 5}]},
    ]  # fmt: skip
    (place.folder / "plan.yaml").write_text(yaml.safe_dump(plan))
    told = place.seatrial("accept", "plan.yaml", "--dry-run")
    assert told.code == 0, told.said
    assert [line.split(":")[0] for line in told.out.splitlines()] == [
        "p-vendor-one", "p-vendor-two", "p-bad-two"
    ]  # fmt: skip
    assert not list(place.trials.glob("*")), "a dry run makes nothing"
    first = accept(place, "--component", "vendor", "--phase", "one")
    assert first.code == 0, first.said
    assert place.count(RunJudged, tag="p-vendor-one") == 2
    done = accept(place)
    assert done.code == 1, done.said
    assert place.count(RunJudged, tag="p-vendor-one") == 2, "what is complete stays"
    assert place.count(RunJudged, tag="p-bad-two") == 1
    shown = control(place, "status").out
    assert "accepted  " not in shown and "accepted over" not in shown, "no result of such a kind"
    assert accept(place, "--component", "none").code == 2


def test_each_application_alone_and_then_at_full_machine(place: Workplace) -> None:
    short(place, "a")
    write_plan(place)
    plan = yaml.safe_load((place.folder / "plan.yaml").read_text())
    plan["components"] = [
        {"component": "speed", "kind": "isolated_then_full", "tests": {"a": {"alone": 2}},
         "criteria": [{"criterion": "accepted_runs", "at_least": 4}]}
    ]  # fmt: skip
    (place.folder / "plan.yaml").write_text(yaml.safe_dump(plan))
    done = accept(place)
    assert done.code == 0, done.said
    submitted = place.events("p-speed", RunSubmitted)
    assert [event.stage for event in submitted] == ["alone", "alone", "full", "full"]


def test_pause_stops_the_clock_and_accept_goes_on(place: Workplace) -> None:
    short(place, "a")
    write_plan(place, "60s")
    with start(place) as driving:
        driving.until(lambda: passed(place) > 3, "runs")
        asked = control(place, "pause")
        assert asked.code == 0, asked.said
        assert "asked to pause" in asked.out
        done = driving.end()
    assert done.code == 3, done.said
    assert "seatrial accept plan.yaml" in done.out
    audit(place)
    (paused,) = place.events(TAG, TrialPaused)
    launched = [e.time for e in place.events(TAG, RunSubmitted)]
    assert max(launched) <= paused.time, "nothing is started after the pause"
    assert control(place, "status").code == 3
    assert "it is paused" in control(place, "pause").out
    assert place.count(TrialPaused, tag=TAG) == 1
    before = passed(place)
    with place.start("accept", "resume", "plan.yaml") as driving:
        driving.until(lambda: passed(place) > before, "it to continue")
    assert place.count(TrialResumed, tag=TAG) == 1


def test_paused_time_does_not_count(place: Workplace) -> None:
    short(place, "a")
    write_plan(place, "3s")
    with start(place) as driving:
        driving.until(lambda: passed(place) > 0, "runs")
        ask(place.trial(TAG), Request(request="pause"))
        assert driving.end().code == 3
    (began,) = place.events(TAG, TrialStarted)
    (paused,) = place.events(TAG, TrialPaused)
    assert accept(place).code == 0
    (resumed,) = place.events(TAG, TrialResumed)
    (ended,) = place.events(TAG, TrialEnded)
    launched = [e.time for e in place.events(TAG, RunSubmitted)]
    before = (paused.time - began.time) / 1e9
    assert before < 3, "it was paused in time"
    assert before + (max(launched) - resumed.time) / 1e9 <= 3
    assert before + (ended.time - resumed.time) / 1e9 >= 3
    audit(place)


def test_a_trial_is_extended_while_it_runs_and_when_it_is_over(place: Workplace) -> None:
    short(place, "a")
    write_plan(place, "2s")
    with start(place) as driving:
        driving.until(lambda: place.count(TrialStarted, tag=TAG) > 0, "its start")
        ask(place.trial(TAG), Request(request="extend", value=1.0))
        assert driving.end().code == 0
    (began,) = place.events(TAG, TrialStarted)
    (ended,) = place.events(TAG, TrialEnded)
    assert (ended.time - began.time) / 1e9 >= 3
    runs = len(ends(place))
    assert control(place, "extend", "1s").code == 0
    assert control(place, "extend", "much").code == 2
    assert control(place, "status").code == 3
    assert "p-mix: continues; sustained, 1 case for 4 s" in accept(place, "--dry-run").out
    done = accept(place)
    assert done.code == 0, done.said
    assert len(ends(place)) > runs
    assert place.count(TrialEnded, tag=TAG) == 2
    audit(place)


def test_a_time_that_is_none_is_refused_and_the_trial_goes_on(place: Workplace) -> None:
    short(place, "a")
    write_plan(place, "2s")
    with start(place) as driving:
        driving.until(lambda: place.count(TrialStarted, tag=TAG) > 0, "its start")
        for seconds in (-5.0, 1e308, 0.0):
            ask(place.trial(TAG), Request(request="extend", value=seconds))
        driving.until(lambda: place.count(RequestRefused, tag=TAG) == 3, "three refusals")
        assert driving.end().code == 0
    assert place.count(TrialExtended, tag=TAG) == 0
    refused = [event.reason for event in place.events(TAG, RequestRefused)]
    assert all("10 years" in reason for reason in refused), refused
    assert control(place, "status").code == 0


def test_what_is_asked_in_the_last_moment_is_answered_by_the_next_accept(place: Workplace) -> None:
    short(place, "a")
    write_plan(place, "1s")
    assert accept(place).code == 0
    ask(place.trial(TAG), Request(request="pause"))
    ask(place.trial(TAG), Request(request="extend", value=0.3))
    (place.trial(TAG).path / "requests/0.json").write_text("rubbish")
    done = accept(place)
    assert done.code == 0, done.said
    (extended,) = place.events(TAG, TrialExtended)
    assert place.count(TrialEnded, tag=TAG) == 2
    assert place.count(TrialPaused, tag=TAG) == 0
    assert not list((place.trial(TAG).path / "requests").iterdir())
    again = place.trial(TAG).path / extended.request
    again.write_text('{"request": "extend", "value": 0.3}')
    assert "is complete" in accept(place).out, "a request is answered once, though its file stays"
    assert place.count(TrialExtended, tag=TAG) == 1
    assert not again.exists()


def test_what_nobody_drives_is_interrupted_and_steered_whatever_its_plan_says(
    place: Workplace,
) -> None:
    short(place, "a")
    plan = write_plan(place, "60s", blackouts=[{"from": "0s", "to": "50s", "tests": ["b"]}])
    short(place, "b")
    with start(place) as driving:
        driving.until(lambda: passed(place) > 0, "runs")
        assert "blackout of b ends in" in control(place, "status").out
        plan.write_text(plan.read_text() + "faulty: 1\n")
        standing = control(place, "status")
        assert standing.code == 3, standing.said
        assert "warning: " in standing.err
        assert "running" in standing.out
        assert control(place, "extend", "1s").code == 0
        driving.kill()
    standing = control(place, "status")
    assert "p-mix is interrupted: nobody drives it" in standing.out
    assert "next   seatrial accept plan.yaml" in standing.out
    (one,) = json.loads(control(place, "status", "--format", "json").out)["trials"]
    assert (one["state"], one["held_back_by"]) == ("interrupted", [])
    assert control(place, "pause").code == 0
    assert accept(place).code == 2, "but it does not go on by a plan with a fault"


def test_a_component_that_documents_speak_for_is_shown(place: Workplace) -> None:
    short(place, "a")
    write_plan(place, "1s")
    path = place.folder / "plan.yaml"
    plan = yaml.safe_load(path.read_text())
    (place.folder / "report.pdf").write_bytes(b"signed")
    digest = hashlib.sha256(b"signed").hexdigest()
    document = {"document": "report.pdf", "sha256": digest, "signed_by": "A"}
    evidence = {**document, "signed_on": "2026-05-01"}
    plan["components"].append({"component": "vendor", "evidence": [evidence]})
    path.write_text(yaml.safe_dump(plan))
    chosen = ["--component", "vendor"]
    shown = place.seatrial("accept", "status", "plan.yaml", "--format", "json", *chosen)
    assert shown.code == 0, shown.said
    found = json.loads(shown.out)
    (one,) = found["records"]["evidence"]
    assert (found["plan"], found["trials"]) == ("p", [])
    assert (one["component"], one["state"]) == ("vendor", "shown by evidence")
    (proof,) = one["evidence"]
    assert evidence.items() <= proof.items()
    assert proof["state"] == "as it was"
    said = control(place, "status", *chosen).out
    assert said == "evidence of vendor: report.pdf, signed by A on 2026-05-01\n"
    assert "vendor" not in control(place, "status", "--component", "mix").out


@pytest.mark.parametrize("driven", [True, False])
def test_an_abandoned_trial_is_over_and_accept_begins_anew(place: Workplace, driven: bool) -> None:
    place.test("a", "sleep 983", run={"walltime": "60s"})
    write_plan(place, "60s")
    with start(place) as driving:
        driving.until(lambda: len(place.ran()) == 2, "two runs at work")
        if not driven:
            driving.kill()
        done = control(place, "abandon", "the fabric was reset")
        assert done.code == 0, done.said
        ended = driving.end()
        assert not driven or ended.out.endswith("plan.yaml  (begins it anew)\n")
    assert [event.verdict for event in ends(place)] == ["cancelled"] * 2
    assert place.events(TAG, TrialAbandoned)[0].reason == "the fabric was reset"
    refused = place.resume(TAG)
    assert refused.code == 3, refused.said
    assert "the fabric was reset" in refused.err
    assert control(place, "pause").code == 2, "nothing is under way"
    assert accept(place, "--dry-run").out.startswith(f"{TAG}-2: begins anew; ")
    short(place, "a")
    write_plan(place)
    assert accept(place).code == 0
    assert place.count(TrialEnded, tag=f"{TAG}-2") == 1
    assert place.count(TrialEnded, tag=TAG) == 0


def test_a_stopped_test_is_let_back_in(place: Workplace) -> None:
    right = place.folder / "right"
    short(place, "a", f"cat {right}", verify=[{"contains": "42"}])
    short(place, "b")
    write_plan(place, "30s", retry={"stop_after": 2})
    with start(place) as driving:
        driving.until(lambda: place.count(TestStopped, tag=TAG) == 1, "the test's stop")
        right.write_text("42")
        unknown = control(place, "admit", "n[1-2]")
        assert unknown.code == 2, unknown.said
        assert "its tests are a, b" in unknown.said
        admitted = control(place, "admit", "a")
        assert (admitted.code, admitted.out) == (0, "p-mix: a is let back in.\n")
        driving.until(lambda: passed(place, "a") > 1, "runs of the test")
        assert control(place, "pause").code == 0
        driving.end()
    for whom, was in (("b", "stopped"), ("here", "excluded")):
        nothing = control(place, "admit", whom)
        assert nothing.code == 0
        assert nothing.out == f"p-mix: {whom} is not {was}: there is nothing to let back in.\n"
    assert place.count(TestAdmitted, tag=TAG) == 1
    assert place.count(NodeAdmitted, tag=TAG) == 0


def test_a_test_whose_build_failed_is_not_let_back_in(place: Workplace) -> None:
    short(place, "a")
    short(place, "b", build={"script": "exit 1", "sources": []})
    write_plan(place, "60s")
    with start(place) as driving:
        driving.until(lambda: passed(place, "a") > 0, "runs")
        assert control(place, "pause").code == 0
        driving.end()
    refused = control(place, "admit", "b")
    assert refused.code == 2, refused.said
    assert "p-mix has not stopped it: its build failed, and is not made again" in refused.err


def test_where_no_test_can_be_built_the_trial_ends_and_says_why(place: Workplace) -> None:
    for name in "ab":
        build = {"script": "echo mpi.h is missing >&2; exit 1", "sources": []}
        short(place, name, build=build)
    criteria = [{"criterion": "pass_rate", "at_least": "99%"}]
    write_plan(place, "10d", criteria=criteria)
    done = accept(place)
    assert done.code == 1, done.said
    cause = "the build of a, b failed: mpi.h is missing"
    assert f"p-mix has ended early: {cause}" in done.out
    (told,) = [event for event in place.events(TAG, AlertRaised) if event.kind == "idle"]
    assert cause in told.text
    (end,) = place.events(TAG, TrialEnded)
    assert (end.failed, end.reason) == (1, cause)
    shown = accept(place, "--status")
    assert "cannot be built" in shown.out
    assert "a, b: mpi.h is missing" in shown.out
    assert "not met" in shown.out
    assert "its plan changed" not in done.out + shown.out
    assert "p-mix is complete" in accept(place).out


def test_where_every_test_is_stopped_that_is_told_and_shown(place: Workplace) -> None:
    place.local(cores=1)  # else another run may have ended before the stop
    short(place, "a", verify=[{"contains": "42"}])
    write_plan(place, "60s", retry={"stop_after": 1})
    with start(place) as driving:
        driving.until(
            lambda: "idle" in [event.kind for event in place.events(TAG, AlertRaised)],
            "the alert that nothing can run",
        )
        shown = control(place, "status")
        assert "nothing more can be launched: a is stopped: 1 wrong answers" in shown.out
        assert "accept admit PLAN TEST" in shown.out
        assert control(place, "pause").code == 0
        driving.end()
    admitted = control(place, "admit", "a")
    assert (admitted.code, admitted.out) == (0, "p-mix: a is let back in.\n"), "without a driver"
    assert place.count(TestAdmitted, tag=TAG) == 1


def test_a_criterion_that_is_not_met_counts_before_the_end(place: Workplace) -> None:
    short(place, "a", verify=[{"contains": "42"}])
    criteria = [{"criterion": "correct_answers", "at_least": "100%"}]
    write_plan(place, "60s", criteria=criteria, retry={"stop_after": 0})
    with start(place) as driving:
        driving.until(lambda: len(ends(place)) > 0, "a wrong answer")
        assert control(place, "pause").code == 0
        done = driving.end()
    assert "p-mix is not complete: " in done.out
    assert "p-mix: not met: correct answers\n" in done.out
    assert (done.code, control(place, "status").code) == (1, 1)


def test_a_component_without_criteria_has_none(place: Workplace) -> None:
    short(place, "a")
    write_plan(place)
    done = accept(place)
    assert done.code == 0, done.said
    assert re.search(r"^mix +ended +no criteria ", done.out, re.MULTILINE)
    shown = place.seatrial("accept", "status", "plan.yaml", "--format", "json")
    assert json.loads(shown.out)["trials"][0]["verdict"] == "no criteria"
    report = place.seatrial("report", "plan.yaml", "-o", "report.json")
    assert report.code == 0, report.said
    made = json.loads((place.folder / "report.json").read_text())
    assert made["verdict"] == "no criteria"


def test_copies_on_a_host_without_a_scheduler_take_its_cores(place: Workplace) -> None:
    short(place, "a")
    short(place, "b")
    write_plan(place, tests={"a": {"copies": 2}})
    assert accept(place, "--dry-run").code == 0
    write_plan(place, tests={"a": {"copies": 1}, "b": {}})
    assert accept(place, "--dry-run").code == 0, "a core is left"
    write_plan(place, tests={"a": {"copies": 3}})
    refused = accept(place, "--dry-run")
    assert refused.code == 2
    assert "3 of a take 3 cores; there are 2" in refused.err


def test_a_dry_run_says_what_the_mix_gives_to_each_test(place: Workplace) -> None:
    """Of the two cores of this host."""
    for test in ("a", "b", "c"):
        short(place, test)
    mix = {"a": {"share": "30%"}, "b": {"copies": 1}, "c": {"fill": True}}
    write_plan(place, tests=mix)
    short(place, "a", "true & wait")
    dry = accept(place, "--dry-run")
    assert "p-mix: a: its script has a `wait` without a PID" in dry.err
    told = dry.out
    assert "mix: a 30 %, b 50 % (1 copy), c 20 % (what is left)" in told
    write_plan(place, tests={"a": {"share": "30%"}})
    assert "mix: a 30 %, 70 % is left to no test and stays idle" in accept(place, "--dry-run").out
    write_plan(place, tests={"a": {"share": "50%"}, "b": {"copies": 1}, "c": {"fill": True}})
    assert "c 0 % (gaps only: all is claimed)" in accept(place, "--dry-run").out
    write_plan(place, tests={"a": {"share": "60%"}, "b": {"copies": 1}})
    refused = accept(place)
    assert refused.code == 2
    assert "shares and copies add up to 110 %: a 60 % + b 50 % (copies)" in refused.err


def test_a_trial_of_before_whose_copies_were_a_cap_continues(place: Workplace) -> None:
    short(place, "a")
    write_plan(place, "60s", tests={"a": {"copies": 1}})
    with start(place) as driving:
        driving.until(lambda: passed(place) > 0, "runs")
        assert control(place, "pause").code == 0
        driving.end()
    record = place.trials / TAG / "trial.json"
    about = json.loads(record.read_text())
    about["policy"]["entries"][0]["most"] = 1
    record.write_text(json.dumps(about))
    assert accept(place, "--dry-run").out.startswith("p-mix: continues; ")


def test_a_plan_that_changed_since_is_told_with_what_to_do(place: Workplace) -> None:
    short(place, "a")
    write_plan(place, "60s")
    with start(place) as driving:
        driving.until(lambda: passed(place) > 0, "runs")
        assert control(place, "pause").code == 0
        driving.end()
    write_plan(place, "1s")
    told = accept(place, "--dry-run")
    assert told.code == 2, "as accept would"
    assert told.out.startswith("p-mix: cannot continue; sustained, ")
    assert "the policy changed since it was made" in told.err
    refused = accept(place)
    assert refused.code == 2, refused.said
    for words in (
        "the policy changed",
        f"seatrial resume {TAG}",
        "accept abandon plan.yaml",
        "--name p-b",
    ):
        assert words in refused.err
    write_plan(place, "60s")
    place.local(jobs=3)
    refused = accept(place)
    assert "p-mix: the machine (jobs) changed since it was made" in refused.err
    place.local()
    write_plan(place, "1s")
    assert accept(place, "--name", "other", "--dry-run").out.startswith("other-mix: begins; ")
    assert "not begun: other-mix\n" in accept(place, "--name", "other", "--status").out
    other = accept(place, "--name", "other")
    assert other.code == 0, other.said
    assert place.count(TrialEnded, tag="other-mix") == 1


def test_what_makes_no_sense_is_refused(place: Workplace) -> None:
    short(place, "a")
    write_plan(place, "500ms")
    done = accept(place)
    assert done.code == 2, done.said
    assert "plan.yaml:" in done.err
    assert not place.trials.exists()
    shown = control(place, "status")
    assert shown.code == 2
    assert shown.err.count("plan.yaml:") == 1, "each fault once"
    write_plan(place, "2s")
    assert accept(place, "--pause", "--status").code == 2
    assert accept(place, "--dry-run", "--pause").code == 2
    assert control(place, "abandon", " ").code == 2
    nothing = control(place, "pause")
    assert nothing.code == 2
    assert "no component of plan.yaml has a trial in" in nothing.err


def test_a_rehearsal_is_never_run_for_real(place: Workplace) -> None:
    short(place, "a")
    assert place.run("--name", "t", "--dry-run").code == 0
    path = place.trial().path / "trial.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "rehearsed": True}))
    for words in (["resume", "t"], ["cancel", "t"]):
        done = place.seatrial(*words)
        assert done.code == 3, done.said
        assert "t is a rehearsal" in done.err
    assert not place.ran()


def test_status_names_the_rehearsal_of_what_has_not_begun(place: Workplace) -> None:
    short(place, "a")
    write_plan(place, rehearsal={"tests": {"a": {"elapsed": "1s"}}})
    assert "only rehearsed" not in control(place, "status").out
    done = place.seatrial("rehearse", "plan.yaml")
    assert done.code in (0, 1), done.said
    shown = control(place, "status")
    assert shown.code == 3
    assert "not begun: p-mix\nonly rehearsed: p-mix-rehearsed: see `" in shown.out
    assert "runs --trial p-mix-rehearsed`" in shown.out


def test_a_wrong_folder_is_named_and_the_right_one_beside_the_plan(place: Workplace) -> None:
    short(place, "a")
    write_plan(place, "1s")
    here = control(place, "status")
    said = f"no component of plan.yaml has a trial in {place.trials}"
    assert (here.code, here.out.startswith(f"{said}\nnot begun: p-mix")) == (3, True), here.said
    assert control(place, "check").code == 0, "nothing has begun anywhere"
    assert accept(place).code == 0
    elsewhere = ("--trials", "wrong", "accept")
    shown = place.seatrial(*elsewhere, "status", "plan.yaml")
    assert shown.code == 3
    remedy = f"has a trial in {place.folder}/wrong; trials has trials of it"
    assert remedy in shown.out, shown.said
    for words in (["pause"], ["check"], ["change", "--reason", "x", "--yes"], ["resume"]):
        refused = place.seatrial(*elsewhere, words[0], "plan.yaml", *words[1:])
        assert (refused.code, remedy in refused.err) == (2, True), refused.said
    report = place.seatrial("--trials", "wrong", "report", "plan.yaml")
    assert report.code == 2 and "/trials has trials of it" in report.err, report.said
    assert place.seatrial("accept", "status", "plan.yaml").out.startswith("component")


def test_a_rehearsal_is_found_by_its_record_whatever_its_tag(place: Workplace) -> None:
    short(place, "a")
    write_plan(place, rehearsal={"tests": {"a": {"elapsed": "1s"}}})
    assert place.seatrial("rehearse", "plan.yaml").code in (0, 1)
    path = place.trials / "p-mix-rehearsed" / "trial.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "tag": "dry"}))
    path.parent.rename(place.trials / "dry")
    assert "not begun: p-mix\nonly rehearsed: dry: see `" in control(place, "status").out


def test_without_the_commands_of_a_scheduler_no_trial_is_made(place: Workplace) -> None:
    short(place, "a")
    place.local(scheduler="slurm", slurm={"partition": "batch"})
    write_plan(place)
    place.env["PATH"] = str(place.folder)
    for words in (["accept", "plan.yaml"], ["run", "suite", "-m", "machine.yaml"]):
        refused = place.seatrial(*words)
        assert refused.code == 3, refused.said
        assert "sbatch is not on PATH; run this on a login node of Slurm" in refused.err
    assert not list(place.trials.glob("*"))


# ---- how it is typed ----------------------------------------------------------------------


def test_the_flags_of_the_first_version_are_still_accepted(place: Workplace) -> None:
    short(place, "a")
    write_plan(place, "60s")
    none = place.seatrial("accept", "--status", "plan.yaml", "--format", "json")
    assert json.loads(none.out)["trials"] == []
    with start(place) as driving:
        driving.until(lambda: passed(place) > 0, "runs")
        assert accept(place, "--admit", "a").code == 0
        assert accept(place, "--admit=n9").code == 2
        assert accept(place, "--extend", "1s", "--component", "mix").code == 0
        driving.until(lambda: place.count(TrialExtended, tag=TAG) == 1, "the extension")
        assert accept(place, "--pause").code == 0
        driving.end()
    (one,) = json.loads(accept(place, "--status", "--format", "json").out)["trials"]
    assert one["state"] == "paused"
    assert accept(place, "--abandon", "", "--phase", "none").code == 2
    assert accept(place, "--abandon", "seen enough").code == 0
    (event,) = place.events(TAG, TrialAbandoned)
    assert event.reason == "seen enough"


def test_resume_begins_nothing(place: Workplace) -> None:
    short(place, "a")
    write_plan(place, "1s")
    refused = control(place, "resume")
    assert refused.code == 2
    assert "`seatrial accept plan.yaml`" in refused.err
    assert not place.trials.exists()


@pytest.mark.parametrize("words", [["run", "status"], ["./status"], ["-q", "status"]])
def test_a_plan_named_like_a_command_can_be_run(place: Workplace, words: list[str]) -> None:
    short(place, "a")
    write_plan(place).rename(place.folder / "status")
    done = place.seatrial("accept", *words, "--dry-run")
    assert done.code == 0, done.said
    assert done.out.startswith("p-mix: begins; ")


def test_the_shell_completes_commands_and_files(place: Workplace) -> None:
    place.env |= {"_SEATRIAL_COMPLETE": "bash_complete", "COMP_CWORD": "2"}
    place.env["COMP_WORDS"] = "seatrial accept "
    names = ["run", "resume", "status", "check", "pause", "extend", "abandon", "admit"]
    names += ["change", "hold", "release", "stop", "exclude"]
    names += ["tick", "evidence", "record"]
    assert place.seatrial().out.splitlines() == ["file,", *(f"plain,{name}" for name in names)]
    place.env["COMP_WORDS"] = "seatrial accept pl"
    assert place.seatrial().out.splitlines() == ["file,pl"]
    place.env |= {"COMP_WORDS": "seatrial accept plan.yaml --", "COMP_CWORD": "3"}
    offered = place.seatrial().out
    assert "--dry-run" in offered
    assert "--status" not in offered


# ---- a test without a right answer --------------------------------------------------------


def two_that_never_work(place: Workplace, **keys: object) -> None:
    short(place, "good", verify=[{"contains": "ok"}])
    short(place, "wrong", "true", verify=[{"contains": "never printed"}])
    short(place, "unbuilt", build={"script": "echo 'cc: internal compiler error' >&2; exit 1"})
    criteria = [{"criterion": "pass_rate", "at_least": "1%", "pooled": True}]
    tests = ["good", "wrong", "unbuilt"]
    write_plan(place, duration="1s", tests=tests, criteria=criteria, **keys)


def test_a_test_that_was_stopped_or_never_built_makes_its_component_not_met(
    place: Workplace,
) -> None:
    two_that_never_work(place)
    done = accept(place)
    assert done.code == 1, done.said
    shown = control(place, "status", "--format", "json")
    assert shown.code == 1
    (one,) = json.loads(shown.out)["trials"]
    rate, (every, *bad) = one["criteria"]
    assert one["verdict"] == "not met"
    assert rate[0]["state"] == "met"
    assert (every["state"], every["value"], every["numbers"]["tests"]) == ("not met", 1, 3)
    assert every["why"] == "2 of 3 tests are at fault: unbuilt, wrong"
    assert {each["subject"]: each["why"].split(":")[0] for each in bad} == {
        "wrong": "was stopped",
        "unbuilt": "was never built",
    }
    assert place.seatrial("report", "plan.yaml", "-o", "r.md").code == 0
    head = (place.folder / "r.md").read_text().split("## Summary")[0]
    assert "1 not met" in head
    (fault,) = (line for line in head.splitlines() if line.startswith("- **In "))
    assert "unbuilt was never built: cc: internal compiler error" in fault
    # Runs that were under way as it was stopped may end in the same way.
    assert re.search("wrong was stopped: [3-9] wrong answers in a row", fault)


def test_a_test_that_always_fails_is_told_and_stopped_where_that_is_asked(
    place: Workplace,
) -> None:
    short(place, "good", "true")
    place.test("bad", "exit 3", run={"walltime": "1s"})
    place.test("asked", "exit 3", run={"walltime": "1s"})
    tests = {"good": {}, "bad": {}, "asked": {"retry": {"stop_after": 4}}}
    write_plan(place, duration="2s", tests=tests)
    assert accept(place).code == 1
    alerts = {(each.kind, each.subject): each.text for each in place.events(TAG, AlertRaised)}
    told = alerts["failing", "bad"]
    assert "runs ended badly" in told and "exit code 3" in told
    assert " failures in a row, the last: failed: exit code 3" in alerts["stopped", "asked"]
    assert len(ends(place, "asked")) < len(ends(place, "bad"))
    (one,) = json.loads(control(place, "status", "--format", "json").out)["trials"]
    assert {each["kind"] for each in one["alerts"]} == set()  # it is over


def test_a_waiver_by_name_covers_the_tests_that_it_names_alone(place: Workplace) -> None:
    def waiver(*tests: str) -> dict[str, object]:
        return {"tests": list(tests), "reason": "bug 7", "by": "both", "on": "2026-05-01"}

    two_that_never_work(place, waivers=[waiver("wrong")])
    assert accept(place).code == 1
    (place.trials / TAG).rename(place.folder / "before")
    two_that_never_work(place, waivers=[waiver("wrong"), waiver("un*")])
    done = accept(place)
    assert done.code == 0, done.said
    (one,) = json.loads(control(place, "status", "--format", "json").out)["trials"]
    assert one["verdict"] == "met with waivers"
    assert "every test" in one["verdict_words"]
    every, *bad = one["criteria"][1]
    assert (every["state"], every["without_waiver"]) == ("waived", "not met")
    assert [each["state"] for each in bad] == ["waived", "waived"]


def test_a_plan_that_says_what_is_the_default_has_not_changed(place: Workplace) -> None:
    short(place, "t")
    bound = {"criterion": "within_expected", "within": "90%", "at_least": "1%", "of": "median"}
    never = {"criterion": "accepted_runs", "at_least": 10**6}
    write_plan(place, criteria=[bound, never])
    done = accept(place)
    assert done.code == 1
    assert "changed since" not in done.said + control(place, "status").said
