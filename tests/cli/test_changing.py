"""`seatrial accept change`, hold, release, stop, exclude, and the cancellation of one run."""

from __future__ import annotations

import json
import os
import pwd
import signal
from typing import Any

import pytest
import yaml

from seatrial.execute.requests import Request, ask, waiting
from seatrial.execute.trial_folder import TrialFolder
from seatrial.journal.events import (
    NodeAdmitted,
    NodeExcluded,
    PolicyChanged,
    RequestRefused,
    RunCancelAsked,
    RunJudged,
    RunJudgedAgain,
    RunSubmitted,
    TestHeld,
    TestReleased,
    TestStopped,
    TrialPaused,
)
from seatrial.model import codes
from tests.execute.plans import TAG, accept, audit, control, passed, short, start, write_plan
from tests.programs import Done, Workplace

ME = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture
def place(place: Workplace) -> Workplace:
    place.constants = {"execute.requests.LOOK_SECONDS": 0.05}
    place.local(cores=4)
    for name in "ab":
        short(place, name)
    return place


def halves(place: Workplace, duration: str = "60s", **a: Any) -> None:
    """A plan in which two tests share the machine; ``a`` are keys of the first."""
    tests = {"a": {"share": "50%", **a}, "b": {"share": "50%", "io": "light"}}
    write_plan(place, duration, tests=tests)


def status(place: Workplace) -> dict[str, Any]:
    (one,) = json.loads(control(place, "status", "--format", "json").out)["trials"]
    return dict(one)


def in_flight(place: Workplace, test: str) -> int:
    over = {event.run_id for event in place.events(TAG, RunJudged)}
    submitted = place.events(TAG, RunSubmitted)
    return sum(event.test == test and event.run_id not in over for event in submitted)


def lasted(place: Workplace) -> float:
    """Seconds from the first launch to the latest verdict."""
    return (place.events(TAG, RunJudged)[-1].time - place.events(TAG, RunSubmitted)[0].time) / 1e9


def pause(place: Workplace) -> None:
    assert control(place, "pause").code == 0


def pause_after(place: Workplace, runs: int) -> None:
    """Drive the trial until more runs than these have passed, and pause it."""
    with start(place) as driving:
        driving.until(lambda: passed(place) > runs, "runs")
        pause(place)
        driving.end()


# ---- change -------------------------------------------------------------------------------


def test_a_running_trial_follows_the_changed_plan_from_now_on(place: Workplace) -> None:
    halves(place)
    with start(place) as driving:
        driving.until(lambda: passed(place, "a") > 8, "runs")
        halves(place, share="10%", most=1)
        nobody = control(place, "change", "--reason", "a is too heavy")
        assert nobody.code == 2, "nobody can be asked"
        assert "--yes" in nobody.err
        assert place.count(PolicyChanged, tag=TAG) == 0
        done = control(place, "change", "--reason", "a is too heavy", "--yes")
        assert done.code == 0, done.said
        assert "tests.a.share: 50 % -> 10 %" in done.out
        assert "tests.a.most: none -> 1" in done.out
        (event,) = place.events(TAG, PolicyChanged)
        assert (event.by, event.reason) == (ME, "a is too heavy")
        before = passed(place, "b")
        driving.until(lambda: passed(place, "b") > before + 20, "runs by the changed plan")
        assert in_flight(place, "a") <= 1
        again = control(place, "change", "--reason", "again", "--yes")
        assert again.code == 1
        assert "holds already; there is nothing to change" in " ".join(again.out.split())
        pause(place)
        driving.end()
    launched = [event.test for event in place.events(TAG) if isinstance(event, RunSubmitted)]
    since = len([e for e in place.events(TAG, RunSubmitted) if e.time < event.time])
    assert launched[since:].count("a") < launched[since:].count("b") / 2
    shares = {each["test"]: each["planned"] for each in status(place)["node_shares"]["tests"]}
    assert 0.1 < shares["a"] < 0.5, "the mean of both spans"
    assert shares["a"] + shares["b"] == pytest.approx(1, abs=0.35)
    (told,) = [each for each in status(place)["actions"] if each["action"] == "change"]
    assert (told["by"], told["reason"]) == (ME, "a is too heavy")
    assert "tests.a.most: none -> 1" in told["changes"]
    audit(place)


