from __future__ import annotations

import os
from pathlib import Path

import pytest

from seatrial.journal.events import MetricRecorded, RunJudged
from seatrial.judge.script_check import find_by_script, verdict_of
from seatrial.model.codes import (
    CHECK_ERROR,
    FAILED,
    NODE_FAILURE,
    PASS,
    PERFORMANCE,
    WRONG_ANSWER,
    Code,
)
from seatrial.model.figures import Finding
from tests.model.suite.helpers import Place
from tests.programs import Workplace, until

from .helpers import a_check


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("test", "run"):
        (tmp_path / name).mkdir()
    (tmp_path / "run" / "stdout").write_text("12\n")
    return tmp_path / "test", tmp_path / "run"


def judged(places: tuple[Path, Path], script: str, **keys: object) -> Finding | None:
    test, run = places
    (test / "check.sh").write_text(script)
    names = {"edge": 10, "fast": True, "node.cores": 4}
    return find_by_script(a_check(script="check.sh", **keys), test, run, names)


@pytest.mark.parametrize(
    ("codes", "exit_code", "code"),
    [
        (None, 0, PASS),
        (None, 1, WRONG_ANSWER),
        (None, 125, WRONG_ANSWER),
        (None, 126, None),
        (None, 127, None),
        (None, 137, None),
        (None, -9, None),
        ("oth", 0, PASS),
        ("oth", 1, FAILED),
        ("oth", 2, WRONG_ANSWER),
        ("oth", 5, PERFORMANCE),
        ("oth", 9, NODE_FAILURE),
        ("oth", 3, None),
        ("oth", -9, None),
        ({"3": "performance"}, 0, PASS),
        ({"3": "performance"}, 3, PERFORMANCE),
        ({"3": "performance"}, 1, None),
        ({"0": "failed", "127": "node failure"}, 0, FAILED),
        ({"0": "failed", "127": "node failure"}, 127, NODE_FAILURE),
        ("any", 7, PASS),
        ("any", -9, PASS),
    ],
)
def test_an_exit_code_is_a_verdict(codes: object, exit_code: int, code: Code | None) -> None:
    assert verdict_of(a_check(script="check.sh", codes=codes), exit_code) is code


def test_a_script_reads_the_run_and_has_the_parameters(places: tuple[Path, Path]) -> None:
    script = '[ "$(cat stdout)" = 12 ] && [ "$edge$fast" = 10true ] && cd "$SEATRIAL_TEST"'
    assert judged(places, script) is None
    assert judged(places, f"! ({script})") == Finding(WRONG_ANSWER, "check.sh: exit code 1")


def test_its_last_words_are_the_reason(places: tuple[Path, Path]) -> None:
    found = judged(places, "echo ignored; echo 'no rate\033[2J' >&2; echo; exit 2", codes="oth")
    assert found is not None
    assert (found.code, "ignored" in found.text, "\033" in found.text) == (
        WRONG_ANSWER,
        False,
        False,
    )
    assert "no rate" in found.text
    assert (places[1] / "check.out").read_text().startswith("ignored\n")


def test_a_script_that_may_be_executed_needs_no_bash(places: tuple[Path, Path]) -> None:
    judged(places, "#!/usr/bin/env python3\nimport sys\nsys.exit(5)\n", codes="oth")
    (places[0] / "check.sh").chmod(0o755)
    found = find_by_script(a_check(script="check.sh", codes="oth"), *places, {})
    assert found is not None
    assert found.code is PERFORMANCE


def test_a_script_is_ended_with_its_children_at_its_time(places: tuple[Path, Path]) -> None:
    found = judged(places, "sleep 1000 & echo $! > child; wait", time_limit=0.2)
    assert found is not None
    assert (found.code, "200 ms" in found.text, "time_limit" in found.text) == (
        CHECK_ERROR,
        True,
        True,
    )
    child = int((places[1] / "child").read_text())
    until(lambda: is_gone(child), "the end of its child")


def test_what_a_script_leaves_behind_ends_with_it(places: tuple[Path, Path]) -> None:
    assert judged(places, "sleep 1000 & echo $! > child") is None
    child = int((places[1] / "child").read_text())
    until(lambda: is_gone(child), "the end of its child")


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_memory_and_output_of_a_script_are_bounded(places: tuple[Path, Path]) -> None:
    grow = "exec python3 -c 'b\"x\" * (300 << 20)'"
    assert judged(places, grow) is None
    in_bash = 'x=$(head -c 50M /dev/zero | tr "\\0" a); y=$x$x$x$x'
    for script, said in ((grow, "MemoryError"), (in_bash, "cannot allocate")):
        found = judged(places, script, memory_limit="200MiB")
        assert found is not None and found.code is CHECK_ERROR, found
        assert said in found.text and "memory_limit" in found.text
    found = judged(places, "exec head -c 65M /dev/zero > large")
    assert found is not None
    assert found.code is CHECK_ERROR
    assert (places[1] / "large").stat().st_size == 64 << 20


