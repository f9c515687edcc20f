"""How a score changed: in all, by its parts, and with which interval."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest

from seatrial.results.scores import (
    Score,
    ScoreChange,
    ScoreFile,
    ScoreTerm,
    TermScore,
    score_change,
)
from tests.cli.test_query_common import ask

from .figures import steady
from .test_scores import SECONDS, trial

SSP = """\
score: ssp
size: 100
parts:
  pmemd: {test: pmemd, metric: time, work: 100}
  paratec: {test: paratec, metric: time, work: 100}
  milc: {test: milc, metric: time, work: 100}
"""
BEFORE = {"pmemd": 130.0, "paratec": 70.0, "milc": 50.0}
AFTER = {"pmemd": 100.0, "paratec": 100.0, "milc": 50.0}  # +30 %, -30 %, the same


def upgrade(folder: Path, n: int = 6) -> Path:
    for tag, levels in (("before", BEFORE), ("after", AFTER)):
        tests = {
            test: (4, SECONDS, steady(level, n, 0.002, seed=len(tag)))
            for test, level in levels.items()
        }
        trial(folder, tests, tag)
    file = folder / "ssp.yaml"
    file.write_text(SSP)
    return file


def test_a_score_hides_its_parts_and_their_factors_show_them(tmp_path: Path) -> None:
    file = upgrade(tmp_path)
    done = ask(tmp_path, "score", str(file), "before", "after", "--format", "json")
    (change,) = json.loads(done.out)["changes"]
    exact = (1.3 * 0.7) ** (1 / 3)
    assert change["ratio"] == pytest.approx(exact, rel=2e-3)
    assert change["low"] < exact < change["high"] < change["low"] * 1.01
    assert {one["part"]: one["verdict"] for one in change["parts"]} == {
        "pmemd": "better",
        "paratec": "worse",
        "milc": "same",
    }
    assert change["parts"][0]["factor"] == pytest.approx(1.3, rel=5e-3)
    out = ask(tmp_path, "score", str(file), "before", "after").out
    assert "before -> after: -3." in out and " %)" in out.split("before -> after")[1]
    assert "x1.3" in out and "x0.7" in out
    same = ask(tmp_path, "score", str(file), "before", "before", "--format", "json").out
    assert json.loads(same)["changes"][0]["ratio"] == 1.0
    assert "values" not in json.loads(same)["scores"][0]["parts"][0]


def test_single_runs_and_a_missing_part(tmp_path: Path) -> None:
    file = upgrade(tmp_path, n=1)
    out = ask(tmp_path, "score", str(file), "before", "after").out
    assert "% (of single runs: repeat)" in out and "unclear" in out
    trial(tmp_path, {"pmemd": (4, SECONDS, [1.0])}, "part")
    done = ask(tmp_path, "score", str(file), "before", "part")
    assert done.code == 1 and done.out.endswith("before -> part: there is no score of part\n")


def made(side: str, values: dict[str, list[float]], size: int = 1) -> Score:
    """A score of rates, which is the geometric mean of the parts' last but one figures."""
    parts = []
    for name, own in values.items():
        middle = sorted(own)[len(own) // 2]
        parts.append(
            TermScore(part=name, test=name, metric="r", rate=middle, better="higher", values=own)
        )
    value = size * math.prod(part.rate or 0.0 for part in parts) ** (1 / len(parts))
    return Score(score="ssp", side=side, parts=parts, value=value, size=size)


def changed(first: dict[str, list[float]], second: dict[str, list[float]]) -> ScoreChange:
    wanted = ScoreFile(score="ssp", parts={name: ScoreTerm(test=name) for name in first})
    return score_change(wanted, made("a", first), made("b", second, size=2))


def test_the_interval_holds_the_truth() -> None:
    """Of 100 upgrades that change nothing but the size, in 90 or more."""
    rng = random.Random(4)
    held = 0
    for _ in range(100):
        sides = [
            {name: [math.exp(rng.gauss(0, 0.03)) for _ in range(5)] for name in "abcd"}
            for _ in range(2)
        ]
        found = changed(sides[0], sides[1])
        assert found.of_size == 2 and found.low is not None and found.high is not None
        held += found.low <= 2.0 <= found.high
    assert held >= 90
