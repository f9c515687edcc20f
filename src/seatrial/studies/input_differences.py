"""In which inputs of tests the trials of two sides differ, by name and by content."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from seatrial.studies.difference import BothSides, Difference, SideRecords, told_difference
from seatrial.suite import inputs
from seatrial.units import SECOND_NS


class _Held(NamedTuple):
    """An input of a trial's test: its path, and its hash when the trial was made ("": unknown)."""

    path: str
    digest: str


def input_differences(sides: BothSides) -> Iterator[Difference]:
    """Inputs of another name or content, in any trial of a side. Where a trial's record has no hash
    of a file (it is large, or the trial is of an older version), it is read as it is now, and one
    that was changed after the earliest trial was made is told."""
    for name in sorted(sides[0].side.all_of("test") & sides[1].side.all_of("test")):
        inputs = [_listed(side, name) for side in sides]
        if not all(inputs):
            continue
        first = min(created for side in inputs for created, _ in side)
        for file in sorted({file for side in inputs for _, held in side for file in held}):
            both = [[held.get(file) for _, held in side] for side in inputs]
            yield from _input(f"test {name}", file, both, first)


def _input(
    subject: str, file: str, sides: Sequence[Sequence[_Held | None]], first: int
) -> Iterator[Difference]:
    """An input in each trial of both sides; ``first`` is when (ns) the earliest was made."""
    there = [_there(side) for side in sides]
    if there[0] != there[1]:
        yield Difference(subject, f"input {file}", *there)
    one, other = ({held for held in side if held} for side in sides)
    if not (one and other):
        return
    kept = all(held.digest for held in one | other)
    paths = [{held.path for held in side} for side in (one, other)]
    if not kept:
        days = (_changed_since(path, first) for path in sorted(paths[0] & paths[1]))
        if when := next(filter(None, days), ""):
            yield Difference(subject, f"input {file}: the file was changed on {when}")
        if when or paths[0] == paths[1]:
            return
    found = [{h.digest if kept else inputs.digest(h.path) for h in side} for side in (one, other)]
    if "" in found[0] | found[1]:
        yield Difference(subject, f"input {file}", *(", ".join(sorted(side)) for side in paths))
    else:
        digests = ({text[:12] for text in side} for side in found)
        yield from told_difference(subject, f"input {file}, SHA-256", *digests)


def _there(side: Sequence[_Held | None]) -> str:
    missing = side.count(None)
    if not missing:
        return "there"
    return f"in {len(side) - missing} of {len(side)} trials" if missing < len(side) else "not there"


def _listed(side: SideRecords, test: str) -> list[tuple[int, dict[str, _Held]]]:
    """When each trial was made, and the test's inputs by their names in a run."""
    found = []
    for trial, record in side.records:
        if test in record.tests:
            items = record.tests[test].inputs
            paths = {inputs.name_of(item): inputs.path_of(item) for item in items}
            held = {name: _Held(path, record.inputs.get(path, "")) for name, path in paths.items()}
            found.append((trial.created, held))
    return found


def _changed_since(path: str, created: int) -> str:
    """The day on which a file was last written, if that was after a time (ns)."""
    try:
        written = Path(path).stat().st_mtime_ns
    except OSError:
        return ""
    return (
        f"{datetime.fromtimestamp(written / SECOND_NS, UTC):%Y-%m-%d}" if written > created else ""
    )
