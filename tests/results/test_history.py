"""Series over trials: which figures are in them, which are left out and why, and their changes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import UsageError
from seatrial.journal.events import (
    MetricRecorded,
    RunCreated,
    RunJudged,
    ScriptEnded,
    ScriptStarted,
)
from seatrial.model import codes
from seatrial.model.codes import Code
from seatrial.model.test import Case
from seatrial.results import history as judge_history
from seatrial.results.history import History, histories
from seatrial.results.notes import Note
from seatrial.results.references import learn_from
from seatrial.results.store import queries
from seatrial.results.store.ingest import synced
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import Filters
from tests.results.store.trials import NOON, SECOND, TrialMaker, a_case

DAY = 86400 * SECOND


class Story:
    """A trial a day, with one run of each figure."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.day = 0

    def trial(
        self,
        figures: Sequence[float],
        code: Code = codes.PASS,
        case: Case | None = None,
        unit: str = "MB/s",
        better: str = "higher",
        name: str = "triad",
        node_facts: str = "",
        **of_trial: Any,
    ) -> TrialMaker:
        self.day += 1
        case = case or a_case(1)
        created = NOON + self.day * DAY
        trial = TrialMaker(self.folder, f"t{self.day:03}", [case], created, **of_trial)
        trial.start()
        for number, figure in enumerate(figures):
            run_id = f"r{self.day:03}{number:03}"
            of = {"test": case.test, "case": case.id, "run_id": run_id}
            trial.event(RunCreated, path="/r", **of)
            trial.event(ScriptStarted, nodes="n001", node_facts=node_facts, **of)
            trial.event(ScriptEnded, exit_code=0, **of)
            trial.event(MetricRecorded, metric=name, value=figure, unit=unit, better=better, **of)
            trial.event(RunJudged, code=code.number, verdict=code.name, **of)
        trial.end()
        return trial

    def level(self, level: float, days: int, seed: int = 1, **more: Any) -> None:
        rng = random.Random(seed + days)
        for _ in range(days):
            self.trial([level * rng.gauss(1, 0.005)], **more)

    def store(self) -> Store:
        return synced(self.folder / "store.sqlite", self.folder)

    def asked(self, metric: str = "triad", **filters: Any) -> list[History]:
        case, notes = filters.pop("case", ""), filters.pop("notes", ())
        stage = filters.pop("stage", "")
        with self.store() as store:
            return histories(store, metric, Filters(**filters), case, notes, stage)

    def only(self, metric: str = "triad", **filters: Any) -> History:
        (found,) = self.asked(metric, **filters)
        return found


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    yield Story(tmp_path)


def test_a_step_is_found_told_and_set_beside_the_nearest_note(story: Story) -> None:
    story.level(5000, 15)
    story.level(4700, 15)
    of_step = NOON + 16 * DAY
    notes = [
        Note("1", of_step - 20 * 3600 * SECOND, "fabric reset", "frontier"),
        Note("2", of_step - 3 * 3600 * SECOND, "on another", "frost"),
        Note("3", of_step + 40 * DAY, "much later"),
    ]
    found = story.only(notes=notes)
    (told,) = found.told
    assert told.confirmed and told.worse
    assert found.alarms == [told]
    assert told.percent == pytest.approx(-6, abs=0.5)
    assert (told.last, told.first) == (of_step - DAY + 3 * SECOND, of_step + 3 * SECOND)
    assert told.near is not None
    assert (told.near.note.text, told.near.seconds) == ("fabric reset", 0.0)
    assert [note.text for note in found.notes] == ["fabric reset"]
    assert found.series.points[0].trial == "t001"


def test_a_change_for_the_better_is_no_alarm(story: Story) -> None:
    story.level(10, 12, better="lower")
    story.level(9, 12, better="lower")
    (told,) = story.only().told
    assert told.confirmed and told.worse is False
    assert story.only().alarms == []


def test_what_is_left_out_is_counted_by_reason(story: Story) -> None:
    story.trial([5.0, 5.1], unit="GB/s")
    story.trial([4900.0], better="lower")
    story.trial([17.0], codes.WRONG_ANSWER)
    story.trial([4000.0], codes.PERFORMANCE)
    story.trial([5000.0, 5010.0])
    series = story.only().series
    assert series.values == [4000.0, 5000.0, 5010.0]
    assert (series.unit, series.better) == ("MB/s", "higher")
    assert series.excluded == {
        "wrong answer": 1,
        "in GB/s, the latest is in MB/s": 2,
        "lower was better, of the latest higher is": 1,
    }


@pytest.mark.parametrize(
    ("figures", "why"),
    [
        ([5.0], "one figure has no history"),
        ([5.0, 6.0], "2 figures have no history"),
        ([5.0] * 9, "all 9 figures are equal"),
        ([0.0] * 9, "all 9 figures are equal"),
    ],
)
def test_what_cannot_be_concluded_is_said(story: Story, figures: list[float], why: str) -> None:
    story.trial(figures)
    found = story.only()
    assert found.analysis.reason.startswith(why)
    assert found.told == []


