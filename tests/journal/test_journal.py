from __future__ import annotations

import errno
import fcntl
import os
import resource
import shutil
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seatrial.errors import JournalError, Owned
from seatrial.journal import journal as module
from seatrial.journal.encoding import decode, decode_block, encode, seal
from seatrial.journal.events import AlertRaised, CheckStarted, Event, ScriptEnded
from seatrial.journal.journal import Journal, fingerprint, path_of, read, read_blocks
from seatrial.units import SECOND_NS

from .strategies import EVENTS

SAME_FOLDER = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

events_strategy = st.lists(EVENTS, max_size=8)
garbage = st.binary(max_size=60) | st.sampled_from(
    [b"\0" * 40, b'{"time":1,"event":"x"', b'{"time":', b"[" * 5000, b"\xff\xfe{}", b"{}", b"null"]
)


def an_event(time: int = 1, **more: Any) -> Event:
    return AlertRaised(time=time, **more)


def write(path: Path, *pieces: bytes) -> None:
    """Write a journal that nobody owned before."""
    path_of(path).unlink(missing_ok=True)
    path.write_bytes(b"".join(pieces))


def lines(events: list[Event]) -> bytes:
    return b"".join(encode(event) + b"\n" for event in events)


def is_event(line: bytes) -> bool:
    try:
        decode(line)
    except Exception:
        return False
    return True


class Everything(NamedTuple):
    events: list[Event]
    end: int
    damaged: int


def everything(path: Path, offset: int = 0) -> Everything:
    """All that can be read of a journal by now."""
    reading = read(path, offset)
    return Everything(list(reading), reading.end, reading.damaged)


# ---- reading ------------------------------------------------------------------------------


@SAME_FOLDER
@given(events=events_strategy)
def test_what_is_written_is_read(tmp_path: Path, events: list[Event]) -> None:
    path = tmp_path / "journal"
    path.unlink(missing_ok=True)
    path_of(path).unlink(missing_ok=True)
    with Journal.take(path) as journal:
        for event in events:
            journal.append(event)
    assert everything(path) == (events, path.stat().st_size, 0)


@SAME_FOLDER
@given(events=events_strategy, tail=garbage)
def test_a_torn_end_hides_no_whole_line_and_is_cut_off(
    tmp_path: Path, events: list[Event], tail: bytes
) -> None:
    path = tmp_path / "journal"
    write(path, lines(events), tail)
    *whole, torn = tail.split(b"\n")
    kept = events + [decode(line) for line in whole if is_event(line)]
    damaged = sum(bool(line.strip()) and not is_event(line) for line in whole)
    end = path.stat().st_size - len(torn)
    assert everything(path) == (kept, end, damaged)
    with Journal.take(path) as journal:
        assert path.stat().st_size == end
        journal.append(an_event())
    assert everything(path) == ([*kept, an_event()], path.stat().st_size, damaged)


@SAME_FOLDER
@given(
    pieces=st.lists(
        events_strategy.map(lines) | garbage.map(lambda line: line + b"\n"), max_size=5
    ),
    torn=garbage,
    cut=st.floats(0, 1),
    at_once=st.integers(1, 50),
)
def test_reading_in_pieces_equals_reading_at_once(
    tmp_path: Path, pieces: list[bytes], torn: bytes, cut: float, at_once: int
) -> None:
    path = tmp_path / "journal"
    data = b"".join([*pieces, torn])
    write(path, data)
    whole = everything(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "READ_AT_ONCE", at_once)
        assert everything(path) == whole
    write(path, data[: int(cut * len(data))])  # as a reader finds it while it grows
    first = everything(path)
    write(path, data)
    second = everything(path, first.end)
    assert first.events + second.events == whole.events
    assert first.damaged + second.damaged == whole.damaged
    assert second.end == whole.end


@given(below=st.integers(0, 30), at_once=st.integers(1, 300))
@SAME_FOLDER
def test_blocks_below_an_offset(tmp_path: Path, below: int, at_once: int) -> None:
    path = tmp_path / "journal"
    known = [an_event(n, text="x" * n) for n in range(30)]
    write(path, lines(known))
    until = len(lines(known[:below]))
    with path.open("rb") as file:
        blocks = list(read_blocks(file, 0, at_once, until))
    assert [event for block in blocks for event in block.events] == known[:below]
    assert until == max((block.end for block in blocks), default=0)


