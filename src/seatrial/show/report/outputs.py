"""Read a journal again, to verify what a report says of it: what its runs wrote, and what was
appended after the report was made.

    life, runs = read_journal(path, size, record)    # its first bytes, as the report knows them
    life.over                                # the trial had ended
    for run in runs: run.sha256              # {"stdout": "5d41...", ...}
    appended(path, size, life)               # what speaks against the bytes that came later
"""

import os
from collections import Counter
from collections.abc import Iterator
from os.path import normpath
from pathlib import Path
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from seatrial.execute.kept_files import MAX_BYTES, checksum, removal_rule, removes
from seatrial.execute.trial_folder import TrialFolder
from seatrial.execute.trial_record import Record
from seatrial.files import open_regular
from seatrial.journal import events
from seatrial.journal.journal import Block, read_blocks
from seatrial.journal.trial_life import TrialLife
from seatrial.judge.checks import reading_limits
from seatrial.model.codes import RECALLED, code_of
from seatrial.units import count

_AFTER_END: Final = (  # may follow its end, beside what follows verdicts
    events.MetricRecorded,
    events.ReferencesCorrected,
    *events.PERSONAL,
)
OutputState = Literal["as it was", "changed", "not here", "cannot be read", "too large"]


class RunOutputs(NamedTuple):
    """What a run wrote, by its journal: the checksums of its files by their names, None where none
    were made; ``path``: its directory at that time; ``removed``: those that `keep` removed."""

    run_id: str
    test: str
    path: str
    sha256: dict[str, str] | None
    removed: frozenset[str] = frozenset()


class OutputFound(NamedTuple):
    """A file of a run, and its state."""

    run_id: str
    path: Path
    state: OutputState


class OutputsFound(NamedTuple):
    """The files of the runs of a trial: how many are as they were, the others, and how many runs
    have no checksums, as version 0.1 made none. ``removed``: files that are not here, and
    that `keep` removed by the journal's word; ``too_large``: files too large for a checksum, then
    and now."""

    trial: str
    unchanged: int
    others: list[OutputFound]
    without: int
    removed: int = 0
    too_large: int = 0


class _JudgedRun(Struct):
    """What the beginning of a journal says of a run: its test, its directory, the number of its
    verdict (None: it has none), the checksums and bytes of its files, which were removed."""

    test: str = ""
    path: str = ""
    code: int | None = None
    sha256: dict[str, str] | None = None
    sizes: dict[str, int] = {}
    removed: list[events.OutputRemoved] = []


def read_journal(path: Path, size: int, record: Record) -> tuple[TrialLife, list[RunOutputs]]:
    """Read the first bytes of the journal of a trial with this record. Return the life of the
    trial, and its runs that were judged. Raises OSError."""
    life = TrialLife(record.policy.duration)
    runs: dict[str, _JudgedRun] = {}
    for block in _blocks(path, 0, size):
        for event in block.events:
            if isinstance(
                event,
                events.RunCreated | events.ScriptEnded | events.RunJudged | events.OutputRemoved,
            ):
                _note(event, runs.setdefault(event.run_id, _JudgedRun()))
            else:
                life.apply(event)
    since = {
        event.run_id
        for block in _blocks(path, size, path.stat().st_size)
        for event in block.events
        if isinstance(event, events.OutputRemoved)
    }
    judged = [
        RunOutputs(run_id, run.test, run.path, run.sha256, _removed(run, run_id in since, record))
        for run_id, run in runs.items()
        if run.code is not None and run.code != RECALLED.number  # those wrote nothing
    ]
    return life, judged


def _note(
    event: events.RunCreated | events.ScriptEnded | events.RunJudged | events.OutputRemoved,
    run: _JudgedRun,
) -> None:
    if isinstance(event, events.RunCreated):
        run.test, run.path = event.test, event.path
    elif isinstance(event, events.ScriptEnded):
        run.sizes = event.sizes or {}
    elif isinstance(event, events.RunJudged):
        run.test, run.code = run.test or event.test, event.code
        run.sha256 = event.sha256 or run.sha256
    else:
        run.removed.append(event)


