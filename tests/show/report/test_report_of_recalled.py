"""Runs that Seatrial recalled while they waited are no failures in a report."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from seatrial.journal.events import RunJudged
from seatrial.journal.journal import read
from seatrial.model.codes import RECALLED
from seatrial.plugins.rehearsal.report import rehearse_plan
from seatrial.results.store.ingest import synced
from seatrial.results.store.queries import trials
from tests.results.store.version_0_1 import TAG, trial_of_0_1
from tests.show.report.conftest import Command

C5 = Path(__file__).parents[3] / "plans" / "c5-stability.yaml"


@pytest.fixture(scope="module")
def c5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a rehearsal of two of C5's days."""
    folder = tmp_path_factory.mktemp("c5")
    store = folder / "store.sqlite"
    report = rehearse_plan(C5, trials=folder / "trials", store=store, seed=1, days=2)
    assert len(report.first) == 1
    return folder


def test_the_rehearsed_c5(c5: Path, seatrial: Command) -> None:
    """Of its runs that did not pass, most were recalled while a throttle was closed."""
    (trial,) = (c5 / "trials").glob("*/journal.jsonl")
    verdicts = Counter(event.code for event in read(trial) if isinstance(event, RunJudged))
    recalled = verdicts[RECALLED.number]
    others = sum(number for code, number in verdicts.items() if code not in (0, RECALLED.number))
    assert recalled > others > 30
    done = seatrial(c5, "report", trial.parent.name, "-o", "r.json")
    assert done.code == 0, done.said
    (part,) = json.loads((c5 / "r.json").read_text())["components"]
    tables = {each["title"]: each for each in part["tables"]}
    failed = tables["Runs that did not pass"]
    titles = [column["title"] for column in failed["columns"]]
    rows = [dict(zip(titles, row, strict=True)) for row in failed["rows"]]
    assert sum(row["runs"] for row in rows) == others
    assert {row["verdict"] for row in rows} == {"failed", "hung", "wrong answer", "node failure"}
    assert f"{others} of {others + verdicts[0]:,} that ended" in failed["about"]
    (figure,) = [one for one in part["figures"] if one["title"].startswith("Runs and failures")]
    titles = [column["title"] for column in figure["table"]["columns"]]
    assert "recalled" not in titles
    ended = sum(row[titles.index("ended")] for row in figure["table"]["rows"])
    assert ended == others + verdicts[0]
    assert sum(test["verdicts"].get("recalled", 0) for test in part["status"]["parts"]) == recalled
    with synced(c5 / "store.sqlite", c5 / "trials") as store:
        (row,) = trials(store)
        assert (row.passed, row.failed) == (verdicts[0], others)


def test_a_trial_of_version_0_1(tmp_path: Path, seatrial: Command) -> None:
    (tmp_path / "trials").mkdir()
    trial_of_0_1(tmp_path / "trials")
    done = seatrial(tmp_path, "report", TAG, "-o", "r.json")
    assert done.code == 0, done.said
    (part,) = json.loads((tmp_path / "r.json").read_text())["components"]
    (failed,) = [one for one in part["tables"] if one["title"] == "Runs that did not pass"]
    assert [(row[1], row[4]) for row in failed["rows"]] == [("wrong answer", 1)]
    assert seatrial(tmp_path, "report", TAG, "-o", "r.md").code == 0
    assert "**Runs that did not pass** 1 of 11 that ended" in (tmp_path / "r.md").read_text()