def test_a_line_without_end_is_not_kept_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LONGEST_LINE", 1000)
    monkeypatch.setattr(module, "READ_AT_ONCE", 300)
    path = tmp_path / "journal"
    hidden = b"x" * 1200 + encode(an_event(9)) + b"\n"  # no event, though its end looks like one
    long = encode(an_event(text="x" * 5000))  # too long, though an event
    write(path, hidden, lines([an_event(1)]), long, b"\n", lines([an_event(2)]), long)
    reading = everything(path)
    assert reading.events == [an_event(1), an_event(2)]
    assert reading.damaged == 2
    assert reading.end == path.stat().st_size - len(long)


def test_a_large_journal_is_read_a_block_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal"
    write(path, lines([an_event(n, text=f"{n}" * 20) for n in range(20_000)]))
    monkeypatch.setattr(module, "READ_AT_ONCE", 1 << 16)
    tracemalloc.start()
    assert sum(1 for _ in read(path)) == 20_000
    assert tracemalloc.get_traced_memory()[1] < 20 << 16
    tracemalloc.stop()
    assert path.stat().st_size > 20 << 16


@pytest.mark.parametrize("when", [-1, 1 << 62, 10**30])
def test_a_line_with_an_impossible_time_is_damaged(tmp_path: Path, when: int) -> None:
    write(tmp_path / "journal", b'{"time":%d,"event":"alert"}\n' % when, lines([an_event()]))
    assert everything(tmp_path / "journal").damaged == 1
    with Journal.take(tmp_path / "journal") as journal:
        assert journal.now() < 1 << 62


def test_a_missing_journal_holds_nothing_and_a_folder_is_none(tmp_path: Path) -> None:
    assert everything(tmp_path / "none") == ([], 0, 0)
    with pytest.raises(JournalError, match=f"{tmp_path}: cannot be read: it is a folder"):
        everything(tmp_path)


# ---- the clock ----------------------------------------------------------------------------


def test_the_last_time_is_found_behind_the_times_of_jobs_and_long_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal"
    ahead = ScriptEnded(time=9000)  # by a compute node's clock
    write(path, lines([an_event(500), an_event(400), ahead]), (b"x" * 99 + b"\n") * 3000)
    monkeypatch.setattr(time, "time_ns", lambda: 1)
    with Journal.take(path) as journal:
        assert 500 <= journal.now() < 500 + 3600 * SECOND_NS


# ---- owners -------------------------------------------------------------------------------

