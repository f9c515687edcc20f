"""compare, scaling and score, through the real command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from seatrial.model import codes
from tests.programs import Workplace
from tests.results.figures import TIME, TRIAD, Measuring, bound, steady
from tests.results.store.trials import NOON

from .test_query_common import ask, is_safe


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``after`` is 9 % worse at two threads, timed out at four, and has no hpl."""
    folder = tmp_path_factory.mktemp("trials")
    for tag, created in (("before", NOON), ("after", NOON + 10**12)):
        after = tag == "after"
        cases = [bound(i, threads=i) for i in (1, 2, 4)]
        cases += [bound(8, "hpl"), bound(9, "evil\x1b[31m")]
        trial = Measuring(folder, tag, cases, created=created)
        trial.series(cases[0], TRIAD, steady(1000, 6, seed=created))
        trial.series(cases[1], TRIAD, steady(1820 if after else 2000, 6, seed=created))
        if after:
            trial.measure(cases[2], verdict=codes.TIMEOUT)
        else:
            trial.series(cases[2], TRIAD, steady(3900, 6))
            trial.series(cases[3], TIME, steady(50, 3))
        trial.measure(cases[4], {("lat\x07", "us", "lower"): 1.0})
        trial.done()
        if after:
            record = trial.folder.path / "trial.json"
            text = re.sub(r'("version": ?)"0.1.0"', r'\1"0.2.0"', record.read_text())
            record.write_text(text)
    return folder


def test_compare_as_a_table(trials: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = ask(trials, "compare", "before", "after")
    assert wide.code == 1 and not wide.err and is_safe(wide.out)
    assert [line for line in wide.out.splitlines() if line.startswith("seatrial")] == [
        "seatrial        version  0.1.0  0.2.0"
    ]
    (worse,) = (line for line in wide.out.splitlines() if line.startswith("worse"))
    assert "stream{threads=2}" in worse and "-8." in worse and "6,6" in worse
    assert "stream{threads=4}: B has no right answer: 1 timeout" in wide.out
    assert "hpl: B has no such case" in wide.out
    monkeypatch.setattr("seatrial.show.text.screen_width", lambda: 80)
    narrow = ask(trials, "compare", "before", "after").out
    assert max(map(len, narrow.splitlines())) <= 80


def test_compare_as_json(trials: Path) -> None:
    answer = ask(trials, "compare", "before", "after", "before", "--format", "json")
    record = json.loads(answer.out)
    assert answer.code == 1 and record["first"] == "before" and record["least"] == 0.02
    after, itself = record["comparisons"]
    assert (after["second"], itself["second"]) == ("after", "before")
    assert after["differences"][0]["what"] == "version"
    first = after["rows"][0]
    assert first["verdict"] == "worse" and first["low"] < first["ratio"] < first["high"] < 1
    assert first["better_from"] < first["better_by"] < first["better_to"] < 0, "worse"
    assert first["first"]["n"] == first["second"]["n"] == 6
    times = [row for row in after["rows"] if row["better"] == "lower" and row["ratio"]]
    assert times
    for row in times:
        assert row["better_by"] == pytest.approx(100 * (1 - row["ratio"]))
        if row["low"] is not None:
            assert row["better_from"] <= row["better_by"] <= row["better_to"]
    assert {row["verdict"] for row in after["rows"]} >= {"worse", "same", "unclear", "missing"}
    assert all(row["verdict"] in ("same", "unclear") for row in itself["rows"])
    assert any("on both sides" in notice for notice in itself["notices"])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["after", "before"], 3),
        (["after", "before", "--test", "str"], 3),
        (["after:threads=2", "before:threads=2"], 0),
        (["before", "after", "--threshold", "10%"], 3),
        (["before", "after", "--threshold", "10%", "--test", "str"], 3),
        (["before:threads=2", "after:threads=2", "--threshold", "10%"], 0),
        (["before:threads=4", "after:threads=4"], 3),
        (["after:threads=4", "before:threads=4"], 3),
        (["before", "before", "after", "--threshold", "10%", "--test", "str"], 3),
        (["after:threads=4", "after:threads=4"], 3),
        (["before", "after", "--metric", "time"], 3),
        (["before:threads=1", "before:threads=1", "--test", "str"], 3),
        (["before", "after", "--threshold", "0.05"], 1),
        (["before", "after", "--metric", "elapsed"], 3),
        (["before", "after", "--test", "str", "--metric", "tri*"], 1),
        (["before:threads=1", "after:threads=1"], 0),
    ],
)
def test_the_exit_code_says_what_is_worse_and_what_is_undecided(
    trials: Path, words: list[str], code: int
) -> None:
    answer = ask(trials, "compare", *words)
    assert (answer.code, answer.err) == (code, "")


