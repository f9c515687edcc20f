"""What a signer asks for: why runs failed, figures against references, blackouts, loads."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from seatrial.judge.statistics.outliers import Outliers
from seatrial.model.codes import FAILED
from seatrial.results.slow_places import RunKind
from seatrial.show.report.figures import courses
from seatrial.units import SECOND_NS
from tests.plugins.rehearsal.stage import Stage
from tests.results.figures import Measuring
from tests.results.store.trials import TrialMaker, a_case
from tests.results.test_slow_conditions import outcome
from tests.show.report.acceptance import UGLY
from tests.show.report.conftest import Command

REFERENCES = """\
references:
  - {test: stream, metric: triad, unit: MB/s, value: 6000}
  - {test: stream, metric: copy, unit: MB/s, min: 4000, max: 5000}
  - {test: stream, metric: scale, unit: GB/s, value: 5}
  - {test: stream, metric: never, unit: GB/s, value: 5}
  - {test: stream, metric: add, unit: MB/s, value: 5, where: {touch: all}}
  - {test: stream, metric: add, unit: MB/s, value: 6, where: {threads: 1}}
  - {test: other, metric: triad, unit: MB/s, value: 6000}
"""


def tables(seatrial: Command, folder: Path, *words: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of the only component's tables, by title."""
    done = seatrial(folder, "report", *words, "-o", "r.json")
    assert done.code == 0, done.said
    (part,) = json.loads((folder / "r.json").read_text())["components"]
    return {
        each["title"]: [
            dict(zip([c["title"] for c in each["columns"]], row, strict=True))
            for row in each["rows"]
        ]
        for each in part["tables"]
    }


def test_why_runs_did_not_pass(seatrial: Command, real: Path) -> None:
    rows = tables(seatrial, real, "t")["Runs that did not pass"]
    (row,) = rows
    assert (row["test"], row["verdict"], row["runs"]) == ("bad", "failed", 1)
    assert row["reason"] == "exit code 3, not 0"
    assert len(row["first of them"]) == 12
    seatrial(real, "report", "t", "-o", "t.md")
    text = (real / "t.md").read_text()
    assert "| runs passed | did not pass |" in text
    assert "**Runs that did not pass** 1 of 16 that ended: bad 1." in text


def test_reasons_that_differ_in_measured_numbers_are_one(tmp_path: Path, seatrial: Command) -> None:
    trial = TrialMaker(tmp_path / "trials", "t", [a_case(1)])
    reasons = ["exit code 1, not 0", "exit code 3, not 0", *(f"{i}.5 is too slow" for i in "789")]
    for i, reason in enumerate([*reasons, f"no {UGLY}"]):
        trial.run(trial.cases[0], f"r{i}", FAILED, why=reason)
    trial.write()
    rows = tables(seatrial, tmp_path, "t")["Runs that did not pass"]
    assert [(row["reason"], row["runs"]) for row in rows] == [
        ("7.5 is too slow, or alike", 3),
        ("exit code 1, not 0", 1),
        ("exit code 3, not 0", 1),
        (f"no {UGLY}", 1),
    ]
    assert rows[0]["first of them"] == "r2, r3, r4"


def test_figures_against_references(tmp_path: Path, seatrial: Command) -> None:
    trial = TrialMaker(tmp_path / "trials", "t", [a_case(1)], expected=REFERENCES)
    trial.start()
    for i in range(3):
        figures = {"triad": 5600.0 + i, "copy": 4500.0, "scale": 5.0, "add": 5.0, "free": 1.0}
        trial.run(trial.cases[0], f"r{i}", figures=figures)
    trial.end()
    rows = tables(seatrial, tmp_path, "t")["Figures of merit against their references"]
    found = {row["metric"]: row for row in rows}
    assert set(found) == {"triad", "copy", "scale", "never", "add"}
    triad = found["triad"]
    assert (triad["n"], triad["median"], triad["reference"]) == (3, 5601, 6000)
    assert triad["allowed"] == "at least 5700 MB/s"
    assert triad["state"] == "not met"
    assert triad["better by"] == pytest.approx(-6.65)
    assert (found["copy"]["state"], found["copy"]["reference"]) == ("met", None)
    assert found["scale"]["state"] == "not met"
    assert [found["scale"][key] for key in ("unit", "median", "reference")] == ["MB/s", 5, 5000]
    assert "5 MB/s = 0.005 GB/s is 99.9 % below its reference" in found["scale"]["why"]
    assert found["never"]["n"] == 0
    assert "neither is more specific" in found["add"]["why"]


def test_runs_that_took_no_time_are_no_measure_of_how_alike_runs_are(
    tmp_path: Path, seatrial: Command
) -> None:
    """A clock that stood still, as clocks of nodes do: the median would be 0."""
    trial = Measuring(tmp_path / "trials", "t", [a_case(1), a_case(2)])
    for elapsed in (0, 0, 0, 0, 0, 2, 2.2):
        trial.measure(trial.cases[0], elapsed=elapsed)
    for elapsed in (10, 10, 11, 9, 10):
        trial.measure(trial.cases[1], elapsed=elapsed)
    trial.done()
    tables(seatrial, tmp_path, "t")
    (part,) = json.loads((tmp_path / "r.json").read_text())["components"]
    (alike,) = (each for each in part["figures"] if each["title"] == "How alike runs are")
    (row,) = alike["table"]["rows"]
    assert row[1:] == pytest.approx([5, 10, -10, 0, 0, 0, 10])


