"""Sustained trials for real, on this host: time decides, what hangs or fails stalls nothing."""

from __future__ import annotations

import random
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.journal.events import (
    ClockStepped,
    GaugeRead,
    OutputQuiet,
    RunSubmitted,
    ScriptEnded,
    ScriptStarted,
    TestStopped,
    TrialEnded,
    TrialResumed,
    TrialStarted,
)
from seatrial.units import SECOND_NS
from tests.execute.plans import (
    TAG,
    accept,
    alerts,
    audit,
    control,
    ends,
    passed,
    paths,
    processes,
    run_until,
    short,
    start,
    write_plan,
)
from tests.gates import pause
from tests.programs import Workplace, until


@pytest.fixture
def place(place: Workplace) -> Workplace:
    place.constants = {"execute.requests.LOOK_SECONDS": 0.05}
    return place


def gone(mark: str) -> None:
    until(lambda: not processes(mark), f"{mark} to be gone")


# ---- file systems ------------------------------------------------------------------------------


def on_targets(place: Workplace, command: str, **more: object) -> Path:
    """The machine has a file system of two metadata targets."""
    root = place.folder / "scratch"
    about = {"path": str(root), "targets": ["mdt0", "mdt1"], "place": command, **more}
    place.local(file_systems={"scratch": about})
    return root / TAG


def test_runs_go_to_the_target_whose_gauge_reads_least(place: Workplace) -> None:
    gauges = {
        f"load{n}": {"command": f"echo {load}", "every": "1s"} for n, load in enumerate((900, 5))
    }
    targets = [{"name": f"mdt{n}", "gauge": f"load{n}"} for n in range(2)]
    about = {"path": str(place.folder / "scratch"), "targets": targets}
    place.local(cores=1, file_systems={"scratch": about}, gauges=gauges)
    short(place, "io", "sleep 0.05", "30s")
    write_plan(
        place, "10m", file_system="scratch", placement="least_loaded", tests={"io": {"opens": 10}}
    )

    def read() -> bool:
        return {event.gauge for event in place.events(TAG, GaugeRead)} == set(gauges)

    def placed_since() -> list[str]:
        events = place.events(TAG, GaugeRead, RunSubmitted)
        read_at = [i for i, each in enumerate(events) if isinstance(each, GaugeRead)]
        since = events[read_at[len(gauges)] :] if len(read_at) > len(gauges) else []
        return [each.target for each in since if isinstance(each, RunSubmitted)]

    run_until(place, lambda: read() and len(placed_since()) >= 6, "six runs after a reading")
    assert set(placed_since()) == {"scratch/mdt1"}


def test_runs_are_placed_on_targets_with_their_decks(place: Workplace) -> None:
    calls = place.folder / "calls"
    root = on_targets(place, f'mkdir "$DIRECTORY"; echo "$DIRECTORY $TARGET_INDEX" >> {calls}')
    tests = {}
    for how in ("shared", "per_target", "per_run"):
        folder = short(place, how, "cat deck.in; readlink -f deck.in", "30s")
        (folder / "deck.in").write_text(f"the deck of {how}\n")
        tests[how] = {"deck": {"source": "deck.in", "how": how}}
    write_plan(place, "10m", file_system="scratch", tests=tests)

    def everywhere() -> bool:
        return len({path.parent for path in paths(place)}) == len(tests) * 2

    run_until(place, everywhere, "a run of each test on each target")
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
    run_until(place, lambda: not any(map(Path.exists, left)), "what was left to be removed")
    targets = {event.target for event in place.events(TAG, RunSubmitted)}
    assert targets == {"scratch/mdt0", "scratch/mdt1"}


def test_a_placement_command_that_fails_stalls_nothing(place: Workplace) -> None:
    """On each target it fails in a way of its own; on the last one it works."""
    says = {
        "hangs": "did not end in 1 s",
        "fails": "no such target",
        "floods": "did not end in 1 s",
        "lies": "did not create",
    }
    command = """
case $TARGET in
  hangs) sleep 987.25 & sleep 987.25;;
  fails) echo no such target >&2; exit 3;;
  floods) yes | head -c 2000000; sleep 987.25;;
  works) mkdir "$DIRECTORY";;
esac"""
    root = on_targets(place, command, timeout="1s", targets=[*says, "works"])
    short(place, "a", walltime="30s")
    write_plan(place, "10m", file_system="scratch")

    def seen() -> bool:
        used = {path.parent.parent.name for path in paths(place)}
        return used == {*says, "works"} and passed(place) >= 10

    run_until(place, seen, "runs on each target")
    audit(place)
    assert all(path.is_relative_to(root) for path in paths(place))
    told = {event.subject: event.text for event in alerts(place, "placement")}
    assert told.keys() == {f"scratch/{name}" for name in says}
    assert len(alerts(place, "placement")) == len(says), "each is told once"
    for name, words in says.items():
        assert words in told[f"scratch/{name}"]
        assert "plain directory" in told[f"scratch/{name}"]
    gone("987.25")


