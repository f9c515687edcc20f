"""The machine's diary: many writers, torn lines, and the note nearest to a change."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import TrialError, UsageError
from seatrial.results import notes
from seatrial.results.notes import Note, nearest
from tests.waiting import LONG_S

SECOND = 10**9
FORK = multiprocessing.get_context("fork")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "trials" / notes.FILE


def test_notes_are_read_by_time_and_by_machine(file: Path) -> None:
    assert notes.read(file) == ([], 0)
    later = notes.write(file, "  fabric\treset \n", 9 * SECOND, "frost")
    first = notes.write(file, "kernel", 5 * SECOND)
    assert later.text == "fabric reset"
    assert notes.read(file).notes == [first, later]
    assert notes.read(file).of("other") == [first]
    assert notes.read(file).of("frost") == [first, later]


def test_a_removal_is_a_line_too(file: Path) -> None:
    note = notes.write(file, "typo", SECOND)
    kept = notes.write(file, "kept", SECOND)
    before = file.read_bytes()
    assert notes.remove(file, note.id[:6]) == note
    assert file.read_bytes().startswith(before)
    assert notes.read(file).notes == [kept]
    with pytest.raises(UsageError, match="is no note"):
        notes.remove(file, note.id)
    notes.write(file, "another", SECOND)
    with pytest.raises(UsageError, match="is no note"):
        notes.remove(file, "")


@pytest.mark.parametrize(
    ("text", "at", "said"),
    [
        (" \n", 1, "needs a text"),
        ("x" * 1001, 1, "at most 1000"),
        ("x", -1, "after 1969"),
        ("x", 10**30, "a year ahead"),
    ],
)
def test_what_is_no_note(file: Path, text: str, at: int, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        notes.write(file, text, at)
    assert not file.exists()


def test_damaged_lines_are_skipped_and_counted(file: Path) -> None:
    first = notes.write(file, "first", SECOND)
    with file.open("ab") as torn:
        torn.write(b'{"id": "x", "te')  # a crash: no line end
    second = notes.write(file, "second", 2 * SECOND)
    with file.open("ab") as damaged:
        damaged.write(b"\xff\xfe\n[]\n{}\n\n" + b"[" * 5000 + b"\n")
    found = notes.read(file)
    assert found.notes == [first, second]
    assert found.damaged == 5


def test_an_incident_is_a_note_with_an_end_and_a_history(file: Path) -> None:
    first = notes.write(
        file, "power", SECOND, "frost", "p1", until=9 * SECOND, nodes="n[1-4]", cause="power"
    )
    assert (first.id, first.until, first.nodes, first.cause) == (
        "p1",
        9 * SECOND,
        "n[1-4]",
        "power",
    )
    with pytest.raises(UsageError, match="p1: there is, or was, a note of that id"):
        notes.write(file, "again", SECOND, name="p1")
    fixed = notes.correct(file, "p1", "it took longer", until=10 * SECOND)
    assert notes.read(file).notes == [fixed]
    assert (fixed.text, fixed.until, fixed.reason) == ("power", 10 * SECOND, "it took longer")
    notes.remove(file, "p1", "twice")
    lines = notes.versions(file)["p1"]
    assert [(line.until, line.reason) for line in lines] == [
        (9 * SECOND, ""),
        (10 * SECOND, "it took longer"),
        (0, "twice"),
    ]
    with pytest.raises(UsageError, match="there is, or was"):
        notes.write(file, "again", SECOND, name="p1")
    with file.open("a") as odd:
        odd.write('{"id": "x", "time": 1, "text": "x", "until": 99999999999999999999999}\n')
    assert notes.read(file) == ([], 1)


def test_many_may_write_at_once(file: Path) -> None:
    def write(writer: int) -> None:
        for i in range(25):
            notes.write(file, f"{writer} {i}", i)

    writers = [FORK.Process(target=write, args=(number,)) for number in range(4)]
    for each in writers:
        each.start()
    for each in writers:
        each.join(LONG_S)
        assert each.exitcode == 0
    found = notes.read(file)
    assert (len(found.notes), found.damaged) == (100, 0)
    assert {note.text for note in found.notes} == {f"{w} {i}" for w in range(4) for i in range(25)}


def test_what_cannot_be_written_or_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    with pytest.raises(TrialError, match="cannot be read"):
        notes.read(tmp_path / "dir")
    (tmp_path / "file").touch()
    with pytest.raises(TrialError, match="cannot be"):
        notes.write(tmp_path / "file" / notes.FILE, "x", 1)


def a_note(time: int) -> Note:
    return Note(str(time), time * SECOND, f"at {time}")


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([], None),
        ([5], (5, -5.0)),
        ([5, 30], (5, -5.0)),
        ([1, 22], (22, 2.0)),
        ([9, 12, 14, 21], (14, 0.0)),
    ],
)
def test_the_nearest_note(times: list[int], expected: tuple[int, float] | None) -> None:
    found = nearest([a_note(time) for time in times], 10 * SECOND, 20 * SECOND)
    assert (found and (found.note.time // SECOND, found.seconds)) == expected


@given(st.binary(max_size=300))
def test_no_file_breaks_it(data: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / notes.FILE
        path.write_bytes(data)
        notes.read(path)
        note = notes.write(path, "after", SECOND)
        assert note in notes.read(path).notes