def test_a_side_without_a_right_answer_is_told_last(trials: Path) -> None:
    words = ["compare", "before:threads=4", "after:threads=4"]
    answer = ask(trials, *words)
    last = answer.out.split("\n\n")[-1]
    assert last.startswith("no right answer on one side: 1 row ") and "exit code 3" in last
    (record,) = json.loads(ask(trials, *words, "--format", "json").out)["comparisons"]
    assert (record["unanswered"], record["undecided"]) == (1, 0)
    assert "no right answer" not in ask(trials, "compare", "before", "before").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["compare", "before"], "name two sides or more"),
        (["compare", "before", "now"], "no trial 'now'; the latest is after"),
        (["compare", "before", "after", "--threshold", "much"], "'much' is not a share"),
        (["compare", "before", "after", "--threshold", "200%"], "is not less than 100%"),
        (["compare", "before", "after", "--threshold", "nan"], "nan"),
        (["compare", "before", "after", "--metric", "triat"], "no such metric; there are elapsed"),
        (
            ["compare", "before", "after", "--test", "xyz"],
            "no case of it fits; there are",
        ),
        (["compare", "before:test=hpl", "after:test=str"], "no case is on both"),
        (["scaling", "before", "--x", "core"], "--x core: is none of nodes, tasks, threads"),
        (["scaling", "before"], "Missing option '--x'"),
        (["score", "nothing.yaml", "before"], "nothing.yaml: no such file"),
    ],
)
def test_what_cannot_be_is_told_plainly(trials: Path, words: list[str], said: str) -> None:
    answer = ask(trials, *words)
    assert answer.code == 2 and said in answer.err and "Traceback" not in answer.err
    assert is_safe(answer.err) and not answer.out


def test_scaling(trials: Path) -> None:
    answer = ask(trials, "scaling", "before", "after", "--x", "threads", "--metric", "triad")
    assert answer.code == 0
    words = ["scaling", "before", "after", "--x", "threads", "--metric", "triad", "--by", "trial"]
    answer = ask(trials, *words)
    lines = [line.split() for line in answer.out.splitlines()]
    assert lines[0][0] == "stream@gcc:" and answer.code == 0
    assert ["4", "0", "4", "1", "timeout"] in lines
    assert (
        "no knee: more still pays at 4" in answer.out
        and "best median: before, threads 4" in answer.out
    )
    (table,) = json.loads(ask(trials, *words, "--format", "json").out)
    assert [line["by"] for line in table["lines"]] == ["before", "after"]
    header = next(line.split() for line in answer.out.splitlines() if "speed-up" in line)
    assert "runs" in header and "n" not in header
    answer = ask(trials, *words[:-2], "--pays", "99%")
    assert "more than threads 1, the smallest measured, does not pay: less than 99 %" in answer.out
    assert "knee at" not in answer.out
    assert "values" not in table["lines"][0]["cells"][0] and table["best"]["x"] == 4.0