def test_zeros_and_negatives_have_no_false_ratio(story: Story) -> None:
    story.trial([0.0] * 10 + [5.0 + i / 100 for i in range(10)])
    (told,) = [told for told in story.only().told if told.confirmed]
    assert (told.percent, told.worse) == (None, False)
    story.trial([-100 - i / 100 for i in range(12)] + [-80 - i / 100 for i in range(12)], name="x")
    (told,) = story.only("x").told
    assert told.percent == pytest.approx(20, abs=0.2)
    assert told.worse is False


def test_a_series_for_each_case_and_machine(story: Story) -> None:
    for case in (a_case(1), a_case(2), a_case(3, toolchain="clang")):
        story.trial([1.0], case=case)
    story.trial([1.0], machine="frost")
    found = story.asked()
    assert [(one.series.machine, one.series.case_name) for one in found] == [
        ("frontier", "stream{touch=all,threads=1}@gcc"),
        ("frontier", "stream{touch=all,threads=2}@gcc"),
        ("frontier", "stream{touch=all,threads=3}@clang"),
        ("frost", "stream{touch=all,threads=1}@gcc"),
    ]
    for wanted, count in [("threads=2", 1), ("*@gcc", 3), (a_case(3).id, 1), ("c0", 4)]:
        assert len(story.asked(case=wanted)) == count
    assert len(story.asked(machine="fr*", toolchain="clang")) == 1
    assert len(story.asked(trial="t002")) == 1


def test_elapsed_is_a_metric_unless_a_test_has_its_own(story: Story) -> None:
    story.trial([5.0, 6.0])
    found = story.only("elapsed").series
    assert (found.values, found.unit, found.better) == ([1.0, 1.0], "s", "lower")
    story.trial([77.0], case=a_case(2), name="elapsed", unit="h")
    assert [one.series.values for one in story.asked("elapsed")] == [[1.0, 1.0], [77.0]]


def test_rehearsals_are_left_out_unless_asked_for(story: Story) -> None:
    story.trial([5.0])
    story.trial([6.0], rehearsed=True)
    assert story.only().series.values == [5.0]
    assert story.only(rehearsed=True).series.values == [5.0, 6.0]
    assert story.only(trial="t002").series.values == [6.0]


@pytest.mark.parametrize(
    ("metric", "filters", "said"),
    [
        ("traid", {}, "no run has a metric 'traid'; did you mean 'triad'?"),
        ("q", {}, "no run has a metric 'q'; there are triad, elapsed"),
        ("triad", {"machine": "frost"}, "with --machine frost; there are runs on frontier"),
        ("triad", {"test": "x", "case": "y"}, "with --test x --case y"),
        ("triad", {"stage": "full"}, "with --stage full; there are"),
        ("triad", {"since": NOON + 99 * DAY}, "has 'triad' in that time"),
    ],
)
def test_unknown_names_are_told(
    story: Story, metric: str, filters: dict[str, Any], said: str
) -> None:
    story.trial([5.0])
    story.trial([7.0], codes.WRONG_ANSWER)
    with pytest.raises(UsageError, match=said.replace("?", r"\?")):
        story.asked(metric, **filters)


def test_several_processes_find_the_same(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    for number in range(6):
        figures = [100 * rng.gauss(1, 0.01) for _ in range(20)]
        story.trial([*figures, *(f * 0.9 for f in figures)], case=a_case(number))
    alone = story.asked()
    monkeypatch.setattr(judge_history, "MANY", 2)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert story.asked() == alone
    assert all(history.alarms for history in alone)


# ---- references from a history ------------------------------------------------------------


def test_a_reference_is_learned_from_the_level_since_the_last_change(story: Story) -> None:
    story.level(5000, 12)
    story.level(4500, 10)
    story.trial([9999.0], rehearsed=True)
    with story.store() as store:
        trials = [trial for trial in queries.trials(store) if not trial.rehearsed]
        learning = learn_from(store, trials)
        one = learn_from(store, trials[:1])
        sided = learn_from(store, trials, two_sided=True).references[0]
        recent = learn_from(store, trials, since=NOON + 20 * DAY).references[0]
    (reference,) = learning.references
    assert reference.value == pytest.approx(4500, rel=0.005)
    assert reference.lower is not None and reference.upper is None
    assert -0.04 < reference.lower <= -0.02
    assert (sided.lower, sided.upper) == (reference.lower, -reference.lower)
    learned = reference.learned
    assert learned is not None
    assert (learned.trial, learned.runs, learned.trials) == ("t022", 10, 10)
    ((what, why),) = learning.older
    assert what == "stream{touch=all,threads=1}@gcc triad"
    assert why.startswith("12 figures before the change of 2026-12-04")
    assert (one.older, one.references[0].learned and one.references[0].learned.runs) == ([], 1)
    assert recent.learned is not None
    assert recent.learned.runs == 3


def test_nodes_that_differ_are_no_change(story: Story) -> None:
    for node, level in (("n001", 100.0), ("n002", 90.0)):
        for number in range(2):
            case = a_case(int(node[1:]), node=node, parameters={}, threads=2)
            story.trial([level + 0.1 * number + i / 50 for i in range(10)], case=case)
    with story.store() as store:
        learning = learn_from(store, queries.trials(store))
    assert learning.older == []
    assert learning.references[0].learned is not None
    assert learning.references[0].learned.runs == 40
