"""Read a journal again, to verify what a report says of it: what its runs wrote, and what was
appended after the report was made.

    trial = read_journal(path, size)         # its first bytes, as the report knows them
    trial.over                               # it had ended
    for run in trial.runs_by_id.values(): run.sha256   # {"stdout": "5d41...", ...}
    appended(path, size, trial)              # what speaks against the bytes that came later
    outputs_found(folder, record, trial, cleaned_since(path, size))
"""

import os
from collections import Counter
from collections.abc import Collection, Iterator
from os.path import normpath
from pathlib import Path
from typing import Final, Literal, NamedTuple

from seatrial.execute.kept_files import MAX_BYTES, checksum, removal_rule, removes
from seatrial.execute.trial_folder import Record, TrialFolder
from seatrial.files import open_regular
from seatrial.journal import events
from seatrial.journal.journal import Block, read_blocks
from seatrial.journal.trial import RECORDED_KINDS, RecordedRun, Trial, TrialLife
from seatrial.judge.checks import reading_limits
from seatrial.model.codes import RECALLED, code_of
from seatrial.units import count

_AFTER_END: Final = (  # may follow its end, beside what follows verdicts
    events.MetricRecorded,
    events.ReferencesCorrected,
    *events.PERSONAL,
)
OutputState = Literal["as it was", "changed", "not here", "cannot be read", "too large"]


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


def read_journal(path: Path, size: int) -> Trial[RecordedRun]:
    """Return the fold of the first bytes of a journal. Raises OSError."""
    trial = Trial(RecordedRun.begin, kinds=RECORDED_KINDS)
    for block in _blocks(path, 0, size):
        for event in block.events:
            trial.apply(event)
    return trial


def cleaned_since(path: Path, size: int) -> set[str]:
    """Return the runs of which files were removed, by the bytes of a journal beyond the first
    ``size``. Raises OSError."""
    return {
        event.run_id
        for block in _blocks(path, size, path.stat().st_size)
        for event in block.events
        if isinstance(event, events.OutputRemoved)
    }


def _removed(run: RecordedRun, since: bool, record: Record) -> frozenset[str]:
    """Return which files of a run may be gone: those that an event tells, and that `keep` removes
    by the record. An event alone excuses no file: a job could have written it. Of events ``since``
    the journal was signed it counts only that there are some."""
    if run.test not in record.tests:
        return frozenset()
    code = run.code if run.first_code is None else run.first_code
    rule = removal_rule(record.keep_of(run.test), code_of(code))
    if rule is None:
        return frozenset()
    sizes = (run.script_end.sizes if run.script_end is not None else None) or {}
    return frozenset(
        name
        for name in run.sha256 or {}
        if removes(rule, name, sizes.get(name))
        and (since or any(_tells(event, name) for event in run.removals))
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


def outputs_found(
    folder: TrialFolder, record: Record, trial: Trial[RecordedRun], since: Collection[str]
) -> OutputsFound:
    """Return the state of the files that the judged runs of a trial wrote. ``since``: the runs of
    which files were removed after the journal was signed."""
    limits = {name: reading_limits(test) for name, test in record.tests.items()}
    states: Counter[str] = Counter()
    others: list[OutputFound] = []
    without = 0
    for run in trial.runs_by_id.values():
        if run.judged is None or run.code == RECALLED.number:  # those wrote nothing
            continue
        if run.sha256 is None:
            without += run.path != ""
            continue
        removed = _removed(run, run.run_id in since, record)
        place = folder.run(run.test, run.run_id)
        if not place.exists() and run.path:
            place = Path(run.path)
        for name, sha256 in run.sha256.items():
            limit = limits.get(run.test, {}).get(name, MAX_BYTES)
            state = _state(f"{place}/{name}", sha256, limit)
            if state == "not here" and name in removed:
                states["removed"] += 1
                continue
            states[state] += 1
            if state not in ("as it was", "too large"):
                others.append(OutputFound(run.run_id, Path(f"{place}/{name}"), state))
    unchanged, gone, too_large = (states[s] for s in ("as it was", "removed", "too large"))
    return OutputsFound(folder.tag, unchanged, others, without, gone, too_large)


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
