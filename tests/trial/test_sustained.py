"""Sustained trials for real, on this host: time decides, what hangs or fails stalls nothing."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from seatrial.journal.codes import Name
from tests.programs import Workplace
from tests.trial.plans import (
    TAG,
    accept,
    alerts,
    audit,
    ends,
    passed,
    paths,
    processes,
    short,
    start,
    write_plan,
)


@pytest.fixture
def place(place: Workplace) -> Workplace:
    place.constants = {"trial.requests.LOOK_SECONDS": 0.05}
    return place


# ---- file systems ------------------------------------------------------------------------------


def on_targets(place: Workplace, command: str, **more: object) -> Path:
    """The machine has a file system of two metadata targets."""
    root = place.folder / "scratch"
    about = {"path": str(root), "targets": ["mdt0", "mdt1"], "place": command, **more}
    place.local(file_systems={"scratch": about})
    return root / TAG


def test_runs_are_placed_on_targets_with_their_decks(place: Workplace) -> None:
    calls = place.folder / "calls"
    root = on_targets(place, f'mkdir "$DIRECTORY"; echo "$DIRECTORY $TARGET_INDEX" >> {calls}')
    tests = {}
    for how in ("shared", "per_target", "per_run"):
        folder = short(place, how, "cat deck.in; readlink -f deck.in")
        (folder / "deck.in").write_text(f"the deck of {how}\n")
        tests[how] = {"deck": {"source": "deck.in", "how": how}}
    write_plan(place, file_system="scratch", tests=tests)
    assert accept(place).code == 0
    audit(place)
    made = [line.rpartition(" ")[::2] for line in calls.read_text().splitlines()]
    assert {place: int(index) for place, index in made} == {
        str(root / target / name): index
        for index, target in enumerate(("mdt0", "mdt1"))
        for name in (*tests, ".decks")
    }
    assert len(made) == 8, "each directory is placed once"
    where: dict[str, set[str]] = {}
    for path in paths(place):
        test, target = path.parent.name, path.parent.parent.name
        assert path == root / target / test / path.name
        words = (path / "stdout").read_text()
        assert f"the deck of {test}" in words
        where.setdefault(test, set()).add(words.split()[-2])
        if test == "per_run":
            assert not (path / "deck.in").exists(), "its own copy goes with the run"
    assert where["shared"] == {str(place.suite / "shared" / "deck.in")}
    assert len(where["per_target"]) == 2
    assert all(str(root) in each and ".decks" in each for each in where["per_target"])
    assert where["per_run"] == {
        str(p / "deck.in") for p in paths(place) if p.parent.name == "per_run"
    }
    left = [path / "deck.in" for path in paths(place) if path.parent.name == "per_run"]
    for path in left:  # as a driver leaves them that is killed
        path.write_text("a copy")
    assert accept(place, "--extend", "100ms").code == 0
    assert accept(place).code == 0
    assert not [path for path in left if path.exists()]
    targets = {event.target for event in place.events(TAG, Name.SUBMIT_START)}
    assert targets == {"scratch/mdt0", "scratch/mdt1"}


def test_a_placement_command_that_fails_stalls_nothing(place: Workplace) -> None:
    """On each target it fails in a way of its own; on the last one it works."""
    says = {
        "hangs": "did not end in 500 ms",
        "fails": "no such target",
        "floods": "did not end in 500 ms",
        "lies": "made no",
    }
    command = """
case $TARGET in
  hangs) sleep 987 & sleep 987;;
  fails) echo no such target >&2; exit 3;;
  floods) yes;;
  works) mkdir "$DIRECTORY";;
