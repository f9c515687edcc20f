"""The commands that ask, through the real command line."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import resource
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial import cli
from seatrial.cli.tables import TextTable
from seatrial.escaping import plain_line, xml_text, xml_value
from seatrial.journal.events import ScriptStarted
from seatrial.model import codes
from seatrial.model.codes import Code
from seatrial.show.text import fold
from tests.programs import LONG_S
from tests.results.store.trials import NOON, SECOND, TrialMaker, a_case, a_trial


class Answer(NamedTuple):
    code: int
    out: str
    err: str


def ask(trials: Path, *words: str) -> Answer:
    """What the console script prints and ends with."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack:
        patch.setattr(sys, "argv", ["seatrial", "--trials", str(trials), *words])
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        ended = stack.enter_context(pytest.raises(SystemExit))
        cli.main()
    return Answer(int(str(ended.value.code)), out.getvalue(), err.getvalue())


def is_safe(text: str) -> bool:
    return all(char.isprintable() or char == "\n" for char in text)


@pytest.fixture(autouse=True)
def _of_this_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.fixture
def trials(tmp_path: Path) -> Path:
    a_trial(tmp_path)
    return tmp_path


# ---- trials -------------------------------------------------------------------------------


def test_trials(trials: Path) -> None:
    answer = ask(trials, "trials")
    assert (answer.code, answer.err) == (0, "")
    title, row = (line.split("  ") for line in answer.out.splitlines())
    assert [cell for cell in map(str.strip, title) if cell] == [
        *("trial", "machine", "state", "started", "elapsed", "runs", "pass", "fail"),
    ]
    assert [cell for cell in map(str.strip, row) if cell] == [
        *("nightly", "frontier", "ended", "11-21 12:00:01", "26.0 s", "3", "1", "2"),
    ]


def test_trials_as_json_and_limited(trials: Path) -> None:
    a_trial(trials, "newer", created=NOON + SECOND)
    (row,) = json.loads(ask(trials, "trials", "--limit", "1", "--format", "json").out)
    assert (row["tag"], row["passed"], row["created"]) == (
        *("newer", 1, "2026-11-21T12:00:01.000000Z"),
    )
    assert "1 older trial" in ask(trials, "trials", "--limit", "1").out


def test_damaged_lines_are_told(trials: Path) -> None:
    with (trials / "nightly" / "journal.jsonl").open("ab") as file:
        file.write(b"garbage\n")
    assert "journal.jsonl:28: 1 damaged line" in ask(trials, "trials").err


@pytest.mark.parametrize("words", [["trials"], ["runs"], ["runs", "--failed"]], ids=str)
def test_where_there_is_nothing_it_says_what_to_type(tmp_path: Path, words: list[str]) -> None:
    answer = ask(tmp_path / "none", *words)
    assert answer == (0, f"No trials in {tmp_path}/none yet. Start one: seatrial run SUITE\n", "")
    assert not (tmp_path / "none").exists()


# ---- runs ---------------------------------------------------------------------------------


def test_runs_newest_first(trials: Path) -> None:
    answer = ask(trials, "runs")
    assert (answer.code, answer.err) == (0, "")
    title, *rows, last = answer.out.splitlines()
    assert title.split() == ["run", "case", "verdict", "created", "elapsed", "nodes"]
    assert [row.split()[0] for row in rows] == ["bbbb3333", "aaaa2222", "aaaa1111"]
    assert "wrong answer  11-21 12:00:15      1 s  n001" in rows[1]
    assert last == "all of trial nightly"


def test_runs_of_several_trials_name_them(trials: Path) -> None:
    a_trial(trials, "later", created=NOON + SECOND)
    lines = ask(trials, "runs", "-k", "hpl").out.splitlines()
    assert [line.split()[-1] for line in lines] == ["trial", "later", "nightly"]


