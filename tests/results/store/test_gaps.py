"""Where a journal is damaged: what is around it is kept, and the gap is known."""

from __future__ import annotations

import sys
from io import BufferedReader, FileIO
from pathlib import Path

import pytest

from seatrial.journal.events import AlertRaised
from seatrial.results.store import ingest, queries
from seatrial.results.store import upserts as gaps_module
from seatrial.results.store.ingest import sync, synced
from seatrial.results.store.location import Location
from seatrial.results.store.opening import reopen_empty
from seatrial.results.store.tables import Filters, GapRow
from seatrial.results.store.upserts import gaps
from tests.journals import without_checksums

from .trials import NOON, SECOND, TrialMaker, a_case, a_trial


def found(location: Location, trials: Path, tag: str = "nightly") -> list[GapRow]:
    with synced(location, trials) as store:
        return gaps(store, queries.trial(store, tag))


def test_a_gap_is_known_by_its_lines_bytes_and_times(tmp_path: Path, location: Location) -> None:
    trial = a_trial(tmp_path)
    lines = without_checksums(trial.folder.journal).split(b"\n")
    kept = [b"", *lines[:4], b"\0\0\0\0{half", b"{}", *lines[7:20], b"[]", *lines[20:]]
    trial.folder.journal.write_bytes(b"\n".join(kept))
    start = len(b"\n".join(kept[:5])) + 1
    second = len(b"\n".join(kept[:20])) + 1
    assert found(location, tmp_path) == [
        GapRow(6, 2, start, start + 13, NOON + 4 * SECOND, NOON + 8 * SECOND),
        GapRow(21, 1, second, second + 3, NOON + 20 * SECOND, NOON + 21 * SECOND),
    ]
    with synced(location, tmp_path) as store:
        assert queries.trials(store)[0].damaged == 3
        assert queries.count_runs(store, Filters()) == 3


def test_a_whole_journal_has_no_gaps(tmp_path: Path, location: Location) -> None:
    a_trial(tmp_path)
    assert found(location, tmp_path) == []


def test_a_gap_at_the_end_gets_its_later_time_when_there_is_more(
    tmp_path: Path, location: Location
) -> None:
    trial = TrialMaker(tmp_path, "live", [a_case(1)])
    trial.event(AlertRaised, text="one")
    trial.write()
    one = without_checksums(trial.folder.journal)
    trial.folder.journal.write_bytes(one + b"broken\n")
    begin = len(one)
    with reopen_empty(location) as store:

        def after(text: bytes) -> GapRow:
            with trial.folder.journal.open("ab") as file:
                file.write(text)
            sync(store, tmp_path)
            (gap,) = gaps(store, queries.trial(store, "live"))
            return gap

        before = NOON + SECOND
        assert after(b"") == GapRow(2, 1, begin, begin + 7, before, None)
        assert after(b"\nagain\n") == GapRow(2, 2, begin, begin + 14, before, None)
        assert after(one) == GapRow(2, 2, begin, begin + 14, before, before)
        assert after(one) == GapRow(2, 2, begin, begin + 14, before, before)


def test_a_line_longer_than_any_event_is_a_gap(
    tmp_path: Path, location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seatrial.journal.journal.LONGEST_LINE", 4000)
    monkeypatch.setattr("seatrial.journal.journal.LINE_PIECE", 900)
    monkeypatch.setattr(ingest, "READ_OF_TRIAL", 1000)
    trial = a_trial(tmp_path)
    whole = without_checksums(trial.folder.journal)
    cut = whole.index(b"\n") + 1
    trial.folder.journal.write_bytes(whole[:cut] + b"x" * 9000 + b"\n" + whole[cut:])
    (gap,) = found(location, tmp_path)
    assert (gap.line, gap.lines, gap.first, gap.last) == (2, 1, cut, cut + 9001)


def test_of_very_many_gaps_some_are_kept_and_all_are_counted(
    tmp_path: Path, location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gaps_module, "MAX_GAPS", 5)
    monkeypatch.setattr(ingest, "READ_OF_TRIAL", 300)
    trial = a_trial(tmp_path)
    lines = without_checksums(trial.folder.journal).split(b"\n")
    trial.folder.journal.write_bytes(b"\nbad\n".join(lines))
    assert len(found(location, tmp_path)) == 5
    with synced(location, tmp_path) as store:
        assert queries.trials(store)[0].damaged == len(lines) - 1


@pytest.mark.parametrize("kept", [0, 12])
def test_a_journal_that_lost_its_end_has_a_gap_there(
    tmp_path: Path, location: Location, kept: int
) -> None:
    trial = a_trial(tmp_path)
    journal = trial.folder.journal
    whole = journal.read_bytes()
    assert found(location, tmp_path) == []
    end = len(b"".join(whole.splitlines(keepends=True)[:kept]))
    journal.write_bytes(whole[:end])
    last = NOON + kept * SECOND if kept else None
    assert found(location, tmp_path) == [GapRow(kept + 1, 1, end, len(whole), last, None)]
    assert found(location, tmp_path) == [GapRow(kept + 1, 1, end, len(whole), last, None)]
    trial.event(AlertRaised, text="resumed")
    trial.write()  # with a line about it
    (gap,) = found(location, tmp_path)
    assert (gap.line, gap.lines, gap.first, gap.after) == (kept + 1, 1, end, trial.now)
    with synced(location, tmp_path) as store:
        assert queries.trials(store)[0].damaged == 1


def test_a_journal_that_is_missing_is_named(tmp_path: Path, location: Location) -> None:
    trial = a_trial(tmp_path)
    assert found(location, tmp_path) == []
    trial.folder.journal.unlink()
    for _ in range(2):
        with synced(location, tmp_path) as store:
            assert store.notices == [f"{trial.folder.journal}: is missing; put it back"]


def test_one_flipped_bit_is_a_gap(tmp_path: Path, location: Location) -> None:
    trial = a_trial(tmp_path)
    lines = trial.folder.journal.read_bytes().splitlines(keepends=True)
    number = next(number for number, line in enumerate(lines) if b'"metric"' in line)
    lines[number] = lines[number].replace(b'"unit":"M', b'"unit":"O')
    trial.folder.journal.write_bytes(b"".join(lines))
    (gap,) = found(location, tmp_path)
    assert (gap.line, gap.lines) == (number + 1, 1)


def test_nothing_is_read_for_each_gap_again(
    tmp_path: Path, location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lines before a gap are counted from the gap before it."""
    monkeypatch.setattr(ingest, "READ_OF_TRIAL", 4000)
    monkeypatch.setattr(ingest, "FOLD_AT_ONCE", 400)
    monkeypatch.setattr(gaps_module, "LINE_PIECE", 1 << 20)
    trial = a_trial(tmp_path)
    lines = without_checksums(trial.folder.journal).split(b"\n")[:-1] * 20
    trial.folder.journal.write_bytes(b"\nbad\n".join([*lines, b""]))
    read: list[int] = []

    class Counted(BufferedReader):
        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            if sys._getframe(1).f_globals["__name__"] == gaps_module.__name__:
                read.append(len(data))
            return data

    def opened(path: Path) -> Counted:
        return Counted(FileIO(path))

    monkeypatch.setattr(ingest, "open_regular", opened)
    gaps_found = found(location, tmp_path)
    assert [gap.line for gap in gaps_found] == [2 * n for n in range(1, len(lines) + 1)]
    assert 0 < sum(read) <= trial.folder.journal.stat().st_size