def test_a_changed_trial_goes_on_after_a_pause_and_after_a_driver_that_died(
    place: Workplace,
) -> None:
    halves(place)
    pause_after(place, 4)
    halves(place, most=1)
    assert control(place, "change", "--reason", "paused", "--yes").code == 0
    with start(place) as driving:
        first = passed(place)
        driving.until(lambda: passed(place) > first + 5, "runs")
        driving.kill()
    halves(place, most=2)
    again = accept(place, "--dry-run")
    assert (again.code, "its plan changed since" in again.out) == (0, True)
    done = control(place, "change", "--reason", "dead", "--yes")
    assert (done.code, place.count(PolicyChanged, tag=TAG)) == (0, 2), done.said
    with start(place) as driving:
        second = passed(place)
        driving.until(lambda: passed(place) > second + 5, "runs")
        pause(place)
        driving.end()
    assert [event.parts for event in place.events(TAG, PolicyChanged)] == [
        {"entries": {"a": {"most": 1}}},
        {"entries": {"a": {"most": 2}}},
    ]
    audit(place)


def test_a_change_stays_to_the_end_and_is_in_status_and_report(place: Workplace) -> None:
    halves(place, "4s")
    with start(place, "-q") as driving:
        driving.until(lambda: passed(place) > 4, "runs")
        halves(place, "3s", share="30%")
        assert control(place, "change", "--reason", "less of <a>", "--yes").code == 0
        done = driving.end()
    assert done.code == 0, done.said
    assert "its plan changed" not in done.said
    told = status(place)
    assert told["duration"] == 3
    assert told["clock"] == pytest.approx(3, abs=0.1)
    shown = control(place, "status")
    assert "tests.a.share: 50 % -> 30 %" in shown.out
    assert "less of <a>" in shown.out
    written = place.seatrial("report", "plan.yaml", "-o", "report.md")
    assert written.code in (0, 3), written.said
    report = (place.folder / "report.md").read_text()
    assert "What people did while it ran" in report
    assert "duration: 4 s -\\> 3 s" in report
    late = control(place, "change", "--reason", "late", "--yes")
    assert (late.code, "nothing of p is under way" in late.err) == (2, True)


CONTRADICTIONS: list[tuple[dict[str, Any], str]] = [
    ({"tests": {"a": {}, "b": {}, "c": {}}}, "tests: cannot change while p-mix is under way"),
    ({"tests": {"a": {}}}, "b removed"),
    ({"duration": "1s"}, "duration: the trial would have 1 s, and has run for"),
    ({"kind": "once", "duration": None}, "kind: cannot change"),
    ({"tests": {"a": {"alone": 7}, "b": {}}}, ""),
]


def test_what_contradicts_what_ran_is_refused_at_its_place(place: Workplace) -> None:
    short(place, "c")
    tests: dict[str, Any] = {"a": {}, "b": {}}
    write_plan(place, "60s", tests=tests)
    with start(place) as driving:
        driving.until(lambda: passed(place) > 20 and lasted(place) > 1.5, "more than a second")
        for change, told in CONTRADICTIONS:
            keys = {"duration": "60s", "tests": tests, **change}
            write_plan(place, **{key: value for key, value in keys.items() if value is not None})
            if "kind" in change:
                text = place.folder.joinpath("plan.yaml").read_text()
                place.folder.joinpath("plan.yaml").write_text(
                    text.replace("  duration: 60s\n", "").replace("  duration: 1s\n", "")
                )
            refused = control(place, "change", "--reason", "why not", "--yes")
            assert refused.code == 2, refused.said
            assert told in refused.err
            assert "plan.yaml:" in refused.err
            assert place.count(PolicyChanged, tag=TAG) == 0
        pause(place)
        driving.end()


def test_a_change_of_what_is_built_or_of_the_machine_is_refused(place: Workplace) -> None:
    halves(place)
    pause_after(place, 2)
    place.local(cores=2)
    refused = control(place, "change", "--reason", "why not", "--yes")
    assert refused.code == 2
    assert "the machine (nodes) changed" in refused.err
    place.local(cores=4)
    short(place, "a", "sleep 0.2")
    refused = control(place, "change", "--reason", "why not", "--yes")
    assert refused.code == 2
    assert "the tests (a" in refused.err