def test_runs_say_how_many_more_there_are(tmp_path: Path) -> None:
    trial = TrialMaker(tmp_path, "many", [a_case(1)])
    for number in range(60):
        trial.run(trial.cases[0], f"r{number:03}")
    trial.write()
    lines = ask(tmp_path, "runs").out.splitlines()
    assert len(lines) == 1 + 50 + 2
    assert lines[1].startswith("r059 ")
    assert lines[-2] == "the latest of trial many"
    assert lines[-1] == "10 older runs are not shown; --limit 0 shows all"
    assert len(ask(tmp_path, "runs", "--limit", "0").out.splitlines()) == 1 + 60 + 1
    assert len(json.loads(ask(tmp_path, "runs", "--format", "json").out)) == 60
    limited = ask(tmp_path, "runs", "--format", "csv", "--limit", "7")
    assert len(limited.out.splitlines()) == 8


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (["--failed"], 2),
        (["--verdict", "pass"], 1),
        (["--verdict", "pass", "--verdict", "build-failed"], 2),
        (["--test", "str*"], 2),
        (["--machine", "frontier"], 3),
        (["--machine", "lumi"], 0),
        (["--toolchain", "gcc"], 3),
        (["--tag", "node"], 3),
        (["--trial", "nigh"], 3),
        (["--since", "2026-11-21"], 3),
        (["--since", "2026-11-21T12:00:20"], 1),
        (["--since", "2026-11-21 12:00:20+00:00"], 1),
        (["--since", "2026-11-22"], 0),
        (["--since", "3650d"], 3),
    ],
    ids=str,
)
def test_runs_filtered(trials: Path, words: list[str], count: int) -> None:
    answer = ask(trials, "runs", "--format", "json", *words)
    assert answer.code == 0
    assert len(json.loads(answer.out)) == count
    if not count:
        assert ask(trials, "runs", *words).out == "No such runs; see `seatrial trials`\n"


def test_since_is_counted_from_now(tmp_path: Path) -> None:
    for tag, ago in (("fresh", 60), ("stale", 3 * 3600)):
        a_trial(tmp_path, tag, created=time.time_ns() - ago * SECOND)
    found = json.loads(ask(tmp_path, "runs", "--since", "2h", "--format", "json").out)
    assert {row["trial"] for row in found} == {"fresh"}


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["runs", "--trial", "nope"], "see `seatrial trials`"),
        (["runs", "--verdict", "good"], "one of: "),
        (["runs", "--since", "lately"], "write a while such as 2h"),
        (["show", "nope"], "see `seatrial runs`"),
        (["show", "nope/aaaa"], "see `seatrial trials`"),
        (["show", "aaaa"], "nightly/aaaa1111nightly"),
        (["export", "nope"], "see `seatrial trials`"),
        (["export", "nightly", "-o", "/nowhere/x.xml"], "--output"),
    ],
    ids=str,
)
def test_what_is_not_there_ends_with_2_and_a_hint(
    trials: Path, words: list[str], hint: str
) -> None:
    answer = ask(trials, *words)
    assert (answer.code, answer.out) == (2, "")
    assert hint in answer.err


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\uff1d1", "=cmd|' /C calc'!A0"]


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_text_of_a_job_is_a_formula_in_csv(tmp_path: Path, formula: str) -> None:
    trial = TrialMaker(tmp_path, "hostile", [a_case(1)])
    trial.run(trial.cases[0], "aaaa1", codes.FAILED, why=formula)
    trial.write()
    (row,) = csv.DictReader(io.StringIO(ask(tmp_path, "runs", "--format", "csv").out))
    assert row["why"] == f"'{formula}"


ESC = "\x1b]0;pwn\x07\u202e"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('app: a\nrun: {walltime: 1m, script: "true"}\n"\\e]0;pwn\\a\\u202e": 1\n', 2),
        ("app: a\nrun: {walltime: 1m, script: 'true'}\n", 0),
    ],
)
def test_a_message_controls_no_terminal(tmp_path: Path, text: str, code: int) -> None:
    """By a key of a file or a path."""
    folder = tmp_path / f"suite{ESC}" / "test"
    folder.mkdir(parents=True)
    (folder / "test.yaml").write_text(text)
    (tmp_path / "m.yaml").write_text("machine: m\nnodes: [{names: a, cores: 2}]\n")
    answer = ask(tmp_path, "list", str(folder.parent), "-m", str(tmp_path / "m.yaml"))
    assert answer.code == code
    assert is_safe(answer.out + answer.err)
    assert r"\x1b]0;pwn\x07" in answer.err or not code


