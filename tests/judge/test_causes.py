"""What a run failed of, as its output tells: in the journal, in commands, on pages, in sinks."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from seatrial.journal.events import RunJudged, RunJudgedAgain
from seatrial.journal.trial import RunLife
from seatrial.judge import script_check
from seatrial.judge.script_check import NO_CAUSE, CauseSearch, last_words
from seatrial.model.codes import FAILED, KNOWN, PASS, TIMEOUT
from seatrial.model.failures import LogRule
from seatrial.model.test import FailureMode
from seatrial.plugins.sinks.protocol import text_of
from tests.programs import Workplace

QUOTA = "cp: error writing 'out.dat': Disk quota exceeded"
EXPELLED = {
    "name": "gpfs-expelled",
    "pattern": "mmfs: .*expelled",
    "cause": "GPFS expelled the node",
    "advice": "Look at mmlsnode.",
    "source": "our operators",
}


def rule(name: str, pattern: str) -> LogRule:
    return LogRule(name=name, pattern=pattern, cause=name, advice="do", source="us")


SEARCH = CauseSearch([rule("first", "alpha|^ab+c$"), rule("second", "beta")])


def found(folder: Path, **outputs: bytes) -> script_check.FoundCause:
    for name, text in outputs.items():
        (folder / name).write_bytes(text)
    return SEARCH.of_run(folder, {}, 1)


# ---- searching ----------------------------------------------------------------------------


def test_the_first_rule_counts_wherever_its_line_is(tmp_path: Path) -> None:
    said = found(tmp_path, stderr=b"x\nbeta 1\n", stdout=b"y\nan alpha line\nbeta\n")
    assert (said.text, said.line, said.advice) == (
        "first",
        "stdout: an alpha line",
        "do (source: us)",
    )
    assert found(tmp_path, stdout=b"").line == "stderr: beta 1"
    assert found(tmp_path, stderr=b"nothing\n") == NO_CAUSE


def test_anchors_are_of_lines(tmp_path: Path) -> None:
    assert found(tmp_path, stdout=b"one\nabbbc\ntwo\n").line == "stdout: abbbc"
    assert found(tmp_path, stdout=b"one\nabbbcd\ntwo\n") == NO_CAUSE
    assert found(tmp_path, stdout=b"at 9 %\rabbbc\r\rat 10 %\r\n").line == "stdout: abbbc"
    search = CauseSearch([rule("two lines", "^one\ntwo$")])
    (tmp_path / "stdout").write_bytes(b"zero\r\none\r\ntwo\r\n")
    assert search.of_run(tmp_path, {}, 1).text == "two lines"


def test_any_bytes_may_surround_a_line_which_is_shown_on_one_line(tmp_path: Path) -> None:
    noise = bytes(range(256)).replace(b"\n", b"") * 40
    said = found(tmp_path, stderr=noise + b"just before beta \x1b[31m\xff\r" + noise)
    assert said.text == "second"
    assert said.line.isprintable()
    assert "just before beta" in said.line
    assert len(said.line) <= script_check.LONGEST_LINE + len("stderr: ")


def test_the_ends_of_a_long_file_are_searched_and_its_middle_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script_check, "PIECE", 1000)
    fill = b"." * 1500
    assert found(tmp_path, stdout=b"beta\n" + fill + fill).text == "second"
    assert found(tmp_path, stdout=fill + fill + b"\nbeta").text == "second"
    assert found(tmp_path, stdout=fill + b"beta" + fill) == NO_CAUSE
    assert len(script_check.read_ends(tmp_path / "stdout")) == 2001
    for size in (1999, 2000):
        (tmp_path / "stdout").write_bytes(fill + b"x" * (size - len(fill)))
        assert len(script_check.read_ends(tmp_path / "stdout")) == size


def test_what_is_no_file_tells_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "stdout")
    (tmp_path / "stderr").symlink_to("/etc/passwd")
    assert SEARCH.of_run(tmp_path, {"any": FailureMode(code=100, pattern=".")}, 1) == NO_CAUSE


def test_a_failure_mode_is_known_by_its_pattern_its_exit_code_or_both(tmp_path: Path) -> None:
    modes = {
        "both": FailureMode(code=101, pattern="be+ta", exit_code=3),
        "code": FailureMode(code=102, exit_code=4, advice="ask"),
        "line": FailureMode(code=103, pattern="gamma"),
    }
    (tmp_path / "stdout").write_bytes(b"alpha\nbeta\n")

    def told(exit_code: int | None) -> tuple[str, int, str]:
        return SEARCH.of_run(tmp_path, modes, exit_code)[:3]

    assert told(3) == ("both", 101, "stdout: beta")
    assert told(4) == ("code", 102, "")
    assert told(None) == ("first", 0, "stdout: alpha")
    (tmp_path / "stdout").write_bytes(b"alpha\ngamma\n")
    assert told(3) == ("line", 103, "stdout: gamma")


def test_the_last_words_of_a_run_are_its_own(tmp_path: Path) -> None:
    def last(stderr: str, stdout: str = "computing\n") -> str:
        (tmp_path / "stderr").write_text(stderr)
        (tmp_path / "stdout").write_text(stdout)
        return last_words(tmp_path).line

    assert last("") == "stdout: computing"
    assert last("", "\n") == ""
    assert last("no grid\n\n---\n") == "stderr: no grid"
    assert last("no grid\nsrun: error: n1: task 0: Exited with exit code 1\n") == "stderr: no grid"
    assert last("no grid\nseatrial: its set-up ended with 1\n") == "stderr: no grid"
    assert last("\x1b[31mno grid\n") == r"stderr: \x1b[31mno grid"
    bar = 74 * "-" + "\n"
    said = bar + "There are not enough slots\nfor 4.\n\n  Application: a.out\n" + bar
    usual = bar + "Primary job  terminated normally, but 1 process returned\na code.\n" + bar
    assert last(said + usual) == "stderr: There are not enough slots for 4."
    hydra = 80 * "=" + "\n=   BAD TERMINATION OF ONE OF YOUR PROCESSES\n=   PID 1\n" + 80 * "="
    assert last(f"no grid\n{hydra}\n") == "stderr: no grid"


# ---- through commands ---------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


def test_causes_are_in_the_journal_and_everywhere_behind_it(place: Workplace) -> None:
    place.local(log_rules=[EXPELLED])
    place.test("quota", f'echo "{QUOTA}" >&2; exit 1')
    place.test("site", "echo 'mmfs: [E] node was expelled'; exit 2")
    modes = {"diverged": {"code": 101, "pattern": "residual NaN", "advice": "halve the step"}}
    place.test("own", f'echo "residual NaN"; echo "{QUOTA}"; exit 1', failures=modes)
    place.test("slow", "echo 'MPI_ABORT was invoked on rank 0'; sleep 600", run={"walltime": 1})
    place.test("good", f'echo "{QUOTA}"')
    assert place.run("--name", "t").code == 1
    by_test = {each.test: each for each in place.events("t", RunJudged)}
    quota, own = by_test["quota"], by_test["own"]
    assert (quota.code, quota.cause, quota.cause_code) == (FAILED.number, "over quota", 0)
    assert quota.cause_line == f"stderr: {QUOTA}"
    assert "errno(3)" in quota.advice
    assert by_test["site"].cause == "GPFS expelled the node"
    assert (own.cause, own.cause_code, own.advice) == ("diverged", 101, "halve the step")
    assert own.code == FAILED.number
    assert by_test["slow"].code == TIMEOUT.number
    assert by_test["slow"].cause == "the program called MPI_Abort"
    assert (by_test["good"].code, by_test["good"].cause) == (PASS.number, "")
    assert "failed: quota" in text_of(quota)
    assert "over quota: " in text_of(quota)

    def tests(cause: str) -> list[str]:
        done = place.seatrial("runs", "--cause", cause, "--format", "json")
        return sorted(run["test"] for run in json.loads(done.out))

    assert tests("quota") == ["quota"]
    assert tests("*EXPELLED*") == ["site"]
    assert tests("e") == ["own", "quota", "site", "slow"]
    assert tests("nothing such") == []
    shown = place.seatrial("show", f"t/{own.run_id}")
    assert "diverged (101)" in shown.out
    assert "stdout: residual NaN" in shown.out
    assert place.seatrial("report", "t", "-o", "r.json").code == 0
    tables = json.loads((place.folder / "r.json").read_text())["components"][0]["tables"]
    (failed,) = [one for one in tables if one["title"] == "Runs that did not pass"]
    assert {row[2] for row in failed["rows"]} >= {"over quota", "diverged"}


TRACEBACK = """Traceback (most recent call last):
  File "heat.py", line 3, in <module>
