"""What an import did not carry over, with its place."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class ImportNote(NamedTuple):
    """A remark on a line (0: the file as a whole) of a file that was imported. What was not carried
    over is ``lost``; else a person should know how it was."""

    path: Path
    line: int
    text: str
    lost: bool = True

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}" if self.line else str(self.path)


def by_text(notes: Iterable[ImportNote]) -> list[tuple[str, list[ImportNote]]]:
    """Return the texts of notes, what was lost first, each with its notes in the order of their
    places."""
    found: dict[str, dict[ImportNote, None]] = {}
    for note in sorted(notes, key=lambda note: not note.lost):
        found.setdefault(note.text, {})[note] = None
    return [(text, sorted(same)) for text, same in found.items()]
