"""Checksums of a journal's lines: what was changed, cut out, doubled or moved is found."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest

from seatrial.journal.encoding import all_hold, decode_block, unsealed
from seatrial.journal.events import AlertRaised, UnknownEvent
from seatrial.journal.journal import Journal, read
from tests.journals import without_checksums

LINES = 12


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "journal.jsonl"
    for first in range(0, LINES, 4):  # as three drivers write it
        with Journal.take(path) as owned:
            for number in range(first, first + 4):
                owned.append(AlertRaised(time=1 + number, text=f"number {number}"))
                if number % 3 == 0:
                    owned.flush()
    return path


def damaged(path: Path, offset: int = 0) -> int:
    reading = read(path, offset)
    list(reading)
    return reading.damaged


def numbers(path: Path) -> list[int]:
    return [event.time - 1 for event in read(path)]


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def test_each_line_has_that_of_the_journal_up_to_there(journal: Path) -> None:
    data = journal.read_bytes()
    for line in lines_of(journal):
        end = data.index(line) + len(line)
        written = json.loads(line)
        assert list(written)[-1] == "crc"
        crc = zlib.crc32(data[: end - len(b',"crc":"01234567"}\n')])
        assert written["crc"] == f"{crc:08x}"
    assert numbers(journal) == list(range(LINES))
    assert damaged(journal) == 0


def test_a_reader_may_begin_at_any_line(journal: Path) -> None:
    offset = 0
    for line in lines_of(journal):
        assert damaged(journal, offset) == 0
        offset += len(line)


def test_every_flipped_bit_is_found(journal: Path) -> None:
    whole = journal.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1  # what damages its checksum is found by the next line
    for place in range(last):
        for bit in range(8):
            wrong = bytes([whole[place] ^ 1 << bit])
            events, lost = decode_block(whole[:place] + wrong + whole[place + 1 :])
            assert lost > 0, (place, bit)
            assert {event.time - 1 for event in events} <= set(range(LINES))
            assert len(events) >= LINES - 2


@pytest.mark.parametrize("first", range(1, LINES))
@pytest.mark.parametrize("lines", [1, 2])
def test_missing_doubled_and_exchanged_lines_are_found(
    journal: Path, first: int, lines: int
) -> None:
    whole = lines_of(journal)
    before, block, after = whole[:first], whole[first : first + lines], whole[first + lines :]
    for changed in (before + after, before + block + block + after, after + before):
        if changed == before:
            continue  # a cut at the end of a line: test_mark.py
        journal.write_bytes(b"".join(changed))
        assert damaged(journal) == (2 if changed == after + before else 1)


def test_what_is_around_damage_is_kept(journal: Path) -> None:
    whole = lines_of(journal)
    whole[5] = whole[5].replace(b"number 5", b"number 6")
    journal.write_bytes(b"".join(whole))
    assert numbers(journal) == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11]


def test_a_driver_goes_on_behind_damage_without_more_of_it(journal: Path) -> None:
    whole = lines_of(journal)
    for place in (5, LINES - 1):
        whole[place] = whole[place].replace(b"number", b"NUMBER")
    journal.write_bytes(b"".join(whole))
    with Journal.take(journal) as owned:
        owned.append(AlertRaised(time=99))
    assert damaged(journal) == 2
    assert numbers(journal)[-1] == 98


def test_lines_without_a_checksum_are_read_before_and_behind_others(journal: Path) -> None:
    old = without_checksums(journal)
    journal.write_bytes(old)
    assert damaged(journal) == 0
    with Journal.take(journal) as owned:
        owned.extend([AlertRaised(time=LINES + 1), AlertRaised(time=LINES + 2)])
    with journal.open("ab") as file:
        file.write(old)
    with Journal.take(journal) as owned:
        owned.append(AlertRaised(time=1))
    assert damaged(journal) == 0
    assert len(numbers(journal)) == 2 * LINES + 3


def test_an_event_of_a_later_version_is_kept_without_the_checksum(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    written = b'{"event":"later","time":7,"more":[1]}'
    with Journal.take(path) as owned:
        owned.append(UnknownEvent(kind="later", time=7, raw=written))
    (event,) = read(path)
    assert isinstance(event, UnknownEvent)
    assert event.raw == written


def test_only_a_last_member_is_a_checksum() -> None:
    for line in (
        b'{"a":1,"crc":"0123456x"}',
        b'{"a":1,"crc":"0123ABCD"}',
        b'{"crc":"01234567","a":1}',
    ):
        assert unsealed(line) == line
    assert unsealed(b'{"a":1,"crc":"01234567"}') == b'{"a":1}'


def test_a_whole_journal_is_checked_in_one_pass(journal: Path) -> None:
    whole = journal.read_bytes()
    assert all_hold(whole, 0)
    assert not all_hold(whole.replace(b"number 5", b"number 6"), 0)
    assert not all_hold(without_checksums(journal), 0), "its lines are checked one by one"
