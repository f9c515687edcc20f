"""The commands that judge many runs, through the real command line."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.journal.events import RunCreated, RunJudged, ScriptEnded, ScriptStarted
from seatrial.model import codes
from seatrial.model.codes import Code
from seatrial.plugins.facts.node_facts import digests, parsed
from seatrial.results import notes
from seatrial.show.page import Mark
from seatrial.show.text import time_line
from seatrial.units import SECOND_NS
from tests.judge.helpers import DATA
from tests.plugins.network import test_network_levels
from tests.plugins.network.test_matrices import pairs_text
from tests.results.store.trials import NOON, SECOND, TrialMaker, a_case
from tests.results.test_history import DAY, Story

from .test_query_common import ask, is_safe


@pytest.fixture(autouse=True)
def _of_this_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.chdir(tmp_path)
    time.tzset()


# ---- history ------------------------------------------------------------------------------


@pytest.fixture
def stepped(tmp_path: Path) -> Path:
    story = Story(tmp_path)
    story.level(5000, 15)
    story.level(4700, 15)
    note = ("fabric \x1b[31mreset", NOON + 15 * DAY + 3600 * SECOND)
    notes.write(tmp_path / notes.FILE, *note)
    return tmp_path


def test_history_as_a_time_line(stepped: Path) -> None:
    answer = ask(stepped, "history", "triad")
    assert (answer.code, answer.err) == (0, "")
    assert is_safe(answer.out)
    lines = answer.out.splitlines()
    assert lines[0] == "triad of stream{touch=all,threads=1}@gcc on frontier"
    assert lines[1].startswith("MB/s, higher is better, 30 figures, median ")
    assert re.search(r", noise 0\.\d+ %$", lines[1])
    assert lines[-4].startswith("signs: . one figure, ")
    assert lines[-3].startswith("noise: robust standard deviation")
    plot = [line for line in lines[:-4] if "|" in line or "----" in line]
    assert len(plot) == 10
    assert max(map(len, plot)) <= 80
    assert sum(line.count(".") + 2 * line.count(":") for line in plot) >= 25
    (change,) = [line for line in lines if line.startswith("confirmed")]
    assert "2026-12-07 12:00  t016 " in change
    assert "worse  fabric \\x1b[31mreset (in between)" in change
    assert lines[-1] == "1 series: 1 confirmed change, 1 for the worse"


def test_history_writes_its_plots_as_a_file(stepped: Path) -> None:
    answer = ask(stepped, "history", "triad", "--format", "svg")
    assert (answer.code, answer.err) == (0, "")
    tree = ElementTree.fromstring(answer.out)
    assert "var(" not in answer.out and "class" not in tree.attrib
    words = [element.text or "" for element in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert "triad of stream{touch=all,threads=1}@gcc on frontier" in words
    assert len(list(tree)) == 3, "paper, heading, plot"
    assert ask(stepped, "history", "nothing", "--format", "svg").code == 2


def test_history_checks_for_ci(stepped: Path) -> None:
    assert ask(stepped, "history", "triad", "--check").code == 1
    assert ask(stepped, "history", "triad", "--check", "--since", "2026-12-10").code == 0
    assert ask(stepped, "history", "elapsed", "--check").code == 0
    answer = ask(stepped, "history", "triad", "--check", "--machine", "frost")
    assert (answer.code, answer.out) == (2, "")
    assert "there are runs on frontier" in answer.err


@pytest.mark.parametrize("noise", [0.01, 0.003, 0.0001])
def test_history_tells_a_slow_drift_whatever_its_noise(tmp_path: Path, noise: float) -> None:
    """Ten per cent in sixty days: where noise was small, the drift was taken for noise."""
    rng = random.Random(7)
    story = Story(tmp_path)
    for i in range(0, 60, 10):
        story.trial([1000 * (1 - 0.1 * day / 59) * rng.gauss(1, noise) for day in range(i, i + 10)])
    answer = ask(tmp_path, "history", "triad", "--check")
    assert answer.code == 1
    (told,) = [line for line in answer.out.splitlines() if line.startswith("confirmed")]
    assert told.startswith("confirmed drift  2026-11-22 12:00  t001 ") and "worse" in told
    (record,) = json.loads(ask(tmp_path, "history", "triad", "--format", "json").out)
    (change,) = record["changes"]
    assert (change["kind"], change["tier"], change["index"]) == ("drift", "confirmed", 0)
    assert change["since"] == record["points"][0]["time"]
    assert change["settled"] == record["points"][change["until"]]["time"]
    assert record["noise"] == pytest.approx(1000 * noise, rel=0.4)


def test_history_for_programs(stepped: Path) -> None:
    (record,) = json.loads(ask(stepped, "history", "triad", "--format", "json").out)
    (change,) = record["changes"]
    assert (record["n"], change["tier"], change["index"], change["worse"]) == (
        *(30, "confirmed", 15, True),
    )
    assert change["nearest_note"]["seconds"] == 0
    rows = list(
        csv.DictReader(io.StringIO(ask(stepped, "history", "triad", "--format", "csv").out))
    )
    assert len(rows) == 30
    assert [row["change"] for row in rows].index("confirmed") == 15
    assert float(rows[3]["value"]) == record["points"][3]["value"]


def facts_of(trials: Path, day: float, kernel: str, machine: str = "frontier") -> None:
    """A trial that collected facts of three nodes, of which one has this kernel."""
    created = NOON + round(day * DAY)
    trial = TrialMaker(trials, f"facts{created}", [a_case(9, "nodes")], created, machine)
    record = trial.folder.record()
    tests = {"nodes": msgspec.structs.replace(record.tests["nodes"], app="facts")}
    record = msgspec.structs.replace(record, tests=tests)
    (trial.folder.path / "trial.json").write_bytes(msgspec.json.encode(record))
    run_id = f"f{created}"
    of = {"app": "facts", "test": "nodes", "case": trial.cases[0].id, "run_id": run_id}
    path = trial.folder.run("nodes", run_id)
    path.mkdir(parents=True)
    told = (f"node\t{name}\nnode.kernel\t{kernel}\nend\t1\n" for name in ("n001", "n003"))
    others = "node\tn002\nnode.kernel\t5.1\nnow.load\t9\nend\t2\n"
    (path / "facts.txt").write_text("".join([*told, others]))
    trial.start()
    trial.event(RunCreated, path=str(path), **of)
    trial.event(ScriptStarted, nodes="n001", **of)
    trial.event(ScriptEnded, exit_code=0, **of)
    trial.event(RunJudged, code=codes.PASS.number, verdict="pass", **of)
    trial.end()


def test_history_names_the_facts_of_nodes_that_changed_with_a_level(stepped: Path) -> None:
    facts_of(stepped, 2, "4.9")
    facts_of(stepped, 10, "5.1")
    facts_of(stepped, 15.6, "5.2")
    facts_of(stepped, 20, "5.3")
    facts_of(stepped, 15.5, "6.0", "frost")
    (record,) = json.loads(ask(stepped, "history", "triad", "--format", "json").out)
    (change,) = record["changes"]
    same = {"subject": "nodes n[001,003]", "what": "node.kernel"}
    assert change["facts"] == [{**same, "first": "5.1", "second": "5.2"}]
    lines = ask(stepped, "history", "triad").out.splitlines()
    (told,) = [line for line in lines if line.startswith("facts")]
    assert told.endswith("2026-12-07 12:00: nodes n[001,003]: node.kernel: 5.1 -> 5.2")


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Path, Story]:
    """Facts of days 2, 10 and 15.6: n001 and n003 change by 15.6, n002 does not."""
    for day, kernel in ((2, "5.1"), (10, "5.1"), (15.6, "5.2")):
        facts_of(tmp_path, day, kernel)
    return tmp_path, Story(tmp_path)


def digest_of(kernel: str) -> str:
    (digest,) = digests(parsed(f"node\tn001\nnode.kernel\t{kernel}\nend\t1\n")).values()
    return digest


def changed_facts(folder: Path) -> list[dict[str, str]]:
    (record,) = json.loads(ask(folder, "history", "triad", "--format", "json").out)
    (change,) = record["changes"]
    return list(change["facts"])


def test_history_names_what_the_digests_of_the_runs_stand_for(
    recorded: tuple[Path, Story],
) -> None:
    """Their node alone, though others changed, and though a later collection found more."""
    folder, story = recorded
    story.level(5000, 15, node_facts=digest_of("5.1"))
    story.level(4700, 15, node_facts=digest_of("5.2"))
    facts_of(folder, 15.7, "5.3")  # before the first slow run, which had the digest of 5.2
    assert changed_facts(folder) == [
        {"subject": "nodes n001", "what": "node.kernel", "first": "5.1", "second": "5.2"}
    ]


def test_history_names_no_facts_where_the_digests_are_the_same(
    recorded: tuple[Path, Story],
) -> None:
    folder, story = recorded
    story.level(5000, 15, node_facts=digest_of("5.1"))
    story.level(4700, 15, node_facts=digest_of("5.1"))
    assert changed_facts(folder) == []


def test_history_tells_digests_whose_facts_are_gone(recorded: tuple[Path, Story]) -> None:
    folder, story = recorded
    story.level(5000, 15, node_facts=digest_of("5.1"))
    story.level(4700, 15, node_facts="f" * 16)
    assert changed_facts(folder) == [
        {
            "subject": "nodes",
            "what": "digest of facts",
            "first": digest_of("5.1"),
            "second": "f" * 16,
        }
    ]


def test_history_is_silent_of_facts_that_nobody_collected_on_both_sides(stepped: Path) -> None:
    facts_of(stepped, 2, "4.9")
    (record,) = json.loads(ask(stepped, "history", "triad", "--format", "json").out)
    assert [change["facts"] for change in record["changes"]] == [[]]


def test_many_series_are_a_table_and_the_changed_are_drawn(tmp_path: Path) -> None:
    story = Story(tmp_path)
    for number in range(6):
        level = 1 - 0.1 * (number in (2, 4))
        figures = [100 + i / 10 for i in range(12)] + [level * 100 + i / 10 for i in range(12)]
        story.trial(figures, case=a_case(number))
    answer = ask(tmp_path, "history", "triad")
    lines = answer.out.splitlines()
    assert ["threads=2}" in lines[1], "threads=4}" in lines[2]] == [True, True]
    assert answer.out.count("triad of stream") == 2
    assert lines[-1].startswith("6 series: ")


@pytest.mark.parametrize(
    ("figures", "said", "last"),
    [
        (5, "5 figures have no history", "1 series: too few figures to tell in 1 of them, 8 or"),
        (8, "of 8 figures no change can be confirmed, however large", "1 series: no change"),
        (10, "of 10 figures a change is confirmed with 4 or more on", "1 series: no change"),
    ],
)
def test_a_history_says_what_so_few_figures_cannot_show(
    tmp_path: Path, figures: int, said: str, last: str
) -> None:
    Story(tmp_path).trial([100 + i % 3 for i in range(figures - 3)] + [50, 51, 50])
    out = ask(tmp_path, "history", "triad").out
    assert said in out
    assert out.splitlines()[-1].startswith(last)


def test_a_history_of_enough_figures_has_no_such_limit(stepped: Path) -> None:
    assert "of 30 figures" not in ask(stepped, "history", "triad").out


def test_a_history_without_trials(tmp_path: Path) -> None:
    answer = ask(tmp_path / "none", "history", "triad", "--check")
    assert answer.code == 2
    assert "no run has a metric 'triad'; there is only elapsed" in answer.err


def mark_at(seconds: int, letter: str, bar: bool = False) -> Mark:
    return Mark(seconds * SECOND_NS, "", letter=letter, bar=bar)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**9), st.floats(allow_nan=False, allow_infinity=False, width=64)
        ),
        min_size=1,
        max_size=40,
    ),
    st.lists(st.builds(mark_at, st.integers(0, 10**9), st.sampled_from("abC"), st.booleans())),
)
def test_a_plot_is_never_wider_than_its_page(
    points: list[tuple[int, float]], marks: list[Mark]
) -> None:
    lines = time_line(points, [marks], ("2026-01-01 00:00", "2026-12-31 00:00"))
    assert max(map(len, lines)) <= 80
    assert all(line.isascii() for line in lines)


def test_a_note_long_before_the_figures_takes_no_room_from_them() -> None:
    points = [(1000.0 + i, float(i)) for i in range(50)]
    marks = [mark_at(1, "a"), mark_at(1025, "b"), mark_at(9 * 10**9, "c")]
    lines = time_line(points, [marks])
    assert {*lines[0], *lines[8]} & {".", ":"}
    plotted = [line.index("|") + 1 for line in lines if "|" in line]
    last = lines[-1]
    assert last.index("a") < last.index("b") < last.index("c") == max(map(len, lines[:9])) - 1
    assert last.index("a") == plotted[0]


# ---- notes --------------------------------------------------------------------------------


def test_notes_are_written_listed_and_removed(stepped: Path) -> None:
    for words in (["outage", "--at", "2026-12-01T07:30"], ["cold", "-m", "frontier", "--at", "2h"]):
        assert ask(stepped, "note", *words).code == 0
    listed = ask(stepped, "note", "--list").out
    assert is_safe(listed)
    assert "2026-12-01 07:30" in listed
    (line,) = [line for line in listed.splitlines() if "outage" in line]
    removed = ask(stepped, "note", "--remove", line.split()[0])
    assert (removed.code, "outage" in removed.out) == (0, True)
    assert "outage" not in ask(stepped, "note", "--list").out
    assert "cold" in ask(stepped, "note", "--list", "-m", "frontier").out


def test_a_note_of_what_is_planned_says_so(tmp_path: Path) -> None:
    tomorrow = time.strftime("%Y-%m-%dT%H:%M", time.localtime(time.time() + 86400 + 90))
    answer = ask(tmp_path, "note", "outage", "--at", tomorrow)
    assert answer.code == 0
    assert "that is 1 d 0 h ahead; if not meant so: seatrial note --remove" in answer.out
    assert "ahead" not in ask(tmp_path, "note", "now").out
    answer = ask(tmp_path, "note", "outage", "--at", f"{time.localtime().tm_year + 2}-01-02")
    assert (answer.code, answer.out) == (2, "")
    assert "no more than a year ahead" in answer.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give a text"),
        (["x", "--list"], "give a text"),
        (["x", "--at", "soon"], "'--at': 'soon' is no time"),
        (["x", "-m", "frost"], "no machine 'frost'"),
        (["--remove", "x"], "'x' is no note"),
        ([" "], "needs a text"),
    ],
)
def test_notes_that_are_none(stepped: Path, words: list[str], said: str) -> None:
    answer = ask(stepped, "note", *words)
    assert answer.code == 2
    assert said in answer.err.replace("Invalid value for ", "")


# ---- variability and suspects -------------------------------------------------------------


class Runs:
    """A trial whose runs take a time on nodes."""

    def __init__(self, folder: Path, tag: str = "stab", **of_trial: Any) -> None:
        self.cases = [a_case(1, test="lsms", nodes=16), a_case(2, test="broken")]
        self.trial = TrialMaker(folder, tag, self.cases, **of_trial)
        self.trial.start()
        self.count = 0

    def run(self, nodes: str, seconds: float = 100, code: Code = codes.PASS, case: int = 0) -> None:
        made = self.cases[case]
        of = {"test": made.test, "case": made.id, "run_id": f"{self.trial.tag}{self.count:04}"}
        self.count += 1
        trial = self.trial
        trial.event(RunCreated, path=str(trial.folder.path), **of)
        trial.event(ScriptStarted, nodes=nodes, **of)
        end = trial.now + int(seconds * SECOND)
        trial.event(ScriptEnded, exit_code=0, **(of | {"time": end}))
        trial.event(RunJudged, code=code.number, verdict=code.name, **of)
        trial.now += 60 * SECOND


@pytest.fixture
def accused(tmp_path: Path) -> Path:
    """200 runs on 16 of 100 nodes; n017 fails or slows four of five of its runs."""
    rng = random.Random(3)
    runs = Runs(tmp_path)
    for number in range(200):
        numbers = rng.sample(range(1, 101), 16)
        nodes = ",".join(f"n{i:03}" for i in numbers)
        bad = 17 in numbers and rng.random() < 0.8
        slow = bad and rng.random() < 0.5
        seconds = rng.gauss(100, 1) * (1.4 if slow else 1)
        code = codes.FAILED if bad and not slow else codes.PASS
        if number == 50:
            seconds, code = 300, codes.TIMEOUT
        runs.run(nodes, 20 if number == 60 else seconds, code)
    for _ in range(3):
        runs.run("n001", 3, codes.WRONG_ANSWER, case=1)
    runs.run("n001", 3, codes.CANCELLED)
    runs.run("]n[1", 100)
    runs.trial.end()
    return tmp_path


def test_a_narrow_terminal_has_the_variability_that_counts(
    accused: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seatrial.show.text.screen_width", lambda: 80)
    lines = ask(accused, "variability", "stab").out.splitlines()
    table = lines[: next(i for i, line in enumerate(lines) if "%" in line) + 1]
    assert max(map(len, table)) <= 80
    head = table[1]
    assert table[0].startswith("all rows: touch=all@gcc; ")
    assert {"n", "CV", "median", "min"} <= set(head.split())
    assert "sd" not in head.split()


def test_variability_for_an_acceptance_report(accused: Path) -> None:
    answer = ask(accused, "variability", "stab")
    assert (answer.code, answer.err) == (0, "")
    out = answer.out
    assert "lsms{touch=all,threads=1}@gcc: " in out
    assert "  1 at walltime" in out
    assert "1 far too short" in out
    assert "slow but complete (performance failure)" in out
    assert "elapsed of broken{touch=all,threads=2}@gcc: there is no figure to judge" in out
    assert "n017: " in out
    assert "of broken{touch=all,threads=2}@gcc, which never went well" in out
    found = json.loads(ask(accused, "variability", "stab", "--json").out)
    row = next(row for row in found["table"] if row["test"] == "lsms")
    kinds = [one["class"] for one in found["outliers"] if "lsms" in one["case"]]
    failed = kinds.count("failed")
    assert row["excluded"] == {"timeout": 1, "failed": failed, "cancelled": 1}
    assert row["n"] == 201 - 1 - failed
    assert (kinds.count("walltime"), kinds.count("short")) == (1, 1)
    assert kinds.count("slow") > 3
    (suspect,) = found["suspects"]["suspects"]
    assert suspect["names"] == ["n017"]
    runs = {
        row["run_id"]: row
        for row in json.loads(ask(accused, "runs", "--limit", "500", "--format", "json").out)
    }
    for one in found["outliers"]:
        run = runs[one["run"]]
        assert (one["started"], one["verdict"]) == (run["script_started"], run["verdict"])
        assert one["elapsed"] == run["elapsed"]
    table = [line.split() for line in out.splitlines() if line.startswith("    ")]
    assert ["run", "started", "elapsed", "(s)", "why"] in table
    (short,) = [one for one in found["outliers"] if one["class"] == "short"]
    (line,) = [words for words in table if words[0] == short["run"][:12]]
    assert line[3] == "20", "its elapsed time, behind day and hour of its start"


def test_what_a_row_of_numbers_hides_is_told(tmp_path: Path) -> None:
    rng = random.Random(6)
    story = Story(tmp_path)
    latencies = [rng.choice((5.46, 6.09, 6.74)) * rng.gauss(1, 0.003) for _ in range(120)]
    story.trial(latencies, unit="us", better="lower")
    out = ask(tmp_path, "variability", "t001").out
    assert "triad of stream{touch=all,threads=1}@gcc: 3 modes: 5.4" in out
    assert "its level changed" not in out
    story.trial([100 + i / 100 for i in range(20)] + [90 + i / 100 for i in range(20)])
    out = ask(tmp_path, "variability", "t002", "--metric", "triad").out
    assert "its level changed 1 time; see `seatrial history`" in out
    assert "modes" not in out
    pinned: dict[str, Any] = {"parameters": {}, "threads": 2}
    cases = [a_case(n, node=f"n{n:03}", **pinned) for n in range(1, 31)]
    trial = TrialMaker(tmp_path, "nodes", cases)
    trial.start()
    for case in cases:
        figure = rng.gauss(100, 0.3) * (0.95 if case.node == "n007" else 1)
        trial.run(case, f"r{case.node}", figures={"triad": figure})
    trial.end()
    out = ask(tmp_path, "variability", "nodes").out
    assert "triad of stream@gcc: n007 is defective: " in out
    assert out.count("is defective") == 1
    (row,) = json.loads(ask(tmp_path, "variability", "nodes", "--json", "--metric", "triad").out)[
        "table"
    ]
    assert (row["n"], list(row["nodes"]["defective"])) == (30, ["n007"])


def test_outlying_figures_are_excluded_by_a_rule_if_asked(accused: Path) -> None:
    plain = json.loads(ask(accused, "variability", "stab", "-k", "lsms", "--json").out)
    strict = ask(accused, "variability", "stab", "-k", "lsms", "--json", "--exclude", "5")
    (before,), (after,) = plain["table"], json.loads(strict.out)["table"]
    (rule,) = after["excluded"].keys() - before["excluded"].keys()
    assert rule.startswith("farther than 5 robust deviations")
    assert after["n"] == before["n"] - after["excluded"][rule]
    assert after["high"] < 110 < before["high"]


@pytest.mark.parametrize("words", [["--metric", "q"], ["-k", "none"]], ids=str)
def test_variability_of_what_is_not_there(accused: Path, words: list[str]) -> None:
    answer = ask(accused, "variability", "stab", *words)
    assert (answer.code, answer.out) == (2, "")
    assert words[1] in answer.err
    assert ask(accused, "variability", "nope").code == 2


def test_suspects_are_told_in_words(accused: Path) -> None:
    answer = ask(accused, "suspects")
    assert (answer.code, answer.err) == (0, "")
    (line,) = [line for line in answer.out.splitlines() if "n017" in line]
    assert "runs with it went wrong, where chance would give" in line
    assert line.endswith(", corrected")
    for reason in (
        "1 ended by a person or the scheduler",
        "3 of broken{touch=all,threads=2}@gcc, which never went well",
        "1 without known nodes",
    ):
        assert reason in answer.out


def test_suspects_of_named_trials_and_machines_apart(accused: Path) -> None:
    other = Runs(accused, "other", machine="frost", rehearsed=True)
    for _ in range(6):
        other.run("n001")
    other.trial.end()
    assert "n017" in ask(accused, "suspects").out
    both = json.loads(ask(accused, "suspects", "--json", "--trial", "stab", "--trial", "other").out)
    assert set(both) == {"frontier", "frost"}
    assert both["frost"]["suspects"] == []
    assert "none of the 6 runs are bad" in both["frost"]["why"]
    for words in (["--trial", "nope"], ["--since", "2027-01-01"], ["-m", "nope"]):
        assert ask(accused, "suspects", *words).code == 2


def test_a_group_of_the_machine_may_be_guilty(tmp_path: Path) -> None:
    rng = random.Random(4)
    runs = Runs(tmp_path)
    for _ in range(150):
        numbers = rng.sample(range(1, 61), 3)
        bad = min(numbers) <= 6 and rng.random() < 0.9
        nodes = ",".join(f"n{i:02}" for i in numbers)
        runs.run(nodes, rng.gauss(100, 1), codes.FAILED if bad else codes.PASS)
    runs.trial.end()
    file = tmp_path / "stab" / "trial.json"
    record = json.loads(file.read_text())
    record["machine"]["groups"] = {"rack1": "n[01-06]", "rack2": "n[07-60]"}
    file.write_text(json.dumps(record))
    suspects = json.loads(ask(tmp_path, "suspects", "--json").out)["frontier"]["suspects"]
    assert [(one["kind"], one["names"]) for one in suspects] == [("group", ["rack1"])]
    assert "group rack1: " in ask(tmp_path, "suspects").out


# ---- network ------------------------------------------------------------------------------


def test_network_of_files(tmp_path: Path) -> None:
    answer = ask(tmp_path, "network", str(DATA / "mpigraph.out"))
    assert answer.code == 0
    assert "speeds were not judged: 4 nodes talk" in answer.out
    impacts = ask(tmp_path, "network", str(DATA / "gpcnet.out")).out
    assert "no interval can be told" in impacts
    labelled = "".join(f"0: {line}\n" for line in (DATA / "gpcnet.out").read_text().splitlines())
    (tmp_path / "labelled.out").write_text(labelled)
    same = ask(tmp_path, "network", str(tmp_path / "labelled.out")).out
    assert same.splitlines()[1:] == impacts.splitlines()[1:]
    probe = ask(tmp_path, "network", str(DATA / "congestion.out")).out
    assert "unclear: the interval takes in 1" in probe


def test_network_names_slow_nodes_links_and_cut_groups(tmp_path: Path) -> None:
    rng = random.Random(7)
    names = [f"n{i:03}:{i}" for i in range(24)]
    rates = np.array([[9000 * rng.gauss(1, 0.01) for _ in names] for _ in names])
    np.fill_diagonal(rates, 0)
    rates[:, 5] *= 0.85  # as sender, for rows receive
    rates[9, 14] *= 0.6
    cut = np.arange(24) >= 20
    rates[cut[:, None] != cut[None, :]] = 0
    (tmp_path / "pairs.matrix").write_text(pairs_text(rates, names))
    (tmp_path / "machines").mkdir()
    (tmp_path / "machines" / "grouped.yaml").write_text(
        "machine: grouped\nscheduler: slurm\nnodes: [{names: 'n[000-023]', cores: 4}]\n"
        "groups: {a: 'n[000-009]', b: 'n[010-019]', c: 'n[020-023]'}\n"
    )
    answer = ask(tmp_path, "network", "pairs.matrix", "-m", "grouped")
    assert (answer.code, answer.err) == (0, "")
    average = np.mean([row[row > 0].mean() for row in rates.T]) * 2**20 / 1e9
    greatest = rates.max() * 2**20 / 1e9
    assert f"average {average:.3f}, greatest {greatest:.3f} GB/s a NIC" in answer.out
    lines = answer.out.splitlines()
    assert "groups that talk with no other group: c" in lines
    sender = lines[lines.index(next(line for line in lines if "slow senders" in line)) + 1]
    assert sender.split()[0] == "n005"
    (link,) = [line for line in lines if line.startswith("n014 ") and "n009" in line]
    assert "-4" in link
    assert "slow receivers" not in answer.out
    alone = ask(tmp_path, "network", "pairs.matrix").out
    assert "4 nodes talk among themselves alone: n[020-023]" in alone.splitlines()
    assert "cannot talk" not in alone and "group" not in alone
    (record,) = json.loads(ask(tmp_path, "network", "pairs.matrix", "-m", "grouped", "--json").out)
    assert (record["nodes"], record["cut_off"], record["slow_links"]) == (24, ["c"], 1)
    assert record["average_gb_per_s"] == pytest.approx(average)
    assert record["greatest_gb_per_s"] == pytest.approx(greatest)


def test_network_names_units_by_level(tmp_path: Path) -> None:
    sent = test_network_levels.rates()
    sent[:16, 16:] = sent[16:, :16] = 0
    sent[test_network_levels.unit(8, 2), test_network_levels.unit(8, 5)] *= 0.8
    names = [f"{name}:{i}" for i, name in enumerate(test_network_levels.NAMES)]
    (tmp_path / "pairs.matrix").write_text(pairs_text(sent.T, names))
    (tmp_path / "machines").mkdir()
    (tmp_path / "machines" / "levelled.yaml").write_text(
        "machine: levelled\nscheduler: slurm\nnodes: [{names: 'n[00-47]', cores: 4}]\n"
        "topology: {kind: dragonfly, levels: [{router: 2}, {chassis: 8}, {group: 16}]}\n"
    )
    answer = ask(tmp_path, "network", "pairs.matrix", "-m", "levelled")
    lines = answer.out.splitlines()
    assert lines[3] == "group 0 talks with no other group"
    assert re.fullmatch(r"slow from chassis 2 to chassis 5 \(-[12]\d\.\d %\)", lines[4])
    assert "no other group: " not in answer.out and "no link from group" not in answer.out
    (record,) = json.loads(ask(tmp_path, "network", "pairs.matrix", "-m", "levelled", "--json").out)
    assert [one["units"] for one in record["levels"]] == [["0"], ["2", "5"]]
    (plain,) = json.loads(ask(tmp_path, "network", "pairs.matrix", "--json").out)
    assert plain["levels"] is None


def test_network_of_a_trial(tmp_path: Path) -> None:
    case = a_case(1, test="pairs")
    trial = TrialMaker(tmp_path / "trials", "t", [case])
    trial.start()
    names = [f"n{i}:{i}" for i in range(6)]
    rates = 1000.0 * (1 - np.eye(6))
    matrix = {"pairs.matrix": pairs_text(rates, names).encode()}
    trial.run(case, "first", files=matrix)
    trial.run(case, "wrong", codes.WRONG_ANSWER, files={"pairs.matrix": b"half"})
    trial.run(case, "latest", files=matrix)
    trial.end()
    answer = ask(tmp_path / "trials", "network", "t")
    assert answer.code == 0
    assert "run latest (the latest of 2; --run names another)" in answer.out
    assert "no slow sender, receiver or link" in answer.out
    assert "run first" in ask(tmp_path / "trials", "network", "t", "--run", "first").out
    (tmp_path / "trials" / "t/runs/pairs/latest/pairs.matrix").write_bytes(b"Recv\ta:0\t\n")
    damaged = ask(tmp_path / "trials", "network", "t")
    assert damaged.code == 2
    assert "is not a whole matrix" in damaged.err


def test_network_of_what_is_none(tmp_path: Path, accused: Path) -> None:
    answer = ask(accused, "network", "stab")
    assert answer.code == 2
    assert "no run with a right answer has a matrix" in answer.err
    assert "and there is no file 'nope'" in ask(accused, "network", "nope").err
    foreign = ask(tmp_path, "network", str(DATA / "ior.out"))
    assert foreign.code == 2
    assert "is neither a matrix" in foreign.err
    alone = ask(tmp_path, "network", str(DATA / "gpcnet-network-test.out"))
    assert (alone.code, "has no test under load; `seatrial parse gpcnet" in alone.err) == (2, True)


# ---- references from a history ------------------------------------------------------------


def test_references_are_learned_from_a_history(stepped: Path) -> None:
    answer = ask(stepped, "reference", "accept", "--since", "2026-11-01")
    assert answer.code == 0
    assert "triad: 15 figures before the change of 2026-12-07 not used" in answer.err
    text = Path("references.yaml").read_text()
    assert "trials: 15" in text
    assert "upper" not in text
    both = ask(stepped, "reference", "accept", "t030", "t029", "--two-sided")
    assert both.code == 0
    assert "upper: " in Path("references.yaml").read_text()


def test_a_reference_that_allows_half_is_refused_unless_forced(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.trial([100.0, 110.0])  # range / 1.128 * 3.5 = 31 of 105
    story.trial([100.0, 125.0])
    wide = ask(tmp_path, "reference", "accept", "t001", "--dry-run")
    assert (wide.code, "wide: " in wide.err) == (0, True)
    assert "the reference of 2 figures allows 29.6 %" in wide.err
    refused = ask(tmp_path, "reference", "accept", "t002")
    assert (refused.code, Path("references.yaml").exists()) == (2, False)
    assert "the reference of 2 figures allows 69.0 %, so it tells nothing" in refused.err
    assert "--force" in refused.err
    forced = ask(tmp_path, "reference", "accept", "t002", "--force")
    assert (forced.code, "left out" in forced.err, "wide: " in forced.err) == (0, False, True)
    assert "lower: -0.6896" in Path("references.yaml").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name a trial"),
        (["--since", "2027-02-01"], "no such trial in that time"),
        (["--since", "2026-11-01", "-m", "nope"], "there are trials of frontier"),
        (["nope"], "no trial 'nope'"),
        (["t030", "--metric", "triadd"], "t030: no metric 'triadd'; there are elapsed, triad"),
    ],
)
def test_references_of_nothing(stepped: Path, words: list[str], said: str) -> None:
    answer = ask(stepped, "reference", "accept", *words)
    assert answer.code == 2
    assert said in answer.err
    assert not Path("references.yaml").exists()


def test_references_of_two_machines_are_not_mixed(stepped: Path) -> None:
    story = Story(stepped)
    story.day = 40
    story.trial([5.0], machine="frost")
    answer = ask(stepped, "reference", "accept", "--since", "2026-11-01")
    assert answer.code == 2
    assert "the trials are of frontier, frost; say which with --machine" in answer.err


# ---- bands --------------------------------------------------------------------------------

TREE_OF_8 = (
    "machine: placed\nscheduler: slurm\nnodes: [{names: 'n[1-8]', cores: 4}]\n"
    "topology: {kind: dragonfly, levels: [{router: 2}, {chassis: 4}]}\n"
)


def _pingpong(odd: tuple[int, int] | None = None) -> str:
    rng, lines = random.Random(5), []
    for a in range(8):
        for b in range(a + 1, 8):
            us = 50 if a // 2 == b // 2 else 100 if a // 4 == b // 4 else 200
            figure = us * rng.gauss(1, 0.02) + (300 if (a, b) == odd else 0)
            ends = f"pair {a} {b} nodes n{a + 1} n{b + 1} cpus 0 0"
            lines.append(f"{ends} latency {figure:.2f} us bandwidth {1e6 / us:.1f} MiB/s")
    return "\n".join([*lines, "pingpong finished, all messages correct", ""])


def test_bands_by_level(tmp_path: Path) -> None:
    (tmp_path / "machines").mkdir()
    (tmp_path / "machines" / "placed.yaml").write_text(TREE_OF_8)
    (tmp_path / "pp.out").write_text(_pingpong(odd=(2, 6)))
    answer = ask(tmp_path, "bands", "pp.out", "-m", "placed")
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert [line.split()[:2] for line in lines[2:5]] == [
        ["router", "4"],
        ["chassis", "8"],
        ["system", "16"],
    ]
    assert all(len(line) <= 80 for line in lines), answer.out
    latency = answer.out.partition("bandwidth in MiB/s")[0]
    assert latency.count("beyond its band: ") == 1 and "beyond its band: n3-n7: " in latency
    assert " us a hop (" in latency and "expected mean" in latency
    record = json.loads(ask(tmp_path, "bands", "pp.out", "-m", "placed", "--json").out)
    ratios = [step["ratio"] for step in record["latency"]["steps"]]
    assert ratios == pytest.approx([2, 2], rel=0.05)


def test_a_pair_whose_repetitions_disagree_is_not_beyond_its_band(tmp_path: Path) -> None:
    (tmp_path / "machines").mkdir()
    (tmp_path / "machines" / "placed.yaml").write_text(TREE_OF_8)
    steady = re.sub(
        r"latency (\d+)(\S+) us", r"latency \1\2 us (\1.0..\1\2)", _pingpong(odd=(2, 6))
    )
    steady = re.sub(r"bandwidth (\S+) MiB/s", r"bandwidth \1 MiB/s (\1..\1)", steady)
    disturbed = re.sub(r"(pair 0 5 .*us) \(\S+\)", r"\1 (201.5..900.0)", steady)
    disturbed = re.sub(r"(pair 0 5 .*latency) \S+", r"\1 450.00", disturbed)
    assert disturbed != steady
    for text in (steady, disturbed):
        (tmp_path / "pp.out").write_text(text)
        record = json.loads(ask(tmp_path, "bands", "pp.out", "-m", "placed", "--json").out)
        odd = [(one["first"], one["second"]) for one in record["latency"]["odd"]]
        assert odd == [("n3", "n7")]


def test_bands_of_what_has_none(tmp_path: Path, accused: Path) -> None:
    (tmp_path / "pp.out").write_text(_pingpong().replace("n8", "x8"))
    assert "name it with --machine" in ask(tmp_path, "bands", "pp.out").err
    (tmp_path / "machines").mkdir(exist_ok=True)
    (tmp_path / "machines" / "placed.yaml").write_text(TREE_OF_8)
    lost = ask(tmp_path, "bands", "pp.out", "-m", "placed")
    assert lost.code == 2 and "x8: not in the topology of the machine; give" in lost.err
    assert "run the probe `pingpong`" in ask(accused, "bands", "stab").err
    assert "has no line `pair ...`" in ask(tmp_path, "bands", str(DATA / "ior.out")).err
