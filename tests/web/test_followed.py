"""Trials that pages look at: their journals folded on, judged beside the page, few of them kept."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seatrial.acceptance.criteria import Overall, State
from seatrial.acceptance.status import status
from seatrial.acceptance.step_functions import in_flight
from seatrial.acceptance.utilisation import USES, timeline_of
from seatrial.journal.journal import read
from seatrial.store.rows import TrialRow
from seatrial.trial.folder import TrialFolder
from seatrial.units import SECOND_NS
from seatrial.web.background import BackgroundCompute, ResultSlots
from seatrial.web.trials import trial_cache as followed_module
from seatrial.web.trials.trial_cache import TailedTrial, TrialCache
from seatrial.web.trials.trial_fold import TrialFold
from tests.programs import LONG_S, until
from tests.rehearse.stage import Played

from .harbour import TESTS, cut, rehearsed


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return rehearsed(tmp_path_factory.mktemp("harbour"))


@pytest.fixture
def followed() -> TrialCache:
    return TrialCache(lambda: None)


def row_of(path: Path, state: str = "ended") -> TrialRow:
    head = (1, path.name, str(path), "toy", 1, 1, 2, state, 1.0, 3, 3)
    return TrialRow(*head, passed=1, failed=1, running=0, waiting=0, damaged=0, component="c")


def judged(following: TailedTrial) -> None:
    """Wait until all is judged."""
    following.standing()
    for make in (following.status, following.uses, following.flights, following.loads):
        until(lambda make=make: make() is not None, make.__name__)  # type: ignore[misc]


def test_what_a_page_shows_is_what_the_command_line_says(
    played: Played, followed: TrialCache
) -> None:
    following = followed.of(row_of(played.folder))
    judged(following)
    standing, found = following.standing(), following.status()
    folder = TrialFolder(played.folder)
    expected = status(folder.record(), folder.cases(), read(folder.journal))
    assert standing is not None
    throttled = [hold for hold in expected.held_back_by if hold.kind in ("gauge", "blackout")]
    assert found == msgspec.structs.replace(expected, held_back_by=throttled)
    assert [test.test for test in standing.tests] == sorted(TESTS)
    for test, part in zip(standing.tests, expected.parts, strict=True):
        assert (test.test, test.in_flight, test.running) == (part.test, 0, 0)
        assert {"pass": test.passed, **test.others} == {"pass": 0, **part.verdicts}
        assert test.expected == part.expected > 0


@pytest.mark.parametrize("share", [0.05, 0.31, 0.62, 0.97])
def test_counts_kept_by_events_are_those_of_the_accounts(
    played: Played, followed: TrialCache, tmp_path: Path, share: float
) -> None:
    part = cut(played.folder, tmp_path / "part", share)
    following = followed.of(row_of(part, "running"))
    standing = following.standing()
    folder = TrialFolder(part)
    expected = status(folder.record(), folder.cases(), read(folder.journal))
    assert standing is not None
    counts = [(test.in_flight, test.running, test.passed) for test in standing.tests]
    assert counts == [(part.in_flight, part.running, part.accepted) for part in expected.parts]
    assert sum(number for number, _, _ in counts) > 0
    assert [hold.text for hold in standing.held] == [
        hold.text for hold in expected.held_back_by if hold.kind in ("gauge", "blackout")
    ]
    assert [(a.kind, a.text) for a in standing.alerts[::-1]] == [
        (a.kind, a.text) for a in expected.alerts
    ]


def test_a_journal_is_folded_on_from_where_it_was(played: Played, tmp_path: Path) -> None:
    part = cut(played.folder, tmp_path / "part", 0.4)
    course = TrialFold(TrialFolder(part))
    assert not course.go_on()
    end, runs = course.end, len(course.history.runs)
    whole = (played.folder / "journal.jsonl").read_bytes()
    with (part / "journal.jsonl").open("ab") as journal:
        journal.write(whole[end : end + 70])  # a line that is not whole yet
    course.go_on()
    assert course.end == end
    with (part / "journal.jsonl").open("ab") as journal:
        journal.write(whole[end + 70 :])
    history = course.history
    while course.go_on(at_once=4096):
        pass
    assert course.history is history
    assert len(history.runs) > runs
    assert course.end == len(whole)
    assert course.damaged == 0
    assert sum(test.verdicts.total() for test in course.tests.values()) == len(
        [run for run in history.runs if run.over]
    )


def test_a_journal_that_was_replaced_or_cut_is_folded_anew(
    played: Played, followed: TrialCache, tmp_path: Path
) -> None:
    part = cut(played.folder, tmp_path / "part", 1.0)
    following = followed.of(row_of(part))
    first = following.standing()
    (part / "journal.jsonl").unlink()
    empty = following.standing()
    lines = (played.folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (part / "journal.jsonl").write_bytes(b"".join(lines[: len(lines) // 3]) + b"no event\n")
    third = following.standing()
    assert first is not None
    assert empty is not None
    assert third is not None
    passed = [sum(test.passed for test in each.tests) for each in (first, third)]
    assert passed[0] > passed[1] > 0
    assert (first.damaged, third.damaged) == (0, 1)
    assert third.state == "running"


def test_a_folder_that_is_gone_leaves_what_was_known_and_says_so(
    played: Played, followed: TrialCache, tmp_path: Path
) -> None:
    part = cut(played.folder, tmp_path / "part", 0.5)
    following = followed.of(row_of(part, "running"))
    known = following.standing()
    assert known is not None
    assert not following.trouble
    for file in part.iterdir():
        file.unlink()
    part.rmdir()
    assert following.standing() == known
    assert str(part) in following.trouble
    assert TrialCache(lambda: None).of(row_of(part)).standing() is None


def test_a_long_journal_is_read_beside_the_page_which_sees_how_far_it_is(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed_module, "AT_ONCE_BYTES", 1000)
    monkeypatch.setattr(followed_module, "STIR_S", 0.0)
    stirred, go_on = threading.Event(), threading.Event()
    real = TrialFold.go_on

    def slowly(self: TrialFold, at_once: int = 0) -> bool:
        more = real(self, 65536)
        if more:
            assert go_on.wait(LONG_S)
        return more

    monkeypatch.setattr(TrialFold, "go_on", slowly)
    following = TrialCache(stirred.set).of(row_of(played.folder))
    assert following.standing() is None
    assert 0 < following.share_read < 1
    assert following.status() is None
    go_on.set()
    assert stirred.wait(LONG_S)
    until(lambda: following.standing() is not None, "the whole journal")
    assert following.share_read == 1


def test_node_time_over_the_wall_clock_adds_up_to_the_timeline(
    played: Played, followed: TrialCache
) -> None:
    following = followed.of(row_of(played.folder))
    judged(following)
    uses, course = following.uses(), following.course
    assert uses is not None
    assert course is not None
    total = timeline_of(course.history, course.history.last).total
    assert uses.available == pytest.approx(total.available / SECOND_NS)
    assert sum(uses.shares.values()) == pytest.approx(1)
    starts, shares, step = uses.bins(50)
    assert len(starts) == 50
    for use in USES:
        mean = sum(share or 0 for share in shares[use]) / 50
        assert mean == pytest.approx(total.share(use), abs=0.005), use
    some, _, finer = uses.bins(50, starts[10], starts[12])
    assert starts[10] - step <= some[0] <= starts[10]
    assert finer < step / 10
    assert uses.bins(50, starts[-1] + 10 * step, starts[-1] + 11 * step)[0]


def test_runs_in_flight_are_those_of_the_criterion(played: Played, followed: TrialCache) -> None:
    following = followed.of(row_of(played.folder))
    judged(following)
    flights, course = following.flights(), following.course
    assert flights is not None
    assert course is not None
    by_name = {steps.name: steps for steps in flights}
    assert by_name[""].expected == 4
    assert by_name["work"].expected == 2
    for name, steps in by_name.items():
        tests = [name] if name else None
        levels = in_flight(course.history, course.history.last, tests)
        values = [value for value in steps.values[:-1] if value is not None]
        assert values == [level.value for level in levels]
    loads = following.loads()
    assert loads is not None
    assert {steps.name for steps in loads} == {"scratch/mdt0", "scratch/mdt1"}
    assert all(steps.most == 100 for steps in loads)
    assert max(max(filter(None, steps.values)) for steps in loads) >= 20


def test_few_trials_are_kept_those_looked_at_last(
    played: Played, followed: TrialCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed_module, "MOST_TRIALS", 2)
    paths = [cut(played.folder, tmp_path / name, 0.1) for name in ("a", "b", "c")]
    first = followed.of(row_of(paths[0]))
    followed.of(row_of(paths[1]))
    assert followed.of(row_of(paths[0])) is first
    followed.of(row_of(paths[2]))  # b goes
    assert followed.of(row_of(paths[0])) is first
    monkeypatch.setattr(followed_module, "MOST_RUNS", 1)
    first.standing()
    followed.of(row_of(paths[2])).standing()
    assert followed.of(row_of(paths[2])).course is not None
    assert followed.of(row_of(paths[0])) is not first


def test_the_verdict_of_an_ended_trial_is_that_of_its_criteria(
    played: Played, followed: TrialCache
) -> None:
    found: list[Overall | None] = []

    def known() -> bool:
        found.append(followed.verdict(row_of(played.folder)))
        return found[-1] is not None

    until(known, "the verdict")
    folder = TrialFolder(played.folder)
    assert found[-1] == status(folder.record(), folder.cases(), read(folder.journal)).verdict
    assert followed.verdict(row_of(played.folder / "gone")) is None


def test_of_many_verdicts_that_are_not_known_few_are_waited_for(
    tmp_path: Path, followed: TrialCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, waits = threading.Event(), []

    def slow(row: TrialRow) -> State:
        assert go_on.wait(LONG_S)
        return "met"

    have = BackgroundCompute.have

    def watched(self: BackgroundCompute, *what: Any) -> Any:
        waits.append(what[-1])
        return have(self, *what)

    monkeypatch.setattr(followed_module, "_verdict_of", slow)
    monkeypatch.setattr(BackgroundCompute, "have", watched)
    assert followed.verdict(row_of(tmp_path / "first")) is None
    until(followed._verdicts.is_behind, "it takes long")
    assert followed.verdict(row_of(tmp_path / "second")) is None
    assert waits == [None, 0.0]
    go_on.set()
    until(lambda: followed.verdict(row_of(tmp_path / "second")) == "met", "the second")


# ---- the desk -----------------------------------------------------------------------------


def test_what_takes_long_is_not_waited_for_and_told_when_it_is_there() -> None:
    stirred, go_on = threading.Event(), threading.Event()
    desk, shelf = BackgroundCompute(stirred.set), ResultSlots()

    def slow() -> str:
        assert go_on.wait(LONG_S)
        return "made"

    assert desk.have(shelf, "x", 1, slow, wait_s=0.2) is None
    assert desk.have(shelf, "x", 1, slow, wait_s=0.01) is None
    go_on.set()
    assert stirred.wait(LONG_S)
    assert desk.have(shelf, "x", 1, lambda: "not made again") == "made"
    assert desk.have(shelf, "x", 2, lambda: "newer") == "made", "what took long is left alone"
    desk.close()


def test_what_is_quick_is_made_for_each_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.web.background.MAX_QUICK_S", LONG_S)
    desk, shelf = BackgroundCompute(lambda: None), ResultSlots()
    made: list[int] = []

    def make() -> int:
        made.append(len(made))
        return made[-1]

    found = [desk.have(shelf, "x", version, make, LONG_S) for version in (1, 2, 2, 3)]
    assert found == [0, 1, 1, 2]
    desk.close()


def test_what_was_quick_is_waited_for_longer_than_what_was_never_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("seatrial.web.background.MAX_QUICK_S", LONG_S)
    monkeypatch.setattr("seatrial.web.background.MAX_FIRST_WAIT_S", 0.001)
    desk, shelf, go_on = BackgroundCompute(lambda: None), ResultSlots(), threading.Event()
    assert desk.have(shelf, "x", 1, lambda: go_on.wait(LONG_S)) is None
    go_on.set()
    until(lambda: not shelf.tasks, "the first")
    began = threading.Event()
    later = threading.Timer(0.05, began.set)
    later.start()
    assert desk.have(shelf, "x", 2, lambda: began.wait(LONG_S) and "second") == "second"
    desk.close()


def test_an_order_that_comes_while_an_older_is_made_is_made_after_it() -> None:
    stirred, go_on, begun = threading.Event(), threading.Event(), threading.Event()
    desk, shelf = BackgroundCompute(stirred.set), ResultSlots()

    def first() -> int:
        begun.set()
        assert go_on.wait(LONG_S)
        return 1

    assert desk.have(shelf, "x", 1, first, wait_s=0.01) is None
    assert begun.wait(LONG_S)
    assert desk.have(shelf, "x", 2, lambda: 2, wait_s=0.01) is None
    go_on.set()
    until(lambda: "x" in shelf and shelf["x"].value == 2, "the later order")
    assert stirred.is_set()
    desk.close()


def test_what_cannot_be_made_says_why_each_time_and_can_be_made_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("seatrial.web.background.MAX_QUICK_S", LONG_S)
    desk, shelf = BackgroundCompute(lambda: None), ResultSlots()

    def broken() -> None:
        raise OSError("the disk is gone")

    for _ in range(2):
        with pytest.raises(OSError, match="the disk is gone"):
            desk.have(shelf, "x", 1, broken, LONG_S)
    assert desk.have(shelf, "x", 2, lambda: "well", LONG_S) == "well"
    desk.close()


def test_nothing_is_waited_for_behind_what_takes_long_at_first() -> None:
    desk, shelf, goes_on = BackgroundCompute(lambda: None), ResultSlots(), threading.Event()
    assert not shelf.is_behind()
    desk.have(shelf, "long", 1, goes_on.wait, wait_s=0)
    until(shelf.is_behind, "it takes long")
    goes_on.set()
    until(lambda: not shelf.tasks, "it is there")
    desk.have(shelf, "long", 2, goes_on.wait, wait_s=0)
    assert not shelf.is_behind()
    desk.close()