KNOWN = {
    "tests": ["a"],
    "verdicts": ["failed"],
    "reason": "bug 7",
    "until": "2099-12-31",
}


def with_known(place: Workplace, *known: dict[str, Any]) -> None:
    path = place.folder / "plan.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), "known_failures": known}))


def test_known_failures_are_taken_from_now_on_and_by_who_judges_again(place: Workplace) -> None:
    short(place, "a", "sleep 0.1; exit 3")
    tests = {"a": {"share": "50%", "retry": {"stop_after": 0}}, "b": {"share": "50%"}}
    write_plan(place, "60s", tests=tests)

    def judged(code: codes.Code) -> list[RunJudged]:
        return [each for each in place.events(TAG, RunJudged) if each.code == code.number]

    with start(place) as driving:
        driving.until(lambda: len(judged(codes.FAILED)) > 3, "failures")
        with_known(place, KNOWN)
        status_before = control(place, "status")
        assert "the known failures" in status_before.said
        done = control(place, "change", "--reason", "bug 7 is known", "--yes")
        assert done.code == 0, done.said
        assert "known_failures.bug 7.tests: none -> a" in done.out
        assert "runs that were judged before stay as they are" in " ".join(done.out.split())
        driving.until(lambda: len(judged(codes.KNOWN)) > 3, "known failures")
        driving.kill()
    (event,) = place.events(TAG, PolicyChanged)
    assert event.parts["known_failures"][0]["reason"] == "bug 7"
    late = [each for each in judged(codes.FAILED) if each.time > event.time + 10**9]
    assert not late
    assert "its plan changed since" not in control(place, "status").said
    with start(place) as driving:  # from its journal
        known = len(judged(codes.KNOWN))
        driving.until(lambda: len(judged(codes.KNOWN)) > known + 1, "known failures")
        pause(place)
        driving.end()
    again = place.seatrial("judge", TAG, "--again", "--reason", "bug 7")
    assert again.code == 0, again.said
    newly = {each.run_id for each in place.events(TAG, RunJudgedAgain)}
    assert newly == {each.run_id for each in judged(codes.FAILED)}
    assert {each.code for each in place.events(TAG, RunJudgedAgain)} == {codes.KNOWN.number}
    with_known(place)
    back = control(place, "change", "--reason", "it is mended", "--yes")
    assert back.code == 0, back.said
    assert "known_failures" in back.out
    # So are those of the machine's file and of tests.
    of_test = {key: value for key, value in KNOWN.items() if key != "tests"}
    for file, more in (
        (place.machine, {**KNOWN, "reason": "of here"}),
        (place.suite / "a/test.yaml", of_test),
    ):
        about = yaml.safe_load(file.read_text())
        file.write_text(yaml.safe_dump({**about, "known_failures": [more]}))
        done = control(place, "change", "--reason", "known", "--yes")
        assert done.code == 0 and f"known_failures.{more['reason']}" in done.out, done.said
    about = yaml.safe_load(place.machine.read_text())
    place.machine.write_text(yaml.safe_dump({**about, "toolchains": {"odd": {}}}))
    refused = control(place, "change", "--reason", "another", "--yes")
    assert refused.code == 2 and "the machine (toolchains" in refused.err, refused.said
    assert "scheduler" not in refused.err.split("changed, and")[0]
    audit(place)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        (
            {"waivers": [{"reason": "r", "by": "b", "on": "2026-05-01"}]},
            "the waivers changed, and this is not taken: it is judged by what it was made with; "
            "both sides can leave runs out (`seatrial judge RUN --exclude`)",
        ),
        ({"criteria": [{"criterion": "mtbf", "at_least": "1h"}]}, "the criteria changed, and"),
        ({"keep": "none"}, "keep changed, and this is not taken: outputs are kept as its runs"),
    ],
)
def test_what_is_not_taken_is_named_and_never_ends_with_0(
    place: Workplace, keys: dict[str, Any], told: str
) -> None:
    tests: dict[str, dict[str, Any]] = {"a": {"share": "50%"}, "b": {"share": "50%", "io": "light"}}
    halves(place, "2s")
    pause_after(place, 2)
    write_plan(place, "2s", tests=tests, **keys)
    done = control(place, "change", "--reason", "why not", "--yes")
    assert done.code == 1
    words = " ".join(done.out.split())
    assert told in words
    assert "runs it anew" in words and words.endswith("nothing was changed")
    assert place.count(PolicyChanged, tag=TAG) == 0
    tests["a"]["most"] = 1
    write_plan(place, "2s", tests=tests, **keys)
    both = control(place, "change", "--reason", "why not", "--yes")
    assert both.code == 0
    assert told in " ".join(both.out.split()) and "tests.a.most: none -> 1" in both.out
    assert accept(place).code in (0, 1)
    over = control(place, "change", "--reason", "why not", "--yes")
    assert (over.code, "nothing of p is under way" in over.err) == (2, True)
    assert told in " ".join(over.out.split())


