"""The cursor: what is there after crashes, full disks, and journals that are not what they were."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.execute.trial_folder import TrialFolder
from seatrial.journal.encoding import encode
from seatrial.journal.events import AlertRaised, GaugeRead
from seatrial.journal.journal import Journal, read
from seatrial.model.file_model import typed
from seatrial.plugins.sinks.keys import Sink
from seatrial.plugins.sinks.lifetime import load_cursor, save_cursor, sink_lags
from tests.journals import without_checksums
from tests.plugins.sinks.receiver import Receiver
from tests.plugins.sinks.sending import Told, deliver
from tests.results.store.trials import NOON, a_trial


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        yield server


def hook(receiver: Receiver, **keys: object) -> Sink:
    return typed({"name": "hook", "kind": "webhook", "url": receiver.url, **keys}, Sink)


def numbers(receiver: Receiver) -> list[int]:
    return [event["seq"] for event in receiver.events()]


def test_what_was_sent_is_not_sent_again(folder: TrialFolder, receiver: Receiver) -> None:
    assert deliver(folder, hook(receiver))
    assert deliver(folder, hook(receiver))
    assert len(receiver.requests) == 1
    with Journal.take(folder.journal) as journal:
        journal.append(AlertRaised(time=NOON, text="more"))
    whole = len(list(read(folder.journal)))
    assert sink_lags(folder)[0].behind.events == 1
    assert deliver(folder, hook(receiver))
    assert numbers(receiver) == list(range(1, whole + 1))


def test_only_whole_lines_are_sent(folder: TrialFolder, receiver: Receiver) -> None:
    whole = len(list(read(folder.journal)))
    line = encode(AlertRaised(time=NOON, text="torn"))
    with folder.journal.open("ab") as journal:
        journal.write(line[:20])
    assert deliver(folder, hook(receiver))
    assert numbers(receiver) == list(range(1, whole + 1))
    assert sink_lags(folder)[0].behind.events == 0
    with folder.journal.open("ab") as journal:
        journal.write(line[20:] + b"\n")
    assert deliver(folder, hook(receiver))
    assert receiver.events()[-1]["text"] == "torn"
    assert numbers(receiver)[-1] == whole + 1


def test_damaged_lines_are_passed_over_and_counted(folder: TrialFolder, receiver: Receiver) -> None:
    lines = without_checksums(folder.journal).splitlines(keepends=True)
    lines[3] = b"\xff\x00 no event\n"
    lines[9] = b'{"time":-1,"event":"x"}\n'
    folder.journal.write_bytes(b"".join(lines))
    assert deliver(folder, hook(receiver))
    assert len(receiver.events()) == len(lines) - 2
    (where,) = sink_lags(folder)
    assert (where.damaged, where.sent) == (2, len(lines) - 2)


def test_a_line_that_never_ends_is_one_damaged_line(
    folder: TrialFolder, receiver: Receiver
) -> None:
    whole = len(list(read(folder.journal)))
    with folder.journal.open("ab") as journal:
        journal.write(b"x" * (9 << 20) + b"\n")
        journal.write(encode(AlertRaised(time=NOON, text="behind it")) + b"\n")
    assert deliver(folder, hook(receiver, size="4KiB"))
    assert len(receiver.events()) == whole + 1
    assert sink_lags(folder)[0].damaged == 1


@pytest.mark.parametrize("how", ["other", "shorter", "same start"])
def test_a_journal_that_was_replaced_is_sent_from_its_beginning(
    folder: TrialFolder, receiver: Receiver, how: str
) -> None:
    assert deliver(folder, hook(receiver))
    lines = without_checksums(folder.journal).splitlines(keepends=True)
    new = {
        "other": [line.replace(b"nightly", b"daily42") for line in lines] + lines,
        "shorter": lines[:5],
        "same start": [*lines[:-1], lines[-1].replace(b'"value":1', b'"value":7')],
    }[how]
    folder.journal.write_bytes(b"".join(new))
    receiver.taken.clear()
    told = Told()
    assert deliver(folder, hook(receiver), tell=told)
    assert numbers(receiver) == list(range(1, len(new) + 1))
    assert "the journal is another one than before" in told[0]
    assert sink_lags(folder)[0].sent == len(new)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"\x00\xff",
        b'{"sink":"hook","offset":"x"}',
        b'{"sink":"hook","offset":-5,"read":7}',
        b'{"sink":"../../elsewhere","offset":9999999}',
        b"[" * 9999,
    ],
)
def test_a_cursor_that_is_none_begins_anew(
    folder: TrialFolder, receiver: Receiver, text: bytes
) -> None:
    assert deliver(folder, hook(receiver))
    (folder.path / "sinks" / "hook.json").write_bytes(text)
    receiver.taken.clear()
    assert deliver(folder, hook(receiver))
    assert len(receiver.events()) == len(list(read(folder.journal)))


def test_a_cursor_that_points_nowhere_begins_anew(folder: TrialFolder, receiver: Receiver) -> None:
    cursor = load_cursor(folder, "hook")
    cursor.offset, cursor.fingerprint = 100, 4711
    save_cursor(folder, cursor)
    assert deliver(folder, hook(receiver))
    assert len(receiver.events()) == len(list(read(folder.journal)))


def test_a_full_disk_stops_no_delivery(folder: TrialFolder, receiver: Receiver) -> None:
    """The limit on the size of files stands for it: writing fails in the middle of the file."""
    told = Told()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, limits[1]))
    try:
        assert deliver(folder, hook(receiver, size="1KiB"), tell=told)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    whole = len(list(read(folder.journal)))
    assert numbers(receiver) == list(range(1, whole + 1))
    assert [line for line in told if "cursor cannot be written: File too large" in line] == told[:1]
    assert os.listdir(folder.path / "sinks") == []  # noqa: PTH208 - hidden files, too
    receiver.taken.clear()
    assert deliver(folder, hook(receiver))  # nothing is known of it: all comes again, by its seq
    assert numbers(receiver) == list(range(1, whole + 1))
    assert sink_lags(folder)[0].sent == whole


def test_a_trial_without_a_journal_has_nothing_to_send(tmp_path: Path, receiver: Receiver) -> None:
    folder = a_trial(tmp_path).folder
    folder.journal.unlink()
    assert deliver(folder, hook(receiver))
    assert sink_lags(folder)[0].behind.events == 0


def test_a_journal_that_cannot_be_read_is_tried_again(
    folder: TrialFolder, receiver: Receiver
) -> None:
    aside = folder.journal.rename(folder.journal.with_name("aside"))
    folder.journal.mkdir()
    told = Told()
    assert not deliver(folder, hook(receiver), patience=0.05, tell=told)
    assert "it is a folder, no regular file" in sink_lags(folder)[0].error
    folder.journal.rmdir()
    aside.rename(folder.journal)
    assert deliver(folder, hook(receiver))
    assert sink_lags(folder)[0].error == ""
    assert numbers(receiver) == list(range(1, len(list(read(folder.journal))) + 1))


def test_nothing_stands_where_nothing_was_sent(tmp_path: Path) -> None:
    assert sink_lags(tmp_path / "no" / "trial") == []
    assert sink_lags(a_trial(tmp_path).folder) == []


def test_how_far_behind_is_estimated_where_there_is_much(
    folder: TrialFolder, receiver: Receiver
) -> None:
    receiver.otherwise = 500
    line = encode(GaugeRead(time=NOON, gauge="x" * 200, value=1)) + b"\n"
    with folder.journal.open("ab") as journal:
        journal.write(line * 40_000)
    assert not deliver(folder, hook(receiver), patience=0.01)
    whole = len(list(read(folder.journal)))
    assert abs(sink_lags(folder)[0].behind.events - whole) < whole / 100
