"""Read what the scripts of a run left in ``Run_Archive/ID``: figures, and what each node said."""

from collections import Counter
from pathlib import Path

from seatrial.importers.notes import ImportNote
from seatrial.importers.results import ImportedFigure, ImportedRun
from seatrial.journal import codes
from seatrial.lazy import regex
from seatrial.machine.node_sets import fold
from seatrial.verify.node_findings import BAD, GOOD, MAX_NODES
from seatrial.verify.node_metrics import FINDINGS, NODECHECK, metric_of
from seatrial.verify.outputs import oth
from seatrial.verify.reading import Missing, Unreadable, plain_line, read_text, tail

OUTPUT = "output_check.txt"
LAST_BYTES = 4096
LONGEST_REASON = 400
_NODE = regex(r"[A-Za-z0-9][\w.-]{0,99}")


def read_archive(folder: Path, run: ImportedRun, is_whole: bool) -> list[ImportNote]:
    """Add to a run what its archive tells, and return notes on what is not readable there. One
    that is not ``is_whole`` was being written: the last line of a file may be cut."""
    notes = _read_metrics(folder, run, is_whole)
    notes += _read_nodes(folder, run)
    if run.code not in (codes.PASS.number, codes.LOST.number):
        said = _last_line(folder / OUTPUT)
        run.reason = f"{said} ({run.reason})" if said else run.reason
    return notes


def _read_metrics(folder: Path, run: ImportedRun, is_whole: bool) -> list[ImportNote]:
    try:
        text = read_text(folder, oth.FILE)
    except Missing:
        return []
    except Unreadable as error:
        return [ImportNote(folder / oth.FILE, 0, f"cannot be read: {error}")]
    if is_whole and not text.endswith("\n"):
        text += "\n"
    notes = []
    seen = {figure.name for figure in run.figures}
    for line, written in enumerate(text.splitlines(keepends=True), 1):
        if not written.strip():
            continue
        try:
            figures = oth.parse(written)
        except ValueError:
            text = "is not `name = number`, or is cut: left out"
            notes.append(ImportNote(folder / oth.FILE, line, text))
            continue
        for figure in figures:
            if figure.name not in seen:
                seen.add(figure.name)
                run.figures = [*run.figures, ImportedFigure(figure.name, figure.value)]
    return notes


def _read_nodes(folder: Path, run: ImportedRun) -> list[ImportNote]:
    """Take the nodes of a run, and how many checks failed on each, from ``nodecheck.txt``."""
    try:
        text = read_text(folder, NODECHECK)
    except Missing:
        return []
    except Unreadable as error:
        return [ImportNote(folder / NODECHECK, 0, f"cannot be read: {error}")]
    notes = []
    names: dict[str, None] = {}
    failed: Counter[str] = Counter()
    for line, written in enumerate(text.splitlines(), 1):
        words = written.split(maxsplit=2)
        if not words or words[0].startswith("#"):
            continue
        word = words[1].upper() if len(words) > 1 else ""
        if not _NODE.fullmatch(words[0]) or word not in GOOD | BAD:
            text = "is not `NODE STATUS MESSAGE` with a status that the harness knows: left out"
            notes.append(ImportNote(folder / NODECHECK, line, text))
            continue
        names[words[0]] = None
        if word in BAD:
            failed[words[0]] += 1
    if names:
        run.hosts = fold(list(names))
        bad = sorted(failed.items())
        figures = [(FINDINGS, failed.total()), *((metric_of(n), k) for n, k in bad[:MAX_NODES])]
        run.figures = [
            *run.figures,
            *(ImportedFigure(name, float(value), "1", "lower") for name, value in figures),
        ]
    return notes


def _last_line(path: Path) -> str:
    """Return the last line of a file that is not empty; "" if there is none."""
    found = tail(path, LAST_BYTES)
    lines = [line.strip() for line in found.text.splitlines()] if found else []
    return plain_line(next(filter(None, reversed(lines)), "")[:LONGEST_REASON])