@pytest.mark.parametrize(
    "words",
    [
        ["list", f"/nowhere/{ESC}"],
        [f"a{ESC}"],
        ["runs", f"--{ESC}"],
        ["runs", "--limit", ESC],
        ["list", "-m", f"./{ESC}.yaml"],
        ["report", f"{ESC}.yaml"],
        ["note", "x", "--at", ESC],
        ["--store", f"/nowhere/{ESC}", "runs"],
    ],
    ids=lambda words: words[0][:6],
)
def test_words_of_the_command_line_control_no_terminal(tmp_path: Path, words: list[str]) -> None:
    answer = ask(tmp_path / f"trials{ESC}", *words)
    assert "pwn" in answer.out + answer.err
    assert is_safe(answer.out + answer.err), answer.err


def test_runs_as_csv_with_figures(trials: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(ask(trials, "runs", "--format", "csv").out)))
    assert [row["triad [MB/s]"] for row in rows] == ["", "17.0", "5694.0"]
    assert [row["copy [MB/s]"] for row in rows] == ["", "", "5000.5"]
    assert rows[1]["why"] == r"verify[0]: \x1b[31mSolution\x07 was not found"
    assert rows[2]["created"] == "2026-11-21T12:00:04.000000Z"


def test_runs_as_json_with_figures(trials: Path) -> None:
    *_, first = json.loads(ask(trials, "runs", "--format", "json").out)
    assert first["metrics"]["triad"] == {"value": 5694.0, "unit": "MB/s"}
    assert (first["verdict"], first["elapsed"], first["job_id"]) == ("pass", 1.0, "4711")


# ---- show ---------------------------------------------------------------------------------


def test_show_tells_everything(trials: Path) -> None:
    answer = ask(trials, "show", "aaaa1")
    folder = trials / "nightly" / "runs" / "stream" / "aaaa1111nightly"
    assert (answer.code, answer.err) == (0, "")
    lines = [" ".join(line.split()) for line in answer.out.splitlines()]
    for expected in (
        "run nightly/aaaa1111nightly",
        "case stream{touch=all,threads=1}@gcc",
        "test stream, application stream-app",
        "verdict pass",
        "machine frontier",
        "asked 1 node, 2 tasks, 1 thread each, at most 5 m 0 s",
        "parameters touch=all, threads=1",
        "toolchain gcc",
        "job 4711",
        "nodes n001",
        "ran 11-21 12:00:08 to 11-21 12:00:09, 1 s",
        "exit code 0",
        "+0.000 s logging_start",
        "+3.000 s job_queued 4711",
        "+5.000 s binary_execute_end exit code 0",
        "+6.000 s job_end COMPLETED",
        "+8.000 s metric triad = 5694 MB/s",
        "+10.000 s check_end pass",
        "triad 5694 MB/s higher",
        f"{folder}/job.sh (21 B)",
        "stdout",
        "Triad: 5694",
        "stderr is empty",
    ):
        assert expected in lines
    assert "./stream" not in answer.out


REFERENCES = """\
references:
  - {test: stream, metric: triad, unit: MB/s, value: 6000}
  - {test: stream, metric: copy, unit: MB/s, min: 4000, max: 5000}
  - {test: stream, metric: scale, unit: GB/s, value: 5}
  - {test: stream, metric: add, unit: MB/s, value: 5, where: {touch: all}}
  - {test: stream, metric: add, unit: MB/s, value: 6, where: {threads: 1}}
"""


