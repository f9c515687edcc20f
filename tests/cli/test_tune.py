"""seatrial tune and advise as processes, on this host."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from seatrial.journal.events import RunJudged, RunSubmitted
from tests.programs import Workplace

# Setting 3 crashes, 4 hangs; 2 is by far the best.
SCRIPT = """
case "$way" in
  3) exit 7 ;;
  4) sleep 60 ;;
esac
echo "time: $(( (way == 2 ? 500 : 1000) + RANDOM % 5 ))"
"""
METRICS = {"time": {"find": r"time: (\d+)", "better": "lower", "unit": "ms"}}


def tuning(place: Workplace, **keys: Any) -> str:
    """Write a test and its tune.yaml; return the file's name."""
    place.local(cores=1)
    place.test(
        "app",
        SCRIPT,
        parameters={"way": [1], "size": [8]},
        metrics=METRICS,
        run={"walltime": "1s", "launcher": "none"},
    )
    about = {
        "tune": "ways",
        "suite": "suite",
        "test": "app",
        "metric": "time",
        "axes": {"way": [1, 2, 3, 4]},
        "blocks": {"rounds": 2, "allocations": 3},
        "cost": "100%",
        **keys,
    }
    path = place.folder / "tune.yaml"
    path.write_text(yaml.safe_dump({key: each for key, each in about.items() if each is not None}))
    return path.name


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """A tuning whose driver was killed in its second block, and resumed."""
    place = Workplace(tmp_path_factory.mktemp("tune"))
    file = tuning(place)
    with place.start("tune", file, "-m", str(place.machine), "--name", "t") as driving:
        driving.until(lambda: place.count(RunJudged) >= 9, "the second block")
        driving.kill()
    assert place.resume().code in (0, 1)
    return place


def advice(place: Workplace, tag: str = "t") -> dict[str, Any]:
    done = place.seatrial("advise", tag, "--format", "json")
    assert done.code == 0, done.said
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_the_best_is_advised_with_its_ratio(tuned: Workplace) -> None:
    found = advice(tuned)
    best = found["settings"][found["best"]]
    assert best["values"] == {"way": 2}
    assert found["advised"] == found["best"]
    ratio = best["to_default"]
    assert ratio["low"] < ratio["ratio"] < ratio["high"] < 1
    assert 0.4 < ratio["ratio"] < 0.6
    assert found["complete"]


def test_a_crash_and_a_hang_stay_in_the_table_with_their_cause(tuned: Workplace) -> None:
    states = {each["values"]["way"]: each for each in advice(tuned)["settings"]}
    assert [states[way]["state"] for way in (3, 4)] == ["failed", "failed"]
    assert "exit code 7" in states[3]["cause"]
    assert "timeout" in states[4]["cause"]
    assert states[3]["figure"] is states[4]["figure"] is None
    said = tuned.seatrial("advise", "t").out
    assert "way=3: failed: exit code 7" in said
    assert "way=4: timeout" in said


def test_no_run_is_lost_or_doubled_by_a_kill(tuned: Workplace) -> None:
    runs = Counter(event.run_id for event in tuned.events("t", RunJudged))
    assert set(runs.values()) == {1}
    assert set(runs) == {event.run_id for event in tuned.events("t", RunSubmitted)}
    found = advice(tuned)
    assert found["runs"] == sum(not e.will_rerun for e in tuned.events("t", RunJudged))
    tuned.audit_log()


def test_what_a_person_reads(tuned: Workplace) -> None:
    said = tuned.seatrial("advise", "t").out
    best = next(each for each in advice(tuned)["settings"] if each["values"] == {"way": 2})
    ratio = f"{best['to_default']['ratio']:.3f}"
    assert f"use way=2: {ratio} times the time of the default" in said
    assert "not varied: size (always 8)" in said
    assert "# way: 2" in said
    status = tuned.seatrial("tune", "--status", "t").out
    assert "block 1: 4 settings, 2 rounds on " in status
    assert "way=1 (default)" in status
    unknown = tuned.seatrial("tune", "--status", "nosuch")
    assert unknown.code == 2


