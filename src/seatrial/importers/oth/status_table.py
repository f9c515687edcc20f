"""Read ``Status/rgt_status.txt`` of the OLCF Test Harness: a row for each run of a test.

The columns are start time, launch id (``TAG/USER@TIME``), id, run count, job, and the results of
building, submitting and checking; ``***`` is nothing yet. The harness rewrites the file without a
lock, so rows may be cut or missing.
"""

from pathlib import Path
from typing import NamedTuple

from seatrial.importers.notes import ImportNote
from seatrial.verify.reading import Missing, TooLarge, Unreadable, read_text

FILE = "rgt_status.txt"
LIMIT = 256 << 20
COLUMNS = 8


class StatusRow(NamedTuple):
    """A row, with its line; ``tag`` is that of its launch."""

    line: int
    start: str
    tag: str
    job: str
    build: str
    submit: str
    check: str


def read_status_table(status: Path) -> tuple[dict[str, StatusRow], list[ImportNote]]:
    """Return the rows by the ids of runs, and notes on lines that are none."""
    path = status / FILE
    try:
        text = read_text(status, FILE, LIMIT, "split the folder")
    except Missing:
        return {}, []
    except (Unreadable, TooLarge) as error:
        return {}, [ImportNote(path, 0, f"cannot be read: {error}")]
    rows: dict[str, StatusRow] = {}
    notes = []
    for line, written in enumerate(text.splitlines(), 1):
        words = written.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != COLUMNS:
            what = f"has {len(words)} columns in place of {COLUMNS}"
            notes.append(ImportNote(path, line, f"the row {what}: left out"))
            continue
        start, launch, number, _, job, *results = words
        rows[number] = StatusRow(line, start, launch.partition("/")[0], job, *results)
    return rows, notes