def test_what_the_job_left_in_place_of_its_output_is_removed(places: tuple[Path, Path]) -> None:
    output = places[1] / "check.out"
    output.symlink_to(places[0] / "victim")
    assert judged(places, "echo 1") is None
    assert (output.read_text(), (places[0] / "victim").exists()) == ("1\n", False)
    output.unlink()
    os.mkfifo(output)
    assert judged(places, "echo 2") is None
    output.unlink()
    output.mkdir()
    found = judged(places, "echo 3")
    assert found is not None
    assert found.code is CHECK_ERROR


CHECK = """
read -r _ rate < stdout
[ "$rate" != none ] || { echo "there is no rate"; exit 2; }
echo "rate = $rate" > metrics.txt
[ "$rate" != 1 ] || exit 5
"""


def test_a_run_gets_the_verdict_and_the_figures_of_its_scripts(place: Workplace) -> None:
    folder = place.test(
        "one",
        'echo "rate $rate"',
        parameters={"rate": ["12.5", "1", "none"]},
        verify=[{"script": "check.sh", "codes": "oth"}, {"script": "report.sh", "codes": "any"}],
        metrics={"from": "oth"},
    )
    (folder / "check.sh").write_text(CHECK)
    (folder / "report.sh").write_text("echo 'twice = 25' >> metrics.txt; exit 3")
    place.local()
    done = place.run("--name", "t")
    assert done.code == 1, done.said
    verdicts = place.verdicts()
    assert sorted(verdicts.values()) == ["pass", "performance", "wrong answer"]
    told = [line.split()[-1] for line in done.out.splitlines() if line.startswith("one{rate=1}@")]
    assert "performance" in told, "in the table, though no figure misses a reference"
    (right,) = [event for event in place.events("t", RunJudged) if event.verdict == "pass"]
    figures = place.events("t", MetricRecorded)
    own = {each.metric: each.value for each in figures if each.run_id == right.run_id}
    assert own == {"rate": 12.5, "twice": 25}
    assert "there is no rate" in "".join(event.reason for event in place.events("t", RunJudged))
    (folder / "check.sh").write_text("exit 9")
    again = place.seatrial("judge", "--again", "t", "--reason", "new check", "--format", "json")
    assert again.out.count("node failure") >= 3, again.said


def test_a_script_names_the_cause_and_the_nodes(place: Workplace) -> None:
    lines = "n1 PERF-FAIL\\nn2 GOOD\\nn3 FAILED memory\\n"
    folder = place.test("one", "true", verify=[{"script": "check.sh", "codes": "oth"}])
    script = f'printf "{lines}" > nodecheck.txt; echo "slow memory" > check_alias.txt; exit 9'
    (folder / "check.sh").write_text(script)
    place.local()
    done = place.run("--name", "t")
    assert done.code == 1, done.said
    (judged,) = place.events("t", RunJudged)
    assert (judged.verdict, judged.cause) == ("node failure", "slow memory")
    assert {each.metric: each.value for each in place.events("t", MetricRecorded)} == {
        "findings": 2,
        "findings_of_check": 1,
        "findings_of_memory": 1,
        "failed_node{node=n1}": 1,
        "failed_node{node=n3}": 1,
    }


@pytest.mark.parametrize(
    ("check", "key"),
    [
        ({"script": "absent.sh"}, "script"),
        ({"script": "check.sh", "codes": {"300": "failed"}}, "codes"),
        ({"script": "check.sh", "codes": {"1": "sad"}}, "codes.1"),
        ({"script": "check.sh", "codes": "posix"}, "codes"),
        ({"script": "check.sh", "time_limit": 0}, "time_limit"),
        ({"script": "check.sh", "memory_limit": "much"}, "memory_limit"),
        ({"script": "check.sh", "memory_limit": 0}, "memory_limit"),
        ({"contains": "x", "time_limit": 1}, "time_limit"),
        ({"contains": "x", "codes": "oth"}, "codes"),
    ],
)
def test_a_fault_names_its_place(tmp_path: Path, check: dict[str, object], key: str) -> None:
    suite = Place(tmp_path)
    suite.test("one", verify=[check]).with_name("check.sh").write_text("true")
    assert f"verify[0].{key}: " in suite.fault()