# ---- gauges ------------------------------------------------------------------------------------


def test_a_gauge_holds_back_and_a_broken_one_is_told(place: Workplace) -> None:
    """The gauge is what a file says; light tests go on while it is closed."""
    gauge = place.folder / "gauge"
    (place.folder / "gauge.sh").write_text(f". {gauge}")
    gauge.write_text("echo 99")
    about = {"command": f"bash {place.folder}/gauge.sh", "every": "100ms", "timeout": "500ms"}
    place.local(gauges={"load": about})
    short(place, "heavy", walltime="30s")
    short(place, "light", walltime="30s")
    throttle = {"gauge": "load", "high": 10, "low": 5, "stale_after": "700ms"}
    write_plan(place, "10m", tests={"heavy": {}, "light": {"io": "light"}}, throttles=[throttle])

    def reading(text: str, says: str = "") -> None:
        """Until it says so, without a value; a command that was late may be in between."""
        gauge.write_text(text)
        seen = place.count(GaugeRead, tag=TAG)

        def read() -> bool:
            last = place.events(TAG, GaugeRead)[seen + 1 :]
            assert all(len(event.reason) < 300 for event in last)
            return any(says in e.reason and (e.value is None or not says) for e in last)

        driving.until(read, f"the gauge to be read: {text}")

    with start(place) as driving:
        driving.until(lambda: passed(place, "light") > 3, "light runs")
        assert not ends(place, "heavy")
        reading("echo 1")
        driving.until(lambda: passed(place, "heavy") > 1, "heavy runs")
        for rubbish, says in (
            ("head -c 200000 /dev/zero; sleep 986.25", "did not end in 500 ms"),
            ("sleep 986.25 & sleep 986.25", "did not end in 500 ms"),
            ("echo rubbish", "'rubbish'"),
            ("echo nan", "'nan'"),
            ("true", "printed nothing"),
            ("echo 7; exit 2", "exit code 2"),
        ):
            reading(rubbish, says)
        driving.until(lambda: bool(alerts(place, "gauge")), "the alert")
        light, heavy = passed(place, "light"), len(ends(place, "heavy"))
        driving.until(lambda: passed(place, "light") > light + 3, "light runs")
        assert len(ends(place, "heavy")) <= heavy + 2, "those that were in flight"
        reading("echo 1")
        driving.until(lambda: passed(place, "heavy") > heavy + 2, "heavy runs again")
        assert control(place, "pause").code == 0
        assert driving.end().code == 3
    gone("986.25")
    gone("gauge.sh")


# ---- watching ----------------------------------------------------------------------------------


def test_a_hung_run_is_ended_and_others_are_not(place: Workplace) -> None:
    """The slow one writes to a file of its own, more often than it has to."""
    place.test("hangs", "sleep 985.25", run={"walltime": "10m"})
    wait = pause(place.folder, 0.1)
    place.test("slow", f"for i in {{1..15}}; do echo $i >> own; {wait}; done",
               run={"walltime": "60s"})  # fmt: skip
    place.test("told", "sleep 2", run={"walltime": "60s"})
    tests = {name: {"quiet_for": "1s"} for name in ("hangs", "slow", "told")}
    tests["told"]["quiet_answer"] = "tell"
    place.local(cores=3)
    write_plan(place, "10m", tests=tests, exclude={"after": 0})
    with start(place) as driving:
        driving.until(
            lambda: len(ends(place, "hangs")) * passed(place, "slow") * passed(place, "told") > 0,
            "the ends",
        )
        assert control(place, "abandon", "seen enough").code == 0
        driving.end()
    assert ends(place, "hangs")[0].verdict == "hung"
    assert "no output for 1 s" in ends(place, "hangs")[0].reason
    quiet = place.events(TAG, OutputQuiet)
    assert {event.test for event in quiet} == {"hangs", "told"}
    assert len({event.run_id for event in quiet}) == len(quiet), "a spell is told once"
    for name in ("slow", "told"):
        assert {event.verdict for event in ends(place, name)} <= {"pass", "cancelled"}
    assert alerts(place, "hung")
    gone("985.25")
    audit(place)


