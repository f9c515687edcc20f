"""Trials that pages look at: their journals folded on, judged beside the page, few of them kept."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from seatrial.execute.trial_folder import Record, TrialFolder
from seatrial.journal.journal import read
from seatrial.results.criteria.mix import Overall
from seatrial.results.status import status
from seatrial.results.store.tables import TrialRow
from seatrial.results.utilisation import USES, in_flight, timeline_of
from seatrial.show.web import trial_cache
from seatrial.show.web.caches import BackgroundCompute
from seatrial.show.web.trial_cache import JudgedTrial, TailedTrial, TrialCache, TrialFold
from seatrial.units import SECOND_NS
from tests.plugins.rehearsal.stage import Played
from tests.programs import LONG_S, until

from .harbour import TESTS, cut, rehearsed


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return rehearsed(tmp_path_factory.mktemp("harbour"))


@pytest.fixture
def kept() -> TrialCache:
    return TrialCache(lambda: None)


def row_of(path: Path, state: str = "ended") -> TrialRow:
    head = (1, path.name, str(path), "toy", 1, 1, 2, state, 1.0, 3, 3)
    return TrialRow(*head, passed=1, failed=1, running=0, waiting=0, damaged=0, component="c")


def judged(tailed: TailedTrial) -> None:
    """Wait until all is judged."""
    tailed.standing()
    for make in (tailed.status, tailed.uses, tailed.flights, tailed.loads):
        until(lambda make=make: make() is not None, make.__name__)  # type: ignore[misc]


def test_what_a_page_shows_is_what_the_command_line_says(played: Played, kept: TrialCache) -> None:
    tailed = kept.of(row_of(played.folder))
    judged(tailed)
    standing, found = tailed.standing(), tailed.status()
    folder = TrialFolder(played.folder)
    expected = status(folder.record(), folder.cases(), read(folder.journal))
    assert standing is not None
    throttled = [hold for hold in expected.held_back_by if hold.kind in ("gauge", "blackout")]
    assert found == msgspec.structs.replace(expected, held_back_by=throttled)
    assert [test.test for test in standing.tests] == sorted(TESTS)
    for test, part in zip(standing.tests, expected.parts, strict=True):
        assert (test.test, test.in_flight, test.running) == (part.test, 0, 0)
        assert {"pass": 0, **test.verdicts} == {"pass": 0, **part.verdicts}
        assert test.expected == part.expected > 0


@pytest.mark.parametrize("share", [0.05, 0.31, 0.62, 0.97])
def test_counts_kept_by_events_are_those_of_the_accounts(
    played: Played, kept: TrialCache, tmp_path: Path, share: float
) -> None:
    part = cut(played.folder, tmp_path / "part", share)
    tailed = kept.of(row_of(part, "running"))
    standing = tailed.standing()
    folder = TrialFolder(part)
    expected = status(folder.record(), folder.cases(), read(folder.journal))
    assert standing is not None
    counts = [(test.in_flight, test.running, test.accepted) for test in standing.tests]
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
    fold = TrialFold(TrialFolder(part))
    assert not fold.go_on()
    end, runs = fold.end, len(fold.history.runs)
    whole = (played.folder / "journal.jsonl").read_bytes()
    with (part / "journal.jsonl").open("ab") as journal:
        journal.write(whole[end : end + 70])  # a line that is not whole yet
    fold.go_on()
    assert fold.end == end
    with (part / "journal.jsonl").open("ab") as journal:
        journal.write(whole[end + 70 :])
    history = fold.history
    while fold.go_on(at_once=4096):
        pass
    assert fold.history is history
    assert len(history.runs) > runs
    assert fold.end == len(whole)
    assert fold.damaged == 0
    assert sum(counts.total() for counts in fold.verdicts.values()) == len(
        [run for run in history.runs if run.over]
    )


def test_a_journal_that_was_replaced_or_cut_is_folded_anew(
    played: Played, kept: TrialCache, tmp_path: Path
) -> None:
    part = cut(played.folder, tmp_path / "part", 1.0)
    tailed = kept.of(row_of(part))
    first = tailed.standing()
    (part / "journal.jsonl").unlink()
    empty = tailed.standing()
    lines = (played.folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (part / "journal.jsonl").write_bytes(b"".join(lines[: len(lines) // 3]) + b"no event\n")
    third = tailed.standing()
    assert first is not None
    assert empty is not None
    assert third is not None
    passed = [sum(test.accepted for test in each.tests) for each in (first, third)]
    assert passed[0] > passed[1] > 0
    assert (first.damaged, third.damaged) == (0, 1)
    assert third.state == "running"


def test_a_folder_that_is_gone_leaves_what_was_known_and_says_so(
    played: Played, kept: TrialCache, tmp_path: Path
) -> None:
    part = cut(played.folder, tmp_path / "part", 0.5)
    tailed = kept.of(row_of(part, "running"))
    known = tailed.standing()
    assert known is not None
    assert not tailed.trouble
    for file in part.iterdir():
        file.unlink()
    part.rmdir()
    assert tailed.standing() == known
    assert str(part) in tailed.trouble
    assert TrialCache(lambda: None).of(row_of(part)).standing() is None


def test_a_long_journal_is_read_beside_the_page_which_sees_how_far_it_is(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial_cache, "AT_ONCE_BYTES", 1000)
    monkeypatch.setattr(trial_cache, "ANNOUNCE_S", 0.0)
    announced, go_on = threading.Event(), threading.Event()
    real = TrialFold.go_on

    def slowly(self: TrialFold, at_once: int = 0) -> bool:
        more = real(self, 65536)
        if more:
            assert go_on.wait(LONG_S)
        return more

    monkeypatch.setattr(TrialFold, "go_on", slowly)
    tailed = TrialCache(announced.set).of(row_of(played.folder))
    assert tailed.standing() is None
    until(lambda: tailed.share_read > 0, "a part is read")
    assert 0 < tailed.share_read < 1
    assert tailed.status() is None
    go_on.set()
    assert announced.wait(LONG_S)
    until(lambda: tailed.standing() is not None, "the whole journal")
    assert tailed.share_read == 1


def test_node_time_over_the_wall_clock_adds_up_to_the_timeline(
    played: Played, kept: TrialCache
) -> None:
    tailed = kept.of(row_of(played.folder))
    judged(tailed)
    uses, fold = tailed.uses(), tailed.fold
    assert uses is not None
    assert fold is not None
    total = timeline_of(fold.history, fold.history.last).total
    assert uses.whole.available == pytest.approx(total.available / SECOND_NS)
    assert sum(uses.whole.shares.values()) == pytest.approx(1)
    starts, shares, step = uses.bins(50)
    assert len(starts) == 50
    for use in USES:
        mean = sum(share or 0 for share in shares[use]) / 50
        assert mean == pytest.approx(total.share(use), abs=0.005), use
    some, _, finer = uses.bins(50, starts[10], starts[12])
    assert starts[10] - step <= some[0] <= starts[10]
    assert finer < step / 10
    assert uses.bins(50, starts[-1] + 10 * step, starts[-1] + 11 * step)[0]


def test_runs_in_flight_are_those_of_the_criterion(played: Played, kept: TrialCache) -> None:
    tailed = kept.of(row_of(played.folder))
    judged(tailed)
    flights, fold = tailed.flights(), tailed.fold
    assert flights is not None
    assert fold is not None
    by_name = {steps.name: steps for steps in flights}
    assert by_name[""].expected == 4
    assert by_name["work"].expected == 2
    for name, steps in by_name.items():
        tests = [name] if name else None
        levels = in_flight(fold.history, fold.history.last, tests)
        values = [value for value in steps.values[:-1] if value is not None]
        assert values == [level.value for level in levels]
    loads = tailed.loads()
    assert loads is not None
    assert {steps.name for steps in loads} == {"scratch/mdt0", "scratch/mdt1"}
    assert all(steps.most == 100 for steps in loads)
    assert max(max(filter(None, steps.values)) for steps in loads) >= 20


def test_few_trials_are_kept_those_looked_at_last(
    played: Played, kept: TrialCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept._trials, "max_items", 2)
    paths = [cut(played.folder, tmp_path / name, 0.1) for name in ("a", "b", "c")]
    first = kept.of(row_of(paths[0]))
    kept.of(row_of(paths[1]))
    assert kept.of(row_of(paths[0])) is first
    kept.of(row_of(paths[2]))  # b goes
    assert kept.of(row_of(paths[0])) is first
    monkeypatch.setattr(kept._trials, "max_size", 1)
    first.standing()
    kept.of(row_of(paths[2])).standing()
    assert kept.of(row_of(paths[2])).fold is not None
    assert kept.of(row_of(paths[0])) is not first


def test_the_verdict_of_an_ended_trial_is_that_of_its_criteria(
    played: Played, kept: TrialCache
) -> None:
    found: list[JudgedTrial | None] = []

    def known() -> bool:
        found.append(kept.verdict(row_of(played.folder)))
        return found[-1] is not None

    until(known, "the verdict")
    folder = TrialFolder(played.folder)
    wanted = status(folder.record(), folder.cases(), read(folder.journal))
    assert found[-1] is not None
    overall = found[-1].overall
    assert (overall.state, overall.words) == (wanted.verdict, wanted.verdict_words)
    assert kept.verdict(row_of(played.folder / "gone")) is None


def test_of_many_verdicts_that_are_not_known_few_are_waited_for(
    tmp_path: Path, kept: TrialCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, waits = threading.Event(), []

    judged = JudgedTrial(Overall("met", []), cast("Record", None), [])

    def slow(row: TrialRow) -> JudgedTrial:
        assert go_on.wait(LONG_S)
        return judged

    latest = BackgroundCompute.latest

    def watched(self: BackgroundCompute, *what: Any) -> Any:
        waits.append(what[-1])
        return latest(self, *what)

    monkeypatch.setattr(trial_cache, "_verdict_of", slow)
    monkeypatch.setattr(BackgroundCompute, "latest", watched)
    assert kept.verdict(row_of(tmp_path / "first")) is None
    until(kept._verdicts.is_behind, "it takes long")
    assert kept.verdict(row_of(tmp_path / "second")) is None
    assert waits == [None, 0.0]
    go_on.set()
    until(lambda: kept.verdict(row_of(tmp_path / "second")) is judged, "the second")
