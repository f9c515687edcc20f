"""A file or a FIFO as a sink."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import threading
from pathlib import Path

from seatrial.execute.trial_folder import TrialFolder
from seatrial.journal.journal import read
from seatrial.model.file_model import typed
from seatrial.plugins.sinks.keys import Sink
from seatrial.plugins.sinks.lifetime import load_cursor, save_cursor, sink_lags
from tests.journals import without_checksums
from tests.plugins.sinks.sending import Told, deliver
from tests.results.store.trials import a_trial


def a_file(path: Path, **keys: object) -> Sink:
    return typed({"name": "file", "kind": "file", "path": str(path), **keys}, Sink)


def numbers(path: Path, tag: str = "nightly") -> list[int]:
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    return [line["seq"] for line in lines if line["trial"] == tag]


def whole(folder: TrialFolder) -> list[int]:
    return list(range(1, len(list(read(folder.journal))) + 1))


def test_events_are_appended_as_json_lines(folder: TrialFolder, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    assert deliver(folder, a_file(path, lines=5))
    assert numbers(path) == whole(folder)
    first = json.loads(path.read_bytes().splitlines()[0])
    assert (first["event"], first["machine"]) == ("trial_start", "frontier")


def test_several_trials_share_a_file(folder: TrialFolder, tmp_path: Path) -> None:
    other = a_trial(tmp_path / "trials", "daily").folder
    path = tmp_path / "events.jsonl"
    threads = [
        threading.Thread(target=deliver, args=(each, a_file(path, lines=3)))
        for each in (folder, other)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert numbers(path) == whole(folder)
    assert numbers(path, "daily") == whole(other)


def test_what_a_crash_left_is_neither_torn_nor_doubled(folder: TrialFolder, tmp_path: Path) -> None:
    """It died when lines were written, in the middle of one, and before its cursor moved."""
    path = tmp_path / "events.jsonl"
    assert deliver(folder, a_file(path))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:10]) + lines[10][:30])
    cursor = load_cursor(folder, "file")
    cursor.offset = cursor.fingerprint = cursor.read = 0
    save_cursor(folder, cursor)
    assert deliver(folder, a_file(path, lines=4))
    assert path.read_bytes().splitlines(keepends=True) == lines


def test_what_others_wrote_is_left_alone(folder: TrialFolder, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"a log of others\nits last line, unfinished")
    assert deliver(folder, a_file(path))
    first, second, *rest = path.read_bytes().splitlines()
    assert (first, second) == (b"a log of others", b"its last line, unfinished")
    assert [json.loads(line)["seq"] for line in rest] == whole(folder)


def test_lines_of_a_journal_that_was_replaced_are_written(
    folder: TrialFolder, tmp_path: Path
) -> None:
    path = tmp_path / "events.jsonl"
    assert deliver(folder, a_file(path))
    text = without_checksums(folder.journal)
    folder.journal.write_bytes(text.replace(b'"time":1795262', b'"time":1795263'))
    assert deliver(folder, a_file(path))
    assert numbers(path) == whole(folder) * 2


def test_a_full_disk_leaves_whole_lines_and_is_waited_for(
    folder: TrialFolder, tmp_path: Path
) -> None:
    path = tmp_path / "events.jsonl"
    told = Told()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2500, limits[1]))
    try:
        assert not deliver(folder, a_file(path, lines=4), patience=0.05, tell=told)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "cannot be written" in sink_lags(folder)[0].error
    held = path.read_bytes()
    assert held.endswith(b"\n")
    assert 0 < len(held) <= 2500
    assert deliver(folder, a_file(path, lines=4))
    assert numbers(path) == whole(folder)


def test_a_file_that_another_process_keeps_locked(folder: TrialFolder, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with path.open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert not deliver(folder, a_file(path, timeout=0.05), patience=0.05)
        assert "another process keeps it locked" in sink_lags(folder)[0].error
    assert deliver(folder, a_file(path))
    assert numbers(path) == whole(folder)


def test_a_place_that_is_none(folder: TrialFolder, tmp_path: Path) -> None:
    assert not deliver(folder, a_file(tmp_path / "no" / "such"), patience=0.01)
    assert "No such file" in sink_lags(folder)[0].error
    assert not deliver(folder, a_file(tmp_path), patience=0.01)
    assert "neither a file nor a FIFO" in sink_lags(folder)[0].error


def test_a_fifo_with_a_reader(folder: TrialFolder, tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    assert deliver(folder, a_file(path))
    reader.join()
    assert [json.loads(line)["seq"] for line in got[0].splitlines()] == whole(folder)


def test_a_fifo_that_nobody_reads(folder: TrialFolder, tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    assert not deliver(folder, a_file(path), patience=0.02)
    assert "nobody reads it" in sink_lags(folder)[0].error


def test_a_fifo_whose_reader_stops_reading(folder: TrialFolder, tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    line = without_checksums(folder.journal).splitlines(keepends=True)[-1]
    with folder.journal.open("ab") as journal:
        journal.write(line * 2000)  # more than a pipe holds
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert not deliver(folder, a_file(path, timeout=0.1), patience=0.05)
        assert "took nothing" in sink_lags(folder)[0].error
        os.set_blocking(reading, True)
        got = bytearray()

        def read_on() -> None:
            while data := os.read(reading, 65536):
                got.extend(data)

        holding = os.open(path, os.O_WRONLY)  # else the reader is at the end between two writers
        reader = threading.Thread(target=read_on)
        reader.start()
        assert deliver(folder, a_file(path, timeout=60))
        os.close(holding)
        reader.join()
    finally:
        os.close(reading)
    found = []
    for text in bytes(got).splitlines():
        try:
            found.append(json.loads(text)["seq"])
        except ValueError:
            assert text == b"" or len(found) > 0  # the half line that was cut
    assert set(found) == set(whole(folder))
