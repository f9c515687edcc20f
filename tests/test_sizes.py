"""How long files of the source are: 400 lines at most, or listed with the reason why."""

from __future__ import annotations

from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "seatrial"
MAX_LINES = 400

# CONTRIBUTING names the same files.
LONGER = {
    "conduct/state.py": "the one fold of a trial's events that decisions rest on",
    "journal/events.py": "one table: a Struct for each kind of event",
}


def test_a_file_is_short_or_listed() -> None:
    lengths = {
        path.relative_to(SOURCE).as_posix(): len(path.read_text().splitlines())
        for path in SOURCE.rglob("*.py")
    }
    longer = {name: lines for name, lines in lengths.items() if lines > MAX_LINES}
    assert longer.keys() <= LONGER.keys(), "divide it along its nouns, or list it with a reason"
    assert LONGER.keys() <= longer.keys(), "listed, and short by now"


def test_contributing_names_the_longer_files() -> None:
    text = (SOURCE.parent.parent / "CONTRIBUTING.md").read_text()
    assert [name for name in LONGER if f"`{name}`" not in text] == []