def test_without_a_trial_or_a_reason_nothing_is_changed(place: Workplace) -> None:
    halves(place)
    nothing = control(place, "change", "--reason", "x", "--yes")
    assert (nothing.code, "no component of plan.yaml has a trial in" in nothing.err) == (2, True)
    assert control(place, "change", "--yes").code == 2
    assert control(place, "change", "--yes", "--reason", " ").code == 2


def test_two_people_change_at_once_and_nothing_is_lost(place: Workplace) -> None:
    halves(place)
    folder = TrialFolder(place.trials / TAG)
    with start(place) as driving:
        driving.until(lambda: passed(place) > 2, "runs")

        def asked(parts: dict[str, Any], before: dict[str, Any]) -> None:
            ask(folder, Request(request="change", parts=parts, before=before, reason="together"))

        entries, none = {"entries": {"a": {"most": 2}}}, {"entries": {"a": {"most": 0}}}
        asked(entries, none)
        asked({"reserve": 7}, {"reserve": 2})
        asked({"entries": {"a": {"most": 3}}}, none)  # another has changed that
        asked({"entries": {"a": {"bytes": 3}}}, {})
        asked({"stagger": {"starts": 0, "per": 0}}, {"stagger": None})
        asked({"duration": 0.01}, {"duration": 60.0})
        ask(folder, Request(request="pause"))
        assert driving.end().code == 3
    changed = [event.parts for event in place.events(TAG, PolicyChanged)]
    assert changed == [entries, {"reserve": 7}]
    refused = [event.reason for event in place.events(TAG, RequestRefused)]
    assert "tests.a.most: none -> 2" in refused[0]
    assert "bytes of a cannot change" in refused[1]
    assert "stagger" in refused[2]
    assert "has run for" in refused[3]
    assert len(refused) == 4
    assert place.count(TrialPaused, tag=TAG) == 1
    assert list(folder.requests.iterdir()) == []


def test_of_two_commands_that_change_one_value_the_second_is_refused(place: Workplace) -> None:
    halves(place)
    folder = TrialFolder(place.trials / TAG)
    with start(place) as driving:
        driving.until(lambda: passed(place) > 2, "runs")
        driving.send(signal.SIGSTOP)  # so that it sees both together
        halves(place, most=1)
        first = place.start("accept", "change", "plan.yaml", "--reason", "x", "-y")
        first.until(lambda: len(waiting(folder)) == 1, "the first request")
        halves(place, most=2)
        second = place.start("accept", "change", "plan.yaml", "--reason", "y", "-y")
        second.until(lambda: len(waiting(folder)) == 2, "the second request")
        driving.send(signal.SIGCONT)
        assert first.end().code == 0
        refused = second.end()
        assert refused.code == 2
        assert "somebody else changed it in the meantime: tests.a.most: none -> 1" in refused.err
        pause(place)
        driving.end()


# ---- hold, release, stop, exclude ---------------------------------------------------------