def test_show_puts_references_beside_figures(tmp_path: Path) -> None:
    trial = TrialMaker(tmp_path, "t", [a_case(1)], expected=REFERENCES)
    figures = {"triad": 5700.0, "copy": 4500.0, "scale": 5.0, "add": 5.0, "free": 1.0}
    trial.run(trial.cases[0], "r1", figures=figures)
    trial.write()
    lines = [" ".join(line.split()) for line in ask(tmp_path, "show", "r1").out.splitlines()]
    for expected in (
        "figure value better reference better by",
        "triad 5700 MB/s higher 6000 MB/s -5.0 %",
        "copy 4500 MB/s higher >= 4000 MB/s, <= 5000 MB/s",
        "scale 5 MB/s higher 5 GB/s = 5000 MB/s -99.9 %",
        "add 5 MB/s higher ambiguous",
        "free 1 MB/s higher",
    ):
        assert expected in lines
    shutil.rmtree(trial.folder.path)
    assert "triad 5700 MB/s higher" in " ".join(ask(tmp_path, "show", "r1").out.split())


def test_show_tells_the_gpus_that_the_latest_start_was_given(tmp_path: Path) -> None:
    trial = TrialMaker(tmp_path, "t", [a_case(1)])
    trial.run(trial.cases[0], "r1")
    trial.run(trial.cases[0], "r2")
    of = {"run_id": "r1", "case": trial.cases[0].id}
    for gpus in ("GPU-0a1b", "GPU-2c3d GPU-4e5f"):
        trial.event(ScriptStarted, nodes="n001", gpus=gpus, **of)
    trial.write()
    lines = [" ".join(line.split()) for line in ask(tmp_path, "show", "r1").out.splitlines()]
    assert "GPUs GPU-2c3d, GPU-4e5f" in lines
    assert any(line.endswith("binary_execute_start n001 GPUs GPU-0a1b") for line in lines)
    assert "GPU" not in ask(tmp_path, "show", "r2").out
    for run, told in (("r1", ["GPU-2c3d", "GPU-4e5f"]), ("r2", [])):
        found = json.loads(ask(tmp_path, "show", run, "--format", "json").out)
        assert found["gpus"] == told


def test_show_with_scripts(trials: Path) -> None:
    out = ask(trials, "show", "nightly/aaaa1", "--scripts").out
    for text in ("make stream", "echo stream", "#!/bin/bash", "./stream"):
        assert f"  {text}\n" in out


def test_show_of_what_a_job_wrote_is_safe(trials: Path) -> None:
    out = ask(trials, "show", "aaaa2").out
    assert is_safe(out)
    assert r"wrong answer: verify[0]: \x1b[31mSolution\x07 was not found" in out
    assert r"  bad\x1b[2J\xff <&> ]]>\x00end" in out
    assert "  x\n  y" in out


def test_show_the_last_lines(tmp_path: Path) -> None:
    trial = TrialMaker(tmp_path, "t", [a_case(1)])
    text = b"".join(b"line %d\n" % number for number in range(30_000))
    trial.run(trial.cases[0], "r1", files={"stdout": text})
    trial.write()
    out = ask(tmp_path, "show", "r1", "-n", "3").out
    assert "\nstdout, its last 3 lines\n  line 29997\n  line 29998\n  line 29999\n\n" in out
    assert "line 2" not in ask(tmp_path, "show", "r1", "-n", "0").out


def test_show_reads_neither_pipes_nor_devices(tmp_path: Path) -> None:
    trial = TrialMaker(tmp_path, "t", [a_case(1)])
    trial.run(trial.cases[0], "r1", files={})
    trial.write()
    os.mkfifo(trial.folder.run("stream", "r1") / "stdout")
    (trial.folder.run("stream", "r1") / "stderr").symlink_to("/dev/zero")
    out = ask(tmp_path, "show", "r1").out
    assert "stdout  (is not there)" in out
    assert "stderr  (is not there)" in out