OWNER = """
import sys
from pathlib import Path
from seatrial.journal.journal import Journal
with Journal.take(Path(sys.argv[1])):
    print("owned", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def journal_of_another(tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    path = tmp_path / "trial" / "journal.jsonl"
    path.parent.mkdir()
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == "owned\n"
    with owner:
        yield path, owner
        owner.kill()


def test_the_second_owner_is_refused_by_the_name_of_the_first(
    journal_of_another: tuple[Path, subprocess.Popen[str]],
) -> None:
    path, owner = journal_of_another
    named = f"{path.parent}: .*seatrial, process {owner.pid} on {os.uname().nodename}; wait"
    with pytest.raises(JournalError, match=named):
        Journal.take(path)
    with pytest.raises(JournalError, match=named):  # refusing left the first one's name there
        Journal.take(path)
    assert list(read(path)) == []  # reading needs no lock


def test_an_owner_whose_lock_file_was_removed_is_still_the_only_one(
    journal_of_another: tuple[Path, subprocess.Popen[str]],
) -> None:
    path, _ = journal_of_another
    path.with_name("journal.jsonl.lock").unlink()
    with pytest.raises(Owned, match="lock file was removed"):
        Journal.take(path)


def test_the_lock_of_a_killed_owner_is_free(
    journal_of_another: tuple[Path, subprocess.Popen[str]],
) -> None:
    path, owner = journal_of_another
    owner.kill()
    owner.wait()
    with Journal.take(path) as journal:
        journal.append(an_event())
    assert list(read(path)) == [an_event()]


def test_what_a_killed_owner_was_starting_holds_its_lock_for_a_moment(tmp_path: Path) -> None:
    starting = "import os, time\n    os.fork() or (time.sleep(0.5), os._exit(0))\n    print("
    with subprocess.Popen(
        [sys.executable, "-c", OWNER.replace("print(", starting), str(tmp_path / "journal.jsonl")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "owned\n"
        owner.kill()
        owner.wait()
        Journal.take(tmp_path / "journal.jsonl").close()


def test_a_journal_that_is_closed_can_be_owned_again(tmp_path: Path) -> None:
    for count in range(3):
        with Journal.take(tmp_path / "journal") as journal:
            journal.append(an_event())
        assert len(list(read(tmp_path / "journal"))) == count + 1


def test_an_exception_writes_nothing_that_was_not_flushed(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Journal.take(tmp_path / "journal") as journal:
        journal.append(an_event(1))
        journal.flush(durable=True)
        journal.append(an_event(2))
        raise ZeroDivisionError
    assert list(read(tmp_path / "journal")) == [an_event(1)]


@pytest.mark.parametrize("how", ["removed", "moved", "replaced", "under a file"])
def test_a_journal_that_has_gone_from_its_path_is_said(tmp_path: Path, how: str) -> None:
    folder, away = tmp_path / "t", tmp_path / "away"
    folder.mkdir()
    with Journal.take(folder / "journal") as journal:
        journal.require_there()
        if how == "removed":
            shutil.rmtree(folder)
        else:
            folder.rename(away)
        if how == "replaced":
            folder.mkdir()
            shutil.copy(away / "journal", folder)
        elif how == "under a file":
            folder.touch()
        with pytest.raises(JournalError, match="journal: it was removed, or moved away"):
            journal.require_there()
        if how == "moved":
            away.rename(folder)
            journal.require_there()


def test_a_journal_whose_path_cannot_be_followed_is_said_with_the_reason(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    with Journal.take(folder / "journal") as journal:
        folder.rename(tmp_path / "away")
        folder.symlink_to(folder)
        with pytest.raises(JournalError, match=r"journal: .*: Too many levels of symbolic links"):
            journal.require_there()


def test_every_damaged_line_is_counted(tmp_path: Path) -> None:
    with Journal.take(tmp_path / "journal") as journal:
        journal.append(an_event(1))
    with (tmp_path / "journal").open("ab") as file:
        file.write(b"{\n\nnonsense\n[]\n")
        file.write(b'{"time":-1,"event":"x"}\n' * 2)
    reading = read(tmp_path / "journal")
    assert list(reading) == [an_event(1)]
    assert reading.damaged == 5


@pytest.mark.parametrize("size", [1, 100, 4096, 4097, 8192, 20_000])
def test_a_fingerprint_is_of_the_first_and_last_bytes_that_were_read(
    tmp_path: Path, size: int
) -> None:
    """Of what stands behind them, nothing; a change before their end is seen within 4,096 bytes."""
    path = tmp_path / "journal"

    def of(data: bytes) -> int:
        path.write_bytes(data)
        with path.open("rb") as file:
            return fingerprint(file, size)

    same = of(b"a" * size)
    assert of(b"a" * size + b"more") == same
    for at in {0, min(size, 4096) - 1, max(0, size - 4096), size - 1}:
        assert of(b"a" * at + b"b" + b"a" * (size - at - 1)) != same, at


def test_the_lock_bears_the_name_of_its_owner_and_nothing_before_it(tmp_path: Path) -> None:
    with Journal.take(tmp_path / "journal"):
        (lock,) = (p for p in tmp_path.iterdir() if p.name != "journal")
        assert lock.read_bytes().startswith(b"seatrial, process %d on " % os.getpid())
        assert lock.stat().st_mode & 0o111 == 0


# ---- disks that are full or closed ---------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB; where none can be mounted, the tests of it are skipped, as those
    with a limit on the size of files show the same."""
    folder = tmp_path / "disk"
    folder.mkdir()
    line = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(line, check=False, capture_output=True).returncode:
        pytest.skip("mounting is not permitted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def check_that_nothing_is_lost(path: Path, remedy: str, free: object) -> None:
    """Write until it fails, free the space, write on: every event is there once, in order."""
    assert callable(free)
    count = 0
    with Journal.take(path) as journal:
        with pytest.raises(JournalError) as caught:
            while count < 2000:
                for _ in range(7):
                    count += 1
                    journal.append(an_event(count, text="x" * 200))
                journal.flush()
        assert str(caught.value).startswith(f"{path}: cannot be written: ")
        assert remedy in str(caught.value)
        before = everything(path)
        assert path.stat().st_size == before.end, "a line was left half written"
        assert [event.time for event in before.events] == list(range(1, len(before.events) + 1))
        with pytest.raises(JournalError):
            journal.flush()
        assert list(read(path)) == before.events
        free()
        journal.append(an_event(count + 1))
        journal.flush()
        after = everything(path)
        assert [event.time for event in after.events] == list(range(1, count + 2))
        assert after.damaged == 0


def test_a_full_disk_loses_nothing(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"\0" * 40_000)
    remedy = "No space left on device; the disk is full; free some space"
    check_that_nothing_is_lost(small_disk / "journal", remedy, ballast.unlink)


def test_a_journal_on_a_full_disk_can_be_owned(small_disk: Path) -> None:
    path = small_disk / "journal"
    with Journal.take(path) as journal:
        journal.append(an_event())
    path.with_name("journal.lock").write_bytes(b"")  # so that the owner's name needs a new page
    with pytest.raises(OSError, match="No space left"):
        (small_disk / "ballast").write_bytes(b"\0" * 70_000)
    with Journal.take(path) as journal:
        assert list(read(path)) == [an_event()]
        (small_disk / "ballast").unlink()
        journal.append(an_event())
    assert len(list(read(path))) == 2


def test_a_limit_on_the_size_of_files_loses_nothing(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        check_that_nothing_is_lost(
            tmp_path / "journal",
            "raise the limit on the size of files",
            lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard)),
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_fails_to_sync_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    with Journal.take(tmp_path / "journal") as journal:
        journal.append(an_event())
        monkeypatch.setattr(os, "fdatasync", fail)
        with pytest.raises(JournalError, match="cannot be written: Input/output error; see to"):
            journal.flush(durable=True)


def test_a_read_only_file_system_is_said_and_can_be_read(small_disk: Path) -> None:
    path = small_disk / "journal"
    with Journal.take(path) as journal:
        journal.append(an_event())
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(JournalError, match=r"journal.lock: cannot be opened: Read-only .*; write"):
        Journal.take(path)
    assert list(read(path)) == [an_event()]


def test_a_folder_without_permission_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "trial"
    folder.mkdir(mode=0o555)
    if os.geteuid() == 0:  # may write anywhere: the answer that others get
        real = os.open

        def refuse(path: Path, *more: int, dir_fd: int | None = None) -> int:
            if Path(path).parent == folder:
                raise PermissionError(13, "Permission denied", str(path))
            return real(path, *more, dir_fd=dir_fd)

        monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(JournalError, match="cannot be opened: Permission denied; ask its owner"):
        Journal.take(folder / "journal")


def test_a_journal_that_cannot_be_repaired_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int, size: int) -> None:
        raise OSError(5, "Input/output error")

    path = tmp_path / "journal"
    write(path, lines([an_event()]), b"torn")
    with monkeypatch.context() as broken:
        broken.setattr(os, "ftruncate", fail)
        with pytest.raises(JournalError, match="cannot be opened: Input/output error"):
            Journal.take(path)
    with Journal.take(path) as journal:
        journal.append(an_event(2))
    assert list(read(path)) == [an_event(1), an_event(2)]


