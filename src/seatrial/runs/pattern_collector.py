"""The communication pattern of a run, by what its ranks recorded.

    collect(run)                   # the records of its ranks become pattern.txt
    faults_of(run, pattern)        # what is missing, and why

Records that were added up are removed; what cannot be read stays.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from seatrial.files import read_regular, remove_file, replace_file
from seatrial.layout.node import spans
from seatrial.layout.orders import MAX_RANKS
from seatrial.layout.pattern_records import PatternMerger, RankRecord, parsed_record
from seatrial.layout.patterns import Pattern, parsed, written
from seatrial.lazy import regex
from seatrial.runs.pattern_recorder import FOLDER, START
from seatrial.suite.recording import PATTERN_FILE
from seatrial.units import count

MAX_FILE_BYTES = 1 << 28  # of a pattern file
_MAX_RECORD_BYTES = 1 << 26
_MAX_TOLD = 5
_OTHER_MPI = "other-mpi"
_RECORD = regex(r"([0-9a-f]{16})\.(begin|\d{1,7})", re.ASCII)


def collect(run: Path) -> None:
    """Add up the records of the ranks of a run, and write its pattern. Nothing is written where no
    rank left a record. Raises OSError."""
    begun, records = _found(run)
    ranks = max(begun.values(), default=0)
    merger, read = PatternMerger(ranks), []
    for launch, number in begun.items():
        for rank, path in records.get(launch, {}).items() if number == ranks else ():
            with contextlib.suppress(OSError, ValueError):
                merger.add(_record(path, rank))
                read.append(path)
    if not read:
        return
    replace_file(run / PATTERN_FILE, written(merger.pattern()).encode())
    for path in read:
        remove_file(path, missing_ok=True)
    with contextlib.suppress(OSError):  # a record that cannot be read stays
        for launch in begun:
            remove_file(run / FOLDER / f"{launch}.begin", missing_ok=True)
        (run / FOLDER).rmdir()  # plain: an empty folder alone


def pattern_of(run: Path) -> Pattern:
    """Return the pattern of a run. Raises ValueError where it has none, with the reason."""
    path = run / PATTERN_FILE
    try:
        return read_pattern(path)
    except FileNotFoundError:
        raise ValueError(f"{path} is not there: {_reason(run)}") from None
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def read_pattern(path: Path) -> Pattern:
    """Return the pattern of a file. Raises OSError, ValueError."""
    return parsed(read_regular(path, MAX_FILE_BYTES).decode(errors="replace"))


def faults_of(run: Path, pattern: Pattern) -> list[str]:
    """Return sentences about what a recorded pattern lacks."""
    if not pattern.missing:
        return []
    _, records = _found(run)
    torn = {rank: path for own in records.values() for rank, path in own.items()}
    told = []
    for rank in [rank for rank in pattern.missing if rank in torn][:_MAX_TOLD]:
        try:
            _record(torn[rank], rank)
        except (OSError, ValueError) as error:
            told.append(f"{torn[rank]}: {error}; record the run again")
    silent = [rank for rank in pattern.missing if rank not in torn]
    if silent:
        noun = f"{count(len(silent), 'rank')} left no record: {_cut(spans(silent))}"
        told.append(f"{noun}; a rank writes it in MPI_Finalize, see whether the program calls it")
    return told


def _reason(run: Path) -> str:
    """Return why a run has no pattern."""
    if not (run / START).exists():
        return "the run was not recorded; `seatrial pattern record` does, or `run.pattern: true`"
    with contextlib.suppress(OSError):
        other = read_regular(run / FOLDER / _OTHER_MPI, 1 << 16, follow=False)
        version = other.decode(errors="replace").split("\n")[0]
        return f"the program has another MPI than the toolchain's mpicc: {_cut(version)}"
    begun, records = _found(run)
    if not begun:
        return (
            "no MPI program began under the library; the script must start it by $LAUNCH, and a "
            "static program cannot be recorded"
        )
    for own in records.values():
        for rank, path in own.items():
            try:
                _record(path, rank)
            except (OSError, ValueError) as error:
                return f"{path}: {error}"
    began = count(max(begun.values()), "rank")
    return f"{began} began and none left a record; a rank writes it in MPI_Finalize"


def _found(run: Path) -> tuple[dict[str, int], dict[str, dict[int, Path]]]:
    """Return the starts of programs with their numbers of ranks, and the records of each."""
    begun: dict[str, int] = {}
    records: dict[str, dict[int, Path]] = {}
    for path in _entries(run / FOLDER):
        launch, _, kind = path.name.partition(".")
        if kind != "begin":
            records.setdefault(launch, {})[int(kind)] = path
            continue
        with contextlib.suppress(OSError, ValueError):
            number = int(read_regular(path, 32, follow=False))
            if 1 <= number <= MAX_RANKS:
                begun[launch] = number
    return begun, records


def _entries(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if _RECORD.fullmatch(entry.name):
                    yield Path(entry.path)
    except OSError:
        return


def _record(path: Path, rank: int) -> RankRecord:
    data = read_regular(path, _MAX_RECORD_BYTES, follow=False)
    found = parsed_record(data.decode(errors="replace"))
    if found.rank != rank:
        raise ValueError(f"has the record of rank {found.rank}")
    return found


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}..."