def test_show_as_json(trials: Path) -> None:
    answer = ask(trials, "show", "aaaa2", "--format", "json")
    assert is_safe(answer.out)
    found = json.loads(answer.out)
    assert found["run"]["why"] == "verify[0]: \x1b[31mSolution\x07 was not found"
    assert found["case"]["parameters"] == {"touch": "all", "threads": 2}
    assert found["metrics"] == [{"name": "triad", "value": 17, "unit": "MB/s", "better": "higher"}]
    assert found["events"][-1]["event"] == "check_end"
    assert found["files"]["stdout"].endswith("aaaa2222nightly/stdout")


def test_json_holds_nothing_that_a_terminal_obeys(tmp_path: Path) -> None:
    why = "\x7f\x9b31m\u202eevil\ufeff ä"
    trial = TrialMaker(tmp_path, "t", [a_case(1)])
    trial.run(trial.cases[0], "r1", codes.FAILED, why=why)
    trial.write()
    words = [["show", "r1"], ["runs"], ["export", "t"], ["trials"]]
    answers = [ask(tmp_path, *word, "--format", "json").out for word in words]
    assert all(is_safe(answer) for answer in answers)
    assert json.loads(answers[0])["run"]["why"] == why
    assert json.loads(answers[1])[0]["why"] == why


# ---- export -------------------------------------------------------------------------------


