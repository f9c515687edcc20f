"""Read a journal again, to verify what a report says of it: what its runs wrote, and what was
appended after the report was made.

    reading = read_journal(path, size)       # its first bytes, as the report knows them
    reading.life.over                        # the trial had ended
    for run in reading.runs: run.sha256      # {"stdout": "5d41...", ...}
    appended(path, size, reading.life)       # what speaks against the bytes that came later
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

from seatrial.files import open_regular
from seatrial.journal.encoding import decode_block
from seatrial.journal.events import (
    Event,
    RequestedEvent,
    RunCreated,
    RunJudged,
    TrialOpened,
)
from seatrial.journal.lifecycle import TrialLife
from seatrial.runs.checksums import checksum
from seatrial.trial.folder import TrialFolder
from seatrial.units import count

CHUNK: Final = 8 << 20
OutputState = Literal["as it was", "changed", "not here", "cannot be read"]


class RunOutputs(NamedTuple):
    """What a run wrote, by its journal: the checksums of its files by their names, None where none
    were made; ``path``: its directory at that time."""

    run_id: str
    test: str
    path: str
    sha256: dict[str, str] | None


class JournalReading(NamedTuple):
    """The life of a trial and its runs that were judged, by the beginning of its journal."""

    life: TrialLife
    runs: list[RunOutputs]


class OutputFound(NamedTuple):
    """A file of a run, and its state."""

    run_id: str
    path: Path
    state: OutputState


class OutputsFound(NamedTuple):
    """The files of the runs of a trial: how many are as they were, the others, and how many runs
    have no checksums, as version 0.1 made none."""

    trial: str
    unchanged: int
    others: list[OutputFound]
    without: int


def read_journal(path: Path, size: int, duration: float) -> JournalReading:
    """Read the first bytes of a journal; ``duration`` is that of the trial's policy. Raises
    OSError."""
    life = TrialLife(duration)
    paths: dict[str, tuple[str, str]] = {}
    runs: dict[str, RunOutputs] = {}
    for events, _ in _blocks(path, 0, size):
        for event in events:
            if isinstance(event, RunCreated):
                paths[event.run_id] = (event.test, event.path)
            elif isinstance(event, RunJudged):
                test, place = paths.get(event.run_id, (event.test, ""))
                known = runs.get(event.run_id)
                sums = event.sha256 or (known.sha256 if known else None)
                runs[event.run_id] = RunOutputs(event.run_id, test, place, sums)
            else:
                life.apply(event)
    return JournalReading(life, list(runs.values()))


def appended(path: Path, size: int, life: TrialLife) -> str:
    """Return what speaks against the bytes of a journal beyond the first ``size``, "" if nothing
    does. After the end of a trial a person may go on with it; nothing else may come. Raises
    OSError."""
    damaged, first = 0, None
    with open_regular(path) as file:
        end = file.seek(0, 2)
    for events, bad in _blocks(path, size, end):
        damaged += bad
        first = first or next(iter(events), None)
    if not life.over:
        return f"{count(damaged, 'line')} of them no event" if damaged > 1 else ""
    if damaged:
        return f"after the end of the trial, {count(damaged, 'line')} of them no event"
    if first is not None and not isinstance(first, RequestedEvent | TrialOpened):
        return f"after the end of the trial, and nobody went on with it: {_name(first)}"
    return ""


def _name(event: Event) -> str:
    return str(event.__struct_config__.tag)


def _blocks(path: Path, start: int, end: int) -> Iterator[tuple[list[Event], int]]:
    """Yield the events between two places of a file, and the number of lines that are none."""
    with open_regular(path) as file:
        file.seek(start)
        left, rest = end - start, b""
        while left > 0 and (data := file.read(min(left, CHUNK))):
            left -= len(data)
            data = rest + data
            cut = data.rfind(b"\n") + 1
            rest = data[cut:]
            if cut:
                yield decode_block(data[:cut])
        if rest.strip():
            yield [], 1


def outputs_found(folder: TrialFolder, runs: list[RunOutputs]) -> OutputsFound:
    """Return the state of the files that the runs of a trial wrote."""
    unchanged, without, others = 0, 0, []
    for run in runs:
        if run.sha256 is None:
            without += run.path != ""
            continue
        place = folder.run(run.test, run.run_id)
        if not place.exists() and run.path:
            place = Path(run.path)
        for name, sha256 in run.sha256.items():
            state = _state(f"{place}/{name}", sha256)
            if state == "as it was":
                unchanged += 1
            else:
                others.append(OutputFound(run.run_id, Path(f"{place}/{name}"), state))
    return OutputsFound(folder.tag, unchanged, others, without)


def _state(path: str, sha256: str) -> OutputState:
    try:
        return "as it was" if checksum(path) == sha256 else "changed"
    except FileNotFoundError:
        return "not here"
    except (OSError, ValueError):
        return "cannot be read"