def test_what_is_best_by_what_it_took(tuned: Workplace) -> None:
    done = tuned.seatrial("advise", "t", "--per", "node-hour")
    assert done.code == 0, done.said
    assert "per node-hour, too, way=2 is best: " in done.out
    found = json.loads(tuned.seatrial("advise", "t", "--per", "core", "--format", "json").out)
    best, other = found["per"]["settings"]
    assert (found["per"]["unit"], found["settings"][best["number"]]["values"]) == (
        "core-ms",
        {"way": 2},
    )
    assert other["to_best"]["ratio"] == pytest.approx(
        found["settings"][other["number"]]["to_best"]["ratio"]
    )


def test_a_damaged_journal_is_told(tuned: Workplace) -> None:
    journal = tuned.trial("t").journal
    whole = journal.read_bytes()
    last = whole.rindex(b'"check_end"')
    journal.write_bytes(whole[:last] + b'"check_enb"' + whole[last + 11 :])
    try:
        for words in (("advise", "t"), ("tune", "--status", "t")):
            assert "damaged line" in tuned.seatrial(*words).err
    finally:
        journal.write_bytes(whole)


def test_the_largest_size_that_works(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    axes = {"way": [1, 2, 3, 4]}
    file = tuning(place, axes=axes, search="largest", metric=None)
    done = place.seatrial("tune", file, "-m", str(place.machine), "--name", "t", "-q")
    assert done.code == 0, done.said
    assert "the largest size that works is way=2; way=3 does not: failed: exit code 7" in done.out
    assert "of the grid" in done.out
    said = place.seatrial("tune", "--status", "t").out
    assert re.search(r"^way=2 +1  works$", said, re.MULTILINE)
    assert re.search(r"^way=3 +0  failed: exit code 7", said, re.MULTILINE)
    assert said.endswith("\nnot needed: way=1, way=4\n") and "never ran" not in said
    (listed,) = json.loads(place.seatrial("trials", "--format", "json").out)
    assert (listed["runs"], listed["passed"], listed["waiting"]) == (2, 1, 0)


def test_where_every_setting_fails_nothing_is_advised(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    file = tuning(place, axes={"way": [3], "size": [8, 9]}, metric="time")
    done = place.seatrial("tune", file, "-m", str(place.machine), "--name", "t", "-q")
    assert done.code == 1, done.said
    assert "no setting has a figure: there is nothing to advise\n\nThe race\n" in done.out
    assert "\n\n2 settings failed\n  " in done.out
    assert "size=8" in done.out and done.out.count(": failed: exit code 7") == 2
    assert "app{way=3}@plain: elapsed in s over size\n" in place.seatrial("best", "t").out


def test_figures_that_make_no_ratio_are_told_and_no_number_is_made_up(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    file = tuning(place, blocks={"rounds": 1, "allocations": 1}, axes={"way": [1, 2, 3, 4, 5]})
    figures = 'figures=(- 10 -5 0 nan "")\necho "time: ${figures[way]}"'
    metrics = {"time": {**METRICS["time"], "find": r"time: (\S+)"}}
    place.test("app", figures, parameters={"way": [1], "size": [8]}, metrics=metrics,
               run={"launcher": "none"})  # fmt: skip
    done = place.seatrial("tune", file, "-m", str(place.machine), "--name", "t", "-q")
    assert done.code == 0, done.said
    for way, cause in (
        (2, "its figure is -5; ratios need figures above 0"),
        (3, "its figure is 0; ratios need figures above 0"),
        (4, "no figure: metric time: 'nan' is not a finite number"),
        (5, "no figure: metric time: nothing in stdout matches"),
    ):
        assert f"way={way}: {cause}" in done.out
    found = advice(place)
    first, *others = (each["figure"] for each in found["settings"])
    assert first == pytest.approx(10)
    assert others == [None] * 4
    assert found["settings"][found["best"]]["values"] == {"way": 1}


def test_a_build_that_fails_is_told_with_its_error(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    file = tuning(place, axes={"toolchain": ["right", "wrong"]}, parameters={"way": 2})
    place.local(cores=1, toolchains={name: {"cc": name} for name in ("right", "wrong")})
    build = 'echo "error: $CC is wrong" >&2; [ $CC = right ] || { echo "made nothing"; exit 1; }'
    place.test("app", SCRIPT, parameters={"way": [1], "size": [8]}, metrics=METRICS,
               build={"script": build}, run={"launcher": "none"})  # fmt: skip
    done = place.seatrial("tune", file, "-m", str(place.machine), "--name", "t", "-q")
    assert done.code == 0, done.said
    assert "  toolchain=wrong: build failed: error: wrong is wrong\n" in done.out
    (wrong,) = (each for each in advice(place)["settings"] if each["state"] == "failed")
    assert (wrong["n"], wrong["figure"]) == (0, None)


def test_a_tuning_by_time_has_the_times_of_the_runs(tmp_path: Path) -> None:
    """Two settings that are the same: figures and medians are those of `best`."""
    place = Workplace(tmp_path)
    file = tuning(place, metric="elapsed", axes={"way": [1, 2]}, blocks={"rounds": 3})
    place.test("app", "sleep 0.1", parameters={"way": [1]}, run={"launcher": "none"})
    done = place.seatrial("tune", file, "-m", str(place.machine), "--name", "t")
    assert done.code == 0, done.said
    found = advice(place)
    best = json.loads(place.seatrial("best", "t", "--over", "way", "--format", "json").out)
    medians = {one["values"]["way"]: one["median"] for one in best[0]["settings"]}
    assert {str(one["values"]["way"]): one["figure"] for one in found["settings"]} == (
        pytest.approx(medians, rel=1e-6)
    )
    assert all(0.1 < median < 1 for median in medians.values())
    for one in found["settings"]:
        assert one["node_hours"] == pytest.approx(one["figure"] / 3600) and one["nodes"] == 1
        for ratio in (one["to_best"], one["to_default"]):
            ends = [end for end in (ratio["low"], ratio["high"]) if end] if ratio else []
            assert all(1e-3 < end / ratio["ratio"] < 1e3 for end in ends)


def test_settings_that_are_all_the_same_run_as_one(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    file = tuning(place, axes={"spread": ["numa", "pack"]})
    run = {"launcher": "none", "spread": "spread"}
    place.test("app", "echo time: 1", parameters={"spread": ["numa"]}, run=run, metrics=METRICS)
    done = place.seatrial("tune", file, "-m", str(place.machine), "--name", "t")
    assert done.code == 0, done.said
    assert (
        "left out: app{spread=pack}@plain: it runs as spread=numa does: the same launch" in done.err
    )
    assert "keep the default" in done.out and "different nodes" not in done.err


def test_a_trial_that_is_no_tuning(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.local()
    place.test("hello", "echo hello")
    assert place.run("--name", "r").code == 0
    done = place.seatrial("advise", "r")
    assert (done.code, "r is no tuning" in done.err) == (2, True)


def test_a_rehearsal_tells_cost_and_odds(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    file = tuning(place)
    done = place.seatrial(
        "tune", file, "-m", str(place.machine), "--rehearse", "--seeds", "3", "--format", "json"
    )
    assert done.code == 0, done.said
    found = json.loads(done.out)
    assert [each["planted"] for each in found["cases"]] == ["effects", "one setting", "none"]
    assert all(0 < each["runs"] <= 24 for each in found["cases"])
    told = place.seatrial("tune", file, "-m", str(place.machine), "--rehearse", "--seeds", "1")
    cost = re.search(r"^cost: at most (\S+) node-hours, if each run took", told.out, re.MULTILINE)
    assert cost is not None, told.said
    longest = (
        max(
            case["walltime"]
            for case in json.loads(
                place.seatrial("list", "suite", "-m", str(place.machine), "--format", "json").out
            )
        )
        / 3600
    )
    assert float(cost[1]) == pytest.approx(24 * longest, rel=0.01)
    assert not place.trials.exists()


def test_a_plan_that_is_a_tuning_names_the_command(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    file = tuning(place)
    done = place.seatrial("rehearse", file)
    assert (done.code, f"`seatrial tune {file} --rehearse` rehearses it" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([1, 4, 2], "needs numbers in rising order"),
        ([1, "many"], "needs numbers in rising order"),
        (["few", "many"], "needs numbers in rising order"),
        ([1, 2, 2], "2 stands there twice"),
    ],
)
def test_the_largest_is_sought_among_rising_numbers(
    tmp_path: Path, values: list[int | str], told: str
) -> None:
    place = Workplace(tmp_path)
    file = tuning(place, axes={"way": values}, search="largest", metric=None)
    done = place.seatrial("tune", file, "-m", str(place.machine))
    assert done.code == 2 and told in done.err, done.said