def test_a_folder_in_the_place_of_the_journal_leaves_no_lock_behind(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.mkdir()
    with pytest.raises(JournalError, match=f"{path}: cannot be opened: Is a directory"):
        Journal.take(path)
    path.rmdir()
    Journal.take(path).close()


def test_lines_that_a_failed_flush_wrote_whole_stay_and_none_is_written_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.jsonl"
    events = [CheckStarted(time=number, run_id="r" * number) for number in (1, 2, 3)]
    lines = seal(b"".join(encode(event) + b"\n" for event in events), 0)[0].splitlines(True)
    whole, room = os.pwrite, [len(lines[0]) + 5]

    def write(descriptor: int, data: bytes, offset: int) -> int:
        if not room:
            del data  # which the frame of the error would keep
            raise OSError(errno.ENOSPC, "No space left on device")
        return whole(descriptor, data[: room.pop()], offset)

    with Journal.take(path) as journal:
        for event in events:
            journal.append(event)
        with monkeypatch.context() as patched:
            patched.setattr(os, "pwrite", write)
            with pytest.raises(JournalError):
                journal.flush()
        assert path.read_bytes() == lines[0], "a reader may have seen it"
        journal.flush()
        assert path.read_bytes() == b"".join(lines)


def test_a_block_has_no_event_of_a_line_without_a_time() -> None:
    line = b'{"event":"check_start","run_id":"r"}\n'
    assert decode_block(line) == ([], 1)
    assert decode_block(line.replace(b"{", b'{"time":0,')) == ([CheckStarted(run_id="r")], 0)


def test_files_on_which_events_rest_are_on_the_disk_before_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []

    def sync(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))

    monkeypatch.setattr(os, "fdatasync", sync)
    output, path = tmp_path / "stdout", tmp_path / "journal.jsonl"
    output.write_text("all well")
    with Journal.take(path) as journal:
        journal.rest_on([str(output), str(tmp_path / "missing"), "a\0b"])
        journal.append(AlertRaised(time=1))
        journal.flush()
        assert synced == []
        journal.sync()
        assert synced == [str(output), str(path)]
        journal.sync()
    assert synced.count(str(output)) == 1


def test_a_file_system_without_locks_is_told_and_no_descriptor_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    opened = len([*Path("/proc/self/fd").iterdir()])
    with pytest.raises(JournalError, match="cannot be locked: No locks available"):
        Journal.take(tmp_path / "journal.jsonl")
    assert len([*Path("/proc/self/fd").iterdir()]) == opened