def test_junit(trials: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.xml"
    assert ask(trials, "export", "nightly", "-o", str(target)).code == 0
    root = ET.parse(target).getroot()
    assert (root.tag, root.get("tests"), root.get("failures")) == ("testsuites", "3", "2")
    assert [suite.get("name") for suite in root] == ["hpl", "stream"]
    good, bad = root[1].findall("testcase")
    assert (good.get("name"), good.get("classname")) == (
        *("stream{touch=all,threads=1}@gcc", "stream-app.stream"),
    )
    assert (good.get("time"), good.find("failure")) == ("1.000", None)
    assert good.findtext("system-out") == "Triad: 5694\n"
    properties = {p.get("name"): p.get("value") for p in good.iter("property")}
    assert properties["metric triad"] == "5694 MB/s"
    assert properties["parameter touch"] == "all"
    assert properties["toolchain"] == "gcc"
    about = {p.get("name"): p.get("value") for p in root[1].findall("properties/property")}
    assert (about["trial"], about["machine"]) == ("nightly", "frontier")
    failure = bad.find("failure")
    assert failure is not None
    assert failure.get("type") == "wrong answer"
    assert failure.get("message") == (
        r"wrong answer: verify[0]: \x1b[31mSolution\x07 was not found"
    )
    assert bad.findtext("system-out") == "bad\\x1b[2J\\xff <&> ]]>\\x00end\n"


def test_junit_counts_what_is_not_over_as_skipped(tmp_path: Path) -> None:
    cases = [a_case(number) for number in range(3)]
    trial = TrialMaker(tmp_path, "t", cases)
    trial.run(cases[0], "r1", codes.LOST, again=True)
    trial.run(cases[0], "r2")
    trial.run(cases[1], "r3", verdict=None)
    trial.write()
    root = ET.fromstring(ask(tmp_path, "export", "t").out)
    counts = [root.get(name) for name in ("tests", "failures", "skipped")]
    assert counts == ["4", "0", "3"]
    messages = [found.get("message") for found in root.iter("skipped")]
    assert messages == ["lost; the case is run again", "in progress", "was not started"]
    names = [found.get("name") for found in root.iter("testcase")]
    assert len(set(names)) == 4
    assert names[1] == f"{cases[0].name} #2"


@pytest.mark.parametrize("code", [codes.NODE_FAILURE, codes.LOST, codes.CANCELLED])
def test_junit_calls_an_error_what_is_not_the_tests_fault(tmp_path: Path, code: Code) -> None:
    trial = TrialMaker(tmp_path, "t", [a_case(1), a_case(2)])
    trial.run(trial.cases[0], "r1", code)
    trial.run(trial.cases[1], "r2", codes.FAILED)
    trial.write()
    root = ET.fromstring(ask(tmp_path, "export", "t").out)
    assert (root.get("errors"), root.get("failures")) == ("1", "1")
    assert [one.get("type") for one in root.iter("error")] == [code.name]
    assert [one.get("type") for one in root.iter("failure")] == ["failed"]


def test_show_the_last_run(tmp_path: Path) -> None:
    for tag, begun in (("one", 1), ("two", 2)):
        trial = TrialMaker(tmp_path, tag, [a_case(1)])
        trial.now += begun * 10**12
        trial.run(trial.cases[0], f"r{tag}1")
        trial.run(trial.cases[0], f"r{tag}2")
        trial.write()
    assert "two/rtwo2" in ask(tmp_path, "show", "--last").out.splitlines()[0]
    assert "one/rone2" in ask(tmp_path, "show", "--last", "one").out.splitlines()[0]
    answer = ask(tmp_path, "show")
    assert answer.code == 2 and "--last" in answer.err
    assert ask(tmp_path, "show", "--last", "three").code == 2
    (tmp_path / "none").mkdir()
    answer = ask(tmp_path / "none", "show", "--last")
    assert answer.code == 2 and "no run is in the trials" in answer.err


def test_junit_output_is_bounded(tmp_path: Path) -> None:
    trial = TrialMaker(tmp_path, "t", [a_case(1)])
    trial.run(trial.cases[0], "r1", files={"stdout": "ä".encode() * 50_000 + b"the end"})
    trial.write()
    text = ET.fromstring(ask(tmp_path, "export", "t").out).findtext(".//system-out")
    assert text is not None
    assert text.startswith("[the last 16383 of 100007 bytes]\nä")
    assert text.endswith("äthe end")
    assert len(text) < 10_000
    trial = TrialMaker(tmp_path / "lines", "t", [a_case(1)])
    trial.run(trial.cases[0], "r1", files={"stdout": b"the coefficient 1\n" * 2000})
    trial.write()
    text = ET.fromstring(ask(tmp_path / "lines", "export", "t").out).findtext(".//system-out")
    assert text is not None
    note, *lines = text.splitlines()
    assert set(lines) == {"the coefficient 1"}
    assert note == f"[the last {18 * len(lines)} of 36000 bytes]"


@given(
    st.text(
        st.one_of(st.characters(codec="utf-8"), st.sampled_from('\r\x1b\x00\x7f\x85\ufffe<&>"]'))
    )
)
def test_any_text_survives_xml(text: str) -> None:
    root = ET.fromstring(f"<a b={xml_value(text)}>{xml_text(text)}</a>")
    shown = "".join(char if is_legal(char) else visible(char) for char in text)
    assert (root.text or "", root.get("b")) == (shown, shown)


def is_legal(char: str) -> bool:
    """By XML 1.0, less the controls that it discourages, less carriage returns, which a reader
    would take for line ends, and less what turns the direction of writing."""
    turns = "\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    is_control = char < " " or "\x7f" <= char <= "\x9f" or char in "\ufffe\uffff"
    return char in "\t\n" or not (is_control or char in turns)


def visible(char: str) -> str:
    return f"\\x{ord(char):02x}" if char <= "\xff" else f"\\u{ord(char):04x}"


def test_json_export(trials: Path) -> None:
    found = json.loads(ask(trials, "export", "nightly", "--format", "json").out)
    assert list(found) == ["trial", "cases", "runs", "metrics"]
    assert found["trial"]["tag"] == "nightly"
    assert [case["test"] for case in found["cases"]] == ["stream", "stream", "hpl"]
    assert [run["verdict"] for run in found["runs"]] == ["pass", "wrong answer", "build failed"]
    assert {(m["run_id"], m["name"], m["value"]) for m in found["metrics"]} == {
        ("aaaa1111nightly", "triad", 5694.0),
        ("aaaa1111nightly", "copy", 5000.5),
        ("aaaa2222nightly", "triad", 17.0),
    }


# ---- store --------------------------------------------------------------------------------


def test_store_rebuild_path_and_info(trials: Path) -> None:
    store = trials / "store.sqlite"
    assert ask(trials, "store", "path").out == f"{store}\n"
    store.write_text("broken " * 1000)
    broken = ask(trials, "runs")
    assert broken.code == 3
    assert "seatrial store rebuild" in broken.err
    rebuilt = ask(trials, "store", "rebuild")
    assert rebuilt.code == 0
    assert rebuilt.out.startswith(f"{store}: 1 trials, 27 events in ")
    assert "3  runs" in ask(trials, "store", "info").out


def test_store_can_be_elsewhere(trials: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEATRIAL_STORE", str(other))
        assert ask(trials, "runs").code == 0
    assert other.exists()
    assert not (trials / "store.sqlite").exists()


# ---- tables -------------------------------------------------------------------------------


def test_long_names_fold_to_the_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [a_case(1, parameters={"alpha": "x" * 30, "beta": "y" * 30, "gamma": 7})]
    trial = TrialMaker(tmp_path, "t", cases)
    trial.run(cases[0], "r1", codes.NODE_FAILURE)
    trial.write()
    monkeypatch.setenv("COLUMNS", "80")
    assert len(ask(tmp_path, "runs").out.splitlines()) == 3  # in a pipe, a line each
    monkeypatch.setattr("seatrial.show.text.screen_width", lambda: 80)
    lines = ask(tmp_path, "runs").out.splitlines()
    assert max(map(len, lines)) <= 80
    start = lines[0].index("case")
    end = lines[0].index("verdict")
    assert "".join(line[start:end].strip() for line in lines[1:-1]) == cases[0].name


@given(st.text(max_size=40), st.integers(1, 12))
def test_folding_loses_nothing(text: str, width: int) -> None:
    assert "".join(fold(text, width)) == text


def test_a_number_is_not_broken() -> None:
    assert fold("mean 3.9 s at 12:30", 7) == ["mean ", "3.9 s ", "at ", "12:30"]


@given(st.text(max_size=40))
def test_plain_text_is_always_printable(text: str) -> None:
    assert plain_line(text).isprintable()
    assert plain_line(text) == text or not text.isprintable()


def test_a_table_is_aligned_and_drops_empty_columns() -> None:
    rows: list[list[object]] = [["a", "", 1], ["日本", None, "10\n"]]
    found = str(TextTable("name | none | number>", rows)).split("\n")
    assert found[1:] == ["a          1", "日本    10\\n"]
    assert "none" not in found[0]


# ---- a large store ------------------------------------------------------------------------


def processor_time() -> float:
    """Seconds that the commands took which have ended, whatever else this machine does."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_the_console_script_on_ten_thousand_runs(tmp_path: Path) -> None:
    trial = TrialMaker(tmp_path, "large", [a_case(1, repeat=10_000)])
    for number in range(10_000):
        trial.run(trial.cases[0], f"{number:012d}")
    trial.end()
    words = [sys.executable, "-c", "from seatrial.cli import main; main()"]
    words += ["--trials", str(tmp_path), "runs"]
    subprocess.run(words, check=True, capture_output=True, timeout=LONG_S)
    began = processor_time()
    done = subprocess.run(words, check=True, capture_output=True, timeout=LONG_S, text=True)
    took = processor_time() - began
    assert "9950 older runs are not shown" in done.stdout
    assert took < 2  # 0.13 s on a quiet machine; the aim is 0.5 s


def test_a_store_that_was_copied_with_its_trials_is_told(tmp_path: Path) -> None:
    a_trial(tmp_path / "one")
    assert ask(tmp_path / "one", "runs").code == 0
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    ask(tmp_path / "two", "trials")
    asked = ask(tmp_path / "two", "show", "nightly/aaaa1111")
    assert asked.code == 2
    assert "could be several trials" in asked.err
    assert "`seatrial store rebuild`" in asked.err
    assert ask(tmp_path / "two", "store", "rebuild").code == 0
    assert ask(tmp_path / "two", "show", "nightly/aaaa1111").code == 0