def test_scaling_fits_the_screen(trials: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("scaling", "before", "after", "--x", "threads", "--metric", "triad", "--by", "trial")
    assert max(map(len, ask(trials, *words).out.splitlines())) > 60
    monkeypatch.setattr("seatrial.show.text.screen_width", lambda: 60)
    assert max(map(len, ask(trials, *words).out.splitlines())) <= 60


def test_score(trials: Path, tmp_path: Path) -> None:
    file = tmp_path / "score.yaml"
    file.write_text(
        "score: ssp\nunit: Gflop\nabout: one code\n"
        "parts:\n  hpl: {test: hpl, metric: time, work: 100}\n"
    )
    answer = ask(trials, "score", str(file), "before")
    assert answer.code == 0 and "one code" in answer.out
    last = answer.out.splitlines()[-1].split()
    assert last[0] == "SSP:" and float(last[1]) == pytest.approx(8, rel=0.02)
    assert last[2:] == ["Gflop/s,", "of", "4", "nodes"]
    failed = ask(trials, "score", str(file), "before", "after", "--format", "json")
    first, second = json.loads(failed.out)["scores"]
    assert failed.code == 1 and first["value"] == pytest.approx(8, rel=0.02)
    assert second["value"] is None and "no run of it is over" in second["why"]
    file.write_text(file.read_text() + "phases: [{phase: one, duration: 10d}]\n")
    assert "name a trial for each phase" in ask(trials, "score", str(file), "a", "b").err
    phased = ask(trials, "score", str(file), "before")
    assert "over all phases, 10 days" in phased.out


def test_the_schema_of_a_score(trials: Path) -> None:
    schema = json.loads(ask(trials, "schema", "score").out)
    assert set(schema["$defs"]["ScoreFile"]["required"]) == {"score", "parts"}


LARGE = [1e308, 1.2e308, 1.7e308, 1.1e308, 1e308, 1.7e308, 1.3e308, 1.2e308, 1.5e308]


@pytest.mark.parametrize(
    "values",
    [
        LARGE,
        [-1e308] * 9,
        [1e308, -1e308] * 5,
        [5e-324] * 9,
        [5e-324, 1e308] * 5,
        [1e308],
        [1e-5, 1e308],
    ],
    ids=lambda values: f"{values[0]:g} and {values[-1]:g}",
)
def test_figures_that_no_measurement_gives_are_told_everywhere(
    tmp_path: Path, values: list[float]
) -> None:
    for tag in ("one", "two"):
        trial = Measuring(tmp_path, tag, [bound(i, threads=i) for i in (1, 2)])
        for case in trial.cases:
            trial.series(case, TRIAD, values)
        trial.done()
    for words, code in (
        (["compare", "one", "one"], 3),
        (["compare", "one", "two", "--format", "json"], 3),
        (["variability", "one"], 0),
        (["variability", "one", "--json"], 0),
        (["history", "triad"], 0),
    ):
        answer = ask(tmp_path, *words)
        assert (answer.code, answer.err) == (code, ""), words
        assert re.search(r"(beyond|below) 1e[+-]150, as no measurement is", answer.out), words
        assert not re.search(r"\b(inf|nan|NaN|Infinity)\b", answer.out), words
    told = ask(tmp_path, "scaling", "one", "--x", "threads", "--metric", "triad")
    assert (told.code, told.out) == (2, "") and "no figure of triad can be judged" in told.err
    learned = ask(tmp_path, "reference", "accept", "one")
    assert learned.code == 2 and "as no measurement is" in learned.err


def test_what_could_not_be_seen_passes_no_gate(tmp_path: Path) -> None:
    """Eight runs that vary by a fifth: 2 % could not have been seen; 30 % could."""
    for tag, shift in (("before", 0), ("after", 3)):
        case = bound(1)
        trial = Measuring(tmp_path, tag, [case])
        trial.series(case, TRIAD, [100.0 + 3 * ((i * 5 + shift) % 8) for i in range(8)])
        trial.done()
    done = ask(tmp_path, "compare", "before", "after")
    assert done.code == 3
    assert "no change was found; one of less than " in done.out and "could not be seen" in done.out
    last = done.out.splitlines()[-1]
    assert last.startswith(
        "undecided: 1 row could not show a change of 2 %; run each with --repeat"
    )
    assert "say with --threshold what matters (exit code 3" in last
    wide = ask(tmp_path, "compare", "before", "after", "--threshold", "30%")
    assert wide.code == 0 and "undecided" not in wide.out


@pytest.mark.parametrize(
    ("before", "after", "code", "said"),
    [
        ([2.0] * 5, [3.0] * 5, 3, "rounded to steps of 1"),
        ([0.0] * 5, [1.0] * 5, 3, "a ratio is of figures above 0"),
        ([0.0] * 5, [0.0] * 5, 0, "a ratio is of figures above 0"),
    ],
)
def test_what_no_number_of_runs_decides_passes_no_gate(
    tmp_path: Path, before: list[float], after: list[float], code: int, said: str
) -> None:
    for tag, values in (("before", before), ("after", after)):
        trial = Measuring(tmp_path, tag, [bound(1)])
        trial.series(trial.cases[0], TIME, values)
        trial.done()
    done = ask(tmp_path, "compare", "before", "after")
    assert (done.code, said in done.out) == (code, True), done.out
    assert ("more runs do not help" in done.out) is (code == 3)


def test_too_few_runs_pass_no_gate(tmp_path: Path) -> None:
    """The same loss of two thirds: two runs leave it undecided, three or five tell it."""
    place = Workplace(tmp_path)
    place.local()
    rate = {"find": r"rate (\S+)", "unit": "GB/s", "better": "higher"}
    for tag, figure in (("before", 3000), ("after", 1000)):
        place.test("fast", f"echo rate $(({figure} + RANDOM % 30))", metrics={"rate": rate})
        for repeat in ("2", "3", "5"):
            done = place.run("--name", tag + repeat, "--repeat", repeat)
            assert done.code == 0, done.said
            assert (f"note: {repeat} runs of a case are too few" in done.err) is (repeat != "5")
            assert ("a difference under 10 %" in done.err) is (repeat == "3")
    few = place.seatrial("compare", "before2", "after2")
    assert few.code == 3 and "--repeat 5" in few.out.splitlines()[-1]
    some = place.seatrial("compare", "before3", "after3")
    assert some.code == 1 and "worse (of 3 and 3 runs)" in some.out
    enough = place.seatrial("compare", "before5", "after5")
    assert enough.code == 1 and "undecided" not in enough.out
    itself = place.seatrial("compare", "before5", "before5")
    assert itself.code == 3 and "undecided: 5 runs on both sides" in itself.out
    listed = place.seatrial("list", "suite", "-m", str(place.machine), "--repeat", "2")
    assert listed.code == 0 and "note: 2 runs of a case are too few" in listed.out
    once = place.run("--name", "once", "--dry-run")
    assert once.code == 0 and not once.err