def test_alerts_run_the_sites_command_at_a_bounded_rate(place: Workplace) -> None:
    """Two tests whose answers are wrong are stopped; both alerts are told, the second with what
    came meanwhile."""
    told = place.folder / "told"
    command = f'echo "$TRIAL $MACHINE $ALERT_KIND $ALERT_SUBJECT: $ALERT" >> {told}'
    for name in ("a", "b", "c"):
        short(place, name, "", verify=[{"contains": "never"}])
    short(place, "good")
    write_plan(place, "10m", alerts={"command": command, "at_most": 1, "per": "2s"},
               retry={"stop_after": 2})  # fmt: skip
    run_until(place, lambda: told.exists() and told.read_text().count("\n") > 1, "two alerts")
    assert {event.test for event in place.events(TAG, TestStopped)} == {"a", "b", "c"}
    stopped = [event.subject for event in alerts(place, "stopped")]
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
    command = {"command": "sleep 984.25 & sleep 984.25", "timeout": "200ms"}
    write_plan(place, "10m", alerts=command, retry={"stop_after": 1})

    def seen() -> bool:
        stopped = {event.test for event in place.events(TAG, TestStopped)}
        return stopped == {"a", "b"} and bool(alerts(place, "alerts")) and passed(place, "good") > 5

    run_until(place, seen, "the alert that its command hangs, and good runs")
    (failing,) = alerts(place, "alerts")
    assert "did not end in 200 ms" in failing.text
    gone("984.25")


# ---- killed ------------------------------------------------------------------------------------


def test_killed_at_random_no_run_is_lost_or_doubled(place: Workplace) -> None:
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    chance = random.Random(seed)
    on_targets(place, 'mkdir "$DIRECTORY"')
    for name in ("a", "b"):
        check = [{"contains": "deck"}]
        folder = short(place, name, "cat deck.in; sleep 0.2", "4s", verify=check)
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
    assert {event.verdict for event in ends(place)} == {"pass"}
    began = place.events(TAG, TrialStarted)[0].time
    assert (place.events(TAG, TrialEnded)[0].time - began) / 1e9 >= 4


# ---- the clock ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("clock") / "step_clock.so"
    source = Path(__file__).with_name("data") / "step_clock.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return library


@pytest.fixture
def step(place: Workplace, tmp_path: Path, library: Path) -> Callable[[int], None]:
    """Return a function that sets the wall clock of the driver and of the jobs forward."""
    place.local(cores=1)  # fewer jobs
    file = tmp_path / "step"
    file.write_bytes(struct.pack("l", 0))
    place.env |= {"LD_PRELOAD": str(library), "STEP_FILE": str(file)}

    def set_forward(seconds: int) -> None:
        with file.open("r+b") as written:
            written.write(struct.pack("l", seconds))

    return set_forward


@pytest.mark.parametrize("days", [3, -3])
def test_a_wrong_clock_ends_no_trial_and_stretches_no_run(
    place: Workplace, step: Callable[[int], None], days: int
) -> None:
    short(place, "t", "sleep 0.4")
    write_plan(place, "6s", criteria=[{"criterion": "utilisation", "at_least": "1%"}])
    began = time.monotonic()
    with start(place) as driving:
        driving.until(lambda: len(place.events(TAG, ScriptEnded)) >= 2, "runs")
        step(days * 86_400)
        driving.until(lambda: bool(place.events(TAG, ClockStepped)), "the step")
        enough = len(place.events(TAG, ScriptEnded)) + 2
        driving.until(lambda: len(place.events(TAG, ScriptEnded)) >= enough, "more runs")
        step(0)
        done = driving.end()
    assert done.code == 0, done.said
    assert time.monotonic() - began > 6
    steps = [round(event.seconds / 86_400) for event in place.events(TAG, ClockStepped)]
    assert steps == [days, -days]
    assert len(alerts(place, "clock")) == 2
    (start_ns,) = [event.time for event in place.events(TAG, TrialStarted)]
    (end_ns,) = [event.time for event in place.events(TAG, TrialEnded)]
    assert 6 < (end_ns - start_ns) / 1e9 < 30
    starts = {event.run_id: event.time for event in place.events(TAG, ScriptStarted)}
    ends_ns = {event.run_id: event.time for event in place.events(TAG, ScriptEnded)}
    lasted = [(ends_ns[run] - started) / 1e9 for run, started in starts.items() if run in ends_ns]
    assert len(lasted) > 4
    assert all(0.2 < seconds < 10 for seconds in lasted)


def test_a_driver_that_goes_on_keeps_the_clock_of_the_trial(
    place: Workplace, step: Callable[[int], None]
) -> None:
    short(place, "t", "sleep 0.4")
    write_plan(place, "6s")
    began = time.monotonic()
    with start(place) as driving:
        driving.until(lambda: len(place.events(TAG, ScriptEnded)) >= 2, "runs")
        driving.kill()
    step(3 * 86_400)
    assert accept(place).code == 0
    assert time.monotonic() - began > 6
    times = [event.time for event in place.events(TAG, TrialResumed, TrialEnded)]
    assert times[-1] - times[0] < 30 * SECOND_NS
