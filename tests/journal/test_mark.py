"""The mark of a journal: a journal that lost its last lines is not one that never had them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from threading import Thread

import pytest

from seatrial.journal.events import AlertRaised, ScriptStarted
from seatrial.journal.journal import (
    Damage,
    Journal,
    damage_of,
    has_lost_end,
    path_of,
    read,
    read_mark,
    write_mark,
)

LINES = 5


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "journal.jsonl"
    with Journal.take(path) as owned:
        for number in range(LINES):
            owned.append(AlertRaised(time=1 + number))
    return path


def damaged(path: Path) -> int:
    reading = read(path)
    list(reading)
    return reading.damaged


@pytest.mark.parametrize("lines", range(LINES))
def test_a_cut_at_the_end_of_a_line_is_one_damaged_line(journal: Path, lines: int) -> None:
    whole = journal.read_bytes().splitlines(keepends=True)
    assert damage_of(journal) is None
    journal.write_bytes(b"".join(whole[:lines]))
    assert damaged(journal) == 1
    assert damage_of(journal) == Damage(1, lines + 1)
    for _ in range(2):  # the driver records it, once
        with Journal.take(journal) as owned:
            owned.append(AlertRaised(time=9))
    assert damaged(journal) == 1
    assert len(list(read(journal))) == lines + 2


@pytest.mark.parametrize("scripts", [1, 1000])
def test_the_clock_goes_on_behind_the_latest_event_but_those_of_nodes(
    tmp_path: Path, scripts: int
) -> None:
    """However many events of jobs, whose clocks may be wrong, stand behind it."""
    tomorrow, later = (time.time_ns() + days * 86_400 * 10**9 for days in (1, 1000))
    path = tmp_path / "journal.jsonl"
    with Journal.take(path) as owned:
        for _ in range(scripts):
            owned.append(ScriptStarted(time=later, run_id="r" * 100))
    with Journal.take(path) as owned:
        assert owned.clock.now() < tomorrow
        owned.append(AlertRaised(time=tomorrow))
        for _ in range(scripts):
            owned.append(ScriptStarted(time=later, run_id="r" * 100))
    with Journal.take(path) as owned:
        assert tomorrow <= owned.clock.now() < later


def test_what_was_read_is_counted(journal: Path) -> None:
    reading = read(journal)
    assert len(list(reading)) == LINES
    assert (reading.number, reading.end) == (LINES, journal.stat().st_size)


def test_a_journal_that_is_missing_is_damaged(journal: Path) -> None:
    journal.unlink()
    assert damaged(journal) == 1
    assert has_lost_end(journal)


def test_another_journal_of_the_same_length_is_damaged(journal: Path) -> None:
    whole = journal.read_bytes()
    path_of(journal).rename(journal.with_name("kept"))
    journal.unlink()
    with Journal.take(journal) as owned:
        for number in range(LINES):
            owned.append(AlertRaised(time=2 + number))
    assert len(whole) == journal.stat().st_size
    journal.with_name("kept").rename(path_of(journal))
    assert damaged(journal) == 1


def test_the_mark_follows_each_sync(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal.take(path) as owned:
        owned.sync()
        assert read_mark(path) is None
        sizes = []
        for durable in (False, True, False, True):
            owned.append(AlertRaised(time=1))
            owned.flush(durable)
            mark = read_mark(path)
            sizes.append(mark.bytes if mark else 0)
        size = path.stat().st_size // 4
        assert sizes == [0, 2 * size, 2 * size, 4 * size]
    assert damaged(path) == 0


def test_who_takes_a_cut_journal_and_writes_nothing_hides_no_loss(journal: Path) -> None:
    """As a command does that is refused for another reason, and ends by an error."""
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]))
    Journal.take(journal).close()
    with pytest.raises(RuntimeError), Journal.take(journal):
        raise RuntimeError
    again = read(journal)
    assert list(again) and again.damaged == 1
    with Journal.take(journal):
        pass
    told = read(journal)
    assert list(told) and told.damaged == 1, "now a line of it says so"


def test_a_torn_end_behind_the_mark_is_no_damage(journal: Path) -> None:
    with journal.open("ab") as file:
        file.write(b'{"event":"al')
    assert damaged(journal) == 0
    with Journal.take(journal) as owned:
        owned.append(AlertRaised(time=9))
    assert damaged(journal) == 0


@pytest.mark.parametrize(
    "text", [b"", b"\0" * 64, b"{}", b'{"bytes":3,"crc":"00000000"}', b"[" * 99]
)
def test_a_mark_that_cannot_be_read_is_none(journal: Path, text: bytes) -> None:
    path_of(journal).write_bytes(text)
    assert read_mark(journal) is None
    journal.write_bytes(b"")
    assert damaged(journal) == 0


def test_a_journal_of_version_0_1_has_none(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"event":"alert","time":1}\n')
    Journal.take(path).close()
    assert read_mark(path) is None


def test_a_place_where_no_mark_can_be_written_is_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path_of(path).mkdir()
    with Journal.take(path) as owned:
        owned.append(AlertRaised(time=1))
    assert damaged(path) == 0


def test_a_fifo_in_the_place_of_the_mark_holds_nobody_up(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    os.mkfifo(path_of(path))
    writing = Thread(target=write_mark, args=(path, 100, b',"crc":"00000000"}\n'), daemon=True)
    writing.start()
    writing.join(10)
    assert not writing.is_alive()
    with Journal.take(path) as owned:
        owned.append(AlertRaised(time=1))
    assert damaged(path) == 0


def test_a_mark_that_is_read_while_it_is_written_is_no_damage(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = journal.read_bytes().splitlines()[0]
    whole = path_of(journal).read_bytes()
    mark = read_mark(journal)
    assert mark is not None
    half = whole.replace(mark.crc.encode(), older[-10:-2])
    assert half != whole
    readings: list[bytes] = []
    monkeypatch.setattr("seatrial.journal.journal.read_regular", lambda *_: readings.pop(0))
    for told in (damaged, damage_of, has_lost_end):
        readings[:] = [half, whole]
        assert not told(journal), told
    readings[:] = [half, whole]
    Journal.take(journal).close()
    readings[:] = [half, half]
    assert damaged(journal) == 1


def test_of_several_damaged_lines_the_first_is_named(journal: Path) -> None:
    whole = journal.read_bytes().splitlines(keepends=True)
    whole[1] = whole[3] = b"no event\n"
    journal.write_bytes(b"".join(whole))
    damage = damage_of(journal)
    assert damage is not None and damage.lines >= 2 and damage.first == 2
