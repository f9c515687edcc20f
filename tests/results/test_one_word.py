"""The same runs get the same word from ``compare``, ``ratio``, ``best`` and ``tune``."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from seatrial.decide.race import Race
from seatrial.model.policy import RaceRules
from seatrial.results.best import BestQuery, best_settings
from seatrial.results.compare import compare_sides
from seatrial.results.ratios import RatioQuery, ratios
from seatrial.results.selection import gather, parse_side
from seatrial.results.store.ingest import synced
from tests.cli.test_query_common import ask

from .figures import TIME, Measuring, bound

NATIVE, COMPAT = [1004.0, 1006.0, 999.0], [1828.0, 1835.0, 1822.0]  # a factor of 1.8


def drawn(effect: float, noise: float, n: int, seed: int) -> tuple[list[float], list[float]]:
    rng = random.Random(f"{effect} {noise} {n} {seed}")
    first = [100 * math.exp(rng.gauss(0, noise)) for _ in range(n)]
    return first, [100 * (1 + effect) * math.exp(rng.gauss(0, noise)) for _ in range(n)]


TABLE = {
    "three and three, a factor of 1.8": (NATIVE, COMPAT),
    "three and three, the other way": (COMPAT, NATIVE),
    "three and three, under 10 %": ([100.0, 100.5, 101.0], [105.0, 105.5, 106.0]),
    "three and three, ranges meet": ([100.0, 110.0, 120.0], [118.0, 140.0, 160.0]),
    "three and four": ([1.0, 1.01, 1.02], [1.5, 1.51, 1.52, 1.53]),
    "two and two": ([1.0, 1.01], [2.0, 2.02]),
    "one and one": ([1.0], [2.0]),
    "one and five": ([1.0], [2.0, 2.01, 2.02, 2.03, 2.04]),
    "equal figures": ([5.0] * 5, [5.0] * 5),
    "rounded": ([2.0] * 5, [3.0] * 5),
    "four against four": ([10.0, 10.2, 9.9, 10.1], [10.9, 11.0, 11.1, 10.8]),
} | {
    f"{effect:g} by {noise:g}, {n} runs": drawn(effect, noise, n, 1)
    for effect in (0.0, 0.015, 0.021, 0.05, 0.095, 0.105, 0.3)
    for noise in (0.001, 0.02, 0.1)
    for n in (3, 4, 5, 9)
}
TURNED = {"better": "worse", "worse": "better"}
WORDS = {"faster": "better", "slower": "worse", "as good": "same"}


def words(folder: Path) -> dict[str, str]:
    """The word for the second way, by each command."""
    with synced(folder / "store.sqlite", folder) as store:
        whole = gather(store, parse_side("t"))
        sides = [gather(store, parse_side(f"t:way={way}")) for way in ("one", "other")]
    rows = compare_sides(sides[0], sides[1]).rows
    (row,) = (row for row in rows if row.metric == "time")
    of = RatioQuery(of="way", values=("one", "other"), x="size", metric="time")
    ((cell,),) = (table.cells for table in ratios([whole], of))
    (table,) = best_settings([whole], BestQuery(over=("way",), metric="time"))
    best, beside = table.settings
    verdict = beside.verdict
    if best.values["way"] == "other":  # then the first way is told beside it
        verdict = {"worse": "better"}.get(verdict, verdict)  # type: ignore[assignment]
    found = {"compare": row.verdict, "ratio": cell.word, "best": verdict}
    return {command: WORDS.get(word, word) for command, word in found.items()}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    found = {}
    for name, (one, other) in TABLE.items():
        folder = tmp_path_factory.mktemp("words")
        cases = [bound(1, way="one", size=64), bound(2, way="other", size=64)]
        trial = Measuring(folder, "t", cases)
        for case, values in zip(cases, (one, other), strict=True):
            trial.series(case, TIME, values)
        trial.done()
        found[name] = words(folder)
    return found


@pytest.mark.parametrize("name", TABLE)
def test_the_commands_say_the_same_word(name: str, measured: dict[str, dict[str, str]]) -> None:
    found = measured[name]
    assert len({*found.values()}) == 1, found


def test_some_of_each_word_are_among_them(measured: dict[str, dict[str, str]]) -> None:
    said = {found["compare"] for found in measured.values()}
    assert said == {"better", "worse", "same", "unclear"}


def raced(one: list[float], other: list[float]) -> Race:
    race = Race(
        RaceRules(
            levels=[[0], [1]],
            default=0,
            rounds=len(one),
            allocations=1,
            runs=2 * len(one),
            min_effect=0.02,
        )
    )
    for number, order in enumerate(race.next_block()):
        for setting in order:
            race.record(setting, number, (one, other)[setting][number])
    race.end_block()
    return race


@pytest.mark.parametrize(
    "name", [name for name, (one, other) in TABLE.items() if len(one) == len(other)]
)
def test_a_tuning_tells_what_the_others_tell(
    name: str, measured: dict[str, dict[str, str]]
) -> None:
    """It may tell more, by its rounds; never that a setting is best which the others call worse."""
    word = measured[name]["compare"]
    one, other = TABLE[name]
    for first, second, told in ((one, other, word), (other, one, TURNED.get(word, word))):
        answer = raced(first, second).answer()
        if told == "better":
            assert answer.advised == answer.best == 1 and not answer.untold
        elif told == "worse":
            assert answer.advised == answer.best == 0 and not answer.untold
        elif not answer.untold:  # by the rounds: the setting with the better figures in each
            assert answer.best == (sum(second) < sum(first))
        assert answer.by_rounds is (answer.advised == 1 and told != "better")


def test_the_words_on_the_screen(tmp_path: Path) -> None:
    cases = [
        bound(10 * ranks + i, way=way, ranks=ranks)
        for ranks in (64, 256)
        for i, way in enumerate(("native", "compat"))
    ]
    trial = Measuring(tmp_path, "rat", cases)
    for case in cases:
        trial.series(case, TIME, NATIVE if case.parameters["way"] == "native" else COMPAT)
    trial.done()
    out = ask(
        tmp_path, "ratio", "rat", "--of", "way=native,compat", "--x", "ranks", "--metric", "time"
    )
    assert out.out.count("slower (of 3 and 3 runs)") == 2
    out = ask(tmp_path, "best", "rat:ranks=64", "--over", "way", "--metric", "time")
    assert "worse (of 3 and 3 runs)" in out.out and "all others are worse" in out.out
    out = ask(tmp_path, "compare", "rat:way=native", "rat:way=compat")
    assert out.out.count("worse (of 3 and 3 runs)") == 2 and out.code == 1


def test_what_is_unclear_has_a_reason_and_a_remedy_everywhere(tmp_path: Path) -> None:
    cases = [bound(i, way=way, ranks=64) for i, way in enumerate(("native", "compat"))]
    trial = Measuring(tmp_path, "rat", cases)
    trial.series(cases[0], TIME, [1004.0, 1006.0])
    trial.series(cases[1], TIME, [1828.0, 1830.0])
    trial.done()
    reason = "2 and 2 figures can show no difference, whatever they are"
    for said in (
        ask(
            tmp_path,
            "ratio",
            "rat",
            "--of",
            "way=native,compat",
            "--x",
            "ranks",
            "--metric",
            "time",
        ),
        ask(tmp_path, "best", "rat", "--over", "way", "--metric", "time"),
        ask(tmp_path, "compare", "rat:way=native", "rat:way=compat"),
    ):
        assert reason in said.out and "--repeat 5" in said.out
    said = ask(
        tmp_path,
        "ratio",
        "rat",
        "--of",
        "way=native,compat",
        "--x",
        "ranks",
        "--metric",
        "time",
        "--format",
        "json",
    )
    record: list[dict[str, Any]] = json.loads(said.out)
    assert record[0]["cells"][0]["needed"] == 5