ValueError: the grid is odd
"""
OVERLOAD = """A request was made to bind to that would result in binding more
processes than cpus on a resource:
"""


def test_the_line_of_run_says_what_a_run_failed_of(place: Workplace) -> None:
    place.local()
    checks = [{"contains": "converged"}]
    for test, script in {
        "heat": f"cat >&2 <<'END'\n{TRACEBACK}END\nexit 1",
        "bind": f"cat >&2 <<'END'\n{OVERLOAD}END\nexit 1",
        "missing": "mpirunx -n 2 ./a.out",
        "odd": "echo 'grid: 7 is odd' >&2; exit 4",
        "mute": "exit 5",
        "noisy": "echo 'a warning' >&2",
    }.items():
        place.test(
            test,
            script,
            verify=checks,
            metrics={"rate": {"find": "rate (.*)", "unit": "1/s", "better": "higher"}},
        )
    done = place.run("--name", "t")
    lines = {line.split("@")[0]: line.split("  ")[-1] for line in done.out.splitlines()}
    assert lines["failed heat"] == (
        "a Python program ended with an exception: ValueError: the grid is odd (exit code 1, not 0)"
    )
    assert lines["failed bind"].startswith("mpirun binds more ranks than there are cores: A requ")
    assert lines["failed missing"].startswith("a command is missing: ")
    assert lines["failed missing"].endswith("mpirunx: command not found (exit code 127, not 0)")
    assert lines["failed odd"] == "exit code 4, not 0: grid: 7 is odd"
    assert lines["failed mute"] == "exit code 5, not 0"
    assert lines["wrong answer noisy"] == "stdout does not contain 'converged'; and 1 more"
    junit = place.seatrial("export", "t", "--format", "junit").out
    assert 'message="failed: exit code 4, not 0: grid: 7 is odd"' in junit
    (odd,) = [event for event in place.events("t", RunJudged) if event.test == "odd"]
    assert "last line  stderr: grid: 7 is odd" in place.seatrial("show", odd.run_id).out


def test_a_run_that_passes_when_it_is_judged_again_has_no_cause_any_more() -> None:
    life = RunLife()
    about: dict[str, Any] = {
        "cause": "over quota",
        "cause_code": 101,
        "cause_line": "x",
        "advice": "y",
    }
    life.apply(RunJudged(time=1, run_id="r", code=FAILED.number, **about))
    life.apply(RunJudgedAgain(time=2, run_id="r", code=KNOWN.number))
    assert (life.cause, life.cause_code, life.cause_line, life.advice) == tuple(about.values())
    life.apply(RunJudgedAgain(time=3, run_id="r", code=PASS.number))
    assert (life.cause, life.cause_code, life.cause_line, life.advice) == ("", 0, "", "")


def test_a_known_failure_of_a_machine_is_of_its_cause_alone(place: Workplace) -> None:
    known = {"reason": "case 783658", "verdicts": ["failed"], "causes": ["GPFS*"]}
    open_, over = {"until": "2099-12-31", "url": "https://t/1"}, {"until": "2020-01-31"}
    place.local(log_rules=[EXPELLED], known_failures=[known | open_])
    place.test("site", "echo 'mmfs: [E] node was expelled'; exit 2")
    place.test("other", "exit 2")
    place.test("good", "echo fine")
    assert place.run("--name", "a").code == 1
    by_test = {each.test: each for each in place.events("a", RunJudged)}
    assert by_test["site"].code == KNOWN.number
    assert by_test["site"].reason.endswith("(known until 2099-12-31: case 783658, https://t/1)")
    assert by_test["other"].code == FAILED.number
    assert not by_test["good"].known, "it may have passed by chance"
    place.local(log_rules=[EXPELLED], known_failures=[known | over])
    assert place.run("--name", "b").code == 1
    by_test = {each.test: each for each in place.events("b", RunJudged)}
    assert by_test["site"].code == FAILED.number
    told = "(was known until 2020-01-31, which is over: case 783658)"
    assert by_test["site"].reason.endswith(told)
    assert "known" not in by_test["other"].reason


def test_faults_of_rules_and_failures_are_told_with_their_places(place: Workplace) -> None:
    odd = [
        EXPELLED | {"pattern": "(a"},
        EXPELLED | {"name": "b", "pattern": "a*"},
        EXPELLED | {"name": "c", "example": "another line"},
        EXPELLED | {"name": "d", "source": " "},
        EXPELLED | {"name": "d", "pattern": "(?=x)"},
        EXPELLED | {"name": "e", "pattern": "((a{900}){900}){9}"},
    ]
    place.local(log_rules=odd, known_failures=[{"reason": "x", "until": "2099-01-01"}])
    modes = {"a": {"code": 100}, "b": {"code": 100, "exit_code": 1}, "c": {"code": 7}}
    place.test("t", failures=modes)
    done = place.run()
    assert done.code == 2
    assert "Traceback" not in done.said
    for told in (
        "log_rules[0].pattern: '(a' is no regular expression of RE2",
        "log_rules[1].pattern: 'a*' matches an empty line",
        "log_rules[2].example: is not matched by the pattern",
        "log_rules[3].source: is empty",
        "log_rules[4].pattern: '(?=x)' is no regular expression of RE2",
        "log_rules[4].name: 'd' is there twice",
        "log_rules[5].pattern: ",
        "known_failures[0].tests: names no tests, no toolchains and no causes",
    ):
        assert told in done.said, told
    many = [EXPELLED | {"name": f"n{i}"} for i in range(301)]
    place.local(log_rules=many)
    assert "log_rules: has 301 rules; the most is 300" in place.run().said
    place.local()
    done = place.run()
    for told in (
        "failures.a: give a pattern or an exit_code",
        "failures.b.code: 100 is the code of a, too",
        "failures.c.code: ",
    ):
        assert told in done.said, told