def _removed(run: _JudgedRun, since: bool, record: Record) -> frozenset[str]:
    """Return which files of a run may be gone: those that an event tells, and that `keep` removes
    by the record. An event alone excuses no file: a job could have written it. Of events ``since``
    the journal was signed it counts only that there are some."""
    if run.test not in record.tests:
        return frozenset()
    rule = removal_rule(record.keep_of(run.test), code_of(run.code or 0))
    if rule is None:
        return frozenset()
    return frozenset(
        name
        for name in run.sha256 or {}
        if removes(rule, name, run.sizes.get(name))
        and (since or any(_tells(event, name) for event in run.removed))
    )


def _tells(event: events.OutputRemoved, name: str) -> bool:
    """Whether a file is among those that were removed, of which an event names only the first."""
    names = event.names or []
    return normpath(name) in names or event.files > len(names)


def appended(path: Path, size: int, life: TrialLife) -> str:
    """Return what speaks against the bytes of a journal beyond the first ``size``, "" if nothing
    does. After the end of a trial a person may go on with it, and the last line may be unfinished
    then; nothing else may come. Raises OSError."""
    damaged, read = 0, size
    first: events.Event | None = None
    with open_regular(path) as file:
        end = file.seek(0, 2)
    for block in _blocks(path, size, end):
        damaged, read = damaged + block.damaged, block.end
        others = (event for event in block.events if not _may_follow(event))
        first = first or next(others, None)
    lines = damaged + (read < end)
    if not life.over:
        return f"{count(lines, 'line')} of them no event" if lines > 1 else ""
    went_on = isinstance(first, events.RequestedEvent | events.TrialOpened)
    if damaged or (lines and not went_on):
        return f"after the end of the trial, {count(lines, 'line')} of them no event"
    if first is not None and not went_on:
        return f"after the end of the trial, and nobody went on with it: {_name(first)}"
    return ""


def _may_follow(event: events.Event) -> bool:
    """Return whether an event may come after the end of its trial."""
    return event.follows_verdict or isinstance(event, _AFTER_END)


def _name(event: events.Event) -> str:
    return str(event.__struct_config__.tag)


def _blocks(path: Path, start: int, end: int) -> Iterator[Block]:
    """Yield the whole lines between two places of a file."""
    with open_regular(path) as file:
        yield from read_blocks(file, start, until=end)


def outputs_found(folder: TrialFolder, runs: list[RunOutputs]) -> OutputsFound:
    """Return the state of the files that the runs of a trial wrote. Raises TrialError."""
    tests = folder.record().tests
    limits = {name: reading_limits(test) for name, test in tests.items()}
    states: Counter[str] = Counter()
    others: list[OutputFound] = []
    without = 0
    for run in runs:
        if run.sha256 is None:
            without += run.path != ""
            continue
        place = folder.run(run.test, run.run_id)
        if not place.exists() and run.path:
            place = Path(run.path)
        for name, sha256 in run.sha256.items():
            limit = limits.get(run.test, {}).get(name, MAX_BYTES)
            state = _state(f"{place}/{name}", sha256, limit)
            if state == "not here" and name in run.removed:
                states["removed"] += 1
                continue
            states[state] += 1
            if state not in ("as it was", "too large"):
                others.append(OutputFound(run.run_id, Path(f"{place}/{name}"), state))
    unchanged, removed, too_large = (states[s] for s in ("as it was", "removed", "too large"))
    return OutputsFound(folder.tag, unchanged, others, without, removed, too_large)


def _state(path: str, sha256: str, limit: int) -> OutputState:
    """Return the state of a file; one without a checksum had more than ``limit`` bytes."""
    try:
        if not sha256 and os.stat(path).st_size > limit:  # noqa: PTH116
            return "too large"
        current = checksum(path)
    except FileNotFoundError:
        return "not here"
    except (OSError, ValueError):
        return "cannot be read"
    if current != sha256:
        return "changed"
    return "as it was"