def test_a_held_test_starts_nothing_until_it_is_released(place: Workplace) -> None:
    halves(place)
    with start(place) as driving:
        driving.until(lambda: passed(place, "a") > 2, "runs")
        assert control(place, "hold", "a").code == 2, "a reason is needed"
        done = control(place, "hold", "a", "--reason", "its input is wrong")
        assert done.code == 0, done.said
        (held,) = place.events(TAG, TestHeld)
        assert (held.by, held.test, held.reason) == (ME, "a", "its input is wrong")
        before = passed(place, "b")
        driving.until(lambda: passed(place, "b") > before + 10, "runs of the other")
        late = [e for e in place.events(TAG, RunSubmitted) if e.test == "a" and e.time > held.time]
        assert late == []
        shown = control(place, "status")
        assert f"a, by {ME}: its input is wrong" in shown.out
        assert status(place)["held"][0]["subject"] == "a"
        driving.kill()
    with start(place) as driving:
        before = passed(place, "b")
        driving.until(lambda: passed(place, "b") > before + 5, "runs after the driver's death")
        late = [e for e in place.events(TAG, RunSubmitted) if e.test == "a" and e.time > held.time]
        assert late == []
        assert control(place, "release", "b").out.startswith("p-mix: b is not held")
        assert control(place, "release", "a").code == 0
        before = passed(place, "a")
        driving.until(lambda: passed(place, "a") > before + 3, "runs of the released test")
        pause(place)
        driving.end()
    assert place.count(TestReleased, tag=TAG) == 1
    assert status(place)["held"] == []
    audit(place)


def test_heavy_holds_all_tests_whose_io_is_not_light(place: Workplace) -> None:
    halves(place)
    with start(place) as driving:
        driving.until(lambda: passed(place, "a") > 2, "runs")
        assert control(place, "hold", "heavy", "--reason", "the forecast").code == 0
        (held,) = place.events(TAG, TestHeld)
        assert (held.test, held.io) == ("", "heavy")
        before = passed(place, "b")
        driving.until(lambda: passed(place, "b") > before + 10, "runs with light I/O")
        late = [e.test for e in place.events(TAG, RunSubmitted) if e.time > held.time]
        assert set(late) == {"b"}
        assert control(place, "release", "heavy").code == 0
        before = passed(place, "a")
        driving.until(lambda: passed(place, "a") > before, "runs of the released test")
        pause(place)
        driving.end()


def test_a_person_stops_a_test_and_excludes_nodes_and_admits_both(place: Workplace) -> None:
    halves(place)
    with start(place) as driving:
        driving.until(lambda: passed(place) > 2, "runs")
        assert control(place, "stop", "a", "--reason", "ticket 812").code == 0
        assert control(place, "exclude", "here", "--reason", "the fan is loud").code == 0
        (stopped,) = place.events(TAG, TestStopped)
        (excluded,) = place.events(TAG, NodeExcluded)
        assert (stopped.by, stopped.reason) == (ME, "ticket 812")
        assert (excluded.by, excluded.nodes, excluded.reason) == (ME, "here", "the fan is loud")
        assert control(place, "admit", "here", "--reason", "mended").code == 0
        assert control(place, "admit", "a").code == 0
        (admitted,) = place.events(TAG, NodeAdmitted)
        assert (admitted.by, admitted.reason) == (ME, "mended")
        before = passed(place, "a")
        driving.until(lambda: passed(place, "a") > before, "runs of the admitted test")
        pause(place)
        driving.end()
    done = [(each["action"], each["subject"]) for each in status(place)["actions"]]
    expected = [("stop", "a"), ("exclude", "here"), ("admit", "here"), ("admit", "a")]
    assert done[:4] == expected


def test_unknown_names_are_refused(place: Workplace) -> None:
    halves(place)
    pause_after(place, 0)
    for words in (
        ("hold", "c", "--reason", "x"),
        ("release", "c"),
        ("stop", "c", "--reason", "x"),
        ("stop", "heavy", "--reason", "x"),
        ("exclude", "n9", "--reason", "x"),
        ("exclude", "n[", "--reason", "x"),
        ("exclude", "here", "--reason", ""),
    ):
        refused = control(place, *words)
        assert refused.code == 2, (words, refused.said)


# ---- one run ------------------------------------------------------------------------------