esac"""
    root = on_targets(place, command, timeout="500ms", targets=[*says, "works"])
    short(place, "a")
    write_plan(place, "2s", file_system="scratch")
    assert accept(place).code == 0
    audit(place)
    assert passed(place) >= 10
    assert {path.parent.parent.name for path in paths(place)} == {*says, "works"}
    assert all(path.is_relative_to(root) for path in paths(place))
    told = {event.test: event.text for event in alerts(place, "placement")}
    assert told.keys() == {f"scratch/{name}" for name in says}
    assert len(alerts(place, "placement")) == len(says), "each is told once"
    for name, words in says.items():
        assert words in told[f"scratch/{name}"]
        assert "plain directory" in told[f"scratch/{name}"]
    assert not processes("987")


# ---- gauges ------------------------------------------------------------------------------------


def test_a_gauge_holds_back_and_a_broken_one_is_told(place: Workplace) -> None:
    """The gauge is what a file says; light tests go on while it is closed."""
    gauge = place.folder / "gauge"
    (place.folder / "gauge.sh").write_text(f". {gauge}")
    gauge.write_text("echo 99")
    about = {"command": f"bash {place.folder}/gauge.sh", "every": "100ms", "timeout": "300ms"}
    place.local(gauges={"load": about})
    short(place, "heavy")
    short(place, "light")
    throttle = {"gauge": "load", "high": 10, "low": 5, "stale_after": "500ms"}
    write_plan(place, "60s", tests={"heavy": {}, "light": {"io": "light"}}, throttles=[throttle])

    def reading(text: str) -> None:
        gauge.write_text(text)
        seen = place.count(Name.GAUGE, tag=TAG)
        driving.until(place.more(seen + 1, Name.GAUGE, tag=TAG), "the gauge to be read")

    with start(place) as driving:
        driving.until(lambda: passed(place, "light") > 3, "light runs")
        assert not ends(place, "heavy")
        reading("echo 1")
        driving.until(lambda: passed(place, "heavy") > 1, "heavy runs")
        for rubbish, says in (
            ("echo rubbish", "'rubbish'"),
            ("echo nan", "'nan'"),
            ("true", "printed nothing"),
            ("echo 7; exit 2", "exit code 2"),
            ("sleep 986 & sleep 986", "did not end in 300 ms"),
            ("while :; do echo x; done", "did not end in 300 ms"),
        ):
            reading(rubbish)
            latest = place.events(TAG, Name.GAUGE)[-1]
            assert latest.value is None
            assert says in latest.text
            assert len(latest.text) < 300
        driving.until(lambda: bool(alerts(place, "gauge")), "the alert")
        light, heavy = passed(place, "light"), len(ends(place, "heavy"))
        driving.until(lambda: passed(place, "light") > light + 3, "light runs")
        assert len(ends(place, "heavy")) <= heavy + 2, "those that were in flight"
        reading("echo 1")
        driving.until(lambda: passed(place, "heavy") > heavy + 2, "heavy runs again")
        assert accept(place, "--pause").code == 0
        assert driving.end().code == 3
    assert not processes("986")
    assert not processes("gauge.sh")


# ---- watching ----------------------------------------------------------------------------------


def test_a_hung_run_is_ended_and_others_are_not(place: Workplace) -> None:
    """The slow one writes to a file of its own, more often than it has to."""
    place.test("hangs", "sleep 985", run={"walltime": "20s"})
    place.test("slow", "for i in 1 2 3 4 5 6 7 8; do echo $i >> own; sleep 0.2; done",
               run={"walltime": "3s"})  # fmt: skip
    place.test("told", "sleep 1.5", run={"walltime": "3s"})
    tests = {name: {"quiet_for": "800ms"} for name in ("hangs", "slow", "told")}
    tests["told"]["quiet_answer"] = "tell"
    place.local(cores=3)
    write_plan(place, "20s", tests=tests, exclude={"after": 0})
    with start(place) as driving:
        driving.until(
            lambda: (
                len(ends(place, "hangs")) > 1 and passed(place, "slow") * passed(place, "told") > 0
            ),
            "the ends",
        )
        assert accept(place, "--abandon", "seen enough").code == 0
        driving.end()
    assert [event.alias for event in ends(place, "hangs")][:2] == ["hung", "hung"]
    assert "no output for 800 ms" in ends(place, "hangs")[0].text
    quiet = place.events(TAG, Name.OUTPUT_QUIET)
    assert {event.test for event in quiet} == {"hangs", "told"}
    assert len({event.run_id for event in quiet}) == len(quiet), "a spell is told once"
    for name in ("slow", "told"):
        assert {event.alias for event in ends(place, name)} <= {"pass", "cancelled"}
    assert alerts(place, "hung")
    assert not processes("985")
    audit(place)


def test_alerts_run_the_sites_command_at_a_bounded_rate(place: Workplace) -> None:
    """Two tests whose answers are wrong are stopped; both alerts are told, the second with what
    came meanwhile."""
    told = place.folder / "told"
    command = f'echo "$TRIAL $MACHINE $ALERT_KIND $ALERT_SUBJECT: $ALERT" >> {told}'
    for name in ("a", "b", "c"):
        short(place, name, "", verify=[{"contains": "never"}])
    short(place, "good")
    write_plan(place, "2s", alerts={"command": command, "at_most": 1, "per": "1200ms"},
               retry={"stop_after": 2})  # fmt: skip
    done = accept(place)
    assert done.code == 0, done.said
    assert {event.test for event in place.events(TAG, Name.TEST_STOP)} == {"a", "b", "c"}
    stopped = [event.test for event in alerts(place, "stopped")]
    assert sorted(stopped) == ["a", "b", "c"]
    lines = told.read_text().splitlines()
    assert len(lines) == 2
    assert f"{TAG} here stopped {stopped[0]}: {stopped[0]} is launched no more" in lines[0]
    assert lines[1].startswith(f"{TAG} here stopped {stopped[1]}")
    assert lines[1].endswith("(and 1 more alert)")
    for name in "abc":
        assert 2 <= len(ends(place, name)) <= 3, "at most the other run in flight follows"


def test_an_alert_command_that_hangs_is_told_once_and_stalls_nothing(place: Workplace) -> None:
    short(place, "a", "", verify=[{"contains": "never"}])
    short(place, "b", "", verify=[{"contains": "never"}])
    short(place, "good")
    command = {"command": "sleep 984 & sleep 984", "timeout": "200ms"}
    write_plan(place, alerts=command, retry={"stop_after": 1})
    assert accept(place).code == 0
    assert passed(place, "good") > 5
    (failing,) = alerts(place, "alerts")
    assert "did not end in 200 ms" in failing.text
    assert not processes("984")


# ---- killed ------------------------------------------------------------------------------------


def test_killed_at_random_no_run_is_lost_or_doubled(place: Workplace) -> None:
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    chance = random.Random(seed)
    on_targets(place, 'mkdir "$DIRECTORY"')
    for name in ("a", "b"):
        folder = short(place, name, "cat deck.in; sleep 0.2", verify=[{"contains": "deck"}])
        (folder / "deck.in").write_text("deck")
    decks = {"a": "per_run", "b": "per_target"}
    tests = {name: {"deck": {"source": "deck.in", "how": how}} for name, how in decks.items()}
    write_plan(place, "4s", file_system="scratch", tests=tests)
    for _ in range(5):
        with start(place) as driving:
            time.sleep(chance.uniform(0.3, 0.9))
            driving.kill()
    done = accept(place)
    assert done.code == 0, done.said
    audit(place)
    assert {event.alias for event in ends(place)} == {"pass"}
    began = place.events(TAG, Name.TRIAL_START)[0].time
    assert (place.events(TAG, Name.TRIAL_END)[0].time - began) / 1e9 >= 4