def test_blackouts_and_loads_of_a_rehearsal(tmp_path: Path, seatrial: Command) -> None:
    stage = Stage(tmp_path)
    system = {"path": str(tmp_path), "targets": ["m0"], "safe_load": 10}
    stage.machine["file_systems"] = {"f": system}
    stage.plan["rehearsal"]["assumed"] = [f"Nothing fails {UGLY}"]
    stage.test("work")
    stage.behave("work", elapsed="1m")
    stage.component(
        "mix",
        kind="sustained",
        duration="30m",
        reserve=0,
        file_system="f",
        caps={"safe_load": False},
        tests={"work": {"copies": 2, "opens": 8}},
        blackouts=[
            {"from": "20m", "to": "25m", "why": f"cooling {UGLY}", "tests": ["work"]},
            {"from": "10m", "to": "15m"},
            {"from": "2h", "to": "3h", "why": "never reached"},
        ],
    )
    stage.play_all()
    found = tables(seatrial, tmp_path, "plan.yaml", "--rehearsed")
    assert [(row["of"], row["why"], row["length"]) for row in found["Blackouts"]] == [
        ("everything", "", 300),
        ("work", f"cooling {UGLY}", 300),
    ]
    (load,) = found["Load of metadata targets"]
    assert (load["target"], load["highest"], load["safe"]) == ("f/m0", 16, 10)
    assert load["time above safe"] == pytest.approx(20 / 30, abs=0.05)
    (machine,) = json.loads((tmp_path / "r.json").read_text())["machines"]
    (systems,) = (each for each in machine["tables"] if each["title"] == "File systems")
    assert systems["rows"] == [["f", str(tmp_path), "m0", 10]]
    assert len(found["Sub-phases"]) == 1
    assert json.loads((tmp_path / "r.json").read_text())["assumed"] == [f"Nothing fails {UGLY}"]
    done = seatrial(tmp_path, "report", "plan.yaml", "--rehearsed")
    assert done.out.startswith("p-rehearsed-report.html: "), done.said
    page = (tmp_path / "p-rehearsed-report.html").read_text()
    assert "What the rehearsal assumes" in page
    stage.plan_file.unlink()  # it said so when the trial was made
    assert seatrial(tmp_path, "report", "p-mix", "-o", "r.json").code == 0
    assert json.loads((tmp_path / "r.json").read_text())["assumed"] == [f"Nothing fails {UGLY}"]


def test_the_mix_planned_and_achieved(tmp_path: Path, seatrial: Command) -> None:
    stage = Stage(tmp_path)
    stage.test("work", nodes=2)
    stage.test("rest")
    stage.behave("*", elapsed="1m")
    tests = {"work": {"copies": 2}, "rest": {"share": "25%"}}
    stage.component("mix", kind="sustained", duration="30m", tests=tests)
    stage.play_all()
    rest, work, nobody = tables(seatrial, tmp_path, "plan.yaml", "--rehearsed")[
        "The mix, planned and achieved"
    ]
    assert (work["test"], work["planned"], rest["planned"]) == ("work", 0.5, 0.25)
    assert work["achieved"] == pytest.approx(0.5, abs=0.02)
    assert work["difference"] == pytest.approx(100 * (work["achieved"] - 0.5))
    assert (nobody["test"], nobody["planned"]) == ("no run", 0.25)
    assert nobody["achieved"] == pytest.approx(1 - work["achieved"] - rest["achieved"])


@pytest.mark.parametrize(
    ("every", "ticks", "median"),
    [
        (3600, {"0", "50", "100", "150", "start since the trial began (h)"}, "4,148 s (1 h 9 m)"),
        (10, {"0", "10 min", "20 min", "start since the trial began"}, "4,148 s (1 h 9 m)"),
    ],
)
def test_starts_are_since_the_trial_began(every: int, ticks: set[str], median: str) -> None:
    """Of a long trial in hours, as reports on acceptances tell them; the times of day are not told:
    those of a rehearsal are virtual."""
    start = 1_780_000_000 * SECOND_NS
    runs = [outcome(n, 4148.0, start=start + n * every * SECOND_NS) for n in range(170)]
    kind = RunKind("cm4", "cm4", "c5", runs, Outliers([], 170, 170, 4148.0, 10.0), 0)
    outage = (start + 20 * every * SECOND_NS, start + 30 * every * SECOND_NS)
    (figure,) = courses([kind], [], [outage], start)
    assert ticks <= {*re.findall(">([^<]*)</text>", figure.drawing)}
    assert f"Median of the complete ones {median}." in figure.about