def test_one_run_is_cancelled_and_the_others_go_on(place: Workplace) -> None:
    short(place, "a", "sleep 0.1")
    place.test("b", "sleep 60", run={"walltime": "50s"})
    halves(place)
    with start(place) as driving:
        driving.until(lambda: in_flight(place, "b") > 0, "a long run")
        run = next(e.run_id for e in place.events(TAG, RunSubmitted) if e.test == "b")
        done = place.seatrial("cancel", f"{TAG}/{run}", "--reason", "it hangs")
        assert done.code == 0, done.said
        driving.until(
            lambda: any(e.run_id == run for e in place.events(TAG, RunJudged)), "its verdict"
        )
        (verdict,) = [e for e in place.events(TAG, RunJudged) if e.run_id == run]
        assert (verdict.verdict, verdict.will_rerun) == ("cancelled", False)
        assert f"cancelled by {ME}: it hangs" in verdict.reason
        over = place.seatrial("cancel", f"{TAG}/{run}")
        assert (over.code, "is over" in over.err) == (2, True)
        none = place.seatrial("cancel", f"{TAG}/nosuchrun")
        assert (none.code, "no run 'nosuchrun'" in none.err) == (2, True)
        assert place.seatrial("cancel", TAG, "--reason", "x").code == 2
        driving.until(lambda: passed(place, "a") > 0, "a run of another test")
        driving.kill()
    run = [e.run_id for e in place.events(TAG, RunSubmitted) if e.test == "b"][-1]
    left = place.seatrial("cancel", f"{TAG}/{run}")
    assert left.code == 0, left.said
    assert "nobody drives the trial" in left.out
    with start(place) as driving:
        driving.until(
            lambda: any(e.run_id == run for e in place.events(TAG, RunJudged)), "its verdict"
        )
        assert place.seatrial("cancel", TAG).code == 0
        driving.end()
    (verdict,) = [e for e in place.events(TAG, RunJudged) if e.run_id == run]
    assert f"cancelled by {ME}" in verdict.reason
    assert place.count(RunCancelAsked, tag=TAG) == 2


def test_a_run_of_a_suite_is_cancelled_too(place: Workplace) -> None:
    place.test("c", "sleep 60")
    with place.start("run", "suite", "-k", "c", "-m", "machine.yaml", "--name", "t") as driving:
        driving.until(lambda: place.count(RunSubmitted, tag="t") == 1, "the run")
        run = place.events("t", RunSubmitted)[0].run_id
        assert place.seatrial("cancel", f"t/{run[:6]}").code == 0
        assert driving.end().code == 1
    (verdict,) = place.events("t", RunJudged)
    assert verdict.verdict == "cancelled"


# ---- members of a group -------------------------------------------------------------------


def test_a_member_of_the_trials_group_asks_with_the_own_name(place: Workplace) -> None:
    if os.getuid() != 0:
        pytest.skip("needs another user")
    member, group = pwd.getpwnam("nobody"), 61234
    place.trials.mkdir()
    os.chown(place.trials, -1, group)
    place.trials.chmod(0o2775)
    for folder in (place.folder, *place.folder.parents):
        if folder.stat().st_mode & 0o005 != 0o005:
            folder.chmod(folder.stat().st_mode | 0o055)
    halves(place)
    with start(place) as driving:
        driving.until(lambda: passed(place) > 2, "runs")
        requests = place.trials / TAG / "requests"
        assert requests.stat().st_mode & 0o7777 == 0o3775

        def as_member(*words: str, group: int = group) -> Done:
            # Who may read what root may, so that the interpreter can be anywhere, but not write.
            caps = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
            who = (f"--reuid={member.pw_uid}", f"--regid={group}", "--clear-groups", *caps)
            return place.start(*words, under=["setpriv", *who]).end()

        held = as_member("accept", "hold", "plan.yaml", "a", "--reason", "mine")
        assert held.code == 0, held.said
        (event,) = place.events(TAG, TestHeld)
        assert event.by == "nobody"
        other = as_member("accept", "release", "plan.yaml", "a", group=member.pw_gid)
        assert other.code != 0, "not a member"
        assert "nothing can be asked there" in other.err
        driving.send(signal.SIGKILL)
    waits = as_member("accept", "release", "plan.yaml", "a")
    assert waits.code == 3, waits.said
    assert "nobody drives it" in waits.out
    with start(place) as driving:
        driving.until(lambda: place.count(TestReleased, tag=TAG) == 1, "the release")
        pause(place)
        driving.end()
    assert place.events(TAG, TestReleased)[0].by == "nobody"
